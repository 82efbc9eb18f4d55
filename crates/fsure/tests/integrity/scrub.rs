//! `scrub` as its users meet it: what comes first, what is left and said, what
//! is remembered of what was not well, and where nothing can be remembered.
//! The order over years is in `scrub_years.rs`, the end of a time in
//! `scrub_time.rs`.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{
    EXT4, Fault, FaultyFs, Image, Meanwhile, Moment, Recorded, Report, Tree, code, content,
    flip_byte, fsure_json, or_skip, path_verdicts, skip,
};
use rusqlite::types::Value;
use rustix::mount::MountFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn scrub(recorded: &Recorded, options: &[&str]) -> Report {
    recorded.run("scrub", options)
}

/// Due, left and read: what a scrub says of itself.
fn totals(report: &Report) -> (u64, u64, u64) {
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let (line, scrub) = (report.summary(), &report.summary()["scrub"]);
    (number(&scrub["due_files"]), number(&scrub["left_files"]), number(&line["bytes_read"]))
}

/// A recorded tree of files of so many MiB, named by their numbers.
fn tree(sizes: &[u64]) -> (Tree, Recorded) {
    let tree = Tree::new();
    for (number, size) in sizes.iter().enumerate() {
        tree.write(number.to_string(), content((size * MIB) as usize, number as u64));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// Waits until a later date is another date.
fn next_second() {
    sleep(Duration::from_millis(1_100));
}

#[test]
fn a_budget_is_kept_and_the_remainder_is_reported() {
    let (_tree, recorded) = tree(&[1, 1, 1, 1]);
    for (options, expected, code) in [
        (&["--budget", "0B"][..], (4, 4, 0), 0),
        (&["--budget", "0B", "--require-complete"], (4, 4, 0), 5),
        (&["--budget", "0s"], (4, 4, 0), 0),
        (&["--budget", "3MiB"], (4, 1, 3 * MIB), 0),
        (&["--budget", "50%"], (4, 2, 2 * MIB), 0),
        (&["--budget", "2MiB", "--require-complete"], (4, 2, 2 * MIB), 5),
        (&["--budget", "1GiB", "--require-complete"], (4, 0, 4 * MIB), 0),
        (&["--budget", "1h", "--require-complete"], (4, 0, 4 * MIB), 0),
        (&["--budget", "100%"], (4, 0, 4 * MIB), 0),
        (&[], (4, 0, 4 * MIB), 0),
        (&["--max-age", "1h", "--require-complete"], (0, 0, 0), 0),
        (&["--exclude", "1"], (4, 0, 3 * MIB), 0),
    ] {
        let report = scrub(&recorded, options);
        assert_eq!((totals(&report), report.code), (expected, code), "{options:?}: {report:?}");
    }
    let text = recorded.text("scrub", &["--budget", "1MiB"]);
    let sentence = "1 of 4 files due is as recorded; 3 files (3.0 MiB) left for the next run. \
                    A scrub does not look for new files.";
    assert!(text.stdout.contains(sentence), "{}", text.stdout);
}

#[test]
fn only_what_is_recorded_is_judged() {
    let (tree, recorded) = tree(&[1, 1, 1]);
    tree.write("new", "x");
    std::fs::rename(tree.path("1"), tree.path("moved")).expect("rename");
    tree.set_mtime("2", tree.mtime("2") + 5_000_000_000);
    tree.write(".fsureignore", "0\n");
    tree.write(".fsure/config.toml", "exclude = ['0']\n");
    let report = scrub(&recorded, &["--all"]);
    let expected = path_verdicts(&[("0", "ok"), ("1", "missing"), ("2", "touched")]);
    assert_eq!((report.path_verdicts(), report.code), (expected, 1), "{report:?}");
    // Part of a root, by its path.
    let report = fsure_json(&["scrub".as_ref(), tree.path("2").as_os_str(), "--all".as_ref()]);
    assert_eq!(
        (report.path_verdicts(), report.code),
        (path_verdicts(&[("2", "touched")]), 0),
        "{report:?}"
    );
    assert_eq!(totals(&report).0, 1, "{report:?}");
}

#[test]
fn what_was_bad_comes_first_every_time_until_it_is_well() {
    let (tree, recorded) = tree(&[1, 1, 1, 1]);
    tree.flip("1", 5);
    std::fs::remove_file(tree.path("2")).expect("remove");
    next_second();
    let date = recorded.row("1")["verified_s"].clone();
    let bad = path_verdicts(&[("1", "altered"), ("2", "missing")]);
    let report = scrub(&recorded, &[]);
    assert_eq!((report.path_verdicts(), report.code), (bad.clone(), 3), "{report:?}");
    for _ in 0..2 {
        // Both looks at the bad one: no more fits. It is no older than others.
        let report = scrub(&recorded, &["--budget", "2MiB", "--max-age", "1h"]);
        assert_eq!((report.path_verdicts(), report.code), (bad.clone(), 3), "{report:?}");
        assert_eq!(totals(&report), (2, 0, 2 * MIB), "{report:?}");
        assert_eq!(report.summary()["scrub"]["again_files"], 2, "{report:?}");
        assert_eq!(recorded.row("1")["verified_s"], date, "bad is not verified");
    }
    // Before others that are as old, too, and whatever it takes.
    let report = scrub(&recorded, &["--budget", "1MiB"]);
    assert_eq!((report.path_verdicts(), totals(&report).2), (bad.clone(), 2 * MIB), "{report:?}");
    let text = recorded.text("scrub", &["--budget", "1MiB"]).stdout;
    assert!(text.contains("the OTHERS WAIT until"), "{text}");
    // `verify` leaves the same behind, and a good copy ends it.
    tree.flip("1", 5);
    tree.flip("3", 5);
    let report = recorded.verify();
    assert_eq!(report.code, 3, "{report:?}");
    let report = scrub(&recorded, &["--max-age", "1h"]);
    let expected = path_verdicts(&[("2", "missing"), ("3", "altered")]);
    assert_eq!((report.path_verdicts(), totals(&report).0), (expected, 2), "{report:?}");
    tree.flip("3", 5);
    // It reads the file, whose change time is another, and so ends it, too.
    recorded.update();
    let report = scrub(&recorded, &["--max-age", "1h"]);
    assert_eq!((report.path_verdicts(), totals(&report).0), (vec![], 0), "{report:?}");
}

#[test]
fn what_is_edited_takes_its_turn_with_the_others() {
    let (tree, recorded) = tree(&[1, 1]);
    tree.write("0", content(MIB as usize, 9));
    next_second();
    let report = scrub(&recorded, &["--budget", "1MiB"]);
    let edited = path_verdicts(&[("0", "modified")]);
    assert_eq!((report.path_verdicts(), report.code), (edited.clone(), 1), "{report:?}");
    next_second();
    let report = scrub(&recorded, &["--budget", "1MiB"]);
    assert_eq!((report.path_verdicts(), report.code), (vec![], 0), "the other one: {report:?}");
    next_second();
    let report = scrub(&recorded, &["--budget", "1MiB"]);
    assert_eq!((report.path_verdicts(), report.code), (edited, 1), "{report:?}");
}

#[test]
fn flaky_and_unreadable_are_remembered() {
    let (tree, beside) = (Tree::new(), Tree::new());
    for name in ["a", "b", "c"] {
        tree.write(name, content(MIB as usize, 1));
    }
    let view = FaultyFs::new(tree.root());
    let Some(view) = or_skip("flaky_and_unreadable_are_remembered", view) else { return };
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    recorded.record();
    let faults = || [Fault::flip("b", 7..8).times(1), Fault::eio("c", 4096..8192)];
    view.set(faults());
    let bad = path_verdicts(&[("b", "flaky"), ("c", "unreadable")]);
    let report = scrub(&recorded, &[]);
    assert_eq!((report.path_verdicts(), report.code), (bad, 3), "{report:?}");
    view.set([]);
    let report = scrub(&recorded, &["--max-age", "1h", "--all"]);
    let well = path_verdicts(&[("b", "ok"), ("c", "ok")]);
    assert_eq!((report.path_verdicts(), report.code), (well, 0), "{report:?}");
    assert_eq!(totals(&scrub(&recorded, &["--max-age", "1h"])).0, 0);
}

/// A part that could be read only at the second attempt does not count as verified.
#[test]
fn a_flaky_part_comes_again() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("0", content(10 * MIB as usize, 1));
    let view = FaultyFs::new(tree.root());
    let Some(view) = or_skip("a_flaky_part_comes_again", view) else { return };
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    next_second();
    next_second();
    recorded.record();
    view.set([Fault::eio("0", 0..4096).times(1)]);
    let report = scrub(&recorded, &["--budget", "6MiB"]);
    assert_eq!((report.verdict("0").as_deref(), report.code), (Some("flaky"), 3), "{report:?}");
    let report = scrub(&recorded, &["--budget", "30MiB"]);
    assert_eq!((totals(&report), report.code), ((1, 0, 10 * MIB), 0), "{report:?}");
}

/// Checks that only the bad blocks of a large bad file are read again, so that it does
/// not use up every budget; the rest of it is verified in its turn like other files.
#[test]
fn of_a_large_bad_file_only_the_bad_block_comes_again() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("large", content(100 * MIB as usize, 1));
    tree.write("small", content(MIB as usize, 2));
    let view = FaultyFs::new(tree.root());
    let Some(view) = or_skip("of_a_large_bad_file", view) else { return };
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    next_second();
    next_second();
    recorded.record();
    view.set([Fault::flip("large", 70 * MIB + 5..70 * MIB + 6)]);
    let bad = json!([[70 * MIB, 71 * MIB]]);
    let report = scrub(&recorded, &[]);
    assert_eq!((report.code, &report.finding("large").expect("told")["blocks"]), (3, &bad));
    assert_eq!(totals(&report).2, 102 * MIB, "all, and the block once more: {report:?}");
    view.take_requests();
    let report = scrub(&recorded, &["--budget", "4MiB"]);
    assert_eq!((report.code, &report.finding("large").expect("told")["blocks"]), (3, &bad));
    let requests = view.take_requests();
    let of = |name: &str| requests.iter().filter(|r| r.path.ends_with(name)).count();
    assert_eq!((of("large"), of("small")), (2, 1), "{requests:?}");
    view.set([]);
    next_second();
    let report = scrub(&recorded, &["--budget", "4MiB", "--all"]);
    let well = path_verdicts(&[("large", "ok"), ("small", "ok")]);
    assert_eq!((report.path_verdicts(), report.code), (well, 0), "{report:?}");
    let dates = ["large", "small"].map(|name| recorded.row(name)["verified_s"].clone());
    let [Value::Integer(large), Value::Integer(small)] = dates else { panic!("{dates:?}") };
    assert!(large < small, "as old as its oldest block: {large}, {small}");
}

