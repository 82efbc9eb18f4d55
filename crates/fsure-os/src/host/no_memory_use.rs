//! Memory on systems that do not tell which process has it: what there is and what is
//! available, if one call says so.

use crate::memory::{Group, Memory, Pressure};

/// See [`crate::memory::memory`].
pub(crate) fn memory() -> Memory {
    let machine = super::machine::machine();
    let available = super::machine::available_memory();
    Memory { total: machine.memory_bytes, available, ..Memory::default() }
}

/// Returns `None`: the system does not count it.
pub(crate) fn pressure() -> Option<Pressure> {
    None
}

/// There are none.
pub(crate) fn group(_: Option<u32>) -> Option<Group> {
    None
}
