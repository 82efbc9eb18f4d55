//! The record itself in trouble: flipped bytes, rows edited, lost or put back,
//! a newer format. A damaged record is exit code 6 and never a damaged, new
//! or missing file; and what cannot be believed is not written to, so that
//! nothing is lost that the user could still rescue.
#![cfg(target_os = "linux")]

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::support::{Recorded, Report, Tree, campaign, content, path_verdicts};

const MIB: usize = 1 << 20;

/// A recorded tree of some pages of catalog: small files, block values, a link.
fn tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..60 {
        tree.write(format!("many/{number:03}"), content(50 + number, number as u64));
    }
    tree.write("a", content(100, 1000));
    tree.write("b", content(3 * MIB + 5, 1001));
    tree.write("sub/c", content(100, 1002));
    std::os::unix::fs::symlink("a", tree.path("link")).expect("make a link");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

const COMMANDS: [&str; 3] = ["verify", "status", "update"];

/// Every command ends with 6 and leaves the catalog as it is, to the byte.
fn assert_refused(recorded: &Recorded, case: &str) {
    let before = recorded.catalog_bytes();
    for (command, more) in [("verify", ""), ("status", ""), ("update", ""), ("update", "--full")] {
        let more: Vec<_> = [more].into_iter().filter(|more| !more.is_empty()).collect();
        let report = recorded.run(command, &more);
        assert_eq!(report.code, 6, "{case}, {command} {more:?}: {report:?}");
        assert!(recorded.catalog_bytes() == before, "{case}: {command} wrote to the catalog");
    }
    assert_eq!(debris(recorded), [""; 0], "{case}");
}

/// Returns the names of files beside the catalog that should not be there.
fn debris(recorded: &Recorded) -> Vec<String> {
    let folder = recorded.catalog.parent().expect("a folder");
    let names = std::fs::read_dir(folder)
        .expect("list")
        .map(|entry| entry.expect("list").file_name().into_string().expect("text"));
    let kept = ["catalog.db", "catalog.db.backup", "catalog.db.lock"];
    names.filter(|name| !kept.contains(&&**name)).collect()
}

fn assert_clean(report: &Report, case: &str) {
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
}

#[test]
fn a_newer_format_is_refused_and_named() {
    let (_tree, recorded) = tree();
    recorded.edit("PRAGMA user_version = 5");
    assert_refused(&recorded, "version 5");
    let text = recorded.text("verify", &[""; 0]);
    assert!(text.stderr.contains("version 5"), "{}", text.stderr);
    for sql in ["PRAGMA user_version = 0", "PRAGMA user_version = -1"] {
        recorded.edit(sql);
        assert_refused(&recorded, sql);
    }
    recorded.edit("PRAGMA user_version = 4; PRAGMA application_id = 7");
    assert_refused(&recorded, "somebody else's database");
}

/// Makes the tree of which `data/catalog-v1.db` is the record, written by that version.
fn tree_of_version_1() -> (Tree, Recorded) {
    const NOON: i64 = 1_795_176_000_000_000_000;
    let tree = Tree::new();
    tree.write("text", "as it was\n");
    tree.write("sub/large", vec![b'f'; 1_500_000]);
    std::fs::create_dir(tree.path("empty")).expect("make a folder");
    std::os::unix::fs::symlink("text", tree.path("link")).expect("make a link");
    tree.set_mtime("text", NOON);
    tree.set_mtime("sub/large", NOON);
    tree.write(".fsure/catalog.db", include_bytes!("../data/catalog-v1.db"));
    let recorded = Recorded::inside(tree.root());
    (tree, recorded)
}

#[test]
fn a_catalog_of_version_1_is_read_and_goes_on() {
    let version = |recorded: &Recorded| -> i64 {
        let connection = recorded.connect();
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
    };
    let (tree, recorded) = tree_of_version_1();
    let before = recorded.catalog_bytes();
    let report = recorded.status();
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
    assert!(recorded.catalog_bytes() == before, "to read it changes nothing");
    tree.flip("sub/large", 1_400_000);
    tree.set_mtime("sub/large", 1_795_176_000_000_000_000);
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (3, 1), "{report:?}");
    assert_eq!(report.verdict("sub/large").as_deref(), Some("damaged-copy"), "{report:?}");
    assert_eq!(version(&recorded), 4);
    tree.flip("sub/large", 1_400_000);
    tree.set_mtime("sub/large", 1_795_176_000_000_000_000);
    assert_eq!(recorded.update().code, 0);
    assert_clean(&recorded.verify(), "verify");
}

