//! Changes by fanotify. See [`crate::watch`].
//!
//! An event says the folder, the name and the file, the first and the last by a
//! handle: a number that stays when they are renamed. It is asked for its path when
//! events are taken, so each folder is told where it is then.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use libc::{
    FAN_ATTRIB, FAN_CLOSE_WRITE, FAN_CREATE, FAN_DELETE, FAN_EVENT_INFO_TYPE_DFID,
    FAN_EVENT_INFO_TYPE_DFID_NAME, FAN_EVENT_INFO_TYPE_FID, FAN_MARK_FILESYSTEM, FAN_MODIFY,
    FAN_MOVED_FROM, FAN_MOVED_TO, FAN_ONDIR, FAN_Q_OVERFLOW, FAN_REPORT_DFID_NAME_TARGET,
    FAN_UNLIMITED_QUEUE,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, readlinkat, statx};
use rustix::io::Errno;

use super::fanotify::{Event, Group, Handle};
use crate::host::linux::folder::MASK;
use crate::watch::Changed;

/// What is told of: all that makes a name, its file or its attributes another.
const CHANGES: u64 = FAN_MODIFY
    | FAN_CLOSE_WRITE
    | FAN_CREATE
    | FAN_DELETE
    | FAN_MOVED_FROM
    | FAN_MOVED_TO
    | FAN_ATTRIB
    | FAN_ONDIR;

/// Hears of all changes in one file system.
#[derive(Debug)]
pub(crate) struct Watch {
    group: Group,
    /// Open for reading: a handle is looked up where this is mounted.
    root: OwnedFd,
}

/// What events speak of. Their handles are sound only for as long as the watch, for
/// which they are not forgotten.
#[derive(Default)]
struct Told {
    /// Folders in which names changed.
    folders: HashSet<Handle>,
    /// Files that changed, or folders whose attributes did.
    things: HashSet<Handle>,
    /// Folders that came from elsewhere.
    moved: HashSet<Handle>,
}

/// Where a handle leads.
enum Found {
    /// It was removed: its folder has been told so, or is next time.
    Gone,
    /// Below the root.
    At { file: OwnedFd, path: Vec<u8>, links: u32, is_folder: bool },
}

impl Watch {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        let group = group()?;
        group
            .mark(FAN_MARK_FILESYSTEM, CHANGES, &root, None)
            .map_err(|error| refused(&error, "watch the file system"))?;
        let watch = Self { group, root };
        // Who may not look up a handle learns it now and not with the first change.
        Handle::of(&watch.root, None).and_then(|handle| watch.find(&handle))?;
        Ok(watch)
    }

    pub(crate) fn take(&mut self) -> io::Result<Changed> {
        let (mut told, mut is_known) = (Told::default(), true);
        // What waits is read to its end all the same: the next answer is of what comes
        // after this one.
        self.group
            .take(|event| is_known &= event.is_some_and(|event| told.add(&event).is_some()))?;
        if !is_known {
            return Ok(Changed::Unknown);
        }
        self.resolve(&told)
    }

    pub(crate) fn wait(&self, at_most: Duration) -> io::Result<bool> {
        self.group.wait(at_most)
    }

    /// Where it all is now.
    fn resolve(&self, told: &Told) -> io::Result<Changed> {
        let mut folders = BTreeSet::new();
        for handle in &told.folders {
            if let Found::At { path, .. } = self.find(handle)? {
                folders.insert(path);
            }
        }
        for handle in &told.things {
            let Found::At { path, links, is_folder, .. } = self.find(handle)? else { continue };
            // One of its names is known. The others may be anywhere.
            if links > 1 && !is_folder {
                return Ok(Changed::Unknown);
            }
            if let Some(folder) = parent(&path) {
                folders.insert(folder.to_vec());
            }
            if is_folder {
                folders.insert(path);
            }
        }
        for handle in &told.moved {
            if let Found::At { file, path, .. } = self.find(handle)? {
                add_all_below(&file, path, &mut folders)?;
            }
        }
        Ok(Changed::Folders(folders))
    }

    /// Where a handle leads, by a path from the root.
    fn find(&self, handle: &Handle) -> io::Result<Found> {
        let file = match handle.open(&self.root) {
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => return Ok(Found::Gone),
            other => other?,
        };
        // In this order: what is unlinked in between is gone, and not in doubt.
        let (top, path) = (path_of(&self.root)?, path_of(&file)?);
        let stat = statx(&file, c"", AtFlags::EMPTY_PATH, MASK)?;
        if stat.stx_nlink == 0 {
            return Ok(Found::Gone);
        }
        // The kernel remembers a name that it had, and not the one that it has.
        if path.ends_with(b" (deleted)") {
            return Err(io::Error::other("a file whose name is not known"));
        }
        let top = if top == b"/" { &[][..] } else { &top[..] };
        let path = match path.strip_prefix(top) {
            Some([]) => Vec::new(),
            Some([b'/', path @ ..]) => path.to_vec(),
            // Its name is not known to the kernel, which reads it from the disk only
            // for folders.
            _ => return Err(io::Error::other("a handle that leads out of the root")),
        };
        let is_folder = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
        Ok(Found::At { file, path, links: stat.stx_nlink, is_folder })
    }
}

