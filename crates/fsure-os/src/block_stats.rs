//! Reads the I/O counters of devices: the only evidence of the requests that a
//! program's reads, writes and flushes became further down. They reveal a fast
//! flush that sends no request, and a direct read that came from memory.

use std::io;
use std::path::Path;

use crate::host;

/// The counters of the devices that a file system lies on.
#[derive(Debug)]
pub struct DeviceCounters(host::block_stats::DeviceCounters);

/// Requests that devices have received since some earlier time. Only differences
/// are meaningful. The requests of other processes are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests to read, after neighbours were merged.
    pub reads: u64,
    /// Requests to write, after neighbours were merged. A flush that the kernel
    /// sends by itself counts as one, too.
    pub writes: u64,
    /// Flushes sent; `None` where they are not counted. A write that is forced
    /// through the cache (FUA) is none. Several disks are summed, so that a
    /// mirror of two counts two.
    pub flushes: Option<u64>,
}

impl DeviceCounters {
    /// The counters of what the file system of a folder lies on: the loop
    /// device itself and not what its file is on, the partition (whose flushes
    /// are those of its whole disk, which is all that is counted), all disks of
    /// a btrfs. `None` if there is no device with counters: memory, networks,
    /// FUSE, overlays, and everywhere but on Linux.
    pub fn of(folder: &Path) -> io::Result<Option<Self>> {
        Ok(host::block_stats::DeviceCounters::of(folder)?.map(Self))
    }

    /// The counters of a block device, such as `/dev/sda`.
    pub fn of_device(path: &Path) -> io::Result<Option<Self>> {
        Ok(host::block_stats::DeviceCounters::of_device(path)?.map(Self))
    }

    /// Returns true if a device accepts writes that it forces through its cache
    /// (FUA), which are counted like others and make a flush unnecessary.
    pub fn takes_forced(&self) -> bool {
        self.0.takes_forced()
    }

    /// Reads the current counters. Fails if a device is gone.
    pub fn read(&self) -> io::Result<Counters> {
        self.0.read()
    }
}

impl Counters {
    /// Returns the increase since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let flushes = self.flushes.zip(before.flushes);
        Self {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            flushes: flushes.map(|(now, before)| now.saturating_sub(before)),
        }
    }

    /// Both together, of two devices or two spans.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            flushes: self.flushes.zip(other.flushes).map(|(one, two)| one + two),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_one_side_does_not_count_are_not_known() {
        let all =
            Counters { read_bytes: 5, written_bytes: 7, reads: 1, writes: 2, flushes: Some(3) };
        let silent = Counters { flushes: None, ..all };
        assert_eq!(all.since(&all), Counters { flushes: Some(0), ..Counters::default() });
        assert_eq!(all.plus(&all).since(&all), all);
        assert_eq!(all.plus(&silent).flushes, None);
        assert_eq!(all.since(&silent).flushes, None);
    }
}
