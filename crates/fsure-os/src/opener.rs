//! Opening files: which rung of the ladder each starts on, learnt from as few
//! questions as the system allows. A tree of small files pays for every one of
//! them a hundred thousand times.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::host::{File, Handle, OpenedFile};
use crate::read::{OpenFile, next_rung};
use crate::read_mode::{GRAIN_MAX, GRAIN_MIN, ReadMode};
use crate::root_dir::Root;
use crate::{Kind, Stat};

/// Opens the files below a root. It remembers what was learnt from one file and
/// holds for all, so that it is not queried again for each.
pub struct Opener {
    root: Arc<Root>,
    first: ReadMode,
    media: RwLock<HashMap<u64, DeviceTraits>>,
    /// Cleared once the system refuses to leave access times as they are (files
    /// of other users).
    keeps_access_times: AtomicBool,
    /// True if the last file that was looked for in the page cache was there as a whole.
    finds_resident: AtomicBool,
}

/// Properties that all files of one device have.
#[derive(Clone, Copy)]
struct DeviceTraits {
    /// True if there is a medium behind the page cache.
    is_real: bool,
    /// True if reads can be told to leave nothing in it.
    knows_dontcache: bool,
    reports_residency: bool,
}

/// From this share of its pages on, in percent, a file that is partly in the
/// page cache is read through it: read directly, what is there would be read
/// from the medium for nothing, which is 4 to 7 times slower.
const RESIDENT_MIN_PERCENT: u64 = 25;

impl Opener {
    /// Files will start on the first rung at or below `first` that their file
    /// system answers for.
    pub fn new(root: Arc<Root>, first: ReadMode) -> Self {
        Self {
            root,
            first,
            media: RwLock::default(),
            keeps_access_times: AtomicBool::new(true),
            finds_resident: AtomicBool::new(false),
        }
    }

    /// The root.
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Opens a regular file below the root, not following a link, and returns it
    /// with its stat. With `uses_cache`, a file that is in the page cache is read
    /// from there and stays there, and what is missing of it is not left there.
    ///
    /// Fails with `InvalidInput` if the name is not a regular file (any more),
    /// or is another one than a moment ago. Devices and FIFOs are not waited for.
    pub fn open(&self, path: &[u8], uses_cache: bool) -> io::Result<(OpenFile, Stat)> {
        // If the system does not report what is in the cache, the medium is read.
        let uses_cache = uses_cache && File::REPORTS_RESIDENCY;
        let wants_direct = self.first == ReadMode::Direct && !uses_cache;
        let opened = self.root.open_file(path, wants_direct, &self.keeps_access_times)?;
        if opened.stat.kind != Kind::File {
            return Err(not_that_file());
        }
        let medium = self.medium(&opened.file, opened.stat.device, uses_cache);
        let (way, grain) = self.choose(&opened, medium, uses_cache)?;
        Ok((OpenFile::new(opened.file, way, grain, opened.is_vouched), opened.stat))
    }

    /// Opens a regular file of which a stat was taken a moment ago, if all of it is in the page
    /// cache. Its stat is not asked for again: if that after reading is the same, nothing was
    /// written in between. `None` if it may not be in the cache, and after any error: then
    /// [`Opener::open`] says more.
    pub fn open_resident(&self, path: &[u8], expected: &Stat) -> Option<OpenFile> {
        if expected.kind != Kind::File || !self.finds_resident.load(Ordering::Relaxed) {
            return None;
        }
        let media = self.media.read().unwrap_or_else(PoisonError::into_inner);
        let medium = media.get(&expected.device).copied();
        drop(media);
        medium.filter(|medium| medium.is_real && medium.reports_residency)?;
        let opened = self.root.open_if_resident(path, expected.size, &self.keeps_access_times);
        let opened = opened.ok().flatten();
        // A tree that is not in memory would have each file opened twice.
        self.finds_resident.store(opened.is_some(), Ordering::Relaxed);
        Some(OpenFile::new(opened?, ReadMode::Cached, GRAIN_MIN, false))
    }

    /// The rung a file starts on, and the grain of its reads there.
    fn choose<H: Handle>(
        &self,
        opened: &OpenedFile<H>,
        medium: DeviceTraits,
        uses_cache: bool,
    ) -> io::Result<(ReadMode, u64)> {
        let asks = uses_cache && medium.reports_residency;
        let resident = resident_percent(&opened.file, opened.stat.size, asks);
        if asks && resident == 100 {
            self.finds_resident.store(true, Ordering::Relaxed);
        }
        if resident == 100 || !medium.is_real {
            set_direct(opened, false)?;
            Ok((ReadMode::Cached, GRAIN_MIN))
        } else if resident >= RESIDENT_MIN_PERCENT && medium.knows_dontcache {
            Ok((ReadMode::DontCache, GRAIN_MIN))
        } else {
            self.first_rung(opened)
        }
    }

