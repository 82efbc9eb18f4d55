//! Blocks that identify themselves. A drive writes sectors of 512 bytes atomically and no
//! more than that, so every sector of a block is stamped by itself: a block of which one
//! sector is older is torn, and one that belongs elsewhere was misdirected.
//!
//! A sector, little endian: magic (8 bytes), run (16), file (4), method (4), offset of
//! the sector in its file (8), number of the write (8), CRC-32 of the sector without
//! itself (4), then filling that is derived from these, so that no drive can compress or
//! leave out anything.

use fsure_core::Random;
use fsure_core::units::SECTOR_BYTES;

/// Bytes of a block, which is what one write writes.
pub const BLOCK: usize = 4096;

const MAGIC: [u8; 8] = *b"fsurecut";
/// Bytes of a sector before its filling.
const HEAD: usize = 52;
const CRC: std::ops::Range<usize> = 48..52;

/// Identification of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The run: what an earlier one left is not of this one.
    pub run: [u8; 16],
    /// The file, by number.
    pub file: u32,
    /// The method of making it durable, by number.
    pub method: u32,
    /// Offset at which the sector belongs in the file, in bytes.
    pub offset: u64,
    /// The number of the write, ascending over the whole run.
    pub number: u64,
}

/// Reason why a sector has no stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstamped {
    /// All zero: never written, or trimmed.
    Zero,
    /// Something else.
    Foreign,
}

impl Stamp {
    /// Stamps every sector of a block, whose first belongs at `offset`.
    ///
    /// # Panics
    /// If the block is not a whole number of sectors.
    pub fn fill(&self, block: &mut [u8]) {
        assert!(block.len().is_multiple_of(SECTOR_BYTES), "whole sectors");
        for (place, sector) in (0..).zip(block.chunks_exact_mut(SECTOR_BYTES)) {
            let stamp = Self { offset: self.offset + place * SECTOR_BYTES as u64, ..*self };
            stamp.fill_sector(sector);
        }
    }

    fn fill_sector(&self, sector: &mut [u8]) {
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..24].copy_from_slice(&self.run);
        sector[24..28].copy_from_slice(&self.file.to_le_bytes());
        sector[28..32].copy_from_slice(&self.method.to_le_bytes());
        sector[32..40].copy_from_slice(&self.offset.to_le_bytes());
        sector[40..48].copy_from_slice(&self.number.to_le_bytes());
        let mut filling = Random::new(self.number ^ self.offset.rotate_left(32));
        for word in sector[HEAD..].chunks_mut(8) {
            word.copy_from_slice(&filling.next_bits().to_le_bytes()[..word.len()]);
        }
        let crc = checksum(sector);
        sector[CRC].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the stamp of a sector.
    pub fn read(sector: &[u8]) -> Result<Self, Unstamped> {
        if sector.iter().all(|byte| *byte == 0) {
            return Err(Unstamped::Zero);
        }
        if sector.len() != SECTOR_BYTES
            || sector[..8] != MAGIC
            || stored(sector) != checksum(sector)
        {
            return Err(Unstamped::Foreign);
        }
        Ok(Self {
            run: sector[8..24].try_into().expect("16 bytes"),
            file: u32::from_le_bytes(sector[24..28].try_into().expect("4 bytes")),
            method: u32::from_le_bytes(sector[28..32].try_into().expect("4 bytes")),
            offset: u64::from_le_bytes(sector[32..40].try_into().expect("8 bytes")),
            number: u64::from_le_bytes(sector[40..48].try_into().expect("8 bytes")),
        })
    }
}

fn stored(sector: &[u8]) -> u32 {
    u32::from_le_bytes(sector[CRC].try_into().expect("4 bytes"))
}

/// Returns the checksum of everything in a sector but the checksum itself.
fn checksum(sector: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sector[..CRC.start]);
    hasher.update(&sector[CRC.end..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp { run: [7; 16], file: 3, method: 2, offset: 8192, number: 99 }
    }

    #[test]
    fn every_sector_identifies_itself() {
        let mut block = [0; BLOCK];
        stamp().fill(&mut block);
        for (place, sector) in (0..).zip(block.chunks(SECTOR_BYTES)) {
            let expected = Stamp { offset: 8192 + 512 * place, ..stamp() };
            assert_eq!(Stamp::read(sector), Ok(expected));
        }
    }

    #[test]
    fn a_bit_anywhere_is_noticed() {
        let mut block = [0; SECTOR_BYTES];
        stamp().fill(&mut block);
        for bit in 0..SECTOR_BYTES * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Stamp::read(&block), Err(Unstamped::Foreign), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Stamp::read(&[0; SECTOR_BYTES]), Err(Unstamped::Zero));
        assert_eq!(Stamp::read(b"short"), Err(Unstamped::Foreign));
    }
}
