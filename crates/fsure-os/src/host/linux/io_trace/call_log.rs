//! Single calls, from the programs in the kernel: what each was, on which file, and for how
//! long. See [`crate::io_trace::LoggedCall`].
//!
//! The kernel names the folder once and the file with each call, so that a file costs no room
//! in a map. Calls wait in a ring; those for which it has no room are counted there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use aya::maps::{MapData, RingBuf};
use rustix::time::{ClockId, clock_gettime};

use super::folder_names::FolderNames;
use super::path_resolver::{Key, Namer};
use super::syscalls;
use crate::io_trace::{LoggedCall, LoggedOperation, ProcessIo};

/// Bytes of the ring: room for some 95,000 calls.
pub(super) const RING_BYTES: u32 = 32 << 20;

/// Number of calls that are taken at once, so that a busy machine does not keep a signal from
/// being noticed.
const CALLS_TAKEN_MAX: usize = 100_000;

/// Bytes of `struct logged_call` of `hot.bpf.c`, of which `NAME_BYTES` are a name.
const RECORD: usize = 88 + NAME_BYTES;
const NAME_BYTES: usize = 256;

/// `IO_URING_REQUEST`, `LIBAIO_REQUEST` and `MAPPED_READ`.
const IO_URING_REQUEST: u32 = 0x1_0000;
const LIBAIO_REQUEST: u32 = 0x2_0000;
const MAPPED_READ: u32 = 0x3_0000;

/// `LOGGED_WAITED` and `LOGGED_UNTIMED`.
const WAITED: u32 = 1;
const UNTIMED: u32 = 2;

/// Returns the operations as the kernel's programs know them.
pub(super) fn mask(operations: &[LoggedOperation]) -> u32 {
    operations.iter().fold(0, |mask, operation| mask | bit(*operation))
}

fn bit(operation: LoggedOperation) -> u32 {
    match operation {
        LoggedOperation::Read => 1,
        LoggedOperation::Write => 2,
        LoggedOperation::Flush => 4,
        LoggedOperation::Mapped => 8,
    }
}

/// The calls that wait, and the folders that were met.
pub(super) struct CallLog {
    ring: RingBuf<MapData>,
    namer: Namer,
    /// The path of each folder; `None` if it is not asked for, or no path leads to it.
    folders: BTreeMap<Key, Option<PathBuf>>,
    /// Nanoseconds from the kernel's clock to the time of day.
    offset_ns: i64,
}

impl CallLog {
    pub(super) fn new(ring: RingBuf<MapData>) -> io::Result<Self> {
        let offset_ns = now_ns(ClockId::Realtime) - now_ns(ClockId::Monotonic);
        Ok(Self { ring, namer: Namer::new()?, folders: BTreeMap::new(), offset_ns })
    }

    /// Takes calls on what matters; true if there are more.
    pub(super) fn take(
        &mut self,
        names: &mut FolderNames,
        below: &[PathBuf],
        to: &mut dyn FnMut(LoggedCall),
    ) -> bool {
        for _ in 0..CALLS_TAKEN_MAX {
            let Some(record) = self.ring.next().map(|record| Record::parse(&record)) else {
                return false;
            };
            let Some(record) = record else { continue };
            let folder = match record.folder {
                Some(key) => self.folder(key, names, below),
                None => None,
            };
            if folder.is_some() || below.is_empty() {
                to(record.call(folder, self.offset_ns));
            }
        }
        true
    }

    fn folder(&mut self, key: Key, names: &mut FolderNames, below: &[PathBuf]) -> Option<PathBuf> {
        if let Some(path) = self.folders.get(&key) {
            return path.clone();
        }
        if names.get(&key).is_none() {
            names.take();
        }
        let name = names.get(&key);
        let mut path = self.namer.path_when_seen(&key, name, below);
        if path.is_none()
            && let Ok(namer) = Namer::new()
        {
            // It may have been mounted since.
            self.namer = namer;
            path = self.namer.path_when_seen(&key, name, below);
        }
        self.folders.insert(key, path.clone());
        path
    }
}

fn now_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A call, as the kernel reports it.
struct Record {
    folder: Option<Key>,
    began: u64,
    ns: u64,
    result: i64,
    process: ProcessIo,
    number: u32,
    operation: LoggedOperation,
    flags: u32,
    name: Vec<u8>,
}

