//! The files of a run, and the writes to them. Each write is reported to the witness
//! twice: when it begins, and, once its way has returned, as durable.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{self, Names, Writer};
use fsure_os::lock::{self, Attempt, Lock};
use fsure_os::{path as os_path, user_file};

use super::protocol_records::{self, LogRecord, RunId, Write};
use super::test_plan::{Pattern, Way};
use super::witness_link::Link;
use super::{BLOCK, Stamp};
use fsure_core::Random;

/// Blocks of a file that is written over.
const OVERWRITTEN: u64 = 256;
/// Blocks of a file that grows.
const GROWN: u64 = 1024;
/// Bytes of the largest file.
pub(super) const LARGEST: u64 = GROWN * BLOCK as u64;
/// Files that have grown, at most, and files of one block; half of them go.
const GROWN_FILES: usize = 8;
const CREATED_FILES: usize = 512;

/// Prefix of the name of a run's folder.
const PREFIX: &str = "fsure-powercut-";
/// File that marks a run as checked.
const CHECKED: &str = "checked";

/// File that marks a run as ended by its writer, if the witness could not be informed.
const ENDED: &str = "ended";
/// File that a writer holds locked.
const WRITING: &str = "writing";

/// Returns the folder of a run.
pub(super) fn folder_of(folder: &Path, run: &RunId) -> PathBuf {
    folder_named(folder, &protocol_records::run_name(run))
}

/// Returns the name of a file.
pub(super) fn name_of(file: u32) -> String {
    format!("{file:08}")
}

/// Returns the number of a file by its name; `None` if it is not such a name.
pub(super) fn file_of(name: &[u8]) -> Option<u32> {
    let file = std::str::from_utf8(name).ok()?.parse().ok()?;
    (name_of(file).as_bytes() == name).then_some(file)
}

/// Marks a run as checked, so that the next may take its place. If the mark cannot be
/// made, the next run only reports this one as unchecked.
pub(super) fn mark_checked(run_folder: &Path) {
    let _ = user_file::create_new(&run_folder.join(CHECKED));
}

/// Marks a run as ended without a cut. If the mark cannot be made, only the user knows
/// it, as after any other stop.
pub(super) fn mark_ended(run_folder: &Path) {
    let _ = user_file::create_new(&run_folder.join(ENDED));
}

/// Returns true if the writer has marked the run as ended.
pub(super) fn is_ended(run_folder: &Path) -> bool {
    os_path::exists(&run_folder.join(ENDED))
}

/// Returns true if a writer of this machine is still at work on a run: then nothing was
/// cut, and the files change while they are read.
pub(super) fn is_being_written(run_folder: &Path) -> bool {
    let file = run_folder.join(WRITING);
    os_path::exists(&file) && matches!(lock::try_lock(&file), Ok(Attempt::HeldBy(_)))
}

/// Entries of a folder under names such as those of runs.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Runs of this user, by name.
    pub(super) runs: Vec<String>,
    /// Entries that are not runs of this user: another user or program has put them
    /// there, or they were set aside.
    pub(super) others: Vec<PathBuf>,
}

/// Lists the earlier runs in a folder.
pub(super) fn earlier(folder: &Path) -> io::Result<Earlier> {
    let mut earlier = Earlier::default();
    for name in user_file::names(folder)? {
        let Some(rest) = name.strip_prefix(PREFIX.as_bytes()) else { continue };
        let run =
            std::str::from_utf8(rest).ok().filter(|run| protocol_records::run_of(run).is_some());
        let path = folder.join(os_path::from_bytes(&name));
        match run {
            Some(run) if user_file::is_own_folder(&path) => earlier.runs.push(run.to_owned()),
            _ => earlier.others.push(path),
        }
    }
    Ok(earlier)
}

/// Returns the folder of a run by its name.
pub(super) fn folder_named(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{PREFIX}{run}"))
}

/// Returns true if the run was checked.
pub(super) fn is_checked(run_folder: &Path) -> bool {
    os_path::exists(&run_folder.join(CHECKED))
}

