//! The medium that is cut: a drive with a real file system on it, or a folder of files
//! without one. The runner treats both alike.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fsure_os::loop_device::{LoopError, Reliance};
use fsure_os::loop_mount::{self, FileSystem, LoopMount, MountArea, MountError};
use fsure_os::process_tree::{Lines, ProcessTree, Task};

use fsure_core::Random;
use fsure_core::{Error, Result};
use fsure_simdrive::files::{FileDrive, Mode, PreCutState};
use fsure_simdrive::{Behavior, CutVariant, History, Image, Latency, Traits};
use fsure_simdrive::{LiveDrive, LiveFolder, MountedFolder};

/// Form in which a program sees the simulated drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Under a real file system. Needs root.
    Mounted {
        /// The file system.
        system: FileSystem,
        /// Options of `mount`, or empty.
        options: String,
    },
    /// As a folder that fsure serves, file by file.
    Folder(Mode),
}

impl AccessMode {
    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mounted { system, .. } => system.name(),
            Self::Folder(Mode::Strict) => "folder",
            Self::Folder(Mode::Journal) => "folder-journal",
        }
    }

    /// Options with which the file system is mounted; empty for a folder.
    pub(super) fn mount_options(&self) -> &str {
        match self {
            Self::Mounted { options, .. } => options,
            Self::Folder(_) => "",
        }
    }

    /// Returns a new drive that holds only what `mkfs` creates.
    pub(super) fn format(
        &self,
        site: &MountArea,
        size: u64,
        behavior: Behavior,
    ) -> io::Result<BackendDrive> {
        match self {
            Self::Mounted { system, .. } => {
                let drive = Arc::new(LiveDrive::new(Traits::new(behavior), Image::new(size)));
                loop_mount::format(site, drive.clone(), *system)?;
                Ok(BackendDrive::Blocks(drive))
            }
            Self::Folder(mode) => {
                Ok(BackendDrive::Files(LiveFolder::new(behavior, *mode, Latency::NONE, size)))
            }
        }
    }
}

/// Content of a drive that is switched off.
#[derive(Debug)]
pub(super) enum OfflineDrive {
    Blocks(Image),
    Files(Box<FileDrive>),
}

/// A cut of a drive that goes on.
#[derive(Debug)]
pub(super) struct DriveCut {
    /// Content of the drive that is left.
    pub(super) left: OfflineDrive,
    /// State before the cut; `None` if it cannot show what was not synced.
    pub(super) before_cut: Option<PreCutState>,
    /// Moment of the cut: requests that ended before it are in what is left, and no others.
    pub(super) at: Instant,
}

/// Properties of a drive when it is switched on.
#[derive(Clone, Copy)]
pub(super) struct DriveConfig {
    pub(super) behavior: Behavior,
    pub(super) latency: Latency,
}

impl DriveConfig {
    /// An honest drive that takes no time.
    pub(super) const HONEST: Self = Self { behavior: Behavior::Honest, latency: Latency::NONE };
}

impl OfflineDrive {
    /// Switches on a drive that holds this content.
    pub(super) fn switch_on(&self, kind: DriveConfig) -> BackendDrive {
        let DriveConfig { behavior, latency } = kind;
        match self {
            Self::Blocks(image) => {
                let traits = Traits { latency, ..Traits::new(behavior) };
                BackendDrive::Blocks(Arc::new(LiveDrive::new(traits, image.clone())))
            }
            Self::Files(files) => {
                BackendDrive::Files(LiveFolder::holding(files.as_another(behavior, latency)))
            }
        }
    }
}

/// A drive that is switched on.
#[derive(Clone, Debug)]
pub(super) enum BackendDrive {
    Blocks(Arc<LiveDrive>),
    Files(LiveFolder),
}

impl BackendDrive {
    /// Mounts the drive, so that programs can see it.
    pub(super) fn mount(
        &self,
        site: &Arc<MountArea>,
        front: &AccessMode,
    ) -> std::result::Result<MountedMedium, MountError> {
        match (self, front) {
            (Self::Blocks(drive), AccessMode::Mounted { system, options }) => {
                Ok(MountedMedium::LoopMount(Box::new(LoopMount::mount(
                    site,
                    drive.clone(),
                    *system,
                    options,
                )?)))
            }
            (Self::Files(folder), _) => Ok(MountedMedium::Folder(folder.mount(site)?)),
            (Self::Blocks(_), AccessMode::Folder(_)) => unreachable!("formatted as a folder"),
        }
    }

