//! The events of fanotify, which are used if eBPF is not available.
//!
//! Events say in which folder something was read or written, and who did it.
//! The kernel merges those that are alike and still wait, so their number is the
//! least that can have happened. It is what remains: as root for whole file
//! systems, without for folders that are marked one by one.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, OFlags};

use super::super::fanotify::{FanotifyEvent, FanotifyGroup, Handle};
use super::super::mountinfo;
use super::Folders;
use crate::io_trace::{IoCounts, ProcessIo, TraceReport, TracedFolder};

const EVENTS: u64 = libc::FAN_ACCESS | libc::FAN_MODIFY;

/// File systems that are not storage.
const PSEUDO: [&str; 18] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// The kernel's id of a folder: the number of its file system, and a handle.
type Id = (u64, Handle);

/// Operations and processes reported for a folder.
#[derive(Debug, Default)]
struct FolderReport {
    counts: IoCounts,
    processes: BTreeSet<ProcessIo>,
}

/// A group of marks, and what they have reported so far.
#[derive(Debug)]
pub(super) struct Notify {
    group: FanotifyGroup,
    marked: Marked,
    reported: HashMap<Id, FolderReport>,
    overflows: u64,
    blind: Vec<String>,
    /// True if all folders were requested.
    is_of_all: bool,
}

/// The marked objects, by which a folder's path is found.
#[derive(Debug)]
enum Marked {
    /// File systems, by their numbers: any folder of theirs is opened by its
    /// handle.
    FileSystems(HashMap<u64, OwnedFd>),
    /// Folders, each with its handle.
    Folders(HashMap<Id, PathBuf>),
}