/// Removes a run's folder with its files. Other entries stay, and then the folder does,
/// too.
pub(super) fn remove(run_folder: &Path) -> io::Result<()> {
    let is_mark = |name: &[u8]| name == CHECKED.as_bytes();
    // The mark goes last, so that an interrupted removal can be repeated.
    user_file::remove_files(run_folder, &is_own)?;
    if !user_file::names(run_folder)?.iter().all(|name| is_mark(name)) {
        return Ok(());
    }
    user_file::remove_files(run_folder, &is_mark)?;
    os_path::remove_empty_folder(run_folder)
}

/// Returns true if a name in a run's folder is one that a writer gives, except for the
/// mark.
fn is_own(name: &[u8]) -> bool {
    let file = name.strip_suffix(b".new").unwrap_or(name);
    file_of(file).is_some() || [WRITING.as_bytes(), ENDED.as_bytes()].contains(&name)
}

/// The files of a run.
pub(super) struct Files<'a> {
    run: RunId,
    folder: PathBuf,
    /// `None` where the system has no flush of a folder.
    names: Option<Names>,
    link: &'a Link<'a>,
    block: Buffer,
    lanes: Vec<Lane>,
    grown: VecDeque<u32>,
    created: VecDeque<u32>,
    next_file: u32,
    /// Number of the last write.
    number: u64,
    /// Number of writes whose flush has returned.
    pub(super) acknowledged: u64,
    /// `None` where the file system has no locks.
    _lock: Option<Lock>,
}

/// The files of one way.
struct Lane {
    way: Way,
    overwritten: (u32, Writer),
    growing: Option<(u32, Writer, u64)>,
    renamed: u32,
}

impl<'a> Files<'a> {
    /// Makes the folder of a run in another folder, durably.
    pub(super) fn create(folder: &Path, run: RunId, link: &'a Link<'a>) -> io::Result<Self> {
        let path = folder_of(folder, &run);
        os_path::make_folder(&path)?;
        let lock = match lock::try_lock(&path.join(WRITING)) {
            Ok(Attempt::Locked(lock)) => Some(lock),
            _ => None,
        };
        let flush = |folder: &Path| {
            let names = Names::open(folder)?;
            names.flush().map(|()| names)
        };
        let names = match flush(folder).and_then(|_| flush(&path)) {
            Ok(names) => Some(names),
            Err(error) if durable_write::is_refusal(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            run,
            folder: path,
            names,
            link,
            block: Buffer::new(2 * BLOCK)?,
            lanes: Vec::new(),
            grown: VecDeque::new(),
            created: VecDeque::new(),
            next_file: 0,
            number: 0,
            acknowledged: 0,
            _lock: lock,
        })
    }

