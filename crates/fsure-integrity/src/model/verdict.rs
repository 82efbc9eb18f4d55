//! The verdict on a path: exactly one word, derived from the record and from what
//! was found. The functions are pure, so that every row of the table can be tested.

use super::{Entry, EntryKind, Record};

/// The verdicts of `docs/promises.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Same content, same date.
    Ok,
    /// Same content, other date.
    Touched,
    /// Other content, newer date.
    Modified,
    /// Other content, older date than recorded.
    Reverted,
    /// Other content; size, dates and inode all as recorded: no system call
    /// wrote it.
    Rotten,
    /// Other content, same modification time, but the change time moved.
    Altered,
    /// Other content, same modification time, identity not comparable.
    DamagedCopy,
    /// Other content than a list says, of which no date is known.
    Mismatch,
    /// A first read failed or differed, a second gives the recorded content.
    Flaky,
    /// Some or all of it cannot be read.
    Unreadable,
    /// No permission.
    Denied,
    /// It changed while it was read, every time it was tried.
    Busy,
    /// Gone, while its root is the same root.
    Missing,
    /// The recorded file, unchanged, under another name.
    Moved,
    /// It became an entry of another type.
    TypeChanged,
    /// Not in the record.
    New,
    /// Left out by pattern or kind.
    Ignored,
    /// Its record fails its own seal.
    RecordBad,
}

impl Verdict {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 18] = [
        Self::Ok,
        Self::Touched,
        Self::Modified,
        Self::Reverted,
        Self::Rotten,
        Self::Altered,
        Self::DamagedCopy,
        Self::Mismatch,
        Self::Flaky,
        Self::Unreadable,
        Self::Denied,
        Self::Busy,
        Self::Missing,
        Self::Moved,
        Self::TypeChanged,
        Self::New,
        Self::Ignored,
        Self::RecordBad,
    ];

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Touched => "touched",
            Self::Modified => "modified",
            Self::Reverted => "reverted",
            Self::Rotten => "rotten",
            Self::Altered => "altered",
            Self::DamagedCopy => "damaged-copy",
            Self::Mismatch => "mismatch",
            Self::Flaky => "flaky",
            Self::Unreadable => "unreadable",
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Missing => "missing",
            Self::Moved => "moved",
            Self::TypeChanged => "type-changed",
            Self::New => "new",
            Self::Ignored => "ignored",
            Self::RecordBad => "record-bad",
        }
    }

    /// Returns true if the content differs although the date says it should not,
    /// or no date explains it: what icj calls SUSPICIOUS.
    pub fn is_suspicious(self) -> bool {
        matches!(self, Self::Rotten | Self::Altered | Self::DamagedCopy | Self::Mismatch)
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// Returns true if the content is damaged, or was when it was first read: the
    /// record remembers it until the file is found as recorded, healed or accepted.
    pub fn is_damage(self) -> bool {
        self.is_suspicious() || matches!(self, Self::Flaky | Self::Unreadable)
    }

    /// Returns true if it must not be overlooked: damage, or what was not judged.
    pub fn is_grave(self) -> bool {
        self.is_damage() || self.is_unread() || self == Self::RecordBad
    }

    /// Returns true if the content could not be read.
    pub fn is_unread(self) -> bool {
        matches!(self, Self::Unreadable | Self::Denied | Self::Busy)
    }

    /// Returns true if `update` may record what it found without an explicit
    /// request for this path. The others need `--accept`, because recording them
    /// would bury evidence.
    pub fn is_recordable(self) -> bool {
        matches!(
            self,
            Self::Ok
                | Self::Touched
                | Self::Modified
                | Self::Reverted
                | Self::New
                | Self::Missing
                | Self::Moved
        )
    }

    /// Returns the verdict on a file that was judged by the record of another name.
    /// The other name counts as a difference only if there is none in the content,
    /// because it says less than any other.
    pub fn as_moved(self) -> Self {
        if matches!(self, Self::Ok | Self::Touched) { Self::Moved } else { self }
    }
}

/// The record of a path in the catalog.
#[derive(Clone, Copy, Debug)]
pub enum RecordState<'a> {
    /// Nothing, or only a tombstone.
    Nothing,
    /// A record that fails its seal.
    Bad,
    /// A record.
    Sound(&'a Record),
}

