//! Options for the signature that a record must bear.

use std::path::Path;

use clap::{Args, ValueHint};
use fsure_core::{Error, Result};
use fsure_integrity::trust::{RollbackCheck, SignedBy, Verifier};
use fsure_integrity::{RecordAccess, UserConfig};

use super::headings::TRUST;
use super::user_dirs::{self, ACCEPT_UNSIGNED};

/// Options for the signature that the record must bear.
#[derive(Args)]
pub(crate) struct SignedByArgs {
    /// Believe the record only if it is as signed with this key: a public key
    /// of minisign, as a file or as text; 'none' for any record
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath, help_heading = TRUST)]
    signed_by: Option<String>,
    /// Take generation N or a later one, whatever this machine remembers
    #[arg(long, alias = "at-least", value_name = "N", conflicts_with = "expect_head",
          help_heading = TRUST)]
    min_generation: Option<u64>,
    /// Take only the record whose statement has this BLAKE3, whatever this
    /// machine remembers
    #[arg(long, alias = "head", value_name = "DIGEST", help_heading = TRUST)]
    expect_head: Option<String>,
}

impl SignedByArgs {
    /// The same as plain data.
    pub(crate) fn signed_by(
        &self,
        user: &UserConfig,
        access: RecordAccess,
    ) -> Result<Option<SignedBy>> {
        let key = self.signed_by.as_ref().or(user.signed_by.as_ref());
        let Some(key) = key.filter(|key| *key != ACCEPT_UNSIGNED) else {
            let is_asked = self.expect_head.is_some() || self.min_generation.is_some();
            return if is_asked { Err(no_key()) } else { Ok(None) };
        };
        let is_dry_run = access.is_dry_run;
        let not_before = match (&self.expect_head, self.min_generation) {
            (Some(head), _) => RollbackCheck::head(head).ok_or_else(|| Error::Usage {
                message: format!(
                    "--expect-head {head} is not a BLAKE3 digest of 64 hexadecimal digits"
                ),
                hint: None,
            })?,
            (None, Some(least)) => RollbackCheck::AtLeast(least),
            (None, None) => RollbackCheck::Remembered(user_dirs::memory(is_dry_run)?),
        };
        Ok(Some(SignedBy { key: public_key(key)?, not_before, is_dry_run }))
    }
}

fn no_key() -> Error {
    Error::Usage {
        message: "--min-generation and --expect-head are about a signature".to_owned(),
        hint: Some("'--signed-by KEY' says whose".to_owned()),
    }
}

/// A public key, by its text or the name of its file.
pub(crate) fn public_key(given: &str) -> Result<Verifier> {
    let text = if Verifier::is_text(given) {
        given.to_owned()
    } else {
        user_dirs::text(Path::new(given))?
    };
    Verifier::read(&text).ok_or_else(|| Error::Usage {
        message: format!("{given} is not a public key of minisign"),
        hint: Some("'minisign -G' makes a pair of keys".to_owned()),
    })
}
