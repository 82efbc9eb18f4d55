//! `verify --against`, `import` and `export`: what they judge, what they
//! record, and what they leave alone.

use crate::support;
use std::ffi::OsStr;
use std::path::Path;

use crate::support::{Recorded, Report, Tree, fsure_json, path_verdicts};
use rusqlite::types::Value;

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A tree of `a`, `sub/b` and `c`, a link and an empty folder, and a list of
/// it, beside it.
fn sample() -> (Tree, Tree) {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mut list = String::new();
    for (name, content) in [("a", "one"), ("c", "three"), ("sub/b", "two")] {
        tree.write(name, content);
        tree.age(name);
        list += &format!("{}  {name}\n", sha256(content.as_bytes()));
    }
    std::fs::create_dir(tree.path("empty")).expect("make a folder");
    beside.write("SHA256SUMS", list);
    (tree, beside)
}

fn against(tree: &Tree, list: &Path) -> Report {
    let args = ["verify".as_ref(), tree.root().as_os_str(), "--against".as_ref(), list.as_os_str()];
    fsure_json(&args)
}

#[test]
fn a_list_is_judged_by_content_alone_and_nothing_is_written() {
    let (tree, beside) = sample();
    let list = beside.path("SHA256SUMS");
    let report = against(&tree, &list);
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    assert_eq!(report.count("ok"), 3);
    // Whatever the date says: before, the same, or newer.
    tree.flip("a", 1);
    tree.write("c", "three, edited");
    std::fs::remove_file(tree.path("sub/b")).expect("remove");
    tree.write("sub/d", "more");
    let report = against(&tree, &list);
    let verdicts = [("a", "mismatch"), ("c", "mismatch"), ("sub/b", "missing"), ("sub/d", "new")];
    assert_eq!((report.code, report.path_verdicts()), (3, path_verdicts(&verdicts)), "{report:?}");
    assert!(!tree.path(".fsure").exists());
    // More than half of it gone is what is asked about here, and no reason to stop.
    for name in ["a", "c"] {
        std::fs::remove_file(tree.path(name)).expect("remove");
    }
    let report = against(&tree, &list);
    assert_eq!((report.code, report.count("missing")), (1, 3), "{report:?}");
}

#[test]
fn the_list_may_lie_in_the_tree_and_roots_below_it_are_looked_at() {
    let (tree, beside) = sample();
    Recorded::inside(&tree.path("sub")).record();
    std::fs::copy(beside.path("SHA256SUMS"), tree.path("SHA256SUMS")).expect("copy");
    let before = std::fs::read(tree.path("sub/.fsure/catalog.db")).expect("read");
    let report = against(&tree, &tree.path("SHA256SUMS"));
    let verdicts: Vec<_> =
        report.path_verdicts().into_iter().filter(|(path, _)| !path.contains(".fsure")).collect();
    assert_eq!((verdicts, report.count("ok")), (vec![], 3), "{report:?}");
    assert_eq!(std::fs::read(tree.path("sub/.fsure/catalog.db")).expect("read"), before);
}

#[test]
fn bad_lines_are_reported_with_their_place_and_the_rest_is_judged() {
    let (tree, beside) = sample();
    let list = beside.path("SHA256SUMS");
    let good = String::from_utf8(beside.read("SHA256SUMS")).expect("text");
    let digest = sha256(b"secret");
    beside.write("secret", "secret");
    for (line, code, reason) in [
        (format!("{digest}  ../secret"), 6, ":4: a path with '..'"),
        (format!("{digest}  {}", beside.path("secret").display()), 5, ":4: /"),
        ("nonsense".to_owned(), 6, ":4: neither"),
        (format!("{digest}  a"), 6, ":4: a is listed twice, with different digests"),
        (format!("{}  c", sha256(b"three")), 0, ""),
        (format!("{}  zz", "0".repeat(96)), 5, ":4: the digest of zz is of a kind"),
    ] {
        std::fs::write(&list, format!("{good}{line}\n")).expect("write");
        let report = against(&tree, &list);
        assert_eq!((report.code, report.count("ok")), (code, 3), "{line}: {report:?}");
        let place = format!("{}{reason}", list.display());
        assert!(code == 0 || report.stderr.contains(&place), "{line}: {}", report.stderr);
    }
    std::fs::write(&list, "# nothing\n").expect("write");
    assert_eq!(against(&tree, &list).code, 6);
    let folder = fsure_json(&["verify".as_ref(), tree.root(), "--against".as_ref(), tree.root()]);
    assert_eq!(folder.code, 2, "a folder that is no bag");
}

