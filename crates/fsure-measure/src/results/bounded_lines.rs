//! Lines of bounded length: what calls itself a result may be a terabyte of
//! something else on one line.

use std::io::{BufRead, Read as _};

use super::read_error::ReadError;

/// The longest line, in bytes. The longest that fsure writes, throughput over time, has
/// some 30 for each point.
pub const LINE_BYTES_MAX: u64 = 16 << 20;

/// One line.
pub struct BoundedLine {
    /// Its number, from 1.
    pub number: usize,
    /// Its bytes, without the end of the line.
    bytes: Vec<u8>,
    /// True if the line has an end. The last line of a run that was killed has none.
    pub has_end: bool,
}

impl BoundedLine {
    /// Returns true if there is nothing on the line.
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Parses the line; `Ok(None)` if it is not whole, as a kill leaves it.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>, ReadError> {
        match serde_json::from_slice(&self.bytes) {
            Ok(value) => Ok(Some(value)),
            Err(_) if !self.has_end => Ok(None),
            Err(error) => Err(self.damaged(error.to_string())),
        }
    }

    /// The error of a line in which this is wrong.
    pub fn damaged(&self, why: String) -> ReadError {
        ReadError::Damaged { line: self.number, why }
    }
}

/// The lines of an input.
pub struct BoundedLines<R> {
    input: R,
    number: usize,
}

impl<R: BufRead> BoundedLines<R> {
    /// Reads lines from `input`.
    pub fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    /// The next line; `None` after the last.
    pub fn next_line(&mut self) -> Result<Option<BoundedLine>, ReadError> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX + 1);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let has_end = bytes.last() == Some(&b'\n');
        if has_end {
            bytes.pop();
        } else if bytes.len() as u64 > LINE_BYTES_MAX {
            let why = format!("longer than {} MiB", LINE_BYTES_MAX >> 20);
            return Err(ReadError::Damaged { line: self.number, why });
        }
        Ok(Some(BoundedLine { number: self.number, bytes, has_end }))
    }
}
