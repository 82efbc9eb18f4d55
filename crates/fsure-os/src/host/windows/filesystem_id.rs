//! Identifies a file system.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle};

use windows_sys::Win32::Storage::FileSystem::GetVolumeInformationByHandleW;

use super::call::last_error;
use super::stat::identity;
use crate::filesystem_id::Volume;
use crate::host::root_dir::Root;

/// None: a volume that is mounted below is a link, and not followed.
pub(crate) fn mount_points(_: &Root) -> io::Result<Vec<Vec<u8>>> {
    Ok(Vec::new())
}

/// The file system of a folder below a root.
pub(crate) fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    let opened;
    let folder = if path.is_empty() {
        root.handle()
    } else {
        opened = root.open_folder(path)?;
        opened.as_handle()
    };
    let mut kind = [0_u16; 64];
    let nothing = std::ptr::null_mut();
    // SAFETY: the name's buffer has the given length; nothing else is wanted.
    let done = unsafe {
        GetVolumeInformationByHandleW(
            folder.as_raw_handle(),
            nothing,
            0,
            nothing.cast(),
            nothing.cast(),
            nothing.cast(),
            kind.as_mut_ptr(),
            kind.len() as u32,
        )
    };
    if done == 0 {
        return Err(last_error());
    }
    let name = kind.split(|unit| *unit == 0).next().unwrap_or_default();
    let kind = String::from_utf16_lossy(name).to_lowercase();
    let (serial, _) = identity(folder)?;
    // Zero is how a volume says that it has none.
    Ok(Volume::new(kind, (serial != 0).then(|| format!("{serial:016x}"))))
}