#[cfg(unix)]
#[test]
fn no_link_leads_a_list_out_of_the_root() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("a", "one");
    beside.write("out/secret", "secret");
    std::os::unix::fs::symlink(beside.path("out"), tree.path("way")).expect("link");
    std::os::unix::fs::symlink(beside.path("out/secret"), tree.path("link")).expect("link");
    let line = |name: &str, content: &[u8]| format!("{}  {name}\n", sha256(content));
    let list = beside.write(
        "list",
        line("a", b"one") + &line("way/secret", b"secret") + &line("link", b"secret"),
    );
    let report = against(&tree, &list);
    let verdicts = report.path_verdicts();
    assert!(verdicts.contains(&("link".to_owned(), "type-changed".to_owned())), "{report:?}");
    assert_eq!(report.count("ok"), 1, "{report:?}");
    assert_ne!(report.verdict("way/secret").as_deref(), Some("ok"), "{report:?}");
    assert_ne!(report.code, 0);
}

fn import(list: &Path, root: &Path) -> Report {
    fsure_json(&["import".as_ref(), list.as_os_str(), "--root".as_ref(), root.as_os_str()])
}

#[test]
fn what_is_imported_is_recorded_and_not_verified() {
    let (tree, beside) = sample();
    std::fs::remove_dir(tree.path("empty")).expect("remove");
    let report = import(&beside.path("SHA256SUMS"), tree.root());
    assert_eq!((report.code, &report.summary()["recorded"]), (0, &3.into()), "{report:?}");
    let recorded = Recorded::inside(tree.root());
    let row = recorded.row("a");
    for column in ["verified_s", "hashed_ns"] {
        assert_eq!(row[column], Value::Integer(0), "{column}");
    }
    assert_eq!(row["mtime_ns"], Value::Integer(i64::MIN));
    let report = import(&beside.path("SHA256SUMS"), tree.root());
    assert_eq!((report.code, &report.summary()["known"]), (0, &3.into()), "{report:?}");
    assert_eq!(recorded.rows().len(), 4, "three files and a folder");
    tree.flip("a", 0);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("a", "mismatch")])),
        "{report:?}"
    );
    // It is never recorded unasked, and asked for it is.
    let report = recorded.update();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("a", "mismatch")])),
        "{report:?}"
    );
    tree.flip("a", 0);
    let report = recorded.update();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    assert_ne!(recorded.row("a")["verified_s"], Value::Integer(0));
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn an_import_keeps_what_is_recorded_and_reports_a_conflict() {
    let (tree, beside) = sample();
    let recorded = Recorded::inside(tree.root());
    tree.write("x", "recorded");
    recorded.run("update", &["--digest", "blake3,sha256"]);
    let rows = recorded.rows();
    let line = |name: &str, content: &[u8]| format!("{}  {name}\n", sha256(content));
    let list = line("x", b"other") + &line("a", b"one") + &line("gone", b"gone");
    let list = beside.write("list", list + &line(".fsure/catalog.db", b"x"));
    let report = import(&list, tree.root());
    assert_eq!(report.code, 6, "{report:?}");
    for (name, count) in
        [("conflicts", 1), ("known", 1), ("recorded", 1), ("absent", 1), ("unusable", 1)]
    {
        assert_eq!(report.summary()[name], count, "{name}: {report:?}");
    }
    assert!(report.stderr.contains(":1: x is recorded with another digest"), "{}", report.stderr);
    let mut after = recorded.rows();
    assert!(after.remove(&b"gone"[..]).is_some());
    assert_eq!(after, rows);
    let report = recorded.verify();
    assert_eq!(report.path_verdicts(), path_verdicts(&[("gone", "missing")]), "{report:?}");
    let blake3 = "0".repeat(64);
    let list = beside.write("b3", format!("{blake3}  sub/b\n"));
    assert_eq!(import(&list, tree.root()).code, 6);
    let list = beside.write("md5", format!("{}  sub/b\n", "0".repeat(32)));
    let report = import(&list, tree.root());
    assert_eq!((report.code, &report.summary()["incomparable"]), (0, &1.into()), "{report:?}");
}

