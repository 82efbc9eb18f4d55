//! The names below a root, relative to its descriptor. How a path is opened
//! without following any link in it, and how a stat is asked for, is each
//! system's own.

use std::ffi::{CStr, CString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat};
use rustix::io::Errno;

use super::physical_order;
use crate::Stat;
use crate::host::system::root_dir::{
    DAMAGED, NO_ATTRIBUTE, PARENT, each_name, open_in_one_piece, stat_at, stat_descriptor,
};
use crate::physical_order::LocateFiles;
use crate::root_dir::{Listing, NameAt, NameBuffer, read_all};

/// The longest piece of a path handed to the kernel at once. Its own limit is
/// `PATH_MAX`, 4096 bytes on Linux and 1024 on macOS; longer paths are walked
/// in pieces.
const PIECE_MAX: usize = libc::PATH_MAX as usize - 96;

/// Names there is space for before the first growth: most folders have fewer.
const NAMES_FIRST: usize = 128;

/// An open root folder.
pub struct Root {
    folder: OwnedFd,
    /// Cleared once a file system below has shown that it cannot tell.
    reports_places: AtomicBool,
}

impl Root {
    /// Opens a root. `path` may lead through links; nothing below will.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { folder, reports_places: AtomicBool::new(true) })
    }

    /// The root's descriptor, for questions to the file system as a whole.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The stat of the root itself (empty path) or of a name below it, not
    /// following a link.
    pub fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        if path.is_empty() {
            return stat_descriptor(&self.folder);
        }
        let (parent, name) = self.parent(path)?;
        let at = parent.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        stat_at(at, &c_string(name)?)
    }

    /// Returns false if this user may not read a name.
    pub fn may_read(&self, path: &[u8]) -> bool {
        let is_denied = || -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            let at = parent.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
            Ok(accessat(at, &c_string(name)?, Access::READ_OK, AtFlags::EACCESS)?)
        };
        !is_denied().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// The stat of a name that is going to be read, with where it begins on the
    /// disk if that is known.
    pub fn stat_and_place(&self, path: &[u8]) -> io::Result<Stat> {
        let (parent, name) = self.parent(path)?;
        let at = parent.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        let name = c_string(name)?;
        let mut stat = stat_at(at, &name)?;
        if physical_order::is_placed(&stat) {
            let files = &mut [(&*name, &mut stat)];
            physical_order::find(at, LocateFiles::Yes, &self.reports_places, files, &|| ());
        }
        Ok(stat)
    }

    /// The names in a folder, and as `places` wishes about where its files
    /// begin on the disk. An error means that nothing could be listed. Calls
    /// `moved` for every name it comes to.
    pub fn list(&self, path: &[u8], places: LocateFiles, moved: &dyn Fn()) -> io::Result<Listing> {
        let folder = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = FoundName::default();
        let error = each_name(&folder, &mut |inode, name| {
            found.push(inode, name);
            moved();
            true
        })
        .err();
        let mut listing = found.into_listing(&folder, moved);
        listing.error = error;
        if places != LocateFiles::No {
            let names = &listing.names;
            let files = listing.entries.iter_mut().filter_map(|(at, stat)| {
                let stat = stat.as_mut().ok().filter(|stat| physical_order::is_placed(stat))?;
                Some((c_str(names, *at), stat))
            });
            let mut files: Vec<_> = files.collect();
            physical_order::find(folder.as_fd(), places, &self.reports_places, &mut files, moved);
        }
        Ok(listing)
    }

    /// The names in a folder in parts of at most so many, so that memory does
    /// not grow with the folder. Ends early if `take` returns false.
    pub fn list_in_parts(
        &self,
        path: &[u8],
        part_names: usize,
        take: &mut dyn FnMut(Listing) -> bool,
    ) -> io::Result<()> {
        let folder = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = FoundName::default();
        let mut goes_on = true;
        each_name(&folder, &mut |inode, name| {
            found.push(inode, name);
            if found.inodes.len() >= part_names {
                goes_on = take(std::mem::take(&mut found).into_listing(&folder, &|| ()));
            }
            goes_on
        })?;
        if goes_on {
            take(found.into_listing(&folder, &|| ()));
        }
        Ok(())
    }

    /// Returns true if there is any name in the root but those that `is_own` is true of, or
    /// if there might be one because the root cannot be listed to its end. Stops at the
    /// first one.
    pub fn has_names_besides(&self, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        let folder = self.open_at(b"", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut is_one = false;
        let listed = each_name(&folder, &mut |_, name| {
            is_one = !is_own(name.to_bytes());
            !is_one
        });
        Ok(is_one || listed.is_err())
    }

    /// Returns the target of a symbolic link, as raw bytes.
    pub fn link_target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.parent(path)?;
        let at = parent.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        Ok(rustix::fs::readlinkat(at, &*c_string(name)?, Vec::new())?.into_bytes())
    }

    /// The content of a small file such as a list of patterns: at most `max`
    /// bytes, `None` if there is no such file. Never follows a link, so that
    /// a tree cannot point this process at another user's file.
    pub fn read_small(&self, path: &[u8], max: usize) -> io::Result<Option<Vec<u8>>> {
        let descriptor =
            match self.open_at(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK) {
                Ok(descriptor) => descriptor,
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
        if stat_descriptor(&descriptor)?.kind != crate::Kind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let read = |target: &mut [u8], at| Ok(rustix::io::pread(&descriptor, target, at)?);
        read_all(max, read).map(Some)
    }

    /// Puts a small file into a folder in the place of the one of its name: it
    /// is written as `making`, flushed, and then given its name, so that it is
    /// the old one or the new one and never part of either.
    pub fn write_small(
        &self,
        folder: &[u8],
        name: &[u8],
        making: &[u8],
        content: &[u8],
    ) -> io::Result<()> {
        let folder = self.open_at(folder, PARENT)?;
        let [name, making] = [c_string(name)?, c_string(making)?];
        let unlink = || rustix::fs::unlinkat(&folder, &*making, AtFlags::empty());
        // What a run that was cut off has left behind.
        let _ = unlink();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = rustix::fs::openat(&folder, &*making, flags, mode)?;
        let mut file = std::fs::File::from(file);
        let written = file.write_all(content).and_then(|()| file.sync_all());
        let named =
            written.and_then(|()| Ok(rustix::fs::renameat(&folder, &*making, &folder, &*name)?));
        named.inspect_err(|_| _ = unlink())
    }

    /// Takes a small file away that [`Root::write_small`] has written. It is not an
    /// error if the file is not there.
    pub fn remove_small(&self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let at = parent.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        match rustix::fs::unlinkat(at, &*c_string(name)?, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => Ok(other?),
        }
    }

    /// An extended attribute of a file, of at most `max` bytes; `None` where it
    /// has none of that name.
    pub fn attribute(&self, path: &[u8], name: &str, max: usize) -> io::Result<Option<Vec<u8>>> {
        let file = self.open_at(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
        let mut value = vec![0; max];
        match rustix::fs::fgetxattr(&file, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(NO_ATTRIBUTE | Errno::NOTSUP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a name below the root.
    pub(crate) fn open_at(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let (folder, rest) = self.approach(path)?;
        let at = folder.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        open_in_one_piece(at, rest, flags)
    }

    /// The folder a name is in, unless that is the root, and the name alone.
    /// Names are asked for in an open folder: the calls that ask by a longer
    /// path would follow a link in it.
    pub(crate) fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(Option<OwnedFd>, &'a [u8])> {
        let (folder, rest) = self.approach(path)?;
        let Some(slash) = rest.iter().rposition(|byte| *byte == b'/') else {
            return Ok((folder, rest));
        };
        let at = folder.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
        let parent = open_in_one_piece(at, &rest[..slash], PARENT).map_err(gone_if_link)?;
        Ok((Some(parent), &rest[slash + 1..]))
    }

    /// Opens folders until the rest of the path is short enough for one call.
    fn approach<'a>(&self, path: &'a [u8]) -> io::Result<(Option<OwnedFd>, &'a [u8])> {
        let mut rest = path;
        let mut folder: Option<OwnedFd> = None;
        while rest.len() > PIECE_MAX {
            let cut = rest[..PIECE_MAX]
                .iter()
                .rposition(|byte| *byte == b'/')
                .ok_or(Errno::NAMETOOLONG)?;
            let at = folder.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
            folder = Some(open_in_one_piece(at, &rest[..cut], PARENT)?);
            rest = &rest[cut + 1..];
        }
        Ok((folder, rest))
    }
}

/// Names that were found in a folder, each with its inode.
struct FoundName {
    names: NameBuffer,
    inodes: Vec<(u64, NameAt)>,
}

impl Default for FoundName {
    fn default() -> Self {
        let names = NameBuffer(Vec::with_capacity(NAMES_FIRST * 32));
        Self { names, inodes: Vec::with_capacity(NAMES_FIRST) }
    }
}

impl FoundName {
    fn push(&mut self, inode: u64, name: &CStr) {
        self.inodes.push((inode, self.names.push(name.to_bytes())));
    }

    /// The names with their stat, but for those that have vanished.
    fn into_listing(self, folder: &OwnedFd, moved: &dyn Fn()) -> Listing {
        let Self { mut names, mut inodes } = self;
        names.0.shrink_to_fit();
        // Inodes lie on the disk in the order of their numbers: asked in that
        // order, a cold folder is read forwards.
        inodes.sort_unstable_by_key(|(inode, _)| *inode);
        let mut entries = Vec::with_capacity(inodes.len());
        for (_, at) in inodes {
            moved();
            let stat = stat_at(folder.as_fd(), c_str(&names, at));
            if !matches!(&stat, Err(error) if is_gone(error)) {
                entries.push((at, stat));
            }
        }
        Listing { names, entries, error: None }
    }
}

fn c_str(names: &NameBuffer, at: NameAt) -> &CStr {
    CStr::from_bytes_with_nul(&names.0[at.start..=at.end]).expect("it was one")
}

/// Returns true if the error means that the name does not exist (any more).
pub fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR))
}