/// The state found at a path.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// Nothing: the system reports that the name does not exist.
    Absent,
    /// Left out by a pattern, by its kind or as another file system.
    LeftOut,
    /// A folder above it could not be listed for lack of permission.
    Forbidden,
    /// A folder above it could not be listed because of a read error.
    Unlisted,
    /// This entry, and what is known of its content.
    Present(&'a Entry, Evidence),
}

/// The evidence about a content: the extent to which it was read, and its comparison with
/// the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Not read: the stat is all there is (`status`, an unchanged file in
    /// `update`, or a folder).
    StatOnly,
    /// Read; equal to the record.
    Same,
    /// A first read failed or differed, another was equal to the record.
    SameOnSecondRead,
    /// Read, and read again if it differed; it differs. Also if there is no
    /// record to compare with.
    Different,
    /// Read in part; the rest could not be read.
    Partial {
        /// True if a readable block differs from its recorded value.
        rest_differs: bool,
    },
    /// No permission to read it.
    Denied,
    /// Changed during every attempt to read it.
    Busy,
}

/// The rules by which the dates of a file count as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateRules {
    /// The coarser of both file systems' granularities of modification times,
    /// nanoseconds.
    pub granularity_ns: i64,
    /// True if another date explains another content. It does not if most files
    /// of the tree have the recorded content under another date, as in a copy
    /// without its dates: there, every date is another one.
    pub new_date_explains: bool,
}

impl Default for DateRules {
    fn default() -> Self {
        Self { granularity_ns: 1, new_date_explains: true }
    }
}

/// The verdict on one path.
///
/// A path that is neither known nor found has no verdict; requesting one is a
/// programming error.
pub fn judge(known: RecordState<'_>, found: Observation<'_>, rules: DateRules) -> Verdict {
    match (known, found) {
        (RecordState::Bad, _) => Verdict::RecordBad,
        (_, Observation::LeftOut) => Verdict::Ignored,
        (RecordState::Nothing, Observation::Absent) => {
            unreachable!("a path that is neither known nor found")
        }
        (_, Observation::Forbidden) => Verdict::Denied,
        (_, Observation::Unlisted) => Verdict::Unreadable,
        (RecordState::Sound(_), Observation::Absent) => Verdict::Missing,
        (RecordState::Nothing, Observation::Present(_, evidence)) => match evidence {
            Evidence::Denied => Verdict::Denied,
            Evidence::Busy => Verdict::Busy,
            Evidence::Partial { .. } => Verdict::Unreadable,
            _ => Verdict::New,
        },
        (RecordState::Sound(record), Observation::Present(entry, evidence)) => {
            judge_both(record, entry, evidence, rules)
        }
    }
}

fn judge_both(record: &Record, now: &Entry, evidence: Evidence, rules: DateRules) -> Verdict {
    let then = &record.entry;
    if then.kind != now.kind {
        return Verdict::TypeChanged;
    }
    // Without a date nothing explains a difference.
    let same_date =
        then.is_undated() || is_same_date(then.mtime_ns, now.mtime_ns, rules.granularity_ns);
    match evidence {
        Evidence::Denied => Verdict::Denied,
        Evidence::Busy => Verdict::Busy,
        Evidence::SameOnSecondRead => Verdict::Flaky,
        Evidence::Same if same_date => Verdict::Ok,
        Evidence::Same => Verdict::Touched,
        Evidence::Different => judge_difference(record, now, rules),
        Evidence::StatOnly => judge_stat(record, now, rules),
        // Blocks that differ under the same date are damage, and damage says
        // more than the block beside it that cannot be read. Under another
        // date they may be an edit, of which only part can be seen.
        Evidence::Partial { rest_differs: true }
            if same_date && judge_difference(record, now, rules).is_suspicious() =>
        {
            judge_difference(record, now, rules)
        }
        Evidence::Partial { .. } => Verdict::Unreadable,
    }
}

