//! Lists in UTF-16, as programs on Windows write them: turned into UTF-8 on
//! their way in, so that every reader reads them. They are known by their
//! byte-order mark. A surrogate that stands alone becomes the three bytes that
//! stand for it in names (WTF-8).

use std::io::{self, BufRead, Read};

/// Number of bytes that are converted at once.
const CONVERT_CHUNK_BYTES: usize = 1 << 14;

/// A list in UTF-16, as UTF-8.
pub(super) struct Utf16<'a> {
    input: &'a mut dyn BufRead,
    is_big_endian: bool,
    /// The first half of a pair whose second half has not come yet.
    high: Option<u16>,
    ready: Vec<u8>,
    used: usize,
}

impl<'a> Utf16<'a> {
    /// Returns true if the bytes begin with the byte-order mark of UTF-16.
    pub(super) fn is(head: &[u8]) -> bool {
        head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff")
    }

    /// Reads the byte-order mark, and converts what follows it.
    pub(super) fn new(input: &'a mut dyn BufRead) -> io::Result<Self> {
        let mut mark = [0; 2];
        input.read_exact(&mut mark)?;
        let is_big_endian = mark[0] == 0xfe;
        Ok(Self { input, is_big_endian, high: None, ready: Vec::new(), used: 0 })
    }

    fn push(&mut self, unit: u16) {
        if let Some(high) = self.high.take() {
            if let Some(Ok(character)) = char::decode_utf16([high, unit]).next() {
                self.push_char(character);
                return;
            }
            self.push_alone(high);
        }
        match unit {
            0xd800..0xdc00 => self.high = Some(unit),
            0xdc00..0xe000 => self.push_alone(unit),
            _ => self.push_char(char::from_u32(unit.into()).expect("no surrogate")),
        }
    }

    fn push_char(&mut self, character: char) {
        self.ready.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn push_alone(&mut self, surrogate: u16) {
        let low = |bits: u16| 0x80 | (bits & 0x3f) as u8;
        self.ready.extend_from_slice(&[0xed, low(surrogate >> 6), low(surrogate)]);
    }
}

impl Read for Utf16<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Utf16<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.used == self.ready.len() {
            self.ready.clear();
            self.used = 0;
            let mut piece = Vec::new();
            (&mut *self.input).take(CONVERT_CHUNK_BYTES as u64).read_to_end(&mut piece)?;
            let (units, rest) = piece.as_chunks::<2>();
            for unit in units {
                self.push(match self.is_big_endian {
                    true => u16::from_be_bytes(*unit),
                    false => u16::from_le_bytes(*unit),
                });
            }
            if piece.len() < CONVERT_CHUNK_BYTES {
                if let Some(high) = self.high.take() {
                    self.push_alone(high);
                }
                // Half a unit: something is cut off, and the parser must not overlook it.
                if !rest.is_empty() {
                    self.push_char(char::REPLACEMENT_CHARACTER);
                }
                break;
            }
        }
        Ok(&self.ready[self.used..])
    }

    fn consume(&mut self, amount: usize) {
        self.used += amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(bytes: &[u8]) -> Vec<u8> {
        let mut input = bytes;
        let mut text = Vec::new();
        Utf16::new(&mut input).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn both_orders_and_what_is_no_text() {
        let text = "\u{e4} b\n\u{1f40e}".repeat(CONVERT_CHUNK_BYTES / 8);
        for (mark, is_big_endian) in [(b"\xff\xfe", false), (b"\xfe\xff", true)] {
            let units = text.encode_utf16();
            let bytes = units.flat_map(|unit| match is_big_endian {
                true => unit.to_be_bytes(),
                false => unit.to_le_bytes(),
            });
            let bytes: Vec<u8> = mark.iter().copied().chain(bytes).collect();
            assert_eq!(turned(&bytes), text.as_bytes());
        }
        assert_eq!(turned(b"\xff\xfe\x00\xd8a\0\x00\xdcb\0\x01\xd8"), {
            b"\xed\xa0\x80a\xed\xb0\x80b\xed\xa0\x81".to_vec()
        });
        assert_eq!(turned(b"\xff\xfea\0b"), "a\u{fffd}".as_bytes());
        assert_eq!(turned(b"\xff\xfe"), b"");
    }
}
