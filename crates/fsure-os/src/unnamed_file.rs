//! Files without a name, for what is too much for memory. One has a name only while it is
//! created: a process that is killed then leaves an empty file behind. Afterwards it is
//! gone with the last process that holds it, however that ends. The name is for its owner
//! alone on Unix. Linux lets processes of the same user, and root, open it later, too, by
//! `/proc/PID/fd`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::scratch_dir::random;

/// The folder for such files where the user names no other: `TMPDIR`, or one that is
/// rarely in memory, as `/tmp` itself may be.
pub fn folder() -> PathBuf {
    const LASTING: &str = "/var/tmp";
    let is_named = std::env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    if !is_named && crate::path::is_folder(Path::new(LASTING)) {
        return PathBuf::from(LASTING);
    }
    std::env::temp_dir()
}

/// A file that only grows. Its content is read while it does.
#[derive(Clone, Debug)]
pub struct UnnamedFile(Arc<Mutex<File>>);

impl UnnamedFile {
    /// An empty one, in a folder of a file system that has space for it.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".fsure-{}-{:016x}", std::process::id(), random()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Appends. Where this fails, a part may be there.
    pub fn append(&self, data: &[u8]) -> io::Result<()> {
        let mut file = self.lock();
        file.seek(SeekFrom::End(0))?;
        file.write_all(data)
    }

    /// Gives back the space that it takes: what was there is gone.
    pub fn clear(&self) -> io::Result<()> {
        self.lock().set_len(0)
    }

    /// Its first so many bytes, from the beginning.
    pub fn content(&self, length: u64) -> UnnamedContent {
        UnnamedContent { spill: self.clone(), at: 0, length }
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first bytes of such a file, as they are read.
#[derive(Clone, Debug)]
pub struct UnnamedContent {
    spill: UnnamedFile,
    at: u64,
    length: u64,
}

impl Read for UnnamedContent {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = left.min(target.len());
        let mut file = self.spill.lock();
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(&mut target[..wanted])?;
        if read == 0 && wanted > 0 {
            // It was cleared.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for UnnamedContent {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_while_more_is() {
        let folder = tempfile::tempdir().unwrap();
        let spill = UnnamedFile::create(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has a name");
        spill.append(b"one two").unwrap();
        let mut content = spill.content(7);
        let mut word = [0; 3];
        content.read_exact(&mut word).unwrap();
        spill.append(b" three").unwrap();
        assert_eq!(&word, b"one");
        content.seek(SeekFrom::Current(1)).unwrap();
        let mut rest = String::new();
        content.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "two", "and no more than was asked for");
        rest.clear();
        spill.content(13).read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "one two three");
        spill.clear().unwrap();
        spill.append(b"anew").unwrap();
        let error = spill.content(13).read_to_string(&mut rest).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "what is gone is no end");
    }
}
