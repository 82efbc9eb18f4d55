//! The rules of an `update`: what to read, to write and to drop.

use std::sync::Arc;
use std::time::Duration;

use super::SizeFilter;
use fsure_core::{AlgorithmSet, RelPath};

/// The rules for what `update` reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRules {
    /// Read files whose stat is as recorded too.
    pub full: bool,
    /// Digests to compute for every file.
    pub digests: AlgorithmSet,
    /// Do nothing but give these digests to files that lack them and are as
    /// recorded.
    pub only_completes: bool,
    /// Findings that are recorded although they bury evidence.
    pub accept: Accept,
    /// Tombstones that are dropped.
    pub forget: Forget,
    /// Read no files but those of these sizes.
    pub only_sizes: Option<Arc<SizeFilter>>,
}

impl UpdateRules {
    /// The rules of an update that reads what its stat does not prove, records what is new or has
    /// changed, and accepts and forgets nothing.
    pub fn new(digests: AlgorithmSet) -> Self {
        Self {
            full: false,
            digests,
            only_completes: false,
            accept: Accept::Nothing,
            forget: Forget::Nothing,
            only_sizes: None,
        }
    }
}

/// The findings that the user accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// None.
    #[default]
    Nothing,
    /// Those at or below these paths.
    Within(Vec<RelPath>),
    /// All.
    All,
}

impl Accept {
    /// Returns true if the user accepts the finding for this path.
    pub fn covers(&self, path: &RelPath) -> bool {
        match self {
            Self::Nothing => false,
            Self::Within(paths) => paths.iter().any(|accepted| path.is_within(accepted)),
            Self::All => true,
        }
    }
}

/// The tombstones to drop: records of what was found to be gone, kept so that
/// it can be judged if it comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forget {
    /// None.
    #[default]
    Nothing,
    /// Those that are older, if the record changes in any other way: a signed
    /// record stays as it was signed as long as nothing happens.
    WithChanges(Duration),
    /// Those that are at least as old.
    Now(Duration),
}

/// The age from which a tombstone is dropped, unless another is given: longer
/// than a disk is left in a drawer between two backups.
pub const TOMBSTONE_AGE: Duration = Duration::from_secs(365 * 86_400);
