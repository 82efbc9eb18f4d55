//! Checks if a disk that is reported to have heads has any. A few random reads from it are
//! timed: 1 ms if it has none, a fifth of a second if it has.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, FileType, OFlags};

use super::extent::first_byte;
use crate::buffer::Buffer;
use crate::host::root_dir::Root;
use crate::opener::Opener;
use crate::read::OpenFile;
use crate::read_mode::ReadMode;

/// A disk with heads takes at least this for a random access: half a turn at
/// 15,000 turns a minute alone is 2 ms. Disks without take 0.02 to 0.3 ms.
const SEEK_MIN: Duration = Duration::from_millis(1);

/// Accesses that are timed: a fifth of a second on a disk with heads.
const ACCESSES: usize = 16;

/// Fewer than these say nothing.
const ACCESSES_MIN: usize = 5;

/// Bytes read at a time, and where: what every file system takes.
const GRAIN: u64 = 4096;

/// Minimum distance of two accesses on the disk, in bytes: beyond what its own memory and
/// a neighbouring track hold.
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

/// Returns true if a random access to the disk under the files at and below a path takes
/// as long as heads do to move; also if that cannot be measured.
pub(crate) fn is_slow(root: &Arc<Root>, path: &[u8]) -> bool {
    access_time(root, path).is_none_or(|time| time >= SEEK_MIN)
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
            (filled.ok()?.way == ReadMode::Direct).then(|| begun.elapsed())
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
fn some_files(root: &Arc<Root>, path: &[u8]) -> Vec<(OpenFile, u64)> {
    let opener = Opener::new(Arc::clone(root), ReadMode::Direct);
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
}
