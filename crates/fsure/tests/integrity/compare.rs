//! Two trees side by side: with a record, without, by the records alone. What
//! is said must not depend on which, nothing may be written into either, and
//! what could not be read is not the same.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::support::{Recorded, Report, Tree, content, fsure, fsure_json};
use serde_json::Value;

const MIB: usize = 1 << 20;

fn compare(here: &Path, there: &Path, more: &[&str]) -> Report {
    let paths = ["compare".as_ref(), here.as_os_str(), there.as_os_str()];
    let all: Vec<&OsStr> = paths.into_iter().chain(more.iter().map(OsStr::new)).collect();
    fsure_json(&all)
}

/// Result, path and the name there, in order.
fn reported(report: &Report) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let lines = report.lines.iter().filter(|line| line["type"] == "compared");
    let mut all: Vec<_> = lines
        .map(|line| {
            let there = text(&line["there"]).map_or(String::new(), |there| format!(" {there}"));
            format!(
                "{} {}{there}",
                line["result"].as_str().expect("text"),
                line["path"].as_str().expect("text")
            )
        })
        .collect();
    all.sort();
    all
}

fn number(report: &Report, field: &str) -> u64 {
    report.summary()[field].as_u64().unwrap_or_else(|| panic!("{field}: {report:?}"))
}

fn fill(tree: &Tree) {
    for (path, size, seed) in
        [("a", 3000, 1), ("dir/b", 2 * MIB + 1, 2), ("dir/c", 4000, 3), ("d", 0, 0), ("e", 50, 5)]
    {
        tree.write(path, content(size, seed));
        tree.age(path);
    }
    fs::create_dir(tree.path("none")).expect("make a folder");
    std::os::unix::fs::symlink("a", tree.path("link")).expect("make a link");
}

/// Two trees that differ in every way.
fn pair() -> (Tree, Tree) {
    let (here, there) = (Tree::new(), Tree::new());
    fill(&here);
    fill(&there);
    // Same size, same date.
    there.flip("dir/b", MIB as u64 + 3);
    there.write("e", content(51, 5));
    fs::rename(there.path("dir/c"), there.path("dir/z")).expect("rename");
    fs::remove_dir(there.path("none")).expect("remove");
    fs::remove_file(there.path("link")).expect("remove");
    std::os::unix::fs::symlink("b", there.path("link")).expect("make a link");
    there.write("new", content(9, 9));
    (here, there)
}

const DIFFERENCES: [&str; 6] = [
    "different dir/b",
    "different e",
    "different link",
    "moved dir/c dir/z",
    "only-here none",
    "only-there new",
];

#[test]
fn differences_are_reported_with_records_and_without() {
    for recorded in [[false, false], [true, false], [false, true], [true, true]] {
        let (here, there) = pair();
        let sides = [Recorded::inside(here.root()), Recorded::inside(there.root())];
        for (side, is_recorded) in sides.iter().zip(recorded) {
            if is_recorded {
                side.record();
            }
        }
        let names = |tree: &Tree| fs::read_dir(tree.root()).expect("list").count();
        let before = (names(&here), names(&there));
        let report = compare(here.root(), there.root(), &[]);
        assert_eq!(
            (report.code, reported(&report)),
            (1, DIFFERENCES.map(str::to_owned).to_vec()),
            "{recorded:?}: {report:?}"
        );
        // a, d and dir.
        assert_eq!(number(&report, "same"), 3, "{recorded:?}: {report:?}");
        let sizes = [3000 + 2 * MIB + 1 + 4000 + 50, 3000 + 2 * MIB + 1 + 4000 + 51 + 9];
        let read: usize =
            sizes.iter().zip(recorded).map(|(size, is)| if is { 0 } else { *size }).sum();
        assert_eq!(number(&report, "bytes_read"), read as u64, "{recorded:?}: {report:?}");
        assert_eq!((names(&here), names(&there)), before, "something was written");
    }
}

