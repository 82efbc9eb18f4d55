//! The mount table of a process, line by line (proc(5), `mountinfo`).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::super::mountinfo::unescape_bytes;
use crate::overmount::MountEntry;

/// Lists the mounts that a process sees; `None` means this process. A mount over another
/// one comes after it.
pub fn mounts(process: Option<u32>) -> io::Result<Vec<MountEntry>> {
    let name = process.map_or("thread-self".to_owned(), |process| process.to_string());
    let table = std::fs::read(format!("/proc/{name}/mountinfo"))?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The mount that a path is in.
pub fn mount_at(path: &Path) -> io::Result<MountEntry> {
    let answer = rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::MNT_ID)?;
    let found = mounts(None)?.into_iter().find(|mount| mount.id == answer.stx_mnt_id);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in the mount table"))
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse(line: &[u8]) -> Option<MountEntry> {
    let fields: Vec<_> = line.split(|byte| *byte == b' ').map(unescape_bytes).collect();
    let dash = fields.iter().skip(6).position(|field| field == b"-")? + 6;
    let text = |place: usize| Some(String::from_utf8_lossy(fields.get(place)?).into_owned());
    let path = |place: usize| Some(PathBuf::from(OsString::from_vec(fields.get(place)?.clone())));
    let options = |place: usize| Some(text(place)?.split(',').map(str::to_owned).collect());
    let group = |kind: &str| {
        let told =
            fields.get(6..dash)?.iter().find_map(|field| field.strip_prefix(kind.as_bytes()));
        std::str::from_utf8(told?).ok()?.parse().ok()
    };
    let (major, minor) = text(2)?.split_once(':').map(|(one, two)| (one.parse(), two.parse()))?;
    Some(MountEntry {
        id: text(0)?.parse().ok()?,
        parent: text(1)?.parse().ok()?,
        device: rustix::fs::makedev(major.ok()?, minor.ok()?),
        root: path(3)?,
        point: path(4)?,
        shared: group("shared:"),
        master: group("master:"),
        options: options(5)?,
        kind: text(dash + 1)?,
        source: text(dash + 2)?,
        own_options: options(dash + 3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            b"271 27 0:40 /@home /mnt/a\\040b\\134\xff rw,noatime shared:1 - btrfs /dev/s rw,x";
        let mount = parse(line).unwrap();
        assert_eq!((mount.id, mount.parent, mount.device), (271, 27, 40));
        assert_eq!(crate::path::bytes(&mount.point), &b"/mnt/a b\\\xff"[..]);
        assert_eq!((&*mount.kind, &*mount.source), ("btrfs", "/dev/s"));
        assert_eq!((mount.options.len(), mount.own_options.len()), (2, 2));
        assert_eq!((mount.shared, mount.master), (Some(1), None));
        assert_eq!(parse(b"30 27 0:41 / /m rw - tmpfs none"), None, "a line that was cut off");
    }
}
