//! A real file system on a disk of this process, where no process outside its mount
//! namespace sees it: made by `mkfs`, mounted by `mount` from the file that FUSE shows,
//! and used by programs that end with it ([`crate::process_tree`]).
//!
//! Between the file and the mount is a loop device, which other processes can change
//! ([`crate::loop_device`]). So a write and a flush have to arrive at the disk before it
//! is mounted, and [`LoopMount::check`] says whether all flushes since then must have arrived.
//!
//! All that touches the file system is another process: a thread of this process that
//! waits for the disk could not be killed, since the disk is of this process, too.
//! Whatever ends this process, the kernel then ends the others, and with the last one
//! the namespace with its mounts, and the loop device with those.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fuse_disk::{self, ServedDisk, VirtualDisk};
use crate::loop_device::{LoopDevice, LoopError, Reliance};
use crate::private_mounts::{Namespace, retry_while_busy};
use crate::process_tree::{Lines, ProcessTree, Task};
use crate::scratch_dir::Scratch;

/// The folders of programs for administrators, for users whose path leaves them out.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The exit code of `mount` where it was the mount that failed, and not `mount` by
/// itself: 1 permissions, 2 the system, 4 a fault of its own.
const MOUNT_FAILED: i32 = 32;
/// Parts of its messages then that mean that the image is not at fault.
const NOT_THE_IMAGE: [&str; 9] = [
    "must be superuser",
    "unknown filesystem type",
    "Cannot allocate memory",
    "Out of memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "Interrupted system call",
    "Operation not permitted",
    "Permission denied",
];

/// The number of devices that are tried one after the other, if another process
/// disturbs each.
const MOUNTS_MAX: u32 = 5;

/// The words of mount(8) for EBUSY. A new image in a new folder is neither: btrfs has not let go
/// of what the loop device held before, or another process uses the device.
const BUSY: &str = "already mounted or mount point busy";

/// A file system that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// As `mount -t` and `mkfs.*` call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Bytes that it needs: what `mkfs` asks for (300 MiB, 109 MiB) with a margin.
    pub fn least_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 16 << 20,
            Self::Xfs => 304 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    /// Options without which a copy does not mount beside its original, which has
    /// the same identity.
    fn beside(self) -> &'static str {
        match self {
            Self::Xfs => "nouuid",
            // btrfs gives the second a passing identity by itself, from Linux 6.7 on.
            Self::Ext4 | Self::Btrfs => "",
        }
    }

    /// Everything is initialised now and not by the kernel in the background,
    /// and nothing is discarded: the disk is new.
    fn make(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &[
                "-q",
                "-F",
                "-b",
                "4096",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
            ],
            Self::Xfs => &["-q", "-f", "-K"],
            Self::Btrfs => &["-q", "-f", "-K"],
        }
    }
}

/// Room for stands: a folder of which nothing is left behind.
#[derive(Debug)]
pub struct MountArea {
    scratch: Scratch,
    program: PathBuf,
    count: AtomicU32,
}

impl MountArea {
    /// Room in `folder`. `program` is this program's own file, or one that knows
    /// its hidden commands.
    pub fn create(folder: &Path, program: &Path) -> io::Result<Arc<Self>> {
        let scratch = Scratch::create(folder, Some(program))?;
        // A program may give up root, as databases do, and has to get there still.
        #[cfg(unix)]
        std::fs::set_permissions(
            scratch.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o711),
        )?;
        Ok(Arc::new(Self { scratch, program: program.to_owned(), count: AtomicU32::new(0) }))
    }

    /// A new folder in it, gone with it.
    pub fn folder(&self) -> io::Result<PathBuf> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let path = self.scratch.path().join(number.to_string());
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// The program with the hidden commands.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// The reason for which there is no stand.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The content of the disk cannot be mounted.
    #[error("the file system cannot be mounted: {0}")]
    Unmountable(String),
    /// Another process changes the loop device under it, or its settings cannot be
    /// put right: nothing that is seen there can be relied upon.
    #[error("{0}")]
    Disturbed(String),
    /// This machine cannot do it.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

impl From<LoopError> for MountError {
    fn from(error: LoopError) -> Self {
        match error {
            LoopError::Disturbed(words) => Self::Disturbed(words),
            LoopError::Failed(error) => Self::Refused(error),
        }
    }
}

/// A disk that counts what arrives at it.
struct CountedDisk {
    block: Arc<dyn VirtualDisk>,
    writes: AtomicU64,
    flushes: AtomicU64,
}

