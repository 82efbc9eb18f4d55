//! One turn: the state of the page cache that the way wants, then all volumes at the same time,
//! with what is watched meanwhile.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Instant;

use fsure_core::{Error, Monitor, Result, units};
use fsure_os::block_stats::DeviceCounters;
use fsure_os::machine::{self, ProcessorTime};
use fsure_os::memory_info::CacheGauge;

use super::bystander::{Bystander, Delays};
use super::purger::{Purges, purge_until};
use super::reader::{ReadableTree, TreePart, TreeRead, TreeRequest};
use super::sampler::{Samples, sample};
use super::way::Way;
use crate::guest_memory::touch_memory;

/// The share of the memory for caching files that those take which are to stay there: one part in
/// this many.
const RESIDENT_SHARE: u64 = 2;
/// Files of which this share is in memory are read from there, in percent.
const RESIDENT_MIN_PERCENT: u64 = 98;

/// A volume that is measured.
pub(super) struct Volume {
    /// Its path.
    pub(super) path: PathBuf,
    /// The same as text.
    pub(super) target: String,
    /// Its files.
    pub(super) tree: Box<dyn ReadableTree>,
    /// Its device's counters; `None` if it has none.
    pub(super) meter: Option<DeviceCounters>,
    /// False if another volume is on the same disk, whose counters count for both.
    pub(super) has_own_device: bool,
}

/// The size of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Bytes of each volume.
    pub(super) bytes: u64,
    /// Readers of each device; `None` for the number that suits it.
    pub(super) readers: Option<usize>,
}

/// The outcome of a turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// Each volume's.
    pub(super) reads: Vec<TreeRead>,
    /// Seconds until the last volume was done.
    pub(super) seconds: f64,
    /// Processor time of this process.
    pub(super) processor: Option<ProcessorTime>,
    /// Bytes that all devices were asked for.
    pub(super) device_read_bytes: Option<u64>,
    /// The course of it.
    pub(super) samples: Samples,
    /// The purges.
    pub(super) purges: Option<Purges>,
    /// The delays of the program beside it.
    pub(super) delays: Option<Delays>,
    /// Bytes of the files that were in the page cache before; `None` if not reported.
    pub(super) before_bytes: Option<u64>,
    /// The same afterwards.
    pub(super) left_bytes: Option<u64>,
}

impl Turn {
    /// Bytes of all volumes.
    pub(super) fn bytes(&self) -> u64 {
        self.reads.iter().map(|read| read.bytes).sum()
    }

    /// MiB/s of all volumes.
    pub(super) fn rate(&self) -> f64 {
        units::mib_per_second(self.bytes(), self.seconds)
    }
}

/// The machine during a turn.
pub(super) struct Surroundings<'a> {
    /// The volumes.
    pub(super) volumes: &'a [Volume],
    /// The gauge of the page cache.
    pub(super) gauge: &'a CacheGauge,
    /// The program beside it.
    pub(super) bystander: Option<&'a mut Bystander>,
    /// Receives the bytes read so far.
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
    /// Says when to stop.
    pub(super) monitor: &'a dyn Monitor,
}

/// Makes one turn. A run that is stopped ends with [`Error::Interrupted`].
pub(super) fn take_turn(around: &mut Surroundings<'_>, way: Way, load: Load) -> Result<Turn> {
    let load = if way == Way::From { resident(around, load) } else { load };
    let before = prepare(around, way, load)?;
    if let Some(bystander) = &mut around.bystander {
        bystander.warm_up();
    }
    let counts: Vec<_> = around.volumes.iter().map(|_| AtomicU64::new(0)).collect();
    let (device, processor) = (device_bytes(around.volumes), machine::own_processor_time());
    let watched = watched(around, way, load, &counts)?;
    if let Some(code) = around.monitor.stop_requested() {
        return Err(Error::Interrupted(code));
    }
    let now = machine::own_processor_time();
    let processor = now.zip(processor).map(|(now, before)| now.since(&before));
    let device = device_bytes(around.volumes).zip(device).map(|(now, before)| now - before);
    let left = parts(around, load.bytes, |tree| tree.look(load.bytes, around.monitor))?;
    Ok(Turn {
        processor,
        device_read_bytes: device,
        before_bytes: before,
        left_bytes: left,
        ..watched
    })
}

/// The load of files that stay in memory: they may fill a part of it.
fn resident(around: &Surroundings<'_>, load: Load) -> Load {
    let room = around.gauge.read().map_or(u64::MAX, |fill| fill.cached + fill.free);
    let each = room / RESIDENT_SHARE / around.volumes.len().max(1) as u64;
    Load { bytes: load.bytes.min(each), ..load }
}

