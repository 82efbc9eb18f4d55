//! Record of all requests to a drive, so that every moment can be checked afterwards, and
//! not only the moments of the cuts.
//!
//! It may be larger than the memory, so it is in a file without a name: for each event
//! its kind (1 byte) and two numbers (8 bytes each, little endian), and after a write the
//! data.

use std::io::{self, BufReader, Read as _};
use std::path::Path;

use fsure_os::unnamed_file::{UnnamedContent, UnnamedFile};

use super::pending_writes::WriteEffect;
use super::{DriveChange, Image};

/// Bytes that are written to the file at once, except for one large write.
const BUFFER: usize = 1 << 20;
/// Bytes of an event before its data.
const HEAD: usize = 17;

const DATA: u8 = 1;
const ZEROES: u8 = 2;
const FLUSHED: u8 = 3;
const MARKED: u8 = 4;

/// An event on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A write or a trim was acknowledged.
    Changed(DriveChange),
    /// A flush was acknowledged.
    Flushed,
    /// Everything up to this number was acknowledged as safe.
    Marked(u64),
}

/// Recorder of all events.
#[derive(Debug)]
pub(super) struct Recorder {
    begin: Image,
    spill: UnnamedFile,
    /// Whole events that are not in the file yet.
    buffer: Vec<u8>,
    /// Bytes of the file.
    length: u64,
    flushes: u64,
    /// Reason why an event could not be recorded; from then on none is.
    failure: Option<(io::ErrorKind, String)>,
}

impl Recorder {
    pub(super) fn new(begin: Image, folder: &Path) -> io::Result<Self> {
        Ok(Self {
            begin,
            spill: UnnamedFile::create(folder)?,
            buffer: Vec::new(),
            length: 0,
            flushes: 0,
            failure: None,
        })
    }

    pub(super) fn changed(&mut self, change: &DriveChange) {
        let length = change.length();
        match &change.what {
            WriteEffect::Data(data) => self.note(DATA, [change.offset, length], data),
            WriteEffect::Zeroes(_) => self.note(ZEROES, [change.offset, length], &[]),
        }
    }

    pub(super) fn flushed(&mut self) {
        self.flushes += 1;
        self.note(FLUSHED, [0; 2], &[]);
    }

    pub(super) fn marked(&mut self, number: u64) {
        self.note(MARKED, [number, 0], &[]);
    }

    fn note(&mut self, kind: u8, numbers: [u64; 2], data: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.buffer.push(kind);
        numbers.iter().for_each(|number| self.buffer.extend(number.to_le_bytes()));
        self.buffer.extend_from_slice(data);
        if self.buffer.len() >= BUFFER {
            self.write();
        }
    }

    fn write(&mut self) {
        match self.spill.append(&self.buffer) {
            Ok(()) => self.length += self.buffer.len() as u64,
            Err(error) => {
                self.failure = Some((error.kind(), error.to_string()));
                // Other files need that space. If it is not given back now, the end of
                // this process does it.
                let _ = self.spill.clear();
            }
        }
        self.buffer.clear();
    }

    /// Returns an error if an event could not be recorded.
    pub(super) fn is_whole(&self) -> io::Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((kind, words)) => Err(io::Error::new(*kind, words.clone())),
        }
    }

    /// Returns all events so far. Fails if an event could not be recorded.
    pub(super) fn history(&mut self) -> io::Result<History> {
        if self.failure.is_none() {
            self.write();
        }
        self.is_whole()?;
        let (begin, content) = (self.begin.clone(), self.spill.content(self.length));
        Ok(History { begin, content, flushes: self.flushes })
    }
}

/// Content of a drive in the beginning, and the events since, up to the moment at which
/// the history was requested.
#[derive(Clone, Debug)]
pub struct History {
    begin: Image,
    content: UnnamedContent,
    flushes: u64,
}

/// A moment at which a flush was acknowledged.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// Number of the flush, from 1 on.
    pub number: u64,
    /// Highest mark by then, which is owed; 0 if nothing is.
    pub marked: u64,
    /// Content that an honest drive is bound to have.
    pub image: Image,
}

impl History {
    /// Returns the number of flushes.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Returns the events in order.
    pub fn events(&self) -> impl Iterator<Item = io::Result<LogEvent>> + use<> {
        let mut reader = LogReader::new(self);
        std::iter::from_fn(move || reader.next(true).transpose())
    }

    /// Returns the flush boundaries in order. Images share what they have in common.
    pub fn at_flushes(&self) -> impl Iterator<Item = io::Result<Boundary>> + use<> {
        let (mut state, mut reader) = (self.beginning(), LogReader::new(self));
        std::iter::from_fn(move || {
            let found = state.follow(&mut reader).transpose()?;
            Some(found.map(|()| state.clone()))
        })
    }

    /// Returns the boundary with a number, from 1 on; `None` if there is none.
    pub fn at_flush(&self, number: u64) -> io::Result<Option<Boundary>> {
        let (mut state, mut reader) = (self.beginning(), LogReader::new(self));
        while state.follow(&mut reader)?.is_some() {
            if state.number == number {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Returns what is owed at each boundary.
    pub fn marks(&self) -> io::Result<Vec<u64>> {
        let (mut marks, mut marked, mut reader) = (Vec::new(), 0, LogReader::new(self));
        while let Some(event) = reader.next(false)? {
            match event {
                LogEvent::Changed(_) => {}
                LogEvent::Marked(mark) => marked = mark.max(marked),
                LogEvent::Flushed => marks.push(marked),
            }
        }
        Ok(marks)
    }

    fn beginning(&self) -> Boundary {
        Boundary { number: 0, marked: 0, image: self.begin.clone() }
    }
}

impl Boundary {
    /// Advances to the next flush; `None` if there is none.
    fn follow(&mut self, reader: &mut LogReader) -> io::Result<Option<()>> {
        while let Some(event) = reader.next(true)? {
            match event {
                LogEvent::Changed(change) => {
                    change.make(&mut self.image).expect("the drive has taken it");
                }
                LogEvent::Marked(mark) => self.marked = self.marked.max(mark),
                LogEvent::Flushed => {
                    self.number += 1;
                    return Ok(Some(()));
                }
            }
        }
        Ok(None)
    }
}

/// Reads the file.
struct LogReader(BufReader<UnnamedContent>);

impl LogReader {
    fn new(history: &History) -> Self {
        Self(BufReader::with_capacity(BUFFER, history.content.clone()))
    }

    /// Returns the next event, without its data unless that is wanted; `None` at the end.
    fn next(&mut self, with_data: bool) -> io::Result<Option<LogEvent>> {
        let mut head = Vec::with_capacity(HEAD);
        self.0.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if head.is_empty() {
            return Ok(None);
        }
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the file was damaged");
        let head: [u8; HEAD] = head.try_into().map_err(|_| broken())?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let (first, length) = (number(1), number(9));
        let what = match head[0] {
            FLUSHED => return Ok(Some(LogEvent::Flushed)),
            MARKED => return Ok(Some(LogEvent::Marked(first))),
            ZEROES => WriteEffect::Zeroes(length),
            DATA if with_data => {
                let mut data = vec![0; usize::try_from(length).map_err(|_| broken())?];
                self.0.read_exact(&mut data)?;
                WriteEffect::Data(data.into())
            }
            DATA => {
                self.0.seek_relative(i64::try_from(length).map_err(|_| broken())?)?;
                WriteEffect::Data([].into())
            }
            _ => return Err(broken()),
        };
        Ok(Some(LogEvent::Changed(DriveChange { offset: first, what })))
    }
}
