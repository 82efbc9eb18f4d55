//! Stage 1: the paths of a run, one at a time, each with its row and what the system says of it.

use std::collections::VecDeque;
use std::sync::Arc;

use fsure_os::root_dir::Root;

use super::ScanPlan;
use super::merge::{Merge, NextPath};
use super::scrub_queue::{ScrubQueue, ScrubState};
use crate::catalog::{Catalog, Claims};
use crate::tree::{Walk, WalkOptions};
use fsure_core::{RelPath, Result};

/// The source of the paths.
pub(super) enum PathSource {
    /// Everything there is and everything recorded.
    All(Box<ScopeMerges>),
    /// Paths that are recorded and due.
    Due(Box<ScrubQueue>),
}

impl PathSource {
    /// Returns the next path. `state` is what a scrub chooses by.
    pub(super) fn next(&mut self, state: &mut ScrubState<'_, '_>) -> Result<NextPath> {
        match self {
            Self::All(merges) => merges.next(state.recorder.catalog_mut()),
            Self::Due(queue) => queue.next(state),
        }
    }

    /// Returns true if the storage does not respond to the source.
    pub(super) fn is_silent(&mut self) -> bool {
        match self {
            Self::All(merges) => merges.merge.is_silent(),
            Self::Due(queue) => queue.is_silent(),
        }
    }

    /// Takes the claims of all rows; `None` before all of them were handed out.
    pub(super) fn claims(&mut self) -> Option<Claims> {
        match self {
            Self::All(merges) => merges.merge.claims(),
            Self::Due(_) => None,
        }
    }
}

/// The merges of the scopes of a run, one after the other.
pub(super) struct ScopeMerges {
    root: Arc<Root>,
    options: WalkOptions,
    left: VecDeque<RelPath>,
    merge: Merge,
}

impl ScopeMerges {
    /// Begins with the first scope. The claims of all rows are gathered beside a single scope
    /// only: of several, none comes by all rows.
    pub(super) fn start(plan: &ScanPlan, options: WalkOptions) -> Result<Self> {
        let mut left: VecDeque<_> = plan.scopes.iter().cloned().collect();
        let first = left.pop_front().unwrap_or_default();
        let root = Arc::clone(&plan.root);
        let claims = (plan.binds_claims && left.is_empty()).then(Claims::default);
        let merge = merge(&root, &options, &first, claims)?;
        Ok(Self { root, options, left, merge })
    }

    fn next(&mut self, catalog: &mut Catalog) -> Result<NextPath> {
        loop {
            match self.merge.next(catalog)? {
                NextPath::None => {}
                next => return Ok(next),
            }
            let Some(scope) = self.left.pop_front() else { return Ok(NextPath::None) };
            self.merge = merge(&self.root, &self.options, &scope, None)?;
        }
    }
}

fn merge(
    root: &Arc<Root>,
    options: &WalkOptions,
    scope: &RelPath,
    claims: Option<Claims>,
) -> Result<Merge> {
    let options = WalkOptions { scope: scope.clone(), ..options.clone() };
    Ok(Merge::new(Walk::start(Arc::clone(root), options)?, scope, claims))
}
