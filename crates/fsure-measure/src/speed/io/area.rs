//! Reads a device at places from its beginning to its end. A disk with heads is half as fast
//! at its end; a dip in between is a part of the medium that has to be read again and again.
//! The device is opened to be read, and nothing is written.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fsure_os::block_stats::DeviceCounters;
use fsure_os::buffer::Buffer;
use fsure_os::request_queue::{Access, DIRECT_GRAIN, DirectFile, Engine, QueueShape, Requests};
use fsure_os::storage_stack::Stack;
use fsure_os::user;

use super::{Experiment, Outcome, proof};
use crate::results::{AreaLine, AreaPoint, ResultLine};
use crate::speed::rung::{RunResult, RungUnavailable, Stopwatch};
use crate::speed::schedule::shuffled;
use crate::speed_run::{target_text, warn};
use crate::stats::median;
use fsure_core::{Step, units};

/// The name of the result.
pub(super) const NAME: &str = "area read";

/// Places on a device that is large enough.
const PLACES: u64 = 100;
/// Bytes of a request, and requests at a time, unless a place is smaller.
const BLOCK: u64 = 1 << 20;
const DEPTH: usize = 4;
/// Bytes of a place: at most so many, on a fast device, which takes them in some milliseconds.
const PLACE_MAX: u64 = 32 << 20;
/// Bytes before a place that are read and not timed, so that the heads are there.
const LEAD: u64 = 1 << 20;
/// Passes over all places: the time of a place is chosen so that these fit in, and there are
/// never more than so many.
const PASSES_WANTED: f64 = 4.0;
const PASSES_MAX: usize = 9;
/// Places in a row that cannot be read after which the device is taken to be gone.
const FAILURES_MAX: usize = 10;

/// Measures a device, or the one that a folder is on.
pub(super) fn measure(experiment: &Experiment<'_>) -> RunResult<Outcome> {
    let Experiment { target, listener, .. } = experiment;
    let device = device_of(target)?;
    let file = DirectFile::open_device(&device).map_err(|error| unopened(&device, &error))?;
    let bytes = file.bytes()?;
    if bytes < LEAD {
        return Err(RungUnavailable::NotHere(format!(
            "{} has {}, and places cannot be told apart",
            device.display(),
            units::size(bytes)
        )));
    }
    let memory = Buffer::new(DEPTH * BLOCK as usize)?;
    let meter = DeviceCounters::of_device(&device).ok().flatten();
    let mut reader = AreaReader { experiment, file, memory, engine: Engine::best() };
    let grid = Grid::of(bytes, reader.trial(bytes)?, experiment.share);
    let watch = Stopwatch::start(meter.as_ref());
    let passes = reader.passes(&grid)?;
    let run = watch.stop(0);
    let line = line(&grid, &passes.places).ok_or_else(|| match &passes.failure {
        Some(error) => RungUnavailable::NotHere(format!("it cannot be read: {error}")),
        None => experiment.go.check().err().unwrap_or(RungUnavailable::NoTime),
    })?;
    if let Some(error) = &passes.failure {
        let unread = target_text(&device);
        let words = format!("{unread}: {} places could not be read: {error}", line.unreadable);
        warn(*listener, words);
    }
    let read = passes.bytes;
    let line = AreaLine {
        target: target.text.clone(),
        device: target_text(&device),
        device_read_bytes: run.device.map(|device| device.read_bytes),
        measured: format!(
            "{} at each of {} places, {} at a time past the page cache (direct, {}), {} passes in \
             changing order; {} was read, nothing written; {}",
            units::size(grid.place),
            grid.places.len(),
            DEPTH,
            reader.engine.name(),
            line.passes,
            units::size(read),
            proof(run.device, Access::Read, read)
        ),
        ..line
    };
    let unreadable = line.unreadable;
    listener.measured(&ResultLine::Area(line));
    Ok(Outcome { measured: 1, unreadable, ..Outcome::default() })
}

/// Returns the device: the one that was named, or the one below a folder.
fn device_of(target: &super::IoTarget) -> RunResult<PathBuf> {
    if !target.is_folder {
        return Ok(target.path.clone());
    }
    Stack::of(&target.path)?.device().ok_or_else(|| {
        RungUnavailable::NotHere(format!(
            "no block device is known below {}: name one, as in 'fsure speed --io area /dev/sda'",
            target.text
        ))
    })
}

fn unopened(device: &Path, error: &std::io::Error) -> RungUnavailable {
    let shown = device.display();
    RungUnavailable::NotHere(match error.kind() {
        std::io::ErrorKind::PermissionDenied if user::is_root() => format!(
            "{shown} cannot be opened: {error}: this container may not read it; measure on its \
             host: 'fsure speed --io area {shown}'"
        ),
        std::io::ErrorKind::PermissionDenied => format!(
            "{shown} cannot be opened: {error}: only root reads a device: 'sudo fsure speed --io \
             area {shown}'"
        ),
        std::io::ErrorKind::Unsupported => {
            "reading a device without a file system is possible on Linux only".to_owned()
        }
        _ => format!("{shown} cannot be opened: {error}"),
    })
}