#[test]
fn by_the_records_alone_nothing_is_looked_at() {
    let (here, there) = pair();
    for tree in [&here, &there] {
        Recorded::inside(tree.root()).record();
    }
    let catalogs = [&here, &there].map(|tree| tree.path(".fsure/catalog.db"));
    here.write("a", b"changed since");
    let expected = (1, DIFFERENCES.map(str::to_owned).to_vec());
    for (one, other, more) in [
        (here.root(), there.root(), &["--records"][..]),
        (&catalogs[0], &catalogs[1], &[]),
        (&catalogs[0], there.root(), &[]),
    ] {
        let report = compare(one, other, more);
        assert_eq!((report.code, reported(&report)), expected, "{one:?} {more:?}: {report:?}");
        assert_eq!(number(&report, "bytes_read"), 0, "{report:?}");
    }
    // The tree itself is another one by now, whatever its record says.
    let report = compare(here.root(), &catalogs[0], &[]);
    assert_eq!((report.code, reported(&report)), (1, vec!["different a".to_owned()]), "{report:?}");
    assert_eq!(number(&report, "bytes_read"), 13, "{report:?}");
    let record = fs::read(&catalogs[0]).expect("read");
    assert_eq!(compare(&catalogs[0], &catalogs[0], &[]).code, 0);
    assert!(fs::read(&catalogs[0]).expect("read") == record, "a catalog was written");
}

fn export(tree: &Tree, format: &str, to: &Path) {
    let args = ["export".as_ref(), tree.root().as_os_str(), "--format".as_ref(), format.as_ref()];
    let run = fsure(&[&args[..], &["-o".as_ref(), to.as_os_str()]].concat());
    assert_eq!(run.code, 0, "{format}: {}", run.stderr);
}

#[test]
fn a_list_is_a_tree_of_files() {
    let (here, there) = pair();
    let beside = Tree::new();
    for (tree, name) in [(&here, "here"), (&there, "there")] {
        Recorded::inside(tree.root()).record();
        for format in ["sha256sums", "hashdeep", "mtree", "json", "b3sum", "ascmhl"] {
            export(tree, format, &beside.path(format!("{name}.{format}")));
        }
    }
    // Of folders and links no list says anything.
    let files: Vec<_> = DIFFERENCES
        .iter()
        .filter(|line| !line.contains("link") && !line.contains("none"))
        .map(|line| (*line).to_owned())
        .collect();
    let list = |name: &str, format: &str| beside.path(format!("{name}.{format}"));
    for (one, other) in [
        ("sha256sums", "hashdeep"),
        ("mtree", "json"),
        ("b3sum", "json"),
        ("", "sha256sums"),
        ("hashdeep", ""),
        ("b3sum", "catalog"),
    ] {
        let side = |tree: &Tree, name: &str, format: &str| match format {
            "" => tree.root().to_owned(),
            "catalog" => tree.path(".fsure/catalog.db"),
            format => list(name, format),
        };
        let report = compare(&side(&here, "here", one), &side(&there, "there", other), &[]);
        let case = format!("{one} {other}: {report:?}");
        assert_eq!((report.code, reported(&report)), (1, files.clone()), "{case}");
        // a and d; the empty file counts.
        assert_eq!(number(&report, "same"), 2, "{case}");
    }
    let manifest = fs::read_dir(list("here", "ascmhl")).expect("list");
    let mut manifest = manifest.map(|entry| entry.expect("a name").path());
    let manifest = manifest.find(|path| path.extension() == Some(OsStr::new("mhl")));
    let report = compare(&manifest.expect("a manifest"), here.root(), &[]);
    assert_eq!((report.code, reported(&report)), (0, vec![]), "{report:?}");
    let report = compare(&list("here", "b3sum"), &list("there", "sha256sums"), &[]);
    assert_eq!((report.code, number(&report, "unknown")), (4, 4), "{report:?}");
    assert_eq!(fs::read_dir(beside.root()).expect("list").count(), 12, "it wrote");
}

