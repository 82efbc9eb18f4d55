//! Finds the storage that a file system is on, because that decides how many
//! readers may work at once: one on a disk with heads, several on a disk without,
//! many if every response comes over a network. File systems that share a disk
//! share its queue.
//!
//! The kernel's report that a disk has heads is not reliable: virtual disks and
//! RAID controllers report heads on storage without any. So it is measured.

use std::sync::Arc;

use crate::host;
use crate::root_dir::Root;

/// The class of a storage, which decides how it is best read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceClass {
    /// Without moving parts, or not known to have any.
    Solid,
    /// With heads that move, on so many disks.
    Rotational(usize),
    /// Behind a network or a program: waiting is what takes the time, and what is
    /// read past the local page cache may come from that of the server.
    Remote,
}

/// The storage under a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDevice {
    /// The disks it is on, by device number; its own number where they are not
    /// known. Sorted.
    pub(crate) disks: Vec<u64>,
    /// Number of these disks that report heads.
    pub(crate) heads: usize,
    /// True if a server or a program serves it.
    pub(crate) is_remote: bool,
}

impl StorageDevice {
    /// One of which nothing is known.
    pub fn unknown() -> Self {
        Self { disks: Vec::new(), heads: 0, is_remote: true }
    }

    /// The storage under a folder below a root.
    pub fn of(root: &Root, path: &[u8]) -> Self {
        host::device::of(root, path)
    }

    /// Returns the class of the storage. Storage that reports heads is timed with
    /// files at and below `path`: 1 ms if it has none, a fifth of a second if it
    /// has.
    pub fn class(&self, root: &Arc<Root>, path: &[u8]) -> DeviceClass {
        match self.heads {
            // Some programs have a local disk behind them.
            0 if self.is_remote => DeviceClass::Remote,
            heads if heads > 0 && host::device::is_slow(root, path) => {
                DeviceClass::Rotational(heads)
            }
            _ => DeviceClass::Solid,
        }
    }

    /// Returns true if what is read past the local page cache may come from
    /// another one; true as well for storage of which nothing is known.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns true if both are on a common disk, so that reading one slows down
    /// reading the other.
    pub fn shares_a_disk_with(&self, other: &Self) -> bool {
        self.disks.iter().any(|disk| other.disks.binary_search(disk).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn two_folders_of_one_disk_share_it() {
        let one = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let root = Root::open(one.path()).unwrap();
        let device = StorageDevice::of(&root, b"");
        assert!(!device.disks.is_empty());
        assert!(device.shares_a_disk_with(&StorageDevice::of(
            &Root::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap(),
            b"src"
        )));
    }
}
