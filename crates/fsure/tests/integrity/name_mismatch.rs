//! Name mismatches: macOS takes letters apart (NFD) where others keep
//! one (NFC), and some systems change capitals. A copy that went through them
//! must match its record, damage in it must be found, and two names that fold
//! together must both stay protected.
#![cfg(unix)]

use crate::support;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::support::{Recorded, Report, Tree, content};
use serde_json::{Value, json};

/// `Ü`, `ï` and `é` in one character each.
const NFC: [&str; 3] = ["\u{dc}", "\u{ef}", "\u{e9}"];
/// The same, taken apart.
const NFD: [&str; 3] = ["U\u{308}", "i\u{308}", "e\u{301}"];

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Names in the way of one system.
fn names([u, i, e]: [&str; 3]) -> Vec<Vec<u8>> {
    let folder = format!("{u}n{i}");
    let names = [format!("caf{e}.txt"), format!("{folder}/plain"), format!("{folder}/{e}/deep")];
    let mut all: Vec<Vec<u8>> = names.map(String::into_bytes).to_vec();
    // In a folder with two spellings, a name that has one.
    all.push([folder.as_bytes(), b"/bad\xff"].concat());
    all
}

fn tree_of(names: &[Vec<u8>]) -> Tree {
    let tree = Tree::new();
    for (number, name) in names.iter().enumerate() {
        tree.write(os(name), content(1000 + number, number as u64));
        tree.set_mtime(os(name), 1_000_000_000_000_000_000 + number as i64);
    }
    tree
}

/// The record travels with a copy of its root.
fn take_record(from: &Tree, to: &Tree) -> Recorded {
    fs::create_dir(to.path(".fsure")).expect("make a folder");
    fs::copy(from.path(".fsure/catalog.db"), to.path(".fsure/catalog.db")).expect("copy");
    Recorded::inside(to.root())
}

/// A tree recorded under some names, and a copy of it under others.
fn copied(then: &[Vec<u8>], now: &[Vec<u8>]) -> (Tree, Recorded) {
    let original = tree_of(then);
    Recorded::inside(original.root()).record();
    let copy = tree_of(now);
    let recorded = take_record(&original, &copy);
    (copy, recorded)
}

fn of<'a>(report: &'a Report, path: &[u8]) -> &'a Value {
    let mut found = report.findings().filter(|finding| support::path_of(finding) == path);
    found.next().unwrap_or_else(|| panic!("nothing of {path:?}: {report:?}"))
}

/// Path, verdict and norm of every finding.
fn reported(report: &Report) -> Vec<(String, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let one = |finding: &Value| {
        let [path, verdict] = ["path", "verdict"].map(|field| text(&finding[field]));
        (path.expect("a path"), verdict.expect("a verdict"), text(&finding["norm"]))
    };
    let mut all: Vec<_> = report.findings().map(one).collect();
    all.sort();
    all
}

