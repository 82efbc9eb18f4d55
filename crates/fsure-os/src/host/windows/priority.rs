//! Priorities on Windows: background mode, which is processor, disk and memory.

use std::io;

use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, PROCESS_MODE_BACKGROUND_BEGIN, SetPriorityClass,
};

use crate::device::StorageDevice;

/// See [`crate::priority::lowest`].
pub(crate) fn lowest() -> Vec<String> {
    // SAFETY: the handle stands for this process and need not be closed.
    let done = unsafe { SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_BEGIN) };
    if done != 0 {
        return Vec::new();
    }
    vec![format!("no background mode: {}", io::Error::last_os_error())]
}

/// See [`crate::priority::highest`]. Nothing here has a size that follows use.
pub(crate) fn highest() {}

/// See [`crate::priority::is_heeded_by`]. The system is not asked.
pub(crate) fn is_heeded_by(_: &StorageDevice) -> Option<bool> {
    None
}
