//! From what the kernel knows of a folder to its path.
//!
//! The kernel tells the names from the folder up to the root of its file
//! system, at first sight. Where that root is, the mount table says. A name may
//! be another's by the time it is reported; so a path counts only where it
//! leads, now, to a folder of this number in this file system.

use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::super::mountinfo::{self, MountInfo};
use crate::io_trace::TracedFolder;

/// A folder, as the kernel reports it: `struct folder` of `hot.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Address of the inode in the kernel's memory.
    inode: u64,
    ino: u64,
    dev: u64,
}

impl Key {
    /// A key of these numbers, in the order in which the kernel reports them.
    pub(super) fn new(inode: u64, ino: u64, dev: u64) -> Self {
        Self { inode, ino, dev }
    }

    /// Returns false for the key of no file.
    pub(super) fn is_some_file(&self) -> bool {
        self.ino != 0 || self.dev != 0
    }

    /// Its number in its file system.
    pub(super) fn ino(&self) -> u64 {
        self.ino
    }

    /// Major and minor number; the kernel's own way to write them is 12 bits, and
    /// 20.
    pub(super) fn device(&self) -> (u32, u32) {
        ((self.dev >> 20) as u32, (self.dev & 0xf_ffff) as u32)
    }
}

/// Its path from the root of its file system; `None` where that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedName(Option<PathBuf>);

impl ResolvedName {
    /// Returns true if the whole path was reported.
    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Reads `struct name`.
    pub(super) fn parse(record: &[u8]) -> Option<(Key, Self)> {
        let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let key = Key { inode: word(0)?, ino: word(8)?, dev: word(16)? };
        let (length, is_whole) = (half(24)? as usize, half(28)? != 0);
        let names = record.get(32..32 + length)?;
        let mut path = vec![];
        let names: Vec<_> =
            names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        Some((key, Self(is_whole.then_some(path))))
    }
}

/// Knows what is mounted where.
pub(super) struct Namer(Vec<MountInfo>);

