//! A plain RAM disk: a folder whose content is in memory, and nowhere else.
//!
//! | system | what it is | how those of fsure are known |
//! |---|---|---|
//! | Linux | tmpfs | the mount table says `fsure:disk:NAME` |
//! | macOS 11 and later | `mount_tmpfs` | a file `.fsure-disk` in it |
//! | macOS before | HFS+ on `hdiutil attach ram://` | the same |
//! | Windows | needs a driver: refused with the remedy | |
//!
//! What is written for macOS has been compiled and not run.

use std::path::PathBuf;

pub use crate::host::ramdisk::{OWN, create, destroy, disks, elsewhere, holders, set_read_only};

/// The prefix of the mount source of fsure's RAM disks, before the name.
pub const SOURCE: &str = "fsure:disk:";

/// One RAM disk of fsure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Its mount point.
    pub place: PathBuf,
    /// Bytes that it takes at most.
    pub bytes: u64,
    /// Bytes that it takes.
    pub used: u64,
    /// The file system, as `stat` numbers it.
    pub device: u64,
}

/// Parses the output of `mount` on macOS: `tmpfs on /Volumes/x (tmpfs, local)`.
/// Returns the mount point and the device of each mount of type tmpfs or HFS.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn places(table: &str) -> Vec<(PathBuf, String)> {
    let place = |line: &str| {
        let (device, rest) = line.split_once(" on ")?;
        let (place, options) = rest.rsplit_once(" (")?;
        let kind = options.split([',', ')']).next()?;
        ["tmpfs", "hfs"].contains(&kind).then(|| (PathBuf::from(place), device.to_owned()))
    };
    table.lines().filter_map(place).collect()
}

/// The device that `hdiutil attach` names, behind which there are blanks.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn device(answer: &str) -> Option<&str> {
    let device = answer.lines().next()?.trim();
    let is_one = device.starts_with("/dev/disk") && !device.contains(char::is_whitespace);
    is_one.then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is made up after what people show of it: no Mac was at hand.
    #[test]
    fn the_output_of_a_mac_is_read() {
        assert_eq!(device("/dev/disk4          \t         \t\n"), Some("/dev/disk4"));
        for wrong in ["", "hdiutil: attach failed - no", "/dev/disk4 /dev/disk5\n"] {
            assert_eq!(device(wrong), None, "{wrong}");
        }
        let table = "/dev/disk1s1 on / (apfs, local, journaled)\n\
                     tmpfs on /Volumes/a (b) c (tmpfs, local, nodev)\n\
                     /dev/disk4 on /Volumes/fast (hfs, local, nobrowse)\n\
                     map auto_home on /home (autofs, automounted)\n";
        let found = places(table);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, PathBuf::from("/Volumes/a (b) c"));
        assert_eq!(found[1], ("/Volumes/fast".into(), "/dev/disk4".to_owned()));
    }
}
