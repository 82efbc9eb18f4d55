//! Floor 3, beside the pipeline: for whom a record is believed. `docs/trust.md`
//! has the forger, the promises and the formats.

mod chain;
mod key;
mod seen_chains;
mod statement;

use std::path::PathBuf;

use fsure_os::path as os_path;

pub use chain::describe;
pub(crate) use chain::{Chain, check};
pub(crate) use key::signer_of;
pub use key::{LockedKey, Signer, Verifier};
pub(crate) use seen_chains::SeenChains;
pub(crate) use statement::{Statement, head, statement, unhex};

use crate::catalog::{Catalog, Claimed, RootLocation};
use crate::model::{Outcome, Scopes, SignatureInfo};
use fsure_core::digest::hex;
use fsure_core::{Error, Result};

/// The key that must have signed a record, and the generation that the record must have.
#[derive(Clone, Debug)]
pub struct SignedBy {
    /// The key.
    pub key: Verifier,
    /// The oldest state of the record that is accepted.
    pub not_before: RollbackCheck,
    /// Remember nothing, and make no memory.
    pub is_dry_run: bool,
}

/// The criterion that detects a record that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollbackCheck {
    /// By what this machine has seen, in this file.
    Remembered(PathBuf),
    /// By the number of the generation that it must at least have.
    AtLeast(u64),
    /// It is exactly this one: BLAKE3 of its statement.
    Head([u8; 32]),
}

impl RollbackCheck {
    /// The head in hexadecimal text.
    pub fn head(text: &str) -> Option<Self> {
        unhex(text).map(Self::Head)
    }
}

/// A record that is signed, as far as it could be seen before it is used.
pub(crate) struct Trusted<'a> {
    by: &'a SignedBy,
    place: &'a RootLocation,
    chain: Chain,
}

impl SignedBy {
    /// Refuses a record that this key has not signed as it is.
    /// `config` is BLAKE3 of the `config.toml` that the run keeps to.
    pub(crate) fn check<'a>(
        &'a self,
        place: &'a RootLocation,
        catalog: &mut Catalog,
        config: Option<[u8; 32]>,
    ) -> Result<Trusted<'a>> {
        let refuse = |why: String| Err(refused(place, why));
        let chain = match check(&catalog.history().generations()?, &self.key) {
            Ok(chain) => chain,
            Err(why) => return refuse(why),
        };
        let newest = &chain.newest;
        if newest.config != config {
            return refuse(".fsure/config.toml is not the one that was signed".to_owned());
        }
        if newest.cross_file_systems != catalog.settings().cross_file_systems {
            return refuse(
                "it crosses into other file systems, or stops at them, other than when it was \
                 signed"
                    .to_owned(),
            );
        }
        if let Some(why) = self.is_old(place, &chain)? {
            return refuse(why);
        }
        let claimed = Claimed::of(catalog)?;
        if claimed.bad > 0 {
            return refuse(format!("{} of its rows fail their own seal", claimed.bad));
        }
        if !newest.is_of(&claimed) {
            let number = newest.generation;
            return refuse(format!(
                "its rows are not those that were signed as generation {number}"
            ));
        }
        if claimed.weak > 0 {
            return refuse(weak(claimed.weak));
        }
        Ok(Trusted { by: self, place, chain })
    }

    fn is_old(&self, place: &RootLocation, chain: &Chain) -> Result<Option<String>> {
        let number = chain.newest.generation;
        Ok(match &self.not_before {
            RollbackCheck::AtLeast(least) if number < *least => Some(format!(
                "generation {number} is the last signed one here, but at least {least} was \
                 requested"
            )),
            RollbackCheck::Head(head) if *head != chain.head() => {
                Some("its newest statement is not the requested one".to_owned())
            }
            RollbackCheck::AtLeast(_) | RollbackCheck::Head(_) => None,
            RollbackCheck::Remembered(file) if self.is_dry_run && !os_path::exists(file) => None,
            RollbackCheck::Remembered(file) => {
                let memory = SeenChains::open(file).map_err(|why| forgetful(file, why))?;
                let asked = memory.objection(&place_of(place), &self.key, Some(chain));
                let objection = asked.map_err(|why| forgetful(file, why))?;
                if objection.is_none() && !self.is_dry_run {
                    memory.require_writable().map_err(|why| unable_to_remember(file, why))?;
                }
                objection
            }
        })
    }
}

