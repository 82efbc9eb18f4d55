//! Ranges of paths whose files a run has all seen to be as recorded. A range has the dates of
//! that run, so that an intact file costs no row of its own: a file was last verified at the
//! later of its own date and that of the range that it is in. Ranges do not overlap.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::row::{Row, StoredRow};
use super::row_checksum::RowChecksum;
use fsure_core::RelPath;

/// The dates of a range of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationDates {
    /// Date at which reading of the file began that was read first, nanoseconds since 1970;
    /// `None` if the run does not move the dates of reading.
    pub hashed_ns: Option<i64>,
    /// Date at which that file was verified, seconds since 1970.
    pub verified_s: i64,
}

impl VerificationDates {
    /// Returns the earlier of both dates.
    pub fn earlier(self, other: Self) -> Self {
        Self {
            hashed_ns: self.hashed_ns.min(other.hashed_ns),
            verified_s: self.verified_s.min(other.verified_s),
        }
    }

    /// Returns true if one of them is later than that of a row.
    fn are_later_than(self, row: &Row) -> bool {
        self.verified_s > row.record.verified_s
            || self.hashed_ns.is_some_and(|hashed_ns| hashed_ns > row.record.hashed_ns)
    }
}

/// A range of paths without its first one, which is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    /// The first path behind it.
    end: Vec<u8>,
    dates: VerificationDates,
}

/// All ranges of a catalog.
#[derive(Default)]
pub(super) struct VerifiedPaths {
    ranges: BTreeMap<Vec<u8>, Range>,
    /// Keys whose row is not as it is stored.
    changed: BTreeSet<Vec<u8>>,
}

impl VerifiedPaths {
    /// Reads all ranges; `None` if one fails its seal or overlaps another.
    pub(super) fn read(
        connection: &Connection,
        sealer: &mut RowChecksum,
    ) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT first_path, end_path, hashed_ns, verified_s, seal FROM verified_paths";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut all = Self::default();
        while let Some(row) = rows.next()? {
            let read = || -> rusqlite::Result<_> {
                let dates = VerificationDates { hashed_ns: row.get(2)?, verified_s: row.get(3)? };
                Ok((
                    row.get::<_, Vec<u8>>(0)?,
                    Range { end: row.get(1)?, dates },
                    row.get::<_, i64>(4)?,
                ))
            };
            // A value of another type is damage like any other.
            let Ok((first, range, seal)) = read() else { return Ok(None) };
            if seal_of(&first, &range, sealer) != seal || first >= range.end {
                return Ok(None);
            }
            all.ranges.insert(first, range);
        }
        let mut before: &[u8] = b"";
        for (first, range) in &all.ranges {
            if &first[..] < before {
                return Ok(None);
            }
            before = &range.end;
        }
        Ok(Some(all))
    }

    /// Stores what has changed, in the caller's transaction.
    pub(super) fn store(
        &mut self,
        connection: &Connection,
        sealer: &mut RowChecksum,
    ) -> rusqlite::Result<()> {
        for first in std::mem::take(&mut self.changed) {
            let Some(range) = self.ranges.get(&first) else {
                let sql = "DELETE FROM verified_paths WHERE first_path = ?1";
                connection.prepare_cached(sql)?.execute([&first])?;
                continue;
            };
            let sql = "INSERT OR REPLACE INTO verified_paths VALUES (?1, ?2, ?3, ?4, ?5)";
            let seal = seal_of(&first, range, sealer);
            let VerificationDates { hashed_ns, verified_s } = range.dates;
            let values = params![first, range.end, hashed_ns, verified_s, seal];
            connection.prepare_cached(sql)?.execute(values)?;
        }
        Ok(())
    }

    /// Notes that all recorded files from `first` to `last` were seen to be as recorded.
    pub(super) fn add(&mut self, first: &RelPath, last: &RelPath, dates: VerificationDates) {
        let (first, end) = (first.as_bytes().to_vec(), behind(last.as_bytes()));
        self.cut(&first, &end);
        self.put(first, Range { end, dates });
    }

    /// Takes a path out of its range if that has a date which the row of the path must not get.
    pub(super) fn exclude_if_later(&mut self, row: &Row) {
        let path = row.record.path.as_bytes();
        if self.of(path).is_some_and(|dates| dates.are_later_than(row)) {
            self.cut(path, &behind(path));
        }
    }

    /// Gives a row the dates of its range if they are later than its own.
    pub(super) fn add_to(&self, stored: &mut StoredRow) {
        let StoredRow::Sound(row) = stored else { return };
        if !row.is_live_file() || self.ranges.is_empty() {
            return;
        }
        if let Some(dates) = self.of(row.record.path.as_bytes()) {
            let record = &mut row.record;
            record.verified_s = record.verified_s.max(dates.verified_s);
            record.hashed_ns = record.hashed_ns.max(dates.hashed_ns.unwrap_or(i64::MIN));
        }
    }

    fn of(&self, path: &[u8]) -> Option<VerificationDates> {
        let upto = (std::ops::Bound::Unbounded, std::ops::Bound::Included(path));
        let (_, range) = self.ranges.range::<[u8], _>(upto).next_back()?;
        (path < &range.end[..]).then_some(range.dates)
    }

    /// Takes the paths from `first` to before `end` out of all ranges.
    fn cut(&mut self, first: &[u8], end: &[u8]) {
        let until = (std::ops::Bound::Unbounded, std::ops::Bound::Excluded(end));
        let touched = self.ranges.range::<[u8], _>(until).rev();
        let touched: Vec<_> = touched
            .take_while(|(_, range)| &range.end[..] > first)
            .map(|(key, _)| key)
            .cloned()
            .collect();
        for key in touched {
            let range = self.ranges.remove(&key).expect("it was found");
            self.changed.insert(key.clone());
            if &range.end[..] > end {
                self.put(end.to_vec(), range.clone());
            }
            if &key[..] < first {
                self.put(key, Range { end: first.to_vec(), ..range });
            }
        }
    }

    fn put(&mut self, first: Vec<u8>, range: Range) {
        self.changed.insert(first.clone());
        self.ranges.insert(first, range);
    }
}

