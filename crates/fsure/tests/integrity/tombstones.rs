//! Records of what is gone: kept for a year, so that what comes back damaged is
//! not taken for new, and then dropped, or when the user says so. They must not
//! pile up, and dropping them must cost no living record and no signature.
#![cfg(target_os = "linux")]

use crate::support;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::scrub::{DAY_S, at};
use crate::support::{Recorded, Tree, content};
use fsure_core::NullMonitor;
use fsure_integrity::catalog::locate;
use fsure_integrity::model::Outcome;
use fsure_integrity::{UpdateOptions, update};
use rusqlite::types::Value;
use rustix::process::{Pid, Signal, kill_process};

/// In the future, for a file that changed after it was read would be racy.
const FIRST_DAY: i64 = 40_000;

fn update_on(recorded: &Recorded, day: i64) -> Outcome {
    let place = locate(&recorded.root, None).expect("a place");
    let options =
        UpdateOptions { common: at((FIRST_DAY + day) * DAY_S), ..UpdateOptions::default() };
    update(&place, &options, &NullMonitor).expect("update")
}

/// The rows of files that are there, and of those that are gone.
fn rows(recorded: &Recorded) -> (usize, usize) {
    let rows = recorded.rows();
    let is_gone = |row: &&support::Row| row["gone_s"] != Value::Null;
    let gone = rows.values().filter(is_gone).count();
    (rows.len() - gone, gone)
}

fn number_of(recorded: &Recorded, sql: &str) -> i64 {
    recorded.connect().query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Replaces the files that come and go: `count` names, other ones in each round.
fn come_and_go(tree: &Tree, round: u64, count: u64) {
    std::fs::remove_dir_all(tree.path("comes and goes")).ok();
    for number in 0..count {
        let content = content(100, round * count + number);
        tree.write(format!("comes and goes/{round} {number:05}"), content);
    }
}

#[test]
fn a_year_is_remembered_and_what_is_older_goes_with_the_next_change() {
    let tree = Tree::new();
    for number in 0..5 {
        tree.write(format!("stays/{number}"), "x");
    }
    tree.write("gone", content(5000, 1));
    tree.write("comes back", content(5000, 2));
    tree.age("comes back");
    let recorded = Recorded::inside(tree.root());
    update_on(&recorded, 0);
    let back = tree.mtime("comes back");
    for name in ["gone", "comes back"] {
        std::fs::remove_file(tree.path(name)).expect("remove");
    }
    update_on(&recorded, 1);
    assert_eq!(rows(&recorded), (6, 2));
    // Within the year, what comes back is held against its tombstone.
    tree.write("comes back", content(5000, 3));
    tree.set_mtime("comes back", back);
    let outcome = update_on(&recorded, 364);
    assert_eq!(outcome.exit_code().number(), 3, "{outcome:?}");
    std::fs::remove_file(tree.path("comes back")).expect("remove");
    update_on(&recorded, 365);
    // Nothing has changed, so that a signature would still hold.
    let generations = number_of(&recorded, "SELECT count(*) FROM generation");
    let outcome = update_on(&recorded, 500);
    assert_eq!((outcome.forgotten, rows(&recorded)), (0, (6, 2)));
    assert_eq!(number_of(&recorded, "SELECT count(*) FROM generation"), generations);
    tree.write("new", "y");
    let outcome = update_on(&recorded, 501);
    assert_eq!((outcome.forgotten, rows(&recorded)), (2, (7, 0)), "{outcome:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
}

#[test]
fn the_user_has_what_is_gone_forgotten_and_the_file_becomes_smaller() {
    const NAMES: u64 = 1000;
    let tree = Tree::new();
    tree.write("stays", content(3 << 20, 1));
    let recorded = Recorded::inside(tree.root());
    for round in 0..4 {
        come_and_go(&tree, round, NAMES);
        assert_eq!(recorded.run("update", &["--force"]).code, 0);
    }
    assert_eq!(rows(&recorded), (NAMES as usize + 2, 3 * NAMES as usize));
    let size = || std::fs::metadata(&recorded.catalog).expect("stat").len();
    let before = size();
    let report = recorded.run("update", &["--forget", "90d"]);
    assert_eq!((report.code, &report.summary()["forgotten"]), (0, &0.into()), "{report:?}");
    // A part of the root is a part of what is gone.
    std::fs::create_dir_all(tree.path("elsewhere")).expect("make");
    tree.write("elsewhere/gone", "z");
    recorded.update();
    std::fs::remove_file(tree.path("elsewhere/gone")).expect("remove");
    let path = tree.path("elsewhere").to_str().expect("text").to_owned();
    let report = support::fsure_json(&["update", &path, "--forget", "0"]);
    assert_eq!((report.code, &report.summary()["forgotten"]), (0, &1.into()), "{report:?}");
    let text = recorded.text("update", &["--forget", "0"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("Forgot 3,000 records"), "{}", text.stdout);
    assert_eq!(rows(&recorded), (NAMES as usize + 3, 0));
    assert!(size() * 2 < before, "{before} bytes before, {} now", size());
    assert_eq!(number_of(&recorded, "SELECT count(*) FROM pragma_integrity_check"), 1);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    assert_eq!(number_of(&recorded, "SELECT rows FROM root"), NAMES as i64 + 3);
    for wrong in ["", "soon", "-1d", "00"] {
        assert_eq!(recorded.run("update", &["--forget", wrong]).code, 2, "{wrong}");
    }
}

/// Killed at any moment, the record holds everything that is there.
#[test]
fn a_killed_forget_costs_no_living_record() {
    const NAMES: u64 = 1000;
    let tree = Tree::new();
    let recorded = Recorded::inside(tree.root());
    let dice = content(8 * 8, 7);
    for (round, bytes) in dice.as_chunks::<8>().0.iter().enumerate() {
        come_and_go(&tree, round as u64, NAMES);
        assert_eq!(recorded.run("update", &["--force"]).code, 0);
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(recorded.arguments("update", &["--forget", "0"]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start");
        std::thread::sleep(Duration::from_micros(u64::from_le_bytes(*bytes) % 150_000));
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().expect("wait");
        let report = recorded.run("verify", &[""; 0]);
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "round {round}: {report:?}");
        assert_eq!(report.count("ok"), NAMES, "round {round}");
    }
}
