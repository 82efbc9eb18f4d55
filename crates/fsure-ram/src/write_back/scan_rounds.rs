//! The search for the state of one moment while programs go on: what has changed is looked at,
//! and then what has changed meanwhile, until what was looked at last was not touched while
//! that was done. Everything is then as it was at the moment when that look began:
//! `docs/ram.md` says why.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use super::changes::{ReportedChanges, Tracker};
use super::disk_side::OWN;
use super::generation_builder::{GenerationBuilder, NameChange};
use super::missed_names::{MissedNames, keep_missed};
use super::ram_scan::{ScanResult, everything, look};
use fsure_core::{IoContext as _, RelPath, Result};

/// A RAM side that can be made to hold still: its writers wait.
pub trait Freeze {
    /// From here on nothing changes.
    fn freeze(&self) -> io::Result<()>;
    /// Lets the writers go on.
    fn thaw(&self) -> io::Result<()>;
}

/// Extent of a scan beyond what was reported as changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareDepth {
    /// Files with other dates or sizes, those that are mapped, those whose dates are
    /// too young to be relied on, and of all others some in their turn.
    Dates,
    /// Every file is hashed.
    Everything,
}

/// Looks at everything, where nothing is reported, before a generation is
/// taken that is of no single moment.
const FULL_ROUNDS_MAX: u32 = 5;
/// A round that takes longer than this has read large files. If these are written all the
/// time, reading them again only makes the generation late.
const ROUND_SHORT: Duration = Duration::from_millis(20);
/// Looks in a row that must have missed a name before it counts as gone, while names move all
/// the time. On a quiet machine one look in five missed such a name, on one whose processors
/// were all taken ten in a row did.
const GONE_AFTER: u32 = 40;
/// A date younger than this may be that of two changes: a clock tick takes up to
/// 10 ms (`CONFIG_HZ=100`), and the later change would not show.
const YOUNG_NS: i64 = 20_000_000;

/// The state that a generation begins with.
pub(super) struct Start<'a> {
    /// It is searched for no longer than twice as long as the first look took, and this.
    pub(super) search: Duration,
    /// Changes that were reported to the generation before, and are of after its moment.
    pub(super) changes: ReportedChanges,
    /// Looked at, whatever their dates say.
    pub(super) always: BTreeSet<RelPath>,
    /// Names that the generation before kept although it did not find them.
    pub(super) missed: &'a MissedNames,
    /// Files of which the disk side has an older version, and of when it is at least.
    pub(super) stale: &'a BTreeMap<RelPath, Instant>,
    /// The time at which the generation before began.
    pub(super) before: Instant,
}

/// Result of [`rounds`].
pub(super) struct RoundsResult {
    /// Changes that are of after the moment of this generation.
    pub(super) changes: ReportedChanges,
    /// Files that fsure has no permission to read or that the disk cannot have.
    pub(super) denied: BTreeSet<RelPath>,
    /// Files that were written whenever they were read; since when at most.
    pub(super) stale: BTreeMap<RelPath, Instant>,
    pub(super) again: BTreeSet<RelPath>,
    pub(super) spread: Option<Duration>,
    /// Names that are kept although they were not found.
    pub(super) missed: MissedNames,
}

/// Thaws, whatever happens meanwhile.
struct ThawGuard<'a>(&'a dyn Freeze);

impl Drop for ThawGuard<'_> {
    fn drop(&mut self) {
        // Said by the next freeze, which fails then.
        let _ = self.0.thaw();
    }
}

