//! The amount of files and bytes of a tree, by the age of their last verification.

use super::{KnownDamage, VerdictCounts};
use fsure_core::{ExitCode, RelPath};

/// The time since the last verification, as a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeBucket {
    /// Within 24 hours.
    Today,
    /// Within 7 days.
    Week,
    /// Within 30 days.
    Month,
    /// Within 91 days.
    Quarter,
    /// Within 365 days.
    Year,
    /// Longer ago.
    Older,
    /// Never since it was recorded, or at a date in the future.
    Never,
}

impl AgeBucket {
    /// All of them, the youngest first.
    pub const ALL: [Self; 7] =
        [Self::Today, Self::Week, Self::Month, Self::Quarter, Self::Year, Self::Older, Self::Never];

    /// Returns the class of a date, seen from `now_s`; both in seconds since 1970.
    pub fn of(verified_s: i64, now_s: i64) -> Self {
        const DAY_S: i64 = 86_400;
        let days_max = [1, 7, 30, 91, 365];
        if verified_s <= 0 || verified_s > now_s {
            return Self::Never;
        }
        let place = days_max.iter().position(|days| now_s - verified_s <= days * DAY_S);
        Self::ALL[place.unwrap_or(Self::Older as usize)]
    }

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        ["today", "week", "month", "quarter", "year", "older", "never"][self as usize]
    }
}

/// Files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesAndBytes {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl FilesAndBytes {
    /// Adds more of them.
    pub(super) fn add(&mut self, more: Self) {
        self.files += more.files;
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The recorded files of a root, by the age of their last verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeHistogram {
    pub(crate) amounts: [FilesAndBytes; AgeBucket::ALL.len()],
    /// The file that was verified longest ago, with the date in seconds since
    /// 1970; `None` if no file has a date.
    pub oldest: Option<(RelPath, i64)>,
    /// Rows that fail their seal, of which nothing is known.
    pub bad_records: u64,
    /// Files known to be damaged, by the verdict of the run that last read them.
    pub known_damage: VerdictCounts,
    /// The date at which the oldest of that damage was found, seconds since 1970.
    pub damaged_since_s: Option<i64>,
    /// Roots of their own below this one.
    pub nested_roots: Vec<RelPath>,
}

impl AgeHistogram {
    /// Counts a file that is known to be damaged.
    pub fn add_damage(&mut self, known: KnownDamage) {
        self.known_damage.add(known.verdict);
        let since_s = self.damaged_since_s.unwrap_or(known.found_s);
        self.damaged_since_s = Some(since_s.min(known.found_s));
    }

    /// The exit code that the record by itself deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self.bad_records {
            0 => self.known_damage.known_damage_code(),
            _ => ExitCode::RecordUntrusted,
        }
    }

    /// Counts a file, and returns its class.
    pub fn add(&mut self, path: &RelPath, bytes: u64, verified_s: i64, now_s: i64) -> AgeBucket {
        let when = AgeBucket::of(verified_s, now_s);
        self.amounts[when as usize].add(FilesAndBytes { files: 1, bytes });
        let is_older = self.oldest.as_ref().is_none_or(|(_, oldest)| verified_s < *oldest);
        if when != AgeBucket::Never && is_older {
            self.oldest = Some((path.clone(), verified_s));
        }
        when
    }

    /// Returns the amount whose last verification is in that class.
    pub fn of(&self, when: AgeBucket) -> FilesAndBytes {
        self.amounts[when as usize]
    }

    /// Returns the amount over all classes.
    pub fn total(&self) -> FilesAndBytes {
        self.amounts.iter().fold(FilesAndBytes::default(), |sum, amount| FilesAndBytes {
            files: sum.files + amount.files,
            bytes: sum.bytes.saturating_add(amount.bytes),
        })
    }

    /// Adds those of another root.
    pub fn join(&mut self, other: &Self) {
        for (sum, more) in self.amounts.iter_mut().zip(other.amounts) {
            sum.add(more);
        }
        self.bad_records += other.bad_records;
        self.known_damage.join(&other.known_damage);
        let since = self.damaged_since_s.into_iter().chain(other.damaged_since_s);
        self.damaged_since_s = since.min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_are_whole_days_ago() {
        let now_s = 1_000_000_000;
        for (days, seconds, name) in [
            (0, 0, "today"),
            (1, 0, "today"),
            (1, 1, "week"),
            (7, 0, "week"),
            (30, 0, "month"),
            (91, 0, "quarter"),
            (365, 0, "year"),
            (365, 1, "older"),
            (0, -1, "never"),
        ] {
            let then_s = now_s - days * 86_400 - seconds;
            assert_eq!(AgeBucket::of(then_s, now_s).name(), name, "{days} days {seconds} s");
        }
        assert_eq!(AgeBucket::of(0, now_s), AgeBucket::Never);
    }

    #[test]
    fn the_oldest_has_a_date() {
        let mut ages = AgeHistogram::default();
        let path = |name: &str| RelPath::from_bytes(name.as_bytes());
        for (name, verified_s) in [("b", 500), ("a", 0), ("c", 400), ("d", 9_999)] {
            ages.add(&path(name), 10, verified_s, 1_000);
        }
        assert_eq!(ages.oldest, Some((path("c"), 400)));
        assert_eq!(ages.of(AgeBucket::Never), FilesAndBytes { files: 2, bytes: 20 });
        assert_eq!(ages.total(), FilesAndBytes { files: 4, bytes: 40 });
    }
}
