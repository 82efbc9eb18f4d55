//! A simulated drive of files that others use while it is cut, as a folder and
//! without root.
//!
//! What a cut leaves is a drive of its own and is mounted anew, always: a mount
//! that had its content changed under it would show what its kernel remembers.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fsure_os::family::{Family, Lines, Task};
use fsure_os::files::{self, Clocked, Front};
use fsure_os::stand::Site;

use crate::drive::files::{FileCounts, FileDrive, FileTraits, Mode, Origin};
use crate::drive::{Cut, Latency, Personality, Random};

/// What nobody may rely on here, for whoever is told of a result.
pub const SYNCFS: &str = "syncfs() and sync() do nothing in this folder: the kernel does not pass \
                          them on to FUSE; a program that relies on them needs '--fs'";

/// A drive of files that was switched on when this was made.
#[derive(Clone, Debug)]
pub struct Folder(Arc<Clocked<FileDrive>>);

impl Folder {
    /// An empty one of so many bytes, in the name of this process's user.
    pub fn new(personality: Personality, mode: Mode, latency: Latency, room: u64) -> Self {
        let traits = FileTraits { personality, mode, latency, room, owner: files::owner() };
        Self::holding(FileDrive::new(traits, SystemTime::now()))
    }

    /// One that holds what a cut has left.
    pub fn holding(drive: FileDrive) -> Self {
        Self(Clocked::new(drive))
    }

    /// Mounts it where only the programs see it that are started from what this
    /// returns.
    pub fn mount(&self, site: &Arc<Site>) -> io::Result<MountedFolder> {
        let front = Front::private(Arc::clone(&self.0), &site.folder()?)?;
        Ok(MountedFolder { front, site: Arc::clone(site) })
    }

    /// Mounts it over a folder where all see it.
    pub fn mount_at(&self, place: &Path) -> io::Result<Front> {
        Front::public(Arc::clone(&self.0), place)
    }

    /// What is left if the power is cut now. The drive goes on.
    pub fn cut(&self, cut: Cut, random: &mut Random) -> FileDrive {
        self.with(|drive, now| drive.cut(now, cut, random))
    }

    /// The same, with what the cut was made of.
    pub fn cut_with_origin(&self, cut: Cut, random: &mut Random) -> (FileDrive, Origin) {
        self.with(|drive, now| drive.cut_with_origin(now, cut, random))
    }

    /// Notes that everything up to a number was said to be safe.
    pub fn mark(&self, number: u64) {
        self.with(|drive, _| drive.mark(number));
    }

    /// What it was asked for so far.
    pub fn counts(&self) -> FileCounts {
        self.with(|drive, _| drive.counts())
    }

    /// Does something with the drive while no request is under way.
    pub fn with<T>(&self, act: impl FnOnce(&mut FileDrive, Duration) -> T) -> T {
        self.0.with(act)
    }
}

/// A folder that is mounted, until this is dropped.
#[derive(Debug)]
pub struct MountedFolder {
    front: Front,
    site: Arc<Site>,
}

impl MountedFolder {
    /// Where it is, for the programs that are started in it.
    pub fn place(&self) -> &Path {
        self.front.place()
    }

    /// Starts a program that sees it, and ends with the calling thread at the
    /// latest.
    pub fn spawn(&self, task: &Task, output: Lines, error: Lines) -> io::Result<Family> {
        self.front.spawn(self.site.program(), task, output, error)
    }
}
