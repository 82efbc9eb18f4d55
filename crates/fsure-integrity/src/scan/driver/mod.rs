//! Drives the stages: takes paths from the source, plans them, sends requests to the readers,
//! evaluates what they bring back and hands results to the recorder. Values go between the
//! stages by way of this thread alone; what a run remembers between two paths (names that wait,
//! hard links, edits that are held) are plain objects that it owns.

mod paths;
mod record_lookup;

use std::rc::Rc;
use std::time::{Duration, Instant};

use fsure_os::device::DeviceClass;
use fsure_os::{Kind, Stat};

use super::candidate::Candidate;
use super::entry_builder::{EntryBuilder, granularity_ns};
use super::evaluate::{self, Evaluation, ReadResult};
use super::hard_links::HardLinkCache;
use super::held_edits::HeldEdits;
use super::merge::{NextPath, ScrubTurn};
use super::mounted_over;
use super::moves::MoveTracker;
use super::name_alias::FolderCache;
use super::part_planner::PartPlanner;
use super::partial_read::PartialRead;
use super::path_result::PathResult;
use super::path_source::{PathSource, ScopeMerges};
use super::progress_estimate::{Estimate, Remaining, judges_all};
use super::read_queue::{PendingRead, ReadQueue};
use super::read_request::{ReadContent, ReadOutcome};
use super::reader_context::ReadCounters;
use super::reader_pool::{AbandonedRead, IN_FLIGHT_MAX, Pool};
use super::reader_thread::ReaderEvent;
use super::result_recorder::ResultRecorder;
use super::scrub_queue::{ScrubQueue, ScrubState};
use super::verified_sequence::SequencePlace;
use super::{Purpose, ScanPlan};
use crate::catalog::{Catalog, Claims, RecheckPriority, StoredRow, UnfinishedBlocks};
use crate::model::{Basis, Entry, Evidence, Outcome, Progress, ScanMonitor, StopReason, Verdict};
use crate::tree::WalkOptions;
use fsure_core::{RelPath, Result, timeout_error};
use paths::FolderQueue;
use record_lookup::RecordLookup;

/// Longest time that readers may take to hand over what they have when a scrub ends.
const READER_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Paths taken before the clock, the readers and the stop request are checked,
/// which together cost as much as a path of which nothing has changed.
const PATHS_AT_ONCE: usize = 64;

/// Most attempts to read a file that changes while it is read.
const ATTEMPTS_MAX: u32 = 3;

/// Availability of further paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Availability {
    Now,
    /// The storage has not responded yet, and was waited for a moment.
    Later,
    /// The files under way have to come back first.
    AfterReads,
    None,
}

/// A run under way.
pub(super) struct ScanDriver<'a> {
    plan: &'a ScanPlan,
    monitor: &'a dyn ScanMonitor,
    source: PathSource,
    /// True if the source is at its end, and what is left are names that wait.
    are_names_known: bool,
    pool: Pool,
    reads: ReadQueue<'a>,
    recorder: ResultRecorder<'a>,
    entries: EntryBuilder,
    moves: MoveTracker,
    links: HardLinkCache,
    held_edits: HeldEdits,
    folders: FolderQueue,
    listed: FolderCache,
    part_planner: PartPlanner,
    /// The turn of the file that is taken now.
    turn: ScrubTurn,
    /// The place among the recorded files of the path that is taken now, until it is read.
    sequence_place: Option<SequencePlace>,
    /// The part of the record that is left, if all of it is judged.
    remaining: Option<Remaining>,
    meter: &'a ReadCounters,
    estimate: &'a Estimate,
    reported: Instant,
}

