//! The RAM side of one folder as a device: it is made, frozen for a generation, and taken
//! away.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fsure_os::freeze::{FreezeGuard, thaw};
use fsure_os::overmount::{Detached, Ram};
use fsure_os::private_mounts::retry_while_busy;
use fsure_os::zram;

use super::backend::Backend;
use super::registry::{Registry, RegistryEntry};
use crate::write_back::Freeze;
use fsure_core::{Error, IoContext as _, Result};

/// Makes an empty RAM side that no other process sees. What it takes is entered before it
/// is made.
pub(super) fn make(
    registry: &Registry,
    entry: &mut RegistryEntry,
    disk: &Path,
) -> Result<Detached> {
    let path = entry.path.clone();
    let doing = "make a folder in memory for";
    let RegistryEntry { bytes, inodes, .. } = *entry;
    if entry.backend == Backend::Tmpfs {
        let ram = Ram { source: entry.source(), bytes, inodes, huge: true };
        return Detached::ram(&ram, disk).context(doing, &path);
    }
    // Of an attempt before.
    remove(entry)?;
    let number = zram::add_zram().context(doing, &path)?;
    entry.device = Some(number);
    registry.put(entry)?;
    zram::make_xfs(number, bytes, &entry.xfs_label()).context(doing, &path)?;
    Detached::xfs(number, disk).context(doing, &path)
}

/// Removes the device of a RAM side that is not mounted any more.
pub(super) fn remove(entry: &RegistryEntry) -> Result<()> {
    let Some(number) = entry.device else { return Ok(()) };
    match retry_while_busy(|| zram::remove_zram(number, &entry.xfs_label())) {
        // The number is another's by now.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Error::FailedPrecondition {
            message: format!(
                "{} of {} is still in use in another mount namespace",
                zram::node(number).display(),
                entry.path.display()
            ),
            hint: Some(
                "end the processes that have mounts of their own, then run 'fsure ram recover'"
                    .to_owned(),
            ),
        }),
        other => other.context("remove", &zram::node(number)),
    }
}

/// Thaws what was left frozen: its guard was killed, too.
pub(super) fn thaw_left_frozen(entry: &RegistryEntry) -> Result<()> {
    if entry.backend == Backend::ZramXfs {
        thaw(&entry.path).context("thaw", &entry.path)?;
    }
    Ok(())
}

/// Freezes the RAM side. A guard is there only meanwhile: it would be in the way of
/// the unmounting.
pub(super) struct FreezeControl {
    path: PathBuf,
    lock: PathBuf,
    guard: RefCell<Option<FreezeGuard>>,
}

impl FreezeControl {
    /// Of an entry whose RAM side is mounted, and not covered; `None` if it cannot
    /// be frozen.
    pub(super) fn of(entry: &RegistryEntry, registry: &Registry) -> Option<Self> {
        let can = entry.backend == Backend::ZramXfs;
        let (path, lock) = (entry.path.clone(), registry.still(&entry.id));
        can.then(|| Self { path, lock, guard: RefCell::default() })
    }
}

impl Freeze for FreezeControl {
    fn freeze(&self) -> io::Result<()> {
        let guard = FreezeGuard::of(&self.path, &self.lock)?;
        guard.freeze()?;
        self.guard.replace(Some(guard));
        Ok(())
    }

    fn thaw(&self) -> io::Result<()> {
        // Its guard ends then, and would thaw where this fails.
        self.guard.take().map_or(Ok(()), |guard| guard.thaw())
    }
}
