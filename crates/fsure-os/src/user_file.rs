//! Plain files that the user names outside any tree: lists to be read, and
//! lists to be written so that no process ever finds half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::host::lock::{without_following, without_waiting};
use crate::path::FileKind;
use crate::scratch_dir::random;

/// Opens a file to be read from its beginning.
pub fn open(path: &Path) -> io::Result<impl Read + use<>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(file)
}

/// Opens a regular file whose name the user did not choose, to be read from its beginning.
/// A link is followed. A FIFO is not waited for: what is not a regular file is refused,
/// with its kind.
pub fn open_regular(path: &Path) -> io::Result<impl Read + use<>> {
    let mut options = OpenOptions::new();
    regular(without_waiting(options.read(true)).open(path)?)
}

/// The same for a file that fsure itself has made, where no link is followed.
pub fn open_own(path: &Path) -> io::Result<impl Read + Seek + use<>> {
    // For the message; what counts is what was opened.
    if let Some(kind) = crate::path::kind(path)?.filter(|kind| *kind != FileKind::File) {
        return Err(irregular(kind));
    }
    let mut options = OpenOptions::new();
    regular(without_following(options.read(true)).open(path)?)
}

/// Passes an open file on if it is a regular one.
pub(crate) fn regular(file: File) -> io::Result<File> {
    match FileKind::of(file.metadata()?.file_type()) {
        FileKind::File => Ok(file),
        kind => Err(irregular(kind)),
    }
}

fn irregular(kind: FileKind) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, and not a regular file"))
}

/// Makes a file that must not be there yet. Each write is with the system when
/// it returns.
pub fn create_new(path: &Path) -> io::Result<impl Write + Send + use<>> {
    File::create_new(path)
}

/// Makes a file of `size` bytes, which must not be there yet, that holds these
/// pieces at their places and nothing else: the rest is a hole, where the file
/// system has such.
pub fn sparse<'a>(
    path: &Path,
    size: u64,
    pieces: impl Iterator<Item = (u64, &'a [u8])>,
) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let fill = || {
        file.set_len(size)?;
        for (offset, piece) in pieces {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(piece)?;
        }
        file.sync_all()
    };
    // Half a file has the length of a whole one.
    fill().inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// The names in a folder, in the order of their bytes.
pub fn names(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = |name| crate::path::bytes(Path::new(&name)).into_owned();
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(bytes(entry?.file_name())));
    let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Returns the first entry of a folder that is not a regular file, and its kind. Returns
/// `None` also if there is no such folder.
pub fn irregular_entry(folder: &Path) -> io::Result<Option<(PathBuf, FileKind)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        let kind = FileKind::of(entry.file_type()?);
        if kind != FileKind::File {
            return Ok(Some((entry.path(), kind)));
        }
    }
    Ok(None)
}

/// Returns true if a name stands for a folder itself, not for a link to one, and
/// the folder belongs to the current user; on a file system that gives all files
/// to one user, for any folder.
pub fn is_own_folder(path: &Path) -> bool {
    crate::host::path::is_own_folder(path)
}

/// Removes the files of a folder that `is_own` is true of, by name. The folder is
/// not opened through a link.
pub fn remove_files(folder: &Path, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
    crate::host::path::remove_files(folder, is_own)
}

/// The name of this host, as far as it is known and text.
pub fn host() -> String {
    crate::host::name()
}

/// A file that comes to its name only when it is whole and on its medium. One
/// that is dropped before leaves nothing behind, and what had the name stays. Only a
/// regular file is ever replaced: a link, a FIFO or a device of that name is refused.
/// The users who can read and write the replaced file can do so afterwards, and no others.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    making: PathBuf,
    name: PathBuf,
    is_done: bool,
}

impl AtomicFile {
    /// Begins a file that is to have this name.
    pub fn create(name: &Path) -> io::Result<Self> {
        require_replaceable(name)?;
        let is_there = crate::path::exists(name);
        let (file, making) = make_draft(name, is_there)?;
        let draft = Self { file, making, name: name.to_owned(), is_done: false };
        if is_there {
            crate::host::output::copy_permissions(&draft.file, name)?;
        }
        Ok(draft)
    }

    /// Gives the file its name, durably.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // It may have come meanwhile.
        require_replaceable(&self.name)?;
        crate::path::rename(&self.making, &self.name)?;
        self.is_done = true;
        Ok(())
    }
}

/// Names that are tried for a draft. One that is there already is of a process that was
/// killed, or is not a draft at all.
const DRAFT_NAMES_MAX: u32 = 16;

/// Makes the file that is going to have a name, beside it. A name of its own each time: the
/// number of a process is always 1 in a container, and one that was killed leaves its draft.
fn make_draft(name: &Path, is_private: bool) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if is_private {
        crate::host::output::owner_only(&mut options);
    }
    let mut tried = 0;
    loop {
        let suffix = format!(".making-{:08x}", random() & u64::from(u32::MAX));
        let draft = crate::path::with_suffix(name, &suffix);
        tried += 1;
        match options.open(&draft) {
            Ok(file) => return Ok((file, draft)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && tried < DRAFT_NAMES_MAX => {}
            Err(error) => {
                let why = format!("its draft {} cannot be made: {error}", draft.display());
                return Err(io::Error::new(error.kind(), why));
            }
        }
    }
}

/// Refuses what has a name and is not a regular file.
fn require_replaceable(name: &Path) -> io::Result<()> {
    match crate::path::kind(name)? {
        None | Some(FileKind::File) => Ok(()),
        Some(FileKind::Folder) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Some(kind) => Err(irregular(kind)),
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_done {
            crate::path::remove(&self.making, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("list");
        std::fs::write(&name, "old").unwrap();
        let mut file = AtomicFile::create(&name).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&name).unwrap(), b"old");
        let mut file = AtomicFile::create(&name).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&name).unwrap(), b"new");
        assert_eq!(names(folder.path()).unwrap(), [b"list"]);
        assert!(AtomicFile::create(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_is_opened_or_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "content").unwrap();
        symlink("file", at("link")).unwrap();
        crate::host::path::make_fifo(&at("fifo"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, kind) in [
            ("link", "a symbolic link"),
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            (".", "a folder"),
        ] {
            let error = open_own(&at(name)).err().map(|error| error.to_string());
            assert_eq!(error.unwrap(), format!("it is {kind}, and not a regular file"));
            assert!(AtomicFile::create(&at(name)).is_err(), "{name}");
            assert_eq!(open_regular(&at(name)).is_ok(), name == "link");
        }
        let mut text = String::new();
        open_own(&at("file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        // What came while the file was written is not replaced, either.
        let file = AtomicFile::create(&at("late")).unwrap();
        symlink("file", at("late")).unwrap();
        assert!(file.finish().is_err());
        assert_eq!(
            names(folder.path()).unwrap(),
            ["fifo", "file", "late", "link", "socket"].map(Vec::from)
        );
        assert_eq!(std::fs::read(at("file")).unwrap(), b"content");
    }

    #[test]
    fn half_a_sparse_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let pieces = || [(0, &b"content"[..])].into_iter();
        assert!(sparse(&path, u64::MAX, pieces()).is_err(), "no file is that long");
        assert!(!path.exists());
        sparse(&path, 100, pieces()).unwrap();
        assert!(sparse(&path, 50, pieces()).is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100, "what was there stays");
    }
}
