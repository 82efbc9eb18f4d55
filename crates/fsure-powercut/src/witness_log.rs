//! The witness's memory of a run as a file that only grows: what was confirmed
//! to the writer must be there after a power cut of the witness itself.

use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use fsure_os::append_file::{self, AppendFile};
use fsure_os::user_file;

use super::protocol_records::{self, AckedWrites, LogRecord, RunDescription, RunId};
use fsure_core::Clock;

const MAGIC: [u8; 8] = *b"fsurelog";
const VERSION: u32 = 1;
const HEAD: usize = 28;
/// Bytes of an entry before its body: length, checksum, time, type.
const ENTRY: usize = 17;
/// An entry holds a frame, or JSON of a few lines.
const BODY_MAX: usize = 1 << 16;

const OPENED: u8 = 1;
const RECORDS: u8 = 2;
const CONTACT: u8 = 3;
const AWAKE: u8 = 4;

/// The file of a run.
pub(super) fn path_of(folder: &Path, run: &RunId) -> PathBuf {
    folder.join(format!("{}.log", protocol_records::run_name(run)))
}

/// A run whose writer is being listened to.
#[derive(Debug)]
pub(super) struct Log {
    file: AppendFile,
    pub(super) memory: AckedWrites,
    /// Time of the run at `began`, in milliseconds.
    base_ms: u64,
    began: Instant,
}

impl Log {
    /// Opens the log of a run; creates it if there is none.
    pub(super) fn open(
        folder: &Path,
        run: &RunId,
        opened: &RunDescription,
        clock: &Clock,
    ) -> io::Result<Self> {
        let path = path_of(folder, run);
        let mut file = AppendFile::open(&path)?;
        let wall_ms = wall_ms(clock);
        // A cut of the witness may have left a name, or half a beginning.
        let mut start = Vec::new();
        file.content()?.take((HEAD + ENTRY + BODY_MAX) as u64).read_to_end(&mut start)?;
        if is_torn(&start) {
            file.shorten(0)?;
            let mut log =
                Self { file, memory: AckedWrites::default(), base_ms: 0, began: Instant::now() };
            let json = serde_json::to_vec(&(opened, wall_ms)).expect("plain text");
            log.file.append(&[&MAGIC[..], &VERSION.to_le_bytes(), run].concat())?;
            log.append(0, OPENED, &json)?;
            log.file.sync()?;
            return Ok(log);
        }
        let read = Read::of(run, file.content()?)?;
        file.shorten(read.whole)?;
        let base_ms = read.memory.last_contact_ms.max(read.ms_at(wall_ms));
        let mut log = Self { file, memory: read.memory, base_ms, began: Instant::now() };
        log.append(base_ms, AWAKE, &wall_ms.to_le_bytes())?;
        // The next number also confirms what an earlier witness that was killed may have
        // written and not synced.
        log.file.sync()?;
        Ok(log)
    }

    /// Appends records, of which the first has this number. Each is complete.
    pub(super) fn records(
        &mut self,
        first: u64,
        body: &[u8],
        records: &[LogRecord],
    ) -> io::Result<()> {
        let now = self.now_ms();
        self.append(now, RECORDS, &[&first.to_le_bytes(), body].concat())?;
        self.memory.take(now, first, records);
        Ok(())
    }

    /// Notes that the writer was heard now.
    pub(super) fn note_contact(&mut self) -> io::Result<()> {
        let now = self.now_ms();
        self.append(now, CONTACT, &[])?;
        self.memory.last_contact_ms = now;
        Ok(())
    }

    /// Returns the file, to be synced.
    pub(super) fn file(&self) -> io::Result<AppendFile> {
        self.file.second()
    }

    fn now_ms(&self) -> u64 {
        self.base_ms + u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }

    fn append(&mut self, at_ms: u64, kind: u8, body: &[u8]) -> io::Result<()> {
        let rest = [&at_ms.to_le_bytes()[..], &[kind], body].concat();
        let length = (rest.len() as u32).to_le_bytes();
        let checksum = crc32fast::hash(&rest).to_le_bytes();
        self.file.append(&[&length[..], &checksum, &rest].concat())
    }
}

/// Reads the log of a run without changing it.
pub(super) fn read(folder: &Path, run: &RunId) -> io::Result<(RunDescription, AckedWrites)> {
    Read::of(run, append_file::read(&path_of(folder, run))?).map(|read| (read.opened, read.memory))
}

/// Lists the runs and what their writers reported of them, in the order in which this
/// witness heard of them: the clock of a writer may be set back by its power cut. Files
/// that are not logs are skipped.
pub(super) fn runs(folder: &Path) -> io::Result<Vec<RunDescription>> {
    let name = |name: Vec<u8>| {
        protocol_records::run_of(std::str::from_utf8(&name).ok()?.strip_suffix(".log")?)
    };
    let runs = user_file::names(folder)?.into_iter().filter_map(name);
    let mut runs: Vec<_> =
        runs.filter_map(|run| first(&path_of(folder, &run), &run).ok()).collect();
    runs.sort_by_key(|(wall_ms, _)| *wall_ms);
    Ok(runs.into_iter().map(|(_, opened)| opened).collect())
}

