//! What storage a file system stands on, because that decides how many may
//! read at once: one reader on a disk with heads, several on one without, many
//! where every answer comes over a network. File systems that share a disk
//! share its queue.
//!
//! The kernel's word for "has heads" is not to be relied on: virtual disks and
//! RAID controllers say it of storage without any. So it is measured.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, FileType, OFlags};

use crate::buffer::Buffer;
use crate::extent::first_byte;
use crate::folder::{Root, stat_descriptor};
use crate::opener::Opener;
use crate::read::{Source, Way};
use crate::volume;

/// How storage wants to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Without moving parts, or not known to have any.
    Solid,
    /// With heads that move, on so many disks.
    Rotational(usize),
    /// Behind a network or a program: waiting is what takes the time, and what
    /// is read past our page cache may come from theirs.
    Remote,
}

/// The storage under a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The disks it is on, by device number; its own number where they are not
    /// known. Sorted.
    disks: Vec<u64>,
    /// How many of them are said to have heads.
    heads: usize,
    is_remote: bool,
}

impl Device {
    /// One of which nothing is known.
    pub fn unknown() -> Self {
        Self { disks: Vec::new(), heads: 0, is_remote: false }
    }

    /// The storage under a name below a root.
    pub fn of(root: &Root, path: &[u8]) -> Self {
        let opened = root.open_at(path, OFlags::PATH | OFlags::NOFOLLOW);
        let Ok(at) = opened else { return Self::unknown() };
        let number = stat_descriptor(&at).map_or(0, |stat| stat.device);
        let mut disks = BTreeMap::new();
        collect(&block_folder(number), &mut disks, DEPTH_MAX);
        if disks.is_empty() {
            for member in btrfs_members(root, path) {
                collect(&member, &mut disks, DEPTH_MAX);
            }
        }
        let heads = disks.values().filter(|is_rotational| **is_rotational).count();
        let is_remote = disks.is_empty() && is_remote(&at);
        disks.entry(number).or_insert(false);
        Self { disks: disks.into_keys().collect(), heads, is_remote }
    }

    /// How it wants to be read. One that is said to have heads is timed with
    /// files at and below `path`: 1 ms where it has none, a fifth of a second
    /// where it has.
    pub fn class(&self, root: &Arc<Root>, path: &[u8]) -> Class {
        let is_slow = || access_time(root, path).is_none_or(|time| time >= SEEK_MIN);
        match self.heads {
            _ if self.is_remote => Class::Remote,
            heads if heads > 0 && is_slow() => Class::Rotational(heads),
            _ => Class::Solid,
        }
    }

    /// Whether reading the one takes from the speed of the other.
    pub fn shares_a_disk_with(&self, other: &Self) -> bool {
        self.disks.iter().any(|disk| other.disks.binary_search(disk).is_ok())
    }
}

/// Disks below partitions below RAID below encryption below volumes: deeper
/// than anybody builds, and an end where a loop device lies on itself.
const DEPTH_MAX: u32 = 8;

/// The folder in sysfs of a block device; of one that is none it does not exist.
fn block_folder(number: u64) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}:{}", number >> 32, number & 0xffff_ffff))
}