#[test]
fn several_digests_of_a_file_come_together_and_odd_names_end_nothing() {
    let (tree, beside) = sample();
    let tagged = |content: &[u8], name: &str| {
        use sha2::Digest as _;
        let sha512 = sha2::Sha512::digest(content);
        let sha512: String = sha512.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("SHA256 ({name}) = {}\nSHA512 ({name}) = {sha512}\n", sha256(content))
    };
    let long = "x".repeat(300);
    let list = tagged(b"one", "a") + &tagged(b"x", &long) + &tagged(b"x", &"y/".repeat(3000));
    let list = beside.write("list", list.replace("y/)", "y)"));
    let report = import(&list, tree.root());
    assert_eq!(report.code, 0, "{report:?}");
    let recorded = Recorded::inside(tree.root());
    let row = recorded.row("a");
    assert!(matches!(row["sha256"], Value::Blob(_)) && matches!(row["sha512"], Value::Blob(_)));
    let report = against(&tree, &list);
    assert_eq!((report.verdict("a"), report.count("ok")), (None, 1), "{report:?}");
    assert!([1, 4].contains(&report.code), "{report:?}");
}

#[test]
fn a_date_in_a_list_counts_and_a_date_cut_off_is_the_same() {
    let (tree, beside) = sample();
    let recorded = Recorded::outside(tree.root(), &beside.path("one.db"));
    recorded.record();
    let list = beside.path("list");
    let args = ["--format", "mtree", "-o"].map(OsStr::new);
    recorded.text("export", &[&args[..], &[list.as_os_str()]].concat());
    let other = Recorded::outside(tree.root(), &beside.path("two.db"));
    let args = ["import".as_ref(), list.as_os_str(), "--root".as_ref(), tree.root().as_os_str()];
    let catalog = ["--catalog".as_ref(), other.catalog.as_os_str()];
    assert_eq!(fsure_json(&[&args[..], &catalog[..]].concat()).code, 0);
    tree.flip("a", 0);
    tree.write("c", "edited");
    let report = other.verify();
    let verdicts = [("a", "damaged-copy"), ("c", "modified"), ("empty", "new")];
    assert_eq!((report.code, report.path_verdicts()), (3, path_verdicts(&verdicts)), "{report:?}");
    // Milliseconds, as chkbit has them.
    let ms = tree.mtime("sub/b") / 1_000_000;
    let entry = format!("{{\"mod\":{ms},\"a\":\"sha512\",\"h\":\"{}\"}}", "0".repeat(128));
    let idx = format!("{{\"b\":{entry}}}");
    let md5: String =
        <md5::Md5 as sha2::Digest>::digest(&idx).iter().map(|byte| format!("{byte:02x}")).collect();
    let index = format!("{{\"v\":2,\"idx\":{idx},\"idx_hash\":\"{md5}\"}}");
    let index = beside.write(".chkbit", index);
    let third = Recorded::outside(&tree.path("sub"), &beside.path("three.db"));
    let args = ["import".as_ref(), index.as_os_str(), "--root".as_ref(), third.root.as_os_str()];
    let catalog = ["--catalog".as_ref(), third.catalog.as_os_str()];
    assert_eq!(fsure_json(&[&args[..], &catalog[..]].concat()).code, 0);
    assert_eq!(third.verify().path_verdicts(), path_verdicts(&[("b", "damaged-copy")]));
}