#[test]
fn parts_count_only_for_the_file_they_were_read_of() {
    let (tree, recorded) = tree(&[10]);
    let half = || scrub(&recorded, &["--budget", "6MiB"]);
    let parts = || -> i64 {
        let sql = "SELECT count(*) FROM part";
        recorded.connect().query_row(sql, [], |row| row.get(0)).expect("count")
    };
    let now = || UNIX_EPOCH.elapsed().expect("a clock");
    let reads_in_the_second_of_a_change = || {
        while now().subsec_millis() > 100 {
            sleep(Duration::from_millis(5));
        }
        let second = now().as_secs();
        tree.set_mtime("0", tree.mtime("0"));
        assert_eq!(totals(&half()), (1, 1, 6 * MIB));
        now().as_secs() == second
    };
    // It might miss another change in that second: it is read anew.
    if (0..20).any(|_| reads_in_the_second_of_a_change()) {
        assert_eq!(totals(&half()), (1, 1, 6 * MIB));
    } else {
        skip("parts_count_only_for_the_file", "a busy machine reads for more than a second");
    }
    let touch = |later_ns: i64| {
        tree.set_mtime("0", tree.mtime("0") + later_ns);
        next_second();
        next_second();
    };
    touch(0);
    assert_eq!(totals(&half()), (1, 1, 6 * MIB));
    touch(1);
    assert_eq!(totals(&half()), (1, 1, 6 * MIB), "another date: from the start");
    assert_eq!(totals(&half()), (1, 0, 4 * MIB), "the rest");
    assert_eq!(parts(), 0, "none is left of a file that is whole");
    touch(-1);
    // Bytes that changed in the middle of it, behind what was read.
    assert_eq!(totals(&half()), (1, 1, 6 * MIB));
    tree.flip("0", 2 * MIB);
    let report = half();
    assert_eq!((report.verdict("0").as_deref(), report.code), (Some("altered"), 3), "{report:?}");
    assert_eq!(report.finding("0").expect("told")["blocks"], json!([[2 * MIB, 3 * MIB]]));
    // The record changed, and the file did not.
    tree.flip("0", 2 * MIB);
    scrub(&recorded, &[]);
    touch(0);
    assert_eq!(totals(&half()).2, 6 * MIB);
    assert_eq!(totals(&half()).2, 4 * MIB);
    assert_eq!(totals(&half()).2, 6 * MIB);
    recorded.edit("UPDATE part SET blocks = 10");
    assert_eq!(totals(&half()), (1, 1, 6 * MIB), "a part that fails its seal is none");
    // A whole verification in between makes it older than the file's date.
    next_second();
    assert_eq!(recorded.verify().code, 0);
    assert_eq!((parts(), totals(&half()).2), (0, 6 * MIB));
}

