//! Reads content that may be the recorded one, from all possible places: twice before
//! a place is passed over, and never believed without the record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fsure_os::buffer::Buffer;
use fsure_os::opener::Opener;
use fsure_os::read::OpenFile;
use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use super::parity_rebuild::Rebuilder;
use super::progress::HealProgress;
use super::proof::RecordProof;
use super::replica::{Replica, is_same};
use crate::catalog::Row;
use crate::model::{HealSource, ScanMonitor};
use fsure_core::block_hash::{BLOCK, SequentialDigests};
use fsure_core::{Algorithm, AlgorithmSet, Digests, Error, ExitCode, RelPath, Result};

/// Reads from one place before it is passed over.
const READS_PER_SOURCE_MAX: usize = 2;

/// A reason why something was not healed.
#[derive(Debug)]
pub(super) enum HealFailure {
    /// For a reason of its own; the next one may fare better.
    Unhealed(String),
    /// The run is to end.
    Stopped(ExitCode),
    /// The run cannot go on.
    Fatal(Error),
}

impl From<Error> for HealFailure {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// The result of what is done about one finding.
pub(super) type HealAttempt<T> = std::result::Result<T, HealFailure>;

/// Turns a system error into a failure that names what failed and concerns only this
/// finding.
pub(super) trait OrUnhealed<T> {
    fn or_unhealed(self, doing: &str) -> HealAttempt<T>;
}

impl<T> OrUnhealed<T> for io::Result<T> {
    fn or_unhealed(self, doing: &str) -> HealAttempt<T> {
        self.map_err(|error| HealFailure::Unhealed(format!("{doing}: {error}")))
    }
}

/// A file that may have the recorded content, or some of it.
pub(super) struct SourceFile {
    pub(super) origin: HealSource,
    bytes: Bytes,
    pub(super) stat: Stat,
    /// Its root and path, to be taken for a model of owner and attributes; `None` if
    /// it is on no disk.
    pub(super) place: Option<(Arc<Root>, Vec<u8>)>,
}

enum Bytes {
    File(OpenFile),
    Rebuilt(RefCell<Rebuilder>),
}

impl SourceFile {
    /// Returns the alignment of reads, in bytes.
    pub(super) fn grain(&self) -> u64 {
        match &self.bytes {
            Bytes::File(source) => source.grain(),
            Bytes::Rebuilt(_) => 1,
        }
    }

    pub(super) fn open(origin: HealSource, opener: &Opener, path: &[u8]) -> io::Result<Self> {
        let (source, stat) = opener.open(path, false)?;
        let place = Some((Arc::clone(opener.root()), path.to_owned()));
        Ok(Self { origin, bytes: Bytes::File(source), stat, place })
    }

    /// Opens a replica's file for this path, unless that is `damaged` itself.
    pub(super) fn of_replica(
        replica: &Replica,
        path: &RelPath,
        damaged: Option<&Stat>,
    ) -> io::Result<Self> {
        let path = replica.path_of(path).ok_or(io::ErrorKind::NotFound)?;
        let found = Self::open(replica.origin.clone(), replica.opener(), &path)?;
        if damaged.is_some_and(|damaged| is_same(damaged, &found.stat)) {
            return Err(io::Error::other("it is the damaged file itself, under another name"));
        }
        Ok(found)
    }

    /// A candidate that is rebuilt from the recovery data of a recorded file. It is
    /// on no disk.
    pub(super) fn rebuilt(rebuilder: Rebuilder, row: &Row) -> Self {
        let entry = &row.record.entry;
        let stat = Stat {
            kind: Kind::File,
            size: entry.size,
            mtime_ns: entry.mtime_ns,
            ctime_ns: 0,
            birth_ns: None,
            inode: 0,
            device: 0,
            links: 1,
            allocated: entry.size,
            place: None,
        };
        let bytes = Bytes::Rebuilt(RefCell::new(rebuilder));
        Self { origin: HealSource::Parity, bytes, stat, place: None }
    }
}

/// The first error of each origin.
#[derive(Default)]
pub(super) struct SourceErrors(BTreeMap<HealSource, String>);

impl SourceErrors {
    pub(super) fn add(&mut self, origin: &HealSource, what: impl ToString) {
        self.0.entry(origin.clone()).or_insert_with(|| what.to_string());
    }

    /// Returns all errors as text for a person.
    pub(super) fn summary(&self) -> String {
        let reported = |(origin, what): (&HealSource, &String)| match origin {
            HealSource::Itself => format!("the file itself: {what}"),
            HealSource::Replica(path) => format!("{}: {what}", fsure_core::escape(path)),
            HealSource::Parity => format!("recovery data: {what}"),
            HealSource::Record => what.clone(),
        };
        self.0.iter().map(reported).collect::<Vec<_>>().join("; ")
    }
}

/// A buffer to read into, and the monitor that may stop it.
pub(super) struct SourceReader<'a> {
    buffer: Buffer,
    monitor: &'a dyn ScanMonitor,
    pub(super) gauge: HealProgress<'a>,
}

