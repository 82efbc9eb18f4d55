//! The data that are written and hashed. Zeros flatter storage that compresses or
//! finds holes, so they are not the default.

use std::io;

use fsure_os::buffer::Buffer;

use super::Data;

/// Bytes of data; longer streams are these over and over. Twice the largest
/// caches of common processors, so that it comes from memory.
pub(super) const POOL: usize = 64 << 20;

/// Words of a text as people write them: common ones, so that it compresses as text
/// does.
const WORDS: &str = "the of and to in a is that for it as was with be by on not he his but at are \
                     this have from or had an which you were there been one all we can her has \
                     more if no out do so up said what its about than into them only other time \
                     new some could these two may first then any like over such our man me even \
                     most made after also did many before must through years where much your way";

/// Data for all rungs, in huge pages and aligned for direct writes.
pub(super) struct DataPool {
    memory: Buffer,
}

impl DataPool {
    /// Fills memory with data of a kind.
    pub(super) fn new(data: Data) -> io::Result<Self> {
        Ok(Self { memory: filled(data)? })
    }

    /// All of it.
    pub(super) fn all(&self) -> &[u8] {
        &self.memory[..POOL]
    }

    /// Returns the data at a place of a stream, up to `length` bytes or the end of
    /// the pool.
    pub(super) fn at(&self, place: u64, length: u64) -> &[u8] {
        let start = (place % POOL as u64) as usize;
        let end = (start as u64 + length).min(POOL as u64) as usize;
        &self.memory[start..end]
    }
}

/// Memory of [`POOL`] bytes with data of a kind.
pub(super) fn filled(data: Data) -> io::Result<Buffer> {
    let mut memory = Buffer::new(POOL)?;
    match data {
        Data::Random => random(&mut memory),
        Data::Zeros => memory.fill(0),
        Data::Text => text(&mut memory),
    }
    Ok(memory)
}

/// BLAKE3's own stream: as good as random, and the same in every run.
fn random(target: &mut [u8]) {
    blake3::Hasher::new_derive_key("fsure speed data").finalize_xof().fill(target);
}

fn text(target: &mut [u8]) {
    let words: Vec<&[u8]> = WORDS.split_whitespace().map(str::as_bytes).collect();
    let mut dice = blake3::Hasher::new_derive_key("fsure speed text").finalize_xof();
    let (mut place, mut throws, mut next) = (0, [0_u8; 4096], 4096);
    while place < target.len() {
        if next == throws.len() {
            dice.fill(&mut throws);
            next = 0;
        }
        let word = words[usize::from(throws[next]) % words.len()];
        let length = word.len().min(target.len() - place);
        target[place..place + length].copy_from_slice(&word[..length]);
        if let Some(behind) = target.get_mut(place + length) {
            *behind = if throws[next] > 240 { b'\n' } else { b' ' };
        }
        (place, next) = (place + length + 1, next + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_of_their_kind() {
        let mut target = [0; 5000];
        text(&mut target);
        assert!(target.iter().all(|byte| byte.is_ascii_lowercase() || b" \n".contains(byte)));
        random(&mut target);
        assert!(target.iter().filter(|byte| **byte > 127).count().abs_diff(2500) < 250);
        let pool = DataPool::new(Data::Zeros).unwrap();
        assert_eq!(pool.at(POOL as u64 - 4, 9).len(), 4);
        assert_eq!(pool.at(3 * POOL as u64, 9).len(), 9);
    }
}