#[test]
fn a_catalog_cut_short_is_refused() {
    let (_tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    let length = whole.len();
    assert!(length > 8 * 4096, "several pages");
    let cuts = [0, 1, 15, 16, 99, 100, 4095, 4096, 8192, length / 2, length - 4096, length - 1];
    for cut in cuts {
        std::fs::write(&recorded.catalog, &whole[..cut]).expect("cut");
        assert_refused(&recorded, &format!("cut to {cut} of {length} bytes"));
    }
    // The last byte of a page may be a zero, which SQLite adds by itself.
    let longer = [&whole[..], &[0]].concat();
    let others = [&b"not a database at all"[..], &vec![0; length], &vec![0xff; length], &longer];
    for (number, other) in others.into_iter().enumerate() {
        std::fs::write(&recorded.catalog, other).expect("overwrite");
        assert_refused(&recorded, &format!("something else, {number}"));
    }
    std::fs::write(&recorded.catalog, &whole).expect("put back");
    assert_clean(&recorded.verify(), "put back");
}

/// SQLite calls such a file read-only, and fsure advised to keep the record elsewhere.
#[test]
fn a_flipped_write_version_is_damage_and_no_file_that_cannot_be_written() {
    let (tree, recorded) = tree();
    recorded.record();
    tree.write("new", "new");
    let mut whole = recorded.catalog_bytes();
    whole[18] ^= 2;
    std::fs::write(&recorded.catalog, &whole).expect("write");
    assert_refused(&recorded, "write version");
    let run = recorded.text("update", &[""; 0]);
    assert!(run.stderr.contains("fsure recover "), "{run:?}");
    assert_eq!(recorded.text("recover", &[""; 0]).code, 7);
    let report = recorded.update();
    assert_eq!((report.code, report.count("new")), (0, 1), "{report:?}");
}

#[test]
fn no_flipped_byte_is_believed_or_written_over() {
    let (_tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    let mut refused = 0;
    let random = content(campaign(80) as usize * 8, 42);
    let offsets = random.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    // The first page too: its header says how to read all others.
    let offsets = offsets.map(|at| at as usize % whole.len()).chain((0..100).step_by(3));
    for offset in offsets {
        let mut damaged = whole.clone();
        damaged[offset] ^= 1 << (offset % 8);
        let mut codes = Vec::new();
        for command in ["verify", "scrub", "update"] {
            std::fs::write(&recorded.catalog, &damaged).expect("damage");
            let _ = std::fs::remove_file(recorded.catalog.with_extension("db-journal"));
            let report = recorded.run(command, &[""; 0]);
            let is_read_only = report.code == 5 && report.stderr.contains("read-only");
            assert!(
                [0, 6].contains(&report.code) || is_read_only,
                "byte {offset}, {command}: {report:?}"
            );
            if report.code == 0 {
                assert_clean(&report, &format!("byte {offset}, {command}"));
            } else {
                let now = recorded.catalog_bytes();
                assert!(now == damaged, "byte {offset}: {command} wrote, {report:?}");
            }
            codes.push(report.code);
        }
        refused += u32::from(codes[0] == 6);
    }
    assert!(refused > 20, "only {refused} of the flips were seen: is anything checked?");
}

/// Edits as SQL, and the paths whose rows are bad afterwards.
const EDITS: &[(&str, &[&str])] = &[
    ("UPDATE record SET size = size + 1 WHERE path = x'61'", &["a"]),
    ("UPDATE record SET mtime_ns = mtime_ns + 1 WHERE path = x'61'", &["a"]),
    ("UPDATE record SET blake3 = zeroblob(32) WHERE path = x'61'", &["a"]),
    ("UPDATE record SET blake3 = NULL WHERE path = x'62'", &["b"]),
    ("UPDATE record SET blake3 = zeroblob(31) WHERE path = x'62'", &["b"]),
    ("UPDATE record SET seal = seal + 1 WHERE path = x'61'", &["a"]),
    ("UPDATE record SET seal = 'text' WHERE path = x'61'", &["a"]),
    ("UPDATE record SET size = 'text' WHERE path = x'61'", &["a"]),
    ("UPDATE record SET kind = 9 WHERE path = x'61'", &["a"]),
    ("UPDATE record SET file_system = -1 WHERE path = x'61'", &["a"]),
    ("UPDATE record SET blocks = 77 WHERE path = x'62'", &["b"]),
    ("UPDATE record SET target = x'00' WHERE path = x'6C696E6B'", &["link"]),
    ("UPDATE record SET gone_s = 1", &["a", "b", "link", "many", "sub", "sub/c"]),
    (
        "CREATE TABLE t AS SELECT * FROM record WHERE path = x'61';
         UPDATE record SET (size, blake3, seal) = (SELECT r.size, r.blake3, r.seal FROM record r
             WHERE r.path = x'7375622F63') WHERE path = x'61';
         UPDATE record SET (size, blake3, seal) = (SELECT size, blake3, seal FROM t)
             WHERE path = x'7375622F63';
         DROP TABLE t",
        &["a", "sub/c"],
    ),
];

#[test]
fn an_edited_row_is_record_bad_and_no_damaged_file() {
    let (_tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    for (sql, bad) in EDITS {
        std::fs::write(&recorded.catalog, &whole).expect("put back");
        recorded.edit(sql);
        assert_refused(&recorded, sql);
        for command in COMMANDS {
            let report = recorded.run(command, &[""; 0]);
            for path in *bad {
                assert_eq!(report.verdict(path).as_deref(), Some("record-bad"), "{sql}, {command}");
            }
            let others = report.path_verdicts().into_iter().filter(|(path, verdict)| {
                !path.starts_with("many/") && !bad.contains(&&**path) && verdict != "ok"
            });
            assert_eq!(others.collect::<Vec<_>>(), [], "{sql}, {command}: {report:?}");
        }
    }
}

/// Rows that are sound in themselves, in a catalog that is not what was
/// written; and tables that are not what they should be.
const FORGED: &[&str] = &[
    "DELETE FROM record WHERE path = x'61'",
    "DELETE FROM record",
    "UPDATE root SET files = files + 1",
    "UPDATE root SET rows = rows + 1",
    "UPDATE root SET root_digest = root_digest + 1",
    "UPDATE root SET inode = 1",
    "UPDATE root SET digests = 'blake3,md4'",
    "DELETE FROM root",
    "DELETE FROM file_system",
    "UPDATE file_system SET stable_inodes = 1 - stable_inodes",
    "UPDATE file_system SET id = 99",
    "DROP TABLE record",
    "DROP TABLE root",
    "DROP TABLE file_system",
    "DROP TABLE block",
    "ALTER TABLE record RENAME TO t; ALTER TABLE block RENAME TO record; \
     ALTER TABLE t RENAME TO block",
    "ALTER TABLE record RENAME COLUMN blake3 TO black3",
    "ALTER TABLE root RENAME COLUMN seal TO zeal",
];

#[test]
fn a_catalog_that_is_not_what_was_written_is_refused() {
    let (tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    // Something to read for every command, so that all tables are asked.
    tree.flip("b", 5);
    for sql in FORGED {
        std::fs::write(&recorded.catalog, &whole).expect("put back");
        recorded.edit(sql);
        let before = recorded.catalog_bytes();
        for command in ["status", "verify", "update"] {
            if command == "status" && *sql == "DROP TABLE block" {
                // It compares no contents.
                continue;
            }
            let report = recorded.run(command, &[""; 0]);
            assert_eq!(report.code, 6, "{sql}, {command}: {report:?}");
            assert!(recorded.catalog_bytes() == before, "{sql}: {command} wrote");
        }
    }
}

#[test]
fn an_older_copy_of_a_row_put_back_is_seen() {
    let (tree, recorded) = tree();
    recorded.edit("CREATE TABLE old AS SELECT * FROM record WHERE path = x'61'");
    tree.write("a", "newer");
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_clean(&recorded.verify(), "before");
    recorded.edit("INSERT OR REPLACE INTO record SELECT * FROM old; DROP TABLE old");
    let before = recorded.catalog_bytes();
    for (command, more) in [("status", ""), ("verify", ""), ("update", "--full")] {
        let more: Vec<_> = [more].into_iter().filter(|more| !more.is_empty()).collect();
        let report = recorded.run(command, &more);
        assert_eq!(report.code, 6, "{command}: {report:?}");
        assert!(recorded.catalog_bytes() == before, "{command} wrote");
    }
}

#[test]
fn lost_block_values_cost_the_name_of_the_block_and_nothing_else() {
    for sql in ["DELETE FROM block", "UPDATE block SET value = zeroblob(length(value))"] {
        let (tree, recorded) = tree();
        recorded.edit(sql);
        assert_clean(&recorded.verify(), sql);
        tree.flip("b", MIB as u64);
        let report = recorded.verify();
        assert_eq!(
            (report.code, report.path_verdicts()),
            (3, path_verdicts(&[("b", "altered")])),
            "{sql}"
        );
        let finding = report.finding("b").expect("told");
        assert_eq!(finding["blocks"], serde_json::json!([]), "{sql}: none is named wrongly");
    }
}

#[test]
fn what_is_bad_is_healed_by_accepting_it() {
    let (tree, recorded) = tree();
    let sql = "UPDATE record SET size = size + 1 WHERE path IN (x'61', x'62')";
    recorded.edit(sql);
    let before = recorded.catalog_bytes();
    let accept = |path: &Path| recorded.run("update", &[Path::new("--accept"), path]);
    let report = accept(&tree.path("a"));
    assert_eq!(report.code, 6, "b is bad as well: {report:?}");
    assert!(recorded.catalog_bytes() == before, "half an acceptance was written");
    let report = accept(tree.root());
    assert_eq!(report.code, 0, "{report:?}");
    let bad = path_verdicts(&[("a", "record-bad"), ("b", "record-bad")]);
    assert_eq!(report.path_verdicts(), bad, "{report:?}");
    assert_clean(&recorded.run("verify", &[""; 0]), "healed");
    tree.flip("b", MIB as u64);
    let blocks = &recorded.verify().finding("b").expect("told")["blocks"];
    assert_eq!(*blocks, serde_json::json!([[MIB, 2 * MIB]]), "with its block values");
}

#[test]
fn a_lost_row_is_healed_by_accepting_everything() {
    for sql in ["DELETE FROM record WHERE path = x'61'", "UPDATE root SET rows = 1, seal = seal"] {
        let (tree, recorded) = tree();
        recorded.edit(sql);
        if sql.starts_with("UPDATE root") {
            // No path stands for the description of the root itself.
            let report = recorded.run("update", &["--accept-all"]);
            assert_eq!(report.code, 6, "{sql}: {report:?}");
            continue;
        }
        let report = recorded.run("update", &[Path::new("--accept"), tree.root()]);
        assert_eq!(report.code, 6, "{sql}: a lost row has no path to be named by: {report:?}");
        let report = recorded.run("update", &["--accept-all"]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (0, path_verdicts(&[("a", "new")])),
            "{sql}: {report:?}"
        );
        assert_clean(&recorded.verify(), sql);
    }
}

#[test]
fn a_page_lost_in_the_middle_is_damage_of_the_record() {
    let (_tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    for page in 0..whole.len() / 4096 {
        for filling in [0, 0x55] {
            std::fs::write(&recorded.catalog, &whole).expect("put back");
            let file = std::fs::OpenOptions::new().write(true).open(&recorded.catalog);
            let file = file.expect("open");
            file.write_all_at(&[filling; 4096], page as u64 * 4096).expect("damage");
            let damaged = recorded.catalog_bytes();
            for command in ["verify", "update"] {
                std::fs::write(&recorded.catalog, &damaged).expect("damage again");
                let report = recorded.run(command, &["--quiet"]);
                // A page of block values costs the names of blocks only.
                let is_well = report.code == 0 && report.path_verdicts().is_empty();
                assert!(report.code == 6 || is_well, "page {page}, {command}: {report:?}");
                if report.code == 6 {
                    let is_same = recorded.catalog_bytes() == damaged;
                    assert!(is_same, "page {page}: {command} wrote");
                }
            }
        }
    }
}
