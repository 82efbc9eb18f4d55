//! Writes that move no date: stores through a shared memory map. A page that a
//! program has written to is dirty, and takes further stores without a word to
//! the file system, until the system writes it back and protects it again.

use crate::host::mapped_write as host;
use crate::root_dir::Root;

/// The time after the last change of a file in which a store through a map can still
/// change it without a new change time, nanoseconds; `i64::MAX` where the system
/// never writes pages of this kind of file system back.
///
/// Linux writes back what has been dirty for `dirty_expire_centisecs`, looking
/// every `dirty_writeback_centisecs` (30 s and 5 s by default); twice that leaves
/// space for a disk that does not keep up.
pub fn unseen_write_max_ns(file_system_kind: &str) -> i64 {
    match file_system_kind {
        "tmpfs" | "ramfs" | "rootfs" | "devtmpfs" | "hugetlbfs" => i64::MAX,
        _ => host::write_back_max_ns().max(WRITE_BACK_USUAL_NS),
    }
}

/// Twice the defaults of Linux, nanoseconds.
const WRITE_BACK_USUAL_NS: i64 = 70_000_000_000;

/// Tells whether any process has a file open for writing, or mapped so; `None` where
/// the system does not say: to another user than the owner of the file, and on
/// network file systems.
pub fn is_open_for_writing(root: &Root, path: &[u8]) -> Option<bool> {
    host::is_open_for_writing(root, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_never_writes_back() {
        assert_eq!(unseen_write_max_ns("tmpfs"), i64::MAX);
        assert!(unseen_write_max_ns("ext4") >= WRITE_BACK_USUAL_NS);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_writer_is_seen_while_it_has_the_file_open() {
        use std::io::Write as _;
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path()).unwrap();
        std::fs::write(tree.path().join("file"), "x").unwrap();
        assert_eq!(is_open_for_writing(&root, b"file"), Some(false));
        let reader = std::fs::File::open(tree.path().join("file")).unwrap();
        assert_eq!(is_open_for_writing(&root, b"file"), Some(false), "a reader is none");
        let options = std::fs::OpenOptions::new().append(true).open(tree.path().join("file"));
        let mut writer = options.unwrap();
        assert_eq!(is_open_for_writing(&root, b"file"), Some(true));
        writer.write_all(b"y").unwrap();
        drop(writer);
        assert_eq!(is_open_for_writing(&root, b"file"), Some(false));
        assert_eq!(is_open_for_writing(&root, b"none"), None);
        drop(reader);
    }
}
