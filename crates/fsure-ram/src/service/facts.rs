//! The facts that decide if a folder can be put into RAM.

use std::path::PathBuf;

use fsure_os::overmount::{AlternatePaths, Holder, MountEntry, Survey};

use super::backend::Backend;
use super::run_memory::RamFolders;

/// Facts about a folder and the machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The folder, without links.
    pub path: PathBuf,
    /// Folder of the registry.
    pub runtime: PathBuf,
    /// Folders that are in RAM.
    pub bound: Vec<PathBuf>,
    /// Mount that the folder is on.
    pub mount: MountEntry,
    /// Contents of the folder.
    pub survey: Survey,
    /// Processes that have something of it open or have their working directory in it.
    pub holders: Vec<Holder>,
    /// Ways by which it is reached beside its path.
    pub ways: AlternatePaths,
    /// Files in it that are used as disks or as swap.
    pub disks: Vec<PathBuf>,
    /// Bytes of memory that are available without swapping.
    pub available: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Bytes of it that other RAM folders take.
    pub others: RamFolders,
    /// Bytes that can be written to its file system.
    pub free: u64,
    /// True if it has a `.fsure-ram` already.
    pub has_own: bool,
    /// True if that is not a folder.
    pub is_foreign: bool,
    /// A folder in it or above it that has a `.fsure-ram`.
    pub overlapping: Option<PathBuf>,
    /// Backend of the RAM side.
    pub backend: Backend,
    /// The reason why the backend is not available here, and the remedy; `None` if it is
    /// available.
    pub lacks: Option<String>,
    /// The setting that keeps flushes from the disk of the disk side.
    pub held_flushes: Option<String>,
}
