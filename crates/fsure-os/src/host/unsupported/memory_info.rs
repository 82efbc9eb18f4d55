//! Memory on systems that do not tell which process has it: what there is and what is
//! available, if one call says so.

use crate::memory_info::{CacheFill, LimitingCgroup, Memory, Pressure};

/// See [`crate::memory_info::memory`].
pub(crate) fn memory() -> Memory {
    let machine = crate::host::machine::machine();
    let available = crate::host::machine::available_memory();
    Memory { total: machine.memory_bytes, available, ..Memory::default() }
}

/// Returns `None`: the system does not count it.
pub(crate) fn pressure() -> Option<Pressure> {
    None
}

/// There are none.
pub(crate) fn group(_: Option<u32>) -> Option<LimitingCgroup> {
    None
}

/// Returns `None`: the system does not count it.
pub(crate) fn cache_fill(_: Option<&LimitingCgroup>) -> Option<CacheFill> {
    None
}

/// Fails: no system call empties the cache of all files.
pub(crate) fn purge_page_cache() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
