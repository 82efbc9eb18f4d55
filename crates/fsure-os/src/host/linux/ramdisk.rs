//! A tmpfs of its own. See [`crate::ramdisk`].

use std::io;
use std::path::Path;

use super::overmount::{self, Detached};
use crate::overmount::{Elsewhere, Holder, Ram};
use crate::ramdisk::{Disk, SOURCE};

/// Names in a RAM disk that belong to fsure.
pub const OWN: [&str; 0] = [];

/// Puts a RAM disk over a folder, whose owner and mode it gets.
pub fn create(name: &str, place: &Path, bytes: u64) -> io::Result<()> {
    let ram = Ram::disk(format!("{SOURCE}{name}"), bytes, true);
    Detached::ram(&ram, place)?.publish(place)
}

/// All RAM disks of fsure, by their places.
pub fn disks() -> io::Result<Vec<Disk>> {
    let mut disks = Vec::new();
    for mount in overmount::mounts(None)? {
        let Some(name) = mount.source.strip_prefix(SOURCE).filter(|_| mount.kind == "tmpfs") else {
            continue;
        };
        // Something else may be on top of it by now.
        let is_seen = overmount::mount_at(&mount.point).is_ok_and(|seen| seen.id == mount.id);
        let space = if is_seen { overmount::space(&mount.point)? } else { Default::default() };
        let (name, place) = (name.to_owned(), mount.point);
        disks.push(Disk {
            name,
            place,
            bytes: space.bytes,
            used: space.used,
            device: mount.device,
        });
    }
    disks.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(disks)
}

/// Makes it read-only or writable again, for all who have it mounted. Fails with
/// `ResourceBusy` where something in it is open for writing.
pub fn set_read_only(disk: &Disk, is: bool) -> io::Result<()> {
    overmount::set_read_only(&disk.place, is)
}

/// Takes it away with all that is in it. Fails with `ResourceBusy` where it is in
/// use.
pub fn destroy(disk: &Disk) -> io::Result<()> {
    let there = overmount::mount_at(&disk.place)?;
    if there.device != disk.device || !there.source.starts_with(SOURCE) {
        let why = format!("{} is mounted on top of it", there.source);
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    overmount::unmount(&disk.place)
}

/// Returns the processes that use the disk, other than this one.
pub fn holders(disk: &Disk) -> io::Result<Vec<Holder>> {
    overmount::holders_of_mounts(&[std::process::id()], disk.device)
}

/// Returns the other mount namespaces in which the disk is mounted, each by one process.
pub fn elsewhere(disk: &Disk) -> io::Result<Vec<Elsewhere>> {
    overmount::mounted_elsewhere(disk.device)
}
