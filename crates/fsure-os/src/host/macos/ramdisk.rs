//! `mount_tmpfs`, and where there is none HFS+ on memory that `hdiutil` attaches.
//! See [`crate::ramdisk`]. Nothing here has run on a Mac.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use crate::overmount::{Elsewhere, Holder};
use crate::ramdisk::{Disk, device, places};

/// File that marks a RAM disk as made by fsure; it contains the name of the disk.
const MARK: &str = ".fsure-disk";
/// Spotlight would read all of it.
const UNINDEXED: &str = ".metadata_never_index";
/// Names in a RAM disk that belong to fsure.
pub const OWN: [&str; 2] = [MARK, UNINDEXED];
/// macOS 11 has it.
const TMPFS: &str = "/sbin/mount_tmpfs";
/// Unit of the size in `ram://`, in bytes.
const SECTOR: u64 = 512;

/// Puts a RAM disk over a folder, whose owner and mode it gets.
pub fn create(name: &str, place: &Path, bytes: u64) -> io::Result<()> {
    let is = std::fs::metadata(place)?;
    if Path::new(TMPFS).exists() {
        let size = bytes.to_string();
        run(TMPFS, &["-s".as_ref(), size.as_ref(), place.as_ref()])?;
    } else {
        let memory = format!("ram://{}", bytes.div_ceil(SECTOR));
        let answer = run("hdiutil", &["attach".as_ref(), "-nomount".as_ref(), memory.as_ref()])?;
        let device = device(&answer).ok_or_else(|| io::Error::other(answer.clone()))?;
        let options: [&OsStr; 4] =
            ["-o".as_ref(), "noatime,nobrowse".as_ref(), device.as_ref(), place.as_ref()];
        let mounted = run("newfs_hfs", &["-v".as_ref(), name.as_ref(), device.as_ref()])
            .and_then(|_| run("/sbin/mount_hfs", &options));
        if let Err(error) = mounted {
            let _ = run("hdiutil", &["detach".as_ref(), device.as_ref()]);
            return Err(error);
        }
    }
    let finish = || {
        std::fs::set_permissions(place, is.permissions())?;
        std::os::unix::fs::chown(place, Some(is.uid()), Some(is.gid()))?;
        std::fs::write(place.join(UNINDEXED), "")?;
        std::fs::write(place.join(MARK), name)
    };
    finish().inspect_err(|_| drop(run("umount", &[place.as_ref()])))
}

/// All RAM disks of fsure, by their places.
pub fn disks() -> io::Result<Vec<Disk>> {
    let mut disks = Vec::new();
    for (place, _) in places(&run("mount", &[])?) {
        let Ok(name) = std::fs::read_to_string(place.join(MARK)) else { continue };
        let is = rustix::fs::statvfs(&place)?;
        let bytes = is.f_blocks * is.f_frsize;
        let used = bytes - is.f_bfree * is.f_frsize;
        let device = std::fs::metadata(&place)?.dev();
        disks.push(Disk { name, place, bytes, used, device });
    }
    disks.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(disks)
}

/// Does nothing: what is written between the last look and the end goes with it.
pub fn set_read_only(_: &Disk, _: bool) -> io::Result<()> {
    Ok(())
}

/// Takes it away with all that is in it. Never by force: fails where it is in
/// use.
pub fn destroy(disk: &Disk) -> io::Result<()> {
    let table = places(&run("mount", &[])?);
    run("umount", &[disk.place.as_ref()])?;
    let attached = table
        .iter()
        .find(|(place, device)| *place == disk.place && device.starts_with("/dev/disk"));
    if let Some((_, device)) = attached {
        run("hdiutil", &["detach".as_ref(), device.as_ref()])?;
    }
    Ok(())
}

/// Not known: `lsof` names the processes in the way.
pub fn holders(_: &Disk) -> io::Result<Vec<Holder>> {
    Ok(Vec::new())
}

/// There are no mount namespaces.
pub fn elsewhere(_: &Disk) -> io::Result<Vec<Elsewhere>> {
    Ok(Vec::new())
}

fn run(program: &str, arguments: &[&OsStr]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", stderr.trim())))
}
