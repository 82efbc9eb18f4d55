//! The source of the cases of a scrub: the files that are due, the oldest
//! first, as far as the budget goes. They are chosen in that order, a chunk at
//! a time, and each chunk is read in the order of the disk.

use std::collections::VecDeque;
use std::task::Poll;

use super::evaluator::{Evaluator, ScrubTurn};
use super::merge::MergedPath;
use super::part_planner::PARTS_MIN;
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

/// The next case.
// It goes from hand to hand once for each path, and is a case nearly always.
#[allow(clippy::large_enum_variant)]
pub(super) enum ScrubNext {
    Case(MergedPath),
    /// The storage has not responded yet.
    Later,
    /// The orders under way decide if there is more to spend.
    AfterNews,
    None,
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
        scope: &RelPath,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<u64> {
        let recorder = evaluator.recorder_mut();
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
        let budget = evaluator.reads_mut().budget_mut();
        if let Budget::Percent(percent) = rules.budget {
            budget.fill((due.recorded_bytes as f64 * percent / 100.0) as u64);
        }
        Ok(due.bytes.min(budget.left()))
    }

    pub(super) fn is_silent(&mut self) -> bool {
        self.looker.is_silent()
    }

    /// The next file.
    pub(super) fn next(&mut self, evaluator: &mut Evaluator<'_>) -> Result<ScrubNext> {
        loop {
            if let Some(looked) = self.chunk.next() {
                return Ok(ScrubNext::Case(self.case(looked, evaluator)?));
            }
            if self.looker.is_asked() {
                match self.looker.answer()? {
                    Poll::Ready(looked) => self.chunk = looked.into_iter(),
                    Poll::Pending => return Ok(ScrubNext::Later),
                }
                continue;
            }
            let chunk = self.next_chunk(evaluator)?;
            if !chunk.is_empty() {
                self.looker.ask(chunk);
            } else if evaluator.reads().in_flight() > 0 {
                return Ok(ScrubNext::AfterNews);
            } else {
                return Ok(ScrubNext::None);
            }
        }
    }

    fn case(&self, looked: DueStat, evaluator: &mut Evaluator<'_>) -> Result<MergedPath> {
        let DueStat { due, seen, above } = looked;
        if let Some((folder, stat)) = above {
            // So that a file that is gone is told from a disk that is.
            evaluator.entry(&folder, &stat, stat.device)?;
        }
        evaluator.begin_turn(ScrubTurn { is_again: due.is_again, bytes_max: due.bytes_max });
        let scrubbed = evaluator.recorder_mut().report_mut().scrub_mut();
        match due.is_again {
            true => scrubbed.again_files += 1,
            false => scrubbed.by_age_files += 1,
        }
        Ok(MergedPath { path: due.stored.path().clone(), stored: Some(due.stored), seen })
    }

    /// The next chunk: what fits, in the order of age. A file that does not is
    /// passed by only if it can be read as a whole or not at all.
    fn next_chunk(&mut self, evaluator: &mut Evaluator<'_>) -> Result<Vec<DueFile>> {
        let must_begin = self.was_alone && evaluator.reads().has_unsent();
        if must_begin || evaluator.reads().blocks_under_way() > BLOCKS_MAX {
            return Ok(Vec::new());
        }
        let mut chunk = self.take_bad();
        let (mut bytes, mut is_full) = (0_u64, !chunk.is_empty());
        while !is_full && chunk.len() < CHUNK_FILES && bytes < CHUNK_BYTES {
            self.fetch(evaluator)?;
            let Some(due) = self.page.front() else { break };
            let waits = self.was_again && !due.is_again;
            // A second look at what may be damaged comes before a first one at
            // anything else.
            if waits && (!chunk.is_empty() || evaluator.reads().in_flight() > 0) {
                break;
            }
            let left = evaluator.reads().budget().left().saturating_sub(bytes);
            let planner = evaluator.part_planner();
            let catalog = evaluator.recorder_mut().catalog_mut();
            let (whole, least) = planner.need(catalog, due, left)?;
            // What may take all of the time begins when it is its turn.
            let goes_alone =
                least > PARTS_MIN && evaluator.reads().budget().deadline().left().is_some();
            if goes_alone && (!chunk.is_empty() || evaluator.reads().has_unsent()) {
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
            } else if left > 0
                && (least > BLOCK || least > evaluator.reads().budget().largest_possible())
            {
                evaluator.pass_by(due.stored.path(), least);
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
    fn fetch(&mut self, evaluator: &mut Evaluator<'_>) -> Result<()> {
        loop {
            if self.page.is_empty() && !self.is_fetched {
                self.page = evaluator.recorder().catalog().scrub_queue().page(self.after)?.into();
                self.is_fetched = self.page.is_empty();
                self.after = self.page.back().map_or(self.after, |last| last.number);
            }
            let report = evaluator.recorder().report();
            self.page.retain(|due| !report.has_reported_bad(due.stored.path()));
            if !self.page.is_empty() || self.is_fetched {
                return Ok(());
            }
        }
    }
}
