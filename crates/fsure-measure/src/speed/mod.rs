//! `speed`: measures how fast a folder's storage is, each step from nothing to a
//! durable write by itself, and how far from it `verify` would be. What a figure
//! means depends on what was truly measured, so each rung reports that, and shows it
//! by the device's own counters.
//!
//! A family of rungs is a file: `memory`, `mounted`, `stream`, `small`,
//! `verifying`. Each gives its rungs to [`ladder`]; the schedule knows no more
//! of them than [`rung::Rung`].

mod cache_experiment;
mod data_pool;
mod hash_rungs;
mod io;
mod large_file;
mod memory_rungs;
mod mounted_rungs;
mod pv_rungs;
mod rung;
mod rung_choice;
mod schedule;
mod small_files;
mod verify_rung;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fsure_os::scratch_dir::Scratch;
use fsure_os::storage_stack::Stack;
use fsure_os::{machine, path as os_path};

use crate::results::{MeasurementMonitor, ResultLine, Rung as RungLine};
use crate::speed_run::{SpeedRun, resolved_targets, warn};
use fsure_core::{
    Clock, Error, ExitCode, IoContext as _, Monitor, Result, Step, StepMonitor, units,
};

use data_pool::DataPool;
pub use io::{IoExperiment, IoOptions, RANDOM_BYTES, speed_io};
use rung::{RunContext, Rung};
use workspace::SpeedWorkspace;

/// Content that is written and hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// Random bytes, which cannot be compressed.
    #[default]
    Random,
    /// Zeros, which flatter storage that compresses or finds holes.
    Zeros,
    /// Words of a common text.
    Text,
}

impl Data {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Zeros => "zeros",
            Self::Text => "text",
        }
    }
}

/// Options of `speed`.
#[derive(Clone, Debug)]
pub struct SpeedOptions {
    /// The program, for the result's first line: `fsure 0.1.0`.
    pub program: String,
    /// The folders.
    pub targets: Vec<PathBuf>,
    /// Bytes of each stream, unless space or memory allow less.
    pub size: u64,
    /// Runs of each rung; `None` for until each is narrow.
    pub runs: Option<usize>,
    /// Time for all of it, preparations included.
    pub budget: Duration,
    /// Content that is written and hashed.
    pub data: Data,
    /// Rungs wanted, by the first words of their names, or `all`; empty for the ten that
    /// show the whole ladder.
    pub rungs: Vec<String>,
    /// Read a set twice as large as this through the page cache and past it, with
    /// so much memory.
    pub cache: Option<u64>,
    /// The program that is called to remove what a killed run has left
    /// ([`fsure_os::scratch_dir`]), and to serve FUSE ([`fsure_os::passthrough`]).
    /// Without one, the next run removes it.
    pub guard: Option<PathBuf>,
    /// True if the founders' own `pv` is to be run ten times, into each of their sinks.
    pub pv: bool,
    /// The clock for the time of the result.
    pub clock: Clock,
}

/// The amount that a run of `verify` has read, and its end.
#[derive(Clone, Copy, Debug)]
pub struct Verified {
    /// The exit code that the command would have.
    pub exit_code: ExitCode,
    /// Bytes that were read past the page cache.
    pub direct_bytes: u64,
}

/// The product under measurement: the rung `verify` is a run of it.
pub trait Verifier: Send + Sync {
    /// Records all files below `tree` in a catalog.
    fn record(&self, tree: &Path, catalog: &Path, monitor: &dyn Monitor) -> Result<ExitCode>;

    /// Verifies all files below `tree` against that catalog.
    fn verify(&self, tree: &Path, catalog: &Path, monitor: &dyn Monitor) -> Result<Verified>;
}

/// One run takes no longer than one part in this many of the budget, so that
/// there is time for several rounds.
const SLICES: f64 = 20.0;

/// Measures, and reports each line to the listener as soon as it is known. Returns
/// the exit code.
pub fn speed(
    options: &SpeedOptions,
    verifier: &Arc<dyn Verifier>,
    listener: &dyn MeasurementMonitor,
) -> Result<ExitCode> {
    check(options)?;
    let mut run = SpeedRun::begin(listener);
    let collector = RungCollector { listener, rungs: Mutex::default() };
    let pool = Arc::new(DataPool::new(options.data).context("have memory for", "data".as_ref())?);
    let sites = sites(options, &pool)?;
    let every = ladder(options, verifier, &pool, &sites);
    let (rungs, choice) = rung_choice::chosen(every, &options.rungs)?;
    let targets: Vec<_> = sites.iter().map(|site| &*site.folder).collect();
    let setup = setup(options, &sites, choice);
    run.report_header((&options.program, &options.clock), &targets, setup);
    for site in &sites {
        // What it lies on names the drive; without it, the figures are what they are.
        if let Ok(stack) = Stack::of(&site.folder) {
            run.report_layers(&site.target, &stack);
        }
    }
    for words in sites.iter().filter_map(|site| site.bounded.clone()) {
        warn(&collector, words);
    }
    let stop = || listener.stop_requested();
    let go = RunContext { now: &|| run.elapsed(), end: options.budget, stop: &stop };
    let caching = sites.iter().zip(options.cache.iter().cycle());
    let left_out: u64 =
        caching.map(|(site, cache)| cache_experiment::measure(site, *cache, &go, &collector)).sum();
    let mut climbed = schedule::climb(rungs, options.runs, &go, &collector);
    climbed.not_run += left_out;
    let lines = collector.rungs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for site in &sites {
        if let Some(limit) = verify_rung::limit(&site.target, &lines) {
            collector.measured(&ResultLine::Limit(limit));
        }
    }
    if !climbed.cut_short.is_empty() && listener.stop_requested().is_none() {
        warn(&collector, cut_short(&climbed.cut_short, options));
    }
    Ok(run.end((climbed.measured, climbed.not_run), None))
}