#[test]
fn an_export_completes_digests_and_records_nothing_else() {
    let (tree, beside) = sample();
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    tree.flip("a", 0);
    tree.write("c", "edited");
    tree.write("new", "new");
    let before = recorded.rows();
    let list = beside.path("list");
    let args = ["--format", "sha256sums", "-o"].map(OsStr::new);
    let args = [&args[..], &[list.as_os_str()]].concat();
    let report = recorded.run("export", &args);
    assert_eq!(report.code, 3, "{report:?}");
    assert_eq!(report.summary()["without_digest"], 2, "{report:?}");
    assert!(report.stderr.contains("and the file is altered"), "{}", report.stderr);
    let text = std::fs::read_to_string(&list).expect("a list");
    assert_eq!(text, format!("{}  sub/b\n", sha256(b"two")));
    let mut after = recorded.rows();
    let digest = |row: &support::Row| row["sha256"].clone();
    assert_eq!(digest(&after[&b"sub/b"[..]]), Value::Blob(hex_bytes(&sha256(b"two"))));
    after.insert(b"sub/b".to_vec(), before[&b"sub/b"[..]].clone());
    assert_eq!(after, before, "nothing else was recorded");
    let digests: String = recorded
        .connect()
        .query_row("SELECT digests FROM root", [], |row| row.get(0))
        .expect("the root's row");
    assert_eq!(digests, "blake3", "this time only");
    // What is gone is left out, and a part can be asked for.
    tree.flip("a", 0);
    std::fs::remove_file(tree.path("c")).expect("remove");
    recorded.update();
    let report = recorded.run("export", &args);
    assert_eq!((report.code, &report.summary()["gone"]), (0, &1.into()), "{report:?}");
    let part = tree.path("sub");
    let part = ["export".as_ref(), part.as_os_str(), "--format".as_ref(), "sha256sums".as_ref()];
    let run = support::fsure(&part);
    assert_eq!(run.stdout, format!("{}  b\n", sha256(b"two")));
    let run = recorded.text("export", &["--format", "nonsense"]);
    assert_eq!(run.code, 2);
    assert_eq!(std::fs::read_dir(beside.root()).expect("list").count(), 2, "nothing left over");
}

fn hex_bytes(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn an_export_replaces_lists_and_nothing_else() {
    let (tree, beside) = sample();
    let recorded = support::fsure(&["update".as_ref(), tree.root().as_os_str()]);
    assert_eq!(recorded.code, 0, "{recorded:?}");
    let export = |format: &str, to: &Path| {
        support::fsure(&[
            "export".as_ref(),
            tree.root().as_os_str(),
            "--format".as_ref(),
            format.as_ref(),
            "-o".as_ref(),
            to.as_os_str(),
        ])
    };
    beside.write("notes.txt", "milk\nbread\n");
    beside.write("photo.raw", [0xff, 0xd8, 0, 7, b'\n', 1]);
    beside.write("page.html", "<html><body>the only copy</body></html>");
    beside.write("data.json", "{\"only\": \"copy\"}");
    let own = [tree.path("a"), beside.path("notes.txt"), beside.path("photo.raw")];
    for to in own.into_iter().chain(["page.html", "data.json"].map(|name| beside.path(name))) {
        let before = std::fs::read(&to).expect("read");
        for format in ["sha256sums", "hashdeep", "json"] {
            let run = export(format, &to);
            assert!(run.code == 2 && run.stderr.contains("is not a list"), "{to:?}: {run:?}");
            assert_eq!(std::fs::read(&to).expect("read"), before, "{to:?}");
        }
    }
    // Its own lists, of any form, and an empty file are replaced.
    beside.write("list", "");
    for format in ["sha256sums", "sha512sums", "b3sum", "hashdeep", "mtree", "json", "sha256sums"] {
        let run = export(format, &beside.path("list"));
        assert_eq!(run.code, 0, "{format}: {run:?}");
    }
}
