//! Stage 2: decides for a path that is there if its verdict is known, if it has to wait for
//! other names, or what has to be read of it. Asks the record only by [`PlanLookup`].

use super::candidate::Candidate;
use super::path_result::PathResult;
use super::{Purpose, UpdateRules};
use crate::model::{Entry, EntryKind, Evidence, RecordState, Verdict};
use fsure_core::{AlgorithmSet, RelPath, Result};

/// The next step for a path that is there.
// It goes from hand to hand once for each path.
#[allow(clippy::large_enum_variant)]
pub(super) enum Planned {
    /// Nothing is recorded and nothing is reported of it.
    Nothing,
    /// Its verdict is known by its stat.
    Done(PathResult),
    /// It is not recorded, and might be a recorded path under another name.
    WaitsForNames(Candidate),
    /// It is a folder, whose verdict waits for its names.
    Folder(Candidate),
    /// Its content is read for these digests.
    Read(Candidate, AlgorithmSet),
}

/// The questions of the planner that are answered by a query, and asked for few paths.
pub(super) trait PlanLookup {
    /// Returns the digests by which an entry that is not recorded could be found to be a missed
    /// file; `None` if no missed file has its size.
    fn digests_of_missed(&self, entry: &Entry) -> Result<Option<AlgorithmSet>>;

    /// Returns true if fsure itself made this state of a file.
    fn is_own_change(&self, path: &RelPath, entry: &Entry) -> Result<bool>;
}

/// The state of a run as far as plans depend on it.
#[derive(Clone, Copy)]
pub(super) struct PlanState {
    /// True while names that are not recorded wait for those that are gone.
    pub(super) names_wait: bool,
    /// True if other dates explain nothing in the tree.
    pub(super) dates_explain_nothing: bool,
}

/// Plans a path that is there.
pub(super) fn plan_path(
    purpose: &Purpose,
    state: PlanState,
    file: Candidate,
    lookup: &dyn PlanLookup,
) -> Result<Planned> {
    match file.entry.kind {
        EntryKind::Folder => return Ok(Planned::Folder(file)),
        EntryKind::Special if file.is_unknown() => return Ok(Planned::Nothing),
        EntryKind::Special => {}
        EntryKind::File | EntryKind::Link if state.names_wait && file.is_unknown() => {
            return Ok(Planned::WaitsForNames(file));
        }
        EntryKind::Link => {}
        EntryKind::File => {
            if let Some(algorithms) = digests_to_compute(purpose, &file, lookup)? {
                return Ok(Planned::Read(file, algorithms));
            }
            return Ok(Planned::Done(by_stat(state, file).remember_damage()));
        }
    }
    Ok(Planned::Done(by_stat(state, file)))
}

/// Returns the result for a path of which nothing has to be read.
fn by_stat(state: PlanState, file: Candidate) -> PathResult {
    let verdict = file.judge(Evidence::StatOnly, file.date_rules(state.dates_explain_nothing));
    PathResult::of(file, verdict)
}

/// Returns the digests for which a file has to be read; `None` if it need not be.
fn digests_to_compute(
    purpose: &Purpose,
    file: &Candidate,
    lookup: &dyn PlanLookup,
) -> Result<Option<AlgorithmSet>> {
    let (path, entry) = (&file.path, &file.entry);
    Ok(match (purpose, file.state()) {
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
        (Purpose::Verify, RecordState::Nothing) => lookup.digests_of_missed(entry)?,
        (Purpose::Verify, RecordState::Sound(record)) => Some(record.digests.algorithms()),
        (Purpose::Update(rules), RecordState::Nothing) => {
            (!rules.only_completes).then_some(rules.digests)
        }
        (Purpose::Update(rules), RecordState::Bad) => {
            rules.accept.covers(path).then_some(rules.digests)
        }
        (Purpose::Update(rules), RecordState::Sound(record)) => {
            let has = record.digests.algorithms();
            let is_racy = record.is_racy(file.granularity_ns())
                && !lookup.is_own_change(path, &record.entry)?;
            let is_as_recorded = record.entry.same_stat(entry)
                && !is_racy
                && record.gone_s.is_none()
                && has.covers(rules.digests)
                // What may have been put right below the file system.
                && file.known_damage().is_none_or(|known| known.verdict == Verdict::Unreadable);
            let is_wanted = match rules.only_completes {
                true => !has.covers(rules.digests),
                false => rules.full || !is_as_recorded,
            };
            is_wanted.then_some(has.union(rules.digests))
        }
    })
}