/// Adds the disks under a block device, each with what its kernel driver says
/// of its heads.
fn collect(folder: &Path, disks: &mut BTreeMap<u64, bool>, depth: u32) {
    let Ok(mut folder) = std::fs::canonicalize(folder) else { return };
    if depth == 0 {
        return;
    }
    if folder.join("partition").exists() {
        folder.pop();
    }
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

fn read_word(file: &Path) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

fn number_of(dev: &str) -> Option<u64> {
    let (major, minor) = dev.split_once(':')?;
    Some(major.parse::<u64>().ok()? << 32 | minor.parse::<u64>().ok()?)
}

/// The block devices of a btrfs, whose files have a device number of its own.
fn btrfs_members(root: &Root, path: &[u8]) -> Vec<PathBuf> {
    let uuid = volume::of(root, path).ok().filter(|volume| volume.kind == "btrfs");
    let Some(uuid) = uuid.and_then(|volume| volume.uuid).filter(|uuid| uuid.len() == 32) else {
        return Vec::new();
    };
    let parts = [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]];
    let folder = format!("/sys/fs/btrfs/{}/devices", parts.join("-"));
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether a file system has its data from somewhere else than a disk of ours
/// (`linux/magic.h`; Lustre's and GPFS's are from their own headers).
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

/// A disk with heads takes at least this for a random access: half a turn at
/// 15,000 turns a minute alone is 2 ms. Disks without take 0.02 to 0.3 ms.
const SEEK_MIN: Duration = Duration::from_millis(1);

/// Accesses that are timed: a fifth of a second on a disk with heads.
const ACCESSES: usize = 16;

/// Fewer than these say nothing.
const ACCESSES_MIN: usize = 5;

/// Bytes read at a time, and where: what every file system takes.
const GRAIN: u64 = 4096;

/// How far apart on the disk two accesses must be: beyond what its own memory
/// and a neighbouring track hold.
const APART_MIN: u64 = 32 << 20;

/// Files and folders looked at to find places far apart.
const FILES_MAX: usize = 256;
const FOLDERS_MAX: usize = 64;
const NAMES_PER_FOLDER_MAX: usize = 64;

/// A place in a file, and about where that is on the disk.
struct Spot {
    place: u64,
    file: usize,
    offset: u64,
}

/// The median time of a random direct read of 4 KiB from files at and below a
/// path, or `None` where there are too few places that are far enough apart.
fn access_time(root: &Arc<Root>, path: &[u8]) -> Option<Duration> {
    let files = some_files(root, path);
    let mut spots = Vec::new();
    for (number, (source, size)) in files.iter().enumerate() {
        let Ok(Some(start)) = first_byte(source.file.as_fd()) else { continue };
        let step = (size / ACCESSES as u64).next_multiple_of(APART_MIN);
        let offsets = (0..*size / GRAIN * GRAIN).step_by(step.try_into().ok()?);
        spots.extend(offsets.take(ACCESSES).map(|offset| Spot {
            place: start + offset,
            file: number,
            offset,
        }));
    }
    let mut buffer = Buffer::new(GRAIN as usize).ok()?;
    let spots = far_apart(spots).into_iter();
    let mut times: Vec<_> = spots
        .filter_map(|spot| {
            let begun = Instant::now();
            let filled = files[spot.file].0.read_at(&mut buffer, spot.offset, GRAIN as usize);
            // Anything else than the disk itself says nothing about it.
            (filled.ok()?.way == Way::Direct).then(|| begun.elapsed())
        })
        .collect();
    if times.len() < ACCESSES_MIN {
        return None;
    }
    times.sort_unstable();
    Some(times[times.len() / 2])
}

/// Spots in an order in which each is far from the one before.
fn far_apart(mut spots: Vec<Spot>) -> Vec<Spot> {
    spots.sort_unstable_by_key(|spot| spot.place);
    let stride = spots.len().div_ceil(ACCESSES).max(1);
    let mut low: Vec<_> = spots.into_iter().step_by(stride).collect();
    let mut high = low.split_off(low.len() / 2).into_iter();
    let mut order: Vec<Spot> = Vec::new();
    for spot in low {
        for spot in high.next().into_iter().chain([spot]) {
            if order.last().is_none_or(|last| last.place.abs_diff(spot.place) >= APART_MIN) {
                order.push(spot);
            }
        }
    }
    order
}

/// Some files at and below a path that can be read directly, with their sizes.
fn some_files(root: &Arc<Root>, path: &[u8]) -> Vec<(Source, u64)> {
    let opener = Opener::new(Arc::clone(root), Way::Direct);
    let open = |path: &[u8]| {
        let (source, stat) = opener.open(path, false).ok()?;
        (source.is_direct() && stat.size >= GRAIN).then_some((source, stat.size))
    };
    let mut files: Vec<_> = open(path).into_iter().collect();
    let mut folders = VecDeque::from([path.to_vec()]);
    let (mut listed, mut tried) = (0, 0);
    while let Some(folder) = folders.pop_front() {
        listed += 1;
        for (name, kind) in some_names(root, &folder) {
            let path = if folder.is_empty() { name } else { [&folder, &b"/"[..], &name].concat() };
            match kind {
                FileType::Directory if folders.len() + listed < FOLDERS_MAX => {
                    folders.push_back(path);
                }
                FileType::RegularFile => {
                    files.extend(open(&path));
                    tried += 1;
                }
                _ => {}
            }
            if tried >= FILES_MAX {
                return files;
            }
        }
    }
    files
}

/// The first names in a folder, as it comes: one with a million names takes no
/// longer than one with a hundred.
fn some_names(root: &Root, folder: &[u8]) -> Vec<(Vec<u8>, FileType)> {
    let opened = root.open_at(folder, OFlags::RDONLY | OFlags::DIRECTORY);
    let names = opened.ok().and_then(|folder| Dir::read_from(&folder).ok()).into_iter().flatten();
    let names =
        names.flatten().map(|name| (name.file_name().to_bytes().to_vec(), name.file_type()));
    names.filter(|(name, _)| name != b"." && name != b"..").take(NAMES_PER_FOLDER_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_far_apart_or_not_made() {
        let spots = |places: &[u64]| {
            places.iter().map(|place| Spot { place: *place, file: 0, offset: 0 }).collect()
        };
        let near: Vec<_> = (0..100).map(|at| at * 4096).collect();
        assert_eq!(far_apart(spots(&near)).len(), 1);
        let far: Vec<_> = (0..100).map(|at| at * APART_MIN).collect();
        let order = far_apart(spots(&far));
        assert!(order.len() >= ACCESSES - 2 && order.len() <= ACCESSES, "{}", order.len());
        assert!(order.windows(2).all(|pair| pair[0].place.abs_diff(pair[1].place) >= APART_MIN));
        assert!(far_apart(Vec::new()).is_empty());
    }

    #[test]
    fn two_folders_of_one_disk_share_it() {
        let one = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let root = Root::open(one.path()).unwrap();
        let device = Device::of(&root, b"");
        assert!(!device.disks.is_empty());
        assert!(device.shares_a_disk_with(&Device::of(
            &Root::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap(),
            b"src"
        )));
        let memory = Device::of(&Root::open(Path::new("/proc")).unwrap(), b"");
        assert_eq!(
            memory.class(&Arc::new(Root::open(Path::new("/proc")).unwrap()), b""),
            Class::Solid
        );
        assert!(!device.shares_a_disk_with(&memory));
    }

    #[test]
    fn numbers_are_those_of_stat() {
        assert_eq!(number_of("8:17"), Some(8 << 32 | 17));
        assert_eq!(number_of("8"), None);
    }
}
