//! Finds the processes that hold a file, from `/proc`. The kernel has no call for it, and
//! what it does not show there (exported folders) is not found.
//!
//! All that any process has open is checked, on any file system. A file system of the
//! network or of a program (FUSE) might never respond again, and this process would wait
//! together with the process that has a file of it open. So only what the kernel knows by
//! itself is requested.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags};

use crate::overmount::{Elsewhere, HoldKind, Holder, MountEntry};

/// Bits of the mode of a link in `/proc/N/fd` and `/proc/N/map_files`: what is
/// behind it is open for writing.
const WRITES: u32 = 0o200;

/// Processes but `except` that hold anything for which `is_meant`, given the
/// number of its file system and its inode. Those that cannot be asked are left
/// out: only root can ask all.
pub fn holders(except: &[u32], is_meant: &dyn Fn(u64, u64) -> bool) -> io::Result<Vec<Holder>> {
    let mut found = BTreeSet::new();
    for process in processes()?.into_iter().filter(|process| !except.contains(process)) {
        let home = PathBuf::from(format!("/proc/{process}"));
        let mut add = |how: HoldKind, link: &Path| {
            let path = fs::read_link(link).unwrap_or_default();
            found.insert(Holder { process, command: command(process), how, path });
        };
        let is_meant = |link: &Path| {
            let is = look(link).ok()?;
            is_meant(device(&is), is.stx_ino).then_some(is)
        };
        // A thread can have a working folder of its own.
        for task in entries(&home.join("task")) {
            for (name, how) in [("cwd", HoldKind::Works), ("root", HoldKind::Root)] {
                let link = task.path().join(name);
                if is_meant(&link).is_some() {
                    add(how, &link);
                }
            }
        }
        let living = living(home);
        for kind in ["fd", "map_files"] {
            for entry in entries(&living.join(kind)) {
                let link = entry.path();
                let Some(is) = is_meant(&link) else { continue };
                let writes = fs::symlink_metadata(&link).is_ok_and(|is| is.mode() & WRITES != 0);
                add(
                    match (FileType::from_raw_mode(is.stx_mode.into()).is_dir(), writes) {
                        (true, _) => HoldKind::Folder,
                        (false, true) => HoldKind::Writes,
                        (false, false) => HoldKind::Reads,
                    },
                    &link,
                );
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Processes but `except` that hold anything of a whole file system.
pub fn holders_of_mounts(except: &[u32], device: u64) -> io::Result<Vec<Holder>> {
    holders(except, &|of, _| of == device)
}

/// Mount namespaces other than that of this process in which a file system is mounted,
/// by one of the processes that are in each.
pub fn mounted_elsewhere(device: u64) -> io::Result<Vec<Elsewhere>> {
    elsewhere(&|mount| mount.device == device)
}

/// The same for a source, where it can still be written to.
pub fn writable_elsewhere(source: &str) -> io::Result<Vec<Elsewhere>> {
    let is_writable = |mount: &MountEntry| !mount.own_options.iter().any(|option| option == "ro");
    elsewhere(&|mount| mount.source == source && is_writable(mount))
}

/// The same for any mount that is meant, with the first of those in each.
pub(super) fn elsewhere(is_meant: &dyn Fn(&MountEntry) -> bool) -> io::Result<Vec<Elsewhere>> {
    let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let mut seen: BTreeSet<_> = space("self").into_iter().collect();
    let mut found = Vec::new();
    for process in processes()? {
        let Some(space) = space(&process.to_string()) else { continue };
        if !seen.insert(space) {
            continue;
        }
        let there = super::mounts(Some(process)).unwrap_or_default();
        if let Some(mount) = there.into_iter().find(is_meant) {
            found.push(Elsewhere { process, command: command(process), point: mount.point });
        }
    }
    Ok(found)
}

fn processes() -> io::Result<Vec<u32>> {
    let number = |name: &OsStr| name.to_str()?.parse().ok();
    let mut processes: Vec<u32> =
        fs::read_dir("/proc")?.flatten().filter_map(|entry| number(&entry.file_name())).collect();
    processes.sort_unstable();
    Ok(processes)
}

/// Returns the folder of `/proc` that shows what a process has, given the process's own
/// folder there. That one shows nothing once the first thread of the process has ended,
/// though the other threads still have all of it.
pub(in crate::host::linux) fn living(home: PathBuf) -> PathBuf {
    let has_ended = |home: &Path| {
        let stat = fs::read(home.join("stat")).unwrap_or_default();
        // Its name may have any letters in it.
        let state = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
        matches!(state, Some(b'Z' | b'X'))
    };
    if !has_ended(&home) {
        return home;
    }
    let tasks = home.join("task");
    let mut others = entries(&tasks).map(|task| Path::new("/proc").join(task.file_name()));
    others.find(|thread| !has_ended(thread)).unwrap_or(home)
}

/// Lists a folder of `/proc`; empty if the process has ended, or if this process is not
/// permitted to list it.
pub(super) fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Returns the stat of what a path leads to, as it was when it was last requested.
fn look(path: &Path) -> io::Result<Statx> {
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    Ok(rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE | StatxFlags::INO)?)
}

fn device(is: &Statx) -> u64 {
    rustix::fs::makedev(is.stx_dev_major, is.stx_dev_minor)
}

/// The file system and the inode of what a path leads to.
pub(super) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    look(path).map(|is| (device(&is), is.stx_ino))
}

fn command(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
