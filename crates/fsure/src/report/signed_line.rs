//! A checked signature, for a program.

use serde::Serialize;

use super::timestamp;
use fsure_integrity::model::SignatureInfo;

/// A signature that was checked.
#[derive(Serialize)]
pub(super) struct SignedLine {
    generation: u64,
    time: String,
    root: String,
    chain: String,
    head: String,
    key: String,
}

impl SignedLine {
    pub(super) fn of(signed: &SignatureInfo) -> Self {
        Self {
            generation: signed.generation,
            time: rfc3339(signed.at_s),
            root: signed.root.clone(),
            chain: signed.chain.clone(),
            head: signed.head.clone(),
            key: signed.key_id.clone(),
        }
    }
}

pub(super) fn rfc3339(at_s: i64) -> String {
    timestamp(at_s.saturating_mul(1_000_000_000)).to_string()
}
