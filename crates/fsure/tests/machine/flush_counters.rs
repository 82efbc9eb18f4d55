//! Checks the report of `flush` on each method against the counters of a test
//! device, whatever the clock says: which methods send data, which send a flush, and
//! which leave both to later.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::support::noise::undisturbed;
use crate::support::{BTRFS, EXT4, Format, Image, XFS, or_skip};
use fsure::report::storage::flush::text;
use fsure_core::{Error, ExitCode, Monitor, Step, StepMonitor};
use fsure_measure::flush_verdict::{FlushFacts, Medium, WriteCache};
use fsure_measure::results::{Curve, MeasurementMonitor, MethodLine, Profile, ResultLine};
use fsure_measure::{FlushOptions, Measured, Pattern, flush};
use rustix::mount::MountFlags;

/// A listener that keeps what is reported, and does something at a step.
#[derive(Default)]
struct Ear<'a> {
    lines: Mutex<Vec<ResultLine>>,
    shares: Mutex<Vec<f64>>,
    stops: Mutex<Option<ExitCode>>,
    /// A step, and an action to run while it is under way; the run stops with the exit
    /// code that the action returns, if it returns one.
    at_step: Option<(&'a str, &'a (dyn Fn() -> Option<ExitCode> + Sync))>,
}

impl Monitor for Ear<'_> {
    fn stop_requested(&self) -> Option<ExitCode> {
        *self.stops.lock().expect("no panic")
    }
}

impl StepMonitor for Ear<'_> {
    fn under_way(&self, step: &Step<'_>) {
        self.shares.lock().expect("no panic").push(step.share);
        if let Some((_, act)) = self.at_step.filter(|(what, _)| *what == step.what) {
            *self.stops.lock().expect("no panic") = act();
        }
    }
}

impl MeasurementMonitor for Ear<'_> {
    fn measured(&self, line: &ResultLine) {
        self.lines.lock().expect("no panic").push(line.clone());
    }
}

/// A run so short that its times mean nothing.
fn options(path: &Path) -> FlushOptions {
    FlushOptions {
        paths: vec![path.to_owned()],
        span: Duration::from_millis(80),
        threads: 2,
        ..FlushOptions::default()
    }
}

struct Run {
    exit_code: ExitCode,
    lines: Vec<ResultLine>,
    facts: FlushFacts,
}

impl Run {
    fn of(options: &FlushOptions) -> Self {
        let ear = Ear::default();
        let Measured { facts, exit_code, ended_by } = flush(options, &ear).expect("a run");
        assert!(ended_by.is_none(), "{ended_by:?}");
        let shares = ear.shares.into_inner().expect("no panic");
        assert!(shares.is_sorted() && shares.iter().all(|share| (0.0..=1.0).contains(share)));
        let lines = ear.lines.into_inner().expect("no panic");
        for line in &lines {
            // What is not a number would be written as null, and not read again.
            let text = line.to_json();
            assert!(serde_json::from_str::<ResultLine>(&text).is_ok(), "{text}");
        }
        Self { exit_code, lines, facts: facts.into_iter().next().expect("one folder") }
    }