impl CountedDisk {
    fn arrived(&self) -> (u64, u64) {
        (self.writes.load(Ordering::Acquire), self.flushes.load(Ordering::Acquire))
    }
}

impl VirtualDisk for CountedDisk {
    fn size(&self) -> u64 {
        self.block.size()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        self.block.read(offset, target)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::AcqRel);
        self.block.write(offset, data)
    }

    fn flush(&self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::AcqRel);
        self.block.flush()
    }
}

/// A disk that is served.
struct Front {
    served: ServedDisk,
    space: Namespace,
    disk: Arc<CountedDisk>,
}

impl Front {
    fn new(site: &MountArea, block: Arc<dyn VirtualDisk>) -> io::Result<Self> {
        let space = Namespace::new()?;
        let folder = site.folder()?;
        let (writes, flushes) = (AtomicU64::new(0), AtomicU64::new(0));
        let disk = Arc::new(CountedDisk { block, writes, flushes });
        let served = fuse_disk::serve(disk.clone(), &space, &folder).map_err(|error| {
            let why = format!("a simulated disk needs FUSE (/dev/fuse, 'modprobe fuse'): {error}");
            io::Error::new(error.kind(), why)
        })?;
        Ok(Self { served, space, disk })
    }

    /// A loop device on the disk, which a write and a flush have been seen to reach.
    fn attach(&self, site: &MountArea, place: &Path) -> Result<LoopDevice, LoopError> {
        let start = |command| self.space.spawn(command);
        let files = (self.served.file(), place);
        let mut device = LoopDevice::attach(start, site.program(), files)?;
        let (writes, flushes) = self.disk.arrived();
        device.send_flush()?;
        let arrived = self.disk.arrived();
        let node = device.node().display();
        let lost = |what: &str| {
            Err(LoopError::Disturbed(format!(
                "{what} to {node} has not reached the simulated disk"
            )))
        };
        match (arrived.0 > writes, arrived.1 > flushes) {
            (true, true) => Ok(device),
            (false, _) => lost("a write"),
            (true, false) => lost("a flush"),
        }
    }

    fn run(&self, program: &str, arguments: &[&str], paths: &[&Path]) -> io::Result<Output> {
        let mut command = Command::new(program);
        command.args(arguments).args(paths).env("PATH", PATH).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Only this process handles a Ctrl-C: what it does to `mount` would look
        // like an image that does not mount.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let started = self.space.spawn(command).map_err(|error| {
            let remedy = match program {
                "mkfs.ext4" => ": install e2fsprogs",
                "mkfs.xfs" => ": install xfsprogs",
                "mkfs.btrfs" => ": install btrfs-progs",
                _ => "",
            };
            io::Error::new(error.kind(), format!("cannot start {program}{remedy}: {error}"))
        })?;
        started.wait_with_output()
    }
}

/// Makes a file system on a disk.
pub fn format(site: &MountArea, block: Arc<dyn VirtualDisk>, system: FileSystem) -> io::Result<()> {
    if block.size() < system.least_bytes() {
        let (name, mebibytes) = (system.name(), system.least_bytes() >> 20);
        let why = format!("a disk for {name} needs {mebibytes} MiB");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let front = Front::new(site, block)?;
    let program = format!("mkfs.{}", system.name());
    let output = front.run(&program, system.make(), &[front.served.file()])?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program} failed: {}", words(&output))))
}

/// A disk of this process with its file system mounted, until this is dropped.
pub struct LoopMount {
    site: Arc<MountArea>,
    place: PathBuf,
    device: Mutex<LoopDevice>,
    front: Front,
}

impl std::fmt::Debug for LoopMount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stand").field(&self.place).finish()
    }
}

impl LoopMount {
    /// Mounts the file system of a disk. `options` are those of `mount`, or
    /// empty.
    pub fn mount(
        site: &Arc<MountArea>,
        block: Arc<dyn VirtualDisk>,
        system: FileSystem,
        options: &str,
    ) -> Result<Self, MountError> {
        let mut mounts = 0;
        loop {
            let mounted = Self::mount_once(site, block.clone(), system, options);
            mounts += 1;
            if mounts == MOUNTS_MAX || !matches!(mounted, Err(MountError::Disturbed(_))) {
                return mounted;
            }
        }
    }

