//! Damage that a run found is known from then on: every later command reports
//! it with its date and its exit code, until the file is seen as it was recorded,
//! is healed, is accepted or is not recorded any more. A command that reads
//! nothing must not say that all is well.
#![cfg(target_os = "linux")]

use crate::support;
use std::ffi::OsStr;
use std::fs;

use crate::support::{Recorded, Report, Tree, content, fsure, fsure_json, typed};
use serde_json::Value;

const NONE: [&str; 0] = [];

/// Three files, of which `sub/b` is damaged and its date put back.
fn damaged() -> (Tree, Recorded) {
    let tree = Tree::new();
    for (number, name) in ["a", "sub/b", "c"].into_iter().enumerate() {
        tree.write(name, content(5000, number as u64));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    tree.flip("sub/b", 7);
    (tree, recorded)
}

fn verdict(report: &Report) -> Option<String> {
    report.verdict("sub/b")
}

/// The damage of `sub/b`, as a line tells it.
fn known(report: &Report) -> Value {
    let finding = report.finding("sub/b").unwrap_or_else(|| panic!("not reported: {report:?}"));
    finding["known"].clone()
}

#[test]
fn every_command_reports_it_with_its_date_and_exit_code() {
    let (tree, recorded) = damaged();
    let found = recorded.verify();
    assert_eq!((found.code, verdict(&found).as_deref()), (3, Some("altered")), "{found:?}");
    assert_eq!(found.finding("sub/b").expect("told")["known"], Value::Null, "{found:?}");

    let status = recorded.status();
    assert_eq!((status.code, verdict(&status).as_deref()), (3, Some("altered")), "{status:?}");
    let first = known(&status);
    assert_eq!((&first["verdict"], &first["read_now"]), (&"altered".into(), &false.into()));
    assert!(first["since"].as_str().is_some_and(|date| date.starts_with("20")), "{first}");
    let text = recorded.text("status", &NONE);
    assert_eq!(text.code, 3);
    assert!(text.stdout.contains("not read in this run"), "{}", text.stdout);
    assert!(!text.stdout.contains("as recorded by name"), "{}", text.stdout);

    // `update` reads what may have been put right.
    let update = recorded.update();
    assert_eq!((update.code, verdict(&update).as_deref()), (3, Some("altered")), "{update:?}");
    let again = known(&update);
    assert_eq!((&again["since"], &again["read_now"]), (&first["since"], &true.into()));

    let age = recorded.text("status", &["--age"]);
    assert_eq!(age.code, 3, "{}", age.stdout);
    assert!(age.stdout.contains("KNOWN DAMAGE: 1 file is damaged"), "{}", age.stdout);
    let age = recorded.run("status", &["--age"]);
    assert_eq!(age.summary()["known_damage"], 1, "{age:?}");

    let log = recorded.text("log", &NONE);
    assert_eq!(log.code, 3, "{}", log.stdout);
    let found = format!("altered      {}  found on 20", tree.path("sub/b").display());
    assert!(log.stdout.contains(&found), "{}", log.stdout);
    let log = recorded.run("log", &NONE);
    assert_eq!(log.summary()["known_damage"], 1, "{log:?}");

    // A part that holds it, and a part that does not.
    let part = |path: &str| fsure(&["status".as_ref(), tree.path(path).as_os_str()]).code;
    assert_eq!((part("sub"), part("sub/b"), part("a")), (3, 3, 0));
}

#[test]
fn metrics_and_the_page_show_it() {
    let (_tree, recorded) = damaged();
    let beside = Tree::new();
    recorded.verify();
    let file = beside.path("fsure.prom");
    let report = recorded.run("update", &["--metrics".as_ref(), file.as_os_str()]);
    assert_eq!(report.code, 3, "{report:?}");
    let text = fs::read_to_string(&file).expect("metrics");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    let altered = text.lines().find(|line| {
        line.starts_with("fsure_known_damage_files") && line.contains("verdict=\"altered\"")
    });
    assert!(altered.is_some_and(|line| line.ends_with(" 1")), "{text}");
    let since = line("fsure_known_damage_since_timestamp_seconds{").expect("a date");
    let since: f64 = since.split_whitespace().last().expect("a value").parse().expect("a number");
    assert!(since > 1.7e9, "{text}");

    if cfg!(not(feature = "storage")) {
        return;
    }
    let json = beside.path("status.json");
    fs::write(&json, recorded.text("status", &["--json"]).stdout).expect("write");
    let page = beside.path("page.html");
    let run = fsure(&["report".as_ref(), json.as_os_str(), "-o".as_ref(), page.as_os_str()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("known since 20"), "{page}");
}

#[test]
fn it_ends_when_the_file_is_as_recorded() {
    for command in ["verify", "update", "scrub"] {
        let (tree, recorded) = damaged();
        assert_eq!(recorded.verify().code, 3);
        tree.flip("sub/b", 7);
        let more: &[&str] = if command == "scrub" { &["--max-age", "1h"] } else { &[] };
        let report = recorded.run(command, more);
        assert_eq!((report.code, verdict(&report)), (0, None), "{command}: {report:?}");
        assert_eq!(recorded.status().code, 0, "{command}");
        assert_eq!(recorded.text("log", &NONE).code, 0, "{command}");
    }
}

#[test]
fn it_ends_when_it_is_healed_accepted_or_gone() {
    let (tree, recorded) = damaged();
    let copy = Tree::new();
    copy.write("sub/b", content(5000, 1));
    recorded.verify();
    let from = copy.root().as_os_str();
    let heal = recorded.run("heal", &["--from".as_ref(), from, "--yes".as_ref()]);
    assert_eq!(heal.code, 7, "{heal:?}");
    assert_eq!(recorded.status().code, 0);

    let (tree2, recorded2) = damaged();
    recorded2.verify();
    let path = tree2.path("sub/b");
    let accept = recorded2.run("update", &["--accept".as_ref(), path.as_os_str()]);
    assert_eq!(accept.code, 0, "{accept:?}");
    assert_eq!((recorded2.status().code, recorded2.verify().code), (0, 0));

    let (tree3, recorded3) = damaged();
    recorded3.verify();
    fs::remove_file(tree3.path("sub/b")).expect("remove");
    assert_eq!(recorded3.status().code, 3, "gone, but recorded");
    assert_eq!(recorded3.update().code, 0, "taken off the record");
    assert_eq!((recorded3.status().code, recorded3.verify().code), (0, 0));
    drop(tree);
}

/// An edit explains its own content and not the damage before it: a user who edits
/// the tags of a damaged photograph keeps the damage.
#[test]
fn an_edit_does_not_end_it() {
    let (tree, recorded) = damaged();
    recorded.verify();
    let row = recorded.row("sub/b");
    let mut now = fs::read(tree.path("sub/b")).expect("read");
    now[100..104].copy_from_slice(b"tags");
    tree.write("sub/b", now);
    for _ in 0..2 {
        let update = recorded.update();
        assert_eq!((update.code, verdict(&update).as_deref()), (3, Some("modified")), "{update:?}");
        assert_eq!(known(&update)["verdict"], "altered");
        assert_eq!(recorded.row("sub/b"), row, "not recorded");
        assert_eq!((recorded.status().code, recorded.verify().code), (3, 3));
    }
    let text = recorded.text("update", &NONE).stdout;
    assert!(text.contains("DAMAGED when last read as recorded"), "{text}");
    assert!(!text.contains("Recorded:") && !text.contains("1 recorded"), "{text}");
    // No command is advised that does nothing.
    let text = recorded.text("status", &NONE).stdout;
    assert!(!text.contains("If that is as it should be"), "{text}");
    tree.write("new", "new");
    let text = recorded.text("status", &NONE).stdout;
    assert!(text.contains("1 file is new. If that is as it should be"), "{text}");
    let text = recorded.text("update", &NONE).stdout;
    assert!(text.contains("Recorded: 1 file new."), "{text}");
    let path = tree.path("sub/b");
    let accept = recorded.run("update", &["--accept".as_ref(), path.as_os_str()]);
    assert_eq!(accept.code, 0, "{accept:?}");
    assert_eq!((recorded.status().code, recorded.verify().code), (0, 0));
}

#[test]
fn it_goes_with_a_file_that_is_renamed() {
    let (tree, recorded) = damaged();
    recorded.verify();
    fs::rename(tree.path("sub"), tree.path("other")).expect("rename");
    let update = recorded.update();
    assert_eq!(update.code, 3, "{update:?}");
    let status = recorded.status();
    assert_eq!((status.code, status.verdict("other/b").as_deref()), (3, Some("altered")));
}

/// A scrub whose time goes to other files says what it knows all the same.
#[test]
fn a_scrub_reports_what_it_does_not_come_to() {
    let (tree, recorded) = damaged();
    recorded.verify();
    let exclude = ["--all", "--exclude", "sub"];
    let scrub = recorded.run("scrub", &exclude);
    assert_eq!(scrub.code, 3, "{scrub:?}");
    let report = fsure_json(&["scrub".as_ref(), tree.path("a").as_os_str(), "--all".as_ref()]);
    assert_eq!(report.code, 0, "another part: {report:?}");
}

#[test]
fn compare_and_dupes_do_not_believe_the_record_of_it() {
    let (_tree, recorded) = damaged();
    let copy = Tree::new();
    for (number, name) in ["a", "sub/b", "c"].into_iter().enumerate() {
        copy.write(name, content(5000, number as u64));
    }
    recorded.verify();
    let run = fsure(&["compare".as_ref(), recorded.root.as_os_str(), copy.root().as_os_str()]);
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("sub/b"), "{}", run.stdout);
    assert!(!run.stdout.contains("none of them known as damage"), "{}", run.stdout);
}

/// The last line of a JSON report, after the command that is to be typed was.
fn reported_damage(run: &support::Run) -> Value {
    let reported = run.stderr.lines().find(|line| line.contains("1 file is known to be DAMAGED"));
    let reported = reported.unwrap_or_else(|| panic!("not told: {run:?}"));
    let command = reported.split('\'').nth(1).expect("a command");
    let log = typed(std::path::Path::new("/"), command);
    assert_eq!(log.code, 3, "{command}: {log:?}");
    assert!(log.stdout.contains("sub/b  found on"), "{command}: {log:?}");
    serde_json::from_str(run.stdout.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn compare_dupes_and_export_report_it() {
    let (tree, recorded) = damaged();
    let beside = Tree::new();
    let catalog = beside.path("catalog.db");
    let list = beside.path("list");
    let (root, list) = (tree.root().as_os_str(), list.as_os_str());
    let same = beside.path("same");
    std::fs::create_dir(&same).expect("make");
    for (number, name) in ["a", "sub/b", "c"].into_iter().enumerate() {
        beside.write(std::path::Path::new("same").join(name), content(5000, number as u64));
    }
    let command = |name: &str| -> Vec<&OsStr> {
        match name {
            "compare" => vec!["compare".as_ref(), root, same.as_os_str()],
            "records" => {
                vec!["compare".as_ref(), root, catalog.as_os_str(), "--records".as_ref()]
            }
            "catalogs" => vec!["compare".as_ref(), catalog.as_os_str(), catalog.as_os_str()],
            "dupes" => vec!["dupes".as_ref(), root],
            _ => {
                let form = ["--format", "b3sum", "-o"].map(OsStr::new);
                [&["export".as_ref(), root][..], &form, &[list]].concat()
            }
        }
    };
    let run = |name: &str| fsure(&[&command(name)[..], &["--json".as_ref()]].concat());
    fs::copy(&recorded.catalog, &catalog).expect("copy");
    for name in ["records", "catalogs", "dupes", "export"] {
        let run = run(name);
        assert_eq!((run.code, &*run.stderr), (0, ""), "{name}: {run:?}");
    }
    recorded.verify();
    for name in ["compare", "records", "dupes", "export"] {
        let run = run(name);
        assert_eq!(run.code, 3, "{name}: {run:?}");
        let summary = reported_damage(&run);
        assert_eq!((&summary["known_damage"], &summary["exit_code"]), (&1.into(), &3.into()));
    }
    fs::copy(&recorded.catalog, &catalog).expect("copy");
    let both = run("catalogs");
    assert_eq!((both.code, &reported_damage(&both)["known_damage"]), (3, &2.into()), "{both:?}");
    // A part without it.
    let part = tree.path("a");
    assert_eq!(fsure(&["export".as_ref(), part.as_os_str(), "--format=b3sum".as_ref()]).code, 0);
    // Put right, and read for it: `compare` sees that, the record does not yet.
    tree.flip("sub/b", 7);
    assert_eq!(run("compare").code, 0, "{:?}", run("compare"));
    assert_eq!(run("export").code, 3);
    recorded.verify();
    for name in ["compare", "dupes", "export"] {
        let run = run(name);
        assert_eq!((run.code, &*run.stderr), (0, ""), "{name}: {run:?}");
    }
}

/// Damage that is found under another name than the recorded one is known as well.
#[test]
fn it_is_known_of_a_file_that_was_moved_before() {
    let (tree, recorded) = damaged();
    fs::rename(tree.path("sub/b"), tree.path("b")).expect("rename");
    let verify = recorded.verify();
    assert_eq!((verify.code, verify.verdict("b").as_deref()), (3, Some("altered")), "{verify:?}");
    let status = recorded.status();
    assert_eq!((status.code, status.verdict("b").as_deref()), (3, Some("altered")), "{status:?}");
    assert_eq!(recorded.run("log", &NONE).code, 3);
    assert_eq!(recorded.update().code, 3);
    assert_eq!(recorded.status().code, 3);
    // As recorded again, still under its other name.
    tree.flip("b", 7);
    let verify = recorded.verify();
    assert_eq!((verify.code, verify.verdict("b").as_deref()), (1, Some("moved")), "{verify:?}");
    assert_eq!((recorded.status().code, recorded.run("log", &NONE).code), (1, 0));
    assert_eq!((recorded.update().code, recorded.status().code), (0, 0));
}

/// A row of known damage that is lost is missed, as one of a file is.
#[test]
fn what_is_known_cannot_be_lost_unseen() {
    let (_tree, recorded) = damaged();
    recorded.verify();
    let whole = recorded.catalog_bytes();
    for sql in [
        "DELETE FROM finding",
        "UPDATE finding SET verdict = 'ok'",
        "UPDATE finding SET path = CAST(path AS TEXT)",
        "UPDATE finding SET found_s = 1",
        "DELETE FROM table_total WHERE name = 'finding'",
        "UPDATE table_total SET rows = 0, digest = 0 WHERE name = 'finding'",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 1",
    ] {
        recorded.edit(sql);
        for command in ["status", "verify", "update", "log", "scrub"] {
            let report = recorded.run(command, &NONE);
            assert_eq!(report.code, 6, "{sql}, {command}: {report:?}");
        }
        fs::write(&recorded.catalog, &whole).expect("put back");
    }
    assert_eq!(recorded.status().code, 3, "put back");
}

/// The damage that a catalog of version 2 has recorded is known, too.
#[test]
fn findings_of_version_2_are_taken_over() {
    let (_tree, recorded) = damaged();
    recorded.edit(
        "INSERT INTO looked VALUES (CAST('sub/b' AS BLOB), 1700000000, 'rotten');
         DROP TABLE finding; DROP TABLE redated; DROP TABLE backup; DROP TABLE table_total;
         DROP TABLE verified_paths;
         PRAGMA user_version = 2;",
    );
    let before = recorded.catalog_bytes();
    let status = recorded.status();
    assert_eq!((status.code, verdict(&status).as_deref()), (3, Some("rotten")), "{status:?}");
    assert_eq!(known(&status)["since"], "2023-11-14T22:13:20.000000000Z");
    assert!(recorded.catalog_bytes() == before, "to read it changes nothing");
    assert_eq!(recorded.verify().code, 3);
    assert_eq!(known(&recorded.status())["since"], "2023-11-14T22:13:20.000000000Z");
    let left: i64 = recorded
        .connect()
        .query_row("SELECT count(*) FROM looked", [], |row| row.get(0))
        .expect("count");
    assert_eq!(left, 0);
}

/// The log lists ten thousand files, and its exit code is that of all.
#[test]
fn the_exit_code_of_the_log_is_that_of_all_known_damage() {
    let (_tree, recorded) = damaged();
    recorded.edit(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         INSERT INTO looked
             SELECT CAST(printf('a/%05d', i) AS BLOB), 1700000000, 'unreadable' FROM n;
         INSERT INTO looked VALUES (CAST('sub/b' AS BLOB), 1700000000, 'rotten');
         DROP TABLE finding; DROP TABLE redated; DROP TABLE backup; DROP TABLE table_total;
         DROP TABLE verified_paths;
         PRAGMA user_version = 2;",
    );
    let log = recorded.run("log", &NONE);
    assert_eq!((log.code, &log.summary()["known_damage"]), (3, &10_001.into()));
}