fn judge_stat(record: &Record, now: &Entry, rules: DateRules) -> Verdict {
    let then = &record.entry;
    if then.is_undated() {
        // A size of 0 may be that of a file that was not there.
        let is_resized = then.size != 0 && then.size != now.size;
        return if is_resized { Verdict::Mismatch } else { Verdict::Ok };
    }
    let same_date = is_same_date(then.mtime_ns, now.mtime_ns, rules.granularity_ns);
    let same_content = then.size == now.size && then.target == now.target;
    match (then.kind, same_date, same_content) {
        // A folder's date says that names in it came or went, which is reported
        // for those names themselves.
        (EntryKind::Folder, _, _) | (_, true, true) => Verdict::Ok,
        // Nothing was read: all that is known to have changed is the date.
        (_, false, true) => Verdict::Touched,
        _ => judge_difference(record, now, rules),
    }
}

/// The content differs: does the date explain it?
fn judge_difference(record: &Record, now: &Entry, rules: DateRules) -> Verdict {
    let then = &record.entry;
    if then.is_undated() {
        return Verdict::Mismatch;
    }
    // A copy has the date that the copying gave it. What has another size was
    // edited or cut off, and either is seen.
    let is_copy = then.file_system != now.file_system || !rules.new_date_explains;
    match is_same_date(then.mtime_ns, now.mtime_ns, rules.granularity_ns) {
        false if is_copy && then.size == now.size => Verdict::DamagedCopy,
        false if now.mtime_ns > then.mtime_ns => Verdict::Modified,
        false => Verdict::Reverted,
        // Two dates beyond the same end of their range cannot be compared: only
        // what no system call wrote is not an edit.
        true if then.exact_mtime_ns().is_none() && !then.same_change(now) => Verdict::Modified,
        true if !then.same_identity(now) => Verdict::DamagedCopy,
        // A write in the tick of the record moves no date.
        true if then.same_change(now) && !record.is_racy(rules.granularity_ns) => Verdict::Rotten,
        true => Verdict::Altered,
    }
}

