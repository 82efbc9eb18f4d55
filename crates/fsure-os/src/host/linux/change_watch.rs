//! Changes by fanotify. See [`crate::change_watch`].
//!
//! An event has the directory, the name and the file, the first and the last by a
//! handle: a number that stays when they are renamed. The path of a directory is looked up
//! when events are taken, so it is the one of that time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use libc::{
    FAN_ATTRIB, FAN_CLOSE_WRITE, FAN_CREATE, FAN_DELETE, FAN_EVENT_INFO_TYPE_DFID,
    FAN_EVENT_INFO_TYPE_DFID_NAME, FAN_EVENT_INFO_TYPE_FID, FAN_EVENT_INFO_TYPE_NEW_DFID_NAME,
    FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, FAN_MARK_FILESYSTEM, FAN_MODIFY, FAN_ONDIR, FAN_Q_OVERFLOW,
    FAN_RENAME, FAN_REPORT_DFID_NAME_TARGET, FAN_UNLIMITED_QUEUE,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, readlinkat, statx};
use rustix::io::Errno;

use super::change_time::ChangeTime;
use super::fanotify::{FanotifyEvent, FanotifyGroup, Handle};
use crate::change_watch::{Changed, Paths};
use crate::host::linux::root_dir::MASK;

/// All that makes a name, its file or its attributes another. A rename is one event with
/// both names (`FAN_RENAME`): of two events, one could be taken without the other.
const CHANGES: u64 =
    FAN_MODIFY | FAN_CLOSE_WRITE | FAN_CREATE | FAN_DELETE | FAN_RENAME | FAN_ATTRIB | FAN_ONDIR;

/// Changes of the file itself, and not only of a name of it.
const CONTENT: u64 = FAN_MODIFY | FAN_CLOSE_WRITE | FAN_ATTRIB;

/// Reads of the queue until it is empty: a busy program adds to it every 10 µs, and
/// reading what it added takes less.
const READS_MAX: u32 = 16;

/// Receives all changes in one file system.
#[derive(Debug)]
pub(crate) struct Watch {
    group: FanotifyGroup,
    /// Open for reading: a handle is looked up where this is mounted.
    root: OwnedFd,
    /// True if handles of files can be opened, and not only those of directories.
    opens_files: bool,
    change_time: ChangeTime,
}

/// The handles and names in events. Handles are valid only for as long as the watch, for
/// which they are not forgotten.
#[derive(Default)]
struct Reported {
    /// Names that changed, by their directory.
    names: HashMap<Handle, BTreeSet<Vec<u8>>>,
    files: HashMap<Handle, FileChanges>,
    /// Directories whose attributes changed.
    directories: HashSet<Handle>,
    moved: HashSet<Handle>,
    removed: HashSet<Handle>,
}

/// A change of a file.
#[derive(Default)]
struct FileChanges {
    /// The directory and the name by which it was changed.
    changed_as: Option<(Handle, Vec<u8>)>,
    is_changed: bool,
    /// It got, exchanged or lost a name.
    is_created: bool,
    is_renamed: bool,
    is_removed: bool,
    /// Its number of names changed.
    is_relinked: bool,
}

/// The target of a handle.
enum HandleTarget {
    /// It was removed.
    Gone,
    /// Below the root.
    At { file: OwnedFd, path: Vec<u8>, inode: u64, links: u32 },
    /// A file of which the kernel remembers a name that it had, and not the one that it has.
    Unnamed { inode: u64 },
}

