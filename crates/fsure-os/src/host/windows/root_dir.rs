//! The names below a root. Paths are opened relative to the root's handle, as
//! the kernel takes them: no name is a device, no link is followed, and none is
//! too long.

use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::path::Path;
use std::sync::OnceLock;

use windows_sys::Wdk::Storage::FileSystem::{FILE_DIRECTORY_FILE, FILE_SYNCHRONOUS_IO_NONALERT};
use windows_sys::Win32::Foundation as win;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_ID_BOTH_DIR_INFO, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES,
    FILE_READ_DATA, FILE_TRAVERSE, FileIdBothDirectoryInfo, GetFileInformationByHandleEx,
    SYNCHRONIZE,
};
use windows_sys::Win32::System::Ioctl::FSCTL_GET_REPARSE_POINT;

use super::call::{self, code, control, error_of, last_error, open_below};
use super::direct_grain::grain_of;
use super::stat;
use crate::physical_order::LocateFiles;
use crate::root_dir::{Listing, read_all};
use crate::wtf8::{self, link_target};
use crate::{Kind, Stat};

const STAT_ACCESS: u32 = FILE_READ_ATTRIBUTES | SYNCHRONIZE;
const LISTING: u32 = STAT_ACCESS | FILE_LIST_DIRECTORY | FILE_TRAVERSE;

/// An open root folder.
pub struct Root {
    folder: OwnedHandle,
    /// The grain of direct reads, the same for all files: another volume below
    /// is behind a mount point, which is a link and not followed.
    grain: OnceLock<u64>,
}

