//! A zram device with xfs on it: memory that can be frozen. See [`crate::zram`].

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen,
};

use super::{Detached, context_error, forbidden, unprivileged};
use crate::zram::node;

const CONTROL: &str = "/sys/class/zram-control";
/// An xfs begins so, and has its label there (`sb_fname`).
const MAGIC: &[u8] = b"XFSB";
const LABEL: std::ops::Range<usize> = 108..120;

/// Fails, with what is to be done, where xfs on zram cannot be made.
pub fn can_make_xfs() -> io::Result<()> {
    let no = |why: &str| Err(io::Error::new(ErrorKind::Unsupported, why));
    if !rustix::process::geteuid().is_root() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "needs root to add a zram device"));
    }
    if !Path::new(CONTROL).exists() {
        return no("the kernel has no zram, or its module is not loaded: 'modprobe zram'");
    }
    let mut version = Command::new("mkfs.xfs");
    version.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if version.status().is_err() {
        return no("mkfs.xfs is missing: install xfsprogs");
    }
    // Loads the module, where it is one.
    match fsopen("xfs", FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(_) => Ok(()),
        Err(_) => no("the kernel has no xfs: 'modprobe xfs'"),
    }
}

/// Adds a device; its number.
pub fn add_zram() -> io::Result<u32> {
    crate::host::linux::zram::add()
}

/// Makes a device that was added one of so many bytes, with xfs of that label on it.
///
/// It has no limit of memory beside its size: where it met one, a write of xfs's own
/// journal would fail, which shuts it down with all that is in it.
pub fn make_xfs(number: u32, bytes: u64, label: &str) -> io::Result<()> {
    crate::host::linux::zram::size(number, bytes)?;
    let mut make = Command::new("mkfs.xfs");
    // As many names as there is space for: a quarter of it otherwise.
    make.args(["-q", "-f", "-K", "-i", "maxpct=0", "-L", label]).arg(node(number));
    let made = make.stdin(Stdio::null()).output()?;
    if made.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("mkfs.xfs: {}", String::from_utf8_lossy(&made.stderr).trim())))
}

/// Returns true if the device was never written to, by `orig_data_size` and `same_pages`.
/// The content of a disk need not begin at its start: ext4, btrfs and swap do not.
fn is_untouched(number: u32) -> bool {
    let file = format!("/sys/block/zram{number}/mm_stat");
    let stat = std::fs::read_to_string(file).unwrap_or_default();
    let numbers: Vec<_> = stat.split_whitespace().collect();
    [0, 5].iter().all(|place| numbers.get(*place) == Some(&"0"))
}

/// Returns true if a device holds xfs with that label.
pub fn is_xfs_of(number: u32, label: &str) -> io::Result<bool> {
    let mut start = [0; 512];
    // Without a size yet, nothing is read.
    let _ = std::fs::File::open(node(number))?.read(&mut start)?;
    let mut named = [0; 12];
    named[..label.len()].copy_from_slice(label.as_bytes());
    Ok(start.starts_with(MAGIC) && start[LABEL] == named)
}

/// Removes a device with all that is on it, if that is xfs of that label or nothing.
/// Fails with `ResourceBusy` where it is in use, and with `AlreadyExists` where
/// something else is on it.
pub fn remove_zram(number: u32, label: &str) -> io::Result<()> {
    let is_own = match is_xfs_of(number, label) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !is_own && !is_untouched(number) {
        let why = format!("{} now belongs to another process", node(number).display());
        return Err(io::Error::new(ErrorKind::AlreadyExists, why));
    }
    std::fs::write(format!("{CONTROL}/hot_remove"), number.to_string())
}

impl Detached {
    /// An empty folder on the xfs of a zram device, of the owner and mode of the
    /// folder `like`, and with what the mount below that forbids. What is deleted
    /// gives its memory back at once.
    pub fn xfs(number: u32, like: &Path) -> io::Result<Self> {
        let is = std::fs::metadata(like)?;
        let context = fsopen("xfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(unprivileged)?;
        let source: PathBuf = node(number);
        fsconfig_set_string(&context, "source", &source)
            .map_err(|errno| context_error(errno, "source"))?;
        for flag in ["discard", "inode64"] {
            fsconfig_set_flag(&context, flag).map_err(|errno| context_error(errno, flag))?;
        }
        fsconfig_create(&context).map_err(|errno| context_error(errno, source.display()))?;
        let flags = forbidden(like)?;
        let made = Self(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?);
        let root = made.path();
        chown(&root, Some(is.uid()), Some(is.gid()))?;
        let mode = std::fs::Permissions::from_mode(is.mode() & 0o7777);
        std::fs::set_permissions(&root, mode)?;
        Ok(made)
    }
}
