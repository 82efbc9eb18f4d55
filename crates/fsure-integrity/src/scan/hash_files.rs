//! Reads and hashes files by the readers of the pipeline, and judges nothing: what remains of
//! a run when names, records and verdicts are taken away, so that one way of reading can be
//! measured beside another.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fsure_os::device::DeviceClass;

use super::ScanPlan;
use super::file_source::{FileSource, SourceFile};
use super::read_request::{ReadOutcome, ReadRequest};
use super::reader_context::ReadCounters;
use super::reader_pool::{IN_FLIGHT_MAX, Pool};
use super::reader_thread::ReaderEvent;
use super::scrub_budget::Deadline;
use crate::model::BytesByReadMode;
use fsure_core::block_hash::BLOCK;
use fsure_core::{
    Algorithm, AlgorithmSet, DeviceReaders, Error, Monitor, RelPath, Result, timeout_error,
};

/// Files taken before the readers and the stop request are checked.
const FILES_AT_ONCE: usize = 64;

/// Longest wait for news of the readers: as often the count of hashed bytes is brought up to
/// date.
const NEWS_TIMEOUT: Duration = Duration::from_millis(10);

/// Pause between two looks for readers that are stuck.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The result of reading files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HashedFiles {
    /// Files that were read to the end of what was wanted of them.
    pub files: u64,
    /// Files that could not be read, or changed meanwhile.
    pub failed: u64,
    /// The first of them, with the reason.
    pub failure: Option<String>,
    /// Bytes hashed.
    pub bytes: u64,
    /// The ways in which they were read.
    pub by_mode: BytesByReadMode,
    /// Seconds from the first name to the last digest.
    pub seconds: f64,
    /// Readers for the device of the root.
    pub readers: usize,
    /// True if the run was stopped before its end.
    pub is_cut_short: bool,
}

/// The tree that is read, again and again.
#[derive(Clone, Copy, Debug)]
pub struct HashTarget<'a> {
    /// The folder that an error names.
    pub root: &'a Path,
    /// Class of its device, once a run has found it. Timed anew on a busy machine, it might be
    /// another one, and two runs would have different readers.
    pub class: &'a OnceLock<DeviceClass>,
}

/// Reads and hashes the files of `source` by the way and with the effort of `plan`. `hashed`
/// counts the bytes while it runs.
pub fn hash_files(
    plan: &ScanPlan,
    target: HashTarget<'_>,
    source: &mut FileSource,
    hashed: &AtomicU64,
    monitor: &dyn Monitor,
) -> Result<HashedFiles> {
    let meter = Arc::new(ReadCounters::default());
    let mut pool = Pool::new(plan, Arc::clone(&meter), Deadline::new(None, &plan.clock));
    // Before the clock runs: a disk with heads takes a fifth of a second to show them.
    let class = *target.class.get_or_init(|| pool.class(&RelPath::root()));
    pool.set_class(class);
    let readers = plan.effort.threads.unwrap_or_else(|| DeviceReaders::of(class).threads);
    let mut run = HashRun {
        root: target.root,
        timeout: plan.effort.timeout,
        pool,
        meter: &meter,
        requests: Vec::new(),
        in_flight: 0,
        next_id: 0,
        checked_at: Instant::now(),
        done: HashedFiles { readers, ..HashedFiles::default() },
    };
    let started = Instant::now();
    let result = run.run(source, hashed, monitor);
    run.done.seconds = started.elapsed().as_secs_f64();
    // Whatever happened, the readers must not go on.
    run.pool.close();
    result?;
    hashed.store(meter.hashed(), Ordering::Relaxed);
    Ok(HashedFiles { bytes: meter.hashed(), by_mode: meter.bytes_by_way(), ..run.done })
}

struct HashRun<'a> {
    root: &'a Path,
    timeout: Duration,
    pool: Pool,
    meter: &'a ReadCounters,
    /// Requests that are not sent yet.
    requests: Vec<ReadRequest>,
    /// Requests that were made and not answered, those included.
    in_flight: usize,
    next_id: u64,
    checked_at: Instant,
    done: HashedFiles,
}

