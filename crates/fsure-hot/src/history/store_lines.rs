//! Reads a store line by line, in bounded memory. A line that is damaged is counted and passed
//! over; a last line without its end is what a kill leaves, or is just being written.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::interval::RecordedInterval;
use super::stored_interval::{KIND, read_line, timestamp};

/// The version of the store that this program writes, and the highest that it reads.
const STORE_VERSION: u32 = 1;

/// Longest line, in bytes. The bounds of an interval keep its line far below.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Name of the file in the folder of a store.
pub(super) const INTERVALS_FILE: &str = "intervals.jsonl";

/// Returns the file of the intervals in the folder of a store.
pub(super) fn intervals_file(folder: &Path) -> PathBuf {
    folder.join(INTERVALS_FILE)
}

/// The first line: the fields of every first line of a result, and the version of the store.
#[derive(Serialize, Deserialize)]
struct StartLine {
    r#type: String,
    format: u32,
    store: u32,
    fsure: String,
    command: String,
    time: String,
    host: String,
}

/// Returns the first line of a store, with its line end.
pub(super) fn start_line(now_ns: i64) -> String {
    let line = StartLine {
        r#type: "start".to_owned(),
        format: 1,
        store: STORE_VERSION,
        fsure: env!("CARGO_PKG_VERSION").to_owned(),
        command: "hot record".to_owned(),
        time: timestamp(now_ns).to_string(),
        host: fsure_os::user_file::host(),
    };
    serde_json::to_string(&line).expect("numbers and texts are JSON") + "\n"
}

/// A line of a store.
pub(super) enum StoreLine {
    /// An interval, and its bytes with the line end.
    Interval(Box<RecordedInterval>, Vec<u8>),
    /// A line that cannot be read.
    Damaged,
}

/// The lines of a store.
pub(super) struct StoreLines<R> {
    input: BufReader<R>,
    /// Bytes of the lines so far that have an end.
    pub(super) whole_bytes: u64,
}

impl<R: Read> StoreLines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(1 << 16, input), whole_bytes: 0 }
    }

    /// The next line; `None` after the last that has an end. A store of a later version is an
    /// error of the kind `Unsupported`.
    pub(super) fn next_line(&mut self) -> io::Result<Option<StoreLine>> {
        loop {
            let mut bytes = Vec::new();
            (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
            let mut length = bytes.len() as u64;
            let is_long = length == LINE_BYTES_MAX && bytes.last() != Some(&b'\n');
            if is_long {
                match self.skip_rest()? {
                    Some(rest) => length += rest,
                    None => return Ok(None),
                }
            } else if bytes.last() != Some(&b'\n') {
                return Ok(None);
            }
            self.whole_bytes += length;
            if is_long {
                return Ok(Some(StoreLine::Damaged));
            }
            match content(&bytes)? {
                Some(line) => return Ok(Some(with_bytes(line, bytes))),
                None => continue,
            }
        }
    }

    /// Passes over the rest of a line, and returns its length; `None` if it has no end.
    fn skip_rest(&mut self) -> io::Result<Option<u64>> {
        let mut skipped = 0;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(count);
            skipped += count as u64;
            if end.is_some() {
                return Ok(Some(skipped));
            }
        }
    }
}

fn with_bytes(interval: Option<RecordedInterval>, bytes: Vec<u8>) -> StoreLine {
    interval.map_or(StoreLine::Damaged, |one| StoreLine::Interval(Box::new(one), bytes))
}

/// Reads a line: an interval, `Some(None)` if it is damaged, `None` if it is another one.
fn content(bytes: &[u8]) -> io::Result<Option<Option<RecordedInterval>>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct AnyLine {
        r#type: String,
        store: Option<u32>,
    }
    let Ok(any) = serde_json::from_slice::<AnyLine>(bytes) else { return Ok(Some(None)) };
    if let Some(version) = any.store.filter(|version| *version > STORE_VERSION) {
        let words = format!(
            "it has version {version} of the store, and this fsure reads versions up to \
             {STORE_VERSION}: install a later fsure"
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    Ok((any.r#type == KIND).then(|| read_line(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::stored_interval::stored_line;

    fn read(text: &[u8]) -> (Vec<Option<u64>>, u64) {
        let mut lines = StoreLines::new(text);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push(match line {
                StoreLine::Interval(one, bytes) => {
                    assert_eq!(bytes.last(), Some(&b'\n'));
                    Some(one.intervals)
                }
                StoreLine::Damaged => None,
            });
        }
        (seen, lines.whole_bytes)
    }

    fn line(intervals: u64) -> String {
        stored_line(&RecordedInterval { intervals, ..RecordedInterval::default() }) + "\n"
    }

    #[test]
    fn damage_costs_its_line_and_no_other() {
        let long = "x".repeat(3 << 20);
        let text = [&start_line(0), &line(1), "half {\n", &long, "\n", &line(2)].concat();
        let torn = [&text, &line(3)[..9]].concat();
        let all = vec![Some(1), None, None, Some(2)];
        assert_eq!(read(text.as_bytes()), (all.clone(), text.len() as u64));
        assert_eq!(read(torn.as_bytes()), (all, text.len() as u64), "the end is cut off");
        assert_eq!(read(b""), (vec![], 0));
        assert_eq!(read(long.as_bytes()), (vec![], 0));
        let zeros = [&line(1)[..], "\0\0\0\0"].concat();
        assert_eq!(read(zeros.as_bytes()), (vec![Some(1)], line(1).len() as u64));
        // Another writer did not see the zeros: its line is lost with them.
        let zeros = [&zeros, &line(2)[..], &line(3)].concat();
        assert_eq!(read(zeros.as_bytes()).0, [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_later_version_is_refused_and_a_later_line_passed_over() {
        let later = start_line(0).replace("\"store\":1", "\"store\":2");
        let mut lines = StoreLines::new(later.as_bytes());
        assert!(lines.next_line().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported));
        let other = ["{\"type\":\"new\"}\n", &line(1)].concat();
        assert_eq!(read(other.as_bytes()).0, [Some(1)]);
    }
}
