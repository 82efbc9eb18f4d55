//! The names below a root. Everything is asked relative to the root's own
//! handle and never through a link, so that a tree that changes while it is
//! walked cannot lead outside it.

use std::io;

use crate::Stat;
pub use crate::host::root_dir::{
    Root, is_denied, is_gone, is_lost, is_other_kind, is_out_of_means,
};

/// Names one behind the other: a tree has millions, and an allocation for each
/// costs as much as asking the system what it stands for.
#[derive(Debug, Default)]
pub struct NameBuffer(pub(crate) Vec<u8>);

/// The position of one of the [`NameBuffer`]; by default that of an empty one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameAt {
    pub(crate) start: usize,
    /// Position of the NUL after it, which calls on Unix need.
    pub(crate) end: usize,
}

impl NameBuffer {
    /// The bytes of a name.
    pub fn get(&self, at: NameAt) -> &[u8] {
        &self.0[at.start..at.end]
    }

    /// Adds a name.
    pub fn push(&mut self, name: &[u8]) -> NameAt {
        let start = self.0.len();
        self.0.extend_from_slice(name);
        self.0.push(0);
        NameAt { start, end: start + name.len() }
    }
}

/// The names in one folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// The names of the entries.
    pub names: NameBuffer,
    /// Entries in no order, each with its stat or the error of reading that.
    /// Names that vanished in between are not listed.
    pub entries: Vec<(NameAt, io::Result<Stat>)>,
    /// The error that ended the listing early, if one did.
    pub error: Option<io::Error>,
}

/// The content of a small file, read piece by piece: at most `max` bytes.
pub(crate) fn read_all(
    max: usize,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut content = vec![0; max + 1];
    let mut filled = 0;
    while filled < content.len() {
        match read(&mut content[filled..], filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    if filled > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {max} bytes"),
        ));
    }
    content.truncate(filled);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_listing_are_all_of_it() {
        let tree = tempfile::tempdir().unwrap();
        let mut all: Vec<_> = (0..25).map(|n| format!("name {n}").into_bytes()).collect();
        for name in &all {
            std::fs::write(tree.path().join(std::str::from_utf8(name).unwrap()), name).unwrap();
        }
        all.sort();
        let root = Root::open(tree.path()).unwrap();
        for part_names in [1, 7, 25, usize::MAX] {
            let mut found = Vec::new();
            let mut take = |part: Listing| {
                assert!(part.entries.len() <= part_names);
                for (at, stat) in part.entries {
                    let name = part.names.get(at);
                    assert_eq!(stat.unwrap().size, name.len() as u64);
                    found.push(name.to_vec());
                }
                true
            };
            root.list_in_parts(b"", part_names, &mut take).unwrap();
            found.sort();
            assert_eq!(found, all, "in parts of {part_names}");
        }
        let mut parts = 0;
        let mut take = |_| {
            parts += 1;
            parts < 2
        };
        root.list_in_parts(b"", 3, &mut take).unwrap();
        assert_eq!(parts, 2);
        assert!(root.list_in_parts(b"none", 3, &mut |_| true).is_err());
    }

    #[test]
    fn a_root_with_only_fsure_files_in_it() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path()).unwrap();
        let has_others = || root.has_names_besides(&|name| name == b"own").unwrap();
        assert!(!has_others());
        std::fs::write(tree.path().join("own"), "").unwrap();
        assert!(!has_others());
        std::fs::write(tree.path().join("other"), "").unwrap();
        assert!(has_others());
    }
}