/// Looks until all of it is of one moment, or for long enough.
pub(super) fn rounds(
    draft: &mut GenerationBuilder<'_>,
    ram: &Side,
    tracker: &mut dyn Tracker,
    depth: CompareDepth,
    stillness: Option<&dyn Freeze>,
    start: &Start<'_>,
) -> Result<RoundsResult> {
    let mut all = Findings::new(start);
    let mut changes = start.changes.clone().and(tracker.take());
    let (mut frozen, mut effort) = (None, Effort::default());
    for round in 0.. {
        draft.begin_round(round);
        let began = Instant::now();
        let is_hashed = depth == CompareDepth::Everything && round == 0;
        if is_hashed || draft.has_links && !tracker.knows_links() {
            changes = ReportedChanges::Unknown;
        }
        let unreported = tracker.unreported();
        let mut seen = look_at(draft, ram, &changes, &all, &unreported)?;
        let found = compare(draft, ram, &seen, &changes, &all, &unreported, is_hashed)?;
        seen.asked.extend(found.linked.iter().cloned());
        let is_known = matches!(changes, ReportedChanges::Known(_));
        let later = match is_known && frozen.is_none() {
            true => seen.wait_for_reports(ram).map(|()| tracker.take())?,
            false => ReportedChanges::none(),
        };
        let is_one_moment = match stillness {
            Some(_) => frozen.is_some() || found.differs == 0,
            None => is_one_moment(&changes, &later, &found, &seen, draft.newest_ns),
        };
        let gives_up =
            stillness.is_none() && effort.is_spent(&found, is_known, began.elapsed(), start.search);
        all.add(found, &seen, is_known);
        if is_one_moment || gives_up {
            return Ok(all.finish(draft, later, is_one_moment, start));
        }
        changes = later;
        if let Some(still) = stillness {
            still.freeze().context("freeze", Path::new("the RAM folder"))?;
            frozen = Some(ThawGuard(still));
        }
        if frozen.is_some() || !is_known {
            changes = changes.and(tracker.take());
        }
    }
    unreachable!("the last round returns")
}

/// Tells whether all that is known now is of the moment when `changes` were taken: all of these
/// were looked at after it, and none of what was looked at changed until `later` was taken.
fn is_one_moment(
    changes: &ReportedChanges,
    later: &ReportedChanges,
    found: &Compared,
    seen: &ScanResult,
    newest_ns: i64,
) -> bool {
    match (changes, later) {
        // Two looks at everything have found the same: so it was between them.
        (ReportedChanges::Unknown, _) => found.differs == 0,
        (ReportedChanges::Known(paths), ReportedChanges::Known(later)) => {
            paths.is_exact
                && later.is_exact
                && found.unreported.is_empty()
                && found.unsettled.is_empty()
                && !seen.is_touched_by(later)
                // What is written is seen before it is reported.
                && paths.changed_from.is_none_or(|from| newest_ns < from)
        }
        (ReportedChanges::Known(_), ReportedChanges::Unknown) => false,
    }
}

/// Tells how long a moment is searched for.
#[derive(Default)]
struct Effort {
    total: Duration,
    first: Duration,
    rounds: u32,
    differed: usize,
}

impl Effort {
    /// Tells whether another round makes no sense, after one that took so long.
    fn is_spent(
        &mut self,
        found: &Compared,
        is_known: bool,
        took: Duration,
        search: Duration,
    ) -> bool {
        let is_first = self.rounds == 0;
        if is_first {
            self.first = took;
        }
        self.total += took;
        self.rounds += 1;
        // Half as much each time comes to an end; as much as before does not.
        let is_vain = !is_first && found.differs > self.differed / 2;
        self.differed = found.differs;
        // Nothing will tell when a file is let alone that changes without a report.
        let is_slow = !is_known || took > ROUND_SHORT || !found.unreported.is_empty();
        let is_late = !is_first && self.total > self.first * 3 + search;
        is_late || is_vain && is_slow || !is_known && self.rounds >= FULL_ROUNDS_MAX
    }
}

/// The findings of all rounds.
struct Findings {
    began: Instant,
    /// Looked at with the next round.
    must: BTreeSet<RelPath>,
    /// Files whose dates may be those of two changes.
    young: BTreeSet<RelPath>,
    unsettled: BTreeSet<RelPath>,
    denied: BTreeSet<RelPath>,
    hides: bool,
    are_names_still: bool,
}

