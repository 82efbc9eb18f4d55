//! Ranges of paths that a run verifies in one go: the dates are those of the files, whatever row
//! of the catalog holds them, and a range that is damaged is damage to the record.
#![cfg(target_os = "linux")]

use crate::support::forger::forge;
use crate::support::{Recorded, Tree, content, fsure};

const NONE: [&str; 0] = [];

/// Has the record look as if nothing in it had been verified for a hundred days.
fn make_stale(recorded: &Recorded) {
    let sql = "UPDATE record SET verified_s = verified_s - 8640000, \
               hashed_ns = hashed_ns - 8640000000000000 WHERE kind = 0";
    forge(&recorded.connect(), sql);
}

/// Forty files that were not verified for long.
fn stale_tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..40 {
        tree.write(format!("sub/{number:02}"), content(100, number));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    make_stale(&recorded);
    (tree, recorded)
}

/// The ranges, each as its first path and the first one behind it.
fn ranges(recorded: &Recorded) -> Vec<(String, String)> {
    let connection = recorded.connect();
    let sql = "SELECT first_path, end_path FROM verified_paths ORDER BY first_path";
    let mut statement = connection.prepare(sql).expect("prepare");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let rows = statement.query_map([], |row| Ok((text(row.get(0)?), text(row.get(1)?))));
    rows.expect("query").collect::<Result<_, _>>().expect("rows")
}

/// Files that were verified within a week, by the command that users ask.
fn verified_lately(recorded: &Recorded) -> u64 {
    let ages = recorded.run("status", &["--age"]);
    let bars = ages.summary()["verified"].as_array().expect("bars").clone();
    let lately = bars.iter().filter(|bar| bar["when"] != "never");
    let lately = lately.take(1).map(|bar| bar["files"].as_u64().expect("a number"));
    lately.sum()
}

#[test]
fn an_intact_tree_costs_one_row_and_every_file_has_its_date() {
    let (_tree, recorded) = stale_tree();
    let before = recorded.rows();
    let stale = verified_lately(&recorded);
    assert_eq!(recorded.verify().code, 0);
    assert_eq!(ranges(&recorded), [("sub/00".to_owned(), "sub/39\0".to_owned())]);
    assert!(recorded.rows() == before, "no row was written for its date");
    assert_eq!((stale, verified_lately(&recorded)), (0, 40), "{}", recorded.status().summary());
    let scrub = recorded.run("scrub", &["--budget", "1GiB", "--max-age", "1d"]);
    assert_eq!(scrub.summary()["scrub"]["due_files"], 0, "{}", scrub.summary());
}

#[test]
fn a_range_ends_at_each_file_that_is_not_as_recorded() {
    let (tree, recorded) = stale_tree();
    tree.flip("sub/10", 3);
    tree.write("sub/20", content(100, 99));
    std::fs::remove_file(tree.path("sub/30")).expect("remove");
    assert_eq!(recorded.verify().code, 3);
    let expected = [
        ("sub/00", "sub/09\0"),
        ("sub/11", "sub/19\0"),
        ("sub/21", "sub/29\0"),
        ("sub/31", "sub/39\0"),
    ];
    assert_eq!(ranges(&recorded), expected.map(|(first, end)| (first.into(), end.into())));
    assert_eq!(verified_lately(&recorded), 37);
    // What is put right is one range with the others, the next time.
    tree.flip("sub/10", 3);
    assert_eq!(recorded.update().code, 0);
    assert_eq!(recorded.verify().code, 0);
    assert_eq!(ranges(&recorded), [("sub/00".to_owned(), "sub/39\0".to_owned())]);
}

#[test]
fn a_damaged_range_is_damage_to_the_record_and_recover_drops_it() {
    let (_tree, recorded) = stale_tree();
    assert_eq!(recorded.verify().code, 0);
    let whole = recorded.catalog_bytes();
    for sql in [
        "UPDATE verified_paths SET verified_s = verified_s + 1",
        "UPDATE verified_paths SET end_path = x'7a'",
        "UPDATE verified_paths SET first_path = CAST('sub/00' AS TEXT)",
    ] {
        recorded.edit(sql);
        for command in ["status", "verify", "update", "scrub", "log"] {
            let report = recorded.run(command, &NONE);
            assert_eq!(report.code, 6, "{sql}, {command}: {report:?}");
        }
        assert_eq!(recorded.text("recover", &NONE).code, 7, "{sql}");
        assert_eq!((recorded.status().code, verified_lately(&recorded)), (0, 0), "{sql}");
        std::fs::write(&recorded.catalog, &whole).expect("put back");
    }
}

#[test]
fn a_catalog_of_version_3_is_read_and_goes_on() {
    let (_tree, recorded) = stale_tree();
    recorded.edit("DROP TABLE verified_paths; PRAGMA user_version = 3");
    let before = recorded.catalog_bytes();
    assert_eq!((recorded.status().code, verified_lately(&recorded)), (0, 0));
    assert!(recorded.catalog_bytes() == before, "to read it changes nothing");
    assert_eq!(recorded.verify().code, 0);
    assert_eq!((ranges(&recorded).len(), verified_lately(&recorded)), (1, 40));
    // The totals that it had are still those it is held against.
    recorded.edit("DROP TABLE verified_paths; PRAGMA user_version = 3");
    recorded.edit("UPDATE table_total SET rows = 7 WHERE name = 'nested'");
    for command in ["status", "update"] {
        assert_eq!(recorded.run(command, &NONE).code, 6, "{command}");
    }
}

/// Blocks of a large file that are kept while it is read must not be taken for its content the
/// next time.
#[test]
fn a_large_file_is_read_again_by_each_full_update() {
    let tree = Tree::new();
    tree.write("sub/small", content(100, 1));
    let large = std::fs::File::create(tree.path("sub/large")).expect("create");
    large.set_len(300 << 20).expect("size");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    recorded.age_records();
    let full = || {
        let sub = tree.path("sub");
        let run = fsure(&["update".as_ref(), "--full".as_ref(), sub.as_os_str()]);
        let sql = "SELECT count(*) FROM unfinished";
        let kept: i64 = recorded.connect().query_row(sql, [], |row| row.get(0)).expect("count");
        assert_eq!(kept, 0, "{run:?}");
        run.code
    };
    assert_eq!(full(), 0);
    tree.flip("sub/large", 5);
    assert_eq!(full(), 3, "the flipped byte is read");
}

#[test]
fn a_file_that_came_back_is_in_no_range_of_its_neighbours() {
    let (tree, recorded) = stale_tree();
    let path = tree.path("sub/20");
    let modified = std::fs::metadata(&path).and_then(|stat| stat.modified()).expect("a date");
    std::fs::remove_file(&path).expect("remove");
    assert_eq!(recorded.update().count("missing"), 1);
    tree.write("sub/20", content(100, 20));
    let file = std::fs::File::options().write(true).open(&path).expect("open");
    file.set_modified(modified).expect("set the date");
    let report = recorded.run("update", &["--full"]);
    assert_eq!((report.code, report.count("new")), (0, 0), "{report:?}");
    let expected = [("sub/00", "sub/19\0"), ("sub/21", "sub/39\0")];
    assert_eq!(ranges(&recorded), expected.map(|(first, end)| (first.into(), end.into())));
    assert_eq!(verified_lately(&recorded), 40);
}
