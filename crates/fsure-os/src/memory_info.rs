//! Reads the size of memory, the limits on its use, and the pressure on it: a
//! program that keeps data in memory on purpose has to know when to stop. What
//! the system does not report is `None`.

use std::path::PathBuf;

use crate::host;

/// The memory of the machine, at this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of it.
    pub total: Option<u64>,
    /// Bytes that are available without swapping.
    pub available: Option<u64>,
    /// Bytes in RAM folders and in what processes share: nothing takes these
    /// back but their owners.
    pub shared: Option<u64>,
    /// Areas that memory may be swapped to; empty if there are none, or the
    /// system does not report them.
    pub swap: Vec<Swap>,
}

/// One place that memory is swapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Its device or file.
    pub name: PathBuf,
    /// Its type.
    pub kind: SwapKind,
    /// Bytes.
    pub total: u64,
    /// Of them in use.
    pub used: u64,
    /// True if it is encrypted by a layer that the kernel reports; `None` if none
    /// is reported: the file system or the drive may do it.
    pub is_encrypted: Option<bool>,
}

/// The type of storage that memory is swapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapKind {
    /// Memory, compressed: nothing of it is there when the power is off.
    Zram,
    /// A disk, or a part of one.
    Disk,
    /// A file on one.
    File,
}

/// Share of the last ten seconds that was spent waiting for memory, in percent (PSI).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// By at least one task.
    pub some: f64,
    /// By all that had something to do.
    pub full: f64,
}

/// The control group that leaves a process the least memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitingCgroup {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes that all its processes may have; `None` if there is no limit.
    pub limit: Option<u64>,
    /// Bytes that they have, page cache and RAM folders included.
    pub current: u64,
}

impl LimitingCgroup {
    /// Bytes until the limit, where there is one.
    pub fn available(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.current))
    }
}

/// Bytes that the page cache has and may still take, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFill {
    /// Bytes of files in the page cache, without RAM folders and shared memory.
    pub cached: u64,
    /// Bytes of memory that nothing has.
    pub free: u64,
    /// Bytes of memory that there are.
    pub total: u64,
}

/// Reads how full the page cache is: that of the machine or, if this process is in a control
/// group with less memory, that of the group.
#[derive(Clone, Debug)]
pub struct CacheGauge {
    group: Option<LimitingCgroup>,
}

impl CacheGauge {
    /// A gauge for the memory that this process may use now.
    pub fn new() -> Self {
        let total = memory().total.unwrap_or(u64::MAX);
        let limits = |group: &LimitingCgroup| group.limit.is_some_and(|limit| limit < total);
        Self { group: group(None).filter(limits) }
    }

    /// Reads it; `None` if the system does not report it.
    pub fn read(&self) -> Option<CacheFill> {
        host::memory_info::cache_fill(self.group.as_ref())
    }
}

impl Default for CacheGauge {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads the state of the machine's memory.
pub fn memory() -> Memory {
    host::memory_info::memory()
}

/// Reads the memory pressure; `None` if the kernel does not count that.
pub fn pressure() -> Option<Pressure> {
    host::memory_info::pressure()
}

/// Returns the control group of a process, of this one if none is given.
pub fn group(process: Option<u32>) -> Option<LimitingCgroup> {
    host::memory_info::group(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let memory = memory();
        let (total, available) = (memory.total.unwrap(), memory.available);
        assert!(available.is_none_or(|available| 0 < available && available <= total));
        assert!(memory.shared.is_none_or(|shared| shared < total), "{memory:?}");
        assert!(memory.swap.iter().all(|swap| swap.used <= swap.total), "{memory:?}");
        if let Some(pressure) = pressure() {
            assert!(pressure.full <= pressure.some && pressure.some <= 100.0, "{pressure:?}");
        }
    }

    #[test]
    fn a_cache_is_part_of_the_memory() {
        let Some(fill) = CacheGauge::new().read() else { return };
        assert!(fill.cached + fill.free <= fill.total && fill.total > 0, "{fill:?}");
    }

    #[test]
    fn available_is_never_negative() {
        let group = |limit, current| LimitingCgroup { folder: PathBuf::new(), limit, current };
        assert_eq!(group(Some(10), 4).available(), Some(6));
        assert_eq!(group(Some(10), 14).available(), Some(0));
        assert_eq!(group(None, 14).available(), None);
    }
}
