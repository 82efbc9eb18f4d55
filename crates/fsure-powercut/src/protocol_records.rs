//! Records of its writes that the writer sends, and what the witness derives from them:
//! the last acknowledged write of each block.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Acknowledged, Stamp};
use fsure_core::digest::hex;

/// A run, by 16 random bytes.
pub type RunId = [u8; 16];

/// Returns its name, as people and files use it.
pub fn run_name(run: &RunId) -> String {
    hex(run)
}

/// Returns the run of a name; `None` if it is not the name of a run.
pub fn run_of(name: &str) -> Option<RunId> {
    let digit = |at: usize| u8::from_str_radix(name.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<_>> = (0..name.len()).step_by(2).map(digit).collect();
    bytes?.try_into().ok().filter(|run| run_name(run) == name)
}

/// Description of a run by its writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDescription {
    /// Its name.
    pub run: String,
    /// The writer's program.
    pub program: String,
    /// The writer's machine.
    pub host: String,
    /// The folder, as text.
    pub folder: String,
    /// The drive, if it is a single one and known.
    pub device: Option<super::TestedDevice>,
    /// Identifier of the file system, if it has one.
    pub volume: Option<String>,
    /// The life of the mount, [`fsure_os::storage_stack::life`].
    pub life: Option<String>,
    /// The boot of the system, [`fsure_os::storage_stack::boot`]; older writers do not send it.
    #[serde(default)]
    pub boot: Option<String>,
    /// Time at which it began, RFC 3339.
    pub started: String,
    /// Earlier runs whose files are removed now: nothing is judged of them.
    #[serde(default)]
    pub replaces: Vec<String>,
}

/// Request of a checker: a run by its name, or the last of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunQuery {
    pub(super) run: Option<String>,
    pub(super) host: String,
    pub(super) folder: String,
}

/// Response of a witness about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunInfo {
    pub(super) opened: RunDescription,
    /// Writes acknowledged, by method.
    pub(super) acked: BTreeMap<u32, u64>,
    /// Time for which the writer was heard, in milliseconds.
    pub(super) heard_ms: u64,
    pub(super) is_ended: bool,
}

/// One record of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogRecord {
    Begin(Write),
    Ack(u64),
    Forget(u32),
    End,
}

/// A write, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) number: u64,
    pub(super) file: u32,
    pub(super) method: u32,
    pub(super) offset: u64,
}

/// Bytes of a write.
const WRITE: usize = 24;
/// Bytes of a record at most.
pub(super) const RECORD_MAX: usize = 1 + WRITE;
/// Bytes of a write that is owed.
pub(super) const OWED: usize = WRITE + 8;

impl Write {
    fn put(self, to: &mut Vec<u8>) {
        to.extend(self.number.to_le_bytes());
        to.extend(self.file.to_le_bytes());
        to.extend(self.method.to_le_bytes());
        to.extend(self.offset.to_le_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            number: u64::from_le_bytes(*from.split_off_chunk()?),
            file: u32::from_le_bytes(*from.split_off_chunk()?),
            method: u32::from_le_bytes(*from.split_off_chunk()?),
            offset: u64::from_le_bytes(*from.split_off_chunk()?),
        })
    }
}

/// Takes the first bytes off a slice.
trait SplitOff<'a> {
    fn split_off_chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]>;
}

impl<'a> SplitOff<'a> for &'a [u8] {
    fn split_off_chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (first, rest) = self.split_first_chunk()?;
        *self = rest;
        Some(first)
    }
}

impl LogRecord {
    /// Appends it as it is sent and stored.
    pub(super) fn put(self, to: &mut Vec<u8>) {
        match self {
            Self::Begin(write) => {
                to.push(1);
                write.put(to);
            }
            Self::Ack(number) => {
                to.push(2);
                to.extend(number.to_le_bytes());
            }
            Self::Forget(file) => {
                to.push(3);
                to.extend(file.to_le_bytes());
            }
            Self::End => to.push(4),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let [kind] = from.split_off_chunk()?;
        Some(match kind {
            1 => Self::Begin(Write::take(from)?),
            2 => Self::Ack(u64::from_le_bytes(*from.split_off_chunk()?)),
            3 => Self::Forget(u32::from_le_bytes(*from.split_off_chunk()?)),
            4 => Self::End,
            _ => return None,
        })
    }

    /// Parses all records of a body; `None` if it does not consist of whole records.
    pub(super) fn all(mut body: &[u8]) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        while !body.is_empty() {
            all.push(Self::take(&mut body)?);
        }
        Some(all)
    }
}