/// Returns true if the error means that the medium, or the file system on it, does not give
/// back what it had: the name is gone, or cannot be read.
pub fn is_lost(error: &io::Error) -> bool {
    is_gone(error) || Errno::from_io_error(error).is_some_and(|errno| DAMAGED.contains(&errno))
}

/// Returns true if the error means that the name stands for another kind of thing than it
/// did: a link, a socket, or something that another process keeps to itself now.
pub fn is_other_kind(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NXIO | Errno::AGAIN))
}

/// A folder on the way that became a link has nothing below it any more.
fn gone_if_link(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => Errno::NOENT.into(),
        _ => error,
    }
}

/// Returns true if the error is a shortage of this process: no descriptors, no memory.
pub fn is_out_of_means(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

/// Returns true if the error means that this process is not permitted to access the name.
pub fn is_denied(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ACCESS | Errno::PERM))
}

pub(crate) fn c_string(path: &[u8]) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from(Errno::INVAL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn lists_names_with_their_stat() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("b"), "12345").unwrap();
        std::fs::create_dir(tree.path().join("a")).unwrap();
        symlink("nowhere", tree.path().join("l")).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let mut listing = root.list(b"", LocateFiles::No, &|| ()).unwrap();
        let names = &listing.names;
        listing.entries.sort_by(|a, b| names.get(a.0).cmp(names.get(b.0)));
        let kinds: Vec<_> = listing
            .entries
            .iter()
            .map(|(at, stat)| (names.get(*at), stat.as_ref().unwrap().kind))
            .collect();
        use crate::Kind::{File, Folder, Link};
        assert_eq!(kinds, [(&b"a"[..], Folder), (b"b", File), (b"l", Link)]);
        assert_eq!(root.stat(b"b").unwrap().size, 5);
        assert_eq!(root.link_target(b"l").unwrap(), b"nowhere");
        assert!(is_gone(&root.stat(b"none").unwrap_err()));
    }

    #[test]
    fn what_we_are_short_of_is_no_loss() {
        let is_lost = |errno: Errno| is_lost(&errno.into());
        assert!([Errno::NOENT, Errno::NOTDIR, Errno::IO, Errno::BADMSG].into_iter().all(is_lost));
        let of_this_process = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::LOOP];
        assert!(!of_this_process.into_iter().chain([Errno::ACCESS]).any(is_lost));
    }

    #[test]
    fn a_link_never_leads_outside() {
        let tree = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        symlink(outside.path(), tree.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), tree.path().join("file")).unwrap();
        let root = Root::open(tree.path()).unwrap();
        assert!(root.list(b"link", LocateFiles::No, &|| ()).is_err());
        assert!(root.stat(b"link/secret").is_err());
        assert!(root.read_small(b"link/secret", 10).is_err());
        assert!(root.read_small(b"file", 10).is_err());
        assert!(root.open_at(b"../x", OFlags::RDONLY).is_err());
    }

    #[test]
    fn reaches_paths_longer_than_the_kernel_takes() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path()).unwrap();
        let name = [b'n'; 200];
        let mut path = Vec::new();
        let mut at = root.folder.try_clone().unwrap();
        for _ in 0..45 {
            rustix::fs::mkdirat(&at, &name[..], Mode::RWXU).unwrap();
            at = open_in_one_piece(at.as_fd(), &name, OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
            path.extend_from_slice(&name);
            path.push(b'/');
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&at, c"deep", flags, Mode::RWXU).unwrap();
        path.extend_from_slice(b"deep");
        assert!(path.len() > 9000);
        assert_eq!(root.stat(&path).unwrap().kind, crate::Kind::File);
        assert_eq!(
            root.list(&path[..path.len() - 5], LocateFiles::No, &|| ()).unwrap().entries.len(),
            1
        );
        assert_eq!(root.read_small(&path, 10).unwrap(), Some(vec![]));
    }
}
