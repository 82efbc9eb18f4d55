//! Whether another process is at work on the same record. A lock file of its
//! own, because SQLite's locks guard single transactions and not a whole run,
//! and because closing a second descriptor of the database file would drop
//! them (POSIX advisory locks).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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

/// What a lock file begins with: nothing else is ever overwritten.
const MARK: &str = "process ";

/// Tries to lock the file at `path`, which is made where it does not exist
/// and stays behind afterwards.
///
/// A tree may come from anybody: the file is not opened through a link, and
/// one that is not ours is refused with `InvalidData`.
pub fn attempt(path: &Path) -> io::Result<Attempt> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let (locked, meta) = (file.try_lock(), file.metadata()?);
    if !meta.is_file() || meta.nlink() > 1 || !is_ours(&mut file)? {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is no lock file of fsure", path.display()),
        ));
    }
    match locked {
        // Somebody took the file away before it was locked.
        Ok(()) if std::fs::symlink_metadata(path).map(|now| now.ino()).ok() != Some(meta.ino()) => {
            Ok(Attempt::HeldBy("one that is just ending".to_owned()))
        }
        Ok(()) => {
            // Who holds it is a courtesy; a full disk must not refuse the lock.
            let _ = file.set_len(0);
            let _ = file.rewind().and_then(|()| write!(file, "{MARK}{}", std::process::id()));
            Ok(Attempt::Locked(Lock { _file: file }))
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.rewind()?;
            file.take(100).read_to_string(&mut holder)?;
            Ok(Attempt::HeldBy(holder))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn is_ours(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(MARK.as_bytes().starts_with(&start))
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

    #[test]
    fn nobody_else_s_file_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let hard = folder.path().join("hard");
        std::fs::hard_link(&victim, &hard).unwrap();
        for path in [&victim, &link, &hard] {
            assert!(attempt(path).is_err(), "{}", path.display());
            assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        }
    }
}
