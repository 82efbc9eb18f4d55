//! How a generation is found: everything is looked at until nothing changes any more,
//! or often enough.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fsure_os::mirror::{Facts, Kind, Side};

use super::draft::{Draft, Taken};
use super::engine::{Depth, Stillness, Tracker};
use super::look::{Changes, Seen, look};
use super::own::OWN;
use super::restore::Missed;
use crate::words::{IoContext as _, RelPath, Result};

/// How often everything that changed meanwhile is looked at again, before a
/// generation is taken that is of no single moment.
const ROUNDS: u32 = 5;
/// Nor longer than the first look took, and this: under constant writes it would only
/// be late, and be of no single moment all the same.
const LONGER: Duration = Duration::from_millis(20);
/// So many looks in a row must have missed a name, where names move all the time.
const GONE_AFTER: u32 = 10;
/// A date younger than this may be that of two changes: a clock tick takes up to
/// 10 ms (`CONFIG_HZ=100`), and the later change would not show.
const YOUNG_NS: i64 = 20_000_000;

/// What the rounds came to.
pub(super) struct Rounds {
    pub(super) unsettled: BTreeSet<RelPath>,
    pub(super) again: BTreeSet<RelPath>,
    pub(super) spread: Option<Duration>,
    /// Names that are kept although they were not found.
    pub(super) missed: Missed,
}

/// Thaws, whatever happens meanwhile.
struct Frozen<'a>(&'a dyn Stillness);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        // Said by the next freeze, which fails then.
        let _ = self.0.thaw();
    }
}

/// Looks until nothing changes any more, or often enough.
pub(super) fn rounds(
    draft: &mut Draft<'_>,
    ram: &Side,
    tracker: &mut dyn Tracker,
    mut depth: Depth,
    stillness: Option<&dyn Stillness>,
    always: BTreeSet<RelPath>,
    missed: &Missed,
) -> Result<Rounds> {
    let began = Instant::now();
    let (mut frozen, mut unsettled) = (None, BTreeSet::new());
    let (mut first, mut before) = (None, 0);
    let mut must = always.clone();
    for round in 0.. {
        draft.begin_round(round);
        let young_from = now_ns() - YOUNG_NS;
        let changes = widened(tracker.take(), &must, depth);
        let inode_of = |path: &RelPath| {
            draft.known(path).filter(|known| known.is_folder()).map(|known| known.facts.inode)
        };
        let seen = look(ram, &changes, &inode_of)?;
        let mut found = compare(draft, ram, &seen, &must, depth)?;
        for folder in &seen.denied {
            found.unsettled.insert(folder.clone());
            let of = |facts: &Facts| (facts.inode, facts.mtime_ns);
            let known = draft.index.get(folder).map(|known| of(&known.facts));
            found.hides |= known != seen.names.get(folder).map(of);
        }
        if seen.has_own {
            found.unsettled.insert(RelPath::from_bytes(OWN.as_bytes()));
        }
        let young = seen.names.iter().filter(|(_, facts)| {
            facts.kind == Kind::File && facts.ctime_ns.max(facts.mtime_ns) >= young_from
        });
        let mut again: BTreeSet<_> = young.map(|(path, _)| path.clone()).collect();
        unsettled.retain(|path| !seen.names.contains_key(path));
        unsettled.append(&mut found.unsettled);
        let first = *first.get_or_insert_with(|| began.elapsed());
        let is_still = found.differs == 0;
        // Half as much each time comes to an end; as much as before does not.
        let is_vain = round > 0 && found.differs > before / 2;
        let is_late = round > 0 && began.elapsed() > first * 2 + LONGER;
        before = found.differs;
        let gives_up = stillness.is_none() && (is_vain || is_late || round + 1 == ROUNDS);
        if frozen.is_some() || is_still || gives_up {
            let spread = (!is_still && frozen.is_none()).then(|| began.elapsed());
            again.extend(unsettled.iter().cloned());
            // Where names moved meanwhile, one that was not found may be where we had
            // looked before.
            let are_names_still = frozen.is_some() || found.names == 0;
            let missed = match (found.hides, are_names_still) {
                (true, _) => draft.put_back(missed, u32::MAX),
                (false, true) => Missed::new(),
                (false, false) => draft.put_back(missed, GONE_AFTER),
            };
            again.extend(missed.keys().cloned());
            return Ok(Rounds { unsettled, again, spread, missed });
        }
        must = &always | &again;
        depth = Depth::Dates;
        if let Some(still) = stillness {
            still.freeze().doing("freeze", Path::new("the RAM folder"))?;
            frozen = Some(Frozen(still));
        }
    }
    unreachable!("the last round returns")
}

/// What has changed, with what must be looked at whether it has or not.
fn widened(changes: Changes, must: &BTreeSet<RelPath>, depth: Depth) -> Changes {
    match changes {
        Changes::Folders(mut folders) if depth == Depth::Dates => {
            folders.extend(must.iter().map(|path| path.parent().unwrap_or_default()));
            Changes::Folders(folders)
        }
        _ => Changes::Unknown,
    }
}

#[derive(Default)]
struct Compared {
    /// How many names.
    differs: usize,
    /// How many of them stand for something else now, or are folders in which names
    /// may have changed.
    names: usize,
    /// Whether what was found nowhere may be where we may not look.
    hides: bool,
    unsettled: BTreeSet<RelPath>,
}

/// Takes into the draft what differs from it.
fn compare(
    draft: &mut Draft<'_>,
    ram: &Side,
    seen: &Seen,
    must: &BTreeSet<RelPath>,
    depth: Depth,
) -> Result<Compared> {
    let mut compared = Compared::default();
    for path in draft.gone(seen) {
        let is_new = usize::from(draft.remove(&path));
        compared.differs += is_new;
        compared.names += is_new;
    }
    let mut linked = BTreeMap::new();
    for (path, facts) in &seen.names {
        let known = draft.known(path);
        let is_file = facts.kind == Kind::File;
        let is_same = known.is_some_and(|known| known.facts == *facts);
        if is_same && !(is_file && (depth == Depth::Everything || must.contains(path))) {
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
        compared.add(draft, path, facts)?;
    }
    for (path, facts) in linked {
        compared.add(draft, &path, &facts)?;
    }
    Ok(compared)
}

impl Compared {
    fn add(&mut self, draft: &mut Draft<'_>, path: &RelPath, facts: &Facts) -> Result<()> {
        let inode = |draft: &Draft<'_>| draft.known(path).map(|known| known.facts.inode);
        let before = inode(draft);
        let taken = draft.take(path, facts)?;
        match taken {
            Taken::Same => return Ok(()),
            Taken::Denied => {
                self.unsettled.insert(path.clone());
                // It may be one of those that are nowhere else.
                self.hides |= before != Some(facts.inode) && !draft.names(facts.inode).is_empty();
                return Ok(());
            }
            Taken::Differs | Taken::Unsettled => {}
        }
        self.differs += 1;
        let is_moved = before != Some(facts.inode) || inode(draft) != before;
        self.names += usize::from(is_moved || facts.kind == Kind::Folder);
        if taken == Taken::Unsettled {
            self.unsettled.insert(path.clone());
        }
        Ok(())
    }
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
