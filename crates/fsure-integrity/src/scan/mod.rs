//! Floor 3: the pipeline. Walk and record are merged in the order of paths;
//! what has to be read goes to the readers; what comes back is judged, reported
//! and recorded.
//!
//! One thread decides (this file and its neighbours `evaluator` and `result_recorder`); the
//! readers (`reader_pool`, `reader_thread`, `file_read`, `range_read`) read and hash and decide
//! nothing.

mod apply_update_rules;
mod commits;
mod compare_blocks;
mod device_queue;
mod entry_builder;
mod evaluator;
mod excluded;
mod file_read;
mod future_changes;
mod hard_links;
mod held_edits;
mod io_options;
mod known_damage;
mod merge;
mod metadata;
mod missing_files;
mod mounted_over;
mod moves;
mod mtime_reliability;
mod name_alias;
mod part_planner;
mod partial_read;
mod path_result;
mod planner;
mod precheck;
mod progress_estimate;
mod range_read;
mod read_queue;
mod read_request;
mod reader_context;
mod reader_pool;
mod reader_thread;
mod result_recorder;
mod retries;
mod run_report;
mod run_time;
mod scrub_budget;
mod scrub_queue;
mod seek_limiter;
mod segments;
mod signed_excludes;
mod size_filter;
mod stat_thread;
mod tombstones;
mod update_rules;
mod watchdog;

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use fsure_os::device::DeviceClass;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

use crate::catalog::{Catalog, Claims};
use crate::model::{MetadataFields, Outcome, Progress, ScanMonitor, StopReason};
use crate::tree::{Walk, WalkOptions};
pub use compare_blocks::are_proven;
pub use entry_builder::EntryBuilder;
use evaluator::Evaluator;
use fsure_core::{Clock, RelPath, Result};
pub use io_options::{DEPTH_MAX, IoOptions, RateLimiter, THREADS_MAX};
use merge::Merge;
use progress_estimate::Estimate;
use reader_context::ReadCounters;
use reader_pool::{AbandonedRead, IN_FLIGHT_MAX, Pool};
use reader_thread::ReaderEvent;
use result_recorder::ResultRecorder;
use scrub_budget::Deadline;
pub use scrub_budget::{Budget, ScrubRules};
use scrub_queue::{ScrubNext, ScrubQueue};
pub use size_filter::SizeFilter;
pub use update_rules::{Accept, Forget, TOMBSTONE_AGE, UpdateRules};

/// The purpose of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Check names, sizes and dates; read no data, write nothing.
    Status,
    /// Read everything recorded and judge it; note what was seen to be well.
    Verify,
    /// Record what is new or has changed.
    Update(UpdateRules),
}

/// The source that content is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentSource {
    /// The medium, whatever is in memory.
    Medium,
    /// Memory for files that are there as a whole, else the medium.
    Cache,
}

/// Set in `verified_s` of a record in the catalog of a list ([`ScanPlan::is_list`]) if its size
/// is the list's own: a file of another size is not as the list says, whatever its digest.
pub const LISTED_SIZE: i64 = 2;

/// A run over one root.
#[derive(Clone)]
pub struct ScanPlan {
    /// The root.
    pub root: Arc<Root>,
    /// Part of the root to walk, what to leave out, and the borders.
    pub walk: WalkOptions,
    /// Purpose of the run.
    pub purpose: Purpose,
    /// Name of the run in the history of the record.
    pub command: &'static str,
    /// Source that content is read from.
    pub reads_from: ContentSource,
    /// The best way of reading to try.
    pub first_way: ReadMode,
    /// Load that reading puts on the storage.
    pub effort: IoOptions,
    /// True if the catalog may be written.
    pub may_write: bool,
    /// True if the run is useless when the catalog cannot be written.
    pub must_write: bool,
    /// True if the outcome must include the claims of the rows that it was judged by.
    pub binds_claims: bool,
    /// True if the record is a list of files, which has no folders and no links.
    pub is_list: bool,
    /// Metadata that is compared and recorded.
    pub meta: MetadataFields,
    /// Go on although the root looks offline.
    pub force: bool,
    /// Report paths that are OK to the monitor, too.
    pub report_ok: bool,
    /// Source of the time.
    pub clock: Clock,
    /// Verify only what is due, as far as a budget goes.
    pub scrub: Option<ScrubRules>,
}

