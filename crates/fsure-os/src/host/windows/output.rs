//! The end of a path: a regular file or to nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::output_destination::{Destination, refused};
use crate::path::{FileKind, kind, without_links};

/// See [`Destination::of`].
pub(crate) fn destination(path: &Path) -> io::Result<Destination> {
    let path = without_links(path)?;
    match kind(&path)? {
        None | Some(FileKind::File) => Ok(Destination::File(path)),
        Some(kind) => Err(refused(kind)),
    }
}

/// Paths name no descriptors here.
pub(crate) fn duplicate(_: i32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Streams have no paths here.
pub(crate) fn open_stream(_: &Path, _: FileKind) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A new file has the access list that its folder gives it.
pub(crate) fn owner_only(_: &mut OpenOptions) {}

/// See [`owner_only`].
pub(crate) fn copy_permissions(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// There is a standard output, or writing to it fails.
pub(crate) fn had_standard_output() -> bool {
    true
}

/// Streams have no paths here.
pub(crate) fn is_terminal(_: &File) -> bool {
    false
}

/// There are no FIFOs.
pub(crate) fn has_no_reader(_: &io::Error) -> bool {
    false
}
