//! The files of a memory control group, in both versions: its page cache, bounded and given back.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::memory_cgroup::{Hierarchy, cannot, put};
use super::super::memory_info::{number, value};
use super::super::scratch_dir::release;
use crate::detached_process::begun;
use crate::scratch_dir::{Resource, random};

/// The prefix of the name of each such group.
const PREFIX: &str = "fsure-uncached-";
/// A bound is not moved for less than one part in this many of the cache: each write to it
/// makes the kernel settle its counters.
const BOUND_STEPS: u64 = 8;
/// The memory that the processes of a throttled group may have beside its cache before the next
/// look, in bytes: more than a processor fills in [`super::keeper`]'s pause of a throttled group.
const THROTTLED_HEADROOM_BYTES: u64 = 64 << 20;
/// One part in this many of the cache may wait to be written before the group is throttled.
const UNWRITTEN_SHARE: u64 = 4;
/// The pause before what is being written to storage is looked at again.
const WRITEBACK_INTERVAL: Duration = Duration::from_millis(20);
/// The time for which the cache may cease to shrink before what is not written yet is left.
const WRITEBACK_MAX: Duration = Duration::from_secs(2);
/// The number of tries to give back what is written: a page that another process uses at that
/// moment is not.
const TRIES_MAX: u32 = 5;

/// A memory control group.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    version: Version,
}

/// The version of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// With the most page cache that the group may have while it is throttled, in bytes.
    One(Option<u64>),
    /// With the bound that was set last.
    Two(u64),
}

/// Memory of a group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charged {
    /// Files in memory, whose pages can be had again from storage.
    pub(super) cache: u64,
    /// The part of the cache that is not on storage yet.
    unwritten: u64,
    /// Memory of all other kinds.
    own: u64,
}

impl Group {
    /// Makes one without processes, after the removal of those that fsure and its keeper have
    /// left behind empty; with the group that this process is in.
    pub(super) fn create(Hierarchy { home, parent, .. }: Hierarchy) -> io::Result<(Self, PathBuf)> {
        sweep(&parent);
        let folder = parent.join(format!("{PREFIX}{}-{:016x}", std::process::id(), random()));
        std::fs::create_dir(&folder)
            .map_err(|error| cannot(&error, "make a control group in", &parent))?;
        let group = Self::at(folder.clone()).inspect_err(|_| drop(std::fs::remove_dir(folder)))?;
        if let Version::One(_) = group.version {
            // At a limit that stays, processes wait for memory of their own until it is raised.
            // A kernel without this setting kills them, and the group is of use there, too.
            let _ = group.set("memory.oom_control", 1);
        }
        Ok((group, home))
    }

