//! Bytes to paths and back, and the few plain questions about a path that a
//! command line raises before there is a root.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::path::canonical;

/// A path's raw bytes, with `/` between its components: as they are on Unix,
/// WTF-8 on Windows, where names are made of 16-bit units.
pub fn bytes(path: &Path) -> Cow<'_, [u8]> {
    crate::host::path::bytes(path)
}

/// The path of those raw bytes. On Windows, bytes that no name there has are
/// replaced: such a path leads nowhere and is only good to be shown.
pub fn from_bytes(bytes: &[u8]) -> Cow<'_, Path> {
    crate::host::path::from_bytes(bytes)
}

/// Resolves a path given by the user to a form that stays true when the working
/// directory changes. Links in the folders above are resolved, and so is a link
/// to a folder; any other link is kept, since it is an entry of its own. The path
/// need not exist, so that a missing file can be named.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return canonical(path);
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() && !is_folder(path) => Ok(canonical(parent)?.join(name)),
        Err(error) if is_nowhere(&error) => Ok(resolve(parent)?.join(name)),
        _ => canonical(path),
    }
}

fn is_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns true if a path leads to a folder.
pub fn is_folder(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Returns true if a name exists, even as a dangling link.
pub fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// The path of a file with `suffix` appended to its name: `catalog.db.lock`.
pub fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The path of a file with `suffix` and the first number from 1 on appended under
/// which nothing is there.
pub fn free_numbered(file: &Path, suffix: &str) -> PathBuf {
    let mut names = (1_u64..).map(|number| with_suffix(file, &format!("{suffix}{number}")));
    names.find(|name| !exists(name)).unwrap_or_default()
}

/// Returns the length of a file, in bytes.
pub fn length(file: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(file)?.len())
}

/// Makes a folder where there is none yet.
pub fn make_folder(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(path) => Ok(()),
        other => other,
    }
}

/// Makes a folder that no other user can read, if the system has such rights. One
/// that is there already is not an error.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    match crate::host::path::make_private(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(path) => Ok(()),
        other => other,
    }
}

/// Removes a folder in which there is nothing; one that is not there is not an error.
pub fn remove_empty_folder(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder as [`make_folder`], and waits until it has its name, where the
/// system has a call for that: what is durable in a folder whose own name is not is
/// nowhere.
pub fn make_lasting_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    crate::host::path::flush_name(path)
}

/// Takes back a file that turned out not to be wanted, and then its folder if
/// `with_folder` says that it was made for it. What is not there is not an error.
pub fn remove(file: &Path, with_folder: bool) {
    // Nothing hangs on these: what stays behind is empty.
    let _ = std::fs::remove_file(file);
    if let (true, Some(folder)) = (with_folder, file.parent()) {
        let _ = std::fs::remove_dir(folder);
    }
}

/// Gives a file another name in the same folder, durably: it has the old name
/// or the new one after a power cut, and the new one once this returns.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    crate::host::path::rename(from, to)
}

/// Fails as writing to a file, or into a folder, would fail for lack of the right to do it.
/// Nothing is written.
pub fn require_writable(path: &Path) -> io::Result<()> {
    crate::host::path::require_writable(path)
}

/// The kind of what a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Anything else that a system has.
    Other,
}

impl FileKind {
    /// The kind that the system gives a file.
    pub(crate) fn of(kind: std::fs::FileType) -> Self {
        match () {
            () if kind.is_file() => Self::File,
            () if kind.is_dir() => Self::Folder,
            () if kind.is_symlink() => Self::Link,
            () => crate::host::path::special_kind(kind),
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a regular file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Other => "neither a file nor a folder",
        })
    }
}

/// The kind of what a name stands for, a link not followed; `None` where there is
/// nothing.
pub fn kind(path: &Path) -> io::Result<Option<FileKind>> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(FileKind::of(meta.file_type()))),
        Err(error) if is_nowhere(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the name itself is a link, wherever that leads.
pub fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

/// The path that a link leads to which does not exist; `None` for anything else.
pub fn dangling_link(path: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(path).ok()?;
    std::fs::metadata(path)
        .is_err_and(|error| is_nowhere(&error))
        .then(|| path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)))
}

/// The path without any link, so that one file has one name. What does not
/// exist is resolved as far as it does.
pub fn without_links(path: &Path) -> io::Result<PathBuf> {
    if exists(path) { canonical(path) } else { resolve(path) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn resolves_links_above_but_not_the_entry_itself() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::fs::write(base.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("real", base.join("way")).unwrap();
        std::os::unix::fs::symlink("nothing", base.join("real/dangling")).unwrap();
        for (given, meant) in [
            ("way", "real"),
            ("way/.", "real"),
            ("way/dangling", "real/dangling"),
            ("way/none", "real/none"),
            ("way/none/deeper", "real/none/deeper"),
            ("way/file/none", "real/file/none"),
            ("real/../way/", "real"),
        ] {
            assert_eq!(resolve(&base.join(given)).unwrap(), base.join(meant), "{given}");
        }
    }
}