impl Trusted<'_> {
    /// Completes the check after a run: with the rows that it came by, or if it was for a
    /// selection, which does not come by all of them, with those that are there now.
    pub(crate) fn conclude_over(
        self,
        scopes: &Scopes,
        outcome: &mut Outcome,
        catalog: &mut Catalog,
    ) -> Result<()> {
        match scopes.is_one() {
            true => self.conclude(outcome),
            false => self.conclude_again(outcome, catalog),
        }
    }

    /// A run that does not come by every row has the record looked at once more,
    /// with the rows as they are in `again`.
    pub(crate) fn conclude_again(self, outcome: &mut Outcome, again: &mut Catalog) -> Result<()> {
        outcome.claims = Some(Claimed::of(again)?.digest);
        self.conclude(outcome)
    }

    /// Completes the check of the signature when the run is over: only then is it certain
    /// that the rows used for judging are the signed ones.
    pub(crate) fn conclude(self, outcome: &mut Outcome) -> Result<()> {
        if outcome.stopped.is_some() || outcome.offline.is_some() {
            return Ok(());
        }
        if outcome.claims != Some(self.chain.newest.record) {
            let why = "its rows were changed while they were judged; they are not those that \
                       were signed";
            outcome.record_untrusted.get_or_insert(why.to_owned());
        }
        if outcome.record_untrusted.is_some() {
            return Ok(());
        }
        if let RollbackCheck::Remembered(file) = &self.by.not_before
            && !self.by.is_dry_run
        {
            remember(file, self.place, &self.by.key, &self.chain)?;
        }
        outcome.signed = Some(signed(&self.chain, self.by.key.id()));
        Ok(())
    }
}

/// Returns the facts that are reported of a signature.
pub(crate) fn signed(chain: &Chain, key_id: String) -> SignatureInfo {
    let newest = &chain.newest;
    SignatureInfo {
        generation: newest.generation,
        at_s: newest.at_s,
        root: newest.root.clone(),
        chain: hex(&newest.chain),
        head: hex(&chain.head()),
        key_id,
    }
}

/// Remembers a chain.
pub(crate) fn remember(
    file: &std::path::Path,
    place: &RootLocation,
    key: &Verifier,
    chain: &Chain,
) -> Result<()> {
    let memory = SeenChains::open(file);
    let remembered = memory.and_then(|memory| memory.remember(&place_of(place), key, chain));
    remembered.map_err(|why| forgetful(file, why))
}

/// The name of a record in the memory: that of its file.
pub(crate) fn place_of(place: &RootLocation) -> Vec<u8> {
    os_path::bytes(&place.catalog).into_owned()
}

/// Returns the reason why some files cannot be signed.
pub(crate) fn weak(files: u64) -> String {
    let (files, have) =
        if files == 1 { ("1 file".to_owned(), "has") } else { (format!("{files} files"), "have") };
    format!("{files} of it {have} no digest that withstands a forger (BLAKE3, SHA-256, SHA-512)")
}

/// The error for a record that its signature does not hold.
pub(crate) fn refused(place: &RootLocation, why: String) -> Error {
    Error::RecordUntrusted {
        catalog: place.catalog.clone(),
        why,
        hint: format!(
            "nothing was judged. '{}' shows what was recorded and signed; if all of it is known \
             to be right, '{} --sign KEY' signs it. An old copy is judged with '--min-generation N'",
            place.command("log"),
            place.command("seal")
        ),
        is_recoverable: false,
    }
}

/// The error for a memory that can be read and not written.
pub(crate) fn unable_to_remember(file: &std::path::Path, why: String) -> Error {
    Error::RecordUntrusted {
        catalog: file.to_owned(),
        why: format!("the signature of this record could not be remembered there ({why})"),
        hint:
            "make it writable for this user; '--expect-head DIGEST' or '--min-generation N' says \
               what to expect, and asks no memory"
                .to_owned(),
        is_recoverable: false,
    }
}

/// The error for a memory that does not work.
pub(crate) fn forgetful(file: &std::path::Path, why: String) -> Error {
    Error::RecordUntrusted {
        catalog: file.to_owned(),
        why: format!("what was signed before is not known ({why})"),
        hint:
            "'--expect-head DIGEST' or '--min-generation N' says what to expect, and asks no memory"
                .to_owned(),
        is_recoverable: false,
    }
}
