//! A folder of files to record and then to damage, dates under control.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Names on which other programs fail; good for one folder: NFC beside NFD,
/// `a` beside `*`.
pub const AWKWARD: [&[u8]; 22] = [
    b"new\nline",
    b"ends in CR\r",
    b"back\\slash",
    b"lit\\nlit",
    b"trailing space ",
    b"lit%0Alit",
    b"control\x01char",
    b"bad\xff\xfe",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b"com,ma",
    b"*star",
    b" leading space",
    b"#hash",
    b") = ",
    b"tab\there",
    b"two  spaces",
    b"-dash",
    b"per%cent",
    b"\x1b[31mred\x1b[0m",
    b"quote'\"`$(x)",
    b"\xe2\x80\xaertl\xc2\x85\x7f",
];

/// A temporary folder, removed at the end.
#[derive(Debug)]
pub struct Tree {
    folder: TempDir,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A new empty folder.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("make a temporary folder") }
    }

    /// A new empty folder below `parent`, for example on a mounted image.
    pub fn new_in(parent: impl AsRef<Path>) -> Self {
        Self { folder: tempfile::tempdir_in(parent).expect("make a temporary folder") }
    }

    /// Returns its path.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the full name of a path in it.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make folders");
        std::fs::write(&path, bytes).expect("write a file");
        path
    }

    /// Reads a file.
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.path(path)).expect("read a file")
    }

    /// Modification time in nanoseconds since 1970.
    pub fn mtime(&self, path: impl AsRef<Path>) -> i64 {
        mtime_ns(&self.path(path))
    }

    /// Sets the modification time, in nanoseconds since 1970.
    pub fn set_mtime(&self, path: impl AsRef<Path>, time_ns: i64) {
        set_mtime_ns(&self.path(path), time_ns);
    }

    /// Sets the modification time one hour back. Meant for the time *before*
    /// recording, so that a later write is surely newer.
    pub fn age(&self, path: impl AsRef<Path>) {
        let path = self.path(path);
        set_mtime_ns(&path, mtime_ns(&path) - HOUR_NS);
    }

    /// Flips one byte through the file system and puts the modification time
    /// back. The change time moves: that is what `altered` is about.
    pub fn flip(&self, path: impl AsRef<Path>, offset: u64) {
        let path = self.path(path);
        let before = mtime_ns(&path);
        let mut file = OpenOptions::new().read(true).write(true).open(&path).expect("open a file");
        flip_byte(&mut file, offset);
        drop(file);
        set_mtime_ns(&path, before);
    }
}

/// Inverts the byte at `offset`, which must lie inside the file.
pub fn flip_byte(file: &mut File, offset: u64) {
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset)).expect("seek");
    file.read_exact(&mut byte).expect("a byte to flip inside the file");
    file.seek(SeekFrom::Start(offset)).expect("seek");
    file.write_all(&[!byte[0]]).expect("write the flipped byte");
}

/// Modification time in nanoseconds since 1970.
pub fn mtime_ns(path: &Path) -> i64 {
    let time = std::fs::symlink_metadata(path).expect("stat").modified().expect("a date");
    let ns = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()),
        Err(before) => i128::try_from(before.duration().as_nanos()).map(|ns| -ns),
    };
    i64::try_from(ns.expect("a date")).expect("a date between 1677 and 2262")
}

/// Sets the modification time of a file or folder, in nanoseconds since 1970.
pub fn set_mtime_ns(path: &Path, time_ns: i64) {
    // Opened for reading: folders and read-only files have dates as well.
    let file = File::open(path).expect("open to set the date");
    file.set_times(FileTimes::new().set_modified(from_ns(time_ns))).expect("set the date");
}

fn from_ns(time_ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(time_ns.unsigned_abs());
    if time_ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
