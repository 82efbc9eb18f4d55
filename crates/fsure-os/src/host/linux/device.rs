//! The disks under a file system, from sysfs, and what their drivers say of
//! their heads.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::root_dir::stat_descriptor;
pub(crate) use super::rotational::is_slow;
use crate::device::StorageDevice;
use crate::host::root_dir::Root;

/// The storage under a folder below a root.
pub(crate) fn of(root: &Root, path: &[u8]) -> StorageDevice {
    let opened = root.open_at(path, OFlags::PATH | OFlags::NOFOLLOW);
    let Ok(at) = opened else { return StorageDevice::unknown() };
    let number = stat_descriptor(&at).map_or(0, |stat| stat.device);
    let mut disks = BTreeMap::new();
    for device in block_devices(root, path) {
        collect(&device, &mut disks, DEPTH_MAX);
    }
    let heads = disks.values().filter(|is_rotational| **is_rotational).count();
    let is_remote = is_remote(&at);
    disks.entry(number).or_insert(false);
    StorageDevice { disks: disks.into_keys().collect(), heads, is_remote }
}

/// The folders in sysfs of the block devices that the file system of a folder
/// is on; none where it is on none.
pub(super) fn block_devices(root: &Root, path: &[u8]) -> Vec<PathBuf> {
    let number = root.stat(path).map_or(0, |stat| stat.device);
    let own = block_folder(number);
    if own.exists() { vec![own] } else { btrfs_members(root, path) }
}

/// Disks below partitions below RAID below encryption below volumes: deeper
/// than any user builds, and an end if a loop device lies on itself.
const DEPTH_MAX: u32 = 8;

/// The folder in sysfs of a block device; of one that is none it does not exist.
fn block_folder(number: u64) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}:{}", number >> 32, number & 0xffff_ffff))
}

/// The folder in sysfs of the block device that a path leads to.
pub(super) fn block_folder_of(path: &Path) -> io::Result<PathBuf> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.file_type().is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a block device"));
    }
    let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    Ok(block_folder(u64::from(major) << 32 | u64::from(minor)))
}

/// The folder of the whole disk of a partition, or of what is none.
pub(super) fn whole(folder: &Path) -> &Path {
    let parent = folder.parent().filter(|_| folder.join("partition").exists());
    parent.unwrap_or(folder)
}

/// Adds the disks under a block device, each with what its kernel driver says
/// of its heads.
fn collect(folder: &Path, disks: &mut BTreeMap<u64, bool>, depth: u32) {
    let Ok(folder) = std::fs::canonicalize(folder) else { return };
    if depth == 0 {
        return;
    }
    let folder = whole(&folder);
    let slaves = std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
    let mut below: Vec<_> = slaves.map(|slave| slave.path()).collect();
    if let Ok(backing) = std::fs::read_to_string(folder.join("loop/backing_file"))
        && let Ok(meta) = std::fs::metadata(backing.trim_end_matches('\n'))
    {
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        below.push(block_folder(u64::from(major) << 32 | u64::from(minor)));
    }
    if below.is_empty() {
        let is_rotational = read_word(&folder.join("queue/rotational")).as_deref() == Some("1");
        if let Some(number) = read_word(&folder.join("dev")).and_then(|dev| number_of(&dev)) {
            disks.insert(number, is_rotational);
        }
    }
    for folder in below {
        collect(&folder, disks, depth - 1);
    }
}

/// Returns the scheduler of a disk's requests; `None` if the disk has no queue. The file
/// lists all choices in one line, with the active one in brackets.
pub(super) fn scheduler_of(disk: u64) -> Option<String> {
    let choices = read_word(&block_folder(disk).join("queue/scheduler"))?;
    let (_, chosen) = choices.split_once('[')?;
    Some(chosen.split_once(']')?.0.to_owned())
}

fn read_word(file: &Path) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

fn number_of(dev: &str) -> Option<u64> {
    let (major, minor) = dev.split_once(':')?;
    Some(major.parse::<u64>().ok()? << 32 | minor.parse::<u64>().ok()?)
}

/// The block devices of a btrfs, whose files have a device number of its own.
fn btrfs_members(root: &Root, path: &[u8]) -> Vec<PathBuf> {
    let opened = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY);
    let Some(uuid) = opened.ok().and_then(|folder| btrfs_uuid(&folder)) else {
        return Vec::new();
    };
    let folder = format!("/sys/fs/btrfs/{uuid}/devices");
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// `BTRFS_IOC_FS_INFO`, which any kernel answers to any user, as
/// `FS_IOC_GETFSUUID` is not for a btrfs.
fn btrfs_uuid(folder: &OwnedFd) -> Option<String> {
    /// `struct btrfs_ioctl_fs_info_args` of `linux/btrfs.h`.
    #[repr(C)]
    struct Info {
        id_max: u64,
        devices: u64,
        uuid: [u8; 16],
        rest: [u8; 992],
    }
    const BTRFS_IOC_FS_INFO: libc::Ioctl = libc::_IOR::<Info>(0x94, 31);
    if !rustix::fs::fstatfs(folder).is_ok_and(|answer| answer.f_type == BTRFS_SUPER_MAGIC) {
        return None;
    }
    let mut answer = Info { id_max: 0, devices: 0, uuid: [0; 16], rest: [0; 992] };
    // SAFETY: the request, whose size is that of `Info`, writes one of them.
    let done = unsafe { libc::ioctl(folder.as_raw_fd(), BTRFS_IOC_FS_INFO, &raw mut answer) };
    let hex = |range: std::ops::Range<usize>| -> String {
        answer.uuid[range].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    (done == 0).then(|| [0..4, 4..6, 6..8, 8..10, 10..16].map(hex).join("-"))
}

/// `linux/magic.h`.
const BTRFS_SUPER_MAGIC: i64 = 0x9123_683e;

/// Returns true if a file system has its data from elsewhere than a disk of this machine
/// (`linux/magic.h`; Lustre's and GPFS's numbers are from their own headers).
fn is_remote(at: &OwnedFd) -> bool {
    const REMOTE: [i64; 11] = [
        0x6969,      // NFS
        0xfe53_4d42, // SMB 2 and 3
        0xff53_4d42, // CIFS
        0x517b,      // SMB of old
        0x6573_5546, // FUSE
        0x0102_1997, // 9p
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
        0x7375_7245, // Coda
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS
    ];
    rustix::fs::fstatfs(at).is_ok_and(|answer| REMOTE.contains(&(answer.f_type & 0xffff_ffff)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceClass;
    use std::sync::Arc;

    #[test]
    fn what_is_in_memory_shares_no_disk() {
        let on_disk = Root::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let memory = Arc::new(Root::open(Path::new("/proc")).unwrap());
        let device = of(&memory, b"");
        assert_eq!(device.class(&memory, b""), DeviceClass::Solid);
        assert!(!of(&on_disk, b"").shares_a_disk_with(&device));
    }

    #[test]
    fn numbers_are_those_of_stat() {
        assert_eq!(number_of("8:17"), Some(8 << 32 | 17));
        assert_eq!(number_of("8"), None);
    }
}
