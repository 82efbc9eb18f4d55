//! Mounts that are made where no process sees them and put in their place at one
//! stroke. See [`crate::overmount`].

mod alternate_paths;
mod disks;
mod holders;
mod survey;
mod table;
mod zram;

use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_reconfigure, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, fspick, mount_change, move_mount, open_tree,
};

pub use alternate_paths::ways;
pub use disks::block_devices_on;
pub(super) use holders::living;
pub use holders::{holders, holders_of_mounts, mounted_elsewhere, writable_elsewhere};
pub use survey::survey;
pub use table::{mount_at, mounts};
pub use zram::{add_zram, can_make_xfs, is_xfs_of, make_xfs, remove_zram};

use crate::overmount::{FsSpace, Ram};

/// A mount that has no place yet. Dropped, it is gone.
#[derive(Debug)]
pub struct Detached(OwnedFd);

impl Detached {
    /// An empty folder in memory, of the owner and mode of the folder `like`, and
    /// with what the mount below that forbids: a folder with programs that run as
    /// another user must work as it did. Never swapped out if the kernel can promise
    /// that.
    pub fn ram(ram: &Ram, like: &Path) -> io::Result<Self> {
        let is = std::fs::metadata(like)?;
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(unprivileged)?;
        for (key, value) in [
            ("source", ram.source.clone()),
            ("size", ram.bytes.to_string()),
            ("nr_inodes", ram.inodes.to_string()),
            ("mode", format!("{:o}", is.mode() & 0o7777)),
            ("uid", is.uid().to_string()),
            ("gid", is.gid().to_string()),
        ] {
            fsconfig_set_string(&context, key, &*value)
                .map_err(|errno| context_error(errno, key))?;
        }
        // Since Linux 6.4, and not in a user namespace; huge pages are a matter
        // of how the kernel was built.
        let _ = fsconfig_set_flag(&context, "noswap");
        if ram.huge {
            let _ = fsconfig_set_string(&context, "huge", "within_size");
        }
        fsconfig_create(&context).map_err(|errno| context_error(errno, "a folder in memory"))?;
        let flags = forbidden(like)?;
        Ok(Self(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?))
    }

    /// A second mount of a folder, without what is mounted below it.
    pub fn clone_of(folder: &Path) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(Self(open_tree(CWD, folder, flags).map_err(unprivileged)?))
    }

    /// A path that leads into it, for this process and as long as it is there.
    pub fn path(&self) -> PathBuf {
        by_descriptor(&self.0)
    }

    /// Makes it private: from now on nothing is mounted in it because another process
    /// mounts that where this was cloned from.
    fn make_private(&self) -> io::Result<()> {
        // SAFETY: plain numbers, for which zeros are to change nothing.
        let mut change: libc::mount_attr = unsafe { std::mem::zeroed() };
        change.propagation = libc::MS_PRIVATE;
        let (change, length) = (&raw const change, size_of::<libc::mount_attr>());
        let (at, path) = (self.0.as_raw_fd(), c"".as_ptr());
        // SAFETY: the kernel reads both, which are there.
        let done = unsafe {
            libc::syscall(libc::SYS_mount_setattr, at, path, libc::AT_EMPTY_PATH, change, length)
        };
        match io::Error::last_os_error() {
            _ if done == 0 => Ok(()),
            // Before Linux 5.12, where nothing comes to what has no place.
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
            error => Err(error),
        }
    }

    /// Puts it over a folder: from now on all see it, and it stays.
    pub fn publish(self, at: &Path) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(self.0.as_fd(), c"", CWD, at, flags)
            .map_err(|errno| context_error(errno, at.display()))
    }

    /// Does the same in a place of fsure, from which it spreads to no other mount.
    pub fn publish_privately(self, at: &Path) -> io::Result<()> {
        self.publish(at)?;
        Ok(mount_change(at, MountPropagationFlags::PRIVATE)?)
    }
}

/// A file system in its place as it is without what is mounted in it, now or later. As
/// long as this is there, its mount in that place is in use.
#[derive(Debug)]
pub struct DetachedView {
    clone: Detached,
    _place: OwnedFd,
}

impl DetachedView {
    /// Of what is mounted on a folder, if it is the file system that `stat` numbers so.
    pub fn of(folder: &Path, device: u64) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        // Not by its name once more: that could lead elsewhere by now.
        let clone = Detached::clone_of(&by_descriptor(&place))?;
        if std::fs::metadata(clone.path())?.dev() != device {
            return Err(io::Error::other("something else is mounted over it: unmount that first"));
        }
        clone.make_private()?;
        Ok(Self { clone, _place: place })
    }

    /// A path that leads into it, for this process and as long as this is there.
    pub fn path(&self) -> PathBuf {
        self.clone.path()
    }
}

