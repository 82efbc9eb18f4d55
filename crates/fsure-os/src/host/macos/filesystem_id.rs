//! Identifies a file system: `fstatfs` for its kind, `getattrlist` of its mount point for
//! its UUID.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::OFlags;

use crate::filesystem_id::Volume;
use crate::host::root_dir::Root;

/// None: there are no bind mounts, and another file system has another device.
pub(crate) fn mount_points(_: &Root) -> io::Result<Vec<Vec<u8>>> {
    Ok(Vec::new())
}

/// The file system of a folder below a root.
pub(crate) fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    let opened;
    let folder = if path.is_empty() {
        root.descriptor()
    } else {
        opened = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        opened.as_fd()
    };
    let answer = rustix::fs::fstatfs(folder)?;
    let kind = text(&answer.f_fstypename).unwrap_or_else(|| "unknown".to_owned());
    Ok(Volume::new(kind, uuid(&answer.f_mntonname)))
}

/// The type of the file system of an open file, as the mount table has it.
pub(super) fn kind_of(file: impl AsFd) -> Option<String> {
    text(&rustix::fs::fstatfs(file).ok()?.f_fstypename)
}

fn text(name: &[libc::c_char]) -> Option<String> {
    let bytes: Vec<u8> = name.iter().map(|byte| byte.cast_unsigned()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
    (!text.is_empty()).then(|| text.to_lowercase())
}

/// The UUID of the volume mounted there. Only its mount point may be asked.
fn uuid(mount_point: &[libc::c_char]) -> Option<String> {
    /// The response of `getattrlist`: its own length, and the requested attribute.
    #[repr(C, packed(4))]
    struct Answer {
        length: u32,
        uuid: [u8; 16],
    }
    if !mount_point.contains(&0) {
        return None;
    }
    let mut wanted = libc::attrlist {
        bitmapcount: libc::ATTR_BIT_MAP_COUNT,
        reserved: 0,
        commonattr: 0,
        volattr: libc::ATTR_VOL_INFO | libc::ATTR_VOL_UUID,
        dirattr: 0,
        fileattr: 0,
        forkattr: 0,
    };
    let mut answer = Answer { length: 0, uuid: [0; 16] };
    // SAFETY: the path ends with a zero, as checked; `wanted` is an `attrlist`,
    // and no more than the size of `answer` is written there.
    let done = unsafe {
        libc::getattrlist(
            mount_point.as_ptr(),
            (&raw mut wanted).cast(),
            (&raw mut answer).cast(),
            size_of::<Answer>(),
            0,
        )
    };
    let is_whole = done == 0 && answer.length as usize == size_of::<Answer>();
    let is_known = is_whole && answer.uuid.iter().any(|byte| *byte != 0);
    is_known.then(|| answer.uuid.iter().map(|byte| format!("{byte:02x}")).collect())
}