impl<'a> ScanDriver<'a> {
    pub(super) fn new(
        plan: &'a ScanPlan,
        catalog: &'a mut Catalog,
        monitor: &'a dyn ScanMonitor,
        (meter, estimate): (&'a ReadCounters, &'a Estimate),
        mut pool: Pool,
    ) -> Result<Self> {
        let ending = pool.ending();
        let source = source_of(plan, catalog, &mut pool)?;
        let recorder = ResultRecorder::new(plan, catalog, monitor);
        Ok(Self {
            plan,
            monitor,
            source,
            are_names_known: false,
            pool,
            reads: ReadQueue::new(plan, ending),
            entries: EntryBuilder::default(),
            moves: MoveTracker::new(recorder.catalog(), plan.scrub.is_none())?,
            links: HardLinkCache::default(),
            held_edits: HeldEdits::default(),
            folders: FolderQueue::default(),
            listed: FolderCache::default(),
            part_planner: PartPlanner::new(plan.scrub.as_ref(), recorder.time().now_s()),
            turn: ScrubTurn { is_again: false, bytes_max: u64::MAX },
            sequence_place: None,
            remaining: judges_all(plan).then(|| Remaining::of(recorder.catalog().bytes())),
            recorder,
            meter,
            estimate,
            reported: Instant::now(),
        })
    }

    /// Runs to the end, and returns the outcome.
    pub(super) fn finish(mut self) -> Result<Outcome> {
        let result = self.run().and_then(|()| self.collect_late_results());
        let result = self.recorder.survive_end(result);
        // Whatever happened, the readers must not go on.
        self.pool.close();
        let claims: Option<Claims> = self.source.claims();
        result.and_then(|()| self.recorder.finish(claims))
    }

    fn run(&mut self) -> Result<()> {
        // A run that writes checks the record before its first write. Without a lock, another
        // process may be writing: the earlier, the less.
        let is_verify = self.plan.purpose == Purpose::Verify;
        if self.plan.scrub.is_some() || is_verify && !self.plan.may_write {
            self.recorder.precheck_once()?;
        }
        self.begin_scrub()?;
        self.drive_until_idle()?;
        // What is written from here on may be of a path in one of them.
        self.recorder.write_ranges()?;
        // Before a name that waits is reported as new: its row may be the one that is lost.
        if is_verify && !self.is_halted() && !self.recorder.has_shown_all() {
            self.recorder.precheck_once()?;
        }
        if !self.is_halted() && self.finish_walk()? {
            self.are_names_known = true;
            self.drive_until_idle()?;
        }
        if !self.is_halted() && self.finish_held_edits()? {
            self.drive_until_idle()?;
        }
        if !self.is_halted() {
            self.finish_deferred()?;
        }
        // A run that wrote has checked its record before. One that did not has
        // usually fetched every row by now; a row that no page shows is damaged
        // or outside of the scope, and only the whole check tells which.
        if !self.is_halted() {
            match self.recorder.has_shown_all() {
                false => self.recorder.precheck_once().map(|_| ())?,
                true => self.recorder.check_pages_once()?,
            }
        }
        Ok(())
    }

    fn begin_scrub(&mut self) -> Result<()> {
        let Some(rules) = self.plan.scrub.as_ref().filter(|_| !self.recorder.is_stopped()) else {
            return Ok(());
        };
        let (source, mut state) = self.source_and_state();
        if let PathSource::Due(queue) = source {
            let bytes = queue.begin(rules, &mut state)?;
            self.estimate.add(bytes);
            self.estimate.finish();
        }
        Ok(())
    }

    fn source_and_state(&mut self) -> (&mut PathSource, ScrubState<'_, 'a>) {
        let state = ScrubState {
            plan: self.plan,
            recorder: &mut self.recorder,
            reads: &mut self.reads,
            entries: &mut self.entries,
            part_planner: self.part_planner,
        };
        (&mut self.source, state)
    }

    /// Takes all names there are for now, and what the readers bring of them.
    fn drive_until_idle(&mut self) -> Result<()> {
        let mut more = Availability::Now;
        while more != Availability::None || self.reads.in_flight() > 0 {
            if self.is_halted() {
                return Ok(());
            }
            while more != Availability::None
                && self.reads.in_flight() < IN_FLIGHT_MAX
                && !self.is_report_due()
            {
                more = self.take_batch()?;
                self.send_requests(false)?;
                if self.is_halted() {
                    return Ok(());
                }
                if more == Availability::AfterReads {
                    break;
                }
                while let Ok(event) = self.pool.events.try_recv() {
                    self.handle_event(event)?;
                }
            }
            // Nothing more will come by to be sorted in among them.
            self.send_requests(true)?;
            self.report_progress()?;
            self.recorder.commit_if_due()?;
            let is_full = self.reads.in_flight() >= IN_FLIGHT_MAX;
            let has_no_more = matches!(more, Availability::None | Availability::AfterReads);
            let must_wait = self.reads.in_flight() > 0 && (has_no_more || is_full);
            let wait = self.reads.wait(Duration::from_millis(100));
            if must_wait && let Ok(event) = self.pool.events.recv_timeout(wait) {
                self.handle_event(event)?;
            }
        }
        Ok(())
    }

