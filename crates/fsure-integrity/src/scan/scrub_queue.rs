//! The source of the cases of a scrub: the files that are due, the oldest
//! first, as far as the budget goes. They are chosen in that order, a chunk at
//! a time, and each chunk is read in the order of the disk.

use std::collections::VecDeque;
use std::task::Poll;

use super::entry_builder::EntryBuilder;
use super::merge::{MergedPath, NextPath, ScrubTurn};
use super::part_planner::{PARTS_MIN, PartPlanner};
use super::read_queue::ReadQueue;
use super::result_recorder::ResultRecorder;
use super::stat_thread::{DueStat, StatThread};
use super::{Budget, ScanPlan, ScrubRules};
use crate::catalog::{DueFile, StoredRow};
use crate::model::ScrubSummary;
use fsure_core::block_hash::BLOCK;
use fsure_core::{RelPath, Result};

/// Files and bytes that are chosen at once: enough for an order of the disk
/// that is worth having, and few enough for an age to be an age.
const CHUNK_FILES: usize = 4_096;
const CHUNK_BYTES: u64 = 4 << 30;

/// Blocks of files under way whose values are in memory, 40 bytes each: of more
/// than 256 GiB at once only one file.
const BLOCKS_MAX: usize = 256 << 10;

/// The state of a run that the choice of the next file depends on.
pub(super) struct ScrubState<'s, 'a> {
    pub(super) plan: &'a ScanPlan,
    pub(super) recorder: &'s mut ResultRecorder<'a>,
    pub(super) reads: &'s mut ReadQueue<'a>,
    pub(super) entries: &'s mut EntryBuilder,
    pub(super) part_planner: PartPlanner,
}

/// Reports a file that does not fit into what is left, if it never would.
pub(super) fn report_if_too_large(
    reads: &ReadQueue<'_>,
    recorder: &mut ResultRecorder<'_>,
    path: &RelPath,
    least: u64,
) {
    if let Some(budget) = reads.budget().least_for(least) {
        let scrub = recorder.report_mut().scrub_mut();
        scrub.note_too_large([path]);
        scrub.too_large_budget = scrub.too_large_budget.max(budget);
    }
}

/// The same for a file that is due, of which `least` bytes have to be read.
fn report_due_if_too_large(
    reads: &ReadQueue<'_>,
    recorder: &mut ResultRecorder<'_>,
    due: &DueFile,
    least: u64,
) {
    match (&due.stored, reads.budget().least_for(least)) {
        (StoredRow::Sound(row), Some(budget)) if row.has_blocks() => {
            recorder.report_mut().scrub_mut().note_below_block(budget);
        }
        _ => report_if_too_large(reads, recorder, due.stored.path(), least),
    }
}

/// The files that are due.
pub(super) struct ScrubQueue {
    looker: StatThread,
    /// Rows that fail their seal: their age is not known.
    bad: VecDeque<RelPath>,
    /// The last number that was fetched.
    after: i64,
    page: VecDeque<DueFile>,
    chunk: std::vec::IntoIter<DueStat>,
    is_fetched: bool,
    /// True if the file that was chosen last was not OK before.
    was_again: bool,
    /// True if that file was one that goes alone.
    was_alone: bool,
}

impl ScrubQueue {
    pub(super) fn new(plan: &ScanPlan, mounted_over: Vec<RelPath>) -> Result<Self> {
        Ok(Self {
            looker: StatThread::start(plan, mounted_over)?,
            bad: VecDeque::new(),
            after: 0,
            page: VecDeque::new(),
            chunk: Vec::new().into_iter(),
            is_fetched: false,
            was_again: false,
            was_alone: false,
        })
    }