impl Findings {
    fn new(start: &Start<'_>) -> Self {
        let (young, unsettled, denied) = Default::default();
        let (must, began) = (start.always.clone(), Instant::now());
        Self { began, must, young, unsettled, denied, hides: false, are_names_still: false }
    }

    fn add(&mut self, mut found: Compared, seen: &ScanResult, is_known: bool) {
        if !is_known {
            (self.young, self.hides) = (BTreeSet::new(), false);
        }
        self.unsettled.retain(|path| !seen.names.contains_key(path));
        self.denied.retain(|path| !seen.names.contains_key(path));
        self.young.append(&mut found.young);
        self.unsettled.append(&mut found.unsettled);
        self.denied.append(&mut found.denied);
        self.hides |= found.hides;
        self.are_names_still = found.names == 0;
        // What was found to change without a report is looked at until it does so no more, and
        // what was written whenever it was read until it holds still.
        match is_known {
            true => self.must = &found.unreported | &self.unsettled,
            false => self.must.extend(self.young.iter().cloned()),
        }
    }

    /// Settles what the generation is.
    fn finish(
        self,
        draft: &mut GenerationBuilder<'_>,
        changes: ReportedChanges,
        is_one_moment: bool,
        start: &Start<'_>,
    ) -> RoundsResult {
        // If names moved meanwhile, one that was not found may be in a place that was looked
        // at before.
        let missed = match (self.hides, is_one_moment || self.are_names_still) {
            (true, _) => keep_missed(draft, start.missed, u32::MAX, start.before),
            (false, true) => MissedNames::new(),
            (false, false) => keep_missed(draft, start.missed, GONE_AFTER, start.before),
        };
        let since = |path: &RelPath| start.stale.get(path).copied().unwrap_or(start.before);
        let stale: BTreeMap<_, _> =
            self.unsettled.into_iter().map(|path| (path.clone(), since(&path))).collect();
        let kept = missed.values().map(|one| one.since).chain(stale.values().copied()).min();
        let oldest = kept.into_iter().chain((!is_one_moment).then_some(self.began)).min();
        let mut again = self.young;
        again.extend(missed.keys().chain(stale.keys()).chain(&self.denied).cloned());
        let spread = oldest.map(|oldest| oldest.elapsed());
        RoundsResult { changes, denied: self.denied, stale, again, spread, missed }
    }
}

/// Looks at what has changed, at what must be, and at what changes without a report.
fn look_at(
    draft: &GenerationBuilder<'_>,
    ram: &Side,
    changes: &ReportedChanges,
    all: &Findings,
    unreported: &BTreeSet<RelPath>,
) -> Result<ScanResult> {
    let ReportedChanges::Known(paths) = changes else { return everything(ram) };
    let linked = paths.inodes.iter().flat_map(|inode| draft.names(*inode));
    let names: BTreeSet<_> = paths.names.iter().chain(&all.must).cloned().chain(linked).collect();
    let folders = &paths.folders | unreported;
    let inode_of = |path: &RelPath| {
        draft.known(path).filter(|known| known.is_folder()).map(|known| known.facts.inode)
    };
    look(ram, &folders, &names, &inode_of)
}

#[derive(Default)]
struct Compared {
    /// Number of names that differ.
    differs: usize,
    /// Number of these names that stand for another object now, or are folders in which
    /// names could have changed.
    names: usize,
    /// True if an object that was found nowhere could be where permission to read is
    /// missing.
    hides: bool,
    /// Names that differ, which was not reported.
    unreported: BTreeSet<RelPath>,
    /// Files that were written whenever they were read.
    unsettled: BTreeSet<RelPath>,
    /// Names that must not be read, or that the disk cannot have.
    denied: BTreeSet<RelPath>,
    young: BTreeSet<RelPath>,
    /// Names that were looked at since they are other names of what was found.
    linked: BTreeSet<RelPath>,
}

