//! A scrub that has a time, by a clock that every read moves on: it ends in
//! time, what it has read is not read again, and what takes longer than any
//! run is said and keeps no other file from its turn.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::support::scrub::{all, at};
use crate::support::{Fault, FaultyFs, Meanwhile, Moment, Recorded, Tree, content, or_skip};
use fsure_core::{Algorithm, AlgorithmSet, Clock, NullMonitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{Outcome, ScrubSummary};
use fsure_integrity::scan::Budget;
use fsure_integrity::{Options, ScrubOptions, UpdateOptions, scrub, update};

const MIB: u64 = 1 << 20;

/// A tree whose every MiB takes a second to read.
struct Slow {
    tree: Tree,
    _beside: Tree,
    view: FaultyFs,
    recorded: Recorded,
    now_s: Arc<AtomicI64>,
}

impl Slow {
    fn new(test: &str, files: &[(&str, u64)], digests: &[Algorithm]) -> Option<Self> {
        let (tree, beside) = (Tree::new(), Tree::new());
        for (name, size) in files {
            tree.write(name, content((size * MIB) as usize, *size));
        }
        let view = or_skip(test, FaultyFs::new(tree.root()))?;
        let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
        let now_s = Arc::new(AtomicI64::new(4_000_000_000));
        let slow = Self { tree, _beside: beside, view, recorded, now_s };
        let place = locate(slow.view.root(), Some(&slow.recorded.catalog)).expect("a place");
        let digests = Some(AlgorithmSet::of(digests));
        let options = UpdateOptions { common: slow.options(), digests, ..Default::default() };
        let outcome = update(&place, &options, &NullMonitor).expect("update");
        assert_eq!(outcome.exit_code().number(), 0, "{outcome:?}");
        let clock = Arc::clone(&slow.now_s);
        let meanwhile = Meanwhile::new(move |_, moment| {
            clock.fetch_add((moment == Moment::Read).into(), Ordering::Relaxed);
        });
        let mut faults = slow.view.faults.lock().expect("lock");
        (faults.direct_io, faults.meanwhile) = (true, meanwhile);
        drop(faults);
        Some(slow)
    }

    fn options(&self) -> Options {
        let now_s = Arc::clone(&self.now_s);
        let report = move || now_s.load(Ordering::Relaxed) * 1_000_000_000;
        Options { clock: Clock::from_fn(report), ..at(0) }
    }

    fn scrub(&self, seconds: u64) -> Outcome {
        let place = locate(self.view.root(), Some(&self.recorded.catalog)).expect("a place");
        let budget = Budget::Time(Duration::from_secs(seconds));
        let options = ScrubOptions { budget, ..all(self.options()) };
        // No two runs in one second.
        self.now_s.fetch_add(10, Ordering::Relaxed);
        scrub(&place, &options, &NullMonitor).expect("scrub")
    }
}

fn reported(outcome: Outcome) -> ScrubSummary {
    assert_eq!(outcome.exit_code().number(), 0, "{outcome:?}");
    outcome.scrub.expect("a scrub")
}

#[test]
fn a_large_file_is_verified_in_as_many_runs_as_it_takes() {
    let Some(slow) = Slow::new("a_large_file_is_verified", &[("a", 48)], &[Algorithm::Blake3])
    else {
        return;
    };
    let (mut runs, mut read) = (0, 0);
    loop {
        runs += 1;
        let outcome = slow.scrub(10);
        read += outcome.bytes.total();
        assert!(outcome.bytes.total() <= 14 * MIB, "a read of 4 MiB was under way at most");
        if reported(outcome).left_files() == 0 {
            break;
        }
        assert!(runs < 20, "it goes on");
    }
    assert!((4..=5).contains(&runs), "{runs} runs of ten seconds");
    assert_eq!(read, 48 * MIB, "nothing is read twice");
}

#[test]
fn a_file_that_takes_longer_than_any_run_comes_last_and_is_reported() {
    let files = [("a-huge", 70), ("b", 2), ("c", 2), ("d", 2)];
    let Some(slow) = Slow::new("a_file_that_takes_longer", &files, &[Algorithm::Sha256]) else {
        return;
    };
    // It is the oldest, and so has all of the time; the others have the next.
    let first = reported(slow.scrub(10));
    assert_eq!((first.left_files(), first.too_large_files), (4, 1), "{first:?}");
    assert_eq!(first.too_large_first.expect("its name").as_bytes(), b"a-huge");
    for _ in 0..2 {
        let next = reported(slow.scrub(10));
        assert_eq!((next.left_files(), next.too_large_files), (1, 1), "{next:?}");
    }
    let third = reported(slow.scrub(100));
    assert_eq!((third.left_files(), third.too_large_files), (0, 0), "{third:?}");
    assert_eq!(reported(slow.scrub(0)).due_files, 4);
}

#[test]
fn what_differed_when_the_time_was_over_is_not_well() {
    let files = [("a", 8), ("b", 8)];
    let Some(slow) = Slow::new("what_differed_when", &files, &[Algorithm::Sha256]) else { return };
    slow.view.set([Fault::flip(Path::new("b"), 5..6)]);
    // Enough for the first look at both, and for half of the second.
    let outcome = slow.scrub(20);
    assert_eq!(outcome.exit_code().number(), 5, "{outcome:?}");
    let scrub = outcome.scrub.expect("a scrub");
    assert_eq!((scrub.undecided_files, scrub.left_files()), (1, 1), "{scrub:?}");
    let outcome = slow.scrub(18);
    assert_eq!(outcome.exit_code().number(), 3, "it comes first: {outcome:?}");
    assert!(slow.tree.path("b").exists());
}
