//! Computes the claims of a record as one digest that resists forgery: the rows in the
//! order of their paths, without the values that change although nothing new is claimed.
//! `docs/trust.md` specifies the format, which is stored for decades.

use super::records::PageStart;
use super::root_options::RootOptions;
use super::row::{StoredMetadata, StoredRow, kind_code};
use super::row_checksum::RowChecksum;
use super::store::Catalog;
use crate::model::EntryKind;
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result};

/// The claims of a record, on the way to their digest.
pub struct Claims {
    hasher: blake3::Hasher,
    encoder: RowChecksum,
    claimed: Claimed,
}

/// The claims of a record: their digest and their counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The digest of all claims.
    pub digest: [u8; 32],
    /// Recorded files.
    pub files: u64,
    /// Recorded folders.
    pub folders: u64,
    /// Recorded links.
    pub links: u64,
    /// Tombstones of any kind.
    pub gone: u64,
    /// Total size of the files.
    pub bytes: u64,
    /// Files without a digest that withstands forgers.
    pub weak: u64,
    /// Rows that fail their own seal.
    pub bad: u64,
}

impl Default for Claims {
    fn default() -> Self {
        let mut claims = Self {
            hasher: blake3::Hasher::new(),
            encoder: RowChecksum::new(),
            claimed: Claimed::default(),
        };
        claims.encoder.bytes(Some(b"fsure claims 1"));
        claims
    }
}

impl Claims {
    /// Adds the next row, in the order of paths.
    pub fn add(&mut self, stored: &StoredRow) {
        let StoredRow::Sound(row) = stored else {
            // No sound row encodes like this.
            self.encoder.integer(None);
            self.claimed.bad += 1;
            return;
        };
        let (record, entry) = (&row.record, &row.record.entry);
        self.encoder
            .bytes(Some(record.path.as_bytes()))
            .integer(Some(kind_code(entry.kind)))
            .integer(Some(entry.size.cast_signed()))
            .integer(Some(entry.mtime_ns))
            .bytes(entry.target.as_deref());
        for algorithm in Algorithm::ALL {
            self.encoder.bytes(record.digests.get(algorithm));
        }
        self.encoder.integer(record.gone_s);
        match row.metadata() {
            None => self.encoder.bytes(None),
            Some(StoredMetadata::Sound(metadata)) => self.encoder.bytes(Some(&metadata.encode())),
            Some(StoredMetadata::Bad) => {
                self.claimed.bad += 1;
                self.encoder.integer(Some(0))
            }
        };
        self.encoder.pass_on(&mut self.hasher);
        let claimed = &mut self.claimed;
        match entry.kind {
            _ if row.is_gone() => claimed.gone += 1,
            EntryKind::Folder => claimed.folders += 1,
            EntryKind::File => {
                claimed.files += 1;
                claimed.bytes = claimed.bytes.wrapping_add(entry.size);
                claimed.weak += u64::from(is_weak(record.digests.algorithms()));
            }
            _ => claimed.links += 1,
        }
    }

    /// Adds the folders that have records of their own and what the record was
    /// asked to keep, and ends.
    pub fn finish(mut self, nested: &[RelPath], choices: RootOptions) -> Claimed {
        self.encoder.integer(Some(nested.len() as i64));
        for path in nested {
            self.encoder.bytes(Some(path.as_bytes()));
        }
        let (meta, layout) = choices.claims();
        self.encoder
            .bytes(Some(meta.to_string().as_bytes()))
            .bytes(Some(layout.name().as_bytes()))
            .pass_on(&mut self.hasher);
        Claimed { digest: *self.hasher.finalize().as_bytes(), ..self.claimed }
    }
}

/// Returns true if none of these algorithms prevents an attacker from making other
/// content of the same digest.
fn is_weak(algorithms: AlgorithmSet) -> bool {
    let strong = [Algorithm::Blake3, Algorithm::Sha256, Algorithm::Sha512];
    !strong.into_iter().any(|algorithm| algorithms.contains(algorithm))
}

impl Claimed {
    /// Computes the claims that a record makes now.
    pub fn of(catalog: &mut Catalog) -> Result<Self> {
        let mut claims = Claims::default();
        // A row of the empty path would be no path below the root: it is seen.
        let mut page = catalog.page(&PageStart::From(b""), None)?;
        while let Some(last) = page.last() {
            let last = last.path().clone();
            page.iter().for_each(|stored| claims.add(stored));
            page = catalog.page(&PageStart::After(last.as_bytes()), None)?;
        }
        Ok(claims.finish(&catalog.nested_roots().all()?, catalog.options()))
    }
}
