//! Metadata, where it was asked for: reported beside the verdict and never as
//! damage, recorded by `update`, moved and forgotten with its record. What
//! cannot be read is reported, what was lost is reported, and nothing is made up.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{
    EXT4, FaultyFs, Image, Recorded, Report, Tree, content, or_skip, path_verdicts, skip,
};
use rustix::fs::{AtFlags, CWD, Gid, Uid, XattrFlags, chownat, lsetxattr};
use serde_json::{Value, json};

const ALL: [&str; 2] = ["--meta", "mode,owner,acl,xattr"];

fn set(path: &Path, name: &str, value: &[u8]) -> Result<(), String> {
    let done = lsetxattr(path, name, value, XattrFlags::empty());
    done.map_err(|error| format!("set {name} on {}: {error}", path.display()))
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set the mode");
}

fn own(path: &Path, user: u32, group: u32) {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    chownat(CWD, path, user, group, AtFlags::SYMLINK_NOFOLLOW).expect("chown");
}

/// An access list that lets user 7 read, as the kernel keeps it.
fn access_list() -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, who) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 4, 7),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        bytes.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        bytes.extend(who.to_le_bytes());
    }
    bytes
}

fn fill(tree: &Tree) {
    tree.write("folder/file", content(3000, 1));
    tree.write("other", content(20, 2));
    tree.write(Path::new(std::str::from_utf8(b"third").unwrap()), content(20, 3));
    symlink("other", tree.path("link")).expect("make a link");
    mode(&tree.path("folder/file"), 0o644);
    mode(&tree.path("folder"), 0o755);
}

/// A tree on a file system with attributes, and its record with all aspects.
fn recorded(test: &str) -> Option<(Image, Tree, Recorded)> {
    let image = or_skip(test, Image::new(&EXT4, 16))?;
    let tree = Tree::new_in(image.root());
    fill(&tree);
    or_skip(test, set(&tree.path("folder/file"), "user.comment", b"a\xff"))?;
    let recorded = Recorded::inside(tree.root());
    std::thread::sleep(std::time::Duration::from_millis(60));
    let report = recorded.run("update", &ALL);
    assert_eq!(report.code, 0, "{report:?}");
    Some((image, tree, recorded))
}

fn changes(report: &Report, path: &str) -> Value {
    report.finding(path).unwrap_or_else(|| panic!("nothing of {path}: {report:?}"))["meta"].clone()
}

type Edit = fn(&Tree);