    /// Takes the next few paths.
    fn take_batch(&mut self) -> Result<Availability> {
        for _ in 0..PATHS_AT_ONCE {
            if self.are_names_known {
                if !self.take_deferred()? {
                    return Ok(Availability::None);
                }
            } else {
                let (source, mut state) = self.source_and_state();
                match source.next(&mut state)? {
                    NextPath::Path(path) => self.take_path(path)?,
                    NextPath::Later => return Ok(Availability::Later),
                    NextPath::AfterReads => return Ok(Availability::AfterReads),
                    NextPath::None => return Ok(Availability::None),
                }
            }
            if self.recorder.is_stopped() || self.reads.in_flight() >= IN_FLIGHT_MAX {
                break;
            }
        }
        Ok(Availability::Now)
    }

    fn send_requests(&mut self, all: bool) -> Result<()> {
        self.pool.send(self.reads.due_requests(), all)
    }

    fn handle_event(&mut self, event: ReaderEvent) -> Result<()> {
        match event {
            ReaderEvent::Part(id, stat, blocks) => self.store_partial_blocks(id, &stat, &blocks)?,
            ReaderEvent::Done(answers) => {
                for (request, outcome) in answers {
                    self.handle_outcome(request.id, outcome)?;
                    if self.recorder.is_stopped() {
                        break;
                    }
                }
            }
            ReaderEvent::Unable(error) => return Err(error),
        }
        self.send_requests(false)
    }

    /// Takes what was read until a scrub came to its end: it is as good as
    /// what was read before, and its time is spent.
    fn collect_late_results(&mut self) -> Result<()> {
        if self.plan.scrub.is_none() || !self.recorder.is_cut_short() {
            return Ok(());
        }
        self.meter.stop();
        let until = Instant::now() + READER_DRAIN_TIMEOUT;
        while self.reads.awaits_readers()
            && let Ok(event) = self.pool.events.recv_deadline(until)
        {
            match event {
                ReaderEvent::Part(id, stat, blocks) => {
                    self.store_partial_blocks(id, &stat, &blocks)?;
                }
                ReaderEvent::Done(answers) => {
                    for (request, outcome) in answers {
                        self.handle_outcome(request.id, outcome)?;
                    }
                }
                ReaderEvent::Unable(error) => return Err(error),
            }
        }
        let left = self.reads.take();
        left.values().try_for_each(|pending| self.note_undecided(pending))
    }

    /// Takes what a reader brought of a file.
    fn handle_outcome(&mut self, id: u64, outcome: ReadOutcome) -> Result<()> {
        let Some(pending) = self.reads.answer(id)? else { return Ok(()) };
        match outcome {
            ReadOutcome::Read(content) => {
                let content = Rc::from(content);
                self.share_with_hard_links(&pending, Some(&content))?;
                self.evaluate(id, pending, content)
            }
            ReadOutcome::Stopped => self.note_unfinished(&pending, None),
            ReadOutcome::CutOff(begun_ns) => self.note_unfinished(&pending, Some(begun_ns)),
            failed => {
                self.share_with_hard_links(&pending, None)?;
                self.handle_failure(id, pending, failed)
            }
        }
    }

    /// Gives a content to the other names of its inode that wait for it, or,
    /// without one, has each of them read.
    fn share_with_hard_links(
        &mut self,
        pending: &PendingRead,
        content: Option<&Rc<ReadContent>>,
    ) -> Result<()> {
        let Some(key) = pending.link.filter(|_| pending.first.is_none()) else {
            return Ok(());
        };
        for id in self.links.finish(&key, content) {
            let Some(mut other) = self.reads.remove(id) else {
                continue;
            };
            match content {
                Some(content) => self.evaluate(id, other, Rc::clone(content))?,
                None => {
                    other.link = None;
                    self.reads.push(id, other, Vec::new(), Vec::new());
                }
            }
        }
        Ok(())
    }

