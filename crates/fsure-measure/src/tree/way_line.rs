//! The lines of a result, from the turns.

use fsure_core::block_hash::BLOCK;
use fsure_core::units::{self, GIB};

use super::bystander::{Delays, READ_BYTES};
use super::cost::{TREE_RUN_SECONDS_MIN, loss};
use super::reader::TreeRead;
use super::turn::{Load, Turn, Volume};
use super::way::Way;
use crate::results::{Bystander, CacheCost, TreeVolume, TreeWay};
use crate::stats::{Latency, Spread};

/// From this share of the bytes on, in percent, what was read the wrong way, or was in memory
/// when it should not have been, is worth a remark.
const STRAY_MIN_PERCENT: f64 = 5.0;

/// A way and its turns under one load.
pub(super) struct Entrant {
    /// The way.
    pub(super) way: Way,
    /// The rate of the turn that is not counted, in MiB/s.
    pub(super) warm_up: Option<f64>,
    /// The counted turns.
    pub(super) turns: Vec<Turn>,
    /// The reason why there are no more.
    pub(super) failure: Option<String>,
}

impl Entrant {
    /// One that has not begun.
    pub(super) fn new(way: Way) -> Self {
        Self { way, warm_up: None, turns: Vec::new(), failure: None }
    }

    fn rates(&self) -> Vec<f64> {
        self.turns.iter().map(Turn::rate).collect()
    }

    fn sum(&self, of: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
        self.turns.iter().map(of).sum()
    }

    fn bytes(&self) -> u64 {
        self.turns.iter().map(Turn::bytes).sum()
    }

    fn gib(&self) -> f64 {
        self.bytes() as f64 / GIB as f64
    }

    /// Share of the bytes that were read through the page cache, in percent.
    fn cached_percent(&self) -> f64 {
        let reads = self.turns.iter().flat_map(|turn| &turn.reads);
        let cached: u64 = reads.map(|read| read.cached_bytes).sum();
        100.0 * cached as f64 / self.bytes().max(1) as f64
    }

    /// Share of the files that was in memory before the turns, in percent.
    fn resident_percent(&self) -> Option<f64> {
        let before: Option<u64> = self.turns.iter().map(|turn| turn.before_bytes).sum();
        before.map(|before| 100.0 * before as f64 / self.bytes().max(1) as f64)
    }

    /// Processor seconds per GiB, user and system.
    fn processor(&self) -> Option<(f64, f64)> {
        let user = self.sum(|turn| Some(turn.processor?.user.as_secs_f64()))?;
        let system = self.sum(|turn| Some(turn.processor?.system.as_secs_f64()))?;
        Some((user / self.gib(), system / self.gib()))
    }
}

/// The lines of the ways that have turns.
pub(super) fn ways(load: Load, entrants: &[Entrant], volumes: &[Volume]) -> Vec<TreeWay> {
    entrants.iter().filter_map(|entrant| way(load, entrant, volumes)).collect()
}

fn way(load: Load, entrant: &Entrant, volumes: &[Volume]) -> Option<TreeWay> {
    let samples = entrant.rates();
    let spread = Spread::of(&samples)?;
    let shown = nearest(&samples, spread.median);
    let (shown, last) = (&entrant.turns[shown], entrant.turns.last()?);
    let processor = entrant.processor();
    let device: Option<u64> = entrant.turns.iter().map(|turn| turn.device_read_bytes).sum();
    let purges = entrant.turns.iter().map(|turn| turn.purges);
    let purges: Option<Vec<_>> = purges.collect();
    Some(TreeWay {
        name: entrant.way.name().to_owned(),
        wanted_bytes: load.bytes,
        wanted_readers: load.readers,
        measured: measured(entrant, last),
        median: spread.median,
        low: spread.low,
        high: spread.high,
        samples,
        warm_up: entrant.warm_up.into_iter().collect(),
        bytes: last.bytes(),
        user_s_per_gib: processor.map(|(user, _)| user),
        system_s_per_gib: processor.map(|(_, system)| system),
        device_read_bytes: device,
        volumes: (0..volumes.len()).map(|place| volume(entrant, volumes, place)).collect(),
        points: shown.samples.points(),
        memory_bytes: shown.samples.memory_bytes(),
        full_at_s: shown.samples.full_at().map(|at| at.as_secs_f64()),
        left_bytes: last.left_bytes,
        purges: purges.as_ref().map(|all| all.iter().map(|purges| purges.count).sum()),
        purge_seconds: purges.map(|all| all.iter().map(|one| one.time.as_secs_f64()).sum()),
        bystander: bystander(&entrant.turns),
    })
}

