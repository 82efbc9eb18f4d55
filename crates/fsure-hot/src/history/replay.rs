//! `hot --history`: what a recorder has stored, as if it had been watched now. Time that was not
//! recorded is in no figure: it is not taken for quiet.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use fsure_core::{Clock, Error, IoContext as _, Result, shell_quoted};
use fsure_os::io_trace::{FolderIo, ProcessIo, TraceSource, TracedFolder};
use fsure_os::{lock, user_file};

use super::coverage::{Gap, History, seconds_between};
use super::folder_sum::RecordedRest;
use super::interval::RecordedInterval;
use super::store::LOCK_FILE;
use super::store_lines::{StoreLine, StoreLines, intervals_file};
use crate::folder_tree;
use crate::hot::{self, Hot};

/// Intervals that are kept for a picture, at most twice as many as that: more have no room in it.
const INTERVALS_SHOWN_MAX: usize = 300;

/// Seconds between two intervals that are not called a gap: clocks are set by less.
const GAP_MIN_S: f64 = 5.0;

/// Options of [`hot_history`].
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Folder of the store.
    pub store: PathBuf,
    /// Time before now that matters; all that is stored if it is `None`.
    pub since: Option<Duration>,
    /// Folders that matter, with all below them; all if there are none.
    pub below: Vec<PathBuf>,
    /// Clock by which times are read.
    pub clock: Clock,
}

/// Returns what was recorded, with advice. Contents of folders are looked at now.
pub fn hot_history(options: &HistoryOptions) -> Result<Hot> {
    let below = hot::resolved(&options.below)?;
    let now_ns = options.clock.now_ns();
    let mut sum = Sum::default();
    read(options, now_ns, &mut sum)?;
    let is_recording = matches!(lock::holder(&options.store.join(LOCK_FILE)), Ok(Some(_)));
    if sum.history.recorded == 0 {
        return Err(nothing(options, sum.newest_ns, is_recording));
    }
    sum.history.is_recording = is_recording;
    let last_ns = sum.last_ended_ns.unwrap_or(now_ns);
    sum.history.age_s = seconds_between(last_ns, now_ns);
    sum.history.is_in_future = missing(seconds_between(now_ns, sum.history.ended_ns)) > 0.0;
    Ok(sum.into_hot(&below))
}