    /// Evaluates a content that was read of a file, and does what that says.
    fn evaluate(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        content: Rc<ReadContent>,
    ) -> Result<()> {
        if !content.stat.is_unchanged_from(&pending.file.stat) {
            if pending.part.is_some() {
                // What was read of it earlier was read of another state.
                return self.handle_failure(id, pending, ReadOutcome::Changed);
            }
            pending.file = self.take_again(pending.file, content.stat.clone())?;
        }
        let mut lookup = RecordLookup { plan: self.plan, recorder: &mut self.recorder };
        match evaluate::evaluate(self.plan.is_list, pending, content, &mut lookup)? {
            Evaluation::Done(read) => self.finish_read(read),
            Evaluation::Changed(pending) => self.handle_failure(id, pending, ReadOutcome::Changed),
            Evaluation::ReadAgain(mut pending) => {
                self.recorder.end_range_at(pending.file.sequence_place.take());
                self.read_again(id, pending);
                Ok(())
            }
            Evaluation::Hold(mut pending) => {
                self.recorder.end_range_at(pending.file.sequence_place.take());
                self.held_edits.push(id, pending);
                match self.held_edits.is_full() {
                    true => self.decide_held_edits(),
                    false => Ok(()),
                }
            }
        }
    }

    /// Has the blocks of a file read again that differed at its first reading.
    fn read_again(&mut self, id: u64, pending: Box<PendingRead>) {
        let blocks = pending.requested_blocks();
        self.reads.push(id, pending, blocks, Vec::new());
    }

    /// Decides the meaning of other dates, and gives the edits that wait their
    /// verdict. Returns true if some of them are read a second time.
    fn finish_held_edits(&mut self) -> Result<bool> {
        if self.held_edits.is_empty() {
            return Ok(false);
        }
        self.decide_held_edits()?;
        Ok(self.reads.in_flight() > 0)
    }

    fn decide_held_edits(&mut self) -> Result<()> {
        let held = self.held_edits.take();
        self.recorder.mtimes_mut().decide(held.len() as u64);
        for (id, pending) in held {
            if self.recorder.mtimes().explains_nothing() {
                // Nothing is reported as damaged after one reading.
                self.read_again(id, pending);
                continue;
            }
            let lookup = RecordLookup { plan: self.plan, recorder: &mut self.recorder };
            if let Some(read) = evaluate::finish_held_edit(pending, &lookup) {
                self.finish_read(read)?;
            }
        }
        Ok(())
    }

    /// Finishes a file that was read: at once, or with those that may be found to have moved.
    fn finish_read(&mut self, read: ReadResult) -> Result<()> {
        let ReadResult { mut result, evidence, part } = read;
        if let Some(part) = part {
            return self.finish_part(part, result, evidence);
        }
        let content = result.content.as_ref().filter(|_| result.unreadable.is_empty());
        let (Verdict::New, Some(content), Some(entry)) = (result.verdict, content, &result.entry)
        else {
            return self.finish_path(result);
        };
        let key = self.moves.content_key(entry, &content.digests);
        let (Some(key), Some(_)) = (key, self.moves.wants(entry)?) else {
            return self.finish_path(result);
        };
        let Some(is_recorded) = self.recorder.write_and_count(&mut result)? else { return Ok(()) };
        self.moves.defer_content(&result.path, &key, is_recorded)
    }

    /// Finishes a file of which some blocks were read. One that is well so far
    /// has no verdict before all of it is.
    fn finish_part(
        &mut self,
        mut part: PartialRead,
        mut result: PathResult,
        evidence: Evidence,
    ) -> Result<()> {
        let is_well = matches!(result.verdict, Verdict::Ok | Verdict::Touched);
        // What came only at a second attempt comes by again.
        let is_at_once = evidence != Evidence::SameOnSecondRead;
        if let Some(content) = result.content.as_ref().filter(|_| is_at_once) {
            part.add_content(content);
        }
        if is_well && part.is_complete() {
            result.verified_s = part.oldest_s();
            return self.recorder.finish_path(result);
        }
        if RecheckPriority::of(result.verdict) == Some(RecheckPriority::ByAge) {
            // What is edited is read as a whole in its next turn.
            part.forget_verified();
        }
        if let Some(entry) = &result.entry {
            self.recorder.keep_parts(&result.path, entry, part.blake3(), part.verified())?;
        }
        if !is_well {
            return self.recorder.finish_path(result);
        }
        self.note_partly(&part, result.size());
        Ok(())
    }

