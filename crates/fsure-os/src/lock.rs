//! Whether another process is at work on the same record. A lock file of its
//! own, because SQLite's locks guard single transactions and not a whole run,
//! and because closing a second descriptor of the database file would drop
//! them (POSIX advisory locks).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A lock that is held until it is dropped, or the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The answer to an attempt to lock.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Locked(Lock),
    /// Another process holds it; what it wrote about itself.
    HeldBy(String),
}

/// Tries to lock the file at `path`, which is made where it does not exist
/// and stays behind afterwards.
pub fn attempt(path: &Path) -> io::Result<Attempt> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {
            // Who holds it is a courtesy; a full disk must not refuse the lock.
            let _ = file.set_len(0);
            let _ = file.rewind().and_then(|()| write!(file, "process {}", std::process::id()));
            Ok(Attempt::Locked(Lock { _file: file }))
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.take(100).read_to_string(&mut holder)?;
            Ok(Attempt::HeldBy(holder))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Attempt::Locked(lock) = attempt(&path).unwrap() else { panic!("not locked") };
        let Attempt::HeldBy(holder) = attempt(&path).unwrap() else { panic!("locked twice") };
        assert_eq!(holder, format!("process {}", std::process::id()));
        drop(lock);
        assert!(matches!(attempt(&path).unwrap(), Attempt::Locked(_)));
    }
}
