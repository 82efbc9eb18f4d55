//! Systems that say nothing of stores through memory maps.

use crate::host::root_dir::Root;

/// See [`crate::mapped_write::unseen_write_max_ns`].
pub(crate) fn write_back_max_ns() -> i64 {
    0
}

/// See [`crate::mapped_write::is_open_for_writing`].
pub(crate) fn is_open_for_writing(_root: &Root, _path: &[u8]) -> Option<bool> {
    None
}