    /// Finishes a path, and reports if its name mismatch leaves it in doubt.
    fn finish_path(&mut self, mut result: PathResult) -> Result<()> {
        self.moves.flag_ambiguous_name(&mut result)?;
        self.recorder.finish_path(result)
    }

    /// Handles a file of which no content was read.
    fn handle_failure(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        failed: ReadOutcome,
    ) -> Result<()> {
        self.recorder.end_range_at(pending.file.sequence_place.take());
        if !matches!(failed, ReadOutcome::Changed) && pending.first.is_none() {
            // Nothing of it was read.
            self.reads.refund(&pending);
        }
        match failed {
            ReadOutcome::Changed
                if pending.attempt + 1 < ATTEMPTS_MAX
                    && pending.file.stat.size <= self.reads.budget().left() =>
            {
                pending.first = None;
                pending.link = None;
                pending.attempt += 1;
                pending.is_retry = true;
                if pending.part.take().is_some() {
                    return self.retry_part(pending);
                }
                self.reads.push(id, pending, Vec::new(), Vec::new());
                Ok(())
            }
            ReadOutcome::Changed => self.finish_changed(pending),
            ReadOutcome::Gone if self.is_back(&pending.file) => {
                // Renamed away and back: an attempt as any other, or a name that
                // comes and goes all the time would be read without end.
                self.handle_failure(id, pending, ReadOutcome::Changed)
            }
            ReadOutcome::Gone => {
                // Between the walk and the reading; the record decides.
                self.take_missing(pending.file.path, pending.file.stored)
            }
            ReadOutcome::Denied(error) => {
                self.finish_unread(pending.file, Evidence::Denied, Some(error.to_string()))
            }
            ReadOutcome::Unopened(error) | ReadOutcome::NoMeans(error) => {
                let evidence = Evidence::Partial { rest_differs: false };
                self.finish_unread(pending.file, evidence, Some(error.to_string()))
            }
            ReadOutcome::Read(_) | ReadOutcome::Stopped | ReadOutcome::CutOff(_) => {
                unreachable!("no failures")
            }
        }
    }

    /// Returns true if a file that was gone when it was to be read is there
    /// again under the name that decides about it.
    fn is_back(&mut self, file: &Candidate) -> bool {
        let path = &file.path;
        let decides = file.stored.as_ref().is_none_or(|stored| stored.path() == path);
        let stat = self.plan.root.stat(path.as_bytes()).ok().filter(|_| decides);
        stat.is_some_and(|stat| {
            stat.kind == Kind::File && !self.listed.is_alias(&self.plan.root, path, &stat)
        })
    }

    /// Finishes a file that changed at every attempt: busy, or not a file any more.
    fn finish_changed(&mut self, pending: Box<PendingRead>) -> Result<()> {
        let file = pending.file;
        match self.plan.root.stat(file.path.as_bytes()) {
            Ok(stat) if stat.kind != Kind::File => {
                self.take_entry(file.path, file.stored, &stat, file.device)
            }
            _ => {
                let reason = match pending.attempt + 1 {
                    1 => "it changed while it was read, and the budget is used up".to_owned(),
                    attempts => format!("it changed during each of {attempts} attempts"),
                };
                self.finish_unread(file, Evidence::Busy, Some(reason))
            }
        }
    }

    fn finish_unread(
        &mut self,
        file: Candidate,
        evidence: Evidence,
        reason: Option<String>,
    ) -> Result<()> {
        let rules = file.date_rules(self.recorder.mtimes().explains_nothing());
        let verdict = file.judge(evidence, rules);
        let mut result = PathResult::of(file, verdict);
        if matches!(evidence, Evidence::Partial { .. }) {
            result.unreadable = std::iter::once(0..result.size()).collect();
        }
        result.reason = reason;
        result.basis = Basis::Content;
        self.finish_path(result)
    }

