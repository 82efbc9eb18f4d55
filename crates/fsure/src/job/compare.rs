//! `compare`: two trees, each a folder or the catalog of one. What has no
//! current record is read, into a catalog that is gone afterwards; then two
//! streams of records in the order of paths are merged. Nothing is written.

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use fsure_os::path as os_path;

use super::Options;
use super::look::look;
use super::opening::open_root;
use crate::catalog::{Bound, Catalog, Place, Stored, Waiting, content_key, locate};
use crate::words::{
    Algorithm, AlgorithmSet, Compared, Comparison, Difference, Entry, EntryKind, Error, Monitor,
    Record, RelPath, Result,
};

/// Compares `here` with `there` and hands what differs to `tell`. With
/// `by_records` no tree is looked at and the records are taken for it.
pub fn compare(
    here: &Path,
    there: &Path,
    by_records: bool,
    options: &Options,
    monitor: &dyn Monitor,
    tell: &mut dyn FnMut(&Compared),
) -> Result<Comparison> {
    let algorithms = [here, there].map(recorded_digests);
    // What is read is read for a digest that the other side has.
    let wanted = match algorithms {
        [Some(one), Some(other)] => one.iter().find(|a| other.contains(*a)),
        [Some(one), None] | [None, Some(one)] => one.iter().next(),
        [None, None] => None,
    };
    let wanted = wanted.unwrap_or(Algorithm::Blake3);
    let side = |path| Side::open(path, wanted, by_records, options, monitor);
    let (here, there) = (side(here)?, side(there)?);
    let mut merge = Merge {
        found: Comparison { bytes_read: here.bytes_read + there.bytes_read, ..Default::default() },
        waiting: Waiting::new()?,
        wanted,
        monitor,
        tell,
    };
    merge.run(here, there)?;
    Ok(merge.found)
}

/// The digests a side is recorded with, if it is recorded.
fn recorded_digests(path: &Path) -> Option<AlgorithmSet> {
    let file = match os_path::is_folder(path) {
        true => locate(path, None).ok()?.catalog,
        false => path.to_owned(),
    };
    Some(Catalog::open(&file, None).ok()?.settings().digests)
}

/// One of the two trees as records, page by page.
struct Side {
    catalog: Catalog,
    scope: RelPath,
    /// What could not be read, by its path below the scope: its record says
    /// nothing of it.
    unread: BTreeSet<RelPath>,
    bytes_read: u64,
    page: VecDeque<Stored>,
    after: Option<Vec<u8>>,
}

impl Side {
    fn open(
        path: &Path,
        wanted: Algorithm,
        by_records: bool,
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        if !os_path::is_folder(path) {
            return Ok(Self::of(Catalog::open(path, None)?, RelPath::root()));
        }
        let place = locate(path, None)?;
        if by_records {
            super::opening::require_record(&place)?;
            let scope = place.scope.clone();
            return Ok(Self::of(Catalog::open(&place.catalog, None)?, scope));
        }
        Self::look(&place, wanted, options, monitor)
    }

    fn of(catalog: Catalog, scope: RelPath) -> Self {
        let (unread, page) = Default::default();
        Self { catalog, scope, unread, bytes_read: 0, page, after: None }
    }

    /// Records a tree as it is now, whatever was recorded of it before.
    fn look(
        place: &Place,
        wanted: Algorithm,
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let open = open_root(place)?;
        let digests = AlgorithmSet::of(&[wanted]);
        let looked = look(place, &open, digests, false, options, monitor)?;
        let start = place.scope.below().0.len();
        let within =
            |path: RelPath| RelPath::from_bytes(path.as_bytes().get(start..).unwrap_or_default());
        let unread = looked.unread.into_iter().map(within).collect();
        let bytes_read = looked.bytes_read;
        Ok(Self { unread, bytes_read, ..Self::of(looked.catalog, place.scope.clone()) })
    }