impl Watch {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        let group = group()?;
        group
            .mark(FAN_MARK_FILESYSTEM, CHANGES, &root, None)
            .map_err(|error| refused(&error, "watch the file system"))?;
        let own = Handle::of(&root, None)?;
        // In a user namespace only directories are opened by their handles.
        let opens_files = own.open(&root, OFlags::PATH).is_ok();
        let change_time = ChangeTime::new()?;
        let watch = Self { group, root, opens_files, change_time };
        // A process that cannot look up a handle learns it now and not with the first change.
        watch.find(&own, OFlags::DIRECTORY, &path_of(&watch.root)?)?;
        Ok(watch)
    }

    pub(crate) fn take(&mut self) -> io::Result<Changed> {
        let (mut reported, mut is_known) = (Reported::default(), true);
        let mut add = |event: Option<FanotifyEvent<'_>>| {
            is_known &= event.is_some_and(|event| reported.add(&event).is_some());
        };
        let (mut is_all, mut reads, mut changed_from) = (false, 0, None);
        while !is_all && reads < READS_MAX {
            // Waiting events are read to the end in any case: the next answer begins behind them.
            self.group.take(&mut add)?;
            changed_from = self.change_time.draw_line()?;
            // An event that is queued behind that line has a change time after it, and would be
            // taken for not reported.
            is_all = self.group.is_empty()?;
            reads += 1;
        }
        if !is_known {
            return Ok(Changed::Unknown);
        }
        let mut paths = self.resolve(reported)?;
        paths.is_exact &= is_all;
        paths.changed_from = changed_from;
        Ok(Changed::Known(paths))
    }

    pub(crate) fn knows_links(&self) -> bool {
        self.opens_files
    }

    pub(crate) fn wait(&self, at_most: Duration) -> io::Result<bool> {
        self.group.wait(at_most)
    }

    /// The paths of all of it now.
    fn resolve(&self, reported: Reported) -> io::Result<Paths> {
        let mut paths = Paths { is_exact: reported.moved.is_empty(), ..Paths::default() };
        let top = path_of(&self.root)?;
        let find = |handle: &Handle, flags| self.find(handle, flags, &top);
        for (handle, names) in reported.names {
            match find(&handle, OFlags::DIRECTORY)? {
                HandleTarget::At { path, .. } => {
                    paths.names.extend(names.into_iter().map(|name| join(&path, &name)));
                }
                // Its own name is among these if it was removed before this call.
                _ => paths.is_exact &= reported.removed.contains(&handle),
            }
        }
        for (handle, file) in reported.files.iter().filter(|(_, file)| file.is_changed) {
            match self.opens_files {
                // All names that a new file ever had are in these events.
                true if file.is_created && !file.is_relinked => {}
                true => match find(handle, OFlags::empty())? {
                    HandleTarget::At { path, links: 1, .. } => {
                        paths.names.insert(path);
                    }
                    // Each of its names is known to the caller, or was reported when it was
                    // made.
                    HandleTarget::At { inode, .. } | HandleTarget::Unnamed { inode } => {
                        paths.inodes.insert(inode);
                    }
                    HandleTarget::Gone => {}
                },
                false => self.require_place(handle, file, &top)?,
            }
        }
        for handle in &reported.directories {
            if let HandleTarget::At { path, .. } = find(handle, OFlags::DIRECTORY)? {
                paths.names.insert(path.clone());
                paths.directories.insert(path);
            }
        }
        for handle in &reported.moved {
            if let HandleTarget::At { file, path, .. } = find(handle, OFlags::DIRECTORY)? {
                add_all_below(&file, path, &mut paths.directories)?;
            }
        }
        if top != path_of(&self.root)? {
            return Err(io::Error::other("the root was moved in the meantime"));
        }
        Ok(paths)
    }

    /// Fails if a file may have been changed that has not the name any more by which it was
    /// changed, and of which no other name is reported.
    fn require_place(&self, handle: &Handle, file: &FileChanges, top: &[u8]) -> io::Result<()> {
        let Some((folder, name)) = &file.changed_as else { return Ok(()) };
        if file.is_created || file.is_renamed || file.is_removed {
            return Ok(());
        }
        if let HandleTarget::At { file: folder, .. } = self.find(folder, OFlags::DIRECTORY, top)? {
            let name = Path::new(OsStr::from_bytes(name));
            if Handle::of(&folder, Some(name)).is_ok_and(|there| there == *handle) {
                return Ok(());
            }
        }
        Err(io::Error::other("a file whose name is not known"))
    }

    /// Finds the path of a handle from the root, which is at `top`.
    fn find(&self, handle: &Handle, flags: OFlags, top: &[u8]) -> io::Result<HandleTarget> {
        let file = match handle.open(&self.root, OFlags::PATH | flags) {
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => {
                return Ok(HandleTarget::Gone);
            }
            other => other?,
        };
        // In this order: what is unlinked in between is gone, and not in doubt.
        let path = path_of(&file)?;
        let stat = statx(&file, c"", AtFlags::EMPTY_PATH, MASK)?;
        if stat.stx_nlink == 0 {
            return Ok(HandleTarget::Gone);
        }
        let (inode, links) = (stat.stx_ino, stat.stx_nlink);
        if path.ends_with(b" (deleted)") {
            return match FileType::from_raw_mode(stat.stx_mode.into()) {
                FileType::Directory => Err(io::Error::other("a directory whose name is not known")),
                _ => Ok(HandleTarget::Unnamed { inode }),
            };
        }
        let top = if top == b"/" { &[][..] } else { top };
        let path = match path.strip_prefix(top) {
            Some([]) => Vec::new(),
            Some([b'/', path @ ..]) => path.to_vec(),
            // Its name is not known to the kernel, which reads it from the disk only
            // for directories.
            _ => return Err(io::Error::other("a handle that leads out of the root")),
        };
        Ok(HandleTarget::At { file, path, inode, links })
    }
}