impl Namer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(mountinfo::all()?))
    }

    /// Returns true if a folder was in or below one of `folders` when it was first seen,
    /// whatever happened to it later; also if `folders` is empty.
    pub(super) fn was_below(
        &self,
        key: &Key,
        name: Option<&ResolvedName>,
        folders: &[PathBuf],
    ) -> bool {
        let path = name.and_then(|name| name.0.as_deref());
        let mut paths = path.into_iter().flat_map(|path| self.paths(key.device(), path));
        folders.is_empty()
            || paths.any(|path| folders.iter().any(|folder| path.starts_with(folder)))
    }

    /// Returns the current place of a folder. If several paths lead to it, as with a bind
    /// mount, one that is below one of `folders` is preferred: those were requested.
    pub(super) fn place(
        &self,
        key: &Key,
        name: Option<&ResolvedName>,
        folders: &[PathBuf],
    ) -> TracedFolder {
        let device = key.device();
        let path = name.and_then(|name| name.0.as_deref());
        let found = path.and_then(|path| self.find(device, key.ino, path, folders));
        found.map_or(TracedFolder::Unseen { device, ino: key.ino }, TracedFolder::At)
    }

    /// Returns the path that a file had when it was first seen, and whether it leads there
    /// now; no path if its file system is not mounted here.
    pub(super) fn file(&self, key: &Key, name: Option<&ResolvedName>) -> (Option<PathBuf>, bool) {
        let device = key.device();
        let Some(path) = name.and_then(|name| name.0.as_deref()) else { return (None, false) };
        let found = self.find(device, key.ino, path, &[]);
        let is_there = found.is_some();
        (found.or_else(|| self.paths(device, path).next()), is_there)
    }

    /// Returns the path that a folder had when it was first seen, below one of `folders` if
    /// there are any; `None` if it was not below them, or its file system is not mounted here.
    pub(super) fn path_when_seen(
        &self,
        key: &Key,
        name: Option<&ResolvedName>,
        folders: &[PathBuf],
    ) -> Option<PathBuf> {
        let path = name.and_then(|name| name.0.as_deref())?;
        let device = key.device();
        let found = self.find(device, key.ino, path, folders);
        let is_asked = |path: &PathBuf| {
            folders.is_empty() || folders.iter().any(|folder| path.starts_with(folder))
        };
        found.into_iter().chain(self.paths(device, path)).find(is_asked)
    }

    fn find(
        &self,
        device: (u32, u32),
        ino: u64,
        path: &Path,
        folders: &[PathBuf],
    ) -> Option<PathBuf> {
        let is_asked = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder));
        let (asked, others): (Vec<_>, Vec<_>) = self.paths(device, path).partition(is_asked);
        asked.into_iter().chain(others).find(|path| self.leads_to(path, device, ino))
    }

    /// Returns the paths at which a path of a file system is mounted. The last mount hides
    /// what was there before, so it comes first.
    fn paths(&self, device: (u32, u32), path: &Path) -> impl Iterator<Item = PathBuf> {
        let mounts = self.0.iter().rev().filter(move |mount| mount.device == device);
        mounts.filter_map(move |mount| {
            let below = path.strip_prefix(&mount.root).ok()?;
            let point = Path::new(&mount.point);
            Some(if below == Path::new("") { point.to_owned() } else { point.join(below) })
        })
    }

    fn leads_to(&self, path: &Path, device: (u32, u32), ino: u64) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let asked = StatxFlags::INO | StatxFlags::MNT_ID;
        let Ok(found) = rustix::fs::statx(CWD, path, flags, asked) else { return false };
        // Not by `stx_dev`: a btrfs tells another one in each subvolume.
        let mount = self.0.iter().find(|mount| mount.id == found.stx_mnt_id);
        found.stx_ino == ino && mount.is_some_and(|mount| mount.device == device)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn record(names: &[u8], is_whole: u32) -> Vec<u8> {
        let mut record = vec![];
        for word in [7_u64, 8, 9] {
            record.extend(word.to_ne_bytes());
        }
        record.extend((names.len() as u32).to_ne_bytes());
        record.extend(is_whole.to_ne_bytes());
        record.extend(names);
        record.resize(32 + 4096, b'x');
        record
    }

    #[test]
    fn names_come_from_the_folder_up() {
        let key = Key { inode: 7, ino: 8, dev: 9 };
        for (names, is_whole, path) in [
            (&b"b\xff\0a\0"[..], 1, Some(&b"/a/b\xff"[..])),
            (b"", 1, Some(b"/")),
            (b"b\0a\0", 0, None),
        ] {
            let path = path.map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
            assert_eq!(
                ResolvedName::parse(&record(names, is_whole)),
                Some((key, ResolvedName(path)))
            );
        }
        assert_eq!(ResolvedName::parse(&record(b"b\0a\0", 1)[..31]), None);
        assert_eq!(ResolvedName::parse(&record(b"b\0a\0", 1)[..33]), None, "longer than it is");
    }

    #[test]
    fn a_path_counts_only_while_it_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a");
        std::fs::create_dir(&path).unwrap();
        let namer = Namer::new().unwrap();
        let opened = std::fs::File::open(&path).unwrap();
        let mount = mountinfo::at(std::os::fd::AsFd::as_fd(&opened)).unwrap();
        let inside = path.strip_prefix(&mount.point).unwrap();
        let name = ResolvedName(Some(Path::new(&mount.root).join(inside)));
        let (major, minor) = mount.device;
        let dev = u64::from(major) << 20 | u64::from(minor);
        let key = Key { inode: 0, ino: opened.metadata().unwrap().ino(), dev };
        assert_eq!(namer.place(&key, Some(&name), &[]), TracedFolder::At(path.clone()));
        let unseen = TracedFolder::Unseen { device: mount.device, ino: key.ino };
        assert_eq!(namer.place(&key, None, &[]), unseen);
        // A bind mount that is newer leads there, too.
        let point = format!("/proc/self/root{}", mount.point);
        let other = Path::new(&point).join(inside);
        let mut both = Namer::new().unwrap();
        both.0.push(MountInfo { point, ..mount });
        assert_eq!(both.place(&key, Some(&name), &[]), TracedFolder::At(other));
        let asked = [path.parent().unwrap().to_owned()];
        assert_eq!(both.place(&key, Some(&name), &asked), TracedFolder::At(path.clone()));
        // Another one by its name, while the first is still open.
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(namer.place(&key, Some(&name), &[]), unseen);
        let below = |folder: &Path| namer.was_below(&key, Some(&name), &[folder.to_owned()]);
        assert!(below(&path) && below(path.parent().unwrap()) && !below(&path.join("b")));
        assert!(namer.was_below(&key, None, &[]) && !namer.was_below(&key, None, &[path]));
        let elsewhere = Key { dev: dev + 1, ..key };
        assert!(matches!(namer.place(&elsewhere, Some(&name), &[]), TracedFolder::Unseen { .. }));
    }
}
