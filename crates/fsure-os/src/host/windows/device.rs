//! The storage under a file system: whether it is reached over a network.

use std::os::windows::io::AsHandle;
use std::sync::Arc;

use windows_sys::Win32::Storage::FileSystem::{FILE_REMOTE_PROTOCOL_INFO, FileRemoteProtocolInfo};

use super::call::ask;
use super::stat::identity;
use crate::device::StorageDevice;
use crate::host::root_dir::Root;

/// The storage under a folder below a root. Which disks a file system shares
/// with another is not asked.
pub(crate) fn of(root: &Root, path: &[u8]) -> StorageDevice {
    let Ok(opened) = root.open_name(path) else { return StorageDevice::unknown() };
    let at = opened.as_handle();
    let number = identity(at).map_or(0, |(device, _)| device);
    // A file system of this machine has no protocol to tell.
    // SAFETY: the class with its own structure, plain data.
    let protocol = unsafe { ask::<FILE_REMOTE_PROTOCOL_INFO>(at, FileRemoteProtocolInfo) };
    StorageDevice { disks: vec![number], heads: 0, is_remote: protocol.is_ok() }
}

/// Returns true if a disk that is reported to have heads has any. Here none is reported to.
pub(crate) fn is_slow(_: &Arc<Root>, _: &[u8]) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_this_machine_is_not_remote() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let device = of(&root, b"");
        assert!(!device.is_remote && device.disks != [0], "{device:?}");
        assert_eq!(of(&root, b"none"), StorageDevice::unknown());
    }
}
