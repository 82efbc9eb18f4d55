//! Scrubs over years, by a clock that the test sets: with a budget each, every
//! byte is read exactly once before any is read twice, the longest unverified
//! first, whatever happens to the runs in between. What was read is counted by
//! the requests that reach a FUSE view.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::support::full_test_name;
use crate::support::scrub::{DAY_S, scrub_at, update_at};
use crate::support::{FaultyFs, Meanwhile, Moment, Recorded, Request, Tree, content, or_skip};
use fsure_integrity::scan::Budget;
use rusqlite::types::Value;

const MIB: u64 = 1 << 20;
const HUGE_MIB: u64 = 48;
const FILES: u64 = 26;
const ALL_MIB: u64 = HUGE_MIB + 2 * FILES;
const BUDGET: u64 = 10 * MIB;

/// The day of the first record: in the future, for a file that changed after it
/// was read would be racy. And that of the first scrub.
const FIRST_DAY: i64 = 40_000;
const SCRUB_DAY: i64 = 50_000;

/// Between the two, so that nothing comes by twice, but in this run.
const MAX_AGE: Duration = Duration::from_secs(5_000 * 86_400);
const ONCE_AROUND: i64 = 20;

/// A tree of three ages, seen through a view that counts.
struct Years {
    tree: Tree,
    _beside: Tree,
    view: FaultyFs,
    recorded: Recorded,
}

/// Returns the age of a path of the tree as its rank: 0 is the oldest.
fn age(path: &Path) -> usize {
    ["c-old", "b-huge", "a-new"].iter().position(|age| path.starts_with(age)).expect("an age")
}

fn years(test: &str) -> Option<Years> {
    let (tree, beside) = (Tree::new(), Tree::new());
    let view = or_skip(test, FaultyFs::new(tree.root()))?;
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    let record = |day| update_at(view.root(), Some(&recorded.catalog), (FIRST_DAY + day) * DAY_S);
    // The huge one lies before the older ones on the disk.
    let mut pool: Vec<_> = (0..=FILES).map(|n| beside.write(n.to_string(), "")).collect();
    pool.sort_by_key(|file| file.metadata().expect("stat").ino());
    let mut pool = pool.into_iter();
    let huge_to_be = pool.next().expect("a file");
    std::fs::write(&huge_to_be, content((HUGE_MIB * MIB) as usize, 7)).expect("write");
    let mut small = |folder: &str, seed| {
        std::fs::create_dir(tree.path(folder)).expect("make a folder");
        for number in 0..FILES {
            let path = tree.path(format!("{folder}/{number:02}"));
            if let Some(file) = pool.next() {
                std::fs::rename(file, &path).expect("rename");
            }
            std::fs::write(path, content(MIB as usize, seed + number)).expect("write");
        }
    };
    small("c-old", 0);
    record(0);
    std::fs::create_dir(tree.path("b-huge")).expect("make a folder");
    let huge = tree.path("b-huge/file");
    std::fs::rename(huge_to_be, &huge).expect("rename");
    record(10);
    small("a-new", 100);
    record(20);
    view.take_requests();
    Some(Years { tree, _beside: beside, view, recorded })
}

impl Years {
    /// One scrub with the budget, and the requests it made.
    fn scrub(&self, run: i64) -> Vec<Request> {
        let now_s = (SCRUB_DAY + run) * DAY_S;
        let catalog = Some(&*self.recorded.catalog);
        let max_age = Some(MAX_AGE).filter(|_| run < ONCE_AROUND);
        let outcome = scrub_at(self.view.root(), catalog, now_s, Budget::Bytes(BUDGET), max_age);
        assert_eq!(outcome.exit_code().number(), 0, "{outcome:?}");
        let requests = self.view.take_requests();
        assert_eq!(outcome.bytes.total(), bytes(&requests), "the meter of run {run}");
        requests
    }

