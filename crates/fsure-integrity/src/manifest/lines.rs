//! Lines of bytes with their numbers, each of bounded length: a list may be a
//! terabyte of something else.

use std::io::{BufRead, Read as _};
use std::path::Path;

use fsure_core::{IoContext as _, Result};

/// The longest line. The longest path that any user was seen to have is 10 kB, and
/// mtree takes four characters for a byte.
pub(super) const LINE_MAX: usize = 1 << 20;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NumberedLine {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// It is longer than [`LINE_MAX`].
    TooLong,
}

/// The lines of a list.
pub(super) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    file: &'a Path,
    end: u8,
    number: u64,
}

impl<'a> Lines<'a> {
    /// Lines that end with `end`: a line feed, or NUL. A carriage return
    /// before a line feed belongs to the end.
    pub(super) fn new(input: &'a mut dyn BufRead, file: &'a Path, end: u8) -> Self {
        Self { input, file, end, number: 0 }
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if lines end with NUL.
    pub(super) fn is_zero(&self) -> bool {
        self.end == 0
    }

    /// The next line.
    pub(super) fn next(&mut self) -> Result<Option<NumberedLine>> {
        let mut line = Vec::new();
        let limit = LINE_MAX as u64 + 1;
        let mut limited = (&mut *self.input).take(limit);
        let read = limited.read_until(self.end, &mut line).context("read", self.file)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let has_end = line.last() == Some(&self.end);
        if !has_end && line.len() > LINE_MAX {
            self.skip_rest()?;
            return Ok(Some(NumberedLine::TooLong));
        }
        if has_end {
            line.pop();
        }
        if self.end == b'\n' && line.last() == Some(&b'\r') {
            line.pop();
        }
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(NumberedLine::Bytes(line)))
    }

    fn skip_rest(&mut self) -> Result<()> {
        loop {
            let buffer = self.input.fill_buf().context("read", self.file)?;
            let end = buffer.iter().position(|byte| *byte == self.end);
            let (used, is_over) = match end {
                Some(end) => (end + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.input.consume(used);
            if is_over {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_reported_and_skipped() {
        let text = [b"\xef\xbb\xbfa\r\n", &vec![b'x'; 3 * LINE_MAX][..], b"\nb\r"].concat();
        let mut input = &text[..];
        let mut lines = Lines::new(&mut input, Path::new("list"), b'\n');
        assert_eq!(lines.next().unwrap(), Some(NumberedLine::Bytes(b"a".to_vec())));
        assert_eq!(lines.next().unwrap(), Some(NumberedLine::TooLong));
        assert_eq!(lines.next().unwrap(), Some(NumberedLine::Bytes(b"b".to_vec())));
        assert_eq!((lines.number(), lines.next().unwrap()), (3, None));
        let mut input = &b"a\r\0b\nc"[..];
        let mut lines = Lines::new(&mut input, Path::new("list"), 0);
        assert_eq!(lines.next().unwrap(), Some(NumberedLine::Bytes(b"a\r".to_vec())));
        assert_eq!(lines.next().unwrap(), Some(NumberedLine::Bytes(b"b\nc".to_vec())));
    }
}
