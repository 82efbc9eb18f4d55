//! The files of a root to be read and hashed without being judged, by one way of reading or
//! another, as often as a measurement asks for them. Nothing is written.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use fsure_os::device::DeviceClass;
use fsure_os::opener::Opener;
use fsure_os::read::{OpenFile, ReadMode};

use super::Options;
use super::open_root::{OpenRoot, open_root, plan};
use crate::catalog::{Catalog, RootLocation, RootSettings, locate};
use crate::model::ScanMonitor;
use crate::scan::{FileSource, HashTarget, HashedFiles, Purpose, ScanPlan, hash_files};
use fsure_core::{AlgorithmSet, Error, Monitor, Result};

/// Names of fsure's own work folders: what lies in them is there for a moment only.
const WORK_FOLDERS: &str = ".fsure-scratch-*";

/// The files of a root, ready to be read.
pub struct HashableTree {
    place: RootLocation,
    open: OpenRoot,
    is_recorded: bool,
    class: OnceLock<DeviceClass>,
}

/// The files that were taken, and the part of them that is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeInMemory {
    /// Files.
    pub files: u64,
    /// Their bytes, as far as they are wanted.
    pub bytes: u64,
    /// Bytes of them in the page cache; `None` if the system does not report it.
    pub in_memory: Option<u64>,
}

/// The manner in which files are to be read.
#[derive(Clone, Copy, Debug)]
pub struct HashRequest {
    /// The best way of reading to try.
    pub first_way: ReadMode,
    /// Bytes after which no file is begun.
    pub bytes: u64,
    /// Readers for each device; `None` for the number that suits it.
    pub readers: Option<usize>,
}

impl HashableTree {
    /// Opens a folder. Its files are those that its record has; those that a walk comes to if
    /// it has none, or none that can be used, which is a warning.
    pub fn open(folder: &Path, monitor: &dyn ScanMonitor) -> Result<Self> {
        let place = locate(folder, None)?;
        let open = open_root(&place)?;
        let mut is_recorded = place.is_recorded();
        if is_recorded && let Err(error) = Catalog::open(&place.catalog, None) {
            monitor.warn(&format!("{error}; its files are found by a walk"));
            is_recorded = false;
        }
        Ok(Self { place, open, is_recorded, class: OnceLock::new() })
    }

    /// Returns true if the files are those that are recorded.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Takes files out of the page cache, up to `bytes` of them. What another program has
    /// mapped or has not written yet stays there.
    pub fn evict(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreeInMemory> {
        self.each_file(bytes, monitor, &OpenFile::evict)
    }

    /// Finds out what of the files is in the page cache.
    pub fn look(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreeInMemory> {
        self.each_file(bytes, monitor, &|_| ())
    }

    /// Reads and hashes the files. `hashed` counts the bytes while it runs.
    pub fn hash(
        &self,
        request: &HashRequest,
        hashed: &AtomicU64,
        monitor: &dyn Monitor,
    ) -> Result<HashedFiles> {
        let mut plan = self.plan()?;
        plan.first_way = request.first_way;
        plan.effort.threads = request.readers;
        let mut source = self.source(&plan, request.bytes)?;
        let target = HashTarget { root: &self.place.root, class: &self.class };
        hash_files(&plan, target, &mut source, hashed, monitor)
    }

    fn each_file(
        &self,
        bytes: u64,
        monitor: &dyn Monitor,
        act: &dyn Fn(&OpenFile),
    ) -> Result<TreeInMemory> {
        let opener = Opener::new(Arc::clone(&self.open.root), ReadMode::Cached);
        let mut source = self.source(&self.plan()?, bytes)?;
        let mut all = TreeInMemory { in_memory: Some(0), ..TreeInMemory::default() };
        while let Some(file) = source.next_file()? {
            if let Some(code) = monitor.stop_requested() {
                return Err(Error::Interrupted(code));
            }
            // One that cannot be opened cannot be read either, and is reported there.
            let Ok((open, _)) = opener.open(file.path.as_bytes(), false) else { continue };
            act(&open);
            all.files += 1;
            all.bytes += file.bytes;
            let in_memory = open.in_memory().map(|bytes| bytes.min(file.bytes));
            all.in_memory = all.in_memory.zip(in_memory).map(|(sum, more)| sum + more);
        }
        Ok(all)
    }

    fn source(&self, plan: &ScanPlan, bytes: u64) -> Result<FileSource> {
        let catalog = match self.is_recorded {
            true => Some(Catalog::open(&self.place.catalog, None)?),
            false => None,
        };
        FileSource::start(Arc::clone(&self.open.root), plan.walk.clone(), catalog, bytes)
    }

    fn plan(&self) -> Result<ScanPlan> {
        let settings = RootSettings { digests: AlgorithmSet::default(), cross_file_systems: false };
        let root = (self.open.volume.clone(), self.open.inode);
        let catalog = Catalog::temporary(&self.place.root, settings, root)?;
        let options = Options { exclude: vec![WORK_FOLDERS.to_owned()], ..Options::default() };
        plan(&self.place, &self.open, &catalog, &options, Purpose::Verify, false)
    }
}