/// The place of the sample that is nearest to a value.
fn nearest(samples: &[f64], value: f64) -> usize {
    let distance = |place: &usize| (samples[*place] - value).abs();
    (0..samples.len()).min_by(|one, two| distance(one).total_cmp(&distance(two))).unwrap_or(0)
}

fn volume(entrant: &Entrant, volumes: &[Volume], place: usize) -> TreeVolume {
    let reads: Vec<_> = entrant.turns.iter().map(|turn| &turn.reads[place]).collect();
    let rates: Vec<_> = reads
        .iter()
        .map(|read| units::mib_per_second(read.bytes, read.seconds.max(1e-9)))
        .collect();
    let last = reads.last();
    TreeVolume {
        target: volumes[place].target.clone(),
        is_recorded: volumes[place].tree.is_recorded(),
        files: last.map_or(0, |read| read.files),
        bytes: last.map_or(0, |read| read.bytes),
        readers: last.map_or(0, |read| read.readers),
        mib_per_s: Spread::of(&rates).map_or(0.0, |spread| spread.median),
    }
}

fn bystander(turns: &[Turn]) -> Option<Bystander> {
    let all: Option<Vec<&Delays>> = turns.iter().map(|turn| turn.delays.as_ref()).collect();
    let all = all?;
    let last = *all.last()?;
    let mut reads = Latency::default();
    all.iter().for_each(|delays| reads.add(&delays.reads));
    Some(Bystander {
        hot_bytes: last.hot_bytes,
        evicted_bytes: last.evicted_bytes,
        reads: reads.count(),
        read_bytes: READ_BYTES,
        median_us: reads.quantile_us(0.5),
        p99_us: reads.quantile_us(0.99),
        max_us: reads.max_us(),
    })
}

/// One line on what was truly measured.
fn measured(entrant: &Entrant, last: &Turn) -> String {
    let files: u64 = last.reads.iter().map(|read| read.files).sum();
    let s = if files == 1 { "" } else { "s" };
    let what = format!("{files} file{s}, {}, hashed by blake3", units::size(last.bytes()));
    let cached = entrant.cached_percent();
    let how = match entrant.way {
        Way::Past if cached < 0.5 => "read past the page cache".to_owned(),
        Way::Past => format!(
            "{cached:.0} % of it read through the page cache, as direct reads are refused here"
        ),
        _ => "read through the page cache".to_owned(),
    };
    let before = match entrant.resident_percent() {
        None => ", whatever was in it before".to_owned(),
        Some(percent) if percent < 0.5 => ", with nothing of it in memory before".to_owned(),
        Some(percent) if percent > 99.5 => ", with all of it in memory before".to_owned(),
        Some(percent) => format!(", with {percent:.0} % of it in memory before"),
    };
    let purges = last.purges.map_or(String::new(), |purges| {
        let times = if purges.count == 1 { "once" } else { "again and again" };
        format!(", while the page cache was emptied {times}")
    });
    format!("{what}, {how}{before}{purges}")
}

