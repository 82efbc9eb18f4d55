//! `speed --tree`: the price of the page cache, after the founders' experiment. The files of
//! volumes are read and hashed by the readers of `verify`, in turns: past the page cache, through
//! it when it has none of them, out of it, and through it while it is emptied all the time.
//! Nothing is written to the volumes but the few files of a program beside it.

mod bystander;
mod cost;
mod purger;
mod reader;
mod rounds;
mod sampler;
mod turn;
mod way;
mod way_line;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fsure_core::{Clock, Error, ExitCode, IoContext as _, NullMonitor, Result, units};
use fsure_os::block_stats::DeviceCounters;
use fsure_os::device::StorageDevice;
use fsure_os::memory_cgroup::Group;
use fsure_os::memory_info::CacheGauge;
use fsure_os::root_dir::Root;
use fsure_os::scratch_dir::Scratch;
use fsure_os::storage_stack::Stack;
use fsure_os::{machine, page_cache, path as os_path};

use crate::results::MeasurementMonitor;
use crate::speed_run::{SpeedRun, resolved_targets, target_text, warn};

use bystander::Bystander;
pub use cost::{TREE_ROUNDS_MIN, TREE_RUN_SECONDS_MIN, losses_percent};
pub use reader::{ReadableTree, TreePart, TreeRead, TreeReader, TreeRequest};
use rounds::{Rounds, TreeRunner};
use turn::{Load, Volume};
pub use way_line::are_read_in_batches;

/// Least memory of a run, in bytes: less does not hold this program.
pub const TREE_MEMORY_MIN: u64 = 96 << 20;

/// Options of `speed --tree`.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// The program, for the result's first line: `fsure 0.1.0`.
    pub program: String,
    /// The volumes, read at the same time.
    pub volumes: Vec<PathBuf>,
    /// Bytes of each volume that a run reads; several are measured one after the other.
    pub bytes: Vec<u64>,
    /// Readers of each device, likewise; empty for the number that suits it.
    pub readers: Vec<usize>,
    /// Counted runs of each way.
    pub runs: usize,
    /// Time after which no further round begins.
    pub budget: Duration,
    /// Read while the page cache of the whole machine is emptied, too.
    pub purges: bool,
    /// Bytes of memory that this process and its page cache may have.
    pub memory: Option<u64>,
    /// A folder for what a control group needs, if no volume can be written.
    pub spare_folder: PathBuf,
    /// The program that is called to remove what a killed run has left.
    pub guard: Option<PathBuf>,
    /// The clock for the time of the result.
    pub clock: Clock,
}

/// Measures, and reports each line to the listener as soon as it is known. Returns the exit
/// code.
pub fn tree(
    options: &TreeOptions,
    reader: &dyn TreeReader,
    listener: &dyn MeasurementMonitor,
) -> Result<ExitCode> {
    let mut run = SpeedRun::begin(listener);
    let volumes = open(options, reader, listener)?;
    if options.purges {
        page_cache::purge().map_err(|error| cannot_purge(&error))?;
    }
    let scratch = scratch(options, &volumes);
    let _group = limited(options, scratch.as_ref())?;
    let gauge = CacheGauge::new();
    let paths: Vec<_> = volumes.iter().map(|volume| &*volume.path).collect();
    run.report_header((&options.program, &options.clock), &paths, setup(options, &volumes));
    for volume in &volumes {
        if let Ok(stack) = Stack::of(&volume.path) {
            run.report_layers(&volume.target, &stack);
        }
    }
    let bystander = bystander(options, scratch.as_ref(), &volumes, listener);
    let rounds = Rounds {
        runs: options.runs,
        budget: options.budget.saturating_sub(run.elapsed()),
        purges: options.purges,
        loads: loads(options),
    };
    let (measured, not_run) = TreeRunner::new(&rounds, &volumes, &gauge, bystander, listener).all();
    clear(options, &volumes);
    Ok(run.end((measured, not_run), None))
}

/// The volumes, ready to be read.
fn open(
    options: &TreeOptions,
    reader: &dyn TreeReader,
    listener: &dyn MeasurementMonitor,
) -> Result<Vec<Volume>> {
    let (mut volumes, mut devices): (Vec<Volume>, Vec<StorageDevice>) = Default::default();
    for path in resolved_targets(&options.volumes)? {
        if !os_path::is_folder(&path) {
            return Err(Error::not_a_folder(&path, "name a folder with files to read"));
        }
        let target = target_text(&path);
        let tree = reader.open(&path, listener)?;
        // One file tells that there is something to read, or nothing.
        if tree.look(1, listener)?.files == 0 {
            return Err(nothing_to_read(&path, tree.is_recorded()));
        }
        let device = StorageDevice::of(&Root::open(&path).context("open", &path)?, b"");
        let beside = devices.iter().position(|other| device.shares_a_disk_with(other));
        if let Some(beside) = beside {
            listener.warn(&format!(
                "{target} and {} are on one disk: each has only a share of its rate",
                volumes[beside].target
            ));
        }
        // The counters of one disk are not counted twice.
        let meter = match beside {
            Some(_) => None,
            None => DeviceCounters::of(&path).ok().flatten(),
        };
        devices.push(device);
        volumes.push(Volume { path, target, tree, meter, has_own_device: beside.is_none() });
    }
    Ok(volumes)
}

