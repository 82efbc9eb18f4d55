//! A file on a medium that might not give all of it: what cannot be read counts as zeros,
//! which no checksum fits, so that one bad sector costs what was in it and no more.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes that are read at once, and given up at once: a page of a catalog, and what the
/// kernel asks a disk for.
const READ_UNIT_BYTES: u64 = 4096;

/// A file that can be read at any place.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// A file of which some parts may be unreadable.
pub(super) struct ZeroFillReader {
    file: RefCell<Box<dyn ReadSeek>>,
    length: u64,
    /// The place at which [`Read`] goes on.
    at: u64,
    bytes_lost: Cell<u64>,
}

impl ZeroFillReader {
    /// Asks for the length of a file.
    pub(super) fn new(mut file: Box<dyn ReadSeek>) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        Ok(Self { file: RefCell::new(file), length, at: 0, bytes_lost: Cell::new(0) })
    }

    /// Length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that could not be read so far.
    pub(super) fn bytes_lost(&self) -> u64 {
        self.bytes_lost.get()
    }

    /// Reads `length` bytes from `offset` on. What cannot be read, and what is behind the
    /// end of the file, is zeros.
    pub(super) fn read_at(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let within = self.length.saturating_sub(offset).min(length as u64) as usize;
        let mut done = 0;
        while done < within {
            let place = offset + done as u64;
            let piece =
                (READ_UNIT_BYTES - place % READ_UNIT_BYTES).min((within - done) as u64) as usize;
            let bytes = &mut bytes[done..done + piece];
            if self.read_piece(place, bytes).is_err() {
                bytes.fill(0);
                self.bytes_lost.set(self.bytes_lost.get() + piece as u64);
            }
            done += piece;
        }
        bytes
    }

    fn read_piece(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

impl Read for ZeroFillReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.length.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        bytes[..length].copy_from_slice(&self.read_at(self.at, length));
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file of which some bytes give `EIO`.
    pub(in crate::catalog) struct BadSector {
        pub(in crate::catalog) file: io::Cursor<Vec<u8>>,
        pub(in crate::catalog) bad: std::ops::Range<u64>,
    }

    impl Read for BadSector {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let at = self.file.position();
            if at < self.bad.end && at + bytes.len() as u64 > self.bad.start {
                return Err(io::Error::other("EIO"));
            }
            self.file.read(bytes)
        }
    }

    impl Seek for BadSector {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn a_bad_sector_costs_what_is_in_it() {
        let content: Vec<u8> = (0..50_000_u32).map(|place| place as u8 | 1).collect();
        let bad = 8192 + 512..8192 + 1024;
        let file = BadSector { file: io::Cursor::new(content.clone()), bad };
        let mut file = ZeroFillReader::new(Box::new(file)).unwrap();
        let mut expected = content.clone();
        expected[8192..12_288].fill(0);
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert!(read == expected);
        assert_eq!((file.bytes_lost(), file.length()), (4096, 50_000));
        assert_eq!(file.read_at(49_998, 5), [content[49_998], content[49_999], 0, 0, 0]);
        assert_eq!(file.read_at(60_000, 2), [0, 0]);
    }
}
