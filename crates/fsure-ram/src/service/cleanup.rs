//! Clean-up of folders that are not in RAM any more. Nothing is removed while content
//! that was in memory could still be there.

use fsure_os::overmount;
use fsure_os::private_mounts::retry_while_busy;

use super::ram_device;
use super::registry::{Registry, RegistryEntry};
use crate::write_back::recover;
use fsure_core::{Error, IoContext as _, Result};

/// Takes away what is left of a folder whose RAM side is gone.
pub(super) fn clear_if_unmounted(registry: &Registry, entry: &RegistryEntry) -> Result<()> {
    refuse_unseen(entry)?;
    clear(registry, entry)
}

/// Refuses where the RAM side is not gone, and only not to be seen from here: its
/// content may be nowhere else.
pub(super) fn refuse_unseen(entry: &RegistryEntry) -> Result<()> {
    let path = &entry.path;
    let here = overmount::mounts(None).context("find what is mounted at", path)?;
    if let Some(part) = here.iter().find(|mount| entry.is_of(mount)) {
        return Err(Error::FailedPrecondition {
            message: format!(
                "{} was unmounted, but a part of it is still mounted at {}",
                path.display(),
                part.point.display()
            ),
            hint: Some("copy what you need from there to the disk, and unmount it".to_owned()),
        });
    }
    let there = overmount::writable_elsewhere(&entry.source())
        .context("find the processes that see", path)?;
    let Some(one) = there.first() else { return Ok(()) };
    let overmount::Elsewhere { process, command, .. } = one;
    Err(Error::FailedPrecondition {
        message: format!(
            "{} is in RAM in the mount namespace of process {process} ({command}), and not in this \
             one",
            path.display()
        ),
        hint: Some(format!("to recover it there, run 'nsenter -m -t {process} fsure ram recover'")),
    })
}

/// Takes away what is left of a folder that is not in RAM.
pub(super) fn clear(registry: &Registry, entry: &RegistryEntry) -> Result<()> {
    let disk = registry.disk(&entry.id);
    let mounts = overmount::mounts(None).context("find what is mounted at", &disk)?;
    for _ in mounts.iter().filter(|mount| mount.point == disk) {
        retry_while_busy(|| overmount::unmount(&disk)).context("unmount", &disk)?;
    }
    // It may have been removed, or what it was on unmounted.
    if fsure_os::path::is_folder(&entry.path) {
        recover(&entry.path)?;
    }
    ram_device::remove(entry)?;
    registry.remove(&entry.id)
}