impl HashRun<'_> {
    fn run(
        &mut self,
        source: &mut FileSource,
        hashed: &AtomicU64,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut has_more = true;
        while has_more || self.in_flight > 0 {
            if monitor.stop_requested().is_some() {
                self.done.is_cut_short = true;
                return Ok(());
            }
            for _ in 0..FILES_AT_ONCE {
                if !has_more || self.in_flight >= IN_FLIGHT_MAX {
                    break;
                }
                match source.next_file()? {
                    Some(file) => self.take(file),
                    None => has_more = false,
                }
            }
            let must_wait = !has_more || self.in_flight >= IN_FLIGHT_MAX;
            self.pool.send(&mut self.requests, must_wait)?;
            if must_wait && let Ok(event) = self.pool.events.recv_timeout(NEWS_TIMEOUT) {
                self.handle(event)?;
            }
            while let Ok(event) = self.pool.events.try_recv() {
                self.handle(event)?;
            }
            hashed.store(self.meter.hashed(), Ordering::Relaxed);
            self.check_readers()?;
        }
        Ok(())
    }

    fn take(&mut self, file: SourceFile) {
        // The whole of a file is read in segments, a part of it by its blocks.
        let blocks = match file.bytes < file.stat.size {
            true => (0..file.bytes.div_ceil(BLOCK)).collect(),
            false => Vec::new(),
        };
        self.requests.push(ReadRequest {
            id: self.next_id,
            path: file.path,
            stat: file.stat,
            algorithms: AlgorithmSet::of(&[Algorithm::Blake3]),
            uses_cache: false,
            // Else one reader would read all of the part.
            keeps_parts: !blocks.is_empty(),
            blocks,
            kept: Vec::new(),
            alone: false,
            blocks_read: None,
        });
        self.next_id += 1;
        self.in_flight += 1;
    }

    fn handle(&mut self, event: ReaderEvent) -> Result<()> {
        match event {
            ReaderEvent::Part(..) => {}
            ReaderEvent::Done(answers) => {
                self.in_flight -= answers.len();
                for (request, outcome) in answers {
                    match failure(outcome) {
                        None => self.done.files += 1,
                        Some(why) => {
                            self.done.failed += 1;
                            let path = request.path.display();
                            self.done.failure.get_or_insert_with(|| format!("{path}: {why}"));
                        }
                    }
                }
            }
            ReaderEvent::Unable(error) => return Err(error),
        }
        Ok(())
    }

    /// Fails if a reader waits too long for the storage: a run with a gap of minutes in it is
    /// no measurement.
    fn check_readers(&mut self) -> Result<()> {
        if self.checked_at.elapsed() < STUCK_CHECK_INTERVAL {
            return Ok(());
        }
        self.checked_at = Instant::now();
        match self.pool.look_after()? {
            Some(lost) if lost.is_empty() => Ok(()),
            _ => Err(Error::Io {
                doing: "read files of",
                path: self.root.to_owned(),
                source: timeout_error(self.timeout),
            }),
        }
    }
}

/// Returns the reason why a file could not be read; `None` if it was.
fn failure(outcome: ReadOutcome) -> Option<String> {
    let error = match outcome {
        ReadOutcome::Read(content) if content.unreadable.is_empty() => return None,
        ReadOutcome::Read(content) => content.error,
        ReadOutcome::Denied(error) | ReadOutcome::Unopened(error) | ReadOutcome::NoMeans(error) => {
            Some(error)
        }
        ReadOutcome::Gone => return Some("it is gone".to_owned()),
        ReadOutcome::Changed => return Some("it was changed while it was read".to_owned()),
        ReadOutcome::Stopped | ReadOutcome::CutOff(_) => None,
    };
    Some(error.map_or_else(|| "it was not read to its end".to_owned(), |error| error.to_string()))
}