    fn mount_once(
        site: &Arc<MountArea>,
        block: Arc<dyn VirtualDisk>,
        system: FileSystem,
        options: &str,
    ) -> Result<Self, MountError> {
        let front = Front::new(site, block)?;
        let place = site.folder()?;
        let device = front.attach(site, &place)?;
        let all = [system.beside(), options].map(str::to_owned);
        let all: Vec<_> = all.into_iter().filter(|options| !options.is_empty()).collect();
        let all = if all.is_empty() { "defaults".to_owned() } else { all.join(",") };
        let arguments = ["-n", "-t", system.name(), "-o", &all];
        let output = front.run("mount", &arguments, &[device.node(), &place])?;
        // Made before the answer is looked at, so that the folder goes with it.
        let stand = Self { site: Arc::clone(site), place, device: Mutex::new(device), front };
        if output.status.success() {
            stand.device().note_mount()?;
            return Ok(stand);
        }
        let words = words(&output);
        let name = format!("mount: {}: ", stand.place.display());
        let words = words.strip_prefix(&name).unwrap_or(&words).to_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains(BUSY) {
            return Err(MountError::Disturbed(format!("its loop device is in use: {words}")));
        }
        if is_the_image(output.status.code(), &stderr) {
            // The image is not at fault where another process has written to it.
            stand.device().check(Reliance::Content)?;
            return Err(MountError::Unmountable(words));
        }
        let words = words.strip_prefix("mount failed: ").unwrap_or(&words);
        Err(MountError::Refused(io::Error::other(format!("mount failed: {words}"))))
    }

    /// Fails unless all that is relied upon has held at each moment since it was mounted:
    /// no other process has changed the loop device or written to it, and as many flushes
    /// have arrived as the file system must have sent.
    pub fn check(&self, reliance: Reliance) -> Result<(), LoopError> {
        let mut device = self.device();
        let least = device.check(reliance)?;
        let (_, arrived) = self.front.disk.arrived();
        if reliance == Reliance::Flushes && arrived < least {
            let node = device.node().display();
            return Err(LoopError::Disturbed(format!(
                "the file system on {node} counts {least} commits with a flush each, and {arrived} \
                 flushes have reached the simulated disk"
            )));
        }
        Ok(())
    }

    /// Writes a file, syncs it and removes it; returns the number of flushes that
    /// have reached the disk by that.
    pub fn sync_file(&self) -> Result<u64, LoopError> {
        let (_, before) = self.front.disk.arrived();
        self.device().sync_file()?;
        Ok(self.front.disk.arrived().1 - before)
    }

    fn device(&self) -> std::sync::MutexGuard<'_, LoopDevice> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mount point, for the programs that are started in it.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Starts a program that sees the file system.
    pub fn spawn(&self, task: &Task, output: Lines, error: Lines) -> io::Result<ProcessTree> {
        let start = |command| self.front.space.spawn(command);
        ProcessTree::spawn(start, self.site.program(), task, output, error)
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // What is in use after that goes with its namespace.
        let unmount = || {
            let ended = self.front.run("umount", &["-n"], &[&self.place])?;
            let is_busy = words(&ended).contains("busy");
            if is_busy { Err(io::ErrorKind::ResourceBusy.into()) } else { Ok(()) }
        };
        let _ = retry_while_busy(unmount);
    }
}

/// Returns true if a `mount` has failed because of the content of the disk. In
/// doubt it is false: that an image does not mount is a loss.
fn is_the_image(code: Option<i32>, stderr: &str) -> bool {
    code == Some(MOUNT_FAILED) && !NOT_THE_IMAGE.iter().any(|part| stderr.contains(part))
}

/// Returns the first line that a program wrote to standard error, otherwise its exit status.
fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| format!("it ended with {}", output.status), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_cannot_mount_is_distinguished_from_a_bad_image() {
        let torn = "mount: /x: wrong fs type, bad option, bad superblock on /dev/loop0.\n\
                    dmesg(1) may have more information after failed mount system call.\n";
        assert!(is_the_image(Some(32), torn));
        assert!(is_the_image(
            Some(32),
            "mount: /x: mount(2) system call failed: \
                                        Structure needs cleaning."
        ));
        for code in [None, Some(1), Some(2), Some(4), Some(8)] {
            assert!(!is_the_image(code, torn), "{code:?}");
        }
        let stderr = "mount: /x: mount(2) system call failed: Cannot allocate memory.\n";
        assert!(!is_the_image(Some(32), stderr));
    }
}
