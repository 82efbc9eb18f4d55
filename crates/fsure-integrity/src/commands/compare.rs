//! `compare`: two trees, each a folder, the catalog of one or a list of one.
//! Files without a current record are read, into a temporary catalog;
//! then two streams of records in the order of paths are merged. Nothing is
//! written.

use std::cmp::Ordering;

use super::Options;
use super::compare_side::{CompareInput, CompareSide, OpenedSide, SideEntry, SideRecord};
use crate::catalog::MoveCandidates;
use crate::model::{ComparedPath, Comparison, Difference, Entry, EntryKind, Record, ScanMonitor};
use fsure_core::block_hash::of_nothing;
use fsure_core::{Algorithm, AlgorithmSet, Error, RelPath, Result};

/// Compares `here` with `there` and passes each difference to `report`. With
/// `by_records` no tree is read and the records stand for it.
pub fn compare(
    here: &CompareSide,
    there: &CompareSide,
    by_records: bool,
    options: &Options,
    monitor: &dyn ScanMonitor,
    report: &mut dyn FnMut(&ComparedPath),
) -> Result<Comparison> {
    let (here, there) = (CompareInput::of(here, monitor)?, CompareInput::of(there, monitor)?);
    let here = here.beside(&there);
    let there = there.beside(&here);
    // No folder is read for a list that names no file.
    for side in [&here, &there] {
        if side.is_list() && side.digests()?.is_none() {
            let list = side.open(Algorithm::Blake3, by_records, None, options, monitor)?;
            return Ok(Comparison {
                malformed: list.malformed,
                unusable: list.unusable,
                empty_lists: u64::from(list.is_empty_list),
                ..Comparison::default()
            });
        }
    }
    // What is read is read for a digest that the other side has.
    let wanted = wanted([&here, &there])?;
    let open = |given: &CompareInput, other: Option<&mut OpenedSide>| {
        given.open(wanted, by_records, other, options, monitor)
    };
    // A list is read last: how it spells a name may depend on what is there.
    let (here, there) = if here.is_list() {
        let mut there = open(&there, None)?;
        (open(&here, Some(&mut there))?, there)
    } else {
        let mut here = open(&here, None)?;
        let there = open(&there, Some(&mut here))?;
        (here, there)
    };
    let is_known_damaged = [&here, &there].map(|side| side.known_damage.total() > 0);
    let mut known_damage = here.known_damage;
    known_damage.join(&there.known_damage);
    let mut merge = Merge {
        found: Comparison {
            bytes_read: here.bytes_read + there.bytes_read,
            malformed: here.malformed + there.malformed,
            unusable: here.unusable + there.unusable,
            empty_lists: u64::from(here.is_empty_list) + u64::from(there.is_empty_list),
            known_damage,
            is_known_damaged,
            ..Default::default()
        },
        waiting: MoveCandidates::new()?,
        read_since_ns: [here.read_since_ns, there.read_since_ns],
        wanted,
        only_files: here.is_list || there.is_list,
        of_nothing: of_nothing(wanted),
        monitor,
        report,
    };
    let faults = here.faults + there.faults;
    merge.run(here, there)?;
    let mut found = merge.found;
    found.bad_records = found.bad_records.max(faults);
    Ok(found)
}

/// Returns the size of a file, if it is known: a list might not have it.
fn size(record: &Record) -> Option<u64> {
    let is_known = record.entry.size > 0 || record.hashed_ns > 0;
    is_known.then_some(record.entry.size)
}

/// The digest to compare by: one that both sides have, or else one of the side
/// that is not a folder, where files could be read for another.
fn wanted([one, other]: [&CompareInput; 2]) -> Result<Algorithm> {
    let first = |digests: AlgorithmSet| digests.iter().next();
    let wanted = match (one.digests()?, other.digests()?) {
        (Some(mine), Some(theirs)) => {
            let common = mine.iter().find(|algorithm| theirs.contains(*algorithm));
            common.or(match (one.is_folder(), other.is_folder()) {
                (true, false) => first(theirs),
                (false, true) => first(mine),
                _ => None,
            })
        }
        (Some(digests), None) | (None, Some(digests)) => first(digests),
        (None, None) => None,
    };
    Ok(wanted.unwrap_or(Algorithm::Blake3))
}

/// Both sides, side by side.
struct Merge<'a> {
    found: Comparison,
    /// Entries that are on one side only, until all names are known.
    waiting: MoveCandidates,
    /// Time from which on a file of each side was read for this comparison; `None` if none of
    /// its entries is a record of fsure.
    read_since_ns: [Option<i64>; 2],
    wanted: Algorithm,
    /// True if one side is a list, which has nothing but files.
    only_files: bool,
    /// The digest of an empty file.
    of_nothing: Vec<u8>,
    monitor: &'a dyn ScanMonitor,
    report: &'a mut dyn FnMut(&ComparedPath),
}