/// Remarks on what was not as the names of the ways say.
pub(super) fn remarks(entrants: &[Entrant], volumes: &[Volume]) -> Vec<String> {
    let measured = || entrants.iter().filter(|entrant| !entrant.turns.is_empty());
    let is_stray = |entrant: &&Entrant| entrant.cached_percent() >= STRAY_MIN_PERCENT;
    let mut remarks: Vec<_> =
        measured().next().map_or(Vec::new(), |first| left_out(first, volumes));
    if measured().filter(|entrant| entrant.way == Way::Past).any(|past| is_stray(&past)) {
        remarks.push(
            "there is no way past the page cache here, so that its price cannot be told: the \
             files lie in memory, or their file system refuses direct reads"
                .to_owned(),
        );
        return remarks;
    }
    remarks.extend(measured().find(|entrant| entrant.way == Way::From).and_then(short));
    remarks.extend(measured().find(|entrant| entrant.way == Way::Past).and_then(batched));
    for entrant in measured().filter(|entrant| entrant.way != Way::From) {
        let stray = entrant.resident_percent().unwrap_or(0.0);
        if stray >= STRAY_MIN_PERCENT {
            remarks.push(format!(
                "{}: {stray:.0} % of the files stayed in memory although they were to leave it: \
                 other programs use them, or they are not written yet; 'sync' first, or other files",
                entrant.way.name()
            ));
        }
    }
    remarks
}

/// A remark on files in memory that are read in no time, as few of them have room there.
fn short(from: &Entrant) -> Option<String> {
    let last = from.turns.last()?;
    (last.seconds < TREE_RUN_SECONDS_MIN).then(|| {
        format!(
            "from the cache: a run of {:.2} s over {} says little: more files, or more memory for \
             them, make it longer",
            last.seconds,
            units::size(last.bytes())
        )
    })
}

/// Returns true if so many files have less than a block each, on average. The readers batch
/// such files past the page cache only, and the block layer merges the reads: so the ways differ
/// by more than the page cache.
pub fn are_read_in_batches(files: u64, bytes: u64) -> bool {
    bytes <= files * BLOCK
}

/// A remark on files that are read in batches.
fn batched(past: &Entrant) -> Option<String> {
    let last = past.turns.last()?;
    let files: u64 = last.reads.iter().map(|read| read.files).sum();
    are_read_in_batches(files, last.bytes()).then(|| {
        "past the page cache, small files are read many with one call, and through it one by one, \
         as most programs read them: a part of the loss, or all of it, is that"
            .to_owned()
    })
}

/// Remarks on files that could not be read in the last turn.
fn left_out(entrant: &Entrant, volumes: &[Volume]) -> Vec<String> {
    let reads = entrant.turns.last().map_or(&[][..], |turn| &turn.reads);
    let failed = volumes.iter().zip(reads).filter(|(_, read)| read.failed > 0);
    let remark = |(volume, read): (&Volume, &TreeRead)| {
        format!(
            "{}: files that could not be read are left out ({}), the first: {}",
            volume.target,
            read.failed,
            read.error.as_deref().unwrap_or_default()
        )
    };
    failed.map(remark).collect()
}

/// The price of the page cache; `None` unless both ways were what they say.
pub(super) fn cost(load: Load, entrants: &[Entrant]) -> Option<CacheCost> {
    let find = |way| entrants.iter().find(|entrant| entrant.way == way);
    let (past, through) = (find(Way::Past)?, find(Way::Through)?);
    let is_stray = |percent: f64| percent >= STRAY_MIN_PERCENT;
    if is_stray(past.cached_percent()) || through.resident_percent().is_some_and(is_stray) {
        return None;
    }
    let (potential, actual) = (past.rates(), through.rates());
    let seconds = |entrant: &Entrant| {
        let all: Vec<_> = entrant.turns.iter().map(|turn| turn.seconds).collect();
        Spread::of(&all).map(|spread| spread.median)
    };
    let run_seconds = seconds(past)?.min(seconds(through)?);
    let lost = loss(&potential, &actual, run_seconds)?;
    let total = |entrant: &Entrant| entrant.processor().map(|(user, system)| user + system);
    let ratio = total(through).zip(total(past)).filter(|(_, past)| *past > 0.0);
    Some(CacheCost {
        wanted_bytes: load.bytes,
        wanted_readers: load.readers,
        potential_mib_s: Spread::of(&potential)?.median,
        actual_mib_s: Spread::of(&actual)?.median,
        loss_percent: lost.percent,
        low: lost.low,
        high: lost.high,
        runs: lost.rounds,
        run_seconds,
        cpu_ratio: ratio.map(|(through, past)| through / past),
        verdict: lost.verdict,
    })
}
