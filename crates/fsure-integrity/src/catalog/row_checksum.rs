//! Seals: a row's own checksum, so that a record damaged by its medium is
//! told apart from a damaged file. The encoding is part of the stored format,
//! see `docs/catalog.md`.

use xxhash_rust::xxh3::xxh3_64;

/// Collects a row's columns in their order.
pub(super) struct RowChecksum {
    bytes: Vec<u8>,
}

impl RowChecksum {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::with_capacity(256) }
    }

    pub(super) fn integer(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            None => self.bytes.push(0),
            Some(value) => {
                self.bytes.push(1);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        self
    }

    pub(super) fn bytes(&mut self, value: Option<&[u8]>) -> &mut Self {
        match value {
            None => self.bytes.push(0),
            Some(value) => {
                let length = u32::try_from(value.len()).expect("a column is under 4 GiB");
                self.bytes.push(2);
                self.bytes.extend_from_slice(&length.to_le_bytes());
                self.bytes.extend_from_slice(value);
            }
        }
        self
    }

    /// Gives all that was collected to a digest; the sealer is empty again.
    pub(super) fn pass_on(&mut self, hasher: &mut blake3::Hasher) {
        hasher.update(&self.bytes);
        self.bytes.clear();
    }

    /// The seal over all that was collected; the sealer is empty again.
    pub(super) fn seal(&mut self) -> u64 {
        let seal = xxh3_64(&self.bytes);
        self.bytes.clear();
        seal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding is stored for decades: this value may never change.
    #[test]
    fn the_encoding_is_fixed() {
        let mut sealer = RowChecksum::new();
        sealer.integer(Some(-2)).integer(None).bytes(Some(b"a/b")).bytes(None);
        let written = b"\x01\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x02\x03\x00\x00\x00a/b\x00";
        assert_eq!(sealer.bytes, written);
        assert_eq!(sealer.seal(), xxh3_64(written));
    }

    #[test]
    fn columns_cannot_run_into_one_another() {
        let mut sealer = RowChecksum::new();
        let one = sealer.bytes(Some(b"ab")).bytes(Some(b"")).seal();
        let other = sealer.bytes(Some(b"a")).bytes(Some(b"b")).seal();
        assert_ne!(one, other);
    }
}
