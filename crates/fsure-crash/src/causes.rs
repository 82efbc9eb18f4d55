//! The syncs that a program has left out, where a cut of a folder has lost or damaged
//! something: the same cut is made once more with some of what was not synced made
//! durable, and what that leaves is checked as the cut itself was. The fewest with which
//! the check finds nothing wrong are the cause.
//!
//! Those of earlier cuts are tried first: most losses of a program have one cause.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::backend::OfflineDrive;
use super::check_image::examine;
use super::context::CrashRun;
use crate::{CutState, MissingSync};
use fsure_core::{Error, ExitCode, Result};
use fsure_simdrive::files::{PreCutState, Unsynced};

/// The time that is spent on the causes of one cut. The syncs that are found by then are
/// reported, although fewer might do.
const SEARCH_MAX: Duration = Duration::from_secs(20);
/// The part of it that is spent on the causes of earlier cuts.
const EARLIER_MAX: Duration = Duration::from_secs(10);
/// The longest time that a check may take for the causes to be searched for: a search
/// needs a handful of checks, and there is no time for that many slower ones.
const CHECK_MAX: Duration = Duration::from_secs(5);
/// Maximum number of names of a folder that are reported.
const NAMES_MAX: usize = 3;

/// Sets of syncs that were missing, as their paths.
pub(super) type MissingSyncSets = RefCell<Vec<BTreeSet<MissingSync>>>;

/// Looks for the syncs that were missing.
struct Search<'a> {
    run: &'a CrashRun<'a>,
    state: &'a PreCutState,
    acked: u64,
    begun: Instant,
    /// The longest time that a check of this cut has taken.
    slowest: Cell<Duration>,
}

/// Finds the fewest syncs with which nothing would have been lost; none if
/// no sync helps, and `None` if there was no time to find out: the check of the cut itself
/// `took` too long, or those of the search did. Fails with [`Error::Interrupted`] if the
/// run is to end.
pub(super) fn missing_syncs(
    run: &CrashRun<'_>,
    state: &PreCutState,
    acked: u64,
    known: &MissingSyncSets,
    took: Duration,
) -> Result<Option<Vec<MissingSync>>> {
    if took > CHECK_MAX {
        return Ok(None);
    }
    let all = state.unsynced();
    let search = Search { run, state, acked, begun: Instant::now(), slowest: Cell::new(took) };
    let earlier: Vec<_> = known.borrow().iter().filter_map(|set| find(set, &all)).collect();
    for set in earlier {
        if search.begun.elapsed() >= EARLIER_MAX {
            break;
        }
        if search.is_enough(&set)? {
            return Ok(Some(describe_syncs(&set)));
        }
    }
    let Some(found) = search.fewest(all.iter().collect())? else { return Ok(None) };
    let found = describe_syncs(&found);
    if !found.is_empty() {
        known.borrow_mut().push(found.iter().map(MissingSync::without_names).collect());
    }
    Ok(Some(found))
}

/// Finds the cause of an earlier cut among the syncs that are missing here.
fn find<'a>(known: &BTreeSet<MissingSync>, all: &'a [Unsynced]) -> Option<Vec<&'a Unsynced>> {
    let is_known = |one: &&Unsynced| known.contains(&missing(one).without_names());
    let found: Vec<_> = all.iter().filter(is_known).collect();
    (found.len() == known.len()).then_some(found)
}