    fn method(&self, name: &str) -> &MethodLine {
        let found = self.lines.iter().find_map(|line| match line {
            ResultLine::Method(method) if method.name == name => Some(method),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no {name} in {:#?}", self.lines))
    }

    fn curve(&self, name: &str) -> &Curve {
        let found = self.lines.iter().find_map(|line| match line {
            ResultLine::Curve(curve) if curve.name == name => Some(curve),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    fn profiles(&self) -> Vec<&Profile> {
        let profiles = self.lines.iter().filter_map(|line| match line {
            ResultLine::Profile(profile) => Some(profile),
            _ => None,
        });
        profiles.collect()
    }

    /// KiB and flushes per operation, by the device.
    fn counted(&self, name: &str) -> (f64, f64) {
        let method = self.method(name);
        let counted = method.device_kib_per_op.zip(method.flushes_per_op);
        counted.unwrap_or_else(|| panic!("{name} was not counted"))
    }
}

/// Runs `flush` and returns the error that ended it.
fn failed(options: &FlushOptions, ear: &Ear<'_>) -> Error {
    flush(options, ear).expect("a run").ended_by.expect("an error")
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("list").next().is_none()
}

/// Makes a file system and measures it; `None` if the test is skipped.
fn measured(test: &str, format: &'static Format, mebibytes: u64) -> Option<(Image, Run)> {
    let image = or_skip(test, Image::new(format, mebibytes))?;
    let run = Run::of(&options(image.root()));
    assert!(is_empty(image.root()), "something was left behind");
    Some((image, run))
}

/// Methods that write the file's date, too: if an operation takes longer than a tick of
/// the kernel's clock, each has a new date, and the journal is written as well.
const WITH_DATES: [&str; 2] = ["fsync", "O_SYNC"];
const DATA_ALONE: [&str; 6] = [
    "fdatasync",
    "O_DSYNC",
    "RWF_DSYNC",
    "O_DIRECT + O_DSYNC",
    "O_DIRECT + fdatasync",
    "io_uring fdatasync",
];

/// Asserts what is true on every file system: `kib` is the maximum of KiB that one
/// operation of 4 KiB writes, `flushes` the maximum of flushes that it sends.
fn holds_everywhere(run: &Run, kib: f64, flushes: f64) {
    let with_dates = WITH_DATES.map(|name| (name, kib + 20.0, flushes + 1.0));
    for (name, kib, flushes) in
        DATA_ALONE.map(|name| (name, kib, flushes)).into_iter().chain(with_dates)
    {
        let (data, sent) = run.counted(name);
        assert!((3.9..kib).contains(&data), "{name}: {data} KiB");
        assert!((0.95..flushes).contains(&sent), "{name}: {sent} flushes");
        assert!(run.method(name).reached.starts_with("data and "), "{name}");
    }
    for name in ["O_DIRECT", "sync_file_range"] {
        let (data, sent) = run.counted(name);
        assert!((3.9..kib).contains(&data), "{name}: {data} KiB");
        assert!(sent < 0.05, "{name}: {sent} flushes");
        assert_eq!(run.method(name).reached, "data, no flush", "{name}");
    }
    let (data, sent) = run.counted("write only");
    assert!(data < 0.5 && sent < 0.05, "write only: {data} KiB, {sent} flushes");
    assert_eq!(run.method("write only").reached, "nothing yet");
    for name in
        ["append + fsync", "create + fsync + folder flush", "replace + fsync + folder flush"]
    {
        let (data, sent) = run.counted(name);
        assert!(data >= 4.0 && sent >= 0.95, "{name}: {data} KiB, {sent} flushes");
    }
    for line in &run.lines {
        if let ResultLine::Method(method) = line {
            let MethodLine { p10_us, p50_us, p90_us, p99_us, max_us, .. } = *method;
            assert!([p10_us, p50_us, p90_us, p99_us, max_us * 1.001].is_sorted(), "{method:?}");
            let in_histogram: u64 = method.histogram.iter().map(|(_, count)| count).sum();
            assert_eq!(in_histogram, method.count);
            assert!(method.count > 0 && method.ops > 0.0);
        }
    }
}

/// One flush carries as many commits as it is said to.
fn batches_share_their_flush(run: &Run, flushes: f64) {
    let curve = run.curve("commits per flush");
    assert!(curve.points.iter().map(|point| point.x).eq([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]));
    for point in &curve.points {
        let sent = point.flushes_per_op.expect("counted") * point.x;
        assert!((0.95..flushes).contains(&sent), "{}: {sent} flushes per batch", point.x);
        assert!(point.low <= point.y && point.y <= point.high && point.y > 0.0);
    }
    for (name, most) in [("threads", flushes), ("group commit", flushes)] {
        let curve = run.curve(name);
        assert!(curve.points.iter().map(|point| point.x).eq([1.0, 2.0]), "{name}");
        let sent = curve.points[0].flushes_per_op.expect("counted");
        assert!((0.9..most).contains(&sent), "{name}: one thread sends {sent} flushes");
    }
}

#[test]
fn on_ext4_the_counters_move_by_what_each_method_claims() {
    let _shared = crate::support::serial::shared();
    undisturbed("on ext4 the counters move by what each method claims", || {
        let Some((_image, run)) = measured("flush on ext4", &EXT4, 128) else { return };
        holds_everywhere(&run, 12.0, 1.6);
        batches_share_their_flush(&run, 1.6);
        let (data, sent) = run.counted("syncfs");
        assert!(data >= 3.9 && sent >= 0.95, "syncfs: {data} KiB, {sent} flushes");
        assert_eq!(run.facts.file_system, "ext4");
        assert_eq!(run.facts.medium, Medium::Loop);
        assert_eq!(run.facts.write_cache, Some(WriteCache::Back));
        assert!(
            matches!(&run.lines[1], ResultLine::Layer(layer) if layer.name == "ext4"),
            "{:?}",
            run.lines[1]
        );
        assert!(run.facts.flushes_per_op.is_some_and(|sent| (0.95..1.6).contains(&sent)));
        assert!(run.facts.foreign_ratio.is_some_and(f64::is_finite));
        let slope: Vec<_> = run.facts.slope.iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(slope, [0, 4096, 65536, 1 << 20, 16 << 20], "64 MiB do not fit");
    });
}

#[test]
fn on_xfs_the_counters_move_by_what_each_method_claims() {
    let _shared = crate::support::serial::shared();
    undisturbed("on xfs the counters move by what each method claims", || {
        let Some((_image, run)) = measured("flush on xfs", &XFS, 320) else { return };
        holds_everywhere(&run, 12.0, 1.6);
        batches_share_their_flush(&run, 1.6);
        let (data, _) = run.counted("syncfs");
        assert!(data >= 3.9, "syncfs: {data} KiB");
    });
}

/// A tree of trees: each flush writes the way to its root anew, and flushes
/// before and behind the superblock.
#[test]
fn on_btrfs_the_counters_move_by_what_each_method_claims() {
    let _shared = crate::support::serial::shared();
    undisturbed("on btrfs the counters move by what each method claims", || {
        let Some((_image, run)) = measured("flush on btrfs", &BTRFS, 256) else { return };
        holds_everywhere(&run, 400.0, 2.6);
        batches_share_their_flush(&run, 2.6);
        assert!(run.counted("fdatasync").1 > 1.5, "two flushes");
    });
}

#[test]
fn profiles_are_measured_and_only_etcd_s_has_a_mark() {
    let _shared = crate::support::serial::shared();
    undisturbed("profiles are measured and only etcd s has a mark", || {
        let image = or_skip("flush profiles", Image::new(&EXT4, 128));
        let Some(image) = image else { return };
        let profiles = vec![Pattern::Etcd, Pattern::Postgres, Pattern::Sqlite];
        let run = Run::of(&FlushOptions { profiles, ..options(image.root()) });
        let reported: Vec<_> =
            run.profiles().iter().map(|one| (&*one.name, one.passed.is_some())).collect();
        assert_eq!(reported, [("etcd", true), ("postgres", false), ("sqlite", false)]);
        let figure = |place: usize, name: &str| {
            let figures = &run.profiles()[place].figures;
            figures.iter().find(|(figure, _)| figure == name).expect("a figure").1
        };
        assert!((0.95..1.6).contains(&figure(1, "flushes per commit")));
        let rollback = figure(2, "rollback flushes per commit");
        // Four calls; a journal of names and sizes adds its own.
        assert!((3.9..10.0).contains(&rollback), "{rollback}");
        assert!(figure(2, "wal flushes per commit") < rollback);
        assert!(is_empty(image.root()));
    });
}

#[test]
fn memory_has_no_counters_and_the_report_says_so() {
    let _shared = crate::support::serial::shared();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return support::skip("flush in memory", "there is no /dev/shm");
    };
    let run = Run::of(&options(folder.path()));
    let method = run.method("fdatasync");
    assert_eq!(method.reached, "not known: no counters for tmpfs");
    assert_eq!((method.device_kib_per_op, method.flushes_per_op), (None, None));
    assert_eq!((run.facts.flushes_per_op, run.facts.foreign_ratio), (None, None));
    assert_eq!(run.exit_code, ExitCode::Incomplete);
    let is_not_measured =
        |line: &ResultLine| matches!(line, ResultLine::Verdict(one) if one.id == "NOT_MEASURED");
    assert!(run.lines.iter().any(is_not_measured));
    let last = run.lines.last().expect("lines");
    assert!(matches!(last, ResultLine::Summary(summary) if summary.exit_code == 5));
    assert!(is_empty(folder.path()));
}

#[test]
fn a_wish_to_stop_is_obeyed_and_leaves_nothing() {
    let _shared = crate::support::serial::shared();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("mine"), "precious").expect("write");
    // At its fourth turn it has had a warm-up and two that count.
    for (step, rows) in [
        ("fdatasync", &["write only", "fdatasync"][..]),
        ("4 commits per flush", &["O_DSYNC"]),
        ("2 threads", &["O_DIRECT"]),
    ] {
        let turns = Mutex::new(0);
        let act = || {
            let mut turns = turns.lock().expect("no panic");
            *turns += 1;
            (*turns == 4).then_some(ExitCode::Interrupted)
        };
        let ear = Ear { at_step: Some((step, &act)), ..Ear::default() };
        let error = failed(&options(folder.path()), &ear);
        assert!(matches!(error, Error::Interrupted(ExitCode::Interrupted)), "{step}");
        let lines = ear.lines.into_inner().expect("no panic");
        assert!(matches!(lines[0], ResultLine::Result(_)));
        for name in rows {
            let is_reported =
                |line: &ResultLine| matches!(line, ResultLine::Method(one) if one.name == *name);
            assert!(lines.iter().any(is_reported), "{step}: {name} had been measured");
        }
        let has_curve = lines.iter().any(|line| matches!(line, ResultLine::Curve(_)));
        assert_eq!(has_curve, step != "fdatasync", "{step}");
        assert!(!lines.iter().any(|line| matches!(line, ResultLine::Verdict(_))), "{step}");
        let last = lines.last().expect("lines");
        assert!(matches!(last, ResultLine::Summary(it) if it.exit_code == 130 && it.measured > 0));
        assert!(text(&lines).contains("The run did not end"), "{step}");
    }
    let left: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .expect("list")
        .map(|one| one.expect("a name").path())
        .collect();
    assert_eq!(left, [folder.path().join("mine")]);
    assert_eq!(std::fs::read(&left[0]).expect("read"), b"precious");
}

#[test]
fn nothing_is_begun_without_enough_space() {
    let _shared = crate::support::serial::shared();
    let image = or_skip("flush without room", Image::new(&EXT4, 8));
    let Some(image) = image else { return };
    let error = failed(&options(image.root()), &Ear::default());
    let reported = error.to_string();
    assert!(
        reported.contains("are needed") && reported.contains(&*image.root().to_string_lossy()),
        "{reported}"
    );
    assert_eq!(error.exit_code(), ExitCode::Incomplete);
    assert!(error.hint().is_some_and(|hint| hint.contains("room")));
    assert!(is_empty(image.root()));
    rustix::mount::mount_remount(image.root(), MountFlags::RDONLY, "").expect("mount read-only");
    let error = failed(&options(image.root()), &Ear::default());
    assert!(error.hint().is_some_and(|hint| hint.contains("read-only")), "{error}");
    let error = failed(&options(&image.root().join("none")), &Ear::default());
    assert!(error.to_string().contains("/none"), "{error}");
}

/// Fills the disk while it is measured, as another process would.
#[test]
fn a_disk_that_fills_up_ends_the_run_with_its_place_and_leaves_nothing() {
    let _shared = crate::support::serial::shared();
    let image = or_skip("flush on a disk that fills up", Image::new(&EXT4, 64));
    let Some(image) = image else { return };
    let other = image.root().join("other");
    let fill = || {
        use std::io::Write as _;
        let mut file = std::fs::File::create(&other).expect("create");
        while file.write_all(&[7; 65536]).is_ok() {}
        None
    };
    let ear = Ear { at_step: Some(("append + fsync", &fill)), ..Ear::default() };
    let error = failed(&options(image.root()), &ear);
    assert!(error.to_string().contains(&*image.root().to_string_lossy()), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("room")), "{error}");
    std::fs::remove_file(&other).expect("remove");
    assert!(is_empty(image.root()));
    let lines = ear.lines.into_inner().expect("no panic");
    assert!(matches!(lines.last(), Some(ResultLine::Summary(it)) if it.exit_code == 5));
}
