//! Measures what the page cache costs and gains a program that reads more than fits
//! it: a large file is read once through it and once past it, with the throughput
//! over time, and with what became of another file that was in memory before. The
//! memory is a control group's, so that no other process loses its pages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fsure_os::buffer::Buffer;
use fsure_os::machine;
use fsure_os::memory_cgroup::Group;
use fsure_os::opener::Opener;
use fsure_os::path as os_path;
use fsure_os::read::{OpenFile, ReadMode};
use fsure_os::root_dir::Root;

use super::rung::{RunContext, RunResult, RungUnavailable, Stopwatch};
use super::workspace::{REQUEST, SpeedWorkspace};
use crate::results::{Eviction, MeasurementMonitor, NotRun, ResultLine, Series};
use fsure_core::units;
use fsure_core::units::GIB;

/// The set is so many times the cache.
const SET: u64 = 2;
/// The file that was in memory before is one part in this many of the cache.
const PLANTED_SHARE: u64 = 4;
/// Points of a curve.
const POINTS: u64 = 50;
/// Smallest cache, in bytes: a smaller one holds the process itself and little else.
pub(super) const CACHE_MIN: u64 = 64 << 20;

/// Reads a folder's set both ways, and reports the results. Returns the number of
/// ways that had to be left out.
pub(super) fn measure(
    site: &SpeedWorkspace,
    cache: u64,
    go: &RunContext<'_>,
    listener: &dyn MeasurementMonitor,
) -> u64 {
    let mut left_out = 0;
    for way in [ReadMode::Cached, ReadMode::Direct] {
        let name = if way == ReadMode::Cached { "read cached" } else { "read uncached" };
        match Experiment::new(site, cache, way, go).and_then(|experiment| experiment.run(go)) {
            Ok(series) => listener.measured(&ResultLine::Series(series)),
            Err(refusal) => {
                left_out += 1;
                let why = match refusal {
                    RungUnavailable::NotHere(why) => why,
                    RungUnavailable::NoTime => {
                        "the time budget was spent; a larger '--budget' helps".into()
                    }
                    RungUnavailable::Stopped => "interrupted".into(),
                };
                let (name, target) = (name.to_owned(), site.target.clone());
                listener.measured(&ResultLine::NotRun(NotRun { name, target, why }));
            }
        }
    }
    // The rungs to come need the space.
    for name in FILES {
        os_path::remove(&site.path().join(FOLDER).join(name), false);
    }
    left_out
}

/// Name of the folder of both files.
const FOLDER: &str = "cache";
/// Names of the file that is read, and of the file that was in memory before.
const FILES: [&str; 2] = ["set", "planted"];

/// One way, made ready.
struct Experiment<'a> {
    site: &'a SpeedWorkspace,
    way: ReadMode,
    cache: u64,
    set: u64,
    /// The file that was in memory before; open, so that its cached pages can be
    /// counted.
    planted: OpenFile,
    stream: OpenFile,
    buffer: Buffer,
    /// Left when this is dropped.
    group: Option<Group>,
}

impl<'a> Experiment<'a> {
    fn new(
        site: &'a SpeedWorkspace,
        cache: u64,
        way: ReadMode,
        go: &RunContext<'_>,
    ) -> RunResult<Self> {
        let (set, planted) = (cache.saturating_mul(SET), cache / PLANTED_SHARE);
        let folder = lay_out(site, set, planted, go)?;
        let (group, cache) = limited(site, cache, set)?;
        let open = |name: &str, way| -> RunResult<OpenFile> {
            let opener = Opener::new(Arc::new(Root::open(&folder)?), way);
            let source = opener.open(name.as_bytes(), false)?.0;
            source.evict();
            Ok(source)
        };
        let (planted, stream) = (open(FILES[1], ReadMode::Cached)?, open(FILES[0], way)?);
        let buffer = Buffer::new(REQUEST as usize)?;
        Ok(Self { site, way, cache, set, planted, stream, buffer, group })
    }

