//! Files that the kernel itself reads and writes: disks that are made of one (`losetup`),
//! and swap. No process has these open. They are identified by file system and inode: a name
//! may lead to another file here than where it was given.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::super::loop_device;
use super::super::mountinfo::unescape_bytes;
use super::holders::{entries, identity};

/// Files for which `is_meant`, given the number of the file system and the inode, that a
/// block device is made of, or that are swapped to. Fails where one cannot be asked.
pub fn block_devices_on(is_meant: &dyn Fn(u64, u64) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for device in entries(Path::new("/sys/block")) {
        // Only there where a file is attached.
        let Ok(mut name) = fs::read(device.path().join("loop/backing_file")) else { continue };
        name.pop_if(|last| *last == b'\n');
        let name = PathBuf::from(OsString::from_vec(name));
        let node = Path::new("/dev").join(device.file_name());
        if let Some((device, inode)) = attached(&node, &name)?
            && is_meant(device, inode)
        {
            found.push(name);
        }
    }
    // Without swap there may be no such file.
    for name in swapped(&fs::read("/proc/swaps").unwrap_or_default()) {
        match identity(&name) {
            Ok((device, inode)) if is_meant(device, inode) => found.push(name),
            // One that is not to be seen from here is in no folder that is.
            Err(error) if is_hidden(&error) => {}
            other => _ = other?,
        }
    }
    Ok(found)
}

/// Returns the file behind a loop device, as file system and inode; `None` if the device
/// has none any more, or if this process cannot see the file.
fn attached(node: &Path, name: &Path) -> io::Result<Option<(u64, u64)>> {
    let error = match File::open(node).and_then(|node| ask(&node)) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(error) => error,
        found => return found.map(Some),
    };
    // Others than root might not be permitted to ask it, and a container may have no node.
    match identity(name) {
        Ok(found) => Ok(Some(found)),
        Err(why) if is_hidden(&why) && !rustix::process::geteuid().is_root() => Ok(None),
        Err(_) => Err(io::Error::new(
            error.kind(),
            format!(
                "{} is made of {}, and fsure cannot see if that file is in it ({error}): detach it \
                 ('losetup -d') or make its device node",
                node.display(),
                name.display(),
            ),
        )),
    }
}

fn is_hidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

fn ask(node: &File) -> io::Result<(u64, u64)> {
    let (device, inode) = loop_device::file_of(node)?;
    Ok((decode(device), inode))
}

/// The number of a file system as the kernel tells it there (`huge_encode_dev`).
fn decode(number: u64) -> u64 {
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    rustix::fs::makedev(major as u32, minor as u32)
}

/// The files of a table of swaps: `Filename Type Size Used Priority`, with `\040` for a
/// space in a name.
fn swapped(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let file = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (name, kind) = (words.next()?, words.next()?);
        (kind == b"file").then(|| PathBuf::from(OsString::from_vec(unescape_bytes(name))))
    };
    lines.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_any_name_is_found() {
        let table = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/sda2                               partition\t8388604\t0\t-2\n\
            /srv/a\\040b\xff                          file\t\t1020\t\t0\t\t-3\n\
            /swap                                   file\t\t1020\t\t0\t\t-4\n";
        let names: Vec<_> = swapped(table).into_iter().map(|name| name.into_os_string()).collect();
        assert_eq!(names, [OsString::from_vec(b"/srv/a b\xff".to_vec()), "/swap".into()]);
    }

    #[test]
    fn a_number_is_that_of_stat() {
        for (major, minor) in [(8, 1), (0, 45), (259, 0x123), (4095, 0xf_ffff)] {
            let encoded = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
            assert_eq!(decode(u64::from(encoded)), rustix::fs::makedev(major, minor));
        }
    }
}
