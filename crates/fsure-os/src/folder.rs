//! The names below a root. Everything is asked relative to the root's own
//! handle and never through a link, so that a tree that changes while it is
//! walked cannot lead outside it.

use std::io;

use crate::Stat;
pub use crate::host::folder::{Root, is_denied, is_gone, is_other_kind, is_out_of_means};

/// The names in one folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// Names in no order, each with its stat or why there is none. Names that
    /// vanished in between are not listed.
    pub entries: Vec<(Box<[u8]>, io::Result<Stat>)>,
    /// Why the listing ends early, where it does.
    pub error: Option<io::Error>,
}

/// The content of a small file, read piece by piece: at most `max` bytes.
pub(crate) fn read_all(
    max: usize,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut content = vec![0; max + 1];
    let mut filled = 0;
    while filled < content.len() {
        match read(&mut content[filled..], filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    if filled > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {max} bytes"),
        ));
    }
    content.truncate(filled);
    Ok(content)
}
