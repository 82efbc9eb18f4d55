//! Stage 1: the paths of a run, one at a time, each with its row and what the system says of it.

use super::merge::{Merge, NextPath};
use super::scrub_queue::{ScrubQueue, ScrubState};
use crate::catalog::Claims;
use fsure_core::Result;

/// The source of the paths.
pub(super) enum PathSource {
    /// Everything there is and everything recorded.
    All(Box<Merge>),
    /// Paths that are recorded and due.
    Due(Box<ScrubQueue>),
}

impl PathSource {
    /// Returns the next path. `state` is what a scrub chooses by.
    pub(super) fn next(&mut self, state: &mut ScrubState<'_, '_>) -> Result<NextPath> {
        match self {
            Self::All(merge) => merge.next(state.recorder.catalog_mut()),
            Self::Due(queue) => queue.next(state),
        }
    }

    /// Returns true if the storage does not respond to the source.
    pub(super) fn is_silent(&mut self) -> bool {
        match self {
            Self::All(merge) => merge.is_silent(),
            Self::Due(queue) => queue.is_silent(),
        }
    }

    /// Takes the claims of all rows; `None` before all of them were handed out.
    pub(super) fn claims(&mut self) -> Option<Claims> {
        match self {
            Self::All(merge) => merge.claims(),
            Self::Due(_) => None,
        }
    }
}
