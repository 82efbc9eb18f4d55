//! `speed --io`: requests as drives get them, in place of streams: at random, by size, until the
//! drive's fast cache is used up, and over the area of a device. Each is an experiment of
//! its own; nothing of one is there any more when the next begins.

mod area;
mod fast_cache;
mod random;
mod sizes;
mod sustained;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fsure_os::block_stats::Counters;
use fsure_os::path as os_path;
use fsure_os::scratch_dir::Scratch;
use fsure_os::storage_stack::{Stack, StorageLayer};

use super::data_pool::DataPool;
use super::rung::{RunContext, RungUnavailable};
use super::workspace::SpeedWorkspace;
use super::{Data, SLICES};
use crate::results::{MeasurementMonitor, NotRun, ResultLine};
use crate::speed_run::{SpeedRun, resolved_targets, target_text, warn};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result, units};
use fsure_os::machine;

/// An experiment with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoExperiment {
    /// Random reads and writes of 4 KiB by queue depth.
    Random,
    /// Random reads and writes by request size, one at a time.
    Sizes,
    /// Writes until the drive's fast cache is used up.
    Sustained,
    /// Reads over the area of the device.
    Area,
}

impl IoExperiment {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sizes => "sizes",
            Self::Sustained => "sustained",
            Self::Area => "area",
        }
    }

    /// The name of its result.
    fn result(self) -> &'static str {
        match self {
            Self::Random => "random requests",
            Self::Sizes => sizes::NAME,
            Self::Sustained => sustained::NAME,
            Self::Area => area::NAME,
        }
    }

    /// Returns true if it makes a file, so that it needs a folder.
    fn writes(self) -> bool {
        self != Self::Area
    }
}

/// Options of `speed --io`.
#[derive(Clone, Debug)]
pub struct IoOptions {
    /// The program, for the result's first line: `fsure 0.1.0`.
    pub program: String,
    /// Folders, and devices for [`IoExperiment::Area`].
    pub targets: Vec<PathBuf>,
    /// The experiments wanted.
    pub experiments: Vec<IoExperiment>,
    /// Bytes of the file for requests at random places, unless space or memory allow less, and most
    /// bytes of a sustained write; `None` for [`RANDOM_BYTES`], and for no such bound.
    pub size: Option<u64>,
    /// Turns of each queue depth, and of each request size; `None` for six.
    pub runs: Option<usize>,
    /// Time for all of it, preparations included.
    pub budget: Duration,
    /// Content that is written.
    pub data: Data,
    /// True if a sustained write may use all but a tenth of the free space, and not a
    /// quarter of it only.
    pub may_fill: bool,
    /// The program that removes what a killed run has left ([`fsure_os::scratch_dir`]).
    pub guard: Option<PathBuf>,
    /// The clock for the time of the result.
    pub clock: Clock,
}

/// Bytes of the file for random requests, unless the user gives another size.
pub const RANDOM_BYTES: u64 = 450 << 20;

impl IoOptions {
    /// Returns the bytes that a sustained write may use of so much free space.
    pub fn sustained_bytes(&self, free: u64, may_fill: bool) -> u64 {
        let share = if may_fill { free / 10 * 9 } else { free / 4 };
        share.min(self.size.unwrap_or(u64::MAX))
    }
}

/// A folder or device.
struct IoTarget {
    path: PathBuf,
    /// As the lines of the result name it.
    text: String,
    is_folder: bool,
}

/// The result of one experiment on one target.
#[derive(Default)]
struct Outcome {
    measured: u64,
    not_run: u64,
    unreadable: u64,
    /// Experiments that a failure ended early.
    cut_short: u64,
}

