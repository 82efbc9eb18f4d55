//! Frames of a backup: pieces that are compressed and carry their checksum, so
//! that each is sound or left out. `docs/recover.md` is the format.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::tables::take;

/// The bytes that a backup begins with; 16 bytes that name its catalog follow.
pub(super) const HEAD: &[u8; 16] = b"fsure backup 1\n\0";
/// Bytes of the head and the name behind it.
pub(super) const HEAD_BYTES: u64 = 32;
/// The most that a frame holds before it is compressed.
pub(super) const PLAIN_MAX: usize = 1 << 20;
/// More than any frame holds: an entry may be larger than [`PLAIN_MAX`] by itself.
const PACKED_MAX: usize = 64 << 20;
/// The bytes that each frame begins with: it is looked for behind a damaged one.
const MARK: &[u8; 4] = b"fsbk";
/// Mark, length compressed, length plain, checksum at the end.
const BYTES_BESIDE: usize = 4 + 4 + 4 + 8;

/// Appends a frame with this content, and returns its checksum.
pub(super) fn write(plain: &[u8], to: &mut Vec<u8>) -> u64 {
    let start = to.len();
    let packed = lz4_flex::block::compress(plain);
    to.extend_from_slice(MARK);
    to.extend_from_slice(&(packed.len() as u32).to_le_bytes());
    to.extend_from_slice(&(plain.len() as u32).to_le_bytes());
    to.extend_from_slice(&packed);
    let checksum = xxh3_64(&to[start..]);
    to.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// The content of a backup, frame by frame, in the memory of one frame.
pub(super) struct Frames<R> {
    from: R,
    /// Bytes that were read and are not taken yet.
    bytes: Vec<u8>,
    /// Bytes that were taken.
    taken: u64,
    is_at_end: bool,
}

/// The next frame.
pub(super) enum Frame {
    /// One that fits its checksum.
    Sound(SoundFrame),
    /// Something is there that is not a sound frame; what follows might be one.
    Damaged,
}

/// A frame that fits its checksum.
pub(super) struct SoundFrame {
    pub(super) content: Vec<u8>,
    pub(super) checksum: u64,
    /// The place behind it, bytes from the end of the head.
    pub(super) end: u64,
}

impl<R: Read> Frames<R> {
    /// Reads a backup from behind its head.
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: Vec::new(), taken: 0, is_at_end: false }
    }

    /// The next frame, `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        self.fill(12)?;
        if self.bytes.is_empty() {
            return Ok(None);
        }
        if let Some(length) = length_of(&self.bytes) {
            self.fill(length)?;
        }
        if let Some((content, checksum, length)) = parse(&self.bytes) {
            self.take(length);
            return Ok(Some(Frame::Sound(SoundFrame { content, checksum, end: self.taken })));
        }
        // The mark of the next frame may be anywhere behind.
        let mut from = 1;
        loop {
            let is_mark = |place: &usize| self.bytes[*place..].starts_with(MARK);
            if let Some(next) = (from..self.bytes.len()).find(is_mark) {
                self.take(next);
                break;
            }
            if self.is_at_end {
                self.bytes.clear();
                break;
            }
            from = self.bytes.len().saturating_sub(MARK.len()).max(1);
            self.fill(self.bytes.len() + PLAIN_MAX)?;
        }
        Ok(Some(Frame::Damaged))
    }

    fn take(&mut self, length: usize) {
        self.bytes.drain(..length);
        self.taken += length as u64;
    }

    /// Reads on until there are so many bytes, or no more.
    fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.bytes.len() < length && !self.is_at_end {
            let missing = (length - self.bytes.len()).max(64 << 10) as u64;
            let read = self.from.by_ref().take(missing).read_to_end(&mut self.bytes)?;
            self.is_at_end = read == 0;
        }
        Ok(())
    }
}

/// Reads the length of the frame that bytes begin with.
fn length_of(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes.strip_prefix(MARK)?;
    let packed = u32::from_le_bytes(take(&mut rest)?) as usize;
    (packed <= PACKED_MAX).then_some(BYTES_BESIDE + packed)
}

/// The content of the frame that bytes begin with, its checksum and its length.
fn parse(bytes: &[u8]) -> Option<(Vec<u8>, u64, usize)> {
    let mut rest = bytes.strip_prefix(MARK)?;
    let packed_length = u32::from_le_bytes(take(&mut rest)?) as usize;
    let plain_length = u32::from_le_bytes(take(&mut rest)?) as usize;
    let packed = rest.split_off(..packed_length)?;
    let checksum = u64::from_le_bytes(take(&mut rest)?);
    let length = BYTES_BESIDE + packed_length;
    if plain_length > PACKED_MAX || xxh3_64(&bytes[..length - 8]) != checksum {
        return None;
    }
    let plain = lz4_flex::block::decompress(packed, plain_length).ok()?;
    (plain.len() == plain_length).then_some((plain, checksum, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_frame_costs_itself_only() {
        let contents: Vec<Vec<u8>> = (0..5).map(|n| vec![n; 1000 + usize::from(n)]).collect();
        let mut bytes = Vec::new();
        let ends: Vec<_> = contents
            .iter()
            .map(|content| {
                write(content, &mut bytes);
                bytes.len()
            })
            .collect();
        let sound = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let (mut frames, mut sound) = (Frames::new(bytes), Vec::new());
            while let Some(frame) = frames.next().unwrap() {
                if let Frame::Sound(frame) = frame {
                    sound.push(frame.content);
                }
            }
            sound
        };
        assert_eq!(sound(&bytes), contents);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let mut expected = contents.clone();
            expected.remove(ends.iter().position(|end| at < *end).unwrap());
            assert_eq!(sound(&damaged), expected, "byte {at}");
        }
        for cut in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(sound(&bytes[..cut]), contents[..whole], "cut to {cut}");
        }
    }
}
