//! Tells a list of SHA-256 from one of BLAKE3 by the content of a file. Both have 64 digits, and
//! most lists do not name what they have: a list that is taken for the other one calls each sound
//! file damaged.

use std::io::Read as _;

use fsure_os::path as os_path;
use fsure_os::user_file;
use fsure_os::{Kind, root_dir::Root};
use sha2::{Digest as _, Sha256};

use super::list_records::{any, named};
use crate::catalog::RootLocation;
use crate::manifest::{ManifestEntry, ManifestFormat, ManifestSource};
use crate::model::ScanMonitor;
use fsure_core::{Algorithm, RelPath, Result};

/// Larger files are not read for this.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files that are read at most: a damaged one proves nothing.
const FILES_TRIED_MAX: usize = 3;

/// Returns the list in the form that the content of a small file of it proves, if the form that
/// was recognised is only the usual one.
pub(super) fn in_proven_form(
    place: &RootLocation,
    root: &Root,
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
) -> Result<ManifestSource> {
    let (read_as, other) = match source.format {
        ManifestFormat::Sha256sums => (Algorithm::Sha256, ManifestFormat::B3sum),
        ManifestFormat::B3sum => (Algorithm::Blake3, ManifestFormat::Sha256sums),
        _ => return Ok(source.clone()),
    };
    if !source.is_recognised {
        return Ok(source.clone());
    }
    let (mut tried, mut is_other) = (0, None);
    let mut file = RelPath::root();
    any(source, monitor, &mut |listed| {
        // A list of other digests is settled without a look at its files.
        let Some(digest) = listed.digests.get(read_as) else { return false };
        let Some(content) = small_file(place, root, listed) else { return false };
        let is_sha256 = digest == Sha256::digest(&content).as_slice();
        let is_blake3 = digest == blake3::hash(&content).as_bytes();
        is_other = match read_as {
            Algorithm::Sha256 if is_sha256 || is_blake3 => Some(is_blake3),
            _ if is_sha256 || is_blake3 => Some(is_sha256),
            _ => None,
        };
        file = listed.path.clone();
        tried += 1;
        is_other.is_some() || tried == FILES_TRIED_MAX
    })?;
    if is_other != Some(true) {
        return Ok(source.clone());
    }
    monitor.warn(&format!(
        "the digests of {} were taken for {}, and {} shows that they are not: the list is read as \
         '--format {}'",
        source.label().display(),
        read_as.name(),
        file.display(),
        other.name()
    ));
    let mut proven = source.clone();
    proven.format = other;
    Ok(proven)
}

/// Returns the content of a listed file; `None` if it is large or cannot be read.
fn small_file(place: &RootLocation, root: &Root, listed: &ManifestEntry) -> Option<Vec<u8>> {
    let named = named(root, &place.scope, listed);
    named.there.filter(|stat| stat.kind == Kind::File && stat.size <= FILE_BYTES_MAX)?;
    let path = place.root.join(os_path::from_bytes(named.path.as_bytes()));
    let mut content = Vec::new();
    let file = user_file::open_regular(&path).ok()?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
    Some(content)
}