/// Adds the intervals of the store that matter.
fn read(options: &HistoryOptions, now_ns: i64, sum: &mut Sum) -> Result<()> {
    let file = intervals_file(&options.store);
    let since_ns = options.since.map_or(i64::MIN, |since| {
        now_ns.saturating_sub(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    });
    let opened = user_file::open_own(&file).map_err(|error| cannot_read(options, error))?;
    let mut lines = StoreLines::new(opened);
    while let Some(line) = lines.next_line().context("read", &file)? {
        match line {
            StoreLine::Damaged => sum.history.damaged += 1,
            StoreLine::Interval(one, _) => {
                sum.newest_ns = sum.newest_ns.max(Some(one.ended_ns));
                if one.ended_ns > since_ns {
                    sum.add(*one);
                }
            }
        }
    }
    Ok(())
}

/// Sums of the intervals that were read.
#[derive(Default)]
struct Sum {
    history: History,
    seconds: f64,
    folders: BTreeMap<PathBuf, FolderIo>,
    lost: BTreeMap<String, u64>,
    not_seen: BTreeSet<String>,
    /// End of the interval that was read last.
    last_ended_ns: Option<i64>,
    /// Intervals that are merged into each of those that are kept for a picture.
    merged_each: u64,
    /// End of the newest interval, also of one that does not matter.
    newest_ns: Option<i64>,
}

impl Sum {
    fn add(&mut self, one: RecordedInterval) {
        self.add_times(&one);
        for (path, folder) in &one.folders {
            let place = TracedFolder::At(path.clone());
            let sum = self.folders.entry(path.clone()).or_insert_with(|| FolderIo {
                place,
                counts: Default::default(),
                processes: BTreeSet::new(),
            });
            sum.counts.add(&folder.counts);
            // Numbers of processes say nothing over days: programs stand for themselves.
            let programs = folder.programs.iter();
            sum.processes.extend(programs.map(|name| ProcessIo { name: name.clone(), id: 0 }));
        }
        self.history.not_visible.count = self.history.not_visible.count.max(one.not_visible.count);
        self.history.not_visible.counts.add(&one.not_visible.counts);
        for (what, count) in &one.lost {
            let sum = self.lost.entry(what.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.not_seen.extend(one.not_seen.iter().cloned());
        self.show(one);
    }

    fn add_times(&mut self, one: &RecordedInterval) {
        let history = &mut self.history;
        let is_first = history.recorded == 0;
        history.recorded = history.recorded.saturating_add(one.intervals.max(1));
        self.seconds += one.seconds;
        history.began_ns = if is_first { one.began_ns } else { history.began_ns.min(one.began_ns) };
        history.ended_ns = if is_first { one.ended_ns } else { history.ended_ns.max(one.ended_ns) };
        let length = seconds_between(one.began_ns, one.ended_ns);
        history.seconds_missing += missing(length - one.seconds);
        if let Some(last) = self.last_ended_ns {
            let between = seconds_between(last, one.began_ns);
            let gap = Gap { began_ns: last, ended_ns: one.began_ns };
            history.gaps.extend((missing(between) > 0.0).then_some(gap));
            history.seconds_missing += missing(between);
            history.set_back += u64::from(missing(-between) > 0.0);
        }
        self.last_ended_ns = Some(one.ended_ns);
    }

    /// Keeps an interval for a picture. All that are kept have the same number of intervals.
    fn show(&mut self, one: RecordedInterval) {
        let shown = &mut self.history.intervals;
        match shown.last_mut().filter(|last| last.intervals < self.merged_each) {
            Some(last) => last.merge(one),
            None => shown.push(one),
        }
        if shown.len() > 2 * INTERVALS_SHOWN_MAX {
            self.merged_each = self.merged_each.max(1) * 2;
            let mut all = std::mem::take(shown).into_iter();
            while let Some(mut both) = all.next() {
                all.next().into_iter().for_each(|next| both.merge(next));
                shown.push(both);
            }
        }
    }

    fn into_hot(mut self, below: &[PathBuf]) -> Hot {
        if !below.is_empty() {
            // Where the others were is not known, nor what the programs did in these.
            self.history.not_visible = RecordedRest::default();
            self.history.intervals.clear();
        }
        let tree = folder_tree::tree(&hot::only(self.folders.into_values().collect(), below));
        let mut hot = Hot {
            source: TraceSource::Ebpf,
            fell_back: None,
            seconds: self.seconds,
            tree,
            unseen: Vec::new(),
            advised: Vec::new(),
            blind: self.not_seen.into_iter().collect(),
            lost: self.lost.into_iter().collect(),
            command: None,
            processes_left: 0,
            metadata: None,
            logged: None,
            history: Some(self.history),
            ended_by: None,
        };
        hot.advised = hot::advice(&hot);
        hot
    }
}

/// Seconds that are long enough to be missed, or 0.
fn missing(seconds: f64) -> f64 {
    if seconds >= GAP_MIN_S { seconds } else { 0.0 }
}

/// The error of a store that cannot be read.
fn cannot_read(options: &HistoryOptions, error: io::Error) -> Error {
    let folder = options.store.display();
    let quoted = shell_quoted(&options.store);
    let (message, hint) = match error.kind() {
        ErrorKind::NotFound => (
            format!("there is no history in {folder}: nothing was recorded there"),
            how_to_record(),
        ),
        ErrorKind::PermissionDenied => (
            format!("the history in {folder} is closed to this user: {error}"),
            format!(
                "put 'sudo' in front of it, or let root open it to the group of this user: 'sudo \
                 chgrp -R {} {quoted} && sudo chmod -R g+rX {quoted}'",
                fsure_os::user::user_and_group().1
            ),
        ),
        _ => {
            let path = intervals_file(&options.store);
            return Error::Io { doing: "open", path, source: error };
        }
    };
    Error::FailedPrecondition { message, hint: Some(hint) }
}

fn how_to_record() -> String {
    "begin with 'sudo systemctl enable --now fsure-hot.service', or in a terminal with 'sudo fsure \
     hot record'"
        .to_owned()
}

/// The error of a store in which nothing matters.
fn nothing(options: &HistoryOptions, newest_ns: Option<i64>, is_recording: bool) -> Error {
    let folder = options.store.display();
    let (message, hint) = match newest_ns {
        Some(_) => (
            format!("nothing was recorded in {folder} in the time of '--since'"),
            "leave out '--since' to see all that is there".to_owned(),
        ),
        None if is_recording => (
            format!("no interval is over yet in {folder}, into which a recorder records"),
            "wait until the first one is stored, or run 'sudo fsure hot advise' now".to_owned(),
        ),
        None => (format!("the history in {folder} is empty"), how_to_record()),
    };
    Error::FailedPrecondition { message, hint: Some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::folder_sum::RecordedFolder;
    use crate::history::store_lines::start_line;
    use crate::history::stored_interval::stored_line;
    use fsure_os::io_trace::IoCounts;

    const SECOND_NS: i64 = 1_000_000_000;

    /// An interval from one second to another, in which `/srv/db` was flushed for a second.
    fn interval(from: i64, to: i64) -> RecordedInterval {
        let counts = IoCounts { fsyncs: 1, fsync_ns: 1_000_000_000, ..IoCounts::default() };
        let programs = ["db".to_owned()].into();
        let folder = RecordedFolder { counts, programs, has_below: false };
        RecordedInterval {
            began_ns: from * SECOND_NS,
            ended_ns: to * SECOND_NS,
            seconds: (to - from) as f64,
            intervals: 1,
            folders: [(PathBuf::from("/srv/db"), folder)].into(),
            programs: [("db".to_owned(), counts)].into(),
            ..RecordedInterval::default()
        }
    }

    fn replay(text: &str, since: Option<u64>, now: i64) -> Result<Hot> {
        let folder = tempfile::tempdir().expect("make a folder");
        std::fs::write(intervals_file(folder.path()), text).expect("write");
        hot_history(&HistoryOptions {
            store: folder.path().to_owned(),
            since: since.map(Duration::from_secs),
            below: Vec::new(),
            clock: Clock::from_fn(move || now * SECOND_NS),
        })
    }

    fn store(intervals: &[RecordedInterval]) -> String {
        let lines = intervals.iter().map(|one| stored_line(one) + "\n");
        std::iter::once(start_line(0)).chain(lines).collect()
    }

    #[test]
    fn time_that_was_not_recorded_is_not_quiet() {
        let text = store(&[interval(0, 600), interval(600, 1200), interval(4800, 5400)]);
        let hot = replay(&text, None, 5400).unwrap();
        assert_eq!(hot.seconds, 1800.0);
        // Three seconds in half an hour, and not in an hour and a half.
        assert_eq!(hot.per_hour(hot.tree.all.fsync_ns), 6.0);
        let history = hot.history.expect("it is one");
        assert_eq!((history.recorded, history.seconds_missing), (3, 3600.0));
        let gap = Gap { began_ns: 1200 * SECOND_NS, ended_ns: 4800 * SECOND_NS };
        assert_eq!((history.gaps, history.set_back), (vec![gap], 0));
    }

    #[test]
    fn a_time_before_now_leaves_out_what_is_older() {
        let text = store(&[interval(0, 600), interval(600, 1200), interval(1200, 1800)]);
        let recorded = |since| replay(&text, since, 2000).map(|hot| hot.history.unwrap().recorded);
        assert_eq!(recorded(Some(1000)).unwrap(), 2);
        assert_eq!(recorded(Some(500)).unwrap(), 1);
        assert_eq!(recorded(None).unwrap(), 3);
        let error = recorded(Some(100)).unwrap_err();
        assert!(error.to_string().contains("'--since'"), "{error}");
        let empty = replay("", None, 0).unwrap_err();
        assert!(empty.hint().is_some_and(|hint| hint.contains("hot record")), "{empty}");
    }

    #[test]
    fn a_clock_that_was_set_back_is_reported_and_damage_counted() {
        let text = store(&[interval(9000, 9600), interval(600, 1200)]) + "damage\n" + "torn";
        let history = replay(&text, None, 1200).unwrap().history.unwrap();
        assert_eq!((history.set_back, history.damaged, history.recorded), (1, 1, 2));
        assert!(history.gaps.is_empty() && history.is_in_future);
        assert_eq!(history.age_s, 0.0, "that of the last one stored");
        assert_eq!((history.began_ns, history.ended_ns), (600 * SECOND_NS, 9600 * SECOND_NS));
    }

    #[test]
    fn many_intervals_are_merged_for_a_picture_and_nothing_is_lost() {
        let all: Vec<_> = (0..1500).map(|n| interval(n * 600, (n + 1) * 600)).collect();
        let hot = replay(&store(&all), None, 1500 * 600).unwrap();
        let history = hot.history.expect("it is one");
        assert_eq!(history.intervals.len(), 375, "four in each");
        assert!(history.intervals.iter().all(|one| one.intervals == 4));
        let of = |one: &RecordedInterval| one.programs["db"].fsyncs;
        assert_eq!(history.intervals.iter().map(of).sum::<u64>(), 1500);
        assert_eq!((hot.tree.all.fsyncs, history.recorded), (1500, 1500));
    }

    #[test]
    fn a_store_that_is_not_there_says_how_to_record() {
        let folder = tempfile::tempdir().expect("make a folder");
        let options = HistoryOptions {
            store: folder.path().join("none"),
            since: None,
            below: Vec::new(),
            clock: Clock::default(),
        };
        let error = hot_history(&options).unwrap_err();
        assert!(error.to_string().contains("there is no history in"), "{error}");
    }
}
