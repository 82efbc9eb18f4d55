//! Priorities on macOS: the disk policy of Time Machine's backups, and `nice`.

use std::io;

use crate::device::StorageDevice;

unsafe extern "C" {
    /// `setiopolicy_np(3)`, in libSystem.
    fn setiopolicy_np(iotype: libc::c_int, scope: libc::c_int, policy: libc::c_int) -> libc::c_int;
}

/// See [`crate::priority::lowest`].
pub(crate) fn lowest() -> Vec<String> {
    const TYPE_DISK: libc::c_int = 0;
    const SCOPE_PROCESS: libc::c_int = 0;
    const THROTTLE: libc::c_int = 3;
    let mut refused = Vec::new();
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        refused.push(format!("no priority for the processor: {error}"));
    }
    // SAFETY: three numbers, and nothing is read through them.
    if unsafe { setiopolicy_np(TYPE_DISK, SCOPE_PROCESS, THROTTLE) } != 0 {
        let error = io::Error::last_os_error();
        refused.push(format!("no priority for the disk: {error}"));
    }
    refused
}

/// See [`crate::priority::highest`]. Nothing here has a size that follows use.
pub(crate) fn highest() {}

/// See [`crate::priority::is_heeded_by`]. The system is not asked.
pub(crate) fn is_heeded_by(_: &StorageDevice) -> Option<bool> {
    None
}
