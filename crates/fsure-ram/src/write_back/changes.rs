//! Changes on the RAM side since it was asked last, as a tracker reports it.

use std::collections::BTreeSet;

use fsure_core::RelPath;

/// Changes since a tracker was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReportedChanges {
    /// Anything.
    #[default]
    Unknown,
    /// These, and nothing else.
    Known(Paths),
}

/// Changed paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Names that were made, removed or renamed, or of which the file, its content or its
    /// attributes changed.
    pub names: BTreeSet<RelPath>,
    /// Directories in which any name may have changed. What is below one that is not new
    /// is only looked at if it is here itself.
    pub folders: BTreeSet<RelPath>,
    /// Files of several names, of which at least one is known to the engine or in `names`.
    pub inodes: BTreeSet<u64>,
    /// True if these are exactly the changes up to one moment.
    pub is_exact: bool,
    /// The change time, in nanoseconds since 1970, that every change after that moment has at
    /// least; `None` if that is not known.
    pub changed_from: Option<i64>,
}

impl ReportedChanges {
    /// Nothing has changed.
    pub fn none() -> Self {
        Self::Known(Paths { is_exact: true, ..Paths::default() })
    }

    /// Both of them.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        match (self, later) {
            (Self::Known(mut one), Self::Known(other)) => {
                one.names.extend(other.names);
                one.folders.extend(other.folders);
                one.inodes.extend(other.inodes);
                one.is_exact &= other.is_exact;
                one.changed_from = other.changed_from;
                Self::Known(one)
            }
            _ => Self::Unknown,
        }
    }
}

/// Reports what has changed since it was asked last.
pub trait Tracker {
    /// Never too little; [`ReportedChanges::Unknown`] is always true.
    fn take(&mut self) -> ReportedChanges;

    /// Tells whether a change of a file of several names is reported whichever of them it was
    /// changed by.
    fn knows_links(&self) -> bool {
        true
    }

    /// Directories with files whose changes are not reported: they are looked at as often
    /// as anything is.
    fn unreported(&self) -> BTreeSet<RelPath> {
        BTreeSet::new()
    }
}

/// Knows nothing: everything is looked at.
#[derive(Clone, Copy, Debug)]
pub struct NoTracker;

impl Tracker for NoTracker {
    fn take(&mut self) -> ReportedChanges {
        ReportedChanges::Unknown
    }
}

/// Knows nothing at first.
pub(super) struct FirstScanTracker<'a>(pub(super) &'a mut dyn Tracker, pub(super) bool);

impl Tracker for FirstScanTracker<'_> {
    fn take(&mut self) -> ReportedChanges {
        if std::mem::replace(&mut self.1, true) { self.0.take() } else { ReportedChanges::Unknown }
    }

    fn knows_links(&self) -> bool {
        self.0.knows_links()
    }

    fn unreported(&self) -> BTreeSet<RelPath> {
        self.0.unreported()
    }
}
