//! The priority of this process and of its threads. A refusal of a low priority is reported:
//! a run that was asked to stand back must not hold up a server in silence.

use crate::device::StorageDevice;
use crate::host;

/// Takes the lowest priority for processor and disk, for this thread and those it
/// starts (on Linux), or for the process (elsewhere). Returns a message to the
/// user for each that the system refused.
pub fn lowest() -> Vec<String> {
    host::priority::lowest()
}

/// Takes the highest priority for the processor that an ordinary thread can have, for
/// this thread and those that it starts (Linux). A refusal is not reported: without root a
/// thread stays as it was. Elsewhere it does nothing.
pub fn highest() {
    host::priority::highest();
}

/// Returns true if the queue of this storage honours a priority at all; `None` if
/// that is not known.
pub fn is_heeded_by(device: &StorageDevice) -> Option<bool> {
    host::priority::is_heeded_by(device)
}