    /// Returns the time at which each file was last verified, in seconds since 1970.
    fn dates(&self) -> BTreeMap<String, i64> {
        let rows = self.recorded.rows().into_iter().filter(|(_, row)| row["kind"] == 0.into());
        rows.map(|(path, row)| (String::from_utf8(path).expect("text"), number(&row["verified_s"])))
            .collect()
    }

    /// Bytes that are noted as verified since the first scrub.
    fn noted(&self) -> u64 {
        let files = self.dates().into_iter().filter(|(_, date)| *date >= SCRUB_DAY * DAY_S);
        let size = |path: &str| self.tree.path(path).metadata().expect("stat").len();
        let whole: u64 = files.map(|(path, _)| size(&path)).sum();
        let sql = "SELECT ifnull(sum(blocks), 0) FROM part";
        let blocks: i64 =
            self.recorded.connect().query_row(sql, [], |row| row.get(0)).expect("parts");
        whole + blocks.cast_unsigned() * MIB
    }
}

fn number(value: &Value) -> i64 {
    if let Value::Integer(number) = value { *number } else { panic!("no number: {value:?}") }
}

fn bytes(requests: &[Request]) -> u64 {
    requests.iter().map(|request| request.range.end - request.range.start).sum()
}

/// Counts how often each page was read, by path and offset in bytes.
fn times_read(requests: &[Request]) -> BTreeMap<(String, u64), u32> {
    let mut times = BTreeMap::new();
    for request in requests {
        for page in (request.range.start..request.range.end).step_by(4096) {
            assert_eq!(page % 4096, 0);
            *times.entry((request.path.display().to_string(), page)).or_default() += 1;
        }
    }
    times
}

#[test]
fn ten_runs_with_a_budget_verify_every_byte_once_and_the_oldest_first() {
    let Some(years) = years("ten_runs_with_a_budget") else { return };
    let (mut all, mut youngest) = (Vec::new(), 0);
    for run in 0..10 {
        let requests = years.scrub(run);
        assert_eq!(bytes(&requests), BUDGET, "run {run} spends its budget and no more");
        let ages = || requests.iter().map(|request| age(&request.path));
        assert!(ages().min() >= Some(youngest), "run {run} left something older behind");
        youngest = ages().max().expect("some");
        assert_eq!(years.noted(), (run + 1).cast_unsigned() * BUDGET, "run {run}");
        all.extend(requests);
    }
    let times = times_read(&all);
    assert_eq!(times.len() as u64, ALL_MIB * MIB / 4096, "every page");
    assert!(times.values().all(|times| *times == 1), "once");
    // A file is as old as its oldest part: read from the third run to the eighth.
    assert_eq!(years.dates()["b-huge/file"], (SCRUB_DAY + 2) * DAY_S);
    // And around again, from the start.
    let again = years.scrub(ONCE_AROUND);
    assert!(again.iter().all(|request| age(&request.path) == 0), "{again:?}");
}

#[test]
fn what_was_verified_since_is_not_due_and_a_date_in_the_future_is_none() {
    let Some(years) = years("what_was_verified_since") else { return };
    let scrub = |day: i64, days: u64| {
        let max_age = Some(Duration::from_secs(days * 86_400));
        let catalog = Some(&*years.recorded.catalog);
        let outcome = scrub_at(years.view.root(), catalog, day * DAY_S, Budget::All, max_age);
        assert_eq!(outcome.exit_code().number(), 0, "{outcome:?}");
        let scrub = outcome.scrub.expect("a scrub");
        assert_eq!(scrub.left_files(), 0, "{scrub:?}");
        (scrub.due_files, bytes(&years.view.take_requests()) / MIB)
    };
    // 20, 10 and 0 days old.
    assert_eq!(scrub(FIRST_DAY + 20, 21), (0, 0));
    assert_eq!(scrub(FIRST_DAY + 20, 15), (FILES, FILES));
    assert_eq!(scrub(FIRST_DAY + 20, 10), (1, HUGE_MIB));
    assert_eq!(scrub(FIRST_DAY + 20, 0), (2 * FILES + 1, ALL_MIB));
    // A user who has set the clock back has files from the future.
    assert_eq!(scrub(FIRST_DAY + 19, 90), (2 * FILES + 1, ALL_MIB));
    assert_eq!(scrub(FIRST_DAY + 19, 90), (0, 0));
    // That does not keep a large one from being verified in parts.
    for run in 0..10 {
        let catalog = Some(&*years.recorded.catalog);
        let now_s = (FIRST_DAY + 1) * DAY_S + run;
        scrub_at(years.view.root(), catalog, now_s, Budget::Bytes(BUDGET), Some(MAX_AGE));
    }
    let dates = years.dates();
    let is_past = |date: &i64| *date <= (FIRST_DAY + 1) * DAY_S + 10;
    assert!(dates.values().all(is_past), "{dates:?}");
}