/// Returns true if two modification times, nanoseconds since 1970, are equal at
/// the granularity of the coarser file system, or if one is the other without
/// its fraction of a second: archives and copies by tar, scp or SMB cut it off
/// even if the file system could keep it, and zip keeps even seconds. Beyond
/// the granularity, two different whole seconds are never equal.
pub fn is_same_date(then_ns: i64, now_ns: i64, granularity_ns: i64) -> bool {
    const SECOND: i64 = 1_000_000_000;
    let granularity_ns = granularity_ns.max(1);
    if then_ns.div_euclid(granularity_ns) == now_ns.div_euclid(granularity_ns) {
        return true;
    }
    let is_whole = |time_ns: i64| time_ns.rem_euclid(SECOND) == 0;
    let (whole, other) = match (is_whole(then_ns), is_whole(now_ns)) {
        (true, false) => (then_ns, now_ns),
        (false, true) => (now_ns, then_ns),
        _ => return false,
    };
    let is_even = whole.rem_euclid(2 * SECOND) == 0;
    other.div_euclid(SECOND) == whole.div_euclid(SECOND)
        || (is_even && whole.abs_diff(other) < 2 * SECOND.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileSystemId;
    use fsure_core::{Digests, RelPath};

    const NOW: i64 = 1_700_000_000_123_456_789;

    fn entry() -> Entry {
        Entry {
            kind: EntryKind::File,
            size: 5,
            mtime_ns: NOW,
            ctime_ns: Some(NOW),
            birth_ns: Some(NOW),
            inode: Some(12),
            file_system: FileSystemId(1),
            target: None,
        }
    }

    fn changed(change: impl FnOnce(&mut Entry)) -> Entry {
        let mut entry = entry();
        change(&mut entry);
        entry
    }

    fn record() -> Record {
        Record {
            path: RelPath::from_bytes(*b"a"),
            entry: entry(),
            digests: Digests::default(),
            hashed_ns: NOW + 1_000_000_000,
            verified_s: 0,
            gone_s: None,
        }
    }

    /// Every row of the design's table that needs no second source.
    #[test]
    fn the_table() {
        use Evidence::{Busy, Denied, Different, Partial, Same, SameOnSecondRead, StatOnly};
        let same = entry();
        let newer = changed(|e| {
            e.mtime_ns += 10;
            e.ctime_ns = Some(NOW + 10);
        });
        let older = changed(|e| {
            e.mtime_ns -= 10;
            e.ctime_ns = Some(NOW + 10);
        });
        let ctime_moved = changed(|e| e.ctime_ns = Some(NOW + 10));
        let other_inode = changed(|e| e.inode = Some(13));
        let other_disk = changed(|e| e.file_system = FileSystemId(2));
        let inode_reused = changed(|e| e.birth_ns = Some(NOW + 10));
        let no_inode = changed(|e| e.inode = None);
        let no_ctime = changed(|e| e.ctime_ns = None);
        let longer = changed(|e| e.size = 6);
        let longer_newer = changed(|e| {
            e.size = 6;
            e.mtime_ns += 10;
        });
        let folder = changed(|e| e.kind = EntryKind::Folder);
        let partly_bad = Partial { rest_differs: true };
        let partly_good = Partial { rest_differs: false };
        let rows = [
            (&same, Same, Verdict::Ok),
            (&ctime_moved, Same, Verdict::Ok),
            (&other_inode, Same, Verdict::Ok),
            (&newer, Same, Verdict::Touched),
            (&older, Same, Verdict::Touched),
            (&newer, Different, Verdict::Modified),
            (&longer_newer, Different, Verdict::Modified),
            (&older, Different, Verdict::Reverted),
            (&same, Different, Verdict::Rotten),
            (&ctime_moved, Different, Verdict::Altered),
            (&other_inode, Different, Verdict::DamagedCopy),
            (&other_disk, Different, Verdict::DamagedCopy),
            (&inode_reused, Different, Verdict::DamagedCopy),
            (&no_inode, Different, Verdict::DamagedCopy),
            (&no_ctime, Different, Verdict::DamagedCopy),
            (&same, SameOnSecondRead, Verdict::Flaky),
            (&same, partly_good, Verdict::Unreadable),
            (&same, partly_bad, Verdict::Rotten),
            (&ctime_moved, partly_bad, Verdict::Altered),
            (&newer, partly_bad, Verdict::Unreadable),
            (&same, Denied, Verdict::Denied),
            (&newer, Busy, Verdict::Busy),
            (&folder, StatOnly, Verdict::TypeChanged),
            (&same, StatOnly, Verdict::Ok),
            (&ctime_moved, StatOnly, Verdict::Ok),
            (&newer, StatOnly, Verdict::Touched),
            (&longer_newer, StatOnly, Verdict::Modified),
            (&longer, StatOnly, Verdict::Rotten),
            (&changed(|e| (e.size, e.ctime_ns) = (6, Some(1))), StatOnly, Verdict::Altered),
        ];
        let record = record();
        for (now, evidence, verdict) in rows {
            let found = Observation::Present(now, evidence);
            let rules = DateRules::default();
            assert_eq!(
                judge(RecordState::Sound(&record), found, rules),
                verdict,
                "{now:?} {evidence:?}"
            );
        }
    }

    #[test]
    fn the_table_without_a_record() {
        let same = entry();
        let without_record = [
            (Evidence::Different, Verdict::New),
            (Evidence::StatOnly, Verdict::New),
            (Evidence::Denied, Verdict::Denied),
            (Evidence::Busy, Verdict::Busy),
            (Evidence::Partial { rest_differs: false }, Verdict::Unreadable),
        ];
        for (evidence, verdict) in without_record {
            let found = Observation::Present(&same, evidence);
            assert_eq!(judge(RecordState::Nothing, found, DateRules::default()), verdict);
        }
    }

    #[test]
    fn without_a_date_nothing_explains_a_difference() {
        use Evidence::{Different, Partial, Same, SameOnSecondRead, StatOnly};
        let undated = |size| {
            let mut record = record();
            record.entry = changed(|e| (e.mtime_ns, e.size) = (crate::model::UNDATED, size));
            record
        };
        let folder = changed(|e| e.kind = EntryKind::Folder);
        for (size, now, evidence, verdict) in [
            (5, &entry(), Same, Verdict::Ok),
            (5, &entry(), Different, Verdict::Mismatch),
            (6, &entry(), Different, Verdict::Mismatch),
            (5, &entry(), SameOnSecondRead, Verdict::Flaky),
            (5, &entry(), Partial { rest_differs: true }, Verdict::Mismatch),
            (5, &entry(), Partial { rest_differs: false }, Verdict::Unreadable),
            (5, &entry(), StatOnly, Verdict::Ok),
            (0, &entry(), StatOnly, Verdict::Ok),
            (6, &entry(), StatOnly, Verdict::Mismatch),
            (5, &folder, StatOnly, Verdict::TypeChanged),
        ] {
            let record = undated(size);
            let found = Observation::Present(now, evidence);
            let judged = judge(RecordState::Sound(&record), found, DateRules::default());
            assert_eq!(judged, verdict, "{size} {now:?} {evidence:?}");
        }
    }

    #[test]
    fn what_is_not_there_to_be_read() {
        let record = record();
        let entry = entry();
        let sound = RecordState::Sound(&record);
        for (known, found, verdict) in [
            (sound, Observation::Absent, Verdict::Missing),
            (sound, Observation::LeftOut, Verdict::Ignored),
            (RecordState::Bad, Observation::LeftOut, Verdict::RecordBad),
            (RecordState::Nothing, Observation::LeftOut, Verdict::Ignored),
            (sound, Observation::Forbidden, Verdict::Denied),
            (RecordState::Nothing, Observation::Forbidden, Verdict::Denied),
            (sound, Observation::Unlisted, Verdict::Unreadable),
            (RecordState::Bad, Observation::Absent, Verdict::RecordBad),
            (
                RecordState::Bad,
                Observation::Present(&entry, Evidence::Different),
                Verdict::RecordBad,
            ),
        ] {
            assert_eq!(judge(known, found, DateRules::default()), verdict, "{known:?} {found:?}");
        }
    }

    #[test]
    fn dates_are_compared_at_the_coarser_granularity() {
        const TWO_SECONDS: i64 = 2_000_000_000;
        let record = record();
        let on_fat = changed(|e| {
            e.mtime_ns = NOW / TWO_SECONDS * TWO_SECONDS + 1;
            e.inode = None;
        });
        let judged = |evidence, granularity_ns| {
            let rules = DateRules { granularity_ns, ..DateRules::default() };
            judge(RecordState::Sound(&record), Observation::Present(&on_fat, evidence), rules)
        };
        assert_eq!(judged(Evidence::Same, TWO_SECONDS), Verdict::Ok);
        assert_eq!(judged(Evidence::Different, TWO_SECONDS), Verdict::DamagedCopy);
        assert_eq!(judged(Evidence::Different, 1), Verdict::Reverted);
    }

    #[test]
    fn a_date_without_its_fraction_is_the_same_date() {
        const SECOND: i64 = 1_000_000_000;
        for (then, now, same) in [
            (100 * SECOND + 5, 100 * SECOND, true),
            (101 * SECOND + 5, 101 * SECOND, true),
            (101 * SECOND + 5, 100 * SECOND, true),
            (101 * SECOND + 5, 102 * SECOND, true),
            (100 * SECOND + 5, 101 * SECOND, false),
            (102 * SECOND + 5, 100 * SECOND, false),
            (100 * SECOND, 100 * SECOND + 5, true),
            (100 * SECOND, 101 * SECOND, false),
            (101 * SECOND, 102 * SECOND, false),
            (100 * SECOND + 5, 100 * SECOND + 6, false),
            // Whatever a list says, and what stands for no date.
            (i64::MIN, 100 * SECOND, false),
            (i64::MAX, 100 * SECOND, false),
            (100 * SECOND, i64::MIN + 1, false),
        ] {
            assert_eq!(is_same_date(then, now, 1), same, "{then} {now}");
        }
    }

    #[test]
    fn racy_means_recorded_within_two_ticks() {
        let racy = |change_ns: i64, hashed_ns: i64, granularity_ns| {
            let mut record = record();
            record.entry.ctime_ns = Some(change_ns);
            record.hashed_ns = hashed_ns;
            record.is_racy(granularity_ns)
        };
        assert!(racy(NOW, NOW + 19_999_999, 1));
        assert!(!racy(NOW, NOW + 20_000_000, 1));
        assert!(racy(NOW, NOW + 3_999_999_999, 2_000_000_000));
        assert!(racy(NOW, NOW - 5, 1), "a clock that was set back");
        assert!(!racy(NOW, NOW - 86_400_000_000_000, 1), "written by a clock that was wrong");
        const SECOND: i64 = 1_000_000_000;
        assert!(racy(101 * SECOND, 102 * SECOND, 1), "its date is kept by the second");
        assert!(!racy(101 * SECOND, 103 * SECOND, 1));
    }
}
