//! Pattern files as the walk kept to them. Under a signature they leave out only
//! what they were signed for: one that is another file for a moment, or there
//! for a moment only, would hide names.

use super::result_recorder::{PathResult, ResultRecorder};
use crate::model::Verdict;
use fsure_core::block_hash::SequentialDigests;
use fsure_core::{Algorithm, Digests, RelPath};

impl ResultRecorder<'_> {
    /// Notes a pattern file that the walk obeys.
    pub(super) fn remember_exclude_file(&mut self, path: RelPath, text: Vec<u8>) {
        if self.plan.binds_claims {
            self.obeyed.insert(path, text);
        }
    }

    /// Compares the text that the walk obeyed with the row that the file is judged
    /// by. Any verdict but `Ok` and `Touched` changes the exit code by itself.
    pub(super) fn check_exclude_file(&mut self, settled: &PathResult) {
        let Some(text) = self.obeyed.remove(&settled.path) else { return };
        let is_well = matches!(settled.verdict, Verdict::Ok | Verdict::Touched);
        let is_signed = settled.row().is_some_and(|row| is_of(&text, &row.record.digests));
        if is_well && !is_signed {
            self.distrust_patterns(&settled.path);
        }
    }

    /// Handles pattern files without a verdict: they were gone before they were judged.
    pub(super) fn end_obeyed(&mut self) {
        if let Some(path) = self.obeyed.keys().next().cloned() {
            self.distrust_patterns(&path);
        }
    }

    fn distrust_patterns(&mut self, path: &RelPath) {
        let why = format!("names were left out by a {} that was not signed", path.display());
        self.outcome.record_untrusted.get_or_insert(why);
    }
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