fn expected(rows: &[(&str, &str, Option<&str>)]) -> Vec<(String, String, Option<String>)> {
    let mut all: Vec<_> = rows
        .iter()
        .map(|(path, verdict, name_mismatch)| {
            ((*path).to_owned(), (*verdict).to_owned(), name_mismatch.map(str::to_owned))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_copy_in_another_unicode_form_matches_its_record() {
    for (then, now) in [(NFD, NFC), (NFC, NFD)] {
        let (then, now) = (names(then), names(now));
        let (copy, recorded) = copied(&then, &now);
        for command in ["status", "verify"] {
            let report = recorded.run(command, &[""; 0]);
            let seen = (report.code, report.count("ok"), report.count("missing"));
            assert_eq!(seen, (1, 4, 0), "{command}: {report:?}");
            // Four files and two folders.
            assert_eq!(report.summary()["respelled"], 6, "{command}: {report:?}");
            for (then, now) in then.iter().zip(&now) {
                let finding = of(&report, now);
                assert_eq!((&finding["verdict"], &finding["norm"]), (&json!("ok"), &json!("nfc")));
                let was = String::from_utf8_lossy(then).into_owned();
                assert_eq!(finding["moved_from"], was, "{command}");
            }
        }
        let rows = recorded.rows();
        let report = recorded.update();
        assert_eq!(
            (report.code, report.summary()["respelled"].as_u64()),
            (0, Some(6)),
            "{report:?}"
        );
        let after = recorded.rows();
        assert_eq!(after.len(), rows.len(), "no row is left behind");
        for (then, now) in then.iter().zip(&now) {
            assert_eq!(after[now]["blake3"], rows[then]["blake3"]);
        }
        let report = recorded.verify();
        assert_eq!((report.code, reported(&report)), (0, vec![]), "{report:?}");
        copy.flip(os(&now[0]), 5);
        let report = recorded.verify();
        assert_eq!((report.code, report.count("altered")), (3, 1), "{report:?}");
    }
}

#[test]
fn damage_is_found_under_a_name_mismatch() {
    let (then, now) = (names(NFD), names(NFC));
    let (copy, recorded) = copied(&then, &now);
    copy.flip(os(&now[1]), 7);
    copy.write(os(&now[0]), "an edit");
    // All, folders too, and in an update those whose new name it records.
    for (command, name_mismatches) in [("verify", 6), ("update", 5)] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(report.code, 3, "{command}: {report:?}");
        assert_eq!(report.summary()["respelled"], name_mismatches, "{command}: {report:?}");
        for (path, verdict) in [(&now[1], "damaged-copy"), (&now[0], "modified")] {
            let finding = of(&report, path);
            assert_eq!((&finding["verdict"], &finding["norm"]), (&json!(verdict), &json!("nfc")));
        }
    }
    // What is damaged stays recorded as it was, where it was.
    let rows = recorded.rows();
    assert!(rows.contains_key(&then[1]) && !rows.contains_key(&now[1]));
    let report = recorded.run("update", &["--accept".as_ref(), copy.path(os(&now[1])).as_os_str()]);
    assert_eq!(report.code, 0, "{report:?}");
    let rows = recorded.rows();
    assert!(!rows.contains_key(&then[1]) && rows.contains_key(&now[1]));
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_folder_renamed_to_other_capitals_is_not_read() {
    let tree = Tree::new();
    for number in 0..20_u64 {
        tree.write(format!("Photos/IMG_{number}.JPG"), content(100, number));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    fs::rename(tree.path("Photos"), tree.path("photos")).expect("rename");
    let report = recorded.update();
    let summary = report.summary();
    assert_eq!((report.code, &summary["respelled"]), (0, &json!(21)), "{report:?}");
    assert_eq!(summary["bytes_read"], 0, "{report:?}");
    assert_eq!(of(&report, b"photos/IMG_3.JPG")["norm"], "case");
    let report = recorded.verify();
    assert_eq!((report.code, reported(&report)), (0, vec![]), "{report:?}");
    assert!(recorded.rows().keys().all(|path| path.starts_with(b"photos")));
}

/// The recorded names, the names that are there, and the findings to expect.
type Case = (&'static [&'static str], &'static [&'static str], ExpectedFindings);
type ExpectedFindings = &'static [(&'static str, &'static str, Option<&'static str>)];

const PAIRS: &[Case] = &[
    // Exact names win, and the other name is new.
    (&["e\u{301}"], &["\u{e9}", "e\u{301}"], &[("\u{e9}", "new", None)]),
    (&["e\u{301}", "\u{e9}"], &["e\u{301}", "\u{e9}"], &[]),
    (&["e\u{301}", "\u{e9}"], &["\u{e9}"], &[("e\u{301}", "missing", None)]),
    // The closer of two wins.
    (
        &["e\u{301}"],
        &["\u{e9}", "\u{c9}"],
        &[("\u{e9}", "ok", Some("nfc")), ("\u{c9}", "new", None)],
    ),
    // Each its own.
    (
        &["e\u{301}", "E\u{301}"],
        &["\u{e9}", "\u{c9}"],
        &[("\u{e9}", "ok", Some("nfc")), ("\u{c9}", "ok", Some("nfc"))],
    ),
    // Two that could be it are neither.
    (
        &["Read"],
        &["read", "READ"],
        &[
            ("READ", "new", Some("ambiguous")),
            ("Read", "missing", Some("ambiguous")),
            ("read", "new", Some("ambiguous")),
        ],
    ),
    (
        &["read", "READ"],
        &["Read"],
        &[
            ("READ", "missing", Some("ambiguous")),
            ("Read", "new", Some("ambiguous")),
            ("read", "missing", Some("ambiguous")),
        ],
    ),
    // A third that is there as recorded makes the other two doubtful.
    (
        &["Read", "READ"],
        &["READ", "read"],
        &[("Read", "missing", Some("ambiguous")), ("read", "new", Some("ambiguous"))],
    ),
    // A folder is not a file.
    (
        &["Read"],
        &["read/x"],
        &[("Read", "missing", None), ("read", "new", None), ("read/x", "new", None)],
    ),
];

