//! The changes on a RAM side: reported by the system where it does that, and otherwise
//! unknown, so that everything is looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fsure_os::change_watch::{Changed, Watch};
use fsure_os::path as os_path;

use crate::write_back::{Paths, ReportedChanges, Tracker};
use fsure_core::RelPath;

/// Changes since it was begun.
#[derive(Debug)]
pub(super) struct ChangeTracker {
    watch: Option<Watch>,
    /// Folders with files whose changes are not reported.
    silent: BTreeSet<RelPath>,
    /// True if the folder of one of these files is unknown.
    is_anywhere: bool,
    /// Those, and what was such a folder when `take` was called before.
    unreported: BTreeSet<RelPath>,
    next: BTreeSet<RelPath>,
    /// Taken from the system already.
    gathered: ReportedChanges,
}

impl ChangeTracker {
    /// Begins, before anything is copied.
    pub(super) fn begin(ram: &Path) -> Self {
        let (silent, unreported, next) = Default::default();
        let (watch, gathered) = (Watch::open(ram).ok(), ReportedChanges::none());
        Self { watch, silent, is_anywhere: false, unreported, next, gathered }
    }

    /// Takes what has been reported until now, for the generation to come: its time is not
    /// spent on it, and a queue that is limited does not overflow.
    pub(super) fn gather(&mut self) {
        let taken = self.watched();
        self.gathered = std::mem::replace(&mut self.gathered, ReportedChanges::none()).and(taken);
    }

    fn watched(&mut self) -> ReportedChanges {
        let Some(watch) = &mut self.watch else { return ReportedChanges::Unknown };
        match watch.take() {
            Changed::Known(paths) if !self.is_anywhere => {
                let all = |paths: BTreeSet<Vec<u8>>| paths.into_iter().map(RelPath::from_bytes);
                ReportedChanges::Known(Paths {
                    names: all(paths.names).collect(),
                    folders: all(paths.directories).collect(),
                    inodes: paths.inodes,
                    is_exact: paths.is_exact,
                    changed_from: paths.changed_from,
                })
            }
            _ => ReportedChanges::Unknown,
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
        self.next.extend(self.silent.iter().cloned());
    }

    /// Returns the method by which changes are found, as text.
    pub(super) fn words(&self) -> &'static str {
        if self.watch.is_some() { "names that changed" } else { "all of it, each time" }
    }
}

impl Tracker for ChangeTracker {
    fn take(&mut self) -> ReportedChanges {
        self.unreported = std::mem::replace(&mut self.next, self.silent.clone());
        let gathered = std::mem::replace(&mut self.gathered, ReportedChanges::none());
        gathered.and(self.watched())
    }

    fn knows_links(&self) -> bool {
        self.watch.as_ref().is_none_or(Watch::knows_links)
    }

    fn unreported(&self) -> BTreeSet<RelPath> {
        self.unreported.clone()
    }
}
