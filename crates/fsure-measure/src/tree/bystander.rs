//! A program that works beside the one that reads a volume: it reads its own few files again
//! and again, as an editor, a database or a desktop does. They are in memory, so that it waits
//! for no disk, unless the reading pushes them out.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{Method, Writer};
use fsure_os::opener::Opener;
use fsure_os::read::{OpenFile, ReadMode};
use fsure_os::root_dir::Root;
use fsure_os::scratch_dir::Scratch;

use crate::stats::Latency;

/// Bytes of its files.
const HOT_BYTES: u64 = 32 << 20;
/// The share of a small memory that they take at most: one part in this many.
const MEMORY_SHARE: u64 = 8;
/// Bytes of one read.
pub(super) const READ_BYTES: u64 = 64 << 10;
/// Pause between two reads: it comes by all of its files about once a second.
const READ_INTERVAL: Duration = Duration::from_millis(2);
/// Name of its file in the scratch folder.
const NAME: &str = "hot";

/// The program, ready to work.
pub(super) struct Bystander {
    hot: OpenFile,
    bytes: u64,
    buffer: Buffer,
}

/// The time that it waited in one run.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// Bytes of its files.
    pub(super) hot_bytes: u64,
    /// Bytes of them that were not in memory at the end; `None` if that is not reported.
    pub(super) evicted_bytes: Option<u64>,
    /// The time of each read.
    pub(super) reads: Latency,
}

impl Bystander {
    /// Writes its file, which is gone with the scratch folder.
    pub(super) fn new(scratch: &Scratch, memory: Option<u64>) -> io::Result<Self> {
        let most = memory.map_or(HOT_BYTES, |memory| memory / MEMORY_SHARE);
        let bytes = HOT_BYTES.min(most).max(READ_BYTES) / READ_BYTES * READ_BYTES;
        write(&scratch.path().join(NAME), bytes)?;
        let root = Arc::new(Root::open(scratch.path())?);
        let hot = Opener::new(root, ReadMode::Cached).open(NAME.as_bytes(), false)?.0;
        Ok(Self { hot, bytes, buffer: Buffer::new(READ_BYTES as usize)? })
    }

    /// Reads all of its files once, so that they are in memory.
    pub(super) fn warm_up(&mut self) {
        for at in (0..self.bytes).step_by(READ_BYTES as usize) {
            let _ = self.hot.read_at(&mut self.buffer, at, READ_BYTES as usize);
        }
    }

    /// Reads until `stop` is closed.
    pub(super) fn work(&mut self, stop: &Receiver<()>) -> Delays {
        let (mut reads, mut at) = (Latency::default(), 0);
        loop {
            let began = Instant::now();
            // A device that is gone shows in the run that is measured.
            let _ = self.hot.read_at(&mut self.buffer, at, READ_BYTES as usize);
            reads.record(began.elapsed());
            at = (at + READ_BYTES) % self.bytes;
            if stop.recv_timeout(READ_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        let in_memory = self.hot.in_memory();
        let evicted_bytes = in_memory.map(|in_memory| self.bytes.saturating_sub(in_memory));
        Delays { hot_bytes: self.bytes, evicted_bytes, reads }
    }
}

/// Writes the file, and waits until it is on the medium: what is not written yet cannot be
/// pushed out.
fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let writer = Writer::create(path, Method::WriteOnly)?;
    let block = vec![0xA5; READ_BYTES as usize];
    (0..bytes).step_by(READ_BYTES as usize).try_for_each(|at| writer.write(&block, at))?;
    writer.flush_to_medium()
}
