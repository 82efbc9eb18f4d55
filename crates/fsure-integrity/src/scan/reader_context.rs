//! The resources of one reader, and the counters that all readers share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fsure_os::batch_read::Ring;
use fsure_os::buffer::Buffer;
use fsure_os::opener::Opener;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

use super::io_options::{CHUNK, RateLimiter};
use super::scrub_budget::Deadline;
use super::watchdog::Heartbeat;
use crate::model::BytesByReadMode;
use fsure_core::Clock;
use fsure_core::block_hash::BLOCK;

/// The reason that a stretch was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAbort {
    /// The file is shorter than it was.
    Shrunk,
    /// The run is to stop.
    Stopped,
}

/// The counters of all readers, and the flag that stops them.
#[derive(Debug, Default)]
pub(super) struct ReadCounters {
    by_way: [AtomicU64; 4],
    remote: AtomicU64,
    hashed: AtomicU64,
    stop: AtomicBool,
}

impl ReadCounters {
    pub(super) fn bytes_by_way(&self) -> BytesByReadMode {
        let [direct, dontcache, dropped, cached] =
            self.by_way.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
        let remote = self.remote.load(Ordering::Relaxed);
        BytesByReadMode { direct, remote, dontcache, dropped, cached }
    }

    pub(super) fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    pub(super) fn count_hashed(&self, bytes: usize) {
        self.hashed.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The state that all readers of a run share.
pub(super) struct ReaderShared {
    pub(super) opener: Opener,
    pub(super) meter: Arc<ReadCounters>,
    pub(super) ending: Deadline,
    pub(super) rate: Arc<RateLimiter>,
    pub(super) clock: Clock,
    /// Bytes to request at once.
    pub(super) chunk: u64,
    /// True if all is to be read through the page cache, whether it is there or not.
    pub(super) reads_through: bool,
}

/// The resources of one reader.
pub(super) struct ReaderContext {
    pub(super) buffer: Buffer,
    /// `None` if the system has no rings.
    pub(super) ring: Option<Ring>,
    pub(super) zeros: Box<[u8]>,
    pub(super) shared: Arc<ReaderShared>,
    /// True if what is read past the local page cache might come from the cache
    /// of another machine.
    is_remote: bool,
    pub(super) heartbeat: Arc<Heartbeat>,
}

impl ReaderContext {
    /// Fails if the system has no memory left.
    pub(super) fn new(
        shared: Arc<ReaderShared>,
        is_remote: bool,
        heartbeat: Arc<Heartbeat>,
    ) -> io::Result<Self> {
        let buffer = Buffer::new(CHUNK as usize)?;
        // The ring belongs to the thread that uses it, which is this one.
        let ring = Ring::new();
        let zeros = vec![0; BLOCK as usize].into_boxed_slice();
        Ok(Self { buffer, ring, zeros, shared, is_remote, heartbeat })
    }

    pub(super) fn root(&self) -> &Root {
        self.shared.opener.root()
    }

    pub(super) fn meter(&self) -> &ReadCounters {
        &self.shared.meter
    }

    /// Waits until the rate allows so many bytes to be read.
    pub(super) fn wait_for_rate(&self, bytes: u64) -> Result<(), ReadAbort> {
        if let Some(begin_at) = self.shared.rate.begin_at(bytes) {
            self.heartbeat.set_idle();
            loop {
                let left = begin_at.saturating_duration_since(Instant::now());
                if self.is_over() || left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(Duration::from_millis(100)));
            }
        }
        self.heartbeat.beat();
        if self.is_over() || self.heartbeat.is_lost() { Err(ReadAbort::Stopped) } else { Ok(()) }
    }

    /// Returns true if the run has to end. A reader that finds that the time of
    /// the run is over stops all readers.
    fn is_over(&self) -> bool {
        if self.shared.ending.is_over() {
            self.meter().stop();
        }
        self.meter().is_stopped()
    }

    /// Counts bytes that were read.
    pub(super) fn count(&self, way: ReadMode, bytes: usize) {
        let meter = self.meter();
        let counter = match way {
            ReadMode::Direct if self.is_remote => &meter.remote,
            way => &meter.by_way[way as usize],
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
