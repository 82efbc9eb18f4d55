//! Which folders of a file system have changed, told by the system: what to look
//! at, where looking at everything takes too long.
//!
//! It is sound and not exact. What was changed before [`Watch::take`] is called is
//! in its answer or the answer is [`Changed::Unknown`], also where the file has been
//! renamed or unlinked meanwhile. A path in it is one of that time: what is renamed
//! later is in the next answer. Nobody is told of stores through a mapping before
//! the mapping ends, so who needs those reads the files.
//!
//! On Linux it is fanotify with a mark on the whole file system (since 5.17), which
//! needs root: in a user name space of one's own Linux 6.16 sets such a mark, but opens
//! no file by its handle. Elsewhere [`Watch::open`] fails with `Unsupported`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::host;

/// Hears of all changes in one file system, from when it was opened.
#[derive(Debug)]
pub struct Watch(host::watch::Watch);

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Anything may have.
    Unknown,
    /// The names in these folders, and what the names are of; not what lies below.
    /// Of a folder that was moved all below it are named, too. Bytes, from the top
    /// folder, whose own name is empty; each may be gone by now.
    Folders(BTreeSet<Vec<u8>>),
}

impl Watch {
    /// Begins. `root` is the top folder of a mounted file system of its own: a tmpfs
    /// or an xfs, mounted where anybody sees it or not.
    pub fn open(root: &Path) -> io::Result<Self> {
        host::watch::Watch::open(root).map(Self)
    }

    /// What has changed since the last time. Fails never: where it cannot be known,
    /// that is said.
    pub fn take(&mut self) -> Changed {
        self.0.take().unwrap_or(Changed::Unknown)
    }

    /// Waits until something has changed that was not taken yet; whether it has.
    pub fn wait(&self, at_most: Duration) -> io::Result<bool> {
        self.0.wait(at_most)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