impl ScanPlan {
    /// Returns true if the scope is a single file, for which "more than half is
    /// gone" would mean nothing.
    fn is_single_file(&self) -> bool {
        let stat = self.root.stat(self.walk.scope.as_bytes());
        !self.walk.scope.is_root() && !stat.is_ok_and(|stat| stat.kind == fsure_os::Kind::Folder)
    }
}

/// Longest time that readers may take to hand over what they have when a scrub ends.
const READER_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Paths taken before the clock, the news and the stop request are checked,
/// which together cost as much as a path of which nothing has changed.
const TAKEN_AT_ONCE: usize = 64;

/// Runs the pipeline over a root and its catalog.
///
/// An error is what ends the run without a result: a pattern that makes no
/// sense, a catalog that cannot be read. Whatever is wrong with the data, and
/// a catalog that cannot be written, is in the outcome.
pub fn scan(plan: &ScanPlan, catalog: &mut Catalog, monitor: &dyn ScanMonitor) -> Result<Outcome> {
    let started = Instant::now();
    metadata::warn_unreadable_xattrs(plan.meta, monitor);
    let meter = Arc::new(ReadCounters::default());
    let estimate = Arc::new(Estimate::new(plan, catalog));
    let ending = Deadline::new(plan.scrub.as_ref(), &plan.clock);
    let mut pool = Pool::new(plan, Arc::clone(&meter), ending.clone());
    let mounted_over = mounted_over::folders(plan, catalog)?;
    let source = match &plan.scrub {
        Some(_) => PathSource::Due(Box::new(ScrubQueue::new(plan, mounted_over)?)),
        None => {
            let mut options = walk_options(plan, &mut pool);
            options.borders.mounted_over = mounted_over;
            let walk = Walk::start(Arc::clone(&plan.root), options)?;
            PathSource::All(Box::new(Merge::new(
                walk,
                &plan.walk.scope,
                plan.binds_claims.then(Claims::default),
            )))
        }
    };
    // Ends the count, whether it has begun or not, when it is dropped.
    let (_run, run_is_over) = bounded(0);
    if plan.scrub.is_none() && plan.purpose != Purpose::Status && !estimate.is_final() {
        let (plan, estimate, meter) = (plan.clone(), Arc::clone(&estimate), Arc::clone(&meter));
        let count = move || progress_estimate::count_ahead(&plan, &run_is_over, &estimate, &meter);
        // Not waited for: it might be stuck if the storage does not respond.
        // Without it the time left is not known, and that is all.
        let _ = std::thread::Builder::new().name("count".into()).spawn(count);
    }
    let mut run = ScanDriver {
        source,
        evaluator: Evaluator::new(plan, ResultRecorder::new(plan, catalog, monitor), ending)?,
        are_names_known: false,
        pool,
        plan,
        meter: &meter,
        estimate: &estimate,
        monitor,
        reported: started,
    };
    let result = run.run().and_then(|()| run.collect_late_results());
    let result = run.evaluator.recorder_mut().survive_end(result);
    // Whatever happened, the readers and the count must not go on.
    run.pool.close();
    let claims = match &mut run.source {
        PathSource::All(merge) => merge.claims(),
        PathSource::Due(_) => None,
    };
    let mut outcome = result.and_then(|()| run.evaluator.recorder_mut().finish(claims))?;
    outcome.bytes = meter.bytes_by_way();
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}

/// A disk with heads is not made to jump between folders, either.
fn walk_options(plan: &ScanPlan, pool: &mut Pool) -> WalkOptions {
    let scope = plan.root.stat(plan.walk.scope.as_bytes());
    let is_folder = scope.is_ok_and(|stat| stat.kind == fsure_os::Kind::Folder);
    let folder = if is_folder { plan.walk.scope.clone() } else { RelPath::root() };
    let mut options = plan.walk.clone();
    if matches!(pool.class(&folder), DeviceClass::Rotational(_)) {
        options.listers = 1;
    }
    options
}

/// Availability of further paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Availability {
    Now,
    /// The storage has not responded yet, and was waited for a moment.
    Later,
    /// The orders under way have to come back first.
    AfterNews,
    None,
}