/// Returns edits, each with the path that it changes and the changes to be reported.
fn cases() -> [(Edit, &'static str, Value); 8] {
    let file = "folder/file";
    [
        (
            |t| mode(&t.path("folder/file"), 0o4600),
            file,
            json!([{"aspect": "mode", "was": {"text": "0644"}, "now": {"text": "4600"}}]),
        ),
        (
            |t| own(&t.path("link"), 7, 8),
            "link",
            json!([{"aspect": "owner", "was": {"text": "0:0"}, "now": {"text": "7:8"}}]),
        ),
        (
            |t| mode(&t.path("folder"), 0o700),
            "folder",
            json!([{"aspect": "mode", "was": {"text": "0755"}, "now": {"text": "0700"}}]),
        ),
        (
            |t| set(&t.path("folder/file"), "user.comment", b"b").expect("set"),
            file,
            json!([{"aspect": "xattr", "name": "user.comment", "was": {"base64": "Yf8="}, "now": {"text": "b"}}]),
        ),
        (
            |t| set(&t.path("folder/file"), "user.a", &[7; 300]).expect("set"),
            file,
            json!([{"aspect": "xattr", "name": "user.a", "was": null, "now": {"blake3":
                {"digest": blake3::hash(&[7; 300]).to_hex().to_string(), "size": 300}}}]),
        ),
        (
            |t| rustix::fs::lremovexattr(t.path("folder/file"), "user.comment").expect("remove"),
            file,
            json!([{"aspect": "xattr", "name": "user.comment", "was": {"text": "b"}, "now": null}]),
        ),
        (
            |t| set(&t.path("folder"), "trusted.x", b"1").expect("set"),
            "folder",
            json!([{"aspect": "xattr", "name": "trusted.x", "was": null, "now": {"text": "1"}}]),
        ),
        (
            |t| set(&t.path("link"), "security.x", b"1").expect("set"),
            "link",
            json!([{"aspect": "xattr", "name": "security.x", "was": null, "now": {"text": "1"}}]),
        ),
    ]
}

#[test]
fn every_aspect_is_reported_with_the_verdict_and_recorded() {
    let test = "every_aspect_is_reported_with_the_verdict_and_recorded";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    for (edit, path, expected) in cases() {
        edit(&tree);
        for (command, code) in [("status", 1), ("verify", 1), ("update", 0)] {
            let report = recorded.run(command, &[""; 0]);
            assert_eq!(
                (report.code, report.path_verdicts()),
                (code, path_verdicts(&[(path, "ok")])),
                "{command}: {report:?}"
            );
            assert_eq!(changes(&report, path), expected, "{command}");
            assert_eq!(report.summary()["meta_changed"], 1);
        }
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{expected}: {report:?}");
    }
}

#[test]
fn access_lists_are_kept_as_the_system_has_them() {
    let test = "access_lists_are_kept_as_the_system_has_them";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    let list = access_list();
    let path = tree.path("folder/file");
    let Some(()) = or_skip(test, set(&path, "system.posix_acl_access", &list)) else { return };
    let report = recorded.verify();
    let aspects = changes(&report, "folder/file");
    assert_eq!(aspects[0]["aspect"], "acl", "{report:?}");
    assert_eq!(aspects[0]["name"], "system.posix_acl_access", "{report:?}");
    assert_eq!(aspects.as_array().map(Vec::len), Some(1), "the mode stayed: {report:?}");
    assert_eq!(recorded.update().code, 0);
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn damage_stays_damage_and_its_metadata_stays_recorded() {
    let test = "damage_stays_damage_and_its_metadata_stays_recorded";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    tree.flip("folder/file", 5);
    mode(&tree.path("folder/file"), 0o600);
    for command in ["update", "verify"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (3, path_verdicts(&[("folder/file", "altered")])),
            "{report:?}"
        );
        assert_eq!(changes(&report, "folder/file")[0]["was"], json!({"text": "0644"}), "{command}");
        // What an update counts it has recorded.
        let counted = u64::from(command == "verify");
        assert_eq!(report.summary()["meta_changed"], counted, "{report:?}");
    }
    let accept = ["--accept".into(), tree.path("folder/file")];
    assert_eq!(recorded.run("update", &accept).code, 0);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
}

#[test]
fn it_moves_with_its_record_and_goes_with_it() {
    let test = "it_moves_with_its_record_and_goes_with_it";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    // By inode, by spelling, and by content.
    fs::rename(tree.path("folder"), tree.path("FOLDER")).expect("rename");
    fs::rename(tree.path("other"), tree.path("renamed")).expect("rename");
    fs::copy(tree.path("third"), tree.path("copied")).expect("copy");
    mode(&tree.path("copied"), 0o640);
    fs::remove_file(tree.path("third")).expect("remove");
    for (command, code) in [("verify", 1), ("update", 0)] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(report.code, code, "{report:?}");
        for path in ["FOLDER", "FOLDER/file", "renamed"] {
            assert_eq!(changes(&report, path), Value::Null, "{command} {path}: {report:?}");
        }
        assert_eq!(changes(&report, "copied")[0]["now"], json!({"text": "0640"}), "{command}");
        assert_eq!(changes(&report, "copied")[0]["was"], json!({"text": "0644"}), "{command}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    let rows = |table: &str| -> Vec<Vec<u8>> {
        let connection = recorded.connect();
        let sql = format!("SELECT path FROM {table} ORDER BY path");
        let mut statement = connection.prepare(&sql).expect("a table");
        let paths = statement.query_map([], |row| row.get(0)).expect("rows");
        paths.collect::<Result<_, _>>().expect("paths")
    };
    assert_eq!(rows("metadata"), rows("record"), "one of each, and none left behind");
    // Off again: nothing is compared and nothing stays.
    mode(&tree.path("renamed"), 0o600);
    assert_eq!(recorded.run("update", &["--meta", "none"]).code, 0);
    assert_eq!(rows("metadata"), Vec::<Vec<u8>>::new());
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn unrecorded_or_damaged_metadata_is_reported() {
    let test = "unrecorded_or_damaged_metadata_is_reported";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    let edit = |sql: &str| recorded.connect().execute_batch(sql).expect("edit");
    let deleted = "DELETE FROM metadata WHERE path = CAST('other' AS BLOB)";
    let whole = recorded.catalog_bytes();
    edit(deleted);
    for command in ["verify", "status", "update"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(report.code, 6, "a row is lost, {command}: {report:?}");
    }
    std::fs::write(&recorded.catalog, whole).expect("put back");
    support::forger::forge(&recorded.connect(), deleted);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (1, path_verdicts(&[("other", "ok")])),
        "{report:?}"
    );
    assert_eq!(changes(&report, "other")[3]["was"], "unrecorded", "{report:?}");
    let report = recorded.update();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    assert_eq!(recorded.verify().code, 0);
    edit("UPDATE metadata SET seal = seal + 1 WHERE path = CAST('other' AS BLOB)");
    for command in ["verify", "status", "update"] {
        let report = recorded.run(command, &[""; 0]);
        let expected = (6, path_verdicts(&[("other", "ok")]));
        assert_eq!((report.code, report.path_verdicts()), expected, "{command}: {report:?}");
        assert_eq!(changes(&report, "other")[0]["was"], "record-bad", "{command}: {report:?}");
    }
    let report = recorded.run("update", &["--accept".into(), tree.path("other")]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(recorded.verify().code, 0);
    edit("UPDATE choice SET value = 'mode'");
    let report = recorded.verify();
    assert_eq!(report.code, 6, "{report:?}");
}

#[test]
fn a_copy_where_there_are_no_attributes_has_lost_them() {
    let test = "a_copy_where_there_are_no_attributes_has_lost_them";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    let Some(view) = or_skip(test, FaultyFs::new(tree.root())) else { return };
    if rustix::fs::llistxattr(view.root().join("folder/file"), &mut [0_u8; 9][..]).is_ok() {
        return skip(test, "the view has attributes");
    }
    let copy = Recorded::outside(view.root(), &recorded.catalog);
    let report = copy.run("verify", &["--force"]);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (1, path_verdicts(&[("folder/file", "ok")])),
        "{report:?}"
    );
    let lost = json!([{"aspect": "xattr", "name": "user.comment", "was": {"base64": "Yf8="}, "now": null}]);
    assert_eq!(changes(&report, "folder/file"), lost);
}

#[test]
fn without_the_request_nothing_is_asked() {
    let test = "without_the_request_nothing_is_asked";
    let tree = Tree::new();
    fill(&tree);
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    let asked = |command: &str| {
        let calls = ["-e", "trace=llistxattr,lgetxattr,listxattr,getxattr,flistxattr,fgetxattr"];
        let traced =
            or_skip(test, support::traced(&calls, &recorded.arguments(command, &[""; 0])))?;
        let root = tree.root().to_str().expect("text");
        Some(
            traced
                .calls()
                .filter(|(_, call)| call.contains("/proc/self/fd") || call.contains(root))
                .count(),
        )
    };
    for command in ["update", "verify", "status"] {
        let Some(asked) = asked(command) else { return };
        assert_eq!(asked, 0, "{command}");
    }
    recorded.run("update", &ALL);
    assert!(asked("verify") >= Some(5), "they are seen where they are made");
}

#[test]
fn a_text_report_shows_old_and_new_values() {
    let test = "a_text_report_shows_old_and_new_values";
    let Some((_image, tree, recorded)) = recorded(test) else { return };
    mode(&tree.path("folder/file"), 0o600);
    set(&tree.path("folder/file"), "user.comment", b"b").expect("set");
    let run = recorded.text("verify", &[""; 0]);
    let evidence = "\n    mode '0644' -> '0600'; xattr user.comment 'a\\xff' -> 'b'\n";
    assert!(run.stdout.contains(evidence), "{}", run.stdout);
    assert!(run.stdout.contains("\n1 name with other metadata. If that is"), "{}", run.stdout);
    let run = recorded.text("update", &["--meta", "mode,colour"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}
