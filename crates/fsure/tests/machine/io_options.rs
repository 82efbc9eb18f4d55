//! Checks the options for the effort of reading: they change the duration of a run and
//! never its findings. And roots on different disks are read at the same time.

use crate::support;
use std::sync::{Arc, Mutex};

use crate::support::{Recorded, Tree, content, fsure, path_verdicts};
use fsure_core::Monitor;
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{CurrentFile, Progress, ScanMonitor};
use fsure_integrity::scan::{IoOptions, RateLimiter};
use fsure_integrity::{Options, scrub, verify};

const MIB: usize = 1 << 20;

/// A tree with files of every kind of reading: together, alone, in segments.
fn tree() -> Tree {
    let tree = Tree::new();
    for number in 0..300 {
        tree.write(format!("small/{number:03}"), content(number * 137, number as u64));
    }
    tree.write("middle", content(5 * MIB + 1, 1));
    tree.write("large", content(130 * MIB + 17, 2));
    tree
}

#[test]
fn it_never_changes_what_is_found() {
    let _shared = crate::support::serial::shared();
    let tree = tree();
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("c.db"));
    recorded.record();
    tree.flip("small/123", 5);
    tree.flip("large", 100 * MIB as u64);
    let expected = path_verdicts(&[("large", "altered"), ("small/123", "altered")]);
    for (threads, depth) in [("1", "1"), ("1", "128"), ("2", "3"), ("64", "1"), ("256", "128")] {
        let found = recorded.run("verify", &["--threads", threads, "--depth", depth]);
        assert_eq!(found.code, 3, "{found:?}");
        assert_eq!(found.path_verdicts(), expected, "{threads} threads, depth {depth}: {found:?}");
        assert_eq!(found.count("ok"), 300, "{found:?}");
    }
}

#[test]
fn a_rate_is_kept() {
    let _alone = crate::support::serial::alone();
    let tree = Tree::new();
    tree.write("file", content(12 * MIB, 1));
    for number in 0..100 {
        tree.write(format!("small/{number}"), content(40_000, number));
    }
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("c.db"));
    let update = recorded.run("update", &["--rate", "8MiB/s"]);
    assert_eq!(update.code, 0, "{update:?}");
    // 15.8 MiB, of which the last piece is not waited for.
    let seconds = update.summary()["seconds"].as_f64().expect("a number");
    assert!(seconds > 1.5, "{seconds} s");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let _shared = crate::support::serial::shared();
    for bad in [
        ["--threads", "0"],
        ["--threads", "257"],
        ["--queue-depth", "0"],
        ["--queue-depth", "129"],
        ["--rate", "fast"],
        ["--rate", "200"],
        ["--timeout", "10"],
        ["--timeout", "0s"],
    ] {
        let run = fsure(&["verify", bad[0], bad[1]]);
        assert_eq!(run.code, 2, "{bad:?}: {run:?}");
        assert!(run.stderr.contains(bad[0]), "{bad:?}: {}", run.stderr);
    }
}