/// Returns the time at which the witness heard of a run, in milliseconds by the system's
/// clock, and what its writer reported of it.
fn first(path: &Path, run: &RunId) -> io::Result<(u64, RunDescription)> {
    Read::begin(run, &mut user_file::open(path)?).map(|read| (read.awake.1, read.opened))
}

/// A log as it was read.
struct Read {
    opened: RunDescription,
    memory: AckedWrites,
    /// Bytes that are whole.
    whole: u64,
    /// Times at which the witness last began to listen: of the run, and by the system's
    /// clock, in milliseconds.
    awake: (u64, u64),
}

impl Read {
    fn of(run: &RunId, input: impl io::Read) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(1 << 20, input);
        let mut read = Self::begin(run, &mut input)?;
        loop {
            let at = read.whole;
            let bytes = match next(&mut input)? {
                Next::Entry(bytes) => bytes,
                Next::End(tail) if is_torn(&tail) => return Ok(read),
                Next::End(_) => return Err(damaged(at)),
            };
            let (at_ms, kind, body) = entry(&bytes).ok_or_else(|| damaged(at))?;
            let is_known = match kind {
                RECORDS => read.take(at_ms, body),
                CONTACT => {
                    read.memory.last_contact_ms = at_ms;
                    Some(())
                }
                AWAKE => {
                    let wall_ms = body.try_into().ok().map(u64::from_le_bytes);
                    wall_ms.map(|wall_ms| read.awake = (at_ms, wall_ms))
                }
                _ => None,
            };
            is_known.ok_or_else(|| damaged(at))?;
            read.whole += bytes.len() as u64;
        }
    }

    /// Reads the head and the first entry.
    fn begin(run: &RunId, input: &mut impl io::Read) -> io::Result<Self> {
        let mut head = Vec::new();
        input.take(HEAD as u64).read_to_end(&mut head)?;
        if head != [&MAGIC[..], &VERSION.to_le_bytes(), run].concat() {
            return Err(damaged(0));
        }
        let first = HEAD as u64;
        let Next::Entry(bytes) = next(input)? else { return Err(damaged(first)) };
        let Some((0, OPENED, body)) = entry(&bytes) else { return Err(damaged(first)) };
        let (opened, wall_ms) = serde_json::from_slice(body).map_err(|_| damaged(first))?;
        let whole = first + bytes.len() as u64;
        Ok(Self { opened, memory: AckedWrites::default(), whole, awake: (0, wall_ms) })
    }

    fn take(&mut self, at_ms: u64, body: &[u8]) -> Option<()> {
        let (first, records) = protocol_records::numbered(body)?;
        let records = LogRecord::all(records).filter(|_| self.memory.can_take(first))?;
        self.memory.take(at_ms, first, &records);
        Some(())
    }

    /// Converts a time of the system's clock to a time of the run.
    fn ms_at(&self, wall_ms: u64) -> u64 {
        let (at_ms, awake_wall_ms) = self.awake;
        at_ms + wall_ms.saturating_sub(awake_wall_ms)
    }
}

/// The next item of a log.
enum Next {
    /// An entry, as it is stored.
    Entry(Vec<u8>),
    /// No entry; the bytes that are left, as far as they matter.
    End(Vec<u8>),
}

/// Maximum bytes that a cut of the witness can have torn: a few frames.
const TAIL_MAX: u64 = 16 << 20;

fn next(input: &mut impl io::Read) -> io::Result<Next> {
    let mut bytes = Vec::new();
    input.take(8).read_to_end(&mut bytes)?;
    let length = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    input.take(u64::from(length).min((ENTRY + BODY_MAX) as u64)).read_to_end(&mut bytes)?;
    if entry(&bytes).is_some_and(|(_, _, body)| ENTRY + body.len() == bytes.len()) {
        return Ok(Next::Entry(bytes));
    }
    input.take(TAIL_MAX + 1).read_to_end(&mut bytes)?;
    Ok(Next::End(bytes))
}

/// Returns true if a cut can have left this at the end: no whole entry is in it.
fn is_torn(tail: &[u8]) -> bool {
    tail.len() as u64 <= TAIL_MAX && (0..tail.len()).all(|at| entry(&tail[at..]).is_none())
}

/// Returns the entry that some bytes begin with: time, type and body.
fn entry(bytes: &[u8]) -> Option<(u64, u8, &[u8])> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    if !(ENTRY - 8..=ENTRY - 8 + BODY_MAX).contains(&length) {
        return None;
    }
    let checksum = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let rest = bytes.get(8..8 + length)?;
    if crc32fast::hash(rest) != checksum {
        return None;
    }
    let at_ms = u64::from_le_bytes(*rest.first_chunk()?);
    Some((at_ms, rest[8], &rest[9..]))
}

