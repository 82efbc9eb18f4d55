//! Options for the signature that a record must bear.

use std::path::Path;

use clap::Args;
use fsure_core::{Error, Result};
use fsure_integrity::UserConfig;
use fsure_integrity::trust::{RollbackCheck, SignedBy, Verifier};

use super::user_dirs::{self, ACCEPT_UNSIGNED};

/// Options for the signature that the record must bear.
#[derive(Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct SignedByArgs {
    /// Believe the record only if it is as signed with this key: a public key
    /// of minisign, as a file or as text; 'none' for any record
    #[arg(long, value_name = "KEY")]
    signed_by: Option<String>,
    /// Take generation N or a later one, whatever this machine remembers
    #[arg(long, value_name = "N", conflicts_with = "head")]
    at_least: Option<u64>,
    /// Take only the record whose statement has this BLAKE3, whatever this
    /// machine remembers
    #[arg(long, value_name = "DIGEST")]
    head: Option<String>,
}

impl SignedByArgs {
    /// The same as plain data.
    pub(crate) fn signed_by(&self, user: &UserConfig) -> Result<Option<SignedBy>> {
        let key = self.signed_by.as_ref().or(user.signed_by.as_ref());
        let Some(key) = key.filter(|key| *key != ACCEPT_UNSIGNED) else {
            let is_asked = self.head.is_some() || self.at_least.is_some();
            return if is_asked { Err(no_key()) } else { Ok(None) };
        };
        let not_before = match (&self.head, self.at_least) {
            (Some(head), _) => RollbackCheck::head(head).ok_or_else(|| Error::Usage {
                message: format!("--head {head} is no BLAKE3 of 64 hexadecimal digits"),
                hint: None,
            })?,
            (None, Some(least)) => RollbackCheck::AtLeast(least),
            (None, None) => RollbackCheck::Remembered(user_dirs::memory()?),
        };
        Ok(Some(SignedBy { key: public_key(key)?, not_before }))
    }
}

fn no_key() -> Error {
    Error::Usage {
        message: "--at-least and --head are about a signature".to_owned(),
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
        message: format!("{given} is no public key of minisign"),
        hint: Some("'minisign -G' makes a pair of keys".to_owned()),
    })
}