impl Notify {
    pub(super) fn begin(below: &[PathBuf]) -> io::Result<Self> {
        let mut blind: Vec<_> = [
            "how many bytes, and how long: fanotify reports neither",
            "fsync",
            "stores through mappings",
            "io_uring and libaio, for the most part",
            "how often: the kernel merges equal events, so the counts are minimums",
        ]
        .map(str::to_owned)
        .to_vec();
        let (reported, is_of_all) = (HashMap::new(), below.is_empty());
        if !is_of_all {
            blind.push("folders that were deleted in the meantime".to_owned());
        }
        match FanotifyGroup::new(libc::FAN_REPORT_DFID_NAME | libc::FAN_UNLIMITED_QUEUE) {
            Ok(group) => {
                let marked = Marked::FileSystems(mark_file_systems(&group, below, &mut blind)?);
                Ok(Self { group, marked, reported, overflows: 0, blind, is_of_all })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let group = FanotifyGroup::new(libc::FAN_REPORT_DFID_NAME)?;
                let marked = Marked::Folders(mark_folders(&group, below, &mut blind)?);
                blind.push("which process does it".to_owned());
                blind.push("folders that were made in the meantime".to_owned());
                Ok(Self { group, marked, reported, overflows: 0, blind, is_of_all })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn watch(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.group.wait(left)?;
            self.take()?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let own = std::process::id();
        self.group.take(|event| {
            let Some(event) = event else { return };
            self.overflows += u64::from(event.mask & libc::FAN_Q_OVERFLOW != 0);
            if event.process != own
                && let Some(id) = folder_of(&event)
            {
                self.reported.entry(id).or_default().add(&event);
            }
        })
    }

    pub(super) fn end(mut self) -> io::Result<TraceReport> {
        self.take()?;
        let mut folders = Folders::default();
        for (id, reported) in self.reported {
            let place = self.marked.place(&id);
            // Without a path the program cannot know any more where the folder was.
            if self.is_of_all || matches!(place, TracedFolder::At(_)) {
                folders.add(place, &reported.counts, reported.processes);
            }
        }
        let lost = match self.overflows {
            0 => vec![],
            count => vec![("events, in overflows of the kernel's queue", count)],
        };
        let (folders, blind) = (folders.all(), self.blind);
        let programs = Vec::new();
        Ok(TraceReport { folders, programs, metadata: None, blind, lost, processes_left: 0 })
    }
}

impl Marked {
    fn place(&self, id: &Id) -> TracedFolder {
        let unseen = TracedFolder::Unseen { device: (0, 0), ino: 0 };
        match self {
            Self::FileSystems(all) => all.get(&id.0).map_or(unseen, |root| place_by(root, &id.1)),
            Self::Folders(all) => match all.get(id) {
                Some(path) if id_of(path).is_ok_and(|now| now == *id) => {
                    TracedFolder::At(path.clone())
                }
                _ => unseen,
            },
        }
    }
}

/// The folder of a handle in the file system of `root`.
fn place_by(root: &OwnedFd, handle: &Handle) -> TracedFolder {
    let device = |dev| (rustix::fs::major(dev), rustix::fs::minor(dev));
    let root_dev = rustix::fs::fstat(root).map_or(0, |stat| stat.st_dev);
    let gone = TracedFolder::Unseen { device: device(root_dev), ino: 0 };
    let Ok(folder) = handle.open(root, OFlags::PATH) else { return gone };
    let Ok(stat) = rustix::fs::fstat(&folder) else { return gone };
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let leads_there = |path: &PathBuf| {
        std::fs::symlink_metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (stat.st_dev, stat.st_ino))
    };
    match path {
        Ok(path) if leads_there(&path) => TracedFolder::At(path),
        _ => TracedFolder::Unseen { device: device(stat.st_dev), ino: stat.st_ino },
    }
}

impl FolderReport {
    fn add(&mut self, event: &FanotifyEvent<'_>) {
        self.counts.reads += u64::from(event.mask & libc::FAN_ACCESS != 0);
        self.counts.writes += u64::from(event.mask & libc::FAN_MODIFY != 0);
        let is_known = self.processes.iter().any(|process| process.id == event.process);
        if event.process != 0 && !is_known {
            let file = format!("/proc/{}/comm", event.process);
            let name = std::fs::read_to_string(file).unwrap_or_default();
            let name = name.trim_end().to_owned();
            self.processes.insert(ProcessIo { name, id: event.process });
        }
    }
}

/// The folder, among the records of an event.
fn folder_of(event: &FanotifyEvent<'_>) -> Option<Id> {
    let kinds = [libc::FAN_EVENT_INFO_TYPE_DFID_NAME, libc::FAN_EVENT_INFO_TYPE_DFID];
    let mut records = event.records().flatten();
    let (system, handle, _) = records.find(|record| kinds.contains(&record.kind))?.file()?;
    Some((system, handle))
}

/// Marks each file system that is in or below one of the folders, once.
fn mark_file_systems(
    group: &FanotifyGroup,
    below: &[PathBuf],
    blind: &mut Vec<String>,
) -> io::Result<HashMap<u64, OwnedFd>> {
    let mut points = below.to_vec();
    for mount in mountinfo::all()? {
        let point = PathBuf::from(&mount.point);
        let is_asked = below.is_empty() || below.iter().any(|folder| point.starts_with(folder));
        if is_asked && !PSEUDO.contains(&&*mount.kind) {
            points.push(point);
        }
    }
    let mut marked = HashMap::new();
    for point in points {
        // A mount point that is hidden, or that this process cannot enter.
        let Ok(system) = system_of(&point) else { continue };
        if marked.contains_key(&system) {
            continue;
        }
        match group.mark(libc::FAN_MARK_FILESYSTEM, EVENTS, CWD, Some(&point)) {
            Ok(()) => {
                let root = std::fs::File::open(&point)?;
                marked.insert(system, root.into());
            }
            Err(error) => blind.push(format!("the file system of {}: {error}", point.display())),
        }
    }
    if marked.is_empty() {
        let why = format!("no file system can be watched: {}", blind.join("; "));
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(marked)
}

/// Marks each folder that is in or below one of the folders.
fn mark_folders(
    group: &FanotifyGroup,
    below: &[PathBuf],
    blind: &mut Vec<String>,
) -> io::Result<HashMap<Id, PathBuf>> {
    if below.is_empty() {
        let why = "without root only folders that are named can be watched";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let (mut marked, mut refused, mut first) = (HashMap::new(), 0_u64, None);
    let mut left = below.to_vec();
    while let Some(folder) = left.pop() {
        let flags = libc::FAN_MARK_ONLYDIR | libc::FAN_MARK_DONT_FOLLOW;
        let id = group
            .mark(flags, EVENTS | libc::FAN_EVENT_ON_CHILD, CWD, Some(&folder))
            .and_then(|()| id_of(&folder));
        match id {
            Ok(id) => {
                marked.insert(id, folder.clone());
            }
            Err(error) => {
                refused += 1;
                first.get_or_insert(format!("{}: {error}", folder.display()));
            }
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
    }
    if let Some(first) = first {
        if marked.is_empty() {
            return Err(io::Error::other(format!("no folder can be watched: {first}")));
        }
        blind.push(format!("{refused} folders that could not be watched, such as {first}"));
    }
    Ok(marked)
}

fn id_of(folder: &Path) -> io::Result<Id> {
    let handle = Handle::of(CWD, Some(folder))?;
    Ok((system_of(folder)?, handle))
}

/// The number that records have for the file system of a path.
fn system_of(path: &Path) -> io::Result<u64> {
    Ok(rustix::fs::statvfs(path)?.f_fsid)
}