    /// Finds out what is due and what may be spent on it. Returns the bytes
    /// that are going to be read, as far as is known.
    pub(super) fn begin(
        &mut self,
        rules: &ScrubRules,
        state: &mut ScrubState<'_, '_>,
    ) -> Result<u64> {
        let (recorder, scope) = (&mut *state.recorder, &state.plan.scopes.around());
        let now_s = recorder.time().now_s();
        let age_s = rules.max_age.map_or(0, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        let due =
            recorder.catalog().scrub_queue().fill(scope, now_s.saturating_sub(age_s), now_s)?;
        let outcome = recorder.report_mut().outcome_mut();
        outcome.nested_roots.clone_from(&rules.nested_roots);
        outcome.scrub = Some(ScrubSummary {
            due_files: due.files,
            due_bytes: due.bytes,
            must_be_complete: rules.must_be_complete,
            ..ScrubSummary::default()
        });
        recorder.load_cut_off()?;
        self.bad = recorder.take_bad_rows().into();
        let budget = state.reads.budget_mut();
        if let Budget::Percent(percent) = rules.budget {
            budget.fill((due.recorded_bytes as f64 * percent / 100.0) as u64);
        }
        Ok(due.bytes.min(budget.left()))
    }

    pub(super) fn is_silent(&mut self) -> bool {
        self.looker.is_silent()
    }

    /// The next file.
    pub(super) fn next(&mut self, state: &mut ScrubState<'_, '_>) -> Result<NextPath> {
        loop {
            if let Some(looked) = self.chunk.next() {
                return Ok(NextPath::Path(self.case(looked, state)?));
            }
            if self.looker.is_asked() {
                match self.looker.answer()? {
                    Poll::Ready(looked) => self.chunk = looked.into_iter(),
                    Poll::Pending => return Ok(NextPath::Later),
                }
                continue;
            }
            let chunk = self.next_chunk(state)?;
            if !chunk.is_empty() {
                self.looker.ask(chunk);
            } else if state.reads.in_flight() > 0 {
                return Ok(NextPath::AfterReads);
            } else {
                return Ok(NextPath::None);
            }
        }
    }

    fn case(&self, looked: DueStat, state: &mut ScrubState<'_, '_>) -> Result<MergedPath> {
        let DueStat { due, seen, above } = looked;
        if let Some((folder, stat)) = above {
            // So that a file that is gone is told from a disk that is.
            let catalog = state.recorder.catalog_mut();
            state.entries.entry(&state.plan.root, catalog, &folder, &stat, stat.device)?;
        }
        let turn = ScrubTurn { is_again: due.is_again, bytes_max: due.bytes_max };
        let scrubbed = state.recorder.report_mut().scrub_mut();
        match due.is_again {
            true => scrubbed.again_files += 1,
            false => scrubbed.by_age_files += 1,
        }
        let path = due.stored.path().clone();
        Ok(MergedPath { path, stored: Some(due.stored), seen, turn: Some(turn) })
    }

    /// The next chunk: what fits, in the order of age. A file that does not is
    /// passed by only if it can be read as a whole or not at all.
    fn next_chunk(&mut self, state: &mut ScrubState<'_, '_>) -> Result<Vec<DueFile>> {
        let must_begin = self.was_alone && state.reads.has_unsent();
        if must_begin || state.reads.blocks_under_way() > BLOCKS_MAX {
            return Ok(Vec::new());
        }
        let mut chunk = self.take_bad();
        let (mut bytes, mut is_full) = (0_u64, !chunk.is_empty());
        while !is_full && chunk.len() < CHUNK_FILES && bytes < CHUNK_BYTES {
            self.fetch(state)?;
            let Some(due) = self.page.front() else { break };
            let waits = self.was_again && !due.is_again;
            // A second look at what may be damaged comes before a first one at
            // anything else.
            if waits && (!chunk.is_empty() || state.reads.in_flight() > 0) {
                break;
            }
            let left = state.reads.budget().left().saturating_sub(bytes);
            let catalog = state.recorder.catalog_mut();
            let (whole, least) = state.part_planner.need(catalog, due, left)?;
            // What may take all of the time begins when it is its turn.
            let goes_alone = least > PARTS_MIN && state.reads.budget().deadline().left().is_some();
            if goes_alone && (!chunk.is_empty() || state.reads.has_unsent()) {
                break;
            }
            is_full = whole > left || goes_alone;
            self.was_alone = goes_alone;
            self.was_again = due.is_again;
            if least <= left {
                bytes = bytes.saturating_add(whole);
                let mut due = self.page.pop_front();
                if let Some(due) = due.as_mut().filter(|_| whole > left) {
                    // What is chosen with it is older, and may come behind it.
                    due.bytes_max = left;
                }
                chunk.extend(due);
            } else if (left > 0 || state.reads.budget().is_zero())
                && (least > BLOCK || state.reads.budget().least_for(least).is_some())
            {
                report_due_if_too_large(state.reads, state.recorder, due, least);
                drop(self.page.pop_front());
                is_full = false;
            }
        }
        Ok(chunk)
    }

    fn take_bad(&mut self) -> Vec<DueFile> {
        let count = self.bad.len().min(CHUNK_FILES);
        self.was_again |= count > 0;
        let bad = self.bad.drain(..count).map(StoredRow::Bad);
        let due = |stored| DueFile {
            number: 0,
            is_again: true,
            was_unreachable: true,
            bytes_max: u64::MAX,
            stored,
        };
        bad.map(due).collect()
    }

    /// Sees to it that the next file, if there is one, is at hand.
    fn fetch(&mut self, state: &mut ScrubState<'_, '_>) -> Result<()> {
        loop {
            if self.page.is_empty() && !self.is_fetched {
                self.page = state.recorder.catalog().scrub_queue().page(self.after)?.into();
                self.is_fetched = self.page.is_empty();
                self.after = self.page.back().map_or(self.after, |last| last.number);
            }
            let report = state.recorder.report();
            self.page.retain(|due| !report.has_reported_bad(due.stored.path()));
            if !self.page.is_empty() || self.is_fetched {
                return Ok(());
            }
        }
    }
}