/// Splits the number before a body off.
pub(super) fn numbered(body: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = body.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// Appends an owed write as it is sent.
pub(super) fn put_owed(write: &Acknowledged, to: &mut Vec<u8>) {
    let Stamp { file, method, offset, number, .. } = write.stamp;
    Write { number, file, method, offset }.put(to);
    to.extend(write.age_ms.to_le_bytes());
}

/// Parses the owed writes of a body; `None` if it does not consist of whole ones.
pub(super) fn owed(run: RunId, mut body: &[u8]) -> Option<Vec<Acknowledged>> {
    let mut all = Vec::with_capacity(body.len() / OWED);
    while !body.is_empty() {
        let Write { number, file, method, offset } = Write::take(&mut body)?;
        let stamp = Stamp { run, file, method, offset, number };
        let age_ms = u64::from_le_bytes(*body.split_off_chunk()?);
        all.push(Acknowledged { stamp, age_ms });
    }
    Some(all)
}

/// A run in the memory of a witness.
#[derive(Debug, Default)]
pub(super) struct AckedWrites {
    /// The number of the next record.
    pub(super) next: u64,
    pub(super) is_ended: bool,
    pub(super) acked: BTreeMap<u32, u64>,
    /// Time of the run at which the writer was last heard, in milliseconds.
    pub(super) last_contact_ms: u64,
    begun: HashMap<u64, Write>,
    /// By file and offset: the last acknowledged write, and the time at which that was
    /// heard.
    owed: BTreeMap<(u32, u64), (Write, u64)>,
}

impl AckedWrites {
    /// Returns true if records that begin with this number can come next.
    pub(super) fn can_take(&self, first: u64) -> bool {
        first <= self.next && !self.is_ended
    }

    /// Takes the new ones of some records, of which the first has this number.
    pub(super) fn take(&mut self, at_ms: u64, first: u64, records: &[LogRecord]) {
        self.last_contact_ms = at_ms;
        let known = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        for record in records.iter().skip(known) {
            self.next += 1;
            match *record {
                LogRecord::Begin(write) => {
                    self.begun.insert(write.number, write);
                }
                LogRecord::Ack(number) => self.acknowledged(at_ms, number),
                LogRecord::Forget(file) => self.owed.retain(|place, _| place.0 != file),
                LogRecord::End => self.is_ended = true,
            }
        }
    }

    fn acknowledged(&mut self, at_ms: u64, number: u64) {
        // An acknowledgement of a write that never began is not from a writer of fsure.
        let Some(write) = self.begun.remove(&number) else { return };
        *self.acked.entry(write.method).or_default() += 1;
        let last = self.owed.entry((write.file, write.offset)).or_insert((write, at_ms));
        if write.number >= last.0.number {
            *last = (write, at_ms);
        }
    }

    /// Returns all owed writes, each with its age when the writer was last heard.
    pub(super) fn owed(&self, run: RunId) -> impl Iterator<Item = Acknowledged> {
        self.owed.values().map(move |(write, at_ms)| {
            let Write { number, file, method, offset } = *write;
            let stamp = Stamp { run, file, method, offset, number };
            Acknowledged { stamp, age_ms: self.last_contact_ms.saturating_sub(*at_ms) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(number: u64, offset: u64) -> LogRecord {
        LogRecord::Begin(Write { number, file: 3, method: 1, offset })
    }

    #[test]
    fn records_come_back_as_they_were() {
        let records = [begin(7, 4096), LogRecord::Ack(7), LogRecord::Forget(3), LogRecord::End];
        let mut body = Vec::new();
        records.iter().for_each(|record| record.put(&mut body));
        assert_eq!(LogRecord::all(&body).unwrap(), records);
        for length in 1..body.len() {
            let whole = LogRecord::all(&body[..length]).map(|all| all.len());
            assert_eq!(
                whole,
                [(25, 1), (34, 2), (39, 3)]
                    .into_iter()
                    .find_map(|(at, count)| (at == length).then_some(count))
            );
        }
        assert_eq!(LogRecord::all(&[9]), None);
    }

    #[test]
    fn the_last_acknowledged_write_of_a_block_is_owed_until_it_is_forgotten() {
        let mut memory = AckedWrites::default();
        let records =
            [begin(1, 0), begin(2, 4096), LogRecord::Ack(1), begin(3, 0), LogRecord::Ack(2)];
        memory.take(10, 0, &records);
        memory.take(30, 5, &[LogRecord::Ack(3), LogRecord::Ack(77), begin(4, 0)]);
        // Sent again, as after a new connection.
        memory.take(40, 2, &[LogRecord::Ack(1), begin(3, 0), LogRecord::Ack(2), LogRecord::Ack(3)]);
        assert_eq!((memory.next, memory.acked[&1]), (8, 3));
        let owed: Vec<_> = memory.owed([0; 16]).map(|o| (o.stamp.number, o.age_ms)).collect();
        assert_eq!(owed, [(3, 10), (2, 30)]);
        assert!(memory.can_take(8) && !memory.can_take(9));
        memory.take(50, 8, &[LogRecord::Forget(3), LogRecord::End]);
        assert_eq!(memory.owed([0; 16]).count(), 0);
        assert!(memory.is_ended && !memory.can_take(10));
    }

    #[test]
    fn a_run_has_one_name() {
        let run = [0xab; 16];
        assert_eq!(run_of(&run_name(&run)), Some(run));
        for name in ["", "ab", "../../../etc/passwd00000000000000", &"AB".repeat(16)] {
            assert_eq!(run_of(name), None, "{name}");
        }
        assert_eq!(run_of(&"é".repeat(16)), None);
    }

    #[test]
    fn what_is_owed_comes_back_as_it_was() {
        let stamp = Stamp { run: [4; 16], file: 1, method: 2, offset: 3, number: 4 };
        let mut body = Vec::new();
        put_owed(&Acknowledged { stamp, age_ms: 5 }, &mut body);
        assert_eq!(body.len(), OWED);
        assert_eq!(owed([4; 16], &body).unwrap(), [Acknowledged { stamp, age_ms: 5 }]);
        assert_eq!(owed([4; 16], &body[1..]), None);
    }
}