/// Takes into the draft what differs from it.
fn compare(
    draft: &mut GenerationBuilder<'_>,
    ram: &Side,
    seen: &ScanResult,
    changes: &ReportedChanges,
    all: &Findings,
    unreported: &BTreeSet<RelPath>,
    is_hashed: bool,
) -> Result<Compared> {
    let young_from = now_ns() - YOUNG_NS;
    let mut compared = Compared::default();
    for path in draft.gone(seen) {
        let is_new = usize::from(draft.remove(&path));
        compared.differs += is_new;
        compared.names += is_new;
    }
    let mut linked = BTreeMap::new();
    for (path, facts) in &seen.names {
        let is_file = facts.kind == NodeKind::File;
        let is_same = draft.known(path).is_some_and(|known| known.facts == *facts);
        if is_file && facts.ctime_ns.max(facts.mtime_ns) >= young_from {
            compared.young.insert(path.clone());
        }
        let is_doubtful = is_hashed || all.must.contains(path) || all.young.contains(path);
        if is_same && !(is_file && is_doubtful) {
            continue;
        }
        // Its other names changed with it, wherever they are.
        if is_file && facts.links > 1 && !is_same {
            for name in draft.names(facts.inode) {
                if !seen.names.contains_key(&name)
                    && let Ok(facts) = ram.facts(name.as_bytes())
                {
                    linked.insert(name, facts);
                }
            }
        }
        let differs = compared.add(draft, path, facts)?;
        let is_missed = || is_unreported(path, facts, changes, &all.must, unreported);
        if differs && is_missed() {
            compared.unreported.insert(path.clone());
        }
    }
    for (path, facts) in linked {
        compared.add(draft, &path, &facts)?;
        compared.linked.insert(path);
    }
    for folder in &seen.denied {
        compared.denied.insert(folder.clone());
        let of = |facts: &CopyStat| (facts.inode, facts.mtime_ns);
        let known = draft.index.get(folder).map(|known| of(&known.facts));
        compared.hides |= known != seen.names.get(folder).map(of);
    }
    if seen.has_own {
        compared.denied.insert(RelPath::from_bytes(OWN.as_bytes()));
    }
    Ok(compared)
}

/// Tells whether nothing was reported of what was found at a name.
fn is_unreported(
    path: &RelPath,
    facts: &CopyStat,
    changes: &ReportedChanges,
    must: &BTreeSet<RelPath>,
    unreported: &BTreeSet<RelPath>,
) -> bool {
    let ReportedChanges::Known(paths) = changes else { return true };
    let folder = path.parent();
    let is_in =
        |folders: &BTreeSet<RelPath>| folder.as_ref().is_some_and(|it| folders.contains(it));
    let is_reported =
        paths.names.contains(path) || paths.inodes.contains(&facts.inode) || is_in(&paths.folders);
    !is_reported && (must.contains(path) || is_in(unreported))
}

impl Compared {
    /// Takes one name; whether it differs.
    fn add(
        &mut self,
        draft: &mut GenerationBuilder<'_>,
        path: &RelPath,
        facts: &CopyStat,
    ) -> Result<bool> {
        let inode =
            |draft: &GenerationBuilder<'_>| draft.known(path).map(|known| known.facts.inode);
        let before = inode(draft);
        let taken = draft.stage_if_changed(path, facts)?;
        match taken {
            NameChange::Same => return Ok(false),
            NameChange::Denied => {
                self.denied.insert(path.clone());
                // It may be one of those that are nowhere else.
                self.hides |= before != Some(facts.inode) && !draft.names(facts.inode).is_empty();
                return Ok(false);
            }
            NameChange::Differs | NameChange::Unsettled => {}
        }
        self.differs += 1;
        let is_moved = before != Some(facts.inode) || inode(draft) != before;
        self.names += usize::from(is_moved || facts.kind == NodeKind::Folder);
        if taken == NameChange::Unsettled {
            self.unsettled.insert(path.clone());
        }
        Ok(true)
    }
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
