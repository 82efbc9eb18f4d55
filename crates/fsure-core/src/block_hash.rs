//! Digests from blocks. A file over one block is hashed block by block in any
//! order: the blocks' BLAKE3 chaining values merge to the same value that
//! `b3sum` prints for the whole (BLAKE3 paper, section 2.1; `blake3::hazmat`).

use blake3::hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use sha2::digest::DynDigest;
use xxhash_rust::xxh3::Xxh3;

use super::{Algorithm, AlgorithmSet, Digests};

/// Bytes in a block.
pub const BLOCK: u64 = 1 << 20;

/// A block's BLAKE3 chaining value.
pub type BlockValue = [u8; 32];

/// Number of blocks in a file of `size` bytes.
pub fn block_count(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// The value of block number `block` of a file of more than one block.
pub fn block_value(block: u64, content: &[u8]) -> BlockValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(block * BLOCK).update(content);
    hasher.finalize_non_root()
}

/// The BLAKE3 value of a file from the values of all its blocks, at least two.
pub fn merge_blocks(values: &[BlockValue]) -> [u8; 32] {
    assert!(values.len() >= 2, "a file of one block has no block values");
    let (left, right) = values.split_at(left_count(values.len()));
    merge_subtrees_root(&merge_subtree(left), &merge_subtree(right), Mode::Hash).into()
}

fn merge_subtree(values: &[BlockValue]) -> BlockValue {
    if let [value] = values {
        return *value;
    }
    let (left, right) = values.split_at(left_count(values.len()));
    merge_subtrees_non_root(&merge_subtree(left), &merge_subtree(right), Mode::Hash)
}

/// Blocks in the left subtree: the largest power of two that leaves some to
/// the right.
fn left_count(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// The digest of an empty file.
pub fn of_nothing(algorithm: Algorithm) -> Vec<u8> {
    let mut digests = Digests::default();
    match SequentialDigests::new(AlgorithmSet::of(&[algorithm])) {
        Some(in_order) => in_order.finish(&mut digests),
        None => digests.insert(algorithm, blake3::hash(b"").as_bytes()),
    }
    digests.get(algorithm).unwrap_or_default().to_vec()
}

/// The digests that need a file's bytes in their order.
pub struct SequentialDigests {
    hashers: Vec<(Algorithm, Box<dyn DynDigest + Send>)>,
    xxh128: Option<Box<Xxh3>>,
    crc32: Option<crc32fast::Hasher>,
}

impl SequentialDigests {
    /// Hashers for all of a set but BLAKE3; `None` where nothing is left.
    pub fn new(algorithms: AlgorithmSet) -> Option<Self> {
        let mut hashers: Vec<(Algorithm, Box<dyn DynDigest + Send>)> = Vec::new();
        let (mut xxh128, mut crc32) = (None, None);
        for algorithm in algorithms.iter() {
            match algorithm {
                Algorithm::Blake3 => {}
                Algorithm::Sha256 => hashers.push((algorithm, Box::new(sha2::Sha256::default()))),
                Algorithm::Sha512 => hashers.push((algorithm, Box::new(sha2::Sha512::default()))),
                Algorithm::Sha1 => hashers.push((algorithm, Box::new(sha1::Sha1::default()))),
                Algorithm::Md5 => hashers.push((algorithm, Box::new(md5::Md5::default()))),
                Algorithm::Xxh128 => xxh128 = Some(Box::default()),
                Algorithm::Crc32 => crc32 = Some(crc32fast::Hasher::new()),
            }
        }
        let is_any = !hashers.is_empty() || xxh128.is_some() || crc32.is_some();
        is_any.then_some(Self { hashers, xxh128, crc32 })
    }

    /// Goes on with what comes next.
    pub fn update(&mut self, content: &[u8]) {
        for (_, hasher) in &mut self.hashers {
            hasher.update(content);
        }
        if let Some(hasher) = &mut self.xxh128 {
            hasher.update(content);
        }
        if let Some(hasher) = &mut self.crc32 {
            hasher.update(content);
        }
    }

    /// Adds the values to others of the same content.
    pub fn finish(self, digests: &mut Digests) {
        for (algorithm, hasher) in self.hashers {
            digests.insert(algorithm, &hasher.finalize());
        }
        if let Some(hasher) = self.xxh128 {
            digests.insert(Algorithm::Xxh128, &hasher.digest128().to_be_bytes());
        }
        if let Some(hasher) = self.crc32 {
            digests.insert(Algorithm::Crc32, &hasher.finalize().to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hex;

    #[test]
    fn merged_blocks_are_the_ordinary_digest() {
        const B: usize = BLOCK as usize;
        let content: Vec<u8> = (0..9 * B + 2000).map(|at| (at % 251) as u8).collect();
        let lengths =
            (1..=9).flat_map(|n| [n * B - 1025, n * B - 1, n * B, n * B + 1, n * B + 1024]);
        for length in lengths.filter(|length| *length > B) {
            let content = &content[..length];
            let blocks = content.chunks(B).enumerate();
            let values: Vec<_> =
                blocks.map(|(block, bytes)| block_value(block as u64, bytes)).collect();
            assert_eq!(values.len() as u64, block_count(length as u64));
            assert_eq!(merge_blocks(&values), *blake3::hash(content).as_bytes(), "{length}");
        }
    }

    /// Values for `abc` from FIPS 180-4, RFC 1321, `xxhsum -H2` and `gzip -lv`.
    #[test]
    fn digests_of_abc() {
        let mut in_order = SequentialDigests::new(AlgorithmSet::of(&Algorithm::ALL)).unwrap();
        in_order.update(b"a");
        in_order.update(b"bc");
        let mut digests = Digests::default();
        in_order.finish(&mut digests);
        for (algorithm, value) in [
            (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                Algorithm::Sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
            (Algorithm::Xxh128, "06b05ab6733a618578af5f94892f3950"),
            (Algorithm::Crc32, "352441c2"),
        ] {
            assert_eq!(hex(digests.get(algorithm).unwrap()), value, "{}", algorithm.name());
        }
        assert_eq!(digests.blake3, None);
        assert!(SequentialDigests::new(AlgorithmSet::of(&[Algorithm::Blake3])).is_none());
    }
}
