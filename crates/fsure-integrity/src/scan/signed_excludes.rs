//! Pattern files as the walk kept to them. Under a signature they leave out only
//! what they were signed for: one that is another file for a moment, or there
//! for a moment only, would hide names.

use std::collections::HashMap;

use super::path_result::PathResult;
use crate::model::Verdict;
use fsure_core::block_hash::SequentialDigests;
use fsure_core::{Algorithm, Digests, RelPath};

/// Pattern files that the walk keeps to, with their texts, until they are judged.
#[derive(Default)]
pub(super) struct ObeyedPatterns(HashMap<RelPath, Vec<u8>>);

impl ObeyedPatterns {
    /// Notes a pattern file that the walk obeys.
    pub(super) fn add(&mut self, path: RelPath, text: Vec<u8>) {
        self.0.insert(path, text);
    }

    /// Compares the text that the walk obeyed with the row that the file is judged
    /// by. Any verdict but `Ok` and `Touched` changes the exit code by itself. Returns the
    /// reason not to trust the record, if there is one.
    pub(super) fn check(&mut self, result: &PathResult) -> Option<String> {
        // The rule, and it is asked for every path: no need to hash that.
        if self.0.is_empty() {
            return None;
        }
        let text = self.0.remove(&result.path)?;
        let is_well = matches!(result.verdict, Verdict::Ok | Verdict::Touched);
        let is_signed = result.row().is_some_and(|row| is_of(&text, &row.record.digests));
        (is_well && !is_signed).then(|| reason_to_distrust(&result.path))
    }

    /// Returns the reason not to trust the record for a pattern file without a verdict, if
    /// there is one: it was gone before it was judged.
    pub(super) fn check_unjudged(&self) -> Option<String> {
        self.0.keys().next().map(reason_to_distrust)
    }
}

fn reason_to_distrust(path: &RelPath) -> String {
    format!("names were left out by a {} that was not signed", path.display())
}

/// Returns true if a text has all digests that are recorded.
fn is_of(text: &[u8], recorded: &Digests) -> bool {
    let mut digests = Digests::default();
    digests.insert(Algorithm::Blake3, blake3::hash(text).as_bytes());
    if let Some(mut in_order) = SequentialDigests::new(recorded.algorithms()) {
        in_order.update(text);
        in_order.finish(&mut digests);
    }
    let is_same = |algorithm| recorded.get(algorithm) == digests.get(algorithm);
    recorded.algorithms().iter().all(is_same)
}
