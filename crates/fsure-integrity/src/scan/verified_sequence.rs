//! Ranges of paths that are verified in one go. Files come back from the readers in any order;
//! here they are put in the order of paths again, and where one file after the other was as
//! recorded the record gets one row for all of them instead of one for each.

use std::collections::VecDeque;

use super::{Purpose, ScanPlan};
use crate::catalog::VerificationDates;
use fsure_core::RelPath;

/// Files that may wait for one before them. Beyond it the range ends there: a large file is read
/// for hours while the small ones behind it come back.
const WAITING_MAX: usize = 1 << 16;

/// The place of a recorded file in the order of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequencePlace(u64);

/// A range of paths that is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerifiedPathRange {
    pub(super) first: RelPath,
    pub(super) last: RelPath,
    pub(super) dates: VerificationDates,
}

enum FileState {
    /// It has not come back.
    Pending,
    /// It was as recorded.
    Verified(RelPath, VerificationDates),
    /// It was not, or has a row of its own.
    NotVerified,
}

/// The recorded files of a run in the order of paths, from the first that has not come back.
#[derive(Default)]
pub(super) struct VerifiedSequence {
    waiting: VecDeque<FileState>,
    /// Number of the files before those.
    passed: u64,
    /// The range that the next file may go on with.
    open: Option<VerifiedPathRange>,
    /// True if the open range has grown since it was taken.
    has_grown: bool,
    closed: Vec<VerifiedPathRange>,
}

impl VerifiedSequence {
    /// Creates that of a run which reads every recorded file that it comes by, in the order of
    /// paths, and notes that it did; `None` for other runs. A selection of files has none: it
    /// passes over recorded paths, and a range would claim those, too.
    pub(super) fn of(plan: &ScanPlan) -> Option<Self> {
        let reads_all = match &plan.purpose {
            Purpose::Status => false,
            Purpose::Verify => plan.scrub.is_none(),
            Purpose::Update(rules) => rules.full && !rules.only_completes,
        };
        (reads_all && plan.may_write && !plan.is_list && plan.scopes.is_one()).then(Self::default)
    }

    /// Adds the next recorded file in the order of paths.
    pub(super) fn push(&mut self) -> SequencePlace {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting[0] = FileState::NotVerified;
            self.pass();
        }
        self.waiting.push_back(FileState::Pending);
        SequencePlace(self.passed + self.waiting.len() as u64 - 1)
    }

    /// Notes that a file was as recorded. Returns false if it comes too late for its range.
    pub(super) fn verified(
        &mut self,
        place: SequencePlace,
        path: &RelPath,
        dates: VerificationDates,
    ) -> bool {
        self.set(place, FileState::Verified(path.clone(), dates))
    }

    /// Notes that a file ends its range.
    pub(super) fn not_verified(&mut self, place: SequencePlace) {
        self.set(place, FileState::NotVerified);
    }

    fn set(&mut self, place: SequencePlace, state: FileState) -> bool {
        let Some(index) = place.0.checked_sub(self.passed) else { return false };
        self.waiting[index as usize] = state;
        if index == 0 {
            self.pass();
        }
        true
    }

    /// Passes the files that have come back, in the order of paths.
    fn pass(&mut self) {
        while self.waiting.front().is_some_and(|state| !matches!(state, FileState::Pending))
            && let Some(state) = self.waiting.pop_front()
        {
            self.passed += 1;
            match (state, &mut self.open) {
                (FileState::Verified(path, dates), Some(open)) => {
                    open.last = path;
                    open.dates = open.dates.earlier(dates);
                    self.has_grown = true;
                }
                (FileState::Verified(path, dates), open) => {
                    *open = Some(VerifiedPathRange { first: path.clone(), last: path, dates });
                    self.has_grown = true;
                }
                (_, open) => {
                    self.closed.extend(open.take().filter(|_| self.has_grown));
                    self.has_grown = false;
                }
            }
        }
    }

    /// Returns true if there are ranges to record.
    pub(super) fn has_new(&self) -> bool {
        self.has_grown || !self.closed.is_empty()
    }

    /// Takes the ranges to record: those that have ended, and the open one as far as it goes.
    pub(super) fn take_new(&mut self) -> Vec<VerifiedPathRange> {
        let mut ranges = std::mem::take(&mut self.closed);
        if std::mem::take(&mut self.has_grown) {
            ranges.extend(self.open.clone());
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(number: usize) -> RelPath {
        RelPath::from_bytes(vec![b'a' + number as u8])
    }

    proptest! {
        /// Whatever the order of the answers and the moments of the commits, each file that was
        /// verified is in a range that ends at one that was not, and no other file is.
        #[test]
        fn ranges_hold_the_verified_files_and_no_others(
            (states, order, commits) in proptest::collection::vec(any::<bool>(), 1..20)
                .prop_flat_map(|states| {
                    let places: Vec<_> = (0..states.len()).collect();
                    let commits = proptest::collection::vec(any::<bool>(), states.len());
                    (Just(states), Just(places).prop_shuffle(), commits)
                })
        ) {
            let mut sequence = VerifiedSequence::default();
            let places: Vec<_> = states.iter().map(|_| sequence.push()).collect();
            let mut covered = vec![None; states.len()];
            let mut record = |sequence: &mut VerifiedSequence| {
                for range in sequence.take_new() {
                    let number = |path: &RelPath| usize::from(path.as_bytes()[0] - b'a');
                    covered[number(&range.first)..=number(&range.last)].fill(Some(range.dates));
                }
            };
            for (number, is_commit) in order.into_iter().zip(commits) {
                let dates = VerificationDates { hashed_ns: None, verified_s: 1 + number as i64 };
                match states[number] {
                    true => assert!(sequence.verified(places[number], &path(number), dates)),
                    false => sequence.not_verified(places[number]),
                }
                if is_commit {
                    record(&mut sequence);
                }
            }
            record(&mut sequence);
            prop_assert!(!sequence.has_new());
            for (number, dates) in covered.into_iter().enumerate() {
                prop_assert_eq!(dates.is_some(), states[number]);
                prop_assert!(dates.is_none_or(|dates| dates.verified_s <= 1 + number as i64));
            }
        }
    }

    #[test]
    fn a_file_that_comes_too_late_has_a_row_of_its_own() {
        let mut sequence = VerifiedSequence::default();
        let dates = VerificationDates { hashed_ns: None, verified_s: 1 };
        let first = sequence.push();
        let others: Vec<_> = (0..WAITING_MAX).map(|_| sequence.push()).collect();
        assert!(!sequence.verified(first, &path(0), dates));
        assert!(sequence.verified(others[0], &path(1), dates));
        let range = VerifiedPathRange { first: path(1), last: path(1), dates };
        assert_eq!(sequence.take_new(), [range]);
    }
}
