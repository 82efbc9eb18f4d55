//! Bytes that identify their write, and show if they are incomplete: a number (8 bytes,
//! little endian), filling that follows from it, and a CRC-32 of everything before (4
//! bytes). They have any length, since a log consists of records that cross sectors and
//! pages; [`fsure_powercut::Stamp`] is for whole sectors.

use fsure_core::Random;

const HEAD: usize = 8;
const TAIL: usize = 4;

/// Result of reading bytes that should be a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadCheck {
    /// A write, whole.
    Whole(u64),
    /// Nothing at all.
    Empty,
    /// Zeros only, as many as the write has bytes, or fewer.
    Zero,
    /// Something else: half of a write, or two in one.
    Broken,
}

/// Fills bytes for a write.
///
/// # Panics
/// If they are fewer than a number and a checksum.
pub(super) fn fill(bytes: &mut [u8], number: u64) {
    let (head, rest) = bytes.split_at_mut(HEAD);
    head.copy_from_slice(&number.to_le_bytes());
    let filled = rest.len() - TAIL;
    let mut random = Random::new(number);
    for word in rest[..filled].chunks_mut(8) {
        word.copy_from_slice(&random.next_bits().to_le_bytes()[..word.len()]);
    }
    let before = bytes.len() - TAIL;
    let sum = crc32fast::hash(&bytes[..before]);
    bytes[before..].copy_from_slice(&sum.to_le_bytes());
}

/// Reads bytes that should be a write of this length.
pub(super) fn look(bytes: &[u8], length: usize) -> PayloadCheck {
    if bytes.is_empty() {
        return PayloadCheck::Empty;
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return PayloadCheck::Zero;
    }
    let Some((before, sum)) = bytes.split_last_chunk::<TAIL>() else { return PayloadCheck::Broken };
    if bytes.len() != length || crc32fast::hash(before).to_le_bytes() != *sum {
        return PayloadCheck::Broken;
    }
    let number = before.first_chunk::<HEAD>().map(|number| u64::from_le_bytes(*number));
    number.map_or(PayloadCheck::Broken, PayloadCheck::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_empty_zero_and_broken_are_distinguished() {
        for length in [12, 100, 4012] {
            let mut bytes = vec![0; length];
            fill(&mut bytes, 4711);
            assert_eq!(look(&bytes, length), PayloadCheck::Whole(4711));
            assert_eq!(look(&[], length), PayloadCheck::Empty);
            assert_eq!(look(&vec![0; length], length), PayloadCheck::Zero);
            assert_eq!(look(&bytes[..length - 1], length), PayloadCheck::Broken);
            assert_eq!(look(&bytes, length + 1), PayloadCheck::Broken);
            for bit in 0..length * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(look(&bytes, length), PayloadCheck::Broken, "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert_eq!(look(&[1, 2, 3], 100), PayloadCheck::Broken);
    }
}
