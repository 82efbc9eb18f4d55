//! Rungs that touch no storage, as a reference for all others. Nothing on this
//! machine can be read faster than memory is copied, and nothing can be verified
//! faster than it is hashed.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fsure_os::buffer::Buffer;
use fsure_os::page_cache;

use super::data_pool::{DataPool, POOL};
use super::rung::{MEMORY, MIB_PER_S, RunContext, RunResult, Rung, RungRun, Spec, Stopwatch};
use fsure_core::block_hash::{BLOCK, SequentialDigests, block_value, merge_blocks};
use fsure_core::{Algorithm, AlgorithmSet, Digests, units};

/// Bytes that `pv` moves at once.
pub(super) const PV_BLOCK: usize = 400 << 10;

/// Everything of this file, in the order of the ladder.
pub(super) fn rungs(pool: &Arc<DataPool>, size: u64) -> Vec<Box<dyn Rung>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut rungs: Vec<Box<dyn Rung>> = vec![
        Box::new(Void { size, void: None, block: vec![0; PV_BLOCK] }),
        Box::new(MemoryCopy { pool: Arc::clone(pool), target: None }),
    ];
    for algorithm in Algorithm::ALL {
        // On one core the second would be the first again.
        for all in [1, cores].into_iter().take(cores.min(2)) {
            rungs.push(Box::new(Hash { pool: Arc::clone(pool), algorithm, cores: all, passes: 1 }));
        }
    }
    rungs
}

fn spec(name: String) -> Spec {
    Spec { name, target: MEMORY.to_owned(), unit: MIB_PER_S }
}

/// The founders' zeros to nowhere.
struct Void {
    size: u64,
    void: Option<page_cache::NullSink>,
    block: Vec<u8>,
}

impl Rung for Void {
    fn spec(&self) -> Spec {
        spec("void".to_owned())
    }

    fn prepare(&mut self, _go: &RunContext<'_>) -> RunResult<()> {
        self.void = Some(page_cache::NullSink::open()?);
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let Some(void) = &mut self.void else { unreachable!("prepared before it is run") };
        let watch = Stopwatch::start(None);
        let mut done = 0;
        while done < self.size {
            void.pass(&mut self.block)?;
            done += PV_BLOCK as u64;
            go.check()?;
        }
        Ok(watch.stop(done))
    }

    fn measured(&self) -> String {
        "zeros from the system to nowhere, 400 KiB at a time as pv moves them: two calls and one \
         cleared block, no storage"
            .to_owned()
    }
}

/// Memory to memory.
struct MemoryCopy {
    pool: Arc<DataPool>,
    target: Option<Buffer>,
}

/// Times that the pool is copied in a run: 256 MiB, some 20 ms.
const COPIES: u64 = 4;

impl Rung for MemoryCopy {
    fn spec(&self) -> Spec {
        spec("memory copy".to_owned())
    }

    fn prepare(&mut self, _go: &RunContext<'_>) -> RunResult<()> {
        self.target = Some(Buffer::new(POOL)?);
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let Some(target) = &mut self.target else { unreachable!("prepared before it is run") };
        let watch = Stopwatch::start(None);
        for _ in 0..COPIES {
            target[..POOL].copy_from_slice(self.pool.all());
            std::hint::black_box(&mut *target);
            go.check()?;
        }
        Ok(watch.stop(COPIES * POOL as u64))
    }

    fn measured(&self) -> String {
        format!(
            "{} copied from one place in memory to another by one core, past the caches",
            units::size(POOL as u64)
        )
    }
}

/// The time that a run of [`Hash`] takes at least. What the kernel still does for the rung before,
/// such as the end of the FUSE server, takes a core for a while: by runs of 10 ms, 6 of 28 had half
/// of the rate.
const HASH_TIME: Duration = Duration::from_millis(100);

/// Passes of a run at most, whatever the clock says of the first.
const PASSES_MAX: f64 = 100.0;

/// A digest of what is in memory.
struct Hash {
    /// Times that each core hashes the pool in a run.
    passes: u64,
    pool: Arc<DataPool>,
    algorithm: Algorithm,
    cores: usize,
}

impl Rung for Hash {
    fn spec(&self) -> Spec {
        let all = if self.cores > 1 { " all cores" } else { "" };
        spec(format!("hash {}{all}", self.algorithm.name()))
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        let began = Instant::now();
        hash(self.algorithm, self.pool.all(), go)?;
        let pass = began.elapsed().as_secs_f64();
        self.passes = (HASH_TIME.as_secs_f64() / pass).ceil().clamp(1.0, PASSES_MAX) as u64;
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let watch = Stopwatch::start(None);
        let each = || (0..self.passes).try_for_each(|_| hash(self.algorithm, self.pool.all(), go));
        thread::scope(|scope| {
            let others: Vec<_> = (1..self.cores).map(|_| scope.spawn(each)).collect();
            let mine = each();
            let joined = others.into_iter().map(|one| one.join().expect("hashing cannot fail"));
            joined.fold(mine, RunResult::and)
        })?;
        Ok(watch.stop(self.passes * POOL as u64 * self.cores as u64))
    }

    fn measured(&self) -> String {
        let by = match self.cores {
            1 => "one core".to_owned(),
            cores => format!("{cores} cores"),
        };
        let pool = units::size(POOL as u64);
        format!(
            "{} of {pool} in memory, {} times by {by}, with the product's own code",
            self.algorithm.name(),
            self.passes
        )
    }
}

/// Hashes it as a reader does: block by block.
fn hash(algorithm: Algorithm, content: &[u8], go: &RunContext<'_>) -> RunResult<()> {
    let mut in_order = SequentialDigests::new(AlgorithmSet::of(&[algorithm]));
    let mut values = Vec::new();
    for (place, block) in (0..).zip(content.chunks(BLOCK as usize)) {
        match &mut in_order {
            Some(in_order) => in_order.update(block),
            None => values.push(block_value(place, block)),
        }
        go.check()?;
    }
    let mut digests = Digests::default();
    match in_order {
        Some(in_order) => in_order.finish(&mut digests),
        None => digests.insert(algorithm, &merge_blocks(&values)),
    }
    std::hint::black_box(&digests);
    Ok(())
}