/// The places, in the order of the device.
struct Grid {
    bytes: u64,
    /// Bytes of each place.
    place: u64,
    places: Vec<u64>,
}

impl Grid {
    /// Places whose bytes a device of this rate, in bytes a second, reads in the time, as
    /// often as wanted.
    fn of(bytes: u64, rate: f64, time: Duration) -> Self {
        let grain = DIRECT_GRAIN as u64;
        let fits = rate * time.as_secs_f64() / PLACES as f64 / PASSES_WANTED;
        let place = (fits as u64).saturating_sub(LEAD).clamp(BLOCK, PLACE_MAX) / BLOCK * BLOCK;
        let place = place.min((bytes / PLACES).max(grain)) / grain * grain;
        let count = (bytes / place).min(PLACES);
        let last = bytes - place;
        let at = |n: u64| {
            // Of exabytes, the product is more than fits.
            let at = u128::from(last) * u128::from(n) / u128::from((count - 1).max(1));
            at as u64 / grain * grain
        };
        Self { bytes, place, places: (0..count).map(at).collect() }
    }
}

/// A place in all passes.
#[derive(Clone, Debug, Default)]
struct PlaceRates {
    /// Its rate in MiB/s in each pass.
    rates: Vec<f64>,
    /// True if it could not be read in some pass. It has no rate then: a place that is read at
    /// the second attempt is on its way to be lost.
    has_failed: bool,
}

/// The passes over a device.
#[derive(Default)]
struct Passes {
    /// One for each place.
    places: Vec<PlaceRates>,
    bytes: u64,
    /// The last failure.
    failure: Option<std::io::Error>,
}

struct AreaReader<'a> {
    experiment: &'a Experiment<'a>,
    file: DirectFile,
    memory: Buffer,
    engine: Engine,
}

impl AreaReader<'_> {
    /// Returns the rate of a first read in the middle, in bytes per second. One that fails
    /// says nothing: the smallest place is chosen then.
    fn trial(&mut self, bytes: u64) -> RunResult<f64> {
        self.experiment.go.check()?;
        let length = (8 * BLOCK).min(bytes / 2 / DIRECT_GRAIN as u64 * DIRECT_GRAIN as u64);
        let from = bytes / 2 / DIRECT_GRAIN as u64 * DIRECT_GRAIN as u64;
        let began = Instant::now();
        Ok(match self.read(from, length) {
            Ok(()) => length as f64 / began.elapsed().as_secs_f64().max(1e-9),
            Err(_) => 0.0,
        })
    }

    /// Reads all places, pass after pass. A pass that the budget or the user cuts short counts
    /// for the places that it came to.
    fn passes(&mut self, grid: &Grid) -> RunResult<Passes> {
        let Experiment { go, listener, target, options, .. } = self.experiment;
        let places = vec![PlaceRates::default(); grid.places.len()];
        let mut passes = Passes { places, ..Passes::default() };
        let mut failed_in_row = 0;
        for pass in 0..PASSES_MAX as u64 {
            for (count, place) in
                shuffled((0..grid.places.len()).collect(), pass + 1).into_iter().enumerate()
            {
                if go.check().is_err() || failed_in_row >= FAILURES_MAX {
                    return Ok(passes);
                }
                if count % 10 == 0 {
                    let share = (go.now)().as_secs_f64() / options.budget.as_secs_f64();
                    let what = format!("{NAME}, {}, pass {}", target.text, pass + 1);
                    listener.under_way(&Step { what: &what, share: share.min(1.0) });
                }
                match self.place(grid.places[place], grid.place) {
                    Ok((rate, bytes)) => {
                        passes.places[place].rates.push(rate);
                        passes.bytes += bytes;
                        failed_in_row = 0;
                    }
                    Err(error) => {
                        passes.failure = Some(error);
                        passes.places[place].has_failed = true;
                        failed_in_row += 1;
                    }
                }
            }
        }
        Ok(passes)
    }

    /// Returns the rate of a place in MiB/s, and the bytes that were read for it.
    fn place(&mut self, at: u64, length: u64) -> std::io::Result<(f64, u64)> {
        let lead = LEAD.min(at).min(length);
        self.read(at - lead, lead)?;
        let began = Instant::now();
        self.read(at, length)?;
        let rate = units::mib_per_second(length, began.elapsed().as_secs_f64().max(1e-9));
        Ok((rate, lead + length))
    }

    fn read(&mut self, from: u64, length: u64) -> std::io::Result<()> {
        let grain = DIRECT_GRAIN as u64;
        // What is left of a place that is not a number of blocks is read in smaller ones.
        let block = if length.is_multiple_of(BLOCK) { BLOCK } else { grain };
        let requests = Stretch { next: AtomicU64::new(from), end: from + length, block };
        let shape = QueueShape {
            access: Access::Read,
            depth: DEPTH,
            block: block as usize,
            engine: self.engine,
        };
        self.file.run(&shape, &mut self.memory, &requests)
    }
}