    /// Returns their folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true if names can be made durable here.
    pub(super) fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Makes what a way needs. False if the way is not available here.
    pub(super) fn prepare(&mut self, way: Way) -> io::Result<bool> {
        let file = self.take_file();
        match self.blank(file, way) {
            Ok(writer) => {
                let renamed = self.take_file();
                let overwritten = (file, writer);
                self.lanes.push(Lane { way, overwritten, growing: None, renamed });
                Ok(true)
            }
            Err(error) if durable_write::is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of ways that were prepared.
    pub(super) fn ways(&self) -> usize {
        self.lanes.len()
    }

    fn blank(&self, file: u32, way: Way) -> io::Result<Writer> {
        let writer = Writer::create(&self.path(file), way.method)?;
        // The second block of the buffer is never written to.
        let blank = &self.block[BLOCK..2 * BLOCK];
        (0..OVERWRITTEN).try_for_each(|block| writer.write(blank, block * BLOCK as u64))?;
        writer.commit(blank, 0)?;
        writer.flush_to_medium()?;
        self.flush_names()?;
        Ok(writer)
    }

    fn path(&self, file: u32) -> PathBuf {
        self.folder.join(name_of(file))
    }

    fn take_file(&mut self) -> u32 {
        self.next_file += 1;
        self.next_file
    }

    fn flush_names(&self) -> io::Result<()> {
        self.names.as_ref().map_or(Ok(()), Names::flush)
    }

    /// Makes one write by a way, whose index is that among the prepared ones.
    pub(super) fn write(
        &mut self,
        lane: usize,
        pattern: Pattern,
        random: &mut Random,
    ) -> io::Result<()> {
        match pattern {
            Pattern::Overwrite => {
                let offset = random.below(OVERWRITTEN) * BLOCK as u64;
                let write = self.begin(lane, self.lanes[lane].overwritten.0, offset);
                self.lanes[lane].overwritten.1.commit(&self.block[..BLOCK], offset)?;
                self.acknowledge(write);
            }
            Pattern::Append => self.append(lane)?,
            Pattern::Create => {
                let file = self.take_file();
                let write = self.begin(lane, file, 0);
                self.put(lane, &self.path(file))?;
                self.flush_names()?;
                self.acknowledge(write);
                self.created.push_back(file);
            }
            Pattern::Rename => {
                let file = self.lanes[lane].renamed;
                let write = self.begin(lane, file, 0);
                let (path, new) = (self.path(file), self.folder.join(name_of(file) + ".new"));
                self.put(lane, &new)?;
                durable_write::rename(&new, &path)?;
                self.flush_names()?;
                self.acknowledge(write);
            }
        }
        Ok(())
    }

    fn append(&mut self, lane: usize) -> io::Result<()> {
        let is_full = self.lanes[lane].growing.as_ref().is_none_or(|growing| growing.2 == GROWN);
        if is_full {
            let file = self.take_file();
            let writer = Writer::create(&self.path(file), self.lanes[lane].way.method)?;
            self.flush_names()?;
            let full = self.lanes[lane].growing.replace((file, writer, 0));
            self.grown.extend(full.map(|full| full.0));
        }
        let growing = self.lanes[lane].growing.as_ref();
        let (file, offset) =
            growing.map_or((0, 0), |growing| (growing.0, growing.2 * BLOCK as u64));
        let write = self.begin(lane, file, offset);
        if let Some((_, writer, blocks)) = &mut self.lanes[lane].growing {
            writer.commit(&self.block[..BLOCK], offset)?;
            *blocks += 1;
        }
        self.acknowledge(write);
        Ok(())
    }

    /// Creates a file of one block.
    fn put(&self, lane: usize, path: &Path) -> io::Result<()> {
        Writer::create(path, self.lanes[lane].way.method)?.commit(&self.block[..BLOCK], 0)
    }

    /// Fills the block, and reports to the witness that it is going to be written.
    fn begin(&mut self, lane: usize, file: u32, offset: u64) -> Write {
        self.number += 1;
        let (number, method) = (self.number, self.lanes[lane].way.number);
        Stamp { run: self.run, file, method, offset, number }.fill(&mut self.block[..BLOCK]);
        let write = Write { number, file, method, offset };
        self.link.append(LogRecord::Begin(write));
        write
    }

    fn acknowledge(&mut self, write: Write) {
        self.acknowledged += 1;
        self.link.append(LogRecord::Ack(write.number));
    }

    /// Selects files that there are too many of, and reports them to the witness as
    /// forgotten; once that is recorded, they are no longer owed.
    pub(super) fn forget(&mut self) -> Vec<u32> {
        let mut forgotten = Vec::new();
        for (files, most) in [(&mut self.grown, GROWN_FILES), (&mut self.created, CREATED_FILES)] {
            if files.len() >= most {
                forgotten.extend(files.drain(..most / 2));
            }
        }
        forgotten.iter().for_each(|file| self.link.append(LogRecord::Forget(*file)));
        forgotten
    }

    /// Removes files that are forgotten.
    pub(super) fn drop(&self, files: &[u32]) -> io::Result<()> {
        files.iter().try_for_each(|file| durable_write::remove(&self.path(*file)))
    }
}