fn nothing_to_read(path: &Path, is_recorded: bool) -> Error {
    let (files, advice) = match is_recorded {
        true => ("recorded files", "its record may be of another volume, or the volume is empty"),
        false => ("files", "name a folder with files in it"),
    };
    Error::FailedPrecondition {
        message: format!("{} has no {files} that could be read", path.display()),
        hint: Some(advice.to_owned()),
    }
}

fn cannot_purge(error: &std::io::Error) -> Error {
    Error::FailedPrecondition {
        message: format!("cannot empty the page cache of the machine: {error}"),
        hint: Some(match error.kind() {
            std::io::ErrorKind::Unsupported => {
                "this system has no call for it; leave out '--purge'".to_owned()
            }
            _ => "run it as root, or leave out '--purge'".to_owned(),
        }),
    }
}

/// A scratch folder on the first volume that takes one. A volume may be read-only or full, which
/// does not keep it from being read.
fn scratch(options: &TreeOptions, volumes: &[Volume]) -> Option<Arc<Scratch>> {
    let spare = options.memory.is_some().then_some(&options.spare_folder);
    let folders = volumes.iter().map(|volume| &volume.path).chain(spare);
    let make = |folder: &PathBuf| Scratch::create(folder, options.guard.as_deref()).ok();
    folders.filter_map(make).next().map(Arc::new)
}

/// A control group with the memory that was asked for and this process in it.
fn limited(options: &TreeOptions, scratch: Option<&Arc<Scratch>>) -> Result<Option<Group>> {
    let Some(memory) = options.memory else { return Ok(None) };
    let total = machine::machine().memory_bytes;
    if let Some(total) = total.filter(|total| memory > *total) {
        return Err(Error::Usage {
            message: format!(
                "'--memory {}' is more than this machine has ({})",
                units::size(memory),
                units::size(total)
            ),
            hint: Some("leave out '--memory' to use all of it".to_owned()),
        });
    }
    let made = scratch.map(|scratch| {
        let group = Group::create(scratch, memory)?;
        group.take(std::process::id()).map(|()| group)
    });
    let refused = |why: String| Error::FailedPrecondition {
        message: format!("'--memory {}' is not possible: {why}", units::size(memory)),
        hint: Some("run it as root, or leave out '--memory'".to_owned()),
    };
    match made {
        Some(Ok(group)) => Ok(Some(group)),
        Some(Err(error)) => Err(refused(error.to_string())),
        None => Err(refused("no folder takes the notes that clean up after a kill".to_owned())),
    }
}

/// The program beside the run; reports why there is none.
fn bystander(
    options: &TreeOptions,
    scratch: Option<&Arc<Scratch>>,
    volumes: &[Volume],
    listener: &dyn MeasurementMonitor,
) -> Option<Bystander> {
    let is_on_volume = |scratch: &&Arc<Scratch>| {
        volumes.iter().any(|volume| scratch.path().parent() == Some(&volume.path))
    };
    let why = match scratch.filter(is_on_volume) {
        None => "no volume takes its files, as each is read-only or full".to_owned(),
        Some(scratch) => match Bystander::new(scratch, options.memory) {
            Ok(bystander) => return Some(bystander),
            Err(error) => error.to_string(),
        },
    };
    let words = format!("the delays of a program beside the reading are not measured: {why}");
    warn(listener, words);
    None
}

/// Takes what was read out of memory again.
fn clear(options: &TreeOptions, volumes: &[Volume]) {
    let bytes = options.bytes.iter().copied().max().unwrap_or_default();
    for volume in volumes {
        // Nothing more can be done about it, and the system takes it back when it needs it.
        let _ = volume.tree.evict(bytes, &NullMonitor);
    }
}

/// All sizes with all numbers of readers.
fn loads(options: &TreeOptions) -> Vec<Load> {
    let readers: Vec<_> = match options.readers.is_empty() {
        true => vec![None],
        false => options.readers.iter().copied().map(Some).collect(),
    };
    let each = |bytes: &u64| {
        let bytes = *bytes;
        readers.clone().into_iter().map(move |readers| Load { bytes, readers })
    };
    options.bytes.iter().flat_map(each).collect()
}

/// The settings, as the first line of the result has them.
fn setup(options: &TreeOptions, volumes: &[Volume]) -> Vec<(String, String)> {
    let list = |words: Vec<String>| words.join(", ");
    let mut setup = vec![
        ("bytes".to_owned(), list(options.bytes.iter().copied().map(units::size).collect())),
        ("runs".to_owned(), options.runs.to_string()),
    ];
    if !options.readers.is_empty() {
        let readers = options.readers.iter().map(ToString::to_string).collect();
        setup.push(("readers".to_owned(), list(readers)));
    }
    setup.extend(options.memory.map(|memory| ("memory".to_owned(), units::size(memory))));
    for volume in volumes {
        let files = if volume.tree.is_recorded() { "its record" } else { "a walk" };
        setup.push((format!("files of {}", volume.target), format!("by {files}")));
    }
    setup
}
