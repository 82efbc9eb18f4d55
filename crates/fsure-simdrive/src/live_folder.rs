//! A simulated drive of files that other programs use while it is cut, as a folder and
//! without root.
//!
//! The result of a cut is a drive of its own and is always mounted again: a mount whose
//! content changed under it would show what its kernel has cached.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fsure_os::fuse_files::{Clocked, ServedFs};
use fsure_os::loop_mount::MountArea;
use fsure_os::process_tree::{Lines, ProcessTree, Task};
use fsure_os::user;

use crate::files::{FileCounts, FileDrive, FileTraits, Mode};
use crate::{Behavior, CutVariant, Latency};
use fsure_core::Random;

/// Warning for users of a folder: programs must not rely on `syncfs()` and `sync()` in
/// it.
pub const SYNCFS: &str = "syncfs() and sync() do nothing in this folder: the kernel does not pass \
                          them on to FUSE; a program that relies on them needs '--fs'";

/// A drive of files that is switched on when the value is created.
#[derive(Clone, Debug)]
pub struct LiveFolder(Arc<Clocked<FileDrive>>);

impl LiveFolder {
    /// Creates an empty drive with room for `space` bytes, whose top folder belongs to the
    /// user of this process.
    pub fn new(behavior: Behavior, mode: Mode, latency: Latency, space: u64) -> Self {
        let traits = FileTraits { behavior, mode, latency, space, owner: user::user_and_group() };
        Self::holding(FileDrive::new(traits, SystemTime::now()))
    }

    /// Switches on a drive of files, such as one that a cut has left.
    pub fn holding(drive: FileDrive) -> Self {
        Self(Clocked::new(drive))
    }

    /// Mounts the drive so that only programs started through the returned value can see
    /// it.
    pub fn mount(&self, site: &Arc<MountArea>) -> io::Result<MountedFolder> {
        let front = ServedFs::private(Arc::clone(&self.0), &site.folder()?)?;
        Ok(MountedFolder { front, site: Arc::clone(site) })
    }

    /// Mounts the drive over the folder `place`, where all programs can see it.
    pub fn mount_at(&self, place: &Path) -> io::Result<ServedFs> {
        let source = self.with(|drive, _| drive.source());
        ServedFs::public(Arc::clone(&self.0), &source, place)
    }

    /// Returns the drive that is left if the power is cut now. This drive goes on.
    pub fn cut(&self, cut: CutVariant, random: &mut Random) -> FileDrive {
        self.with(|drive, now| drive.cut(now, cut, random))
    }

    /// Notes that everything up to a number was acknowledged as safe.
    pub fn mark(&self, number: u64) {
        self.with(|drive, _| drive.mark(number));
    }

    /// Returns the counts of requests so far.
    pub fn counts(&self) -> FileCounts {
        self.with(|drive, _| drive.counts())
    }

    /// Calls `act` with the drive while no request is under way.
    pub fn with<T>(&self, act: impl FnOnce(&mut FileDrive, Duration) -> T) -> T {
        self.0.with(act)
    }
}

/// A folder that is mounted until the value is dropped.
#[derive(Debug)]
pub struct MountedFolder {
    front: ServedFs,
    site: Arc<MountArea>,
}

impl MountedFolder {
    /// Returns the mount point, for the programs that are started in it.
    pub fn place(&self) -> &Path {
        self.front.place()
    }

    /// Starts a program that sees the folder. It ends with the calling thread at the
    /// latest.
    pub fn spawn(&self, task: &Task, output: Lines, error: Lines) -> io::Result<ProcessTree> {
        self.front.spawn(self.site.program(), task, output, error)
    }
}
