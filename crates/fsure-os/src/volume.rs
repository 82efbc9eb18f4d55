//! Which file system this is, so that a record is never judged against
//! another disk that happens to be mounted at the same place.

use std::io;

use crate::folder::Root;

/// One file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its type as the system names it, in small letters: `ext4`, `apfs`,
    /// `ntfs`, `fuse.sshfs`; on Linux its magic number in hexadecimal where the
    /// mount table cannot be read.
    pub kind: String,
    /// Its UUID, 32 hexadecimal digits or what the disk's label says for
    /// file systems with shorter ones; on Windows the serial number.
    pub uuid: Option<String>,
    /// Granularity of modification times, nanoseconds.
    pub mtime_granularity_ns: i64,
    /// Whether an inode number means the same file after the next mount.
    pub has_stable_inodes: bool,
}

impl Volume {
    /// A file system of a kind, as far as its kind tells what it can do.
    pub(crate) fn new(kind: String, uuid: Option<String>) -> Self {
        Self {
            uuid,
            mtime_granularity_ns: granularity_ns(&kind),
            has_stable_inodes: has_stable_inodes(&kind),
            kind,
        }
    }

    /// A file system that does not tell what it is.
    pub fn unknown() -> Self {
        Self {
            kind: "unknown".to_owned(),
            uuid: None,
            mtime_granularity_ns: 1,
            has_stable_inodes: false,
        }
    }
}

/// The file system of a folder below a root.
pub fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    crate::host::volume::of(root, path)
}

/// The paths below a root at which something is mounted, as far as this process
/// sees: in no order, and none where the system does not say.
pub fn mount_points(root: &Root) -> Vec<Vec<u8>> {
    crate::host::volume::mount_points(root).unwrap_or_default()
}

/// Nanoseconds between two modification times that a file system can tell
/// apart. FAT: 2 s, exFAT: 10 ms, NTFS and SMB: 100 ns (Microsoft,
/// "File Times"); HFS+ and ext2/ext3 with 128-byte inodes: 1 s.
fn granularity_ns(kind: &str) -> i64 {
    match kind {
        "vfat" | "msdos" | "umsdos" | "fat" | "fat32" => 2_000_000_000,
        "ext2" | "ext3" | "hfs" | "hfsplus" | "isofs" | "minix" => 1_000_000_000,
        "exfat" => 10_000_000,
        "udf" => 1_000,
        "ntfs" | "ntfs3" | "refs" | "fuseblk" | "cifs" | "smb3" | "smbfs" => 100,
        _ => 1,
    }
}

/// FAT and exFAT have no inodes: systems number them anew at every mount, or
/// by where the entry lies. FUSE file systems may do so, too, but the usual ones
/// keep theirs.
fn has_stable_inodes(kind: &str) -> bool {
    !matches!(kind, "vfat" | "msdos" | "umsdos" | "fat" | "fat32" | "exfat" | "9p")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_same_answer_twice() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert_eq!(of(&root, b"").unwrap(), of(&root, b"sub").unwrap());
    }

    #[test]
    fn a_name_that_is_none_is_no_file_system() {
        let root = Root::open(Path::new(".")).unwrap();
        assert!(of(&root, b"no such folder").is_err());
    }
}
