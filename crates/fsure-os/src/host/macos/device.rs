//! The storage under a file system: whether it is mounted from here.

use std::sync::Arc;

use rustix::fs::OFlags;

use super::root_dir::stat_descriptor;
use crate::device::StorageDevice;
use crate::host::root_dir::Root;

/// The storage under a folder below a root. Which disks a file system shares
/// with another is not asked.
pub(crate) fn of(root: &Root, path: &[u8]) -> StorageDevice {
    let opened = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY);
    let Ok(at) = opened else { return StorageDevice::unknown() };
    let number = stat_descriptor(&at).map_or(0, |stat| stat.device);
    let is_local = |flags: u32| flags & libc::MNT_LOCAL.cast_unsigned() != 0;
    let is_remote = rustix::fs::fstatfs(&at).is_ok_and(|answer| !is_local(answer.f_flags));
    StorageDevice { disks: vec![number], heads: 0, is_remote }
}

/// Returns true if a disk that is reported to have heads has any. Here none is reported to.
pub(crate) fn is_slow(_: &Arc<Root>, _: &[u8]) -> bool {
    true
}