/// A listener that passes on all lines, and keeps the rungs for the lines that follow
/// from them.
struct RungCollector<'a> {
    listener: &'a dyn MeasurementMonitor,
    rungs: Mutex<Vec<RungLine>>,
}

impl Monitor for RungCollector<'_> {
    fn warn(&self, message: &str) {
        self.listener.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.listener.stop_requested()
    }
}

impl StepMonitor for RungCollector<'_> {
    fn under_way(&self, step: &Step<'_>) {
        self.listener.under_way(step);
    }
}

impl MeasurementMonitor for RungCollector<'_> {
    fn measured(&self, line: &ResultLine) {
        if let ResultLine::Rung(rung) = line {
            self.rungs.lock().unwrap_or_else(PoisonError::into_inner).push(rung.clone());
        }
        self.listener.measured(line);
    }
}

fn cut_short(names: &[String], options: &SpeedOptions) -> String {
    let budget = options.budget.as_secs_f64();
    let mut each: Vec<&str> = Vec::new();
    for name in names {
        if !each.contains(&name.as_str()) {
            each.push(name);
        }
    }
    let wanted = match options.runs {
        Some(runs) => format!("{runs} times"),
        None => format!("until they were sure to {:.0} %", schedule::NARROW * 100.0),
    };
    format!(
        "the budget of {budget:.0} s was too short to measure these rungs {wanted}: {}; '--budget \
         {:.0}s' measures longer, '--rungs' fewer rungs",
        each.join(", "),
        budget * 3.0
    )
}

/// Refuses options that make no sense.
fn check(options: &SpeedOptions) -> Result<()> {
    if options.cache.is_some_and(|cache| cache < cache_experiment::CACHE_MIN) {
        return Err(Error::Usage {
            message: format!(
                "'--cache' must be at least {}",
                units::size(cache_experiment::CACHE_MIN)
            ),
            hint: Some("a smaller cache does not hold this program and what it reads".to_owned()),
        });
    }
    Ok(())
}

/// The folders, ready to be measured.
fn sites(options: &SpeedOptions, pool: &Arc<DataPool>) -> Result<Vec<Arc<SpeedWorkspace>>> {
    let folders = resolved_targets(&options.targets)?;
    let one = |folder: PathBuf| {
        if !os_path::is_folder(&folder) {
            return Err(Error::not_a_folder(&folder, "name a folder on the storage to measure"));
        }
        let scratch = Scratch::create(&folder, options.guard.as_deref());
        let scratch = scratch.context("make a work folder in", &folder)?;
        let (memory, slice) = (machine::available_memory(), options.budget.div_f64(SLICES));
        SpeedWorkspace::new(folder, scratch, (options.size, memory), slice, pool).map(Arc::new)
    };
    folders.iter().cloned().map(one).collect()
}

/// All rungs that there are, in the order of the ladder.
fn ladder(
    options: &SpeedOptions,
    verifier: &Arc<dyn Verifier>,
    pool: &Arc<DataPool>,
    sites: &[Arc<SpeedWorkspace>],
) -> Vec<Box<dyn Rung>> {
    let mut rungs = memory_rungs::rungs(pool, options.size);
    if options.pv {
        rungs.push(pv_rungs::void());
    }
    // Anywhere: nothing of what is measured lies there.
    if let Some(site) = sites.first() {
        let guard = options.guard.clone();
        rungs.extend(mounted_rungs::rungs(site, options.size, guard, options.pv));
    }
    for site in sites {
        if options.pv {
            rungs.push(pv_rungs::folder(site));
        }
        rungs.extend(large_file::rungs(site));
        rungs.extend(hash_rungs::rungs(site));
        rungs.extend(small_files::rungs(site));
        rungs.push(Box::new(verify_rung::Verify::new(site, verifier)));
    }
    rungs
}

/// The settings, as the first line of the result has them.
fn setup(
    options: &SpeedOptions,
    sites: &[Arc<SpeedWorkspace>],
    choice: String,
) -> Vec<(String, String)> {
    let runs = options.runs.map_or_else(
        || format!("until sure to {:.0} %", schedule::NARROW * 100.0),
        |runs| runs.to_string(),
    );
    let mut setup = vec![
        ("size".to_owned(), units::size(options.size)),
        ("data".to_owned(), options.data.name().to_owned()),
        ("runs".to_owned(), runs),
        ("budget".to_owned(), format!("{} s", options.budget.as_secs_f64())),
        ("rungs".to_owned(), choice),
    ];
    for site in sites {
        setup.push((format!("file system of {}", site.target), site.kind.clone()));
        setup.push((format!("stream in {}", site.target), units::size(site.size)));
    }
    setup
}