impl Reported {
    /// Adds an event; `None` if it cannot be read.
    fn add(&mut self, event: &FanotifyEvent<'_>) -> Option<()> {
        let has = |bits| event.mask & bits != 0;
        let (mut is_any, mut place) = (false, None);
        for record in event.records() {
            let record = record?;
            let (_, handle, name) = record.file().filter(|(_, handle, _)| !handle.is_empty())?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            match record.kind {
                // The directory itself, and not a name in it.
                FAN_EVENT_INFO_TYPE_DFID_NAME if name == b"." => {
                    self.directories.insert(handle);
                }
                FAN_EVENT_INFO_TYPE_DFID => {
                    self.directories.insert(handle);
                }
                FAN_EVENT_INFO_TYPE_DFID_NAME
                | FAN_EVENT_INFO_TYPE_OLD_DFID_NAME
                | FAN_EVENT_INFO_TYPE_NEW_DFID_NAME => {
                    place = Some((handle.clone(), name.to_vec()));
                    self.names.entry(handle).or_default().insert(name.to_vec());
                }
                FAN_EVENT_INFO_TYPE_FID if has(FAN_ONDIR) => {
                    let changed = [
                        (FAN_RENAME, &mut self.moved),
                        (FAN_DELETE, &mut self.removed),
                        (FAN_ATTRIB, &mut self.directories),
                    ];
                    for (_, handles) in changed.into_iter().filter(|(bit, _)| has(*bit)) {
                        handles.insert(handle.clone());
                    }
                }
                // It comes behind the names.
                FAN_EVENT_INFO_TYPE_FID => {
                    let file = self.files.entry(handle).or_default();
                    file.is_changed |= has(CONTENT);
                    file.is_created |= has(FAN_CREATE);
                    file.is_renamed |= has(FAN_RENAME);
                    file.is_removed |= has(FAN_DELETE);
                    file.is_relinked |= has(FAN_ATTRIB) && place.is_none();
                    if has(CONTENT) {
                        file.changed_as = place.take().or(file.changed_as.take());
                    }
                }
                _ => return None,
            }
            is_any = true;
        }
        (is_any && !has(FAN_Q_OVERFLOW)).then_some(())
    }
}

/// The group; its queue without a limit where that is permitted.
fn group() -> io::Result<FanotifyGroup> {
    let unlimited = FanotifyGroup::new(FAN_REPORT_DFID_NAME_TARGET | FAN_UNLIMITED_QUEUE);
    let any = unlimited.or_else(|_| FanotifyGroup::new(FAN_REPORT_DFID_NAME_TARGET));
    any.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel does not report changes by name (fanotify needs Linux 5.17)",
        ),
        _ => refused(&error, "receive changes"),
    })
}

fn refused(error: &io::Error, what: &str) -> io::Error {
    let needs = match error.raw_os_error() {
        Some(libc::EPERM) => " (needs root)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot {what}: {error}{needs}"))
}

/// Asks where an open file is now. The kernel returns it in one piece: it does not rename
/// meanwhile. Fails where that is longer than a page.
fn path_of(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(readlinkat(rustix::fs::CWD, link, Vec::new())?.into_bytes())
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let above = if path.is_empty() { &[][..] } else { &b"/"[..] };
    [path, above, name].concat()
}

/// A directory and all below it. What is moved meanwhile is in the next answer.
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
            open.push((inner, join(&path, bytes)));
        }
        folders.insert(path);
    }
    Ok(())
}
