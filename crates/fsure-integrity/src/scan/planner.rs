//! Decides what has to be read of a path for its verdict.

use super::entry_builder::{granularity_ns, known};
use super::known_damage::known_damage;
use super::moves::MoveTracker;
use super::{Purpose, ScanPlan, UpdateRules};
use crate::catalog::{Catalog, StoredRow};
use crate::model::{Entry, EntryKind, RecordState, Verdict};
use fsure_core::{AlgorithmSet, RelPath, Result};

/// Returns the digests for which a file has to be read; `None` if it need not be.
pub(super) fn digests_to_compute(
    plan: &ScanPlan,
    catalog: &Catalog,
    moves: &MoveTracker,
    path: &RelPath,
    stored: Option<&StoredRow>,
    entry: &Entry,
) -> Result<Option<AlgorithmSet>> {
    let granularity_ns = granularity_ns(catalog, stored, entry);
    let known = known(stored, entry, granularity_ns);
    Ok(match (&plan.purpose, known) {
        // A link or a folder has become this file: nothing to compare with.
        (Purpose::Verify, RecordState::Sound(record)) if record.entry.kind != EntryKind::File => {
            None
        }
        (Purpose::Update(rules), RecordState::Sound(record))
            if record.entry.kind != EntryKind::File =>
        {
            rules.accept.covers(path).then_some(rules.digests)
        }
        (Purpose::Status, _) | (Purpose::Verify, RecordState::Bad) => None,
        (Purpose::Update(UpdateRules { only_sizes: Some(sizes), .. }), _)
            if !sizes.may_be_shared(entry.size) =>
        {
            None
        }
        (Purpose::Verify, RecordState::Nothing) => moves.wants(entry)?,
        (Purpose::Verify, RecordState::Sound(record)) => Some(record.digests.algorithms()),
        (Purpose::Update(rules), RecordState::Nothing) => {
            (!rules.only_completes).then_some(rules.digests)
        }
        (Purpose::Update(rules), RecordState::Bad) => {
            rules.accept.covers(path).then_some(rules.digests)
        }
        (Purpose::Update(rules), RecordState::Sound(record)) => {
            let has = record.digests.algorithms();
            let is_racy = record.is_racy(granularity_ns)
                && !catalog.own_changes().contains(path, &record.entry)?;
            let is_as_recorded = record.entry.same_stat(entry)
                && !is_racy
                && record.gone_s.is_none()
                && has.covers(rules.digests)
                // What may have been put right below the file system.
                && known_damage(stored)
                    .is_none_or(|known| known.verdict == Verdict::Unreadable);
            let is_wanted = match rules.only_completes {
                true => !has.covers(rules.digests),
                false => rules.full || !is_as_recorded,
            };
            is_wanted.then_some(has.union(rules.digests))
        }
    })
}