    fn run(mut self, go: &RunContext<'_>) -> RunResult<Series> {
        read(&self.planted, &mut self.buffer, go, |_| ())?;
        let before = self.planted.in_memory();
        let watch = Stopwatch::start(None);
        let (mut points, mut last) = (Vec::new(), (0_u64, Duration::ZERO));
        read(&self.stream, &mut self.buffer, go, |done| {
            if done - last.0 >= self.set / POINTS || done == self.set {
                let now = watch.elapsed();
                let rate = units::mib_per_second(done - last.0, (now - last.1).as_secs_f64());
                points.push((now.as_secs_f64(), rate));
                last = (done, now);
            }
        })?;
        let run = watch.stop(self.set);
        let (after, left) = (self.planted.in_memory(), self.stream.in_memory());
        let eviction = before.zip(after).zip(left).map(|((before, after), left)| Eviction {
            before_bytes: before,
            after_bytes: after,
            left_bytes: left,
        });
        let cpu_s = run.cpu_s.ok_or_else(no_cpu_time)?;
        Ok(Series {
            name: if self.way == ReadMode::Cached { "read cached" } else { "read uncached" }
                .to_owned(),
            target: self.site.target.clone(),
            measured: self.measured(),
            points,
            bytes: self.set,
            cache_bytes: self.cache,
            mib_per_s: units::mib_per_second(self.set, run.seconds),
            cpu_s_per_gib: cpu_s / (self.set as f64 / GIB as f64),
            eviction,
        })
    }

    fn measured(&self) -> String {
        let how = match self.way {
            ReadMode::Cached => "through the page cache",
            _ if self.stream.is_in_memory() => {
                "through the page cache, as direct reads are refused here"
            }
            _ => "past the page cache",
        };
        let whose = match self.group {
            Some(_) => "of a control group",
            None => "that was free on this machine",
        };
        format!(
            "a file of {}, none of it in memory, read once {how} by one reader, 4 MiB at a time, \
             with {} of memory {whose}",
            units::size(self.set),
            units::size(self.cache)
        )
    }
}

fn no_cpu_time() -> RungUnavailable {
    RungUnavailable::NotHere(
        "this system does not report the processor time of a process".to_owned(),
    )
}

/// Writes both files, if the other way has not.
fn lay_out(
    site: &SpeedWorkspace,
    set: u64,
    planted: u64,
    go: &RunContext<'_>,
) -> RunResult<PathBuf> {
    let folder = site.path().join(FOLDER);
    os_path::make_folder(&folder)?;
    for (name, size) in FILES.into_iter().zip([set, planted]) {
        let path = folder.join(name);
        if os_path::exists(&path) {
            continue;
        }
        site.require_free_space(size)?;
        if let Err(refusal) = site.write_past_cache(&path, size, go) {
            os_path::remove(&path, false);
            return Err(refusal);
        }
    }
    Ok(folder)
}

/// A control group of that much memory with this process in it; without one, as
/// much memory as is free, if the set is larger.
fn limited(site: &SpeedWorkspace, cache: u64, set: u64) -> RunResult<(Option<Group>, u64)> {
    let group = Group::create(&site.scratch, cache);
    let why = match group.and_then(|group| group.take(std::process::id()).map(|()| group)) {
        Ok(group) => return Ok((Some(group), cache)),
        Err(why) => why,
    };
    match machine::available_memory() {
        Some(free) if free < set => Ok((None, free)),
        free => {
            let free = free.map_or_else(|| "what is free".to_owned(), units::size);
            Err(RungUnavailable::NotHere(format!(
                "{why}; without a control group the data, twice the cache, must be larger than all \
                 free memory ({free}): run it as root, or give a '--cache' of at least half of that"
            )))
        }
    }
}

/// Reads a file from its beginning to its end.
fn read(
    source: &OpenFile,
    buffer: &mut Buffer,
    go: &RunContext<'_>,
    mut done: impl FnMut(u64),
) -> RunResult<()> {
    let mut at = 0;
    loop {
        let bytes = source.read_at(buffer, at, REQUEST as usize)?.bytes as u64;
        at += bytes;
        if bytes > 0 {
            done(at);
        }
        if bytes < REQUEST {
            return Ok(());
        }
        go.check()?;
    }
}
