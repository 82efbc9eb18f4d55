//! A folder of which another one is kept a copy: everything that a copy has to
//! see and to make, with owners, dates, attributes, holes and hard links.
//!
//! A side is held by its descriptor and nothing below it is reached through a
//! link: a RAM folder belongs to its users, who may put a link in the place of a
//! folder at any moment, and the process that copies is root. The descriptor also leads
//! to what is covered by a mount, and to a mount that no other process can see yet.
//!
//! Linux only; elsewhere [`Side::open`] fails with `Unsupported`.

pub use std::fs::File;
use std::io;
use std::ops::Range;

use crate::file_attributes::Ownership;
pub use crate::host::tree_copy::Side;

/// The type of the inode that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket: only a name, whether or not a process listens on it.
    Socket,
    /// A device, by characters or by blocks, and its number.
    Device {
        /// By blocks.
        block: bool,
        /// As the system counts it (`st_rdev`).
        number: u64,
    },
}

/// The fields of a stat that a copy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyStat {
    /// Type of the inode.
    pub kind: NodeKind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Change time, likewise.
    pub ctime_ns: i64,
    /// Inode number.
    pub inode: u64,
    /// Number of the file system, as `st_dev`.
    pub device: u64,
    /// Number of hard links.
    pub links: u64,
    /// Mode, owner and group.
    pub ownership: Ownership,
}

/// Extended attributes with access lists, in the order of their names.
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the range of the next bytes at or after `at` that are not in a hole;
/// `None` if only holes are left.
pub fn data_from(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    crate::host::tree_copy::data_from(file, at)
}

/// The change time of an open file, nanoseconds since 1970.
pub fn changed_ns(file: &File) -> io::Result<i64> {
    crate::host::tree_copy::changed_ns(file)
}

/// Takes a file out of the page cache, as far as it was written: what is read next
/// comes from the medium.
pub fn drop_cached(file: &File) -> io::Result<()> {
    crate::host::tree_copy::drop_cached(file)
}

/// Reads until `target` is full or the file ends, and returns the number of bytes read.
pub fn read_at(file: &File, target: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < target.len() {
        match crate::host::tree_copy::read_once(file, &mut target[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes all of it there.
pub fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    crate::host::tree_copy::write_at(file, bytes, at)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::{FileExt as _, symlink};

    use super::*;

    #[test]
    fn holes_are_distinguished_from_data() {
        let folder = tempfile::tempdir().unwrap();
        let side = Side::open(folder.path()).unwrap();
        let file = side.create(b"sparse").unwrap();
        file.write_all_at(&[1; 4096], 1 << 20).unwrap();
        file.set_len(4 << 20).unwrap();
        let first = data_from(&file, 0).unwrap().unwrap();
        assert!(first.start <= 1 << 20 && first.end >= (1 << 20) + 4096, "{first:?}");
        assert_eq!(data_from(&file, first.end).unwrap(), None);
    }

    #[test]
    fn no_link_leads_out_and_none_is_written_through() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        symlink(outside.path(), folder.path().join("way")).unwrap();
        let side = Side::open(folder.path()).unwrap();
        assert!(side.read(b"way/secret").is_err());
        assert!(side.read(b"way").is_err());
        assert!(side.create(b"way/new").is_err());
        assert!(side.list(b"way").is_err());
        assert!(side.remove(b"way/secret", false).is_err());
        let ownership = Ownership { mode: 0o600, user: 0, group: 0 };
        assert!(side.set(b"way/secret", NodeKind::File, ownership, Some(0), &Vec::new()).is_err());
        assert!(outside.path().join("secret").exists());
        assert_eq!(side.facts(b"way").unwrap().kind, NodeKind::Link);
    }

    #[test]
    fn what_is_made_is_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let side = Side::open(folder.path()).unwrap();
        side.make(b"d", NodeKind::Folder, b"").unwrap();
        side.make(b"d/l", NodeKind::Link, b"some/where").unwrap();
        side.make(b"d/p", NodeKind::Fifo, b"").unwrap();
        side.create(b"d/f").unwrap();
        side.link(b"d/f", b"d/g").unwrap();
        let kinds: Vec<_> = side
            .list(b"d")
            .unwrap()
            .into_iter()
            .map(|(name, facts)| (String::from_utf8(name).unwrap(), facts.kind, facts.links))
            .collect();
        let expected = [
            ("f".to_owned(), NodeKind::File, 2),
            ("g".to_owned(), NodeKind::File, 2),
            ("l".to_owned(), NodeKind::Link, 1),
            ("p".to_owned(), NodeKind::Fifo, 1),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(side.target(b"d/l").unwrap(), b"some/where");
        let facts = side.facts(b"d/f").unwrap();
        let ownership = Ownership { mode: 0o751, ..facts.ownership };
        side.set(b"d/f", NodeKind::File, ownership, Some(1_234_567_890), &Vec::new()).unwrap();
        let facts = side.facts(b"d/f").unwrap();
        assert_eq!((facts.ownership.mode, facts.mtime_ns), (0o751, 1_234_567_890));
        assert!(side.remove(b"d", true).is_err(), "not empty");
        side.remove(b"d/p", false).unwrap();
    }
}