impl Root {
    /// Opens a root. `path` may lead through links; nothing below will.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = std::fs::OpenOptions::new()
            .access_mode(LISTING)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
            .open(path)?;
        let folder = OwnedHandle::from(folder);
        require_folder(folder.as_handle())?;
        Ok(Self { folder, grain: OnceLock::new() })
    }

    pub(super) fn handle(&self) -> BorrowedHandle<'_> {
        self.folder.as_handle()
    }

    pub(super) fn grain(&self, file: BorrowedHandle<'_>) -> u64 {
        *self.grain.get_or_init(|| grain_of(file))
    }

    /// The stat of the root itself (empty path) or of a name below it, not
    /// following a link.
    pub fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        if path.is_empty() {
            return Ok(stat::of(self.handle())?.stat);
        }
        stat_below(self.handle(), &system_path(path)?)
    }

    /// Returns false if this user may not read a name; here only an attempt shows that.
    pub fn may_read(&self, _: &[u8]) -> bool {
        true
    }

    /// The stat of a name that is going to be read. Where it begins on the disk
    /// is not known.
    pub fn stat_and_place(&self, path: &[u8]) -> io::Result<Stat> {
        self.stat(path)
    }

    /// The names in a folder. Where its files begin on the disk is not known. An
    /// error means that nothing could be listed.
    pub fn list(&self, path: &[u8], _: LocateFiles, moved: &dyn Fn()) -> io::Result<Listing> {
        let folder = self.open_folder(path)?;
        let mut found = Vec::new();
        let error = each_name(folder.as_handle(), &mut |name| {
            found.push(name);
            true
        })
        .err();
        Ok(Listing { error, ..listing_of(folder.as_handle(), found, moved) })
    }

    /// The names in a folder in parts of at most so many, so that memory does
    /// not grow with the folder. Ends early if `take` returns false.
    pub fn list_in_parts(
        &self,
        path: &[u8],
        part_names: usize,
        take: &mut dyn FnMut(Listing) -> bool,
    ) -> io::Result<()> {
        let folder = self.open_folder(path)?;
        let mut found = Vec::new();
        let mut goes_on = true;
        each_name(folder.as_handle(), &mut |name| {
            found.push(name);
            if found.len() >= part_names {
                let names = std::mem::take(&mut found);
                goes_on = take(listing_of(folder.as_handle(), names, &|| ()));
            }
            goes_on
        })?;
        if goes_on {
            take(listing_of(folder.as_handle(), found, &|| ()));
        }
        Ok(())
    }

    /// Returns true if there is any name in the root but those that `is_own` is true of, or
    /// if there might be one because the root cannot be listed to its end. Stops at the
    /// first one.
    pub fn has_names_besides(&self, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        let folder = self.open_folder(b"")?;
        let mut is_one = false;
        let listed = each_name(folder.as_handle(), &mut |name| {
            is_one = !is_own(&wtf8::to_bytes(&name));
            !is_one
        });
        Ok(is_one || listed.is_err())
    }

    /// Returns the target of a link, as the bytes of its text.
    pub fn link_target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let link = self.open_name(path)?;
        // The most a reparse point holds: 16 KiB.
        let mut answer = vec![0_u64; 2048];
        let (bytes, _) = control(link.as_handle(), FSCTL_GET_REPARSE_POINT, &[], &mut answer)?;
        let answer: Vec<u8> = answer.iter().flat_map(|word| word.to_le_bytes()).collect();
        let target = link_target(&answer[..bytes.min(answer.len())]);
        target.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "a link of unknown kind"))
    }

    /// The content of a small file such as a list of patterns: at most `max`
    /// bytes, `None` if there is no such file. Never follows a link, so that
    /// a tree cannot point this process at another user's file.
    pub fn read_small(&self, path: &[u8], max: usize) -> io::Result<Option<Vec<u8>>> {
        let path = system_path(path)?;
        let file = match open_below(self.handle(), &path, STAT_ACCESS | FILE_READ_DATA, 0) {
            Ok(file) => file,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if stat::of(file.as_handle())?.stat.kind != Kind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        read_all(max, |target, at| call::read(file.as_handle(), target, at)).map(Some)
    }

    /// Refused: nothing is written beside the data here.
    pub fn write_small(&self, _: &[u8], _: &[u8], _: &[u8], _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Refused likewise.
    pub fn remove_small(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There are no extended attributes as Unix has them.
    pub fn attribute(&self, _: &[u8], _: &str, _: usize) -> io::Result<Option<Vec<u8>>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Opens a name below the root, or the root anew, to be asked what it is.
    pub(super) fn open_name(&self, path: &[u8]) -> io::Result<OwnedHandle> {
        open_below(self.handle(), &system_path(path)?, STAT_ACCESS, 0)
    }

    /// Opens a folder below the root, or the root anew: listing one handle
    /// twice goes on where it was.
    pub(super) fn open_folder(&self, path: &[u8]) -> io::Result<OwnedHandle> {
        let options = FILE_DIRECTORY_FILE | FILE_SYNCHRONOUS_IO_NONALERT;
        let folder = open_below(self.handle(), &system_path(path)?, LISTING, options)?;
        require_folder(folder.as_handle())?;
        Ok(folder)
    }
}

/// Refuses what is a link or a file.
fn require_folder(handle: BorrowedHandle<'_>) -> io::Result<()> {
    match stat::of(handle)?.stat.kind {
        Kind::Folder => Ok(()),
        Kind::Link => Err(error_of(win::ERROR_REPARSE_POINT_ENCOUNTERED)),
        _ => Err(error_of(win::ERROR_DIRECTORY)),
    }
}

/// A path as the system wants it. One that no name here can have is not there.
pub(super) fn system_path(path: &[u8]) -> io::Result<Vec<u16>> {
    wtf8::path(path).ok_or_else(|| error_of(win::ERROR_FILE_NOT_FOUND))
}

fn stat_below(folder: BorrowedHandle<'_>, path: &[u16]) -> io::Result<Stat> {
    Ok(stat::of(open_below(folder, path, STAT_ACCESS, 0)?.as_handle())?.stat)
}

/// Gives `take` every name in a folder but `.` and `..`, until it returns false.
fn each_name(folder: BorrowedHandle<'_>, take: &mut dyn FnMut(Vec<u16>) -> bool) -> io::Result<()> {
    const NAME: usize = std::mem::offset_of!(FILE_ID_BOTH_DIR_INFO, FileName);
    // Of words, as the entries want to be aligned.
    let mut buffer = vec![0_u64; 8192];
    loop {
        // SAFETY: the size is that of the buffer, which is only written to.
        let done = unsafe {
            GetFileInformationByHandleEx(
                folder.as_raw_handle(),
                FileIdBothDirectoryInfo,
                buffer.as_mut_ptr().cast(),
                size_of_val(&*buffer) as u32,
            )
        };
        if done == 0 {
            let error = last_error();
            let is_end = code(&error) == Some(win::ERROR_NO_MORE_FILES);
            return if is_end { Ok(()) } else { Err(error) };
        }
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes) as usize
        };
        let mut at = 0;
        loop {
            let length = number(at + std::mem::offset_of!(FILE_ID_BOTH_DIR_INFO, FileNameLength));
            let name =
                bytes.get(at + NAME..at + NAME + length).ok_or(io::ErrorKind::InvalidData)?;
            let name: Vec<u16> =
                name.chunks_exact(2).map(|unit| u16::from_ne_bytes([unit[0], unit[1]])).collect();
            let is_itself = matches!(String::from_utf16_lossy(&name).as_str(), "." | "..");
            if !is_itself && !take(name) {
                return Ok(());
            }
            match number(at) {
                0 => break,
                next => at += next,
            }
        }
    }
}

/// Returns true if the error means that the name does not exist (any more).
pub fn is_gone(error: &io::Error) -> bool {
    matches!(
        code(error),
        Some(
            win::ERROR_FILE_NOT_FOUND
                | win::ERROR_PATH_NOT_FOUND
                | win::ERROR_INVALID_NAME
                | win::ERROR_BAD_PATHNAME
                | win::ERROR_DIRECTORY
                | win::ERROR_DELETE_PENDING
        )
    )
}

