//! An interval of the history: the sums of a watch, of bounded size. Two of them make a coarser
//! one, by the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fsure_os::io_trace::{IoCounts, TraceReport, TracedFolder};

use super::folder_limit::limit_folders;
use super::folder_sum::{RecordedFolder, RecordedRest};
use crate::folder_tree::{bytes, waited_ns};

/// Programs that an interval names; the others are summed up.
const PROGRAMS_MAX: usize = 16;

/// The operations of all programs from one moment to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedInterval {
    /// Its beginning, in nanoseconds since 1970.
    pub began_ns: i64,
    /// Its end, in nanoseconds since 1970.
    pub ended_ns: i64,
    /// Seconds of it that were recorded. It is less than its length if the machine slept, or if
    /// intervals with a gap between them were merged.
    pub seconds: f64,
    /// Number of recorded intervals that were merged into it.
    pub intervals: u64,
    /// Folders by path.
    pub folders: BTreeMap<PathBuf, RecordedFolder>,
    /// Folders that no path leads to.
    pub not_visible: RecordedRest,
    /// Programs by name.
    pub programs: BTreeMap<String, IoCounts>,
    /// Programs that are not named.
    pub other_programs: RecordedRest,
    /// Kinds of events that were lost, with their number.
    pub lost: BTreeMap<String, u64>,
    /// Descriptions of what cannot be seen.
    pub not_seen: BTreeSet<String>,
}

impl RecordedInterval {
    /// Sums up a watch that lasted `seconds` and ended at `ended_ns`.
    pub(super) fn of_trace(
        report: TraceReport,
        (began_ns, ended_ns): (i64, i64),
        seconds: f64,
    ) -> Self {
        // The clock may have been set back meanwhile.
        let began_ns = began_ns.min(ended_ns - (seconds * 1e9) as i64);
        let mut interval = Self { began_ns, ended_ns, seconds, intervals: 1, ..Self::default() };
        for folder in report.folders {
            let programs = folder.processes.into_iter().map(|process| process.name).collect();
            match folder.place {
                TracedFolder::At(path) => {
                    let other =
                        RecordedFolder { counts: folder.counts, programs, has_below: false };
                    interval.folders.entry(path).or_default().add(other);
                }
                TracedFolder::Unseen { .. } => {
                    interval.not_visible.count += 1;
                    interval.not_visible.counts.add(&folder.counts);
                }
            }
        }
        for (name, counts) in report.programs {
            interval.programs.entry(name).or_default().add(&counts);
        }
        interval.lost = report.lost.into_iter().map(|(what, n)| (what.to_owned(), n)).collect();
        interval.not_seen = report.blind.into_iter().collect();
        interval.limit();
        interval
    }

    /// Adds an interval that follows this one, or the other way round.
    pub(super) fn merge(&mut self, other: Self) {
        self.began_ns = self.began_ns.min(other.began_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.seconds += other.seconds;
        self.intervals = self.intervals.saturating_add(other.intervals);
        for (path, folder) in other.folders {
            self.folders.entry(path).or_default().add(folder);
        }
        self.not_visible.merge(&other.not_visible);
        for (name, counts) in other.programs {
            self.programs.entry(name).or_default().add(&counts);
        }
        self.other_programs.merge(&other.other_programs);
        for (what, count) in other.lost {
            let sum = self.lost.entry(what).or_default();
            *sum = sum.saturating_add(count);
        }
        self.not_seen.extend(other.not_seen);
        self.limit();
    }

    fn limit(&mut self) {
        limit_folders(&mut self.folders);
        if self.programs.len() > PROGRAMS_MAX {
            let mut all: Vec<_> = std::mem::take(&mut self.programs).into_iter().collect();
            all.sort_by_key(|(_, counts)| std::cmp::Reverse((waited_ns(counts), bytes(counts))));
            let rest = all.split_off(PROGRAMS_MAX);
            self.programs = all.into_iter().collect();
            self.other_programs.count = self.other_programs.count.max(rest.len() as u64);
            rest.iter().for_each(|(_, counts)| self.other_programs.counts.add(counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::folder_sum::FOLDER_PROGRAMS_MAX;

    fn interval(from: i64, to: i64, program: &str, fsync_ns: u64) -> RecordedInterval {
        let counts = IoCounts { fsyncs: 1, fsync_ns, ..IoCounts::default() };
        let folder =
            RecordedFolder { counts, programs: [program.to_owned()].into(), has_below: false };
        RecordedInterval {
            began_ns: from * 1_000_000_000,
            ended_ns: to * 1_000_000_000,
            seconds: (to - from) as f64,
            intervals: 1,
            folders: [(PathBuf::from("/srv"), folder)].into(),
            programs: [(program.to_owned(), counts)].into(),
            ..RecordedInterval::default()
        }
    }

    #[test]
    fn two_intervals_make_one_that_has_what_both_have() {
        let mut both = interval(0, 600, "a", 7);
        both.merge(interval(1000, 1600, "b", 3));
        assert_eq!((both.began_ns, both.ended_ns), (0, 1_600_000_000_000));
        assert_eq!((both.seconds, both.intervals), (1200.0, 2), "the gap was not recorded");
        let folder = &both.folders[&PathBuf::from("/srv")];
        assert_eq!((folder.counts.fsync_ns, folder.programs.len()), (10, 2));
        assert_eq!(both.programs["a"].fsync_ns, 7);
    }

    #[test]
    fn programs_that_are_not_named_are_summed_up() {
        let mut all = interval(0, 600, "p", 1000);
        for n in 0..100 {
            all.merge(interval(0, 600, &format!("p{n}"), n));
        }
        assert_eq!(all.programs.len(), PROGRAMS_MAX);
        assert!(all.programs.contains_key("p") && all.programs.contains_key("p99"));
        let named: u64 = all.programs.values().map(|counts| counts.fsync_ns).sum();
        assert_eq!(named + all.other_programs.counts.fsync_ns, 1000 + (0..100).sum::<u64>());
        let folder = &all.folders[&PathBuf::from("/srv")];
        assert_eq!(folder.programs.len(), FOLDER_PROGRAMS_MAX);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_turn_an_interval_round() {
        let report = TraceReport {
            folders: vec![],
            programs: vec![],
            blind: vec![],
            lost: vec![("names", 3)],
            processes_left: 0,
            metadata: None,
        };
        let interval = RecordedInterval::of_trace(report, (9_000_000_000, 2_000_000_000), 1.5);
        assert_eq!((interval.began_ns, interval.ended_ns), (500_000_000, 2_000_000_000));
        assert_eq!(interval.lost["names"], 3);
    }
}
