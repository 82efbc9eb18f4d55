//! Direct requests of one size, so many of them under way at a time: what a drive does
//! with a queue, and how long each request takes. By io_uring from one thread; if the
//! system forbids that, each place in the queue is a thread.
//!
//! Nothing passes through the page cache. A file system that cannot do that refuses.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::buffer::Buffer;
use crate::host::request_queue as host;

/// Positions, lengths and memory of direct requests are multiples of so many bytes, which
/// every drive's blocks divide.
pub const DIRECT_GRAIN: usize = 4096;

/// Requests that may be under way at a time.
pub const DEPTH_MAX: usize = 64;

/// The direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the device.
    Read,
    /// To the device, whose own cache may have it.
    Write,
}

/// The way by which requests are kept under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// io_uring, by one thread.
    Ring,
    /// Each request waits in a thread of its own.
    Threads,
}

impl Engine {
    /// The better of those that this system allows.
    pub fn best() -> Self {
        host::best_engine()
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

/// Requests that are kept under way.
#[derive(Clone, Copy, Debug)]
pub struct QueueShape {
    /// Their direction.
    pub access: Access,
    /// Number of them at a time, at most [`DEPTH_MAX`].
    pub depth: usize,
    /// Bytes of each, a multiple of [`DIRECT_GRAIN`].
    pub block: usize,
    /// The way by which.
    pub engine: Engine,
}

/// The source of the requests, and the listener to each that is complete. With
/// [`Engine::Threads`], several threads call it.
pub trait Requests: Sync {
    /// Returns the position of the next request; `None` for no more, after which it might
    /// be called again.
    fn next(&self) -> Option<u64>;

    /// Takes note of a request that is complete, and of the time that it took.
    fn complete(&self, latency: Duration);
}

/// A file or device that is open for direct requests.
#[derive(Debug)]
pub struct DirectFile(host::DirectFile);

impl DirectFile {
    /// Makes a file, which must not be there yet.
    pub fn create(path: &Path) -> io::Result<Self> {
        host::DirectFile::create(path).map(Self)
    }

    /// Opens a regular file of this process to be read and written. No link is followed.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        host::DirectFile::open_own(path).map(Self)
    }

    /// Opens a block device to be read. Anything else is refused with
    /// [`io::ErrorKind::InvalidInput`] before it is opened: opening a FIFO waits, and opening a
    /// tape moves it.
    pub fn open_device(path: &Path) -> io::Result<Self> {
        host::DirectFile::open_device(path).map(Self)
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    /// Has the file system find space for a file up to this position, so that requests need
    /// not wait for each other to find it. A file system that cannot do that does nothing.
    pub fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        self.0.reserve(from, to)
    }

    /// Keeps requests under way until there are no more, and waits for all of them. What is
    /// read is in `memory`, of which each place in the queue has a block; what is written comes
    /// from all over it. The first request that fails is the last that is sent.
    ///
    /// # Panics
    ///
    /// If the shape does not fit the grain or the memory.
    pub fn run(
        &self,
        shape: &QueueShape,
        memory: &mut Buffer,
        requests: &dyn Requests,
    ) -> io::Result<()> {
        let QueueShape { depth, block, .. } = *shape;
        assert!((1..=DEPTH_MAX).contains(&depth), "{depth} requests at a time");
        assert!(block > 0 && block.is_multiple_of(DIRECT_GRAIN), "requests of {block} bytes");
        assert!(depth * block <= memory.len(), "{depth} requests of {block} bytes need memory");
        self.0.run(shape, memory, requests)
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "request_queue_tests.rs"]
mod tests;