    /// Has a file read again of which not all was to be read when it changed.
    fn retry_part(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        if let Ok(stat) = self.plan.root.stat(pending.file.path.as_bytes()) {
            pending.file = self.take_again(pending.file, stat)?;
        }
        self.turn = ScrubTurn { is_again: pending.is_again, bytes_max: u64::MAX };
        self.read_due(pending)
    }

    /// Keeps the values of a part of a large file that is being read.
    fn store_partial_blocks(
        &mut self,
        id: u64,
        stat: &Stat,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        let Some(pending) = self.reads.get_mut(id) else { return Ok(()) };
        let Some(part) = &mut pending.part else {
            let (path, device) = (pending.file.path.clone(), pending.file.device);
            let entry = self.entry(&path, stat, device)?;
            return self.recorder.keep_unfinished(&path, &entry, blocks);
        };
        if !stat.is_unchanged_from(&pending.file.stat) || pending.first.is_some() {
            return Ok(());
        }
        part.add_unfinished(blocks);
        let (path, entry) = (&pending.file.path, &pending.file.entry);
        self.recorder.keep_parts(path, entry, part.blake3(), part.verified())
    }

    /// Notes how far the reading of a file came when the run came to its end.
    /// One that can only be read as a whole, and took most of the time, comes
    /// last from now on, or it would keep all others from their turn.
    fn note_unfinished(&mut self, pending: &PendingRead, begun_ns: Option<i64>) -> Result<()> {
        if pending.first.is_some() {
            return self.note_undecided(pending);
        }
        if let Some(part) = &pending.part {
            self.note_partly(part, pending.file.stat.size);
            return Ok(());
        }
        let Some(begun_ns) = begun_ns else { return Ok(()) };
        let spent_ns = self.plan.clock.now_ns().saturating_sub(begun_ns).max(0).unsigned_abs();
        let deadline = self.reads.budget().deadline();
        if deadline.is_over() && deadline.is_half(Duration::from_nanos(spent_ns)) {
            self.recorder.keep_cut_off(&pending.file.path)?;
        }
        Ok(())
    }

    fn note_partly(&mut self, part: &PartialRead, size: u64) {
        let left = part.left_bytes(size);
        if left < size {
            let scrubbed = self.recorder.report_mut().scrub_mut();
            scrubbed.partly_files += 1;
            scrubbed.partly_bytes += size - left;
        }
    }

    /// Notes a file that differed at a first reading when the run came to its
    /// end: it comes first the next time, and is not reported as OK now.
    fn note_undecided(&mut self, pending: &PendingRead) -> Result<()> {
        let (Some(_), Some(_)) = (&pending.first, &self.plan.scrub) else { return Ok(()) };
        self.recorder.report_mut().scrub_mut().undecided_files += 1;
        self.recorder.keep_undecided(&pending.file.path)
    }

    /// Gives up the files for which the storage does not respond.
    fn check_reader_health(&mut self) -> Result<()> {
        let timeout = self.plan.effort.timeout;
        let is_silent = self.source.is_silent();
        let Some(lost) = self.pool.look_after()?.filter(|_| !is_silent) else {
            self.recorder.report_mut().stop(StopReason::StorageSilent(timeout));
            return Ok(());
        };
        for lost in lost {
            match lost {
                AbandonedRead::One(id) => self.abandon(id, timeout)?,
                AbandonedRead::Among(ids) => ids.into_iter().for_each(|id| self.retry_alone(id)),
            }
        }
        Ok(())
    }

    /// Has a file read by itself: a reader that had it in hand with others got stuck at one
    /// of them.
    fn retry_alone(&mut self, id: u64) {
        let Some(mut pending) = self.reads.give_up(id) else { return };
        pending.alone = true;
        let blocks = pending.requested_blocks();
        self.reads.refund(&pending);
        let id = self.reads.new_id();
        self.reads.push(id, pending, blocks, Vec::new());
    }

