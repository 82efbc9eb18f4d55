//! What has changed on a RAM side: told by the system where it tells, and otherwise
//! unknown, so that everything is looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fsure_os::path as os_path;
use fsure_os::watch::{Changed, Watch};

use crate::ram::{Changes, Tracker};
use crate::words::RelPath;

/// Changes since it was begun.
#[derive(Debug)]
pub(super) struct Changing {
    watch: Option<Watch>,
    /// Folders with files of which nobody tells.
    silent: BTreeSet<RelPath>,
    /// Whether there is one of which it is not known where it is.
    is_anywhere: bool,
    /// Those, and what was such a folder since it was asked last.
    untold: BTreeSet<RelPath>,
}

impl Changing {
    /// Begins, before anything is copied.
    pub(super) fn begin(ram: &Path) -> Self {
        Self {
            watch: Watch::open(ram).ok(),
            silent: [].into(),
            is_anywhere: false,
            untold: [].into(),
        }
    }

    /// Files that are written to by the system itself, as a disk made of one is: the
    /// folders that they are in are looked at each time, and once more when there is none.
    pub(super) fn silent(&mut self, files: &[PathBuf], ram: &Path) {
        // The system calls one as it was called when the disk was made.
        self.is_anywhere = files.iter().any(|file| !file.starts_with(ram));
        let below = files.iter().filter_map(|file| file.parent()?.strip_prefix(ram).ok());
        let now = below.map(|folder| RelPath::from_bytes(os_path::bytes(folder).into_owned()));
        self.silent = now.collect();
        self.untold.extend(self.silent.iter().cloned());
    }

    /// How, in words.
    pub(super) fn words(&self) -> &'static str {
        if self.watch.is_some() { "folders that changed" } else { "all of it, each time" }
    }
}

impl Tracker for Changing {
    fn take(&mut self) -> Changes {
        match self.watch.as_mut().map_or(Changed::Unknown, Watch::take) {
            Changed::Unknown => Changes::Unknown,
            Changed::Folders(_) if self.is_anywhere => Changes::Unknown,
            Changed::Folders(folders) => {
                let told = folders.into_iter().map(RelPath::from_bytes);
                let untold = std::mem::replace(&mut self.untold, self.silent.clone());
                Changes::Folders(told.chain(untold).collect())
            }
        }
    }
}
