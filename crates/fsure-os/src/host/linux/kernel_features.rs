//! Tries what a kernel can do. See [`crate::kernel_features`].

use std::fs::OpenOptions;
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use rustix::process::{WaitOptions, waitpid};

use super::fanotify::FanotifyGroup;
use super::file::{RWF_DONTCACHE, resident_pages};
use super::mount_sandbox::copy;
use crate::kernel_features::{Features, ReadFeatures};

/// See [`crate::kernel_features::features`].
pub(crate) fn features() -> Features {
    let with = |set: &dyn Fn(&OwnedFd) -> rustix::io::Result<()>| tried(mount(set));
    let exists = |path: &str| Path::new(path).exists();
    Features {
        detached_mount: with(&|_| Ok(())),
        no_swap: with(&|context| fsconfig_set_flag(context, "noswap")),
        huge_pages: with(&|context| fsconfig_set_string(context, "huge", "within_size")),
        // Linux 5.9 tells the folder and the name.
        file_system_marks: tried(FanotifyGroup::new(libc::FAN_REPORT_DFID_NAME_TARGET).map(drop)),
        user_namespaces: Some(user_namespaces(&setting).and_then(|()| make_user_namespace())),
        zram: Some(exists("/sys/class/zram-control") || has_module("zram")),
        xfs: Some(has_xfs()),
        type_format: Some(exists("/sys/kernel/btf/vmlinux")),
        fuse: has_fuse(),
    }
}

/// See [`crate::kernel_features::read_features`].
pub(crate) fn read_features() -> Option<ReadFeatures> {
    let io_uring = Some(super::batch_read::Ring::new().is_some());
    let Ok(file) = std::fs::File::open("/proc/self/exe") else {
        return Some(ReadFeatures { io_uring, ..ReadFeatures::default() });
    };
    let stat = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let mut byte = [0];
    let read = rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut byte)], 0, RWF_DONTCACHE);
    Some(ReadFeatures {
        io_uring,
        direct_alignment: stat.ok().map(|stat| stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0),
        dont_cache: Some(read.is_ok()),
        page_counts: Some(resident_pages(&file, true, 0..1).is_some()),
    })
}

/// Returns true if the attempt succeeded; `None` if only root is permitted to do it.
fn tried(done: io::Result<()>) -> Option<bool> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        other => Some(other.is_ok()),
    }
}

/// A folder in memory that never gets a place, and is gone at once.
fn mount(set: &dyn Fn(&OwnedFd) -> rustix::io::Result<()>) -> io::Result<()> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    set(&context)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok(())
}

fn setting(name: &str) -> Option<u64> {
    let value = std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
    value.trim().parse().ok()
}

/// Makes one, by a process that ends at once: a container may forbid what no setting does.
fn make_user_namespace() -> Result<(), String> {
    let child = match copy(libc::CLONE_NEWUSER) {
        // SAFETY: ends the copy, which has done nothing.
        Ok(None) => unsafe { libc::_exit(0) },
        Ok(Some(child)) => child,
        Err(errno) => return Err(format!("{} (a container's rule?)", io::Error::from(errno))),
    };
    while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    Ok(())
}

/// Fails if the kernel forbids user namespaces, with the setting that does, or if it is
/// built without them.
fn user_namespaces(setting: &dyn Fn(&str) -> Option<u64>) -> Result<(), String> {
    for (name, forbids) in [
        ("user/max_user_namespaces", 0),
        ("kernel/unprivileged_userns_clone", 0),
        ("kernel/apparmor_restrict_unprivileged_userns", 1),
    ] {
        if setting(name) == Some(forbids) {
            return Err(format!("{} = {forbids}", name.replace('/', ".")));
        }
    }
    if Path::new("/proc/self/ns/user").exists() {
        Ok(())
    } else {
        Err("this kernel is built without them".to_owned())
    }
}

/// Returns true if the device opens; `None` if that would load the module.
fn has_fuse() -> Option<bool> {
    match Path::new("/sys/fs/fuse").exists() {
        true => tried(OpenOptions::new().read(true).write(true).open("/dev/fuse").map(drop)),
        false => (!has_module("fuse")).then_some(false),
    }
}

fn has_xfs() -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let is_known = known.lines().any(|line| line.trim() == "xfs") || has_module("xfs");
    let tools = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/run/current-system/sw/bin"];
    is_known && tools.iter().any(|folder| Path::new(folder).join("mkfs.xfs").exists())
}

/// Returns true if the kernel has the module, which is loaded when it is needed.
fn has_module(name: &str) -> bool {
    let release = rustix::system::uname();
    let folder = Path::new("/lib/modules").join(&*release.release().to_string_lossy());
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let list = std::fs::read_to_string(folder.join(list)).unwrap_or_default();
        list.lines().any(|line| {
            let file = line.split(':').next().unwrap_or_default();
            file.rsplit('/').next().is_some_and(|file| file.split('.').next() == Some(name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_forbids_is_named() {
        assert_eq!(user_namespaces(&|_| None), Ok(()));
        assert_eq!(user_namespaces(&|_| Some(2)), Ok(()));
        let forbidden = user_namespaces(&|name| name.contains("apparmor").then_some(1));
        assert_eq!(
            forbidden.unwrap_err(),
            "kernel.apparmor_restrict_unprivileged_userns = 1".to_owned()
        );
        let none = user_namespaces(&|name| name.contains("max").then_some(0));
        assert!(none.unwrap_err().contains("user.max_user_namespaces = 0"));
    }

    #[test]
    fn a_user_namespace_is_tried() {
        let other = std::process::Command::new("unshare").args(["--user", "true"]).output();
        match other {
            Ok(other) => assert_eq!(make_user_namespace().is_ok(), other.status.success()),
            Err(error) => crate::host::did_not_run("a_user_namespace_is_tried", &error.to_string()),
        }
    }

    #[test]
    fn trying_leaves_nothing_mounted() {
        let mounted = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let before = mounted().matches(" - tmpfs none ").count();
        let features = features();
        assert_eq!(mounted().matches(" - tmpfs none ").count(), before);
        assert!(features.type_format.is_some());
        if features.no_swap == Some(true) {
            assert_eq!(features.detached_mount, Some(true));
        }
    }
}