impl Merge<'_> {
    fn run(&mut self, mut here: OpenedSide, mut there: OpenedSide) -> Result<()> {
        let (mut one, mut other) = (here.next()?, there.next()?);
        loop {
            if let Some(code) = self.monitor.stop_requested() {
                return Err(Error::Interrupted(code));
            }
            let order = match (&one, &other) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.path.cmp(&other.path),
            };
            let mine = if order.is_le() { std::mem::replace(&mut one, here.next()?) } else { None };
            let theirs =
                if order.is_ge() { std::mem::replace(&mut other, there.next()?) } else { None };
            match (mine, theirs) {
                (Some(mine), None) if there.unread.remove(&mine.path) => self.unknown(mine.path),
                (None, Some(theirs)) if here.unread.remove(&theirs.path) => {
                    self.unknown(theirs.path);
                }
                (mine, theirs) => self.compare_pair(mine, theirs)?,
            }
        }
        // New and unread: no record has them.
        for path in here.unread.union(&there.unread) {
            self.unknown(path.clone());
        }
        self.report_one_sided()
    }

    fn unknown(&mut self, path: RelPath) {
        self.report(Difference::Unknown, path, None, EntryKind::File);
    }

    fn compare_pair(&mut self, here: Option<SideEntry>, there: Option<SideEntry>) -> Result<()> {
        let mut records = [None, None];
        for (place, item) in records.iter_mut().zip([here, there]) {
            match item {
                None => {}
                Some(SideEntry { what: SideRecord::Record(record), .. }) => *place = Some(record),
                Some(SideEntry { path, what }) => {
                    self.found.bad_records += u64::from(matches!(what, SideRecord::BadRecord));
                    self.unknown(path);
                    return Ok(());
                }
            }
        }
        match records {
            [Some(here), Some(there)] => self.compare_records(&here, &there),
            [Some(one), None] | [None, Some(one)]
                if self.only_files && one.entry.kind != EntryKind::File => {}
            [Some(here), None] => self.waiting.depart(&here, true, self.content_key(&here))?,
            [None, Some(there)] => {
                self.waiting.arrive(&there.path, &there.entry, 0)?;
                if let Some(key) = self.content_key(&there) {
                    self.waiting.found(&there.path, &key, false)?;
                }
            }
            [None, None] => {}
        }
        Ok(())
    }

    /// Returns the digest by which a file is found under another name; `None` if it has
    /// none that fits. The size is not part of it: a list might not have it. A CRC-32 is not
    /// used, because it pairs unrelated files: among a million files there are a hundred such
    /// pairs. The digest of an empty file is not used either.
    fn content_key(&self, record: &Record) -> Option<Vec<u8>> {
        let digest = record.digests.get(self.wanted)?;
        let reports = self.wanted != Algorithm::Crc32 && digest != self.of_nothing;
        reports.then(|| digest.to_vec())
    }

    fn compare_records(&mut self, here: &Record, there: &Record) {
        let (mine, theirs): (&Entry, &Entry) = (&here.entry, &there.entry);
        let is_plain = mine.kind == theirs.kind && mine.target == theirs.target;
        let is_resized = size(here).zip(size(there)).is_some_and(|(mine, theirs)| mine != theirs);
        let difference = match mine.kind {
            _ if !is_plain || is_resized => Difference::Different,
            EntryKind::File => match here.digests.agree(&there.digests) {
                Some(agree) => {
                    self.count_unread(here, there);
                    if agree {
                        return self.found.same += 1;
                    }
                    Difference::Different
                }
                None => Difference::Unknown,
            },
            _ => return self.found.same += 1,
        };
        self.report(difference, here.path.clone(), None, mine.kind);
    }

    /// Counts the sides of a compared file on which its record stands for its content.
    fn count_unread(&mut self, here: &Record, there: &Record) {
        let is_unread = |record: &Record, since: Option<i64>| {
            u64::from(since.is_some_and(|since| record.hashed_ns < since))
        };
        let [here_since, there_since] = self.read_since_ns;
        self.found.recorded_here += is_unread(here, here_since);
        self.found.recorded_there += is_unread(there, there_since);
    }

    /// Reports the entries that are on one side only: each is under another name on the
    /// other side, or missing there.
    fn report_one_sided(&mut self) -> Result<()> {
        self.waiting.pair_by_content()?;
        let mut after = None;
        loop {
            let page = self.waiting.arrivals(after.as_ref(), false)?;
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            for arrival in page {
                match arrival.moved_from {
                    Some(here) => {
                        self.waiting.claim(&here)?;
                        let there = Some(arrival.path);
                        self.report(Difference::Moved, here, there, EntryKind::File);
                    }
                    None => self.report(Difference::OnlyThere, arrival.path, None, arrival.kind),
                }
            }
        }
        let mut after = None;
        loop {
            let page = self.waiting.departures(after.as_ref())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.path.clone());
            for gone in page {
                self.report(Difference::OnlyHere, gone.path, None, gone.kind);
            }
        }
    }

    fn report(
        &mut self,
        difference: Difference,
        path: RelPath,
        there: Option<RelPath>,
        kind: EntryKind,
    ) {
        self.found.add(difference);
        (self.report)(&ComparedPath { difference, path, there, kind });
    }
}
