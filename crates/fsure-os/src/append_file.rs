//! Files that only grow, each piece durable when asked for: what a power cut
//! leaves of such a file is its beginning.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::Path;

use crate::host::lock::without_following;

use crate::durable_write::Names;

/// Returns a reader of the current content of such a file, without anything that
/// another process appends meanwhile: of a piece that is there in part, the rest
/// does not follow later.
pub fn read(path: &Path) -> io::Result<impl Read + use<>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok(file.take(length))
}

/// A file that only grows.
#[derive(Debug)]
pub struct AppendFile(File);

impl AppendFile {
    /// Opens a regular file that fsure itself keeps, to append to it: no link is followed,
    /// and no FIFO waited for. One that is not there yet is made.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        Self::open_own_with(path, OpenOptions::new())
    }

    /// The same; one that is made can be read by its owner only.
    pub fn open_private(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        crate::host::output::owner_only(&mut options);
        Self::open_own_with(path, options)
    }

    fn open_own_with(path: &Path, mut options: OpenOptions) -> io::Result<Self> {
        options.read(true).append(true).create(true);
        crate::user_file::regular(without_following(&mut options).open(path)?).map(Self)
    }

    /// Its length in bytes.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// The bytes that end at `end`, at most as many as fit.
    pub fn bytes_before(&mut self, end: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = end.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0.seek(io::SeekFrom::Start(start))?;
        self.0.read_exact(bytes)
    }

    /// Opens it. One that is not there yet is made. Its name is durable when this
    /// returns, also where it was made by a run that was killed before it was.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match Names::open(folder.unwrap_or(Path::new("."))).and_then(|names| names.flush()) {
            // Windows has no such call.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            other => other?,
        }
        Ok(Self(file))
    }

    /// Appends to another file what is between two places of this one.
    pub fn copy_from(&mut self, start: u64, end: u64, to: &mut Self) -> io::Result<()> {
        self.0.seek(io::SeekFrom::Start(start))?;
        let wanted = end.saturating_sub(start);
        match io::copy(&mut (&mut self.0).take(wanted), &mut to.0)? {
            copied if copied == wanted => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Rewinds the file and returns a reader of its whole content.
    pub fn content(&mut self) -> io::Result<impl Read + '_> {
        self.0.rewind()?;
        Ok(&mut self.0)
    }

    /// Cuts off what was found not to be whole.
    pub fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    /// Appends; durable after [`AppendFile::sync`].
    pub fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    /// The same file, to be synced while another thread appends.
    pub fn second(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Waits until all that was appended before is on the medium.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_in_the_working_folder() {
        // Of this crate. Nothing is appended.
        drop(AppendFile::open(Path::new("Cargo.toml")).unwrap());
    }

    #[test]
    fn it_grows_over_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = AppendFile::open(&path).unwrap();
        log.append(b"one two").unwrap();
        log.second().unwrap().sync().unwrap();
        let mut log = AppendFile::open(&path).unwrap();
        let mut text = String::new();
        log.content().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        log.shorten(4).unwrap();
        log.append(b"three").unwrap();
        let mut before = read(&path).unwrap();
        log.append(b" four").unwrap();
        text.clear();
        before.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one three");
    }
}