/// Requests for one stretch of the device, from its beginning on.
struct Stretch {
    next: AtomicU64,
    end: u64,
    block: u64,
}

impl Requests for Stretch {
    fn next(&self) -> Option<u64> {
        let at = self.next.fetch_add(self.block, Ordering::Relaxed);
        (at < self.end).then_some(at)
    }

    fn complete(&self, _latency: Duration) {}
}

/// The figures of all places that a pass came to; `None` if none was read.
fn line(grid: &Grid, places: &[PlaceRates]) -> Option<AreaLine> {
    let is_reached = |place: &PlaceRates| place.has_failed || !place.rates.is_empty();
    let reached = grid.places.iter().zip(places).filter(|(_, place)| is_reached(place));
    let points: Vec<_> = reached.map(|(at, place)| point(*at, place)).collect();
    let read: Vec<f64> = points.iter().filter_map(|point| point.mib_per_s).collect();
    let tenth = (points.len() / 10).max(1);
    let of = |points: &[AreaPoint]| {
        let rates: Vec<_> = points.iter().filter_map(|point| point.mib_per_s).collect();
        median(&rates)
    };
    let passes = places.iter().map(|place| place.rates.len()).max()?;
    (!read.is_empty()).then(|| AreaLine {
        name: NAME.to_owned(),
        target: String::new(),
        device: String::new(),
        device_bytes: grid.bytes,
        place_bytes: grid.place,
        passes,
        median_mib_s: median(&read),
        slowest_mib_s: read.iter().copied().fold(f64::INFINITY, f64::min),
        fastest_mib_s: read.iter().copied().fold(0.0, f64::max),
        first_tenth_mib_s: of(&points[..tenth]),
        last_tenth_mib_s: of(&points[points.len() - tenth..]),
        unreadable: (points.len() - read.len()) as u64,
        device_read_bytes: None,
        measured: String::new(),
        points,
    })
}

fn point(at_bytes: u64, place: &PlaceRates) -> AreaPoint {
    let rates: &[f64] = if place.has_failed { &[] } else { &place.rates };
    let low = rates.iter().copied().reduce(f64::min);
    let high = rates.iter().copied().reduce(f64::max);
    let mib_per_s = (!rates.is_empty()).then(|| median(rates));
    AreaPoint { at_bytes, mib_per_s, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_from_the_beginning_to_the_end_and_fit() {
        for bytes in [1 << 20, 100 << 20, 1 << 40, u64::MAX / 4096 * 4096] {
            for rate in [0.0, 1e6, 1e10] {
                let grid = Grid::of(bytes, rate, Duration::from_secs(60));
                let places = &grid.places;
                assert!((1..=100).contains(&places.len()), "{bytes} {rate}: {}", places.len());
                assert_eq!(places[0], 0);
                assert!(places.is_sorted() && places.iter().all(|at| at.is_multiple_of(4096)));
                let end = places.last().unwrap() + grid.place;
                assert!(end <= bytes && bytes - end <= 4096, "{bytes} {rate}: {end}");
                assert!(grid.place.is_multiple_of(4096) && grid.place <= PLACE_MAX);
            }
        }
    }

    #[test]
    fn a_slow_device_has_small_places() {
        let place = |rate| Grid::of(1 << 40, rate, Duration::from_secs(60)).place;
        assert_eq!((place(1e6), place(5e9)), (BLOCK, PLACE_MAX));
        assert!((8 << 20..24 << 20).contains(&place(150e6)), "{}", place(150e6));
    }

    #[test]
    fn a_place_that_cannot_be_read_is_no_slow_place() {
        let grid =
            Grid { bytes: 20 << 20, place: BLOCK, places: (0..20).map(|n| n << 20).collect() };
        let of = |rates: &[f64]| PlaceRates { rates: rates.to_vec(), has_failed: false };
        let mut places = vec![of(&[200.0, 180.0, 220.0]); 20];
        places[3].has_failed = true;
        // The budget was spent before these, or after one pass.
        places[7] = of(&[]);
        places[18] = of(&[100.0]);
        places[19] = of(&[90.0]);
        let line = line(&grid, &places).unwrap();
        assert_eq!((line.unreadable, line.passes, line.points.len()), (1, 3, 19));
        let rates = (line.median_mib_s, line.slowest_mib_s, line.fastest_mib_s);
        assert_eq!(rates, (200.0, 90.0, 200.0));
        assert_eq!((line.first_tenth_mib_s, line.last_tenth_mib_s), (200.0, 90.0));
        assert_eq!((line.points[3].mib_per_s, line.points[3].low), (None, None));
        assert_eq!((line.points[0].low, line.points[0].high), (Some(180.0), Some(220.0)));
        assert!(super::line(&grid, &vec![of(&[]); 20]).is_none());
    }
}