    /// Gives up a file for which the storage does not respond.
    fn abandon(&mut self, id: u64, timeout: Duration) -> Result<()> {
        let Some(pending) = self.reads.give_up(id) else { return Ok(()) };
        let mut all = vec![(id, pending)];
        // Its other names would only get stuck in turn.
        if let Some(key) = all[0].1.link.filter(|_| all[0].1.first.is_none()) {
            let waiting = self.links.give_up(&key);
            all.extend(waiting.iter().filter_map(|id| Some((*id, self.reads.remove(*id)?))));
        }
        for (id, pending) in all {
            self.handle_failure(id, pending, ReadOutcome::Unopened(timeout_error(timeout)))?;
        }
        Ok(())
    }

    /// Returns true if the run has to end here, by decision or on request.
    fn is_halted(&mut self) -> bool {
        if let Some(code) = self.monitor.stop_requested() {
            self.recorder.report_mut().stop(StopReason::Interrupted(code));
        }
        if self.reads.budget().deadline().is_over() {
            self.recorder.end_in_time();
        }
        self.recorder.is_stopped()
    }

    fn is_report_due(&self) -> bool {
        self.reported.elapsed() >= Duration::from_millis(100)
    }

    fn report_progress(&mut self) -> Result<()> {
        if self.is_report_due() {
            self.check_reader_health()?;
            self.reported = Instant::now();
            let bytes_hashed = self.meter.hashed();
            let (files, bytes_judged) = self.recorder.judged(bytes_hashed);
            let (estimate, total_is_known) = self.estimate.total();
            let bytes_total = self.bytes_total().unwrap_or(estimate);
            let progress = Progress {
                files,
                bytes_judged,
                bytes_hashed,
                bytes_total: bytes_total.max(bytes_judged),
                total_is_known,
                time_left: self.reads.budget().deadline().left(),
            };
            self.monitor.progress(&progress, self.reads.current());
        }
        Ok(())
    }

    /// Returns the bytes to judge in all; `None` if this run knows no better
    /// than the record does.
    fn bytes_total(&self) -> Option<u64> {
        let outcome = self.recorder.report().outcome();
        let left = if let Some(scrub) = &outcome.scrub {
            let left = self.reads.budget().left();
            scrub.left_bytes().min(left.saturating_add(self.reads.charged_under_way()))
        } else {
            self.remaining.as_ref()?.bytes().saturating_add(self.reads.bytes_under_way())
        };
        Some(outcome.bytes_judged.saturating_add(left))
    }

    fn entry(&mut self, path: &RelPath, stat: &Stat, device: u64) -> Result<Entry> {
        self.entries.entry(&self.plan.root, self.recorder.catalog_mut(), path, stat, device)
    }

    /// Takes another stat of a file.
    fn take_again(&mut self, file: Candidate, stat: Stat) -> Result<Candidate> {
        let entry = self.entry(&file.path, &stat, file.device)?;
        let sequence_place = file.sequence_place;
        let mut again = self.candidate(file.path, file.stored, entry, (stat, file.device));
        again.sequence_place = sequence_place;
        Ok(again)
    }

    fn candidate(
        &self,
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Entry,
        place: (Stat, u64),
    ) -> Candidate {
        let granularity_ns = granularity_ns(self.recorder.catalog(), stored.as_ref(), &entry);
        Candidate::new(path, stored, entry, place, granularity_ns)
    }
}

/// Returns the paths of a run.
fn source_of(plan: &ScanPlan, catalog: &mut Catalog, pool: &mut Pool) -> Result<PathSource> {
    let mounted_over = mounted_over::folders(plan, catalog)?;
    if plan.scrub.is_some() {
        return Ok(PathSource::Due(Box::new(ScrubQueue::new(plan, mounted_over)?)));
    }
    let mut options = walk_options(plan, pool);
    options.borders.mounted_over = mounted_over;
    Ok(PathSource::All(Box::new(ScopeMerges::start(plan, options)?)))
}

/// A disk with heads is not made to jump between folders, either.
fn walk_options(plan: &ScanPlan, pool: &mut Pool) -> WalkOptions {
    let around = plan.scopes.around();
    let stat = plan.root.stat(around.as_bytes());
    let is_folder = stat.is_ok_and(|stat| stat.kind == Kind::Folder);
    let folder = if is_folder { around } else { RelPath::root() };
    let mut options = plan.walk.clone();
    if matches!(pool.class(&folder), DeviceClass::Rotational(_)) {
        options.listers = 1;
    }
    options
}