    /// Opens a group that exists.
    pub(super) fn at(folder: PathBuf) -> io::Result<Self> {
        let name = folder.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.starts_with(PREFIX)) {
            let why = "not a control group that fsure made";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let version = match folder.join("memory.high").exists() {
            true => Version::Two(u64::MAX),
            false if folder.join("memory.limit_in_bytes").exists() => Version::One(None),
            false => {
                let why = format!("the control group {} does not count memory", folder.display());
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        };
        Ok(Self { folder, version })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the file that takes in the process that writes to it.
    pub(super) fn entry(&self) -> io::Result<File> {
        let file = self.folder.join("cgroup.procs");
        File::options().write(true).open(&file).map_err(|error| cannot(&error, "open", &file))
    }

    /// Moves a process into it and back to `home`: an error shows that this user may not.
    pub(super) fn try_entry(&self, process: u32, home: &Path) -> io::Result<()> {
        put(&self.folder, process)?;
        put(home, process)
    }

    /// Returns the number of its processes, and of those in groups that they have made in it.
    pub(super) fn processes(&self) -> io::Result<u64> {
        processes(&self.folder)
    }

    /// Returns the file that is ready with an exceptional condition when the bound was exceeded.
    pub(super) fn events(&self) -> Option<File> {
        let Version::Two(_) = self.version else { return None };
        File::open(self.folder.join("memory.events")).ok()
    }

    /// Bounds its page cache to that many bytes, and returns what there was. Memory
    /// of the processes themselves is not bounded: they would stand still, or be killed.
    pub(super) fn bound(&mut self, cache: u64) -> io::Result<Charged> {
        let charged = self.charged()?;
        let most = charged.own.saturating_add(cache);
        match self.version {
            // The kernel keeps to it from now on: the command itself gives back cache for cache.
            Version::Two(last) if most.abs_diff(last) > cache / BOUND_STEPS => {
                self.set("memory.high", most)?;
                self.version = Version::Two(most);
            }
            // What waits to be written cannot be taken back, so that the command itself has to wait
            // until there is less of it. The kernel has it do so at a limit that stays.
            Version::One(throttled)
                if charged.cache > cache && charged.unwritten > cache / UNWRITTEN_SHARE =>
            {
                let most = throttled.map_or(charged.cache, |most| most.min(charged.cache));
                let limit = charged.own + most + THROTTLED_HEADROOM_BYTES;
                match self.set("memory.limit_in_bytes", limit) {
                    Ok(()) => self.version = Version::One(Some(most)),
                    // Its own memory has grown beyond that meanwhile.
                    Err(_) => self.lift()?,
                }
            }
            // Such a limit is in the way of a command that needs more memory itself, until this
            // process raises it. So it stays only as long as that.
            Version::One(_) if charged.cache > cache => {
                // It fails if there is too little to take, and the next time may do.
                let _ = self.set("memory.limit_in_bytes", most);
                self.lift()?;
            }
            Version::One(Some(_)) => self.lift()?,
            Version::One(None) | Version::Two(_) => {}
        }
        Ok(charged)
    }

    /// Returns true if its processes have to wait for what they have written.
    pub(super) fn is_throttled(&self) -> bool {
        matches!(self.version, Version::One(Some(_)))
    }

    /// Takes its bound away.
    pub(super) fn lift(&mut self) -> io::Result<()> {
        match &mut self.version {
            Version::One(throttled) => {
                *throttled = None;
                self.set("memory.limit_in_bytes", -1)
            }
            Version::Two(last) => {
                *last = u64::MAX;
                self.set("memory.high", "max")
            }
        }
    }

    /// Returns how often groups around it were at their limits, so that the kernel may have taken
    /// memory from any process in them.
    pub(super) fn outer_limit_hits(&self) -> u64 {
        let hits = |folder: &Path| match self.version {
            Version::One(_) => number(folder.join("memory.failcnt")),
            Version::Two(_) => {
                let table = std::fs::read_to_string(folder.join("memory.events.local")).ok()?;
                Some(value(&table, "high ")? + value(&table, "max ")?)
            }
        };
        self.folder.ancestors().skip(1).map_while(hits).sum()
    }

    /// Gives back the page cache when there are no processes left, and returns the bytes that
    /// stay. What is not on storage yet is waited for as long as it becomes less.
    pub(super) fn give_back(&mut self) -> io::Result<u64> {
        let (mut least, mut progress, mut tries) = (u64::MAX, Instant::now(), 0);
        loop {
            match self.version {
                Version::One(_) => drop(self.set("memory.force_empty", 0)),
                Version::Two(_) => self.set("memory.high", 0)?,
            }
            let charged = self.charged()?;
            if charged.cache < least {
                (least, progress) = (charged.cache, Instant::now());
            }
            tries += 1;
            let is_stuck = match charged.unwritten {
                0 => tries >= TRIES_MAX,
                _ => progress.elapsed() > WRITEBACK_MAX,
            };
            if charged.cache == 0 || is_stuck {
                return Ok(charged.cache);
            }
            std::thread::sleep(WRITEBACK_INTERVAL);
        }
    }

    /// Returns the most memory that it had.
    pub(super) fn peak(&self) -> Option<u64> {
        number(self.folder.join(match self.version {
            Version::One(_) => "memory.max_usage_in_bytes",
            Version::Two(_) => "memory.peak",
        }))
    }

    /// Returns the time in which some process waited for memory (PSI).
    pub(super) fn stalled(&self) -> Option<Duration> {
        stalled(&std::fs::read_to_string(self.folder.join("memory.pressure")).ok()?)
    }

    /// Removes it with those that the command has made in it, if it exists. It fails while there
    /// are processes in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        // What cannot be removed keeps the group itself from it, which is reported.
        let _ = remove_inner(&self.folder);
        release(&Resource::Group(self.folder.clone()))
    }

    pub(super) fn charged(&self) -> io::Result<Charged> {
        let file = self.folder.join("memory.stat");
        let table =
            std::fs::read_to_string(&file).map_err(|error| cannot(&error, "read", &file))?;
        let (current, prefix, unwritten) = match self.version {
            Version::One(_) => ("memory.usage_in_bytes", "total_", ["dirty", "writeback"]),
            Version::Two(_) => ("memory.current", "", ["file_dirty", "file_writeback"]),
        };
        let sum = |names: &[&str]| -> u64 {
            names.iter().filter_map(|name| value(&table, &format!("{prefix}{name} "))).sum()
        };
        let file = self.folder.join(current);
        let no_number = || cannot(&io::ErrorKind::InvalidData.into(), "read", &file);
        let all = number(&file).ok_or_else(no_number)?;
        let cache = sum(&["inactive_file", "active_file"]);
        // Names and inodes that are remembered of files are cache as well. Version 1 has no
        // figure for them.
        let own = all.saturating_sub(cache).saturating_sub(sum(&["slab_reclaimable"]));
        Ok(Charged { cache, unwritten: sum(&unwritten), own })
    }

    fn set(&self, name: &str, value: impl ToString) -> io::Result<()> {
        let file = self.folder.join(name);
        std::fs::write(&file, value.to_string()).map_err(|error| cannot(&error, "set", &file))
    }
}

/// Removes the groups in a group, the innermost first.
fn remove_inner(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_inner(&entry.path())?;
            std::fs::remove_dir(entry.path())?;
        }
    }
    Ok(())
}