/// One root answers only when the other has been verified.
#[cfg(target_os = "linux")]
#[test]
fn roots_on_different_disks_are_read_at_the_same_time() {
    let _alone = crate::support::serial::alone();
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use crate::support::{FaultyFs, Meanwhile, Moment, Mounted, or_skip};

    fn text(path: &std::path::Path) -> &str {
        path.to_str().expect("a path in UTF-8")
    }

    let test = "roots_on_different_disks_are_read_at_the_same_time";
    let (slow, fast) = (Tree::new(), Tree::new());
    let Some(_memory) = or_skip(test, Mounted::tmpfs(fast.root(), 4096)) else { return };
    for tree in [&slow, &fast] {
        tree.write("file", content(10_000, 1));
        assert_eq!(fsure(&["update", text(tree.root())]).code, 0);
    }
    fast.flip("file", 5);
    let Some(view) = or_skip(test, FaultyFs::new(slow.root())) else { return };
    let fast_catalog = fast.path(".fsure/catalog.db.lock");
    std::fs::remove_file(&fast_catalog).expect("remove the lock file");
    let is_alone = Arc::new(AtomicBool::new(false));
    let is_alone_too = Arc::clone(&is_alone);
    view.faults.lock().expect("not poisoned").meanwhile = Meanwhile::new(move |path, _: Moment| {
        // The other run makes its lock file anew. A minute is time for that.
        let is_there = |_: &u32| fast_catalog.exists() || !path.ends_with("file");
        let wait = |_: u32| std::thread::sleep(std::time::Duration::from_millis(100));
        (0..600).take_while(|round| !is_there(round)).for_each(wait);
        is_alone_too.fetch_or(!is_there(&0), Relaxed);
    });
    let run = fsure(&["verify", text(view.root()), text(fast.root())]);
    assert!(!is_alone.load(Relaxed), "one after the other: {run:?}");
    assert_eq!(run.code, 3, "{run:?}");
    let line = format!("altered      {}/file  ", text(fast.root()));
    assert!(run.stdout.lines().any(|reported| reported.starts_with(&line)), "{line}: {run:?}");
    assert_eq!(
        run.stdout.lines().filter(|line| line.starts_with("verify ")).count(),
        2,
        "both report: {run:?}"
    );
}

/// A monitor that collects the progress reports of a run.
#[derive(Default)]
struct ProgressMonitor(Mutex<Vec<Progress>>);

impl Monitor for ProgressMonitor {}

impl ScanMonitor for ProgressMonitor {
    fn progress(&self, progress: &Progress, _: Option<CurrentFile<'_>>) {
        self.0.lock().expect("lock").push(*progress);
    }
}

#[test]
fn what_is_gone_is_not_among_what_is_left_to_do() {
    let _shared = crate::support::serial::shared();
    const FILES: usize = 12;
    let (tree, beside) = (Tree::new(), Tree::new());
    for number in 0..FILES {
        tree.write(format!("{number:02}"), content(MIB, number as u64));
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("c.db"));
    recorded.record();
    for gone in ["00", "01", "02"] {
        std::fs::remove_file(tree.path(gone)).expect("remove");
    }
    tree.write("03", content(MIB / 2, 99));
    std::fs::rename(tree.path("04"), tree.path("moved")).expect("rename");
    tree.write("new", content(MIB, 100));
    let monitor = ProgressMonitor::default();
    let place = locate(tree.root(), Some(&recorded.catalog)).expect("a place");
    let rate = Arc::new(RateLimiter::new(Some(4 << 20)));
    let effort = IoOptions { threads: Some(1), rate, ..IoOptions::default() };
    let options = Options { effort, ..Options::default() };
    verify(&place, &options, &monitor).expect("verify");
    let reports = monitor.0.into_inner().expect("lock");
    // 7 as recorded, one under another name, and half of one.
    let there = (8 * MIB + MIB / 2) as u64;
    let last = reports.last().expect("it takes two seconds");
    assert!(last.bytes_judged * 10 > there * 6, "{reports:?}");
    // While names come, a new one may be one that is gone.
    let totals = reports.iter().map(|progress| progress.bytes_total);
    assert!(totals.into_iter().all(|total| total <= there + MIB as u64), "{reports:?}");
    assert!(last.bytes_total >= last.bytes_judged, "{reports:?}");
    // A scrub judges what is there under its recorded name.
    let scrubbed = ProgressMonitor::default();
    scrub(&place, &support::scrub::all(options), &scrubbed).expect("scrub");
    let scrubbed = scrubbed.0.into_inner().expect("lock");
    let last = scrubbed.last().expect("it takes two seconds");
    assert!(last.bytes_judged * 10 > (7 * MIB + MIB / 2) as u64 * 6, "{scrubbed:?}");
    assert!(last.bytes_total <= 8 * MIB as u64, "{scrubbed:?}");
}