    fn first_rung<H: Handle>(&self, opened: &OpenedFile<H>) -> io::Result<(ReadMode, u64)> {
        let file = &opened.file;
        match (self.first, opened.grain.filter(|grain| *grain <= GRAIN_MAX)) {
            (ReadMode::Direct, Some(grain)) if set_direct(opened, true).is_ok() => {
                Ok((ReadMode::Direct, grain))
            }
            (ReadMode::Direct, _) => {
                set_direct(opened, false)?;
                Ok((next_rung(file, ReadMode::Direct), GRAIN_MIN))
            }
            (ReadMode::DontCache, _) if file.turn(ReadMode::DontCache, true).is_ok() => {
                Ok((ReadMode::DontCache, GRAIN_MIN))
            }
            (ReadMode::DontCache | ReadMode::Dropped, _) => {
                Ok((next_rung(file, ReadMode::DontCache), GRAIN_MIN))
            }
            (ReadMode::Cached, _) => Ok((ReadMode::Cached, GRAIN_MIN)),
        }
    }

    /// Returns the properties of a device, or determines them with the first file on it.
    fn medium<H: Handle>(&self, file: &H, device: u64, uses_cache: bool) -> DeviceTraits {
        let known = self.media.read().unwrap_or_else(PoisonError::into_inner).get(&device).copied();
        known.unwrap_or_else(|| {
            let is_real = file.has_medium();
            // Queried only if it matters.
            let knows_dontcache = uses_cache && is_real && file.knows_dontcache();
            let reports_residency = uses_cache && file.reports_residency();
            let medium = DeviceTraits { is_real, knows_dontcache, reports_residency };
            let mut media = self.media.write().unwrap_or_else(PoisonError::into_inner);
            media.insert(device, medium);
            medium
        })
    }
}

/// The error for a name that stands for another file than when it was listed.
pub(crate) fn not_that_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it was replaced since it was listed")
}

/// Turns direct reads on or off, unless they are as wanted.
fn set_direct<H: Handle>(opened: &OpenedFile<H>, wanted: bool) -> io::Result<()> {
    if opened.is_direct == wanted { Ok(()) } else { opened.file.turn(ReadMode::Direct, wanted) }
}

/// Returns the share of a file that is in the page cache, in percent; 0 if that is not known.
fn resident_percent<H: Handle>(file: &H, size: u64, is_reported: bool) -> u64 {
    let resident = file.resident_bytes(is_reported, 0..u64::MAX).unwrap_or(0).min(size);
    (u128::from(resident) * 100).checked_div(size.into()).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::read::WAYS;

    fn folder_on_disk() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn open(root: &Arc<Root>, path: &[u8], first: ReadMode) -> io::Result<OpenFile> {
        Ok(Opener::new(Arc::clone(root), first).open(path, false)?.0)
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
    }

    #[test]
    fn every_rung_gives_the_same_bytes_at_every_boundary() {
        const MIB: usize = 1 << 20;
        let folder = folder_on_disk();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let mut buffer = Buffer::new(8 * MIB).unwrap();
        for length in [0, 1, 511, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 4 * MIB + 4097] {
            let content = pattern(length);
            std::fs::write(folder.path().join("f"), &content).unwrap();
            for first in WAYS {
                let source = open(&root, b"f", first).unwrap();
                let filled = source.read_at(&mut buffer, 0, length).unwrap();
                assert_eq!(filled.bytes, length);
                assert!(buffer[..length] == content, "{length} bytes, {first:?}");
                assert!(filled.way >= first);
            }
        }
    }

    /// Windows makes holes only in files that are told to have them.
    #[cfg(target_os = "linux")]
    #[test]
    fn holes_are_seen() {
        let folder = folder_on_disk();
        let file = std::fs::File::create(folder.path().join("f")).unwrap();
        file.set_len(10 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], 4 << 20).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let source = open(&root, b"f", ReadMode::Direct).unwrap();
        let (start, end) = source.next_data(0, 10 << 20).unwrap().unwrap();
        assert!(start <= 4 << 20 && end >= (4 << 20) + 4096 && end - start < 2 << 20);
        assert_eq!(source.next_data(end, 10 << 20).unwrap(), None);
        assert_eq!(source.next_data(10 << 20, 10 << 20).unwrap(), None);
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = folder_on_disk();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let refused = open(&root, b"sub", ReadMode::Direct).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
