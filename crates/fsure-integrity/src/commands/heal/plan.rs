//! Chooses the source of each part of a file that is to be healed.

use std::collections::BTreeMap;

use super::healer::Healer;
use super::proof::RecordProof;
use super::source_reader::{HealAttempt, HealFailure, SourceErrors, SourceFile};
use crate::model::{ByteRange, Entry, Finding, HealResult, HealSource, push_range};
use fsure_core::block_hash::SequentialDigests;
use fsure_core::{Algorithm, Digests};

/// The sources from which a file is put together.
pub(super) struct SourcePlan {
    /// The length of the whole.
    pub(super) size: u64,
    /// The candidate for each piece that is not known to be good in the first one,
    /// which is then the damaged file itself. Key: number of the piece; value: index
    /// of the candidate.
    pub(super) from: BTreeMap<u64, usize>,
    /// The pieces that none has.
    lacking: Vec<u64>,
}

impl Healer<'_> {
    /// Finds a proven copy of everything that is bad in a file, and notes it in the
    /// remedy.
    pub(super) fn plan(
        &mut self,
        finding: &Finding,
        recorded: &RecordProof,
        candidates: &[SourceFile],
        troubles: &mut SourceErrors,
        remedy: &mut HealResult,
    ) -> HealAttempt<SourcePlan> {
        let mut plan = SourcePlan {
            size: recorded.size().unwrap_or(0),
            from: BTreeMap::new(),
            lacking: Vec::new(),
        };
        if plan.size == 0 && recorded.size().is_some() && recorded.proves(&of_nothing(recorded)) {
            remedy.taken = vec![(HealSource::Record, Vec::new())];
            return Ok(plan);
        }
        for piece in bad_pieces(recorded, finding, candidates) {
            self.reader.go_on()?;
            let found = match recorded.is_by_blocks() {
                true => candidates
                    .iter()
                    .position(|one| self.reader.has_block(recorded, one, piece, troubles)),
                false => self.first_with_whole(recorded, candidates, troubles)?,
            };
            match found {
                Some(place) => _ = plan.from.insert(piece, place),
                None => plan.lacking.push(piece),
            }
        }
        if let (None, Some(place)) = (recorded.size(), plan.from.get(&0)) {
            plan.size = candidates[*place].stat.size;
        }
        plan.tell(recorded, candidates, remedy);
        if plan.lacking.is_empty() {
            return Ok(plan);
        }
        let what = if recorded.is_by_blocks() { "some of it" } else { "it" };
        Err(HealFailure::Unhealed(match troubles.told() {
            told if told.is_empty() => format!("there is no proven copy of {what}"),
            told => format!("there is no proven copy of {what} ({told})"),
        }))
    }

    fn first_with_whole(
        &mut self,
        recorded: &RecordProof,
        candidates: &[SourceFile],
        troubles: &mut SourceErrors,
    ) -> HealAttempt<Option<usize>> {
        for (place, candidate) in candidates.iter().enumerate() {
            if self.reader.has_whole(recorded, candidate, troubles)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

impl SourcePlan {
    fn tell(&self, recorded: &RecordProof, candidates: &[SourceFile], remedy: &mut HealResult) {
        let mut taken: BTreeMap<HealSource, Vec<ByteRange>> = BTreeMap::new();
        for (piece, place) in &self.from {
            let ranges = taken.entry(candidates[*place].origin.clone()).or_default();
            push_range(ranges, recorded.range(*piece, self.size));
        }
        remedy.taken = taken.into_iter().collect();
        for piece in &self.lacking {
            push_range(&mut remedy.lacking, recorded.range(*piece, self.size));
        }
    }
}

/// Returns the pieces that have to be found: all of a file that is gone or cannot be
/// checked by its blocks, otherwise those that were found to be bad in it.
fn bad_pieces(recorded: &RecordProof, finding: &Finding, candidates: &[SourceFile]) -> Vec<u64> {
    let has_itself = candidates.first().is_some_and(|first| first.origin == HealSource::Itself);
    let Some(Entry { size: now, .. }) = finding.found.as_ref().filter(|_| has_itself) else {
        return (0..recorded.pieces()).collect();
    };
    let then = recorded.row.record.entry.size;
    let end = if then == *now { u64::MAX } else { then.min(*now) };
    recorded.touched(&[&finding.damaged[..], &finding.unreadable[..]].concat(), end)
}

/// The recorded kinds of digests, of no content at all.
fn of_nothing(recorded: &RecordProof) -> Digests {
    let wanted = recorded.row.record.digests.algorithms();
    let mut digests = Digests::default();
    if wanted.contains(Algorithm::Blake3) {
        digests.insert(Algorithm::Blake3, blake3::hash(b"").as_bytes());
    }
    if let Some(others) = SequentialDigests::new(wanted) {
        others.finish(&mut digests);
    }
    digests
}