/// The source of the paths.
enum PathSource {
    /// Everything there is and everything recorded.
    All(Box<Merge>),
    /// Paths that are recorded and due.
    Due(Box<ScrubQueue>),
}

struct ScanDriver<'a> {
    source: PathSource,
    /// True if the source is at its end, and what is left are names that wait.
    are_names_known: bool,
    evaluator: Evaluator<'a>,
    pool: Pool,
    plan: &'a ScanPlan,
    meter: &'a ReadCounters,
    estimate: &'a Estimate,
    monitor: &'a dyn ScanMonitor,
    reported: Instant,
}

impl ScanDriver<'_> {
    fn run(&mut self) -> Result<()> {
        if self.plan.purpose == Purpose::Verify {
            self.evaluator.recorder_mut().precheck_once()?;
        }
        if let (Some(rules), PathSource::Due(turns)) = (&self.plan.scrub, &mut self.source)
            && !self.evaluator.recorder().is_stopped()
        {
            self.estimate.add(turns.begin(rules, &self.plan.walk.scope, &mut self.evaluator)?);
            self.estimate.finish();
        }
        self.drive_until_idle()?;
        if !self.is_halted() && self.evaluator.finish_walk()? {
            self.are_names_known = true;
            self.drive_until_idle()?;
        }
        if !self.is_halted() && self.evaluator.finish_held_edits()? {
            self.drive_until_idle()?;
        }
        if !self.is_halted() {
            self.evaluator.finish_deferred()?;
        }
        // A run that wrote has checked its record before. One that did not has
        // usually fetched every row by now; a row that no page shows is damaged
        // or outside of the scope, and only the whole check tells which.
        if !self.is_halted() && !self.evaluator.recorder().catalog().has_shown_all() {
            self.evaluator.recorder_mut().precheck_once()?;
        }
        Ok(())
    }

    /// Takes all names there are for now, and what the readers say of them.
    fn drive_until_idle(&mut self) -> Result<()> {
        let mut more = Availability::Now;
        while more != Availability::None || self.evaluator.reads().in_flight() > 0 {
            if self.is_halted() {
                return Ok(());
            }
            while more != Availability::None
                && self.evaluator.reads().in_flight() < IN_FLIGHT_MAX
                && !self.is_report_due()
            {
                more = self.process_batch()?;
                self.send_orders(false)?;
                if self.is_halted() {
                    return Ok(());
                }
                if more == Availability::AfterNews {
                    break;
                }
                while let Ok(news) = self.pool.news.try_recv() {
                    self.handle_event(news)?;
                }
            }
            // Nothing more will come by to be sorted in among them.
            self.send_orders(true)?;
            self.report_progress()?;
            self.evaluator.recorder_mut().commit_if_due()?;
            let is_full = self.evaluator.reads().in_flight() >= IN_FLIGHT_MAX;
            let has_no_more = matches!(more, Availability::None | Availability::AfterNews);
            let must_wait = self.evaluator.reads().in_flight() > 0 && (has_no_more || is_full);
            let wait = self.evaluator.reads().wait(Duration::from_millis(100));
            if must_wait && let Ok(news) = self.pool.news.recv_timeout(wait) {
                self.handle_event(news)?;
            }
        }
        Ok(())
    }

    /// Takes the next few paths.
    fn process_batch(&mut self) -> Result<Availability> {
        for _ in 0..TAKEN_AT_ONCE {
            if self.are_names_known {
                if !self.evaluator.process_deferred()? {
                    return Ok(Availability::None);
                }
            } else {
                match self.next_case()? {
                    ScrubNext::Case(case) => self.evaluator.process_path(case)?,
                    ScrubNext::Later => return Ok(Availability::Later),
                    ScrubNext::AfterNews => return Ok(Availability::AfterNews),
                    ScrubNext::None => return Ok(Availability::None),
                }
            }
            if self.evaluator.recorder().is_stopped()
                || self.evaluator.reads().in_flight() >= IN_FLIGHT_MAX
            {
                break;
            }
        }
        Ok(Availability::Now)
    }

    fn next_case(&mut self) -> Result<ScrubNext> {
        match &mut self.source {
            PathSource::Due(turns) => turns.next(&mut self.evaluator),
            PathSource::All(merge) => {
                Ok(match merge.next(self.evaluator.recorder_mut().catalog_mut())? {
                    Poll::Ready(Some(case)) => ScrubNext::Case(case),
                    Poll::Ready(None) => ScrubNext::None,
                    Poll::Pending => ScrubNext::Later,
                })
            }
        }
    }

    /// Takes what was read until a scrub came to its end: it is as good as
    /// what was read before, and its time is spent.
    fn collect_late_results(&mut self) -> Result<()> {
        if self.plan.scrub.is_none() || !self.evaluator.recorder().is_cut_short() {
            return Ok(());
        }
        self.meter.stop();
        let until = Instant::now() + READER_DRAIN_TIMEOUT;
        while self.evaluator.reads().awaits_readers()
            && let Ok(news) = self.pool.news.recv_deadline(until)
        {
            match news {
                ReaderEvent::Part(id, stat, blocks) => {
                    self.evaluator.store_partial_blocks(id, &stat, &blocks)?;
                }
                ReaderEvent::Done(answers) => {
                    for (order, reading) in answers {
                        self.evaluator.handle_read_outcome(order, reading)?;
                    }
                }
                ReaderEvent::Unable(error) => return Err(error),
            }
        }
        self.evaluator.note_all_undecided()
    }

    fn handle_event(&mut self, news: ReaderEvent) -> Result<()> {
        match news {
            ReaderEvent::Part(id, stat, blocks) => {
                self.evaluator.store_partial_blocks(id, &stat, &blocks)?;
            }
            ReaderEvent::Done(answers) => {
                for (order, reading) in answers {
                    self.evaluator.handle_read_outcome(order, reading)?;
                    if self.evaluator.recorder().is_stopped() {
                        break;
                    }
                }
            }
            ReaderEvent::Unable(error) => return Err(error),
        }
        self.send_orders(false)
    }

    fn send_orders(&mut self, all: bool) -> Result<()> {
        self.pool.send(self.evaluator.reads_mut().due_orders(), all)
    }

    /// Gives up the files for which the storage does not respond.
    fn check_reader_health(&mut self) -> Result<()> {
        let timeout = self.plan.effort.timeout;
        let is_silent = match &mut self.source {
            PathSource::All(merge) => merge.is_silent(),
            PathSource::Due(turns) => turns.is_silent(),
        };
        let Some(lost) = self.pool.look_after()?.filter(|_| !is_silent) else {
            self.evaluator.recorder_mut().report_mut().stop(StopReason::StorageSilent(timeout));
            return Ok(());
        };
        for lost in lost {
            match lost {
                AbandonedRead::One(id) => self.evaluator.abandon(id, timeout)?,
                AbandonedRead::Among(ids) => {
                    for id in ids {
                        self.evaluator.retry_alone(id);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if the run has to end here, by decision or on request.
    fn is_halted(&mut self) -> bool {
        if let Some(code) = self.monitor.stop_requested() {
            self.evaluator.recorder_mut().report_mut().stop(StopReason::Interrupted(code));
        }
        if self.evaluator.reads().budget().deadline().is_over() {
            self.evaluator.recorder_mut().end_in_time();
        }
        self.evaluator.recorder().is_stopped()
    }

    fn is_report_due(&self) -> bool {
        self.reported.elapsed() >= Duration::from_millis(100)
    }

    fn report_progress(&mut self) -> Result<()> {
        if self.is_report_due() {
            self.check_reader_health()?;
            self.reported = Instant::now();
            let bytes_hashed = self.meter.hashed();
            let (files, bytes_judged) = self.evaluator.recorder().judged(bytes_hashed);
            let (estimate, total_is_known) = self.estimate.total();
            let bytes_total = self.evaluator.bytes_total().unwrap_or(estimate);
            let progress = Progress {
                files,
                bytes_judged,
                bytes_hashed,
                bytes_total: bytes_total.max(bytes_judged),
                total_is_known,
                time_left: self.evaluator.reads().budget().deadline().left(),
            };
            self.monitor.progress(&progress, self.evaluator.reads().current());
        }
        Ok(())
    }
}