/// Brings the files into the state that the way wants. Returns the bytes of them that are in
/// memory then.
fn prepare(around: &Surroundings<'_>, way: Way, load: Load) -> Result<Option<u64>> {
    let monitor = around.monitor;
    if way != Way::From {
        let left = parts(around, load.bytes, |tree| tree.evict(load.bytes, monitor))?;
        if way != Way::Past {
            touch_free_memory(around, load);
        }
        return Ok(left);
    }
    parts(around, load.bytes, |tree| {
        let found = tree.look(load.bytes, monitor)?;
        let least = found.bytes / 100 * RESIDENT_MIN_PERCENT;
        if found.in_memory.is_some_and(|in_memory| in_memory >= least) {
            return Ok(found);
        }
        tree.read(&request(way, load), &AtomicU64::new(0), monitor)?;
        tree.look(load.bytes, monitor)
    })
}

/// Touches the free memory that the page cache is going to take, but for a tenth.
fn touch_free_memory(around: &Surroundings<'_>, load: Load) {
    let wanted = load.bytes.saturating_mul(around.volumes.len() as u64);
    let free = around.gauge.read().map_or(0, |fill| fill.free);
    // What cannot be had is not there for the page cache, either.
    let _ = touch_memory(wanted.min(free / 10 * 9));
}

/// Does something to each volume, and returns the bytes that are in memory then.
fn parts(
    around: &Surroundings<'_>,
    bytes: u64,
    act: impl Fn(&dyn ReadableTree) -> Result<TreePart>,
) -> Result<Option<u64>> {
    let mut sum = Some(0);
    for volume in around.volumes {
        let part = act(&*volume.tree)?;
        sum = sum.zip(part.in_memory).map(|(sum, more)| sum + more.min(bytes));
    }
    Ok(sum)
}

fn request(way: Way, load: Load) -> TreeRequest {
    TreeRequest { first_way: way.first_way(), bytes: load.bytes, readers: load.readers }
}

/// Reads all volumes at the same time, with everything beside it.
fn watched(
    around: &mut Surroundings<'_>,
    way: Way,
    load: Load,
    counts: &[AtomicU64],
) -> Result<Turn> {
    let (gauge, progress) = (around.gauge, around.progress);
    let (volumes, monitor) = (around.volumes, around.monitor);
    let bystander = around.bystander.as_deref_mut();
    scope(|threads| {
        let sampler = beside(threads, move |stop| sample(counts, gauge, &stop, progress));
        let purger = (way == Way::Purged).then(|| beside(threads, |stop| purge_until(&stop)));
        let bystander =
            bystander.map(|bystander| beside(threads, move |stop| bystander.work(&stop)));
        let began = Instant::now();
        let read = move |volume: &Volume, count: &AtomicU64| {
            volume.tree.read(&request(way, load), count, monitor)
        };
        let readers: Vec<_> = volumes
            .iter()
            .zip(counts)
            .map(|(volume, count)| threads.spawn(move || read(volume, count)))
            .collect();
        let reads: Vec<_> = readers.into_iter().map(joined).collect();
        let wall = began.elapsed().as_secs_f64();
        let (samples, purges) = (sampler.end(), purger.map(Beside::end));
        let delays = bystander.map(Beside::end);
        let reads = reads.into_iter().collect::<Result<Vec<_>>>()?;
        // Of one volume, without what comes before the first name.
        let seconds = match &reads[..] {
            [only] => only.seconds,
            _ => wall,
        };
        let seconds = seconds.max(1e-9);
        Ok(Turn { reads, seconds, samples, purges, delays, ..Turn::default() })
    })
}

/// A thread that works until it is told to end.
struct Beside<'scope, T> {
    stop: Sender<()>,
    thread: ScopedJoinHandle<'scope, T>,
}

fn beside<'scope, T: Send + 'scope>(
    threads: &'scope Scope<'scope, '_>,
    work: impl FnOnce(Receiver<()>) -> T + Send + 'scope,
) -> Beside<'scope, T> {
    let (stop, is_over) = channel();
    Beside { stop, thread: threads.spawn(move || work(is_over)) }
}

impl<T> Beside<'_, T> {
    fn end(self) -> T {
        drop(self.stop);
        joined(self.thread)
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn device_bytes(volumes: &[Volume]) -> Option<u64> {
    let each = |volume: &Volume| Some(volume.meter.as_ref()?.read().ok()?.read_bytes);
    volumes.iter().filter(|volume| volume.has_own_device).map(each).sum()
}