/// A part that was verified against one record does not count for another, although the
/// file's stat is the same.
#[test]
fn a_part_of_another_record_is_no_ok() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("0", content(10 * MIB as usize, 1));
    let view = FaultyFs::new(tree.root());
    let Some(view) = or_skip("a_part_of_another_record", view) else { return };
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    next_second();
    next_second();
    recorded.record();
    assert_eq!(totals(&scrub(&recorded, &["--budget", "6MiB"])), (1, 1, 6 * MIB));
    view.set([Fault::flip("0", 2 * MIB..2 * MIB + 1)]);
    assert_eq!(recorded.run("update", &["--full", "--accept-all"]).code, 0);
    view.set([]);
    recorded.age_records();
    let report = scrub(&recorded, &["--budget", "20MiB"]);
    assert_eq!((report.verdict("0").as_deref(), report.code), (Some("rotten"), 3), "{report:?}");
    assert_eq!(report.finding("0").expect("told")["blocks"], json!([[2 * MIB, 3 * MIB]]));
}

/// Rewrites what was verified, as another process would, between the look at a file that
/// is verified in part and its opening.
#[test]
fn a_change_behind_the_back_of_a_part_is_no_ok() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("0", content(10 * MIB as usize, 1));
    let view = FaultyFs::new(tree.root());
    let Some(view) = or_skip("a_change_behind_the_back_of_a_part", view) else { return };
    view.faults.lock().expect("lock").direct_io = true;
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    next_second();
    next_second();
    recorded.record();
    assert_eq!(totals(&scrub(&recorded, &["--budget", "6MiB"])), (1, 1, 6 * MIB));
    let (victim, mut is_done) = (tree.path("0"), false);
    let meanwhile = Meanwhile::new(move |_, moment| {
        if moment == Moment::Open && !std::mem::replace(&mut is_done, true) {
            let mut file = std::fs::OpenOptions::new().read(true).write(true).open(&victim);
            flip_byte(file.as_mut().expect("open"), 2 * MIB);
        }
    });
    view.faults.lock().expect("lock").meanwhile = meanwhile;
    let report = scrub(&recorded, &["--budget", "20MiB"]);
    assert_eq!((report.verdict("0").as_deref(), report.code), (Some("modified"), 1), "{report:?}");
}

