//! The file systems that are deferred for: which they are, and how all of one is
//! made durable.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, IFlags, Mode, OFlags, StatVfsMountFlags, StatxFlags};

use super::shared_page;
use crate::defer::MountedFs;
use crate::host::linux::mountinfo;
use crate::storage_stack::Stack;

/// `FS_ENCRYPT_FL`, which rustix has no name for.
const ENCRYPTED: u32 = 0x800;

/// A file system, held by a folder of it.
#[derive(Debug)]
pub(super) struct Storage {
    folder: OwnedFd,
    /// As the page lists it.
    pub(super) device: u64,
    /// On xfs `syncfs` sends no flush after writes in place, and loses them in a
    /// cut (18 of 40, Linux 6.18). A write and `fdatasync` behind it do send one.
    file: Option<File>,
    /// True if the file system was read-only from the beginning.
    is_read_only: bool,
}

impl Storage {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::open(folder, flags, Mode::empty())?;
        let stat = rustix::fs::statx(&open, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
        let is_xfs = mountinfo::at(open.as_fd())?.kind == "xfs";
        let file = if is_xfs { Some(nameless(&open)?) } else { None };
        let device = shared_page::device(stat.stx_mode, stat.stx_dev_major, stat.stx_dev_minor);
        let is_read_only = is_read_only(&open)?;
        Ok(Self { folder: open, device, file, is_read_only })
    }

    /// Makes everything durable that was written to it until now.
    pub(super) fn flush(&self) -> io::Result<()> {
        rustix::fs::syncfs(&self.folder)?;
        if let Some(file) = &self.file {
            file.write_all_at(&[0], 0)?;
            file.sync_data()?;
        }
        // One that has failed to write is made read-only, by itself, and from then
        // on `syncfs` does nothing there and says that it has done it.
        if !self.is_read_only && is_read_only(&self.folder)? {
            return Err(io::Error::from_raw_os_error(libc::EROFS));
        }
        Ok(())
    }

    /// Flushes, with something to flush, so that it shows what a flush takes.
    pub(super) fn flush_a_write(&self) -> io::Result<()> {
        // If it cannot be written to, nothing waits for a flush.
        let _ = nameless(&self.folder).and_then(|file| file.write_all_at(&[0; 4096], 0));
        self.flush()
    }
}

fn is_read_only(folder: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatvfs(folder)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// A file without a name on the file system of a folder.
fn nameless(folder: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, c".", flags, Mode::RUSR | Mode::WUSR)?.into())
}

pub(crate) fn mount_of(folder: &Path) -> io::Result<MountedFs> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(folder, flags, Mode::empty())?;
    let mount = mountinfo::at(open.as_fd())?;
    let mut options: Vec<String> = mount.all_options().split(',').map(str::to_owned).collect();
    if mount.kind == "ext4" {
        // The mount table leaves out what is the default of this very file system
        // (`tune2fs -o journal_data`).
        let stat = rustix::fs::statx(&open, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
        options.extend(ext4_options(stat.stx_dev_major, stat.stx_dev_minor));
    }
    // Not all file systems have such attributes.
    let attributes = rustix::fs::ioctl_getflags(&open).unwrap_or(IFlags::empty());
    let held_flushes = Stack::of(folder)?.held_flushes().map(str::to_owned);
    Ok(MountedFs {
        kind: mount.kind,
        source: mount.source,
        point: mount.point,
        options,
        in_place: attributes.contains(IFlags::NOCOW),
        is_encrypted: attributes.bits() & ENCRYPTED != 0,
        held_flushes,
    })
}

fn ext4_options(major: u32, minor: u32) -> Vec<String> {
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap_or_default();
    let name = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let all = std::fs::read_to_string(format!("/proc/fs/ext4/{name}/options"));
    all.unwrap_or_default().lines().map(str::to_owned).collect()
}