fn processes(folder: &Path) -> io::Result<u64> {
    let file = folder.join("cgroup.procs");
    let table = std::fs::read_to_string(&file).map_err(|error| cannot(&error, "read", &file))?;
    let mut count = table.lines().count() as u64;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            count += processes(&entry.path())?;
        }
    }
    Ok(count)
}

/// Removes the groups whose fsure and keeper were both killed. Those with processes in them
/// stay: the system does not remove them.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let Some(owner) = owner.and_then(|(process, _)| process.parse().ok()) else { continue };
        if begun(owner).is_none()
            && let Ok(mut group) = Group::at(entry.path())
            && group.processes().is_ok_and(|count| count == 0)
        {
            let _ = group.give_back();
            let _ = group.remove();
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, in microseconds.
fn stalled(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    Some(Duration::from_micros(line.rsplit_once("total=")?.1.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let table = "anon 1\ninactive_file 8192\nactive_file 4096\n";
        assert_eq!(value(table, "active_file "), Some(4_096));
        assert_eq!(value(table, "shmem "), None);
        let text = "some avg10=1.50 avg60=0.20 avg300=0.00 total=1500\nfull avg10=0.25 total=9\n";
        assert_eq!(stalled(text), Some(Duration::from_micros(1_500)));
        assert_eq!(stalled(""), None);
    }

    #[test]
    fn groups_of_other_programs_are_left_alone() {
        for folder in ["/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/fsure-x", "/"] {
            let error = Group::at(folder.into()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{folder}");
        }
    }
}