#[test]
fn two_names_that_fold_together_both_stay_protected() {
    for (then, now, verdicts) in PAIRS {
        let original = Tree::new();
        let copy = Tree::new();
        // Enough that stays for fsure not to think of an unplugged disk.
        for number in 0..5_u64 {
            for tree in [&original, &copy] {
                tree.write(format!("keep{number}"), content(20, number));
                tree.set_mtime(format!("keep{number}"), 1_000_000_000_000_000_000);
            }
        }
        // Contents that differ, but for those of one spelling: no move tells
        // which is which.
        let fill = |tree: &Tree, name: &str, salt: u64| {
            let bare: String = name.chars().filter(char::is_ascii).collect();
            let seed = if name.contains(['\u{301}', '\u{e9}', '\u{c9}']) { 1 } else { salt };
            let seed = seed + u64::from(name.contains(['E', '\u{c9}']) && bare.len() < 3) * 7;
            tree.write(name, content(500 + seed as usize, seed));
            tree.set_mtime(name, 1_000_000_000_000_000_000);
        };
        for (number, name) in then.iter().enumerate() {
            fill(&original, name, if now.contains(name) { 99 } else { 20 + number as u64 });
        }
        for (number, name) in now.iter().enumerate() {
            fill(&copy, name, if then.contains(name) { 99 } else { 40 + number as u64 });
        }
        Recorded::inside(original.root()).record();
        let recorded = take_record(&original, &copy);
        for command in ["verify", "status", "update"] {
            let report = recorded.run(command, &[""; 0]);
            assert_eq!(
                reported(&report),
                expected(verdicts),
                "{then:?} {now:?} {command}: {report:?}"
            );
        }
        let report = recorded.verify();
        assert_eq!((report.code, reported(&report)), (0, vec![]), "{then:?} {now:?}: {report:?}");
    }
}

#[test]
fn a_text_report_names_the_mismatch() {
    let (_copy, recorded) = copied(&names(NFD), &names(NFC));
    let run = recorded.text("verify", &[""; 0]);
    assert!(run.stdout.contains(", in another Unicode form\n"), "{}", run.stdout);
    let sentence = "6 names are spelled otherwise than recorded. If that is as it should be, \
                    record it:\n    fsure update ";
    assert!(run.stdout.contains(sentence), "{}", run.stdout);
    let run = recorded.text("update", &[""; 0]);
    assert!(run.stdout.contains("Recorded: 6 names in another spelling."), "{}", run.stdout);
}

/// A file system that ignores case finds `Read` under `READ`, too.
#[cfg(target_os = "linux")]
#[test]
fn on_a_file_system_without_capitals_no_name_shadows_another() {
    use crate::support::{Faults, FaultyFs, or_skip};
    use std::sync::{Arc, Mutex};
    let test = "on_a_file_system_without_capitals_no_name_shadows_another";
    let source = Tree::new();
    let write = |name: &str, seed| source.write(name, content(300, seed));
    for number in 0..5_u64 {
        write(&format!("keep{number}"), number);
    }
    write("alone", 10);
    write("Twin", 11);
    write("TWIN", 12);
    let beside = Tree::new();
    let catalog = beside.path("catalog.db");
    let faults = Arc::new(Mutex::new(Faults { folds_case: true, ..Faults::default() }));
    let Some(view) = or_skip(test, FaultyFs::with(source.root(), faults)) else { return };
    let recorded = Recorded::outside(view.root(), &catalog);
    recorded.record();
    let rename = |from: &str, to: &str| fs::rename(source.path(from), source.path(to));
    rename("alone", "ALONE").expect("rename");
    fs::remove_file(source.path("Twin")).expect("remove");
    assert!(view.root().join("Twin").exists(), "the view finds another name's entry");
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        let all = expected(&[("ALONE", "ok", Some("case")), ("Twin", "missing", None)]);
        assert_eq!(reported(&report), all, "{command}: {report:?}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, reported(&report)), (0, vec![]), "{report:?}");
}