impl Told {
    /// What this event speaks of; `None` where that cannot be told.
    fn add(&mut self, event: &Event<'_>) -> Option<()> {
        let has = |bit| event.mask & bit != 0;
        let mut is_any = false;
        for record in event.records() {
            let record = record?;
            let (_, handle, name) = record.file().filter(|(_, handle, _)| !handle.is_empty())?;
            match record.kind {
                // The folder itself, and not a name in it.
                FAN_EVENT_INFO_TYPE_DFID_NAME if name.starts_with(b".\0") => {
                    self.things.insert(handle)
                }
                FAN_EVENT_INFO_TYPE_DFID => self.things.insert(handle),
                FAN_EVENT_INFO_TYPE_DFID_NAME => self.folders.insert(handle),
                FAN_EVENT_INFO_TYPE_FID if has(FAN_ONDIR) && has(FAN_MOVED_TO) => {
                    self.moved.insert(handle)
                }
                FAN_EVENT_INFO_TYPE_FID => self.things.insert(handle),
                _ => return None,
            };
            is_any = true;
        }
        (is_any && !has(FAN_Q_OVERFLOW)).then_some(())
    }
}

/// The group; its queue without a limit where that is allowed.
fn group() -> io::Result<Group> {
    let unlimited = Group::new(FAN_REPORT_DFID_NAME_TARGET | FAN_UNLIMITED_QUEUE);
    let any = unlimited.or_else(|_| Group::new(FAN_REPORT_DFID_NAME_TARGET));
    any.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel tells no changes by folders (fanotify, Linux 5.17)",
        ),
        _ => refused(&error, "hear of changes"),
    })
}

fn refused(error: &io::Error, what: &str) -> io::Error {
    let needs = match error.raw_os_error() {
        Some(libc::EPERM) => " (needs root)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot {what}: {error}{needs}"))
}

/// Where an open file is now, which the kernel says in one piece: it does not rename
/// meanwhile. Fails where that is longer than a page.
fn path_of(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(readlinkat(rustix::fs::CWD, link, Vec::new())?.into_bytes())
}

/// The folder that holds a name; none holds the root's.
fn parent(path: &[u8]) -> Option<&[u8]> {
    let at = path.iter().rposition(|byte| *byte == b'/');
    (!path.is_empty()).then(|| &path[..at.unwrap_or(0)])
}

/// A folder and all below it. What is moved meanwhile is told of next time.
fn add_all_below(
    folder: impl AsFd,
    path: Vec<u8>,
    folders: &mut BTreeSet<Vec<u8>>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut open = vec![(openat(folder, c".", flags, Mode::empty())?, path)];
    while let Some((folder, path)) = open.pop() {
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut names = RawDir::new(&folder, buffer.spare_capacity_mut());
        while let Some(name) = names.next() {
            let name = match name {
                Err(Errno::NOENT) => break,
                name => name?,
            };
            let bytes = name.file_name().to_bytes();
            let may_be = matches!(name.file_type(), FileType::Directory | FileType::Unknown);
            if !may_be || matches!(bytes, b"." | b"..") {
                continue;
            }
            let inner = match openat(&folder, name.file_name(), flags, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                inner => inner?,
            };
            let above = if path.is_empty() { &[][..] } else { &b"/"[..] };
            open.push((inner, [&path, above, bytes].concat()));
        }
        folders.insert(path);
    }
    Ok(())
}