/// Not a test: what the test below starts, and kills.
#[test]
fn a_run_that_is_killed() {
    let Some(root) = std::env::var_os("FSURE_TEST_SCRUB") else { return };
    let value = |name: &str| std::env::var_os(name).expect("the whole errand");
    let day: i64 = value("FSURE_TEST_DAY").to_str().expect("text").parse().expect("a number");
    let catalog = value("FSURE_TEST_CATALOG");
    let catalog = Some(Path::new(&catalog));
    scrub_at(Path::new(&root), catalog, day * DAY_S, Budget::Bytes(BUDGET), Some(MAX_AGE));
}

#[test]
fn a_killed_run_loses_nothing_that_it_had_noted() {
    let Some(years) = years("a_killed_run_loses_nothing") else { return };
    let (mut all, mut lost) = (Vec::new(), 0);
    for run in 0..13 {
        if years.noted() == ALL_MIB * MIB {
            break;
        }
        // In the small files and inside the huge one.
        if run == 1 || run == 4 {
            let (requests, bytes_lost) = killed(&years, run);
            all.extend(requests);
            lost += bytes_lost;
        } else {
            let requests = years.scrub(run);
            all.extend(requests);
        }
    }
    assert_eq!(years.noted(), ALL_MIB * MIB, "all of it in ten runs and two killed ones");
    let times = times_read(&all);
    assert_eq!(times.len() as u64, ALL_MIB * MIB / 4096, "every page");
    let again: u64 = times.values().map(|times| u64::from(times - 1)).sum();
    assert!(again * 4096 <= lost, "{} bytes were read again, {lost} lost", again * 4096);
    assert!(times.values().all(|times| *times <= 2), "by two kills");
}

/// A run that gets no further than its ninth MiB, and is killed when it has
/// noted something of it. Its requests, and what it read and did not note.
fn killed(years: &Years, run: i64) -> (Vec<Request>, u64) {
    let before = years.noted();
    let (reads, is_killed) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let waits = Arc::clone(&is_killed);
    let meanwhile = Meanwhile::new(move |_, moment| {
        let read = reads.fetch_add((moment == Moment::Read).into(), Ordering::Relaxed);
        while moment == Moment::Read && read >= 9 && !waits.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(1));
        }
    });
    years.view.faults.lock().expect("lock").meanwhile = meanwhile;
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", &full_test_name(module_path!(), "a_run_that_is_killed")])
        .env("FSURE_TEST_SCRUB", years.view.root())
        .env("FSURE_TEST_CATALOG", &years.recorded.catalog)
        .env("FSURE_TEST_DAY", (SCRUB_DAY + run).to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("start the run");
    while years.noted() == before {
        assert!(child.try_wait().expect("wait").is_none(), "it ended by itself");
        sleep(Duration::from_millis(5));
    }
    child.kill().expect("kill");
    is_killed.store(true, Ordering::Relaxed);
    let status = child.wait().expect("wait");
    assert_eq!(status.signal(), Some(9), "{status}");
    years.view.faults.lock().expect("lock").meanwhile = Meanwhile::default();
    let requests = years.view.take_requests();
    let noted = years.noted() - before;
    assert!(noted > 0 && noted <= BUDGET, "{noted}");
    (requests.clone(), bytes(&requests) - noted.min(bytes(&requests)))
}
