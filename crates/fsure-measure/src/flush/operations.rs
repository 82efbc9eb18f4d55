//! The operations that are measured: small writes made durable, each as some program
//! makes them.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{self, Method, Writer};

use super::time_slice::{Operation, SliceResult};
use super::workspace::{FlushWorkspace, noise};

/// Bytes that are written over and over: enough that a disk with heads does not
/// wait for the same place again, little enough to fit anywhere.
const REGION: u64 = 1 << 20;
/// Bytes that a file grows by in one turn at most.
const APPEND_MAX: u64 = 8 << 20;
/// Files that are made in one turn at most.
const CREATE_MAX: usize = 256;

/// Bytes that all of these take at most at the same time, for `methods` that
/// overwrite.
pub(super) fn needed_bytes(methods: usize, size: usize) -> u64 {
    let files = (methods + 1) as u64 * region(size, REGION);
    files + APPEND_MAX + (CREATE_MAX * size.next_multiple_of(4096)) as u64
}

/// The size of the region for writes of a size: a whole number of them.
fn region(size: usize, wanted: u64) -> u64 {
    let size = size as u64;
    (wanted / size).max(1) * size
}

/// Numbered data, so that no two writes are the same.
pub(super) struct Data {
    bytes: Buffer,
    written: u64,
}

impl Data {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { bytes: noise()?, written: 0 })
    }

    /// The next so many bytes.
    pub(super) fn next(&mut self, size: usize) -> &[u8] {
        self.written += 1;
        let number = self.written.to_le_bytes();
        let stamped = size.min(number.len());
        self.bytes[..stamped].copy_from_slice(&number[..stamped]);
        &self.bytes[..size]
    }
}

/// A file that is written over, place by place.
pub(super) struct Overwrite {
    pub(super) writer: Writer,
    data: Data,
    size: usize,
    region: u64,
    at: u64,
    /// Writes to one flush.
    batch: u64,
}

impl Overwrite {
    pub(super) fn new(site: &FlushWorkspace<'_>, method: Method, size: usize) -> io::Result<Self> {
        Self::of_region(site, method, size, REGION)
    }

    pub(super) fn of_region(
        site: &FlushWorkspace<'_>,
        method: Method,
        size: usize,
        wanted: u64,
    ) -> io::Result<Self> {
        let (data, region) = (Data::new()?, region(size, wanted));
        let writer = site.filled(method, &data.bytes, region)?;
        Ok(Self { writer, data, size, region, at: 0, batch: 1 })
    }

    /// One flush for so many writes.
    pub(super) fn in_batches(self, batch: u64) -> Self {
        Self { batch, ..self }
    }

    fn place(&mut self) -> u64 {
        let at = self.at;
        self.at = (at + self.size as u64) % self.region;
        at
    }
}

impl Operation for Overwrite {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        let begun = Instant::now();
        for _ in 1..self.batch {
            let at = self.place();
            self.writer.write(self.data.next(self.size), at)?;
        }
        let at = self.place();
        self.writer.commit(self.data.next(self.size), at)?;
        Ok(Some(SliceResult { commits: self.batch, ..SliceResult::since(begun) }))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        self.writer.flush_to_medium()
    }
}

/// A file that grows by each write, and begins anew when it is large.
pub(super) struct Append<'a> {
    site: &'a FlushWorkspace<'a>,
    path: PathBuf,
    writer: Writer,
    data: Data,
    method: Method,
    /// The sizes of what is written one behind the other before a flush.
    sizes: &'a [usize],
    end: u64,
    /// True if only the flush is timed.
    times_flush: bool,
}

impl<'a> Append<'a> {
    pub(super) fn new(
        site: &'a FlushWorkspace<'a>,
        method: Method,
        sizes: &'a [usize],
    ) -> io::Result<Self> {
        let path = site.path();
        let (writer, data) = (Writer::create(&path, method)?, Data::new()?);
        Ok(Self { site, path, writer, data, method, sizes, end: 0, times_flush: false })
    }

    /// Times the flush alone, as etcd's own figure does.
    pub(super) fn timing_flushes(self) -> Self {
        Self { times_flush: true, ..self }
    }
}

impl Operation for Append<'_> {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        if self.end >= APPEND_MAX {
            return Ok(None);
        }
        let mut begun = Instant::now();
        for size in self.sizes {
            self.writer.write(self.data.next(*size), self.end)?;
            self.end += *size as u64;
        }
        if self.times_flush {
            begun = Instant::now();
        }
        self.writer.flush()?;
        Ok(Some(SliceResult::since(begun)))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        if self.end >= APPEND_MAX / 2 {
            durable_write::remove(&self.path)?;
            self.path = self.site.path();
            self.writer = Writer::create(&self.path, self.method)?;
            self.end = 0;
        }
        self.writer.flush_to_medium()
    }
}

/// New files, their names as durable as their content.
pub(super) struct Create<'a> {
    site: &'a FlushWorkspace<'a>,
    data: Data,
    size: usize,
    made: Vec<PathBuf>,
    /// True if each takes the place of the one before it.
    replaces: bool,
}

impl<'a> Create<'a> {
    /// Files beside each other.
    pub(super) fn beside(site: &'a FlushWorkspace<'a>, size: usize) -> io::Result<Self> {
        site.flush_names()?;
        Ok(Self { site, data: Data::new()?, size, made: Vec::new(), replaces: false })
    }

    /// One file, replaced durably: it is always there, the old one or the new.
    pub(super) fn replacing(site: &'a FlushWorkspace<'a>, size: usize) -> io::Result<Self> {
        let mut made = Self::beside(site, size)?;
        made.operate()?;
        Ok(Self { replaces: true, ..made })
    }
}

impl Operation for Create<'_> {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        if self.made.len() >= CREATE_MAX {
            return Ok(None);
        }
        let path = self.site.path();
        let begun = Instant::now();
        let writer = Writer::create(&path, Method::thorough())?;
        writer.commit(self.data.next(self.size), 0)?;
        drop(writer);
        match self.made.first().filter(|_| self.replaces) {
            Some(old) => durable_write::rename(&path, old)?,
            None => self.made.push(path),
        }
        self.site.flush_names()?;
        Ok(Some(SliceResult::since(begun)))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        if !self.replaces {
            for path in self.made.drain(..) {
                durable_write::remove(&path)?;
            }
        }
        self.site.flush_names()
    }
}

/// No operation: what the device does meanwhile is for other processes.
pub(super) struct Idle;

impl Operation for Idle {
    fn operate(&mut self) -> io::Result<Option<SliceResult>> {
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        Ok(Some(SliceResult::since(begun)))
    }

    fn flush_to_medium(&mut self) -> io::Result<()> {
        Ok(())
    }
}