fn by_descriptor(descriptor: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

/// Returns the restrictions of the mount that a folder is in.
fn forbidden(folder: &Path) -> io::Result<MountAttrFlags> {
    let mut flags = MountAttrFlags::empty();
    let mount = mount_at(folder)?;
    for (option, flag) in [
        ("nodev", MountAttrFlags::MOUNT_ATTR_NODEV),
        ("nosuid", MountAttrFlags::MOUNT_ATTR_NOSUID),
        ("noexec", MountAttrFlags::MOUNT_ATTR_NOEXEC),
        ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
        ("nosymfollow", MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW),
    ] {
        let has = mount.options.iter().any(|has| has == option);
        flags |= if has { flag } else { MountAttrFlags::empty() };
    }
    Ok(flags)
}

/// Makes a whole file system read-only or writable again, wherever it is mounted.
/// Fails with `ResourceBusy` as long as anything in it is open for writing.
pub fn set_read_only(at: &Path, is: bool) -> io::Result<()> {
    change(at, |context| Ok(fsconfig_set_flag(context, if is { "ro" } else { "rw" })?))
}

fn change(at: &Path, set: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<()> {
    let is = mount_at(at)?;
    let context = fspick(CWD, at, FsPickFlags::FSPICK_CLOEXEC).map_err(unprivileged)?;
    // Not said again, it would be a wish to swap, which is refused.
    if is.own_options.iter().any(|option| option == "noswap") {
        fsconfig_set_flag(&context, "noswap")?;
    }
    set(&context)?;
    Ok(fsconfig_reconfigure(&context)?)
}

/// The top directory of a file system in memory, open: it is the same one whatever is
/// mounted over its path, and reached from a mount namespace that has another `/proc`.
#[derive(Debug)]
pub struct Top(OwnedFd);

impl Top {
    /// Opens what a path leads to.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// The number of its file system, as `stat` has it.
    pub fn device(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.0)?.st_dev)
    }

    /// Asks how full it is.
    pub fn space(&self) -> io::Result<FsSpace> {
        let is = rustix::fs::fstatvfs(&self.0)?;
        Ok(FsSpace {
            bytes: is.f_blocks * is.f_frsize,
            used: is.f_blocks.saturating_sub(is.f_bfree) * is.f_frsize,
            inodes: is.f_files,
            inodes_used: is.f_files.saturating_sub(is.f_ffree),
        })
    }

    /// Changes its limits. Fails if more is taken.
    pub fn resize(&self, bytes: u64, inodes: u64) -> io::Result<()> {
        let set = |is_never_swapped: bool| -> io::Result<()> {
            let flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH;
            let context = fspick(&self.0, c"", flags).map_err(unprivileged)?;
            if is_never_swapped {
                fsconfig_set_flag(&context, "noswap")?;
            }
            fsconfig_set_string(&context, "size", &*bytes.to_string())?;
            fsconfig_set_string(&context, "nr_inodes", &*inodes.to_string())?;
            Ok(fsconfig_reconfigure(&context)?)
        };
        match set(false) {
            // One that is never swapped must get that option again, and no other.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => set(true),
            other => other,
        }
    }
}

/// Unmounts what is on top there, and never lazily: fails with `ResourceBusy`
/// where it is in use.
pub fn unmount(at: &Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(at, UnmountFlags::NOFOLLOW)?)
}

/// Returns the size of a file system and how much of it is taken.
pub fn space(at: &Path) -> io::Result<FsSpace> {
    Top::open(at)?.space()
}

/// Returns true if a process is in the user namespace of this one. A user with another
/// user namespace can mount anything there, under any name.
pub fn is_of_our_users(process: u32) -> bool {
    let space = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
    let own = space("self");
    own.is_some() && space(&process.to_string()) == own
}

fn unprivileged(errno: Errno) -> io::Error {
    match errno {
        Errno::PERM => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "needs root (CAP_SYS_ADMIN) to mount for all processes",
        ),
        Errno::NOSYS => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel cannot mount atomically: that needs Linux 5.2 or later",
        ),
        other => other.into(),
    }
}

fn context_error(errno: Errno, what: impl Display) -> io::Error {
    let error = io::Error::from(errno);
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