impl Search<'_> {
    /// Returns true if there is no time for another check.
    fn is_over(&self) -> bool {
        is_over(self.begun.elapsed(), self.slowest.get())
    }

    /// Returns true if the check finds nothing wrong with these synced; false without a
    /// check if there is no time for one.
    fn is_enough(&self, syncs: &[&Unsynced]) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        self.run.listener.under_way("looking for the missing sync", self.run.from);
        let inodes = syncs.iter().map(|one| one.inode).collect();
        let left = OfflineDrive::Files(Box::new(self.state.with_syncs(&inodes)));
        let CrashRun { options, site, listener, .. } = *self.run;
        let begun = Instant::now();
        let found = examine(options, site, &left, self.acked, listener)?;
        self.slowest.set(self.slowest.get().max(begun.elapsed()));
        match found.state {
            Some(state) => Ok(state == CutState::Survived),
            None => {
                Err(Error::Interrupted(listener.stop_requested().unwrap_or(ExitCode::Interrupted)))
            }
        }
    }

    /// Finds the fewest of some syncs that are enough, as far as that can be found by halving
    /// (Zeller's ddmin); none if all of them are not, `None` if there was no time to
    /// find that out.
    fn fewest<'a>(&self, all: Vec<&'a Unsynced>) -> Result<Option<Vec<&'a Unsynced>>> {
        if !self.is_enough(&all)? {
            return Ok((!self.is_over()).then(Vec::new));
        }
        let (mut enough, mut parts) = (self.of_one_kind(all)?, 2);
        while enough.len() > 1 && !self.is_over() {
            parts = parts.min(enough.len());
            match self.fewer(&enough, parts)? {
                // One part alone is cut in halves; of all but one, the parts stay.
                Some(fewer) if fewer.len() * 2 <= enough.len() => (enough, parts) = (fewer, 2),
                Some(fewer) => (enough, parts) = (fewer, (parts - 1).max(2)),
                None if parts == enough.len() => break,
                None => parts *= 2,
            }
        }
        Ok(Some(enough))
    }

    /// Takes those of folders, or of files, where they are enough: a program that leaves out
    /// one of them mostly leaves out the others of its kind.
    fn of_one_kind<'a>(&self, all: Vec<&'a Unsynced>) -> Result<Vec<&'a Unsynced>> {
        for is_folder in [true, false] {
            let some = all.iter().copied().filter(|one| one.is_folder == is_folder);
            let some: Vec<_> = some.collect();
            if (1..all.len()).contains(&some.len()) && self.is_enough(&some)? {
                return Ok(some);
            }
        }
        Ok(all)
    }

    /// Finds a part of some syncs that is enough, or all but a part.
    fn fewer<'a>(&self, all: &[&'a Unsynced], parts: usize) -> Result<Option<Vec<&'a Unsynced>>> {
        let parts: Vec<_> = all.chunks(all.len().div_ceil(parts)).collect();
        let single = parts.iter().map(|part| part.to_vec());
        let but_one = (0..parts.len()).map(|left_out| {
            let others = parts.iter().enumerate().filter(|(place, _)| *place != left_out);
            others.flat_map(|(_, part)| part.iter().copied()).collect()
        });
        // Of two parts, all but one is the other.
        let but_one = but_one.take(if parts.len() > 2 { parts.len() } else { 0 });
        for some in single.chain(but_one) {
            if self.is_enough(&some)? {
                return Ok(Some(some));
            }
        }
        Ok(None)
    }
}

/// Returns true if a check that takes as long as the slowest would end too late.
fn is_over(elapsed: Duration, slowest: Duration) -> bool {
    elapsed + slowest > SEARCH_MAX
}

fn describe_syncs(syncs: &[&Unsynced]) -> Vec<MissingSync> {
    syncs.iter().map(|one| missing(one)).collect()
}

fn missing(one: &Unsynced) -> MissingSync {
    let is_top = one.path == Path::new("");
    let path = if is_top { ".".into() } else { one.path.to_string_lossy().into_owned() };
    let names = one.names.iter().take(NAMES_MAX);
    MissingSync {
        of: if one.is_folder { "folder" } else { "file" }.to_owned(),
        path,
        names: names.map(|name| name.to_string_lossy().into_owned()).collect(),
    }
}

impl MissingSync {
    fn without_names(&self) -> Self {
        Self { names: Vec::new(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_check_begins_that_would_end_too_late() {
        let [zero, five, fifteen] = [0, 5, 15].map(Duration::from_secs);
        assert!(!is_over(zero, CHECK_MAX) && !is_over(fifteen, five));
        assert!(is_over(fifteen + Duration::from_millis(1), five));
        assert!(is_over(zero, SEARCH_MAX + Duration::from_millis(1)));
    }
}
