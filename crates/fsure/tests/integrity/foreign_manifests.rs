//! Lists from other systems: CRC-32 values (SFV), the separators, encodings and
//! Unicode forms of Windows and macOS. What they say is found, what they do not
//! say is not believed, and no spelling hides a lost file.

use std::path::Path;

use crate::support::{Recorded, Report, Tree, content, fsure_json, path_verdicts};
use rusqlite::types::Value;

fn crc32(bytes: &[u8]) -> String {
    format!("{:08X}", crc32fast::hash(bytes))
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn against(tree: &Tree, list: &Path) -> Report {
    let args = ["verify".as_ref(), tree.root().as_os_str(), "--against".as_ref(), list.as_os_str()];
    fsure_json(&args)
}

fn import(list: &Path, tree: &Tree) -> Report {
    let root = tree.root().as_os_str();
    fsure_json(&["import".as_ref(), list.as_os_str(), "--root".as_ref(), root])
}

const BIG: usize = 3 << 20;

/// `a`, `sub/b c` of several blocks and an empty file, with an SFV of them as
/// Windows has it, beside.
fn sample() -> (Tree, Tree) {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mut list = "; made by a program\r\n;\r\n\r\n".to_owned();
    for (path, bytes) in
        [("a", b"one".to_vec()), ("sub/b c", content(BIG, 1)), ("empty", Vec::new())]
    {
        list += &format!("{} {}\r\n", path.replace('/', "\\"), crc32(&bytes));
        tree.write(path, bytes);
        tree.age(path);
    }
    beside.write("list.sfv", list);
    (tree, beside)
}

#[test]
fn files_are_held_against_their_crc() {
    let (tree, beside) = sample();
    let list = beside.path("list.sfv");
    let report = against(&tree, &list);
    assert_eq!(
        (report.code, report.count("ok"), report.path_verdicts()),
        (0, 3, vec![]),
        "{report:?}"
    );
    tree.flip("sub/b c", 2_000_000);
    std::fs::remove_file(tree.path("a")).expect("remove");
    let report = against(&tree, &list);
    let expected = path_verdicts(&[("a", "missing"), ("sub/b c", "mismatch")]);
    assert_eq!((report.code, report.path_verdicts()), (3, expected), "{report:?}");
}

#[test]
fn what_a_crc_proves_is_recorded_by_digests_and_nothing_else_is() {
    let (tree, beside) = sample();
    let list = beside.path("list.sfv");
    tree.write("unlisted", "x");
    tree.flip("a", 0);
    let report = import(&list, &tree);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("a", "mismatch")])),
        "{report:?}"
    );
    assert_eq!(
        (&report.summary()["recorded"], &report.summary()["mismatched"]),
        (&2.into(), &1.into())
    );
    let recorded = Recorded::inside(tree.root());
    let paths: Vec<_> = recorded.rows().into_keys().collect();
    assert_eq!(paths, [&b"empty"[..], b"sub", b"sub/b c"]);
    let row = recorded.row("sub/b c");
    let digest = blake3::hash(&content(BIG, 1)).as_bytes().to_vec();
    assert_eq!(row["blake3"], Value::Blob(digest));
    assert_ne!(row["verified_s"], Value::Integer(0), "it was read");
    let tables = "SELECT count(*) FROM sqlite_master WHERE name = 'crc32'";
    let tables = recorded.connect().query_row(tables, [], |row| row.get(0));
    assert_eq!(tables, Ok(0), "no catalog keeps a CRC");
    // The record is whole: the damaged block is named.
    tree.flip("sub/b c", 2_000_000);
    let report = recorded.verify();
    let finding = report.finding("sub/b c").expect("a finding");
    assert_eq!(finding["verdict"], "altered", "{report:?}");
    assert_eq!(finding["blocks"], serde_json::json!([[1 << 20, 2 << 20]]), "{report:?}");
}

#[test]
fn an_sfv_changes_no_record_and_another_content_is_a_conflict() {
    let (tree, beside) = sample();
    let recorded = Recorded::inside(tree.root());
    tree.write("a", "another");
    recorded.record();
    tree.write("a", "one");
    let rows = recorded.rows();
    let report = import(&beside.path("list.sfv"), &tree);
    assert_eq!(report.code, 6, "{report:?}");
    for (name, count) in [("recorded", 0), ("known", 2), ("conflicts", 1), ("missing", 0)] {
        assert_eq!(report.summary()[name], count, "{name}: {report:?}");
    }
    assert_eq!(recorded.rows(), rows);
    std::fs::remove_file(tree.path("a")).expect("remove");
    let report = import(&beside.path("list.sfv"), &tree);
    assert_eq!((report.code, &report.summary()["missing"]), (1, &1.into()), "{report:?}");
}

#[test]
fn names_are_found_with_a_name_mismatch() {
    let tree = Tree::new();
    let beside = Tree::new();
    // Composed here, decomposed in the list; another separator; Windows-1252.
    tree.write("d/m\u{e9}", "1");
    tree.write("d/e\u{e4}", "2");
    let line =
        |name: &[u8], bytes: &[u8]| [sha256(bytes).as_bytes(), b" *", name, b"\r\n"].concat();
    let ansi = [b"; by\r\n".to_vec(), line(b"d\\m\xe9", b"1"), line(b"d\\e\xe4", b"2")].concat();
    let text = format!("{} *d/me\u{301}\n{} *d\\e\u{e4}\n", sha256(b"1"), sha256(b"2"));
    let wide: Vec<u8> =
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    for list in [ansi, text.into_bytes(), wide] {
        let list = beside.write("list.sha256", list);
        let report = against(&tree, &list);
        assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
    }
    let report = import(&beside.path("list.sha256"), &tree);
    assert_eq!((report.code, &report.summary()["absent"]), (0, &0.into()), "{report:?}");
    assert_eq!(Recorded::inside(tree.root()).verify().code, 0);
}

#[cfg(unix)]
#[test]
fn a_lost_file_does_not_pass_for_a_name_mismatch() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("d/a", "same");
    let digest = sha256(b"same");
    for lines in [["d\\a", "d/a"], ["d/a", "d\\a"]] {
        let list = lines.map(|name| format!("{digest}  {name}\n")).concat();
        let report = against(&tree, &beside.write("list", list));
        let expected = path_verdicts(&[("d\\a", "missing")]);
        assert_eq!((report.code, report.path_verdicts()), (1, expected), "{lines:?}: {report:?}");
    }
    // Several lines on one file stay together, and no spelling leads out.
    let list = format!("SHA256 (d\\a) = {digest}\nSHA256 (d\\a) = {digest}\n");
    let report = against(&tree, &beside.write("list", list));
    assert_eq!((report.code, report.count("ok")), (0, 1), "{report:?}");
    beside.write("out", "same");
    let name = beside.root().file_name().expect("a name").to_string_lossy().into_owned();
    let list = beside.write("list", format!("{digest}  ..\\{name}\\out\n"));
    let report = against(&tree, &list);
    assert_eq!((report.count("ok"), report.count("missing")), (0, 1), "{report:?}");
}
