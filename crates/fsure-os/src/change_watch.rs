//! The changes in a file system, reported by the system: what to look at, where looking
//! at everything takes too long.
//!
//! What was changed before [`Watch::take`] is called is in its answer, or the answer is
//! [`Changed::Unknown`]. A path in it is one of the time of that call: what is renamed
//! later is in the next answer. Events are queued while the directory in which a name
//! changes is locked, so [`crate::tree_copy::Side::wait_for_names`] and then a `take` report
//! every change of a name that was visible before. Stores through a mapping are not
//! reported before the mapping ends, so the caller reads mapped files.
//!
//! On Linux it is fanotify with a mark on the whole file system (since 5.17), which
//! needs root. In a user namespace it needs Linux 6.16, and files of several names are
//! not reported by all of them ([`Watch::knows_links`]). Elsewhere [`Watch::open`] fails
//! with `Unsupported`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::host;

/// Receives all changes in one file system, from when it was opened.
#[derive(Debug)]
pub struct Watch(host::change_watch::Watch);

/// The changes since the last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Anything may have changed.
    Unknown,
    /// These have changed, and nothing else.
    Known(Paths),
}

/// Changed paths, as bytes from the top directory, whose own path is empty. Each may be
/// gone by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Names that were made, removed or renamed, or of which the file, its content or its
    /// attributes changed.
    pub names: BTreeSet<Vec<u8>>,
    /// Directories in which any name may have changed, not counting what lies below: those
    /// that were moved, with all below them, and those whose attributes changed.
    pub directories: BTreeSet<Vec<u8>>,
    /// Files of several names: `names` has one of these.
    pub inodes: BTreeSet<u64>,
    /// True if these are exactly the changes up to one moment. False if a directory was
    /// moved, or removed after names in it had changed, so that their paths are not known.
    pub is_exact: bool,
    /// The change time, in nanoseconds since 1970, that every change after that moment has at
    /// least, and none of these; `None` where changes have the time of a tick (before Linux
    /// 6.13).
    pub changed_from: Option<i64>,
}

impl Watch {
    /// Begins. `root` is the top directory of a mounted file system of its own: a tmpfs
    /// or an xfs, whether or not its mount is visible.
    pub fn open(root: &Path) -> io::Result<Self> {
        host::change_watch::Watch::open(root).map(Self)
    }

    /// Returns what has changed since the last call. Never fails: what cannot be known is
    /// [`Changed::Unknown`].
    pub fn take(&mut self) -> Changed {
        self.0.take().unwrap_or(Changed::Unknown)
    }

    /// Returns whether a change of a file of several names is reported whichever of them
    /// it was changed by.
    pub fn knows_links(&self) -> bool {
        self.0.knows_links()
    }

    /// Waits until something has changed that was not taken yet; returns whether it has.
    pub fn wait(&self, at_most: Duration) -> io::Result<bool> {
        self.0.wait(at_most)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
