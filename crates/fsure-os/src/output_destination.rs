//! The kinds of place that an output can go to, and the refusal of all others.

use std::io;
use std::path::PathBuf;

use crate::path::FileKind;

/// The place that a path leads to when links are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A regular file, or nothing yet, at this path without links.
    File(PathBuf),
    /// A descriptor that this process has open, such as `/dev/stdout`.
    Descriptor(i32),
    /// A FIFO at this path without links.
    Fifo(PathBuf),
    /// A character device at this path without links.
    Device(PathBuf),
}

/// Returns the error of an output to a kind of file that none goes to.
pub(crate) fn refused(kind: FileKind) -> io::Error {
    match kind {
        FileKind::Folder => io::Error::from(io::ErrorKind::IsADirectory),
        FileKind::BlockDevice => io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a block device: writing to it would overwrite the disk",
        ),
        kind => {
            let why = format!("it is {kind}, which cannot be opened to write");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        }
    }
}
