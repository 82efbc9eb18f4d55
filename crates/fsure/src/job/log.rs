//! `log`: the history of a record. Nothing is read but the catalog.

use super::opening::require_record;
use crate::catalog::{Catalog, Place};
use crate::trust::{Chain, Verifier, check, head, signed, signer_of, statement};
use crate::words::digest::hex;
use crate::words::{ExitCode, Generation, Result, Signed, Verification};

/// What is known of how a record came to be.
#[derive(Clone, Debug)]
pub struct History {
    /// Its generations, the oldest first, with who claims to have signed each.
    pub generations: Vec<(Generation, Option<Claim>)>,
    /// What was verified, the oldest first.
    pub verifications: Vec<Verification>,
    /// Why the signed generations are not what was signed, if they are not; or
    /// why the key that was given is not the one that signed.
    pub objection: Option<String>,
    /// The newest signature, where a key was given and it fits.
    pub signed: Option<Signed>,
}

/// What a signed generation says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
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
        if self.objection.is_some() { ExitCode::RecordUntrusted } else { ExitCode::Clean }
    }
}

/// Reads the history of a root's record. With a key, the newest generation has
/// to bear its signature; without, the chain is followed all the same.
pub fn log(place: &Place, key: Option<&Verifier>) -> Result<History> {
    require_record(place)?;
    let catalog = Catalog::open(&place.catalog, None)?;
    let generations = catalog.generations()?;
    let verifications = catalog.verifications()?;
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
    Ok(History { generations: generations.collect(), verifications, objection, signed })
}

fn claim(generation: &Generation) -> Option<Claim> {
    let (seal, read) = statement(generation)?;
    let (files, bytes) = read.map_or((0, 0), |read| (read.files, read.bytes));
    Some(Claim {
        key_id: signer_of(seal).unwrap_or_else(|| "unknown".to_owned()),
        head: hex(&head(seal)),
        files,
        bytes,
    })
}