    /// Returns what is left if the power is cut now. The drive goes on.
    pub(super) fn cut(&self, cut: CutVariant, random: &mut Random) -> OfflineDrive {
        match self {
            Self::Blocks(drive) => OfflineDrive::Blocks(drive.cut(cut, random)),
            Self::Files(folder) => OfflineDrive::Files(Box::new(folder.cut(cut, random))),
        }
    }

    /// Does the same as `cut`, and also returns the moment of the cut, and the state before it if
    /// that can show what was not synced, which is so for a folder.
    pub(super) fn cut_with_state(&self, cut: CutVariant, random: &mut Random) -> DriveCut {
        // The moment is taken first: a copy of a large drive takes a while, in which no request
        // ends, and by which what is lost would look older than it was.
        match self {
            Self::Blocks(drive) => drive.with(|drive, now| {
                let at = Instant::now();
                let left = OfflineDrive::Blocks(drive.cut(now, cut, random));
                DriveCut { left, before_cut: None, at }
            }),
            Self::Files(folder) => folder.with(|drive, now| {
                let at = Instant::now();
                let (left, before_cut) = drive.cut_with_state(now, cut, random);
                let left = OfflineDrive::Files(Box::new(left));
                DriveCut { left, before_cut: Some(before_cut), at }
            }),
        }
    }

    /// Notes that everything up to a number was acknowledged as safe.
    pub(super) fn mark(&self, number: u64) {
        match self {
            Self::Blocks(drive) => drive.with(|drive, _| drive.mark(number)),
            Self::Files(folder) => folder.mark(number),
        }
    }

    /// Fails one write after `writes` more that succeed.
    pub(super) fn fail_after(&self, writes: u64) {
        match self {
            Self::Blocks(drive) => drive.with(|drive, _| drive.fail_after(writes, 1)),
            Self::Files(folder) => folder.with(|drive, _| drive.fail_after(writes, 1)),
        }
    }

    /// Returns the number of writes that the drive was made to fail.
    pub(super) fn failed_writes(&self) -> u64 {
        match self {
            Self::Blocks(drive) => drive.counts().errors,
            Self::Files(folder) => folder.counts().errors,
        }
    }

    /// Makes the drive record all requests from now on, in a folder with space for them.
    pub(super) fn remember(&self, folder: &Path) -> io::Result<()> {
        match self {
            Self::Blocks(drive) => drive.with(|drive, _| drive.remember(folder)),
            Self::Files(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns an error if a drive that records its requests could not record all of them
    /// so far. A folder records none.
    pub(super) fn remembers_all(&self) -> io::Result<()> {
        match self {
            Self::Blocks(drive) => drive.with(|drive, _| drive.remembers_all()),
            Self::Files(_) => Ok(()),
        }
    }

    /// Returns the record of all these requests.
    pub(super) fn history(&self) -> io::Result<History> {
        match self {
            Self::Blocks(drive) => drive.with(|drive, _| drive.history()),
            Self::Files(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// A drive that programs see until the value is dropped.
#[derive(Debug)]
pub(super) enum MountedMedium {
    LoopMount(Box<LoopMount>),
    Folder(MountedFolder),
}

impl MountedMedium {
    pub(super) fn place(&self) -> &Path {
        match self {
            Self::LoopMount(stand) => stand.place(),
            Self::Folder(folder) => folder.place(),
        }
    }

    /// Fails if another process may have disturbed what is between the file system and
    /// the drive since it was mounted. Nothing is between a folder and its drive.
    pub(super) fn check(&self, reliance: Reliance) -> Result<()> {
        match self {
            Self::LoopMount(stand) => stand.check(reliance).map_err(broken),
            Self::Folder(_) => Ok(()),
        }
    }

    /// Syncs a file of its own and returns the number of flushes that have reached the
    /// drive; `None` for a folder, which is synced file by file.
    pub(super) fn sync_file(&self) -> Result<Option<u64>> {
        match self {
            Self::LoopMount(stand) => stand.sync_file().map(Some).map_err(broken),
            Self::Folder(_) => Ok(None),
        }
    }

    pub(super) fn spawn(
        &self,
        task: &Task,
        output: Lines,
        error: Lines,
    ) -> io::Result<ProcessTree> {
        match self {
            Self::LoopMount(stand) => stand.spawn(task, output, error),
            Self::Folder(folder) => folder.spawn(task, output, error),
        }
    }
}

/// Converts the error: nothing that was seen on such a device shows anything.
fn broken(error: LoopError) -> Error {
    Error::HarnessBroken { why: error.to_string() }
}
