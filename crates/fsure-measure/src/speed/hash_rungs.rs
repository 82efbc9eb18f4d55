//! The hash of a file: from memory, and cold from the disk. Beside `hash blake3` these show
//! what reading costs, and beside `verify` what the record costs. Read by as many readers as
//! `verify` has, each of which hashes what it has read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fsure_os::buffer::Buffer;
use fsure_os::read::{OpenFile, ReadMode};

use super::rung::{MIB_PER_S, RunContext, RunResult, Rung, RungRun, Spec, Stopwatch};
use super::workspace::{REQUEST, SpeedWorkspace};
use fsure_core::block_hash::{BLOCK, block_value};
use fsure_core::units;

/// Everything of this file, in the order of the ladder.
pub(super) fn rungs(site: &Arc<SpeedWorkspace>) -> Vec<Box<dyn Rung>> {
    let rung = |way| -> Box<dyn Rung> {
        let site = Arc::clone(site);
        Box::new(HashFile { site, way, buffers: Vec::new(), was_as_meant: true })
    };
    vec![rung(ReadMode::Cached), rung(ReadMode::Direct)]
}

struct HashFile {
    site: Arc<SpeedWorkspace>,
    way: ReadMode,
    buffers: Vec<Buffer>,
    /// True if before each run all of the file was in memory, or nothing of it.
    was_as_meant: bool,
}

impl HashFile {
    fn is_cached(&self) -> bool {
        self.way == ReadMode::Cached
    }

    /// Has all of the file in memory, or nothing of it.
    fn make_ready(&mut self, source: &OpenFile, go: &RunContext<'_>) -> RunResult<()> {
        let wanted = if self.is_cached() {
            self.read(source, go)?;
            self.site.size
        } else {
            source.evict();
            0
        };
        self.was_as_meant &= source.in_memory() == Some(wanted);
        Ok(())
    }

    /// Reads and hashes all of it, each reader what comes next.
    fn read(&mut self, source: &OpenFile, go: &RunContext<'_>) -> RunResult<()> {
        let (next, size) = (AtomicU64::new(0), self.site.size);
        let each = |buffer: &mut Buffer| -> RunResult<()> {
            loop {
                let at = next.fetch_add(REQUEST, Ordering::Relaxed);
                if at >= size {
                    return Ok(());
                }
                let wanted = REQUEST.min(size - at) as usize;
                source.read_at(buffer, at, wanted)?;
                for (place, block) in (at / BLOCK..).zip(buffer[..wanted].chunks(BLOCK as usize)) {
                    std::hint::black_box(block_value(place, block));
                }
                go.check()?;
            }
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> =
                self.buffers.iter_mut().map(|buffer| scope.spawn(move || each(buffer))).collect();
            let ended = readers.into_iter().map(|reader| reader.join().expect("a reader"));
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }
}

impl Rung for HashFile {
    fn spec(&self) -> Spec {
        let name = if self.is_cached() { "file hash cached" } else { "file hash cold" };
        self.site.spec(name, MIB_PER_S)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        self.site.lay_out(go)?;
        let buffers = (0..self.site.readers()).map(|_| Buffer::new(REQUEST as usize));
        self.buffers = buffers.collect::<std::io::Result<_>>()?;
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let source = self.site.open_stream(self.way)?;
        self.make_ready(&source, go)?;
        let site = Arc::clone(&self.site);
        let watch = Stopwatch::start(site.meter.as_ref());
        self.read(&source, go)?;
        Ok(watch.stop(site.size))
    }

    fn measured(&self) -> String {
        let from = match (self.is_cached(), self.was_as_meant) {
            (true, true) => "all of it in memory before each run",
            (false, true) => "nothing of it in memory before each run",
            (true, false) => "read once before each run; that it was in memory could not be shown",
            (false, false) => "that it came from the device could not be shown",
        };
        format!(
            "blake3 of a file of {}, by {} readers that hash what they have read; {from}",
            units::size(self.site.size),
            self.buffers.len()
        )
    }
}