#[test]
fn fields_that_a_list_lacks_make_no_difference() {
    let (tree, beside) = (Tree::new(), Tree::new());
    for (path, bytes) in [("d/a", "1"), ("d/b", "2"), ("e", "")] {
        tree.write(path, bytes);
    }
    // Names, separators and case of Windows, no sizes, and a CRC for a digest.
    let crc = |bytes: &str| format!("{:08X}", crc32fast::hash(bytes.as_bytes()));
    let text = format!("; by\r\nd\\a {}\r\nd\\x {}\r\ne {}\r\n", crc("1"), crc("2"), crc(""));
    let list = beside.write("list.sfv", text);
    for sides in [[tree.root(), &list], [&list, tree.root()]] {
        let report = compare(sides[0], sides[1], &[]);
        let [one, other] = if sides[0] == list { ["there", "here"] } else { ["here", "there"] };
        let expected = [format!("only-{one} d/b"), format!("only-{other} d\\x")];
        let mut reported = reported(&report);
        reported.sort_by_key(|line| line.contains("d\\x"));
        assert_eq!((report.code, number(&report, "same")), (1, 2), "{report:?}");
        assert_eq!(reported, expected, "a CRC makes no pair: {report:?}");
    }
    // Imported where no file is, its sizes are unknown, too.
    let sha256 = |bytes: &str| {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(bytes.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let text = format!("{}  d/a\n{}  d/x\n{}  e\n", sha256("1"), sha256("2"), sha256(""));
    let (list, catalog) = (beside.write("list", text), beside.path("list.db"));
    let (nothing, import) = (Tree::new(), ["import".as_ref(), list.as_os_str(), "--root".as_ref()]);
    let more = [
        nothing.root().as_os_str(),
        "--catalog".as_ref(),
        catalog.as_os_str(),
        "--allow-missing".as_ref(),
    ];
    assert_eq!(fsure(&[&import[..], &more[..]].concat()).code, 0);
    for (side, folders) in [(&list, 0), (&catalog, 1)] {
        let report = compare(tree.root(), side, &[]);
        assert_eq!((report.code, number(&report, "same")), (1, 2), "{report:?}");
        let moved = reported(&report).contains(&"moved d/b d/x".to_owned());
        assert_eq!((moved, number(&report, "only_here")), (true, folders), "{report:?}");
    }
    let list = beside.write("list", "nonsense\n../x\n");
    let report = compare(&list, tree.root(), &[]);
    assert_eq!((report.code, number(&report, "malformed")), (6, 2), "{report:?}");
    assert!(report.stderr.contains("list:1: neither"), "{}", report.stderr);
    let zeros = "0".repeat(64);
    let list = beside.write("list", format!("{zeros}  d/a\n{}  e\n", "0".repeat(96)));
    let report = compare(&list, tree.root(), &[]);
    assert_eq!((report.code, number(&report, "unusable")), (5, 1), "{report:?}");
    let report = compare(&list, tree.root(), &["--format", "b3sum"]);
    assert_eq!((report.code, number(&report, "different")), (5, 1), "{report:?}");
}

#[test]
fn equal_trees_are_the_same_whatever_their_dates() {
    let (here, there) = (Tree::new(), Tree::new());
    fill(&here);
    fill(&there);
    there.set_mtime("a", 1_000_000_000);
    let report = compare(here.root(), there.root(), &[]);
    assert_eq!((report.code, reported(&report).len(), number(&report, "same")), (0, 0, 8));
    let part = compare(&here.path("dir"), &there.path("dir"), &[]);
    assert_eq!((part.code, number(&part, "same")), (0, 2), "{part:?}");
    let text = fsure(&["compare".as_ref(), here.root().as_os_str(), there.root().as_os_str()]);
    assert!(text.stdout.contains("Same                   8\n"), "{}", text.stdout);
}

#[test]
fn records_of_different_digests_are_compared_by_reading_or_not_at_all() {
    let (here, there) = (Tree::new(), Tree::new());
    for tree in [&here, &there] {
        tree.write("a", content(100, 1));
    }
    let sides = [Recorded::inside(here.root()), Recorded::inside(there.root())];
    std::thread::sleep(std::time::Duration::from_millis(60));
    sides[0].run("update", &["--digest", "blake3"]);
    sides[1].run("update", &["--digest", "sha256"]);
    let report = compare(here.root(), there.root(), &["--records"]);
    assert_eq!((report.code, reported(&report)), (4, vec!["unknown a".to_owned()]), "{report:?}");
    let report = compare(here.root(), there.root(), &[]);
    assert_eq!((report.code, number(&report, "same")), (0, 1), "{report:?}");
}

#[test]
fn several_files_of_one_content_are_not_moved() {
    let (here, there) = (Tree::new(), Tree::new());
    for (tree, paths) in [(&here, ["a", "b"]), (&there, ["c", "d"])] {
        for path in paths {
            tree.write(path, content(100, 1));
        }
    }
    let report = compare(here.root(), there.root(), &[]);
    let expected = ["only-here a", "only-here b", "only-there c", "only-there d"];
    assert_eq!(reported(&report), expected, "{report:?}");
}

#[test]
fn what_cannot_be_opened_or_believed_is_no_result() {
    let (here, there) = (Tree::new(), Tree::new());
    fill(&here);
    fill(&there);
    assert_eq!(compare(here.root(), there.root(), &["--records"]).code, 5, "no record");
    there.write("no-catalog", b"text");
    assert_eq!(compare(here.root(), &there.path("no-catalog"), &[]).code, 6);
    let recorded = Recorded::inside(here.root());
    recorded.record();
    recorded.edit("UPDATE record SET size = 7 WHERE path = CAST('a' AS BLOB)");
    let report = compare(&recorded.catalog, there.root(), &[]);
    assert_eq!((report.code, number(&report, "bad_records")), (6, 1), "{report:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_could_not_be_read_is_not_the_same() {
    use crate::support::{Fault, FaultyFs, or_skip};
    let (here, there) = (Tree::new(), Tree::new());
    fill(&here);
    fill(&there);
    let Some(view) = or_skip("what_could_not_be_read", FaultyFs::new(there.root())) else { return };
    view.set([Fault::eio("dir/c", 0..4000)]);
    for is_recorded in [false, true] {
        if is_recorded {
            // A record of another time is not the content of now.
            Recorded::inside(there.root()).record();
            there.write("dir/c", content(4000, 3));
        }
        let report = compare(here.root(), view.root(), &[]);
        let expected = (4, vec!["unknown dir/c".to_owned()]);
        assert_eq!(
            (report.code, reported(&report)),
            expected,
            "recorded: {is_recorded}, {report:?}"
        );
        assert_eq!(number(&report, "same"), 7, "recorded: {is_recorded}, {report:?}");
    }
}

#[test]
fn a_record_that_stands_for_a_file_is_counted_and_the_command_that_reads_it_named() {
    let (here, there) = (Tree::new(), Tree::new());
    fill(&here);
    fill(&there);
    Recorded::inside(here.root()).record();
    let both_read = compare(&there.root().join("dir"), &there.root().join("dir"), &[]);
    assert_eq!((number(&both_read, "recorded_here"), number(&both_read, "recorded_there")), (0, 0));

    let report = compare(here.root(), there.root(), &[]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!((number(&report, "recorded_here"), number(&report, "recorded_there")), (5, 0));
    let text = fsure(&["compare".as_ref(), here.root().as_os_str(), there.root().as_os_str()]);
    let advice = format!("    fsure verify {}\n", here.root().display());
    let said = "Not read, the record stands for the content: 5 files here. To read them, too:\n";
    assert!(text.stdout.contains(&(said.to_owned() + &advice)), "{text:?}");

    // By the records alone, the files of both sides are unread; a list is no record of fsure.
    Recorded::inside(there.root()).record();
    let records = compare(here.root(), there.root(), &["--records"]);
    assert_eq!((number(&records, "recorded_here"), number(&records, "recorded_there")), (5, 5));
    let list = there.root().join("list.b3");
    let digest = blake3::hash(&content(3000, 1)).to_hex();
    fs::write(&list, format!("{digest}  a\n")).expect("write");
    let listed = compare(here.root(), &list, &[]);
    assert_eq!((number(&listed, "recorded_here"), number(&listed, "recorded_there")), (1, 0));
}

#[test]
fn sides_of_which_a_part_was_not_compared_are_not_called_the_same() {
    let tree = Tree::new();
    tree.write("a", "one");
    let digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    let list = Tree::new();
    let list = list.write("list", format!("{digest}  a\ngarbage\n"));
    let run = fsure(&["compare".as_ref(), list.as_os_str(), tree.root().as_os_str()]);
    assert_eq!(run.code, 6, "{run:?}");
    assert!(!run.stdout.contains("Both sides have the same content"), "{run:?}");
    assert!(run.stdout.contains("What could be compared is the same"), "{run:?}");
}