/// Measures, and reports each line to the listener as soon as it is known. Returns
/// the exit code.
pub fn speed_io(options: &IoOptions, listener: &dyn MeasurementMonitor) -> Result<ExitCode> {
    let targets = targets(options)?;
    let mut run = SpeedRun::begin(listener);
    let paths: Vec<_> = targets.iter().map(|target| &*target.path).collect();
    let setup = setup(options, &targets);
    run.report_header((&options.program, &options.clock), &paths, setup);
    for target in &targets {
        let stack = match target.is_folder {
            true => Stack::of(&target.path),
            false => Stack::of_device(&target.path),
        };
        let Ok(stack) = stack else { continue };
        run.report_layers(&target.text, &stack);
        if has_cached_loop(&stack) {
            let target = &target.text;
            warn(
                listener,
                format!(
                    "{target}: its loop device reads and writes a file through the page cache, so \
                     that memory is measured; 'losetup --direct-io=on' keeps it out"
                ),
            );
        }
    }
    let all: Vec<_> = targets
        .iter()
        .flat_map(|target| options.experiments.iter().map(move |what| (target, *what)))
        .collect();
    let (now, stop) = (|| run.elapsed(), || listener.stop_requested());
    let mut sum = Outcome::default();
    for (place, (target, what)) in all.iter().enumerate() {
        // Time that the experiments before did not need is that of those to come.
        let left = options.budget.saturating_sub(run.elapsed());
        let share = left / u32::try_from(all.len() - place).unwrap_or(u32::MAX);
        let go = RunContext { now: &now, end: run.elapsed() + share, stop: &stop };
        let outcome = Experiment { options, target, share, go: &go, listener }.run(*what);
        let outcome = outcome.unwrap_or_else(|why| {
            listener.measured(&ResultLine::NotRun(NotRun {
                name: what.result().to_owned(),
                target: target.text.clone(),
                why: words(why),
            }));
            Outcome { not_run: 1, ..Outcome::default() }
        });
        sum.measured += outcome.measured;
        sum.not_run += outcome.not_run;
        sum.unreadable += outcome.unreadable;
        sum.cut_short += outcome.cut_short;
    }
    let unread = (sum.unreadable > 0).then_some(ExitCode::Unread);
    let found = unread.or((sum.cut_short > 0).then_some(ExitCode::Incomplete));
    Ok(run.end((sum.measured, sum.not_run), found))
}

/// Returns true if a loop device is among the layers whose file is not opened for direct
/// requests: what is past the page cache above it is in it below.
fn has_cached_loop(stack: &Stack) -> bool {
    let is_cached = |layer: &StorageLayer| {
        layer.kind == "loop" && layer.facts.contains(&("direct", "no".to_owned()))
    };
    stack.layers.iter().any(is_cached)
}

/// One experiment on one target.
struct Experiment<'a> {
    options: &'a IoOptions,
    target: &'a IoTarget,
    /// Time that it may take.
    share: Duration,
    go: &'a RunContext<'a>,
    listener: &'a dyn MeasurementMonitor,
}

impl Experiment<'_> {
    fn run(&self, what: IoExperiment) -> std::result::Result<Outcome, RungUnavailable> {
        self.go.check()?;
        match what {
            IoExperiment::Random => random::measure(self, &self.site()?),
            IoExperiment::Sizes => sizes::measure(self, &self.site()?),
            IoExperiment::Sustained => sustained::measure(self, &self.scratch()?),
            IoExperiment::Area => area::measure(self),
        }
    }

    fn scratch(&self) -> std::result::Result<Scratch, RungUnavailable> {
        Scratch::create(&self.target.path, self.options.guard.as_deref()).map_err(|error| {
            RungUnavailable::NotHere(format!("no work folder can be made in it: {error}"))
        })
    }

    fn site(&self) -> std::result::Result<Arc<SpeedWorkspace>, RungUnavailable> {
        let unavailable = |error: Error| RungUnavailable::NotHere(error.to_string());
        let pool = Arc::new(DataPool::new(self.options.data)?);
        let size = self.options.size.unwrap_or(RANDOM_BYTES);
        let limits = (size, machine::available_memory());
        let slice = self.share.div_f64(SLICES);
        let scratch = self.scratch()?;
        let site = SpeedWorkspace::new(self.target.path.clone(), scratch, limits, slice, &pool);
        let site = site.map_err(unavailable)?;
        if let Some(words) = &site.bounded {
            warn(self.listener, words.clone());
        }
        Ok(Arc::new(site))
    }
}

