//! One large file, written and read as far as each rung needs and no further. What is
//! written is a new file each time, and it is gone before the next rung's turn, so
//! that no rung's left-overs are written in another's time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{self, Method, Writer};
use fsure_os::path as os_path;
use fsure_os::read::{OpenFile, ReadMode};

use super::memory_rungs::PV_BLOCK;
use super::rung::{
    MIB_PER_S, RunContext, RunResult, Rung, RungRun, RungUnavailable, Spec, Stopwatch,
};
use super::workspace::{REQUEST, SpeedWorkspace};
use crate::guest_memory::touch_memory;
use fsure_core::units;

/// Bytes of one request of a plain reader: larger ones gain nothing.
const CACHED_REQUEST: u64 = 512 << 10;

/// Everything of this file, in the order of the ladder.
pub(super) fn rungs(site: &Arc<SpeedWorkspace>) -> Vec<Box<dyn Rung>> {
    let write =
        |reach| -> Box<dyn Rung> { Box::new(Write { site: Arc::clone(site), reach, way: None }) };
    vec![
        write(WriteTarget::Cache),
        write(WriteTarget::Device),
        write(WriteTarget::Medium),
        Box::new(ReadCached { site: Arc::clone(site), buffer: None, is_proven: true }),
        Box::new(ReadDirect { site: Arc::clone(site), buffers: Vec::new(), seen: None }),
    ]
}

/// The place that a write has to reach before the clock stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteTarget {
    /// The page cache.
    Cache,
    /// The device, whose own cache may have it.
    Device,
    /// The medium, as far as a flush reports that.
    Medium,
}

struct Write {
    site: Arc<SpeedWorkspace>,
    reach: WriteTarget,
    /// Method by which it came to the device; `None` before that is known.
    way: Option<Method>,
}

impl Write {
    fn create(&mut self, path: &Path) -> std::io::Result<Writer> {
        if self.reach != WriteTarget::Device {
            return Writer::create(path, Method::WriteOnly);
        }
        if self.way != Some(Method::SyncFileRange) {
            self.way = Some(Method::Direct);
            match self.site.direct_writer(path) {
                Err(error) if durable_write::is_refusal(&error) => {}
                made => return made,
            }
        }
        self.way = Some(Method::SyncFileRange);
        Writer::create(path, Method::SyncFileRange)
    }

    /// Returns in words which part of the system holds what was written and not
    /// flushed. Below an overlay or a network there may be further memory.
    fn holder(&self) -> &'static str {
        match self.site.meter {
            Some(_) => "the device has it, its own cache may",
            None => "no device has a counter that could show where it is",
        }
    }

    fn write(&self, writer: &Writer, go: &RunContext<'_>) -> RunResult<RungRun> {
        let block = match self.way {
            Some(Method::Direct) => REQUEST,
            _ => PV_BLOCK as u64,
        };
        let watch = Stopwatch::start(self.site.meter.as_ref());
        self.site.fill(writer, self.site.size, block, go)?;
        match self.reach {
            WriteTarget::Cache => {}
            WriteTarget::Device => writer.flush()?,
            WriteTarget::Medium => writer.flush_to_medium()?,
        }
        Ok(watch.stop(self.site.size))
    }
}

impl Rung for Write {
    fn spec(&self) -> Spec {
        let name = match self.reach {
            WriteTarget::Cache => "disk write cached",
            WriteTarget::Device => "disk write written",
            WriteTarget::Medium => "disk write durable",
        };
        self.site.spec(name, MIB_PER_S)
    }

    fn prepare(&mut self, _go: &RunContext<'_>) -> RunResult<()> {
        if self.reach != WriteTarget::Cache && self.site.is_memory() {
            return Err(in_memory(&self.site));
        }
        self.site.require_size()
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let path = self.site.path().join("written");
        if self.reach != WriteTarget::Device {
            touch_memory(self.site.size)?;
        }
        let writer =
            self.create(&path).map_err(|error| match durable_write::is_refusal(&error) {
                true => RungUnavailable::NotHere(
                    "this system cannot write past the page cache without a flush".to_owned(),
                ),
                false => error.into(),
            })?;
        let run = self.write(&writer, go);
        drop(writer);
        // Its pages that are still in memory are never written.
        os_path::remove(&path, false);
        run
    }

    fn measured(&self) -> String {
        let size = units::size(self.site.size);
        match (self.reach, self.way) {
            (WriteTarget::Cache, _) => format!(
                "a new file of {size}, 400 KiB at a time, into the page cache: memory (used a \
                 moment before), and nothing that a power cut leaves"
            ),
            (WriteTarget::Device, Some(Method::Direct)) => format!(
                "a new file of {size} past the page cache (direct), 4 MiB at a time, not \
                 flushed: {}",
                self.holder()
            ),
            (WriteTarget::Device, _) => format!(
                "a new file of {size} through the page cache and out of it again \
                 (sync_file_range; direct writes are refused here), not flushed: {}",
                self.holder()
            ),
            (WriteTarget::Medium, _) => format!(
                "a new file of {size}, 400 KiB at a time, and one flush at the end ({})",
                Method::strongest().name()
            ),
        }
    }
}

fn in_memory(site: &SpeedWorkspace) -> RungUnavailable {
    RungUnavailable::NotHere(format!(
        "{} is in memory: there is no device to write to; see 'disk write cached'",
        site.kind
    ))
}

