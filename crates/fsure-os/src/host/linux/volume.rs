//! Which file system this is, from the kernel and, where it is too old to say,
//! from the mount table and udev.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, OFlags, StatxFlags};

use crate::host::folder::Root;
use crate::volume::Volume;

/// The file system of a folder below a root.
pub(crate) fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    let opened;
    let folder = if path.is_empty() {
        root.descriptor()
    } else {
        // What may not be listed can still be asked what it is.
        opened = root
            .open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .or_else(|_| root.open_at(path, OFlags::PATH | OFlags::DIRECTORY))?;
        opened.as_fd()
    };
    let answer = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let has_mount_id = answer.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    let kind = has_mount_id.then(|| kind_of_mount(answer.stx_mnt_id)).flatten();
    let kind = match kind {
        Some(kind) => kind,
        None => format!("{:#x}", rustix::fs::fstatfs(folder)?.f_type),
    };
    let device = rustix::fs::makedev(answer.stx_dev_major, answer.stx_dev_minor);
    Ok(Volume::new(kind, uuid_by_ioctl(folder).or_else(|| uuid_by_device(device))))
}

/// The type of a mount, from the mount table (proc(5), `mountinfo`).
fn kind_of_mount(mount_id: u64) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    table.lines().find_map(|line| {
        let (id, rest) = line.split_once(' ')?;
        if id.parse() != Ok(mount_id) {
            return None;
        }
        let (_, kind) = rest.split_once(" - ")?;
        kind.split(' ').next().map(str::to_owned)
    })
}

/// `FS_IOC_GETFSUUID` (Linux 6.9): needs no rights and sees through mounts.
fn uuid_by_ioctl(folder: impl AsFd) -> Option<String> {
    /// `struct fsuuid2` of `linux/fs.h`.
    #[repr(C)]
    struct FsUuid {
        length: u8,
        uuid: [u8; 16],
    }
    const FS_IOC_GETFSUUID: libc::Ioctl = libc::_IOR::<FsUuid>(0x15, 0);
    let mut answer = FsUuid { length: 0, uuid: [0; 16] };
    // SAFETY: the request writes one `fsuuid2`, which `answer` is.
    let done =
        unsafe { libc::ioctl(folder.as_fd().as_raw_fd(), FS_IOC_GETFSUUID, &raw mut answer) };
    let uuid = answer.uuid.get(..answer.length.into())?;
    // All zeros is how a file system says that nobody gave it one.
    let is_known = done == 0 && uuid.iter().any(|byte| *byte != 0);
    is_known.then(|| uuid.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What udev made of the label on the device, for older kernels and for file
/// systems without a real UUID such as FAT.
fn uuid_by_device(device: u64) -> Option<String> {
    let links = std::fs::read_dir("/dev/disk/by-uuid").ok()?;
    let mut named = links
        .flatten()
        .filter(|link| std::fs::metadata(link.path()).is_ok_and(|target| target.rdev() == device));
    let name = named.next()?.file_name().into_string().ok()?;
    Some(name.replace('-', "").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn proc_is_proc_and_knows_its_kind() {
        let root = Root::open(Path::new("/proc")).unwrap();
        assert_eq!(of(&root, b"").unwrap().kind, "proc");
        assert_eq!(of(&root, b"self").ok(), None, "never through a link");
    }
}