impl Record {
    fn parse(record: &[u8]) -> Option<Self> {
        let record: &[u8; RECORD] = record.get(..RECORD)?.try_into().ok()?;
        let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let key = Key::new(word(0)?, word(8)?, word(16)?);
        let operation = half(56)?;
        let length = half(80)? as usize;
        Some(Self {
            folder: key.is_some_file().then_some(key),
            began: word(24)?,
            ns: word(32)?,
            result: word(40)?.cast_signed(),
            process: ProcessIo { name: program_name(&record[64..80]), id: half(48)? },
            number: half(52)?,
            operation: LoggedOperation::ALL.into_iter().find(|one| bit(*one) == operation)?,
            flags: half(60)?,
            name: record.get(88..88 + length)?.to_vec(),
        })
    }

    fn call(self, folder: Option<PathBuf>, offset_ns: i64) -> LoggedCall {
        let path = folder.map(|folder| match &*self.name {
            [] => folder,
            name => folder.join(OsStr::from_bytes(name)),
        });
        let moves_bytes = self.result >= 0 && self.operation != LoggedOperation::Flush;
        LoggedCall {
            began_ns: self.began.cast_signed() + offset_ns,
            ns: (self.flags & UNTIMED == 0).then_some(self.ns),
            process: self.process,
            operation: self.operation,
            call: call_name(self.number),
            path,
            bytes: moves_bytes.then_some(self.result.unsigned_abs()),
            error: (self.result < 0).then(|| i32::try_from(-self.result).unwrap_or(i32::MAX)),
            is_waited: self.flags & WAITED != 0,
        }
    }
}

/// Returns the name of a program, which ends with a zero.
pub(super) fn program_name(name: &[u8]) -> String {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the name of a call, by its number in a record.
fn call_name(number: u32) -> &'static str {
    const LIBAIO_LAST: u32 = LIBAIO_REQUEST | 0xffff;
    match number {
        0..IO_URING_REQUEST => syscalls::name(number),
        IO_URING_REQUEST..LIBAIO_REQUEST => match number - IO_URING_REQUEST {
            3 => "io_uring fsync",
            8 => "io_uring sync_file_range",
            2 | 5 | 23 | 61 => "io_uring write",
            _ => "io_uring read",
        },
        LIBAIO_REQUEST..=LIBAIO_LAST => match number - LIBAIO_REQUEST {
            1 | 8 => "libaio write",
            2 => "libaio fsync",
            3 => "libaio fdatasync",
            _ => "libaio read",
        },
        MAPPED_READ => "mapped read",
        _ => "mapped write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &[u8], result: i64, flags: u32) -> Vec<u8> {
        let mut record = vec![];
        for word in [7_u64, 8, 9, 1_000, 50, result.cast_unsigned()] {
            record.extend(word.to_ne_bytes());
        }
        for half in [42, libc::SYS_pwrite64 as u32, 2, flags] {
            record.extend(u32::to_ne_bytes(half));
        }
        record.extend(b"cat\0rubbish\0\0\0\0\0");
        record.extend((name.len() as u32).to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record.extend(name);
        record.resize(RECORD, b'x');
        record
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let call = |name: &[u8], result, flags| {
            let record = Record::parse(&record(name, result, flags)).unwrap();
            assert_eq!(record.folder, Some(Key::new(7, 8, 9)));
            record.call(Some("/a".into()), 5)
        };
        let written = call(b"b\xff", 4096, WAITED);
        assert_eq!((written.began_ns, written.ns, written.bytes), (1_005, Some(50), Some(4096)));
        assert_eq!(written.process, ProcessIo { name: "cat".to_owned(), id: 42 });
        assert_eq!((written.operation, written.call), (LoggedOperation::Write, "pwrite64"));
        assert_eq!(written.path, Some(PathBuf::from(OsStr::from_bytes(b"/a/b\xff"))));
        assert!(written.is_waited && written.error.is_none());
        let failed = call(b"", -28, UNTIMED);
        assert_eq!((failed.ns, failed.bytes, failed.error), (None, None, Some(28)));
        assert_eq!((failed.path, failed.is_waited), (Some("/a".into()), false));
        assert!(Record::parse(&record(b"", 0, 0)[1..]).is_none(), "too short");
    }

    #[test]
    fn requests_and_pages_have_names_too() {
        for (number, name) in [
            (libc::SYS_fsync as u32, "fsync"),
            (IO_URING_REQUEST | 3, "io_uring fsync"),
            (IO_URING_REQUEST | 23, "io_uring write"),
            (LIBAIO_REQUEST | 1, "libaio write"),
            (LIBAIO_REQUEST, "libaio read"),
            (MAPPED_READ, "mapped read"),
            (MAPPED_READ | 1, "mapped write"),
        ] {
            assert_eq!(call_name(number), name);
        }
    }
}
