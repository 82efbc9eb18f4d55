//! A scrub by the library, at a time of the test's choosing.

use std::path::Path;
use std::time::Duration;

use fsure_core::{Clock, NullMonitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::Outcome;
use fsure_integrity::scan::{Budget, IoOptions};
use fsure_integrity::{Options, ScrubOptions, UpdateOptions, scrub, update};

/// Seconds in a day.
pub const DAY_S: i64 = 86_400;

/// Returns the common options of all jobs, at this time and with one reader.
pub fn at(now_s: i64) -> Options {
    Options {
        clock: Clock::from_fn(move || now_s * 1_000_000_000),
        effort: IoOptions { threads: Some(1), ..IoOptions::default() },
        ..Options::default()
    }
}

/// A scrub of all that is due.
pub fn all(common: Options) -> ScrubOptions {
    ScrubOptions { common, budget: Budget::All, roots: 1, max_age: None, must_be_complete: false }
}

/// Records a folder at this time.
pub fn update_at(path: &Path, catalog: Option<&Path>, now_s: i64) {
    let place = locate(path, catalog).expect("a place");
    let options = UpdateOptions { common: at(now_s), ..UpdateOptions::default() };
    let outcome = update(&place, &options, &NullMonitor).expect("update");
    assert_eq!(outcome.exit_code().number(), 0, "{outcome:?}");
}

/// Scrubs a folder at this time.
pub fn scrub_at(
    path: &Path,
    catalog: Option<&Path>,
    now_s: i64,
    budget: Budget,
    max_age: Option<Duration>,
) -> Outcome {
    let place = locate(path, catalog).expect("a place");
    let options = ScrubOptions { budget, max_age, ..all(at(now_s)) };
    scrub(&place, &options, &NullMonitor).expect("scrub")
}