fn damaged(at: u64) -> io::Error {
    let why =
        format!("the witness's log of this run is damaged at byte {at}, so nothing is judged");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn wall_ms(clock: &Clock) -> u64 {
    u64::try_from(clock.now_ns() / 1_000_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::super::protocol_records::Write;
    use super::*;

    const RUN: RunId = [3; 16];

    fn opened() -> RunDescription {
        RunDescription {
            run: protocol_records::run_name(&RUN),
            program: "fsure".to_owned(),
            host: "host".to_owned(),
            folder: "/folder".to_owned(),
            device: None,
            volume: None,
            life: None,
            boot: None,
            started: "2026-11-21T22:40:00Z".to_owned(),
            replaces: Vec::new(),
        }
    }

    fn put(log: &mut Log, number: u64) {
        let write = Write { number, file: 1, method: 1, offset: number * 4096 };
        let records = [LogRecord::Begin(write), LogRecord::Ack(number)];
        let mut body = Vec::new();
        records.iter().for_each(|record| record.put(&mut body));
        log.records(log.memory.next, &body, &records).unwrap();
    }

    #[test]
    fn a_torn_tail_is_cut_off_wherever_it_was_torn_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), &RUN);
        let open = || Log::open(folder.path(), &RUN, &opened(), &Clock::default());
        let mut log = open().unwrap();
        put(&mut log, 1);
        log.note_contact().unwrap();
        let sound = std::fs::read(&path).unwrap().len();
        put(&mut log, 2);
        let bytes = std::fs::read(&path).unwrap();
        for length in sound..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(read(folder.path(), &RUN).unwrap().1.next, 2, "{length}");
        }
        // The length of the file may be on the medium before what is in it.
        std::fs::write(&path, [&bytes[..sound + 3], &[0; 5000]].concat()).unwrap();
        let mut log = open().unwrap();
        put(&mut log, 3);
        let (opened_run, memory) = read(folder.path(), &RUN).unwrap();
        assert_eq!((opened_run, memory.next, memory.owed(RUN).count()), (opened(), 4, 2));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[sound - 30] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = read(folder.path(), &RUN).unwrap_err();
        assert!(error.to_string().contains("is damaged at byte"), "{error}");
        assert!(open().is_err());
        assert_eq!(runs(folder.path()).unwrap(), [opened()], "its name is known");
    }

    #[test]
    fn time_goes_on_over_a_restart_and_never_back() {
        let folder = tempfile::tempdir().unwrap();
        let wall = Arc::new(AtomicI64::new(1_000_000_000_000_000_000));
        let now = Arc::clone(&wall);
        let clock = Clock::from_fn(move || now.load(Ordering::Relaxed));
        let open = || Log::open(folder.path(), &RUN, &opened(), &clock).unwrap();
        put(&mut open(), 1);
        wall.fetch_add(60_000_000_000, Ordering::Relaxed);
        open().note_contact().unwrap();
        let age = |_| read(folder.path(), &RUN).unwrap().1.owed(RUN).next().unwrap().age_ms;
        let after_a_minute = age(());
        // Writing and opening take their time, too.
        assert!((30_000..90_000).contains(&after_a_minute), "{after_a_minute}");
        wall.fetch_sub(1_000_000_000_000, Ordering::Relaxed);
        open().note_contact().unwrap();
        assert!(age(()) >= after_a_minute, "the clock was set back");
    }

    #[test]
    fn runs_are_ordered_by_the_time_at_which_they_were_opened() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for (number, started) in [(9, "2026"), (1, "1970"), (5, "2025")] {
            let run = [number; 16];
            let started = started.to_owned();
            let opened =
                RunDescription { run: protocol_records::run_name(&run), started, ..opened() };
            let seconds = i64::try_from(names.len()).unwrap();
            let clock = Clock::from_fn(move || seconds * 1_000_000_000);
            Log::open(folder.path(), &run, &opened, &clock).unwrap();
            names.push(opened.run);
        }
        let runs = runs(folder.path()).unwrap().into_iter().map(|opened| opened.run);
        assert_eq!(runs.collect::<Vec<_>>(), names);
    }

    #[test]
    fn what_a_cut_left_of_a_beginning_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), &RUN);
        drop(Log::open(folder.path(), &RUN, &opened(), &Clock::default()));
        let whole = std::fs::read(&path).unwrap();
        let halves = [0, 5, 28, 40, 100, whole.len() - 1].map(|length| whole[..length].to_vec());
        for left in halves.into_iter().chain([vec![0; 300]]) {
            std::fs::write(&path, left).unwrap();
            let mut log = Log::open(folder.path(), &RUN, &opened(), &Clock::default()).unwrap();
            put(&mut log, 1);
            assert_eq!(read(folder.path(), &RUN).unwrap().1.next, 2);
        }
    }
}
