//! Each flush of a command and of all that it starts, from the programs in the kernel. See
//! [`crate::flush_trace`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use aya::maps::{MapData, RingBuf};

use super::super::foreground::WatchedCommand;
use super::command::new_mark;
use super::ebpf::{Kernel, Scope};
use super::path_resolver::{Key, Namer};
use crate::flush_trace::{FlushCall, FlushKind, FlushTraceReport, TracedFile};
use crate::foreground::StartError;
use crate::process_tree::CommandEnd;

/// `IO_URING_REQUEST` of `hot.bpf.c`.
const IO_URING_REQUEST: u32 = 0x1_0000;
/// Its `SYNCED` and `BY_CALL`.
const SYNCED: u32 = 4;
const BY_CALL: u32 = 8;
/// Bytes of its `struct flush`.
const RECORD: usize = 56;

/// See [`crate::flush_trace::FlushTracer`].
pub(crate) struct FlushTracer {
    kernel: Kernel,
    ring: RingBuf<MapData>,
    command: WatchedCommand,
    files: BTreeMap<Key, usize>,
}

impl FlushTracer {
    pub(crate) fn begin(command: &[OsString]) -> Result<Self, StartError> {
        let mark = new_mark();
        let mut kernel = Kernel::begin(Scope { mark, is_flush_trace: true, ..Scope::default() })?;
        let ring = kernel.flushes()?;
        let command = kernel.start(command, mark)?;
        Ok(Self { kernel, ring, command, files: BTreeMap::new() })
    }

    pub(crate) fn watch(
        &mut self,
        time: Duration,
        to: &mut dyn FnMut(FlushCall),
    ) -> io::Result<Option<CommandEnd>> {
        let ended = self.command.wait(time)?;
        if ended.is_some() {
            self.kernel.stop();
        }
        self.kernel.take_names();
        while let Some(record) = self.ring.next() {
            if let Some((key, call)) = parse(&record) {
                let next = self.files.len();
                let file = key.map(|key| *self.files.entry(key).or_insert(next));
                to(FlushCall { file, ..call });
            }
        }
        Ok(ended)
    }

    pub(crate) fn end(mut self) -> io::Result<FlushTraceReport> {
        self.kernel.stop();
        let namer = Namer::new()?;
        let mut files: Vec<_> = self.files.iter().map(|(key, place)| (place, key)).collect();
        files.sort();
        let files = files.into_iter().map(|(_, key)| file(&namer, key, &self.kernel));
        Ok(FlushTraceReport {
            files: files.collect(),
            blind: self.kernel.blind().to_vec(),
            lost: self.kernel.lost()?,
            processes_left: self.kernel.processes_alive()?,
        })
    }
}

/// The path by which a file was known when it was first flushed: it may be gone since.
fn file(namer: &Namer, key: &Key, kernel: &Kernel) -> TracedFile {
    let (path, is_there) = namer.file(key, kernel.name(key));
    TracedFile { path, is_there, device: key.device(), ino: key.ino() }
}

/// Reads `struct flush`.
fn parse(record: &[u8]) -> Option<(Option<Key>, FlushCall)> {
    let record: &[u8; RECORD] = record.get(..RECORD)?.try_into().ok()?;
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let key = Key::new(word(0)?, word(8)?, word(16)?);
    let (number, flags) = (half(44)?, half(48)?);
    let call = FlushCall {
        kind: kind(number, flags),
        file: None,
        began_ns: word(24)?,
        ns: word(32)?,
        is_failed: half(52)? != 0,
    };
    Some((key.is_some_file().then_some(key), call))
}

fn kind(number: u32, flags: u32) -> FlushKind {
    const IO_URING_FSYNC: u32 = IO_URING_REQUEST | 3;
    const IO_URING_SYNC_FILE_RANGE: u32 = IO_URING_REQUEST | 8;
    match number {
        IO_URING_FSYNC => return FlushKind::RingFsync,
        IO_URING_SYNC_FILE_RANGE => return FlushKind::RingSyncFileRange,
        IO_URING_REQUEST.. => return FlushKind::RingWrite,
        _ => {}
    }
    match libc::c_long::from(number) {
        libc::SYS_fsync => FlushKind::Fsync,
        libc::SYS_fdatasync => FlushKind::Fdatasync,
        libc::SYS_sync_file_range => FlushKind::SyncFileRange,
        libc::SYS_syncfs => FlushKind::Syncfs,
        libc::SYS_sync => FlushKind::Sync,
        libc::SYS_msync => FlushKind::Msync,
        _ if flags & BY_CALL != 0 => FlushKind::FlaggedWrite,
        _ if flags & SYNCED != 0 => FlushKind::SyncedWrite,
        _ => FlushKind::DataSyncedWrite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let mut record = vec![];
        for word in [7_u64, 8, 9, 1_000, 50] {
            record.extend(word.to_ne_bytes());
        }
        for half in [1, libc::SYS_fdatasync as u32, 0, 1] {
            record.extend(u32::to_ne_bytes(half));
        }
        assert_eq!(record.len(), RECORD);
        let (key, call) = parse(&record).unwrap();
        assert_eq!(key, Some(Key::new(7, 8, 9)));
        let FlushCall { kind, began_ns, ns, is_failed, .. } = call;
        assert_eq!((kind, began_ns, ns, is_failed), (FlushKind::Fdatasync, 1_000, 50, true));
        assert!(parse(&record[..RECORD - 1]).is_none());
        record[..24].fill(0);
        assert_eq!(parse(&record).unwrap().0, None, "no file");
    }

    #[test]
    fn writes_are_distinguished_by_what_makes_them_durable() {
        let write = libc::SYS_pwrite64 as u32;
        assert_eq!(kind(write, 2), FlushKind::DataSyncedWrite);
        assert_eq!(kind(write, 2 | SYNCED), FlushKind::SyncedWrite);
        assert_eq!(kind(libc::SYS_pwritev2 as u32, 2 | BY_CALL), FlushKind::FlaggedWrite);
        assert_eq!(kind(IO_URING_REQUEST | 5, 2), FlushKind::RingWrite);
        assert_eq!(kind(IO_URING_REQUEST | 3, 0), FlushKind::RingFsync);
    }
}