/// Names in an open folder with their stat, but for those that have vanished.
fn listing_of(folder: BorrowedHandle<'_>, names: Vec<Vec<u16>>, moved: &dyn Fn()) -> Listing {
    let mut listing = Listing::default();
    for name in names {
        moved();
        // What a folder says of its files may be old: only the file knows.
        let stat = stat_below(folder, &name);
        if !matches!(&stat, Err(error) if is_gone(error)) {
            listing.entries.push((listing.names.push(&wtf8::to_bytes(&name)), stat));
        }
    }
    listing.names.0.shrink_to_fit();
    listing
}

/// Returns true if the error means that the medium, or the file system on it, does not give
/// back what it had: the name is gone, or cannot be read.
pub fn is_lost(error: &io::Error) -> bool {
    is_gone(error)
        || matches!(
            code(error),
            Some(
                win::ERROR_CRC
                    | win::ERROR_IO_DEVICE
                    | win::ERROR_READ_FAULT
                    | win::ERROR_SECTOR_NOT_FOUND
                    | win::ERROR_FILE_CORRUPT
                    | win::ERROR_DISK_CORRUPT
            )
        )
}

/// Returns true if the error means that the name stands for another kind of thing than it
/// did: a link, or something that another process keeps to itself now.
pub fn is_other_kind(error: &io::Error) -> bool {
    matches!(
        code(error),
        Some(
            win::ERROR_REPARSE_POINT_ENCOUNTERED
                | win::ERROR_STOPPED_ON_SYMLINK
                | win::ERROR_CANT_ACCESS_FILE
                | win::ERROR_SHARING_VIOLATION
                | win::ERROR_LOCK_VIOLATION
        )
    )
}

/// Returns true if the error is a shortage of this process: no handles, no memory.
pub fn is_out_of_means(error: &io::Error) -> bool {
    matches!(
        code(error),
        Some(
            win::ERROR_TOO_MANY_OPEN_FILES
                | win::ERROR_NOT_ENOUGH_MEMORY
                | win::ERROR_OUTOFMEMORY
                | win::ERROR_NO_SYSTEM_RESOURCES
                | win::ERROR_COMMITMENT_LIMIT
        )
    )
}

/// Returns true if the error means that this process is not permitted to access the name.
pub fn is_denied(error: &io::Error) -> bool {
    matches!(code(error), Some(win::ERROR_ACCESS_DENIED | win::ERROR_PRIVILEGE_NOT_HELD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_names_with_their_stat() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("größe"), "12345").unwrap();
        std::fs::create_dir(tree.path().join("a")).unwrap();
        let many: Vec<_> = (0..3000).map(|n| format!("a file with a number {n:05}")).collect();
        for name in &many {
            std::fs::write(tree.path().join("a").join(name), "").unwrap();
        }
        let root = Root::open(tree.path()).unwrap();
        for _ in 0..2 {
            let mut listing = root.list(b"", LocateFiles::Yes, &|| ()).unwrap();
            assert!(listing.error.is_none());
            let names = &listing.names;
            listing.entries.sort_by(|a, b| names.get(a.0).cmp(names.get(b.0)));
            let kinds: Vec<_> = listing
                .entries
                .iter()
                .map(|(at, stat)| (names.get(*at), stat.as_ref().unwrap().kind))
                .collect();
            assert_eq!(kinds, [(&b"a"[..], Kind::Folder), ("größe".as_bytes(), Kind::File)]);
        }
        let listing = root.list(b"a", LocateFiles::No, &|| ()).unwrap();
        let mut names: Vec<_> =
            listing.entries.iter().map(|(at, _)| listing.names.get(*at)).collect();
        names.sort_unstable();
        assert!(names.iter().copied().eq(many.iter().map(String::as_bytes)));
        assert_eq!(root.stat("größe".as_bytes()).unwrap().size, 5);
        assert_eq!(root.read_small("größe".as_bytes(), 5).unwrap().unwrap(), b"12345");
        assert!(root.read_small("größe".as_bytes(), 4).is_err());
        assert!(is_gone(&root.stat(b"none").unwrap_err()));
        assert!(is_gone(&root.stat(b"none/deeper").unwrap_err()));
        assert!(is_gone(&root.list("größe".as_bytes(), LocateFiles::No, &|| ()).unwrap_err()));
        assert!(is_gone(&root.stat(b"a/../a").unwrap_err()), "no way leads up");
    }

    #[test]
    fn reaches_paths_longer_than_win32_takes() {
        let tree = tempfile::tempdir().unwrap();
        let deep = ["n".repeat(100), "m".repeat(100), "o".repeat(100)];
        let path = deep.iter().fold(tree.path().to_owned(), |path, name| path.join(name));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("deep"), "x").unwrap();
        let root = Root::open(tree.path()).unwrap();
        let path = format!("{}/deep", deep.join("/"));
        assert_eq!(root.stat(path.as_bytes()).unwrap().size, 1);
        assert_eq!(
            root.list(deep.join("/").as_bytes(), LocateFiles::No, &|| ()).unwrap().entries.len(),
            1
        );
    }
}
