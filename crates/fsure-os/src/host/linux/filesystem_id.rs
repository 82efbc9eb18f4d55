//! Identifies a file system, from the kernel and, if that is too old to report it, from the
//! mount table and udev.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::mountinfo;
use crate::filesystem_id::Volume;
use crate::host::root_dir::Root;

/// The file system of a folder below a root.
pub(crate) fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    let opened;
    let folder = if path.is_empty() {
        root.descriptor()
    } else {
        // A folder that cannot be listed can still be asked what it is.
        opened = root
            .open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .or_else(|_| root.open_at(path, OFlags::PATH | OFlags::DIRECTORY))?;
        opened.as_fd()
    };
    let kind = match mountinfo::at(folder) {
        Ok(mount) => mount.kind,
        Err(_) => format!("{:#x}", rustix::fs::fstatfs(folder)?.f_type),
    };
    let answer = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        // A filter that does not know the call answers with the second. No other reason for that
        // exists with an open folder.
        .map_err(|error| match error {
            Errno::NOSYS | Errno::PERM => without_statx(),
            error => error.into(),
        })?;
    let device = rustix::fs::makedev(answer.stx_dev_major, answer.stx_dev_minor);
    Ok(Volume::new(kind, uuid_by_ioctl(folder).or_else(|| uuid_by_device(device))))
}

/// The error for a kernel or a container without `statx(2)`, which every command for files needs.
fn without_statx() -> io::Error {
    let why = "this kernel or container does not have statx(2), which Linux has from 4.11 on; run \
               it on a newer kernel, or in a container whose seccomp profile knows the call";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// The paths below a root at which something is mounted.
pub(crate) fn mount_points(root: &Root) -> io::Result<Vec<Vec<u8>>> {
    let link = format!("/proc/self/fd/{}", root.descriptor().as_raw_fd());
    let path = std::fs::read_link(link)?;
    let mut above = path.as_os_str().as_bytes().to_vec();
    if !above.ends_with(b"/") {
        above.push(b'/');
    }
    let below = |point: Vec<u8>| point.strip_prefix(&above[..]).map(<[u8]>::to_vec);
    Ok(mountinfo::points()?.into_iter().filter_map(below).filter(|path| !path.is_empty()).collect())
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
    // All zeros is how a file system says that no program gave it one.
    let is_known = done == 0 && uuid.iter().any(|byte| *byte != 0);
    is_known.then(|| uuid.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the UUID that udev made of the label on the device, for older kernels and for
/// file systems without a real UUID such as FAT.
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
    use crate::host::did_not_run;
    use crate::private_mounts::{MountKind, Namespace};
    use std::ffi::OsStr;
    use std::path::Path;

    #[test]
    fn proc_is_proc_and_knows_its_kind() {
        let root = Root::open(Path::new("/proc")).unwrap();
        assert_eq!(of(&root, b"").unwrap().kind, "proc");
        assert_eq!(of(&root, b"self").ok(), None, "never through a link");
    }

    /// A line of the table that is not UTF-8 says nothing of the others.
    #[test]
    fn a_mount_with_a_name_that_is_no_text_hides_no_kind() {
        let test = "a_mount_with_a_name_that_is_no_text_hides_no_kind";
        let space = match Namespace::new() {
            Ok(space) => space,
            Err(error) => return did_not_run(test, &error.to_string()),
        };
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join(OsStr::from_bytes(b"a mount\n\xff"));
        std::fs::create_dir(&odd).unwrap();
        let _mounted = space.mount(&MountKind::Ram { bytes: 4096, huge: false }, &odd).unwrap();
        let kinds = space.run(move || {
            let kind = |path: &Path| of(&Root::open(path).unwrap(), b"").unwrap().kind;
            // The table of this thread, which is not that of the process.
            let table = std::fs::read("/proc/thread-self/mountinfo").unwrap();
            assert!(std::str::from_utf8(&table).is_err(), "the name is in the table");
            [kind(Path::new("/proc")), kind(&odd)]
        });
        assert_eq!(kinds.unwrap(), ["proc", "tmpfs"]);
    }
}