struct ReadCached {
    site: Arc<SpeedWorkspace>,
    buffer: Option<Buffer>,
    is_proven: bool,
}

impl ReadCached {
    fn read(&mut self, source: &OpenFile, go: &RunContext<'_>) -> RunResult<()> {
        let buffer = self.buffer.as_mut().expect("prepared before it is run");
        let mut at = 0;
        while at < self.site.size {
            let wanted = CACHED_REQUEST.min(self.site.size - at);
            source.read_at(buffer, at, wanted as usize)?;
            at += wanted;
            go.check()?;
        }
        Ok(())
    }
}

impl Rung for ReadCached {
    fn spec(&self) -> Spec {
        self.site.spec("disk read cached", MIB_PER_S)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        self.buffer = Some(Buffer::new(CACHED_REQUEST as usize)?);
        self.site.lay_out(go)
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let source = self.site.open_stream(ReadMode::Cached)?;
        self.read(&source, go)?;
        self.is_proven &= source.in_memory().is_some_and(|bytes| bytes >= self.site.size);
        let site = Arc::clone(&self.site);
        let watch = Stopwatch::start(site.meter.as_ref());
        self.read(&source, go)?;
        Ok(watch.stop(site.size))
    }

    fn measured(&self) -> String {
        let proof = match self.is_proven {
            true => "all of the file was in memory before each run",
            false => "read once before each run; that all of it was in memory could not be shown",
        };
        format!(
            "a file of {} out of the page cache by one reader, 512 KiB at a time: memory and no \
             storage; {proof}",
            units::size(self.site.size)
        )
    }
}

struct ReadDirect {
    site: Arc<SpeedWorkspace>,
    buffers: Vec<Buffer>,
    seen: Option<RunObservations>,
}

/// The observations of the runs, the worst of all.
#[derive(Clone, Copy)]
struct RunObservations {
    way: ReadMode,
    /// True if the device's counter moved by what was read; `None` without a counter.
    device: Option<bool>,
    /// True if nothing of it was in memory before.
    was_out: bool,
}

impl ReadDirect {
    /// Reads all of it, each reader what comes next.
    fn read(&mut self, source: &OpenFile, go: &RunContext<'_>) -> RunResult<ReadMode> {
        let (next, size) = (AtomicU64::new(0), self.site.size);
        let each = |buffer: &mut Buffer| -> RunResult<ReadMode> {
            let mut worst = ReadMode::Direct;
            loop {
                let at = next.fetch_add(REQUEST, Ordering::Relaxed);
                if at >= size {
                    return Ok(worst);
                }
                let wanted = REQUEST.min(size - at) as usize;
                worst = worst.max(source.read_at(buffer, at, wanted)?.way);
                go.check()?;
            }
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> =
                self.buffers.iter_mut().map(|buffer| scope.spawn(move || each(buffer))).collect();
            let ways = readers.into_iter().map(|reader| reader.join().expect("a reader"));
            ways.reduce(|one, other| Ok(one?.max(other?))).unwrap_or(Ok(ReadMode::Direct))
        })
    }
}

impl Rung for ReadDirect {
    fn spec(&self) -> Spec {
        self.site.spec("disk read direct", MIB_PER_S)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        if self.site.is_memory() {
            return Err(in_memory(&self.site));
        }
        self.site.lay_out(go)?;
        let buffers = (0..self.site.readers()).map(|_| Buffer::new(REQUEST as usize));
        self.buffers = buffers.collect::<std::io::Result<_>>()?;
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let source = self.site.open_stream(ReadMode::Direct)?;
        source.evict();
        let was_out = source.in_memory() == Some(0);
        let site = Arc::clone(&self.site);
        let watch = Stopwatch::start(site.meter.as_ref());
        let way = self.read(&source, go)?;
        let run = watch.stop(site.size);
        // Holes and what is packed among the metadata do not occur in it.
        let device = run.device.map(|device| device.read_bytes >= self.site.size);
        let now = RunObservations { way, device, was_out };
        self.seen = Some(self.seen.map_or(now, |before| RunObservations {
            way: before.way.max(way),
            device: before.device.zip(device).map(|(one, other)| one && other),
            was_out: before.was_out && was_out,
        }));
        Ok(run)
    }

    fn measured(&self) -> String {
        let how = match self.seen.map(|seen| seen.way) {
            None | Some(ReadMode::Direct) => "past the page cache (direct)",
            Some(ReadMode::DontCache) => "through the page cache, left empty (don't-cache)",
            Some(ReadMode::Dropped) => "through the page cache, emptied before and after (dropped)",
            Some(ReadMode::Cached) => "through the page cache (direct reads are refused here)",
        };
        let proof = match self.seen {
            Some(RunObservations { device: Some(true), .. }) => {
                "the device's counter shows all of it"
            }
            Some(RunObservations { device: Some(false), .. }) => {
                "the device's counter shows less: part of it came from memory"
            }
            Some(RunObservations { way: ReadMode::Direct, .. }) => {
                "no device has a counter that could show it"
            }
            Some(RunObservations { was_out: true, .. }) => "nothing of it was in memory before",
            _ => "that it came from the device could not be shown",
        };
        format!(
            "a file of {} {how} by {} of verify's readers, 4 MiB at a time, not hashed; {proof}",
            units::size(self.site.size),
            self.buffers.len()
        )
    }
}
