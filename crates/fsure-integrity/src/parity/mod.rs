//! Recovery data for files without a second copy: groups of shards and their
//! Reed-Solomon code, one file for each. `docs/parity.md` is the format. Rebuilt
//! data is a proposal: the caller compares it with the record.

mod group;
mod reed_solomon;

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fsure_os::user_file::{self, AtomicFile};

pub use group::{
    GroupFile, GroupHeader, GroupHeaderInfo, Member, ParityGroup, SHARD, read_header, shards,
};
pub use reed_solomon::{encode, restore};

use fsure_core::{Digests, RelPath};

/// Bytes of a large file in one group.
pub const OWN_MAX: u64 = 64 << 20;

/// Bytes of small files in one group: what a change to one of them costs.
pub const POOL_MAX: u64 = 16 << 20;

/// Small files in one group, which has a line for each.
pub const POOL_FILES_MAX: usize = 8192;

const SETTING: &str = "redundancy";
const SETTING_HEAD: &str = "fsure parity 1";

/// The folder with the recovery data of a catalog.
pub fn folder(catalog: &Path) -> PathBuf {
    fsure_os::path::with_suffix(catalog, ".parity")
}

/// The name of a group of a large file.
pub fn own_name(path: &RelPath, number: u64) -> String {
    let digits = fsure_core::digest::hex(&blake3::hash(path.as_bytes()).as_bytes()[..16]);
    format!("{digits}-{number}.own")
}

/// The names of all groups with such an ending, in order.
pub fn names(folder: &Path, ending: &str) -> io::Result<Vec<String>> {
    let names = match user_file::names(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let names = names.into_iter().filter_map(|name| String::from_utf8(name).ok());
    Ok(names.filter(|name| name.ends_with(ending) && !name.contains(".making-")).collect())
}

/// Returns 32 bytes that identify a recorded content: its BLAKE3 digest, or a digest of
/// all its recorded digests if it has none. They are equal only if the recorded content
/// is.
pub fn identity(digests: &Digests) -> [u8; 32] {
    digests.blake3.unwrap_or_else(|| {
        let mut hasher = blake3::Hasher::new();
        for algorithm in digests.algorithms().iter() {
            hasher.update(algorithm.name().as_bytes());
            hasher.update(digests.get(algorithm).expect("it is in the set"));
        }
        *hasher.finalize().as_bytes()
    })
}

/// Returns the redundancy that a folder was made with, in per mille; `None` if there is
/// no such folder.
pub fn redundancy(folder: &Path) -> io::Result<Option<u32>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("'{SETTING}': {error}"));
    let file = match user_file::open_own(&folder.join(SETTING)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(named)?,
    };
    let mut text = String::new();
    file.take(1000).read_to_string(&mut text).map_err(named)?;
    let per_mille = text.strip_prefix(SETTING_HEAD).and_then(|rest| rest.trim().parse().ok());
    let per_mille = per_mille.filter(|per_mille| (1..=1000).contains(per_mille));
    let damaged = || named(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"));
    per_mille.map(Some).ok_or_else(damaged)
}

/// Returns true if recovery data are kept for a catalog.
pub fn is_kept(catalog: &Path) -> bool {
    !catalog.as_os_str().is_empty() && matches!(redundancy(&folder(catalog)), Ok(Some(_)))
}

/// Remembers the redundancy.
pub fn set_redundancy(folder: &Path, per_mille: u32) -> io::Result<()> {
    let mut file = AtomicFile::create(&folder.join(SETTING))?;
    file.write_all(format!("{SETTING_HEAD}\n{per_mille}\n").as_bytes())?;
    file.finish()
}

/// Recovery shards of a group of so many.
pub fn recovery_count(shards: u32, per_mille: u32) -> u32 {
    let count = (u64::from(shards) * u64::from(per_mille)).div_ceil(1000).max(1);
    u32::try_from(count).expect("no more than the shards, or one")
}