fn words(refusal: RungUnavailable) -> String {
    match refusal {
        RungUnavailable::NotHere(why) => why,
        RungUnavailable::NoTime => "the budget was spent; a larger '--budget' helps".to_owned(),
        RungUnavailable::Stopped => "interrupted".to_owned(),
    }
}

/// Returns what the device's counter says of so many bytes that were requested.
fn proof(device: Option<Counters>, access: fsure_os::request_queue::Access, bytes: u64) -> String {
    use fsure_os::request_queue::Access;
    let counted = device.map(|device| match access {
        Access::Read => device.read_bytes,
        Access::Write => device.written_bytes,
    });
    match counted {
        Some(counted) if counted >= bytes => "the device's counter shows all of it".to_owned(),
        Some(counted) => format!(
            "the device's counter shows {} of {}: the rest did not reach it",
            units::size(counted),
            units::size(bytes)
        ),
        None => "no device has a counter that could show it".to_owned(),
    }
}

/// The folders and devices, as they were named.
fn targets(options: &IoOptions) -> Result<Vec<IoTarget>> {
    let one = |path: PathBuf| {
        let text = target_text(&path);
        let is_folder = os_path::is_folder(&path);
        if !is_folder {
            check_device(&path, &options.experiments)?;
        }
        Ok(IoTarget { path, text, is_folder })
    };
    resolved_targets(&options.targets)?.into_iter().map(one).collect()
}

/// Refuses what is not a block device, or is to be written.
fn check_device(path: &Path, experiments: &[IoExperiment]) -> Result<()> {
    let shown = path.display();
    let kind = os_path::kind(path).context("look at", path)?;
    if kind != Some(os_path::FileKind::BlockDevice) {
        return Err(Error::Usage {
            message: match kind {
                None => format!("there is nothing at {shown}"),
                Some(_) => format!("{shown} is neither a folder nor a block device"),
            },
            hint: Some("name a folder on the storage, or its device for '--io area'".to_owned()),
        });
    }
    match experiments.iter().find(|experiment| experiment.writes()) {
        None => Ok(()),
        Some(experiment) => Err(Error::Usage {
            message: format!(
                "{shown} is a device, and '--io {}' needs a folder: it writes, and only into a \
                 file of its own",
                experiment.name()
            ),
            hint: Some(format!("'fsure speed --io area {shown}' reads the device")),
        }),
    }
}

/// The settings, as the first line of the result has them.
fn setup(options: &IoOptions, targets: &[IoTarget]) -> Vec<(String, String)> {
    let names: Vec<_> = options.experiments.iter().map(|experiment| experiment.name()).collect();
    let is_wanted = |experiment| options.experiments.contains(&experiment);
    let writes = targets.iter().filter_map(|target| {
        let free = machine::free_bytes(&target.path).ok()?;
        let most = units::size(options.sustained_bytes(free, options.may_fill));
        Some((format!("sustained write in {}", target.text), format!("at most {most}")))
    });
    let writes = writes.filter(|_| is_wanted(IoExperiment::Sustained));
    let random = [
        ("size", units::size(options.size.unwrap_or(RANDOM_BYTES))),
        ("runs", options.runs.unwrap_or(random::TURNS).to_string()),
    ];
    let at_random = [IoExperiment::Random, IoExperiment::Sizes];
    let random = random.into_iter().filter(|_| at_random.into_iter().any(is_wanted));
    let data = Some(("data", options.data.name().to_owned()));
    let data = data.filter(|_| options.experiments.iter().any(|experiment| experiment.writes()));
    let budget = ("budget", format!("{} s", options.budget.as_secs_f64()));
    let setup = [("io", names.join(", ")), budget].into_iter().chain(random).chain(data);
    let setup = setup.map(|(name, value)| (name.to_owned(), value));
    setup.chain(writes).collect()
}
