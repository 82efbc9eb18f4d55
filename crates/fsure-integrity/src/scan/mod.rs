//! Floor 3: the pipeline, in five stages that pass values.
//!
//! 1. `path_source`: each path with its row and what the system says of it, in the order of paths
//!    (`merge`) or of ages (`scrub_queue`).
//! 2. `planner`: the verdict by the stat, or what has to be read.
//! 3. `reader_pool`: readers of each device, which read and hash and know no verdict.
//! 4. `evaluate`: a content beside its record: a result, or what has to be read again.
//! 5. `result_recorder`: reports, counts and writes; it alone has the catalog and the monitor.
//!
//! One thread takes a path from stage to stage (`driver`).

mod apply_update_rules;
mod candidate;
mod commits;
mod compare_blocks;
mod device_queue;
mod driver;
mod entry_builder;
mod evaluate;
mod excluded;
mod file_read;
mod file_source;
mod future_changes;
mod hard_links;
mod hash_files;
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
mod path_source;
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
#[cfg(test)]
mod stage_tests;
mod stat_thread;
mod tombstones;
#[cfg(test)]
mod tree_tests;
mod update_rules;
mod verified_sequence;
mod watchdog;
mod write_error;

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::bounded;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

use crate::catalog::{Catalog, OWN_CATALOG};
use crate::model::{Allowed, MetadataFields, Outcome, ScanMonitor, Scopes};
use crate::tree::WalkOptions;
pub use compare_blocks::are_proven;
use driver::ScanDriver;
pub use entry_builder::EntryBuilder;
pub use file_source::FileSource;
use fsure_core::{Clock, RelPath, Result};
pub use hash_files::{HashTarget, HashedFiles, hash_files};
pub use io_options::{DEPTH_MAX, IoOptions, RateLimiter, THREADS_MAX};
use progress_estimate::Estimate;
use reader_context::ReadCounters;
use reader_pool::Pool;
use scrub_budget::Deadline;
pub use scrub_budget::{Budget, ScrubRules};
pub use size_filter::SizeFilter;
pub use update_rules::{Accept, Forget, TOMBSTONE_AGE, UpdateRules};
pub(crate) use write_error::survive_write_error;

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
    /// The parts of the root to judge.
    pub scopes: Scopes,
    /// Patterns of what is left out, and the borders; it is walked scope by scope.
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
    /// States of the root in which the run goes on; here it matters that most is missing.
    pub allowed: Allowed,
    /// Report paths that are OK to the monitor, too.
    pub report_ok: bool,
    /// True if the catalog is a copy, so that nothing of what is recorded stays.
    pub is_dry_run: bool,
    /// True if recovery data are kept for the root.
    pub has_recovery_data: bool,
    /// Source of the time.
    pub clock: Clock,
    /// Verify only what is due, as far as a budget goes.
    pub scrub: Option<ScrubRules>,
}

impl ScanPlan {
    /// The plan of a run over a whole root that reads the medium by the best way, obeys no
    /// signature and writes nothing.
    pub fn new(root: Arc<Root>, purpose: Purpose) -> Self {
        let effort = IoOptions::default();
        let mut walk = WalkOptions::whole(effort.timeout);
        walk.borders.catalog_in_root = OWN_CATALOG;
        Self {
            root,
            scopes: Scopes::one(walk.scope.clone()),
            walk,
            command: match &purpose {
                Purpose::Status => "status",
                Purpose::Verify => "verify",
                Purpose::Update(rules) if rules.only_completes => "export",
                Purpose::Update(_) => "update",
            },
            must_write: matches!(purpose, Purpose::Update(_)),
            purpose,
            reads_from: ContentSource::Medium,
            first_way: ReadMode::Direct,
            effort,
            may_write: false,
            binds_claims: false,
            is_list: false,
            meta: MetadataFields::default(),
            allowed: Allowed::default(),
            report_ok: false,
            is_dry_run: false,
            has_recovery_data: false,
            clock: Clock::default(),
            scrub: None,
        }
    }

    /// Returns true if there is no folder among the scopes: for single files, "more than half
    /// is gone" would mean nothing.
    fn is_of_files(&self) -> bool {
        let is_folder = |path: &RelPath| {
            let stat = self.root.stat(path.as_bytes());
            stat.is_ok_and(|stat| stat.kind == fsure_os::Kind::Folder)
        };
        !self.scopes.is_root() && !self.scopes.iter().any(is_folder)
    }

    /// The walks over the scopes, one after the other.
    fn walks(&self) -> impl Iterator<Item = WalkOptions> {
        self.scopes.iter().map(|scope| WalkOptions { scope: scope.clone(), ..self.walk.clone() })
    }
}

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
    let pool = Pool::new(plan, Arc::clone(&meter), Deadline::new(plan.scrub.as_ref(), &plan.clock));
    let driver = ScanDriver::new(plan, catalog, monitor, (&meter, &estimate), pool)?;
    // Ends the count, whether it has begun or not, when it is dropped.
    let (_run, run_is_over) = bounded(0);
    if plan.scrub.is_none() && plan.purpose != Purpose::Status && !estimate.is_final() {
        let (plan, estimate, meter) = (plan.clone(), Arc::clone(&estimate), Arc::clone(&meter));
        let count = move || progress_estimate::count_ahead(&plan, &run_is_over, &estimate, &meter);
        // Not waited for: it might be stuck if the storage does not respond.
        // Without it the time left is not known, and that is all.
        let _ = std::thread::Builder::new().name("count".into()).spawn(count);
    }
    let mut outcome = driver.finish()?;
    outcome.bytes = meter.bytes_by_way();
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}