#[test]
fn what_can_only_be_read_as_a_whole_is_not_starved_in_silence() {
    let tree = Tree::new();
    for (name, size) in [("a", 4), ("b", 9), ("c", 3), ("d", 3)] {
        tree.write(name, content(size * MIB as usize, 1));
    }
    let recorded = Recorded::inside(tree.root());
    sleep(Duration::from_millis(60));
    assert_eq!(recorded.run("update", &["--digest", "sha256"]).code, 0);
    let mut read = 0;
    for _ in 0..4 {
        next_second();
        let report = scrub(&recorded, &["--budget", "5MiB"]);
        assert_eq!((report.code, &report.summary()["scrub"]["too_large_files"]), (0, &json!(1)));
        assert!(totals(&report).2 <= 5 * MIB, "{report:?}");
        read += totals(&report).2;
    }
    assert_eq!(read, (4 + 3 + 3 + 4) * MIB, "the others had their turns");
    let text = recorded.text("scrub", &["--budget", "5MiB"]).stdout;
    assert!(text.contains("1 file is TOO LARGE") && text.contains("/b'."), "{text}");
    assert!(text.contains("'--budget 9MiB' verifies"), "{text}");
    assert_eq!(totals(&scrub(&recorded, &["--budget", "9MiB"])), (4, 3, 9 * MIB));
}

#[test]
fn a_budget_below_one_block_says_so_and_names_the_least_that_works() {
    let tree = Tree::new();
    tree.write("a", content(3 * MIB as usize, 1));
    tree.write("b", content(5 * MIB as usize, 2));
    let recorded = Recorded::inside(tree.root());
    assert_eq!(recorded.record().code, 0);
    for budget in ["100KiB", "0B", "1%"] {
        let text = recorded.text("scrub", &["--budget", budget]).stdout;
        assert!(text.contains("2 files WAIT") && text.contains("one block (1.0 MiB)"), "{text}");
        assert!(text.contains("'--budget 1MiB'") && !text.contains("TOO LARGE"), "{text}");
    }
    assert_eq!(totals(&scrub(&recorded, &["--budget", "1MiB"])).2, MIB);
    let text = recorded.text("scrub", &["--budget", "2MiB"]).stdout;
    assert!(!text.contains("WAIT"), "{text}");
}