impl<'a> SourceReader<'a> {
    pub(super) fn new(monitor: &'a dyn ScanMonitor) -> io::Result<Self> {
        Ok(Self {
            buffer: Buffer::new(BLOCK as usize)?,
            monitor,
            gauge: HealProgress::new(monitor),
        })
    }

    pub(super) fn go_on(&self) -> HealAttempt<()> {
        self.monitor.stop_requested().map_or(Ok(()), |code| Err(HealFailure::Stopped(code)))
    }

    /// Reads up to a block; less than `length` where the file ends.
    pub(super) fn read(
        &mut self,
        source: &SourceFile,
        offset: u64,
        length: u64,
    ) -> io::Result<&[u8]> {
        let length = length as usize;
        let bytes = match &source.bytes {
            Bytes::File(file) => file.read_at(&mut self.buffer, offset, length)?.bytes,
            Bytes::Rebuilt(one) => one.borrow_mut().read(offset, &mut self.buffer[..length])?,
        };
        self.gauge.read(bytes as u64);
        Ok(&self.buffer[..bytes])
    }

    /// Returns what was last read, up to `length` bytes.
    pub(super) fn last(&self, length: u64) -> &[u8] {
        &self.buffer[..length as usize]
    }

    /// Returns true if a candidate has a block as it is recorded. The block is then
    /// in the buffer.
    pub(super) fn has_block(
        &mut self,
        recorded: &RecordProof,
        candidate: &SourceFile,
        block: u64,
        troubles: &mut SourceErrors,
    ) -> bool {
        let range = recorded.range(block, recorded.row.record.entry.size);
        let length = range.end - range.start;
        let mut trouble = String::new();
        for _ in 0..READS_PER_SOURCE_MAX {
            match self.read(candidate, range.start, length) {
                Ok(content) if (content.len() as u64) < length => trouble = "too short".to_owned(),
                Ok(content) if recorded.proves_block(block, content) => return true,
                Ok(_) => trouble = "not the recorded content".to_owned(),
                Err(error) => trouble = error.to_string(),
            }
        }
        troubles.add(&candidate.origin, trouble);
        false
    }

    /// Returns true if a candidate has the recorded content as a whole, at its
    /// beginning.
    pub(super) fn has_whole(
        &mut self,
        recorded: &RecordProof,
        candidate: &SourceFile,
        troubles: &mut SourceErrors,
    ) -> HealAttempt<bool> {
        let size = recorded.size().unwrap_or(candidate.stat.size);
        let wanted = recorded.row.record.digests.algorithms();
        let mut trouble = "not the recorded content".to_owned();
        for _ in 0..READS_PER_SOURCE_MAX {
            match self.digests(candidate, size, wanted, &mut |_, _| Ok(()))? {
                Ok(Some(digests)) if recorded.proves(&digests) => return Ok(true),
                Ok(Some(_)) => {}
                Ok(None) => trouble = "too short".to_owned(),
                Err(error) => trouble = error.to_string(),
            }
        }
        troubles.add(&candidate.origin, trouble);
        Ok(false)
    }

    /// The digests of the first `size` bytes, which `each` gets in order; `None` if
    /// there are not so many.
    pub(super) fn digests(
        &mut self,
        candidate: &SourceFile,
        size: u64,
        wanted: AlgorithmSet,
        each: &mut dyn FnMut(u64, &[u8]) -> HealAttempt<()>,
    ) -> HealAttempt<io::Result<Option<Digests>>> {
        let mut blake3 = wanted.contains(Algorithm::Blake3).then(blake3::Hasher::new);
        let mut others = SequentialDigests::new(wanted);
        for offset in (0..size).step_by(BLOCK as usize) {
            self.go_on()?;
            let length = BLOCK.min(size - offset);
            match self.read(candidate, offset, length) {
                Ok(content) if (content.len() as u64) < length => return Ok(Ok(None)),
                Ok(content) => {
                    if let Some(blake3) = &mut blake3 {
                        blake3.update(content);
                    }
                    if let Some(others) = &mut others {
                        others.update(content);
                    }
                    each(offset, content)?;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        let mut digests = Digests::default();
        if let Some(blake3) = blake3 {
            digests.insert(Algorithm::Blake3, blake3.finalize().as_bytes());
        }
        if let Some(others) = others {
            others.finish(&mut digests);
        }
        Ok(Ok(Some(digests)))
    }
}

/// Returns a reader; fails without memory, since nothing can be done then.
pub(super) fn reader(monitor: &dyn ScanMonitor) -> Result<SourceReader<'_>> {
    let no_memory = |error| Error::Internal(format!("not enough memory to read: {error}"));
    SourceReader::new(monitor).map_err(no_memory)
}
