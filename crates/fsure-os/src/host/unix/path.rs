//! Paths are bytes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, access, openat, unlinkat};

use crate::host::system::root_dir::each_name;
use crate::path::FileKind;

/// A path's raw bytes.
pub(crate) fn bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(path.as_os_str().as_bytes())
}

/// The path of those raw bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Cow<'_, Path> {
    Cow::Borrowed(Path::new(OsStr::from_bytes(bytes)))
}

/// The path without any link in it, from the system's root.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// The kind of what is not a file, folder or link.
pub(crate) fn special_kind(kind: std::fs::FileType) -> FileKind {
    match () {
        () if kind.is_fifo() => FileKind::Fifo,
        () if kind.is_socket() => FileKind::Socket,
        () if kind.is_char_device() => FileKind::CharacterDevice,
        () if kind.is_block_device() => FileKind::BlockDevice,
        () => FileKind::Other,
    }
}

/// Makes a FIFO, for tests.
#[cfg(test)]
pub(crate) fn make_fifo(path: &Path) {
    let path = super::root_dir::c_string(&bytes(path)).expect("a name");
    // SAFETY: a name that ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0, "make a FIFO");
}

/// Makes a folder for this user only.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// See [`crate::user_file::is_own_folder`].
pub(crate) fn is_own_folder(path: &Path) -> bool {
    let Ok(is) = std::fs::symlink_metadata(path) else { return false };
    let around = path.parent().and_then(|around| std::fs::metadata(around).ok());
    let user = rustix::process::geteuid().as_raw();
    is.is_dir() && (is.uid() == user || around.is_some_and(|around| around.uid() == is.uid()))
}

/// See [`crate::user_file::remove_files`].
pub(crate) fn remove_files(folder: &Path, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    let mut own = Vec::new();
    each_name(&folder, &mut |_, name| {
        if is_own(name.to_bytes()) {
            own.push(name.to_owned());
        }
        true
    })?;
    for name in own {
        unlinkat(&folder, &*name, AtFlags::empty())?;
    }
    Ok(())
}

/// See [`crate::path::require_writable`].
pub(crate) fn require_writable(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}

/// Gives a file another name in the same folder, and waits until it has it.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    flush_name(to)
}

/// Waits until a name is on the medium.
pub(crate) fn flush_name(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