    /// The next record that is no tombstone.
    fn next(&mut self) -> Result<Option<Item>> {
        let (first, end) = self.scope.below();
        loop {
            if self.page.is_empty() {
                let from = self.after.as_deref().map_or(Bound::From(&first), Bound::After);
                self.page = self.catalog.page(&from, end.as_deref())?.into();
            }
            let Some(stored) = self.page.pop_front() else { return Ok(None) };
            self.after = Some(stored.path().as_bytes().to_vec());
            let path = RelPath::from_bytes(&stored.path().as_bytes()[first.len()..]);
            let what = match stored {
                Stored::Sound(row) if row.is_gone() => continue,
                _ if self.unread.remove(&path) => What::Unread,
                Stored::Bad(_) => What::BadRecord,
                Stored::Sound(row) => {
                    What::Record(Box::new(Record { path: path.clone(), ..row.record }))
                }
            };
            return Ok(Some(Item { path, what }));
        }
    }
}

/// A path on one side.
struct Item {
    path: RelPath,
    what: What,
}

/// What is known of it.
enum What {
    /// Its record, under its path below the scope.
    Record(Box<Record>),
    /// It could not be read.
    Unread,
    /// Its record fails its seal.
    BadRecord,
}

/// Both sides, side by side.
struct Merge<'a> {
    found: Comparison,
    /// What is on one side only, until all names are known.
    waiting: Waiting,
    wanted: Algorithm,
    monitor: &'a dyn Monitor,
    tell: &'a mut dyn FnMut(&Compared),
}

impl Merge<'_> {
    fn run(&mut self, mut here: Side, mut there: Side) -> Result<()> {
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
                (mine, theirs) => self.settle(mine, theirs)?,
            }
        }
        // New and unread: no record tells of them.
        for path in here.unread.union(&there.unread) {
            self.unknown(path.clone());
        }
        self.settle_waiting()
    }

    fn unknown(&mut self, path: RelPath) {
        self.tell(Difference::Unknown, path, None, EntryKind::File);
    }

    fn settle(&mut self, here: Option<Item>, there: Option<Item>) -> Result<()> {
        let mut records = [None, None];
        for (place, item) in records.iter_mut().zip([here, there]) {
            match item {
                None => {}
                Some(Item { what: What::Record(record), .. }) => *place = Some(record),
                Some(Item { path, what }) => {
                    self.found.bad_records += u64::from(matches!(what, What::BadRecord));
                    self.unknown(path);
                    return Ok(());
                }
            }
        }
        match records {
            [Some(here), Some(there)] => self.settle_both(&here, &there),
            [Some(here), None] => self.waiting.depart(&here, self.wanted)?,
            [None, Some(there)] => {
                self.waiting.arrive(&there.path, &there.entry, 0)?;
                if let Some(key) = content_key(&there.entry, &there.digests, self.wanted) {
                    self.waiting.found(&there.path, &key, false)?;
                }
            }
            [None, None] => {}
        }
        Ok(())
    }

    fn settle_both(&mut self, here: &Record, there: &Record) {
        let (mine, theirs): (&Entry, &Entry) = (&here.entry, &there.entry);
        let is_plain = mine.kind == theirs.kind && mine.target == theirs.target;
        let difference = match mine.kind {
            _ if !is_plain || mine.size != theirs.size => Difference::Different,
            EntryKind::File => match here.digests.agree(&there.digests) {
                Some(true) => return self.found.same += 1,
                Some(false) => Difference::Different,
                None => Difference::Unknown,
            },
            _ => return self.found.same += 1,
        };
        self.tell(difference, here.path.clone(), None, mine.kind);
    }

    /// What is on one side only: under another name, or there alone.
    fn settle_waiting(&mut self) -> Result<()> {
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
                        self.tell(Difference::Moved, here, there, EntryKind::File);
                    }
                    None => self.tell(Difference::OnlyThere, arrival.path, None, arrival.kind),
                }
            }
        }
        let mut after = None;
        loop {
            let page = self.waiting.departures(after.as_ref())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.path.clone());
            for gone in page {
                self.tell(Difference::OnlyHere, gone.path, None, gone.kind);
            }
        }
    }

    fn tell(
        &mut self,
        difference: Difference,
        path: RelPath,
        there: Option<RelPath>,
        kind: EntryKind,
    ) {
        self.found.add(difference);
        (self.tell)(&Compared { difference, path, there, kind });
    }
}
