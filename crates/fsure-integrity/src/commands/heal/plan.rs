//! Chooses the source of each part of a file that is to be healed.

use std::collections::BTreeMap;

use super::proof::RecordProof;
use super::source_reader::{HealAttempt, HealFailure, SourceErrors, SourceFile, SourceReader};
use crate::model::{ByteRange, Entry, Finding, HealSource, push_range};
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
    /// True if the content is none at all, which needs no source but the record.
    is_of_nothing: bool,
}

impl SourcePlan {
    /// Chooses a proven copy of everything that is bad in a file.
    pub(super) fn choose(
        reader: &mut SourceReader<'_>,
        finding: &Finding,
        recorded: &RecordProof,
        candidates: &[SourceFile],
        troubles: &mut SourceErrors,
    ) -> HealAttempt<Self> {
        let mut plan = Self {
            size: recorded.size().unwrap_or(0),
            from: BTreeMap::new(),
            lacking: Vec::new(),
            is_of_nothing: recorded.size() == Some(0) && recorded.proves(&of_nothing(recorded)),
        };
        if plan.is_of_nothing {
            return Ok(plan);
        }
        for piece in bad_pieces(recorded, finding, candidates) {
            reader.go_on()?;
            let found = match recorded.is_by_blocks() {
                true => candidates
                    .iter()
                    .position(|one| reader.has_block(recorded, one, piece, troubles)),
                false => first_with_whole(reader, recorded, candidates, troubles)?,
            };
            match found {
                Some(place) => _ = plan.from.insert(piece, place),
                None => plan.lacking.push(piece),
            }
        }
        if let (None, Some(place)) = (recorded.size(), plan.from.get(&0)) {
            plan.size = candidates[*place].stat.size;
        }
        Ok(plan)
    }

    /// Returns the ranges that each source is to give.
    pub(super) fn taken(
        &self,
        recorded: &RecordProof,
        candidates: &[SourceFile],
    ) -> Vec<(HealSource, Vec<ByteRange>)> {
        if self.is_of_nothing {
            return vec![(HealSource::Record, Vec::new())];
        }
        let mut taken: BTreeMap<HealSource, Vec<ByteRange>> = BTreeMap::new();
        for (piece, place) in &self.from {
            let ranges = taken.entry(candidates[*place].origin.clone()).or_default();
            push_range(ranges, recorded.range(*piece, self.size));
        }
        taken.into_iter().collect()
    }

    /// Returns the ranges that no source has.
    pub(super) fn lacking(&self, recorded: &RecordProof) -> Vec<ByteRange> {
        let mut lacking = Vec::new();
        for piece in &self.lacking {
            push_range(&mut lacking, recorded.range(*piece, self.size));
        }
        lacking
    }

    /// Refuses a plan that lacks a piece, for the reasons that the sources gave.
    pub(super) fn require_complete(
        &self,
        recorded: &RecordProof,
        troubles: &SourceErrors,
    ) -> HealAttempt<()> {
        if self.lacking.is_empty() {
            return Ok(());
        }
        let what = if recorded.is_by_blocks() { "some of it" } else { "it" };
        Err(HealFailure::Unhealed(match troubles.summary() {
            reported if reported.is_empty() => format!("there is no proven copy of {what}"),
            reported => format!("there is no proven copy of {what} ({reported})"),
        }))
    }
}

fn first_with_whole(
    reader: &mut SourceReader<'_>,
    recorded: &RecordProof,
    candidates: &[SourceFile],
    troubles: &mut SourceErrors,
) -> HealAttempt<Option<usize>> {
    for (place, candidate) in candidates.iter().enumerate() {
        if reader.has_whole(recorded, candidate, troubles)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
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
