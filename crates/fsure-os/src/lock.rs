//! Locks a record against other processes. The lock file is a file of its own,
//! because SQLite's locks guard single transactions and not a whole run, and
//! because closing a second descriptor of the database file would drop them
//! (POSIX advisory locks).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::host::lock::{stat, stat_path, without_following};
use crate::tree_copy::Side;
use crate::{Kind, Stat};

/// A lock that is held until it is dropped, or the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Unlocks explicitly: a process that another thread is just starting has a copy
    /// of the descriptor until its `exec`. Closing only the one here would leave the
    /// file locked that long.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The answer to an attempt to lock.
#[derive(Debug)]
pub enum Attempt {
    /// This process has locked it.
    Locked(Lock),
    /// Another process holds it; the text that it wrote about itself.
    HeldBy(String),
}

/// The text that a lock file begins with: nothing else is ever overwritten.
const MARK: &str = "process ";
/// The greatest length of a lock file, in bytes: the number of a process has ten digits.
const LONGEST: usize = MARK.len() + 10;

/// Tries to lock the file at `path`, which is made where it does not exist
/// and stays behind afterwards.
///
/// A tree can come from any user: the file is not opened through a link, and
/// one that is not a lock file of fsure is refused with `InvalidData`.
pub fn try_lock(path: &Path) -> io::Result<Attempt> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = without_following(&mut options).open(path)?;
    take(file, path, &|| stat_path(path).map(|there| there.inode).ok())
}

/// Does the same as [`try_lock`] for a path in a folder: no part of it is a link,
/// whichever process changes it meanwhile.
pub fn attempt_in(side: &Side, path: &str) -> io::Result<Attempt> {
    let file = side.open_or_create(path.as_bytes())?;
    take(file, Path::new(path), &|| side.facts(path.as_bytes()).map(|there| there.inode).ok())
}

/// Returns what the process says about itself that holds the lock; `None` if none does, or
/// if there is no lock file. Nothing is written, and the lock is not kept.
pub fn holder(path: &Path) -> io::Result<Option<String>> {
    let mut file = match without_following(OpenOptions::new().read(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let locked = file.try_lock_shared();
    let (_, start) = look(&mut file, path, &locked)?;
    match locked {
        Ok(()) => file.unlock().map(|()| None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder_of(start))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the facts of a file and its text; fails if it is not a lock file of fsure.
fn look(
    file: &mut File,
    path: &Path,
    locked: &Result<(), TryLockError>,
) -> io::Result<(Stat, String)> {
    let now = stat(file)?;
    let is_held = matches!(locked, Err(TryLockError::WouldBlock));
    let start = match start_of(file) {
        // Windows lets no other process read what is locked.
        Err(_) if is_held && cfg!(windows) => String::new(),
        other => other?,
    };
    if now.kind != Kind::File || now.links > 1 || !is_lock_file(&start) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is not a lock file of fsure", path.display()),
        ));
    }
    Ok((now, start))
}

fn holder_of(start: String) -> String {
    if start.is_empty() { "an unknown process".to_owned() } else { start }
}

fn take(mut file: File, path: &Path, inode: &dyn Fn() -> Option<u64>) -> io::Result<Attempt> {
    let locked = file.try_lock();
    let (now, start) = look(&mut file, path, &locked)?;
    match locked {
        // Another process took the file away before it was locked.
        Ok(()) if inode() != Some(now.inode) => {
            Ok(Attempt::HeldBy("a process that is ending".to_owned()))
        }
        Ok(()) => {
            // The holder's number is a courtesy; a full disk must not refuse the lock.
            let _ = file.set_len(0);
            let _ = file.rewind().and_then(|()| write!(file, "{MARK}{}", std::process::id()));
            Ok(Attempt::Locked(Lock { file }))
        }
        Err(TryLockError::WouldBlock) => Ok(Attempt::HeldBy(holder_of(start))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the text of a lock file, or the first hundred bytes of a file that is not one.
fn start_of(file: &mut File) -> io::Result<String> {
    let mut start = Vec::new();
    file.take(100).read_to_end(&mut start)?;
    Ok(String::from_utf8_lossy(&start).into_owned())
}

/// Returns true if a file is a lock file, or is going to be one. A power cut may
/// leave one that has its length and no content yet: a few zeros.
fn is_lock_file(start: &str) -> bool {
    let is_blank = start.len() <= LONGEST && start.bytes().all(|byte| byte == 0);
    start.starts_with(MARK) || MARK.starts_with(start) || is_blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Attempt::Locked(lock) = try_lock(&path).unwrap() else { panic!("not locked") };
        let Attempt::HeldBy(holder) = try_lock(&path).unwrap() else { panic!("locked twice") };
        if !cfg!(windows) {
            assert_eq!(holder, format!("process {}", std::process::id()));
        }
        drop(lock);
        assert!(matches!(try_lock(&path).unwrap(), Attempt::Locked(_)));
    }

    #[test]
    fn its_holder_is_named_without_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(holder(&path).unwrap(), None);
        assert!(!path.exists(), "a lock file was made");
        let Attempt::Locked(lock) = try_lock(&path).unwrap() else { panic!("not locked") };
        assert!(holder(&path).unwrap().is_some());
        drop(lock);
        std::fs::write(&path, "process 1").unwrap();
        assert_eq!(holder(&path).unwrap(), None);
        assert_eq!(std::fs::read(&path).unwrap(), b"process 1");
        std::fs::write(&path, "precious").unwrap();
        assert!(holder(&path).is_err(), "a file of another program");
    }

    #[test]
    fn it_is_free_at_once_even_if_a_child_has_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Attempt::Locked(lock) = try_lock(&path).unwrap() else { panic!("not locked") };
        let _copy = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(matches!(try_lock(&path).unwrap(), Attempt::Locked(_)));
    }

    #[test]
    fn one_that_a_cut_left_blank_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, [0; 13]).unwrap();
        assert!(matches!(try_lock(&path).unwrap(), Attempt::Locked(_)));
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(try_lock(&path).is_err(), "a file of somebody's");
    }

    #[cfg(unix)]
    #[test]
    fn no_other_file_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let hard = folder.path().join("hard");
        std::fs::hard_link(&victim, &hard).unwrap();
        for path in [&victim, &link, &hard] {
            assert!(try_lock(path).is_err(), "{}", path.display());
            assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        }
    }
}