#[test]
fn an_unwritable_record_is_reported_and_begun_anew() {
    let image = Image::new(&EXT4, 64);
    let Some(image) = or_skip("an_unwritable_record_is_reported", image) else { return };
    for name in ["a", "b"] {
        std::fs::write(image.root().join(name), content(MIB as usize, 1)).expect("write");
    }
    let recorded = Recorded::inside(image.root());
    recorded.record();
    image.remount(MountFlags::RDONLY);
    let before = recorded.catalog_bytes();
    for _ in 0..2 {
        let report = scrub(&recorded, &["--budget", "1MiB", "--all"]);
        assert_eq!(
            (report.path_verdicts(), report.code),
            (path_verdicts(&[("a", "ok")]), 0),
            "{report:?}"
        );
        assert!(report.stderr.contains("begins with the same files again"), "{report:?}");
    }
    assert!(recorded.catalog_bytes() == before);
}

#[test]
fn a_bad_row_is_reported_first_and_nothing_is_noted() {
    let (_tree, recorded) = tree(&[1, 1]);
    recorded
        .edit("UPDATE record SET verified_s = verified_s + 99999 WHERE path = CAST('1' AS BLOB)");
    let before = recorded.rows();
    let report = scrub(&recorded, &["--budget", "1MiB", "--all"]);
    let expected = path_verdicts(&[("0", "ok"), ("1", "record-bad")]);
    assert_eq!((report.path_verdicts(), report.code), (expected, 6), "{report:?}");
    assert_eq!(recorded.rows(), before);
}

#[test]
fn each_root_has_its_budget_and_all_of_them_one_time() {
    let (_one, first) = tree(&[1, 1, 1]);
    let other = Tree::new();
    for name in ["inner/x", "0", "1"] {
        other.write(name, content(MIB as usize, 1));
    }
    let [inner, second] = [other.path("inner"), other.path("")].map(|root| Recorded::inside(&root));
    inner.record();
    second.record();
    let both = |budget: &str| {
        let [one, other] = [&first, &second].map(|recorded| recorded.root.clone().into_os_string());
        fsure_json(&["scrub".into(), one, other, "--budget".into(), budget.into()])
    };
    let report = both("1MiB");
    assert_eq!((totals(&report), report.code), ((6, 3, 3 * MIB), 0), "{report:?}");
    let roots: Vec<_> = report.lines.iter().filter(|line| line["type"] == "root").collect();
    let read: Vec<_> = roots.iter().map(|line| line["bytes_read"].as_u64()).collect();
    assert_eq!(read, [Some(MIB); 3], "each of them, and the one below: {roots:?}");
    assert_eq!(totals(&both("1h")), (6, 0, 6 * MIB));
    std::fs::remove_dir_all(other.path("inner/.fsure")).expect("remove");
    assert_eq!(scrub(&second, &[]).code, 5, "a root that is gone is told");
}

#[test]
fn a_signal_ends_it_with_what_was_verified_saved() {
    let (_tree, recorded) = tree(&[200]);
    next_second();
    next_second();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(recorded.arguments("scrub", &["--rate", "20MiB/s", "--threads", "1"]));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = child.spawn().expect("start");
    let parts = || -> i64 {
        let sql = "SELECT ifnull(sum(blocks), 0) FROM part";
        recorded.connect().query_row(sql, [], |row| row.get(0)).expect("sum")
    };
    while parts() == 0 {
        sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupt");
    let output = child.wait_with_output().expect("wait");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code(output.status), 130, "{stdout}");
    assert!(stdout.contains("INTERRUPTED") && stdout.contains("left for the next"), "{stdout}");
    let done = parts().cast_unsigned();
    let report = scrub(&recorded, &[]);
    assert_eq!((totals(&report), report.code), ((1, 0, (200 - done) * MIB), 0), "{report:?}");
}

/// A disk that is not there is told from a folder that has another name.
#[test]
fn a_renamed_folder_is_no_disk_that_is_gone() {
    let tree = Tree::new();
    for name in 0..20 {
        tree.write(format!("old/{name}"), "x");
    }
    tree.write("other", "y");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    std::fs::rename(tree.path("old"), tree.path("new")).expect("rename");
    let report = scrub(&recorded, &[]);
    assert_eq!((report.count("missing"), report.code), (20, 1), "{report:?}");
    let text = recorded.text("scrub", &["--all"]).stdout;
    assert!(text.contains("might have been renamed"), "{text}");
    std::fs::remove_dir_all(tree.path("new")).expect("remove");
    let report = scrub(&recorded, &[]);
    assert_eq!(report.code, 5, "{report:?}");
}
