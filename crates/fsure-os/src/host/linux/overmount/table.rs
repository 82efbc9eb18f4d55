//! The mounts that a process sees, as entries.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::super::mountinfo::{self, MountLine};
use crate::overmount::MountEntry;

/// Lists the mounts that a process sees; `None` means this process. A mount over another
/// one comes after it.
pub fn mounts(process: Option<u32>) -> io::Result<Vec<MountEntry>> {
    Ok(mountinfo::lines(&mountinfo::read(process)?).map(entry).collect())
}

/// The mount that a path is in.
pub fn mount_at(path: &Path) -> io::Result<MountEntry> {
    let answer = rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::MNT_ID)?;
    let found = mounts(None)?.into_iter().find(|mount| mount.id == answer.stx_mnt_id);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in the mount table"))
}

fn entry(line: MountLine) -> MountEntry {
    let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
    let options = |text: &str| text.split(',').map(str::to_owned).collect();
    let group = |kind: &str| {
        line.tags.iter().find_map(|tag| tag.strip_prefix(kind)).and_then(|it| it.parse().ok())
    };
    let (shared, master) = (group("shared:"), group("master:"));
    MountEntry {
        id: line.id,
        parent: line.parent,
        device: rustix::fs::makedev(line.device.0, line.device.1),
        root: path(line.root),
        point: path(line.point),
        shared,
        master,
        options: options(&line.options),
        kind: line.kind,
        source: line.source,
        own_options: options(&line.own_options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            b"271 27 0:40 /@home /mnt/a\\040b\\134\xff rw,noatime shared:1 - btrfs /dev/s rw,x";
        let mount = mountinfo::lines(line).map(entry).next().unwrap();
        assert_eq!((mount.id, mount.parent, mount.device), (271, 27, 40));
        assert_eq!(crate::path::bytes(&mount.point), &b"/mnt/a b\\\xff"[..]);
        assert_eq!((&*mount.kind, &*mount.source), ("btrfs", "/dev/s"));
        assert_eq!((mount.options.len(), mount.own_options.len()), (2, 2));
        assert_eq!((mount.shared, mount.master), (Some(1), None));
        let cut_off = b"30 27 0:41 / /m rw - tmpfs none";
        assert!(mountinfo::lines(cut_off).next().is_none(), "a line that was cut off");
    }
}