/// Returns the first path behind another one.
fn behind(path: &[u8]) -> Vec<u8> {
    [path, b"\0"].concat()
}

fn seal_of(first: &[u8], range: &Range, sealer: &mut RowChecksum) -> i64 {
    sealer
        .bytes(Some(first))
        .bytes(Some(&range.end))
        .integer(range.dates.hashed_ns)
        .integer(Some(range.dates.verified_s))
        .seal()
        .cast_signed()
}

/// The date at which a row of `record` was last verified, as SQL: the later of its own date and
/// that of its range. `{now}` is a parameter: a later date counts as 0.
pub(super) fn verified_sql(now: &str) -> String {
    let of_range = "ifnull((SELECT iif(range.end_path > record.path, range.verified_s, 0) \
                    FROM verified_paths AS range WHERE range.first_path <= record.path \
                    ORDER BY range.first_path DESC LIMIT 1), 0)";
    let dated = |date: &str| format!("iif({date} > {now}, 0, {date})");
    format!("max({}, {})", dated("record.verified_s"), dated(of_range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATHS: u8 = 12;

    fn path(number: u8) -> RelPath {
        RelPath::from_bytes(vec![b'a' + number])
    }

    fn dates(verified_s: i64) -> VerificationDates {
        VerificationDates { hashed_ns: None, verified_s }
    }

    fn stored(connection: &Connection) -> Option<VerifiedPaths> {
        VerifiedPaths::read(connection, &mut RowChecksum::new()).expect("it can be read")
    }

    fn database() -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        super::super::schema::create(&connection).expect("create tables");
        connection
    }

    proptest! {
        /// A plain map of each path to its date says the same, in memory and after it was stored.
        #[test]
        fn each_path_has_the_date_of_the_last_range_that_was_added_over_it(
            steps in proptest::collection::vec((0..PATHS, 0..PATHS, any::<bool>()), 1..20)
        ) {
            let (mut ranges, connection) = (VerifiedPaths::default(), database());
            let mut naive = [None; PATHS as usize];
            for (time, (one, other, is_added)) in (1..).zip(steps) {
                let (first, last) = (one.min(other), one.max(other));
                match is_added {
                    true => ranges.add(&path(first), &path(last), dates(time)),
                    false => ranges.cut(path(first).as_bytes(), &behind(path(last).as_bytes())),
                }
                naive[first.into()..=last.into()].fill(is_added.then(|| dates(time)));
                ranges.store(&connection, &mut RowChecksum::new()).expect("store");
                let read = stored(&connection).expect("sound");
                prop_assert_eq!(&read.ranges, &ranges.ranges);
                for number in 0..PATHS {
                    prop_assert_eq!(read.of(path(number).as_bytes()), naive[usize::from(number)]);
                }
            }
        }
    }

    #[test]
    fn a_row_with_an_earlier_date_is_taken_out_of_its_range() {
        use crate::model::{Entry, EntryKind, FileSystemId, Record};
        let entry = Entry {
            kind: EntryKind::File,
            size: 1,
            mtime_ns: 0,
            ctime_ns: None,
            birth_ns: None,
            inode: None,
            file_system: FileSystemId(1),
            target: None,
        };
        let row = |verified_s| {
            let digests = fsure_core::Digests::default();
            let (path, entry) = (path(1), entry.clone());
            let record = Record { path, entry, digests, hashed_ns: 0, verified_s, gone_s: None };
            Row::of_record(record)
        };
        let mut ranges = VerifiedPaths::default();
        ranges.add(&path(0), &path(2), dates(7));
        let mut stored = StoredRow::Sound(row(3));
        ranges.add_to(&mut stored);
        assert!(matches!(&stored, StoredRow::Sound(row) if row.record.verified_s == 7));
        ranges.exclude_if_later(&row(7));
        assert_eq!(ranges.of(b"b"), Some(dates(7)), "as late as the range");
        ranges.exclude_if_later(&row(6));
        let left = [b"a", b"b", b"c"].map(|path| ranges.of(path));
        assert_eq!(left, [Some(dates(7)), None, Some(dates(7))]);
    }

    #[test]
    fn a_range_that_was_changed_by_another_is_damage() {
        for sql in [
            "UPDATE verified_paths SET verified_s = 8",
            "UPDATE verified_paths SET end_path = x'7a'",
            "UPDATE verified_paths SET end_path = 'b'",
            "UPDATE verified_paths SET first_path = x'30'",
        ] {
            let (mut ranges, connection) = (VerifiedPaths::default(), database());
            ranges.add(&path(0), &path(1), dates(7));
            ranges.store(&connection, &mut RowChecksum::new()).expect("store");
            assert!(stored(&connection).is_some());
            connection.execute(sql, []).expect("edit");
            assert!(stored(&connection).is_none(), "{sql}");
        }
    }
}
