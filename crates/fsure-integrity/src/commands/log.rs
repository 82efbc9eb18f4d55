//! `log`: the history of a record. Nothing is read but the catalog.

use super::open_root::require_record;
use crate::catalog::{Catalog, RootLocation};
use crate::model::{
    GRAVE_FINDINGS_MAX, Generation, KnownDamage, SignatureInfo, VerdictCounts, Verification,
};
use crate::parity;
use crate::trust::{Chain, Verifier, check, head, signed, signer_of, statement};
use fsure_core::digest::hex;
use fsure_core::{ExitCode, RelPath, Result};

/// The history of a record.
#[derive(Clone, Debug)]
pub struct History {
    /// Its generations, the oldest first, each with the claim of its signer.
    pub generations: Vec<(Generation, Option<SignedGeneration>)>,
    /// Its verifications, the oldest first.
    pub verifications: Vec<Verification>,
    /// Files that are known to be damaged, in the order of paths, at most
    /// [`GRAVE_FINDINGS_MAX`].
    pub known_damage: Vec<(RelPath, KnownDamage)>,
    /// All such files, by the verdict of the run that last read them.
    pub damaged_files: VerdictCounts,
    /// True if recovery data are kept for the root, with which it may be healed.
    pub has_recovery_data: bool,
    /// The reason why the signed generations are not the ones that were signed, or why
    /// the given key is not the one that signed; `None` if there is no objection.
    pub objection: Option<String>,
    /// The newest signature, if a key was given and it fits.
    pub signed: Option<SignatureInfo>,
}

/// The unchecked claim of a signed generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedGeneration {
    /// The number of the key that the signature names.
    pub key_id: String,
    /// BLAKE3 of the statement, hexadecimal.
    pub head: String,
    /// Recorded files.
    pub files: u64,
    /// Their total size.
    pub bytes: u64,
}

impl History {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self.objection {
            Some(_) => ExitCode::RecordUntrusted,
            None => self.damaged_files.known_damage_code(),
        }
    }
}

/// Reads the history of a root's record. With a key, the newest generation has
/// to bear its signature; without, the chain is followed all the same.
pub fn log(place: &RootLocation, key: Option<&Verifier>) -> Result<History> {
    require_record(place)?;
    let catalog = Catalog::open(&place.catalog, None)?;
    let generations = catalog.history().generations()?;
    let verifications = catalog.history().verifications()?;
    let chain = match key {
        Some(key) => check(&generations, key).map(Some),
        None => Chain::follow(&generations).transpose(),
    };
    let (signed, objection) = match (chain, key) {
        (Ok(Some(chain)), Some(key)) => (Some(signed(&chain, key.id())), None),
        (Ok(_), _) => (None, None),
        (Err(why), _) => (None, Some(why)),
    };
    let generations = generations.into_iter().map(|one| {
        let claim = claim(&one);
        (one, claim)
    });
    let (known_damage, damaged_files) = known_damage(&catalog, &place.scope)?;
    Ok(History {
        has_recovery_data: parity::is_kept(&place.catalog),
        generations: generations.collect(),
        verifications,
        known_damage,
        damaged_files,
        objection,
        signed,
    })
}

/// Returns the number of the newest generation of a record, 0 before the first; `None` without
/// a record that can be read.
pub fn last_generation(place: &RootLocation) -> Option<u64> {
    require_record(place).ok()?;
    let catalog = Catalog::open(&place.catalog, None).ok()?;
    catalog.history().last_generation().ok()
}

/// Returns the first [`GRAVE_FINDINGS_MAX`] files below a path that are known to be
/// damaged, and the number of all such files by verdict.
fn known_damage(
    catalog: &Catalog,
    scope: &RelPath,
) -> Result<(Vec<(RelPath, KnownDamage)>, VerdictCounts)> {
    let (mut listed, mut files) = (Vec::new(), VerdictCounts::default());
    catalog.findings().each_damage(scope, &mut |path, known| {
        files.add(known.verdict);
        if listed.len() < GRAVE_FINDINGS_MAX {
            listed.push((path, known));
        }
    })?;
    Ok((listed, files))
}

fn claim(generation: &Generation) -> Option<SignedGeneration> {
    let (seal, read) = statement(generation)?;
    let (files, bytes) = read.map_or((0, 0), |read| (read.files, read.bytes));
    Some(SignedGeneration {
        key_id: signer_of(seal).unwrap_or_else(|| "unknown".to_owned()),
        head: hex(&head(seal)),
        files,
        bytes,
    })
}
