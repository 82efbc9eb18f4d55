//! Tests the borders of a tree: patterns, other file systems, roots in roots, hard
//! links, links, holes, and files that must never be opened; and files that come back
//! after they were gone.
#![cfg(target_os = "linux")]

use crate::support;
use std::os::unix::fs::{FileExt as _, symlink};

use crate::support::{
    Mounted, Recorded, Report, Tree, content, fsure_json, or_skip, path_verdicts,
};
use rusqlite::types::Value;
use rustix::fs::{CWD, FileType, Mode, mknodat};

const MIB: u64 = 1 << 20;

fn assert_clean(report: &Report, case: &str) {
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
}

fn number(report: &Report, field: &str) -> u64 {
    report.summary()[field].as_u64().unwrap_or_else(|| panic!("no {field}: {report:?}"))
}

/// The recorded paths.
fn paths(recorded: &Recorded) -> Vec<String> {
    recorded.rows().into_keys().map(|path| String::from_utf8(path).expect("text")).collect()
}

#[test]
fn patterns_leave_out_and_gitignore_does_not() {
    let tree = Tree::new();
    for path in [
        ".gitignore",
        "a.log",
        "cache/x",
        "cache/y",
        "in/.fsureignore",
        "in/a.log",
        "in/keep.log",
        "in/deep/b.tmp",
        "in/deep/keep.log",
        "keep.tmp",
        "x.bak",
    ] {
        tree.write(path, "x");
    }
    tree.write(".gitignore", "*\n");
    tree.write(".fsureignore", "*.log\ncache/\n");
    tree.write("in/.fsureignore", "!keep.log\n/deep/*.tmp\n");
    tree.write(".fsure/config.toml", "exclude = [\"*.bak\"]\n");
    let recorded = Recorded::inside(tree.root());
    std::thread::sleep(std::time::Duration::from_millis(60));
    let report = recorded.run("update", &["--exclude", "keep.tmp", "--all"]);
    assert_eq!(report.code, 0, "{report:?}");
    let left_out: Vec<_> =
        report.path_verdicts().into_iter().filter(|(_, verdict)| verdict == "ignored").collect();
    let names = ["a.log", "cache", "in/a.log", "in/deep/b.tmp", "keep.tmp", "x.bak"];
    assert_eq!(left_out, path_verdicts(&names.map(|name| (name, "ignored"))), "{report:?}");
    let counts = (number(&report, "ignored_files"), number(&report, "ignored_folders"));
    assert_eq!(counts, (5, 1), "{report:?}");
    let inside = ["in", "in/.fsureignore", "in/deep", "in/deep/keep.log", "in/keep.log"];
    assert_eq!(paths(&recorded), [&[".fsureignore", ".gitignore"], &inside[..]].concat());
    // What the command line left out is not left out for good.
    let report = recorded.update();
    assert_eq!(report.verdict("keep.tmp").as_deref(), Some("new"), "{report:?}");
}

#[test]
fn what_is_left_out_later_is_neither_missing_nor_forgotten() {
    let tree = Tree::new();
    for path in ["cache/x", "cache/y", "cache/z", "good"] {
        tree.write(path, path);
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let rows = recorded.rows();
    for command in ["verify", "update", "status"] {
        let report = recorded.run(command, &["--exclude", "cache/"]);
        assert_eq!(report.code, 0, "{command}: {report:?}");
        assert_eq!(report.count("missing"), 0, "{command}: {report:?}");
        assert_eq!(recorded.rows().len(), rows.len(), "{command}");
        assert!(recorded.rows().values().all(|row| row["gone_s"] == Value::Null), "{command}");
    }
    assert_clean(&recorded.verify(), "not left out any more");
}

#[test]
fn hard_links_are_read_once_and_judged_under_every_name() {
    let tree = Tree::new();
    tree.write("one", content(2 * MIB as usize + 5, 1));
    for name in ["sub/two", "three"] {
        std::fs::create_dir_all(tree.path("sub")).expect("make a folder");
        std::fs::hard_link(tree.path("one"), tree.path(name)).expect("link");
    }
    tree.write("other", "other");
    let recorded = Recorded::inside(tree.root());
    let once = 2 * MIB + 5 + 5;
    let report = recorded.record();
    assert_eq!(number(&report, "bytes_read"), once, "{report:?}");
    assert_eq!(report.count("new"), 4, "{report:?}");
    let report = recorded.verify();
    assert_clean(&report, "verify");
    assert_eq!((number(&report, "bytes_read"), report.count("ok")), (once, 4), "{report:?}");
    tree.flip("three", MIB);
    let names = ["one", "sub/two", "three"];
    let mut damaged = path_verdicts(&names.map(|name| (name, "altered")));
    damaged.sort();
    for command in ["verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (3, damaged.clone()),
            "{command}: {report:?}"
        );
        for name in names {
            let blocks = &report.finding(name).expect("told")["blocks"];
            assert_eq!(*blocks, serde_json::json!([[MIB, 2 * MIB]]), "{command}, {name}");
        }
    }
}

#[test]
fn other_file_systems_are_left_out_unless_asked_for() {
    let tree = Tree::new();
    tree.write("file", "x");
    std::fs::create_dir(tree.path("mounted")).expect("make a folder");
    let mounted = Mounted::tmpfs(&tree.path("mounted"), 1024);
    let Some(mounted) = or_skip("other_file_systems_are_left_out", mounted) else { return };
    tree.write("mounted/inner", "inner");
    let recorded = Recorded::inside(tree.root());
    let report = recorded.record();
    assert_eq!(number(&report, "ignored_folders"), 1, "{report:?}");
    assert_eq!(paths(&recorded), ["file"]);
    let report = recorded.run("update", &["--cross-file-systems"]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(paths(&recorded), ["file", "mounted", "mounted/inner"]);
    let report = recorded.verify();
    assert_clean(&report, "update remembers it");
    assert_eq!(report.count("ok"), 2, "{report:?}");
    let whole = recorded.catalog_bytes();
    recorded.edit("DELETE FROM file_system WHERE id = (SELECT max(id) FROM file_system)");
    for (command, options) in [("verify", &[""; 0][..]), ("update", &[]), ("update", &["--full"])] {
        // A new number would be that of the lost row, and its rows would be believed.
        let report = recorded.run(command, options);
        assert_eq!(report.code, 6, "{command} {options:?}, a file system is lost: {report:?}");
    }
    std::fs::write(&recorded.catalog, whole).expect("put back");
    let report = recorded.run("verify", &["--cross-file-systems=false"]);
    let seen = (report.code, report.verdict("mounted/inner"));
    assert_eq!(seen, (5, Some("ignored".into())), "what is recorded is not judged: {report:?}");
    tree.flip("mounted/inner", 0);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("mounted/inner", "altered")]))
    );
    drop(mounted);
    for command in ["verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        let seen = (report.code, report.verdict("mounted/inner"));
        assert_eq!(seen, (4, Some("unreadable".into())), "{command}: {report:?}");
        let row = recorded.row("mounted/inner");
        assert_eq!(row["gone_s"], Value::Null, "{command}: an unmounted disk is no deletion");
    }
}

#[test]
fn a_root_in_a_root_is_judged_by_its_own_record() {
    let tree = Tree::new();
    for path in ["file", "inner/a", "inner/deep/b", "z"] {
        tree.write(path, path);
    }
    let inner = Recorded::inside(&tree.path("inner"));
    inner.record();
    let outer = Recorded::inside(tree.root());
    outer.record();
    assert_eq!(paths(&outer), ["file", "inner", "z"]);
    tree.flip("file", 0);
    tree.flip("inner/deep/b", 0);
    for command in ["verify", "update"] {
        let report = outer.run(command, &[""; 0]);
        let expected = path_verdicts(&[("deep/b", "altered"), ("file", "altered")]);
        assert_eq!((report.code, report.path_verdicts()), (3, expected), "{command}: {report:?}");
        let roots: Vec<_> = report.lines.iter().filter(|line| line["type"] == "root").collect();
        assert_eq!(roots.len(), 2, "{command}: {roots:?}");
        assert_eq!(report.count("ok") + report.count("altered"), 4, "{command}: {report:?}");
    }
    // Asked for by name as well, it is judged once.
    let paths = ["verify".into(), outer.root.clone(), inner.root.clone()];
    let report = fsure_json(&paths);
    assert_eq!(report.lines.iter().filter(|line| line["type"] == "root").count(), 2);
    // The nearest root above counts.
    let report = fsure_json(&["verify".into(), tree.path("inner/deep/b")]);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("deep/b", "altered")])),
        "{report:?}"
    );
}

#[test]
fn holes_cost_no_reading() {
    const SIZE: u64 = 16 << 30;
    let tree = Tree::new();
    let make = |path: &str, size: u64| {
        let file = std::fs::File::create(tree.path(path)).expect("create");
        file.set_len(size).expect("size");
        file
    };
    make("holes", SIZE);
    let file = make("island", 100 * MIB);
    file.write_all_at(&content(4096, 1), 50 * MIB + 4096).expect("write");
    file.sync_all().expect("write to the disk");
    let recorded = Recorded::inside(tree.root());
    for report in [recorded.record(), recorded.verify()] {
        assert_eq!(report.code, 0, "{report:?}");
        assert_eq!(number(&report, "bytes_judged"), SIZE + 100 * MIB, "{report:?}");
        let read = number(&report, "bytes_read");
        assert!((4096..=4 * MIB).contains(&read), "{read} bytes were read: {report:?}");
    }
    let island = blake3::hash(&tree.read("island"));
    assert_eq!(support::bytes(&recorded.row("island")["blake3"]), island.as_bytes());
    // Zeros are zeros, whether a program wrote them or not.
    let date = tree.mtime("island");
    file.write_all_at(&[0; 4096], 10 * MIB).expect("write zeros");
    tree.set_mtime("island", date);
    assert_clean(&fsure_json(&["verify".into(), tree.path("island")]), "a hole became zeros");
}

#[test]
fn special_files_are_counted_and_never_opened() {
    let tree = Tree::new();
    tree.write("file", "x");
    for (name, kind) in [("fifo", FileType::Fifo), ("sub/fifo", FileType::Fifo)] {
        std::fs::create_dir_all(tree.path("sub")).expect("make a folder");
        mknodat(CWD, tree.path(name), kind, Mode::RWXU, 0).expect("make a FIFO");
    }
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("socket")).expect("bind");
    // 1:5 is /dev/zero, whose end no reader would see.
    let zero = rustix::fs::makedev(1, 5);
    let device = mknodat(CWD, tree.path("zero"), FileType::CharacterDevice, Mode::RWXU, zero);
    let special = 3 + u64::from(device.is_ok());
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for command in ["update", "verify", "status"] {
        let report = recorded.run(command, &[""; 0]);
        assert_clean(&report, command);
        assert_eq!(number(&report, "special"), special, "{command}: {report:?}");
    }
    assert_eq!(paths(&recorded), ["file", "sub"]);
}

#[test]
fn links_are_recorded_by_their_target_and_never_followed() {
    let (tree, outside) = (Tree::new(), Tree::new());
    outside.write("secret/file", "x");
    tree.write("file", "x");
    symlink("file", tree.path("link")).expect("link");
    symlink(outside.path("secret"), tree.path("folder")).expect("link");
    symlink("nowhere", tree.path("dangling")).expect("link");
    symlink("loop", tree.path("loop")).expect("link");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    assert_eq!(paths(&recorded), ["dangling", "file", "folder", "link", "loop"]);
    assert_eq!(support::bytes(&recorded.row("dangling")["target"]), b"nowhere");
    assert_clean(&recorded.verify(), "links");
    std::fs::remove_file(tree.path("link")).expect("remove");
    symlink("elsewhere", tree.path("link")).expect("link");
    std::fs::remove_file(tree.path("dangling")).expect("remove");
    let changed = path_verdicts(&[("dangling", "missing"), ("link", "modified")]);
    for (command, code) in [("status", 1), ("verify", 1), ("update", 0)] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (code, changed.clone()),
            "{command}: {report:?}"
        );
    }
    assert_clean(&recorded.verify(), "recorded");
}

#[test]
fn what_comes_back_is_held_against_its_tombstone() {
    let cases: &[(&str, i32, &str)] =
        &[("moved back", 0, "ok"), ("copied back", 0, "ok"), ("damaged", 3, "damaged-copy")];
    for (case, code, verdict) in cases {
        let (tree, beside) = (Tree::new(), Tree::new());
        let data = content(3 * MIB as usize, 1);
        let path = tree.write("file", &data);
        tree.write("good", "x");
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        let date = tree.mtime("file");
        std::fs::rename(&path, beside.path("file")).expect("move away");
        let report = recorded.update();
        assert_eq!(
            report.path_verdicts(),
            path_verdicts(&[("file", "missing")]),
            "{case}: {report:?}"
        );
        match *case {
            "moved back" => std::fs::rename(beside.path("file"), &path).expect("move back"),
            "copied back" => std::fs::write(&path, &data).expect("write"),
            _ => {
                std::fs::write(&path, &data).expect("write");
                tree.flip("file", MIB + 1);
            }
        }
        tree.set_mtime("file", date);
        for command in ["verify", "update"] {
            let report = recorded.run(command, &["--all"]);
            let reported = report.verdict("file");
            assert_eq!(reported.as_deref(), Some(*verdict), "{case}, {command}: {report:?}");
            assert_eq!(report.code, *code, "{case}, {command}: {report:?}");
        }
        let is_gone = recorded.row("file")["gone_s"] != Value::Null;
        assert_eq!(is_gone, *code == 3, "{case}: the tombstone after update");
    }
}

#[test]
fn a_folder_that_may_not_be_read_is_denied_and_loses_no_record() {
    let tree = Tree::new();
    for path in ["good", "locked/a", "locked/b", "single"] {
        tree.write(path, path);
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let Some(user) = or_skip("a_folder_that_may_not_be_read", Unprivileged::new(&tree)) else {
        return;
    };
    let rows = recorded.rows();
    for command in ["verify", "update", "status"] {
        let run = user.run(&recorded.arguments(command, &["--json"]));
        let report = Report::new(run);
        let verdicts = report.verdicts();
        let verdict = |path: &str| verdicts.get(path.as_bytes()).map(String::as_str);
        assert_eq!(report.code, 4, "{command}: {report:?}");
        assert_eq!(verdict("locked/a"), Some("denied"), "{command}: {report:?}");
        assert_eq!(verdict("locked/b"), Some("denied"), "{command}: {report:?}");
        // An unchanged stat is all that the others ask of an unchanged file.
        let single = (command == "verify").then_some("denied");
        assert_eq!(verdict("single"), single, "{command}: {report:?}");
        assert_eq!(report.count("missing"), 0, "{command}: {report:?}");
        let gone = recorded.rows().values().filter(|row| row["gone_s"] != Value::Null).count();
        assert_eq!((recorded.rows().len(), gone), (rows.len(), 0), "{command}");
    }
}

/// Another user, who owns the record and not all of the tree.
struct Unprivileged;

impl Unprivileged {
    const ID: u32 = 65534;

    fn new(tree: &Tree) -> Result<Self, String> {
        use std::os::unix::fs::PermissionsExt as _;
        if !rustix::process::geteuid().is_root() {
            return Err("changing the user needs root".into());
        }
        if Self::command().arg("--version").output().is_err() {
            return Err("another user cannot start the program where it is".into());
        }
        let mode = |path: &str, mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(tree.path(path), permissions).expect("chmod");
        };
        mode("", 0o755);
        for own in [".fsure", ".fsure/catalog.db", ".fsure/catalog.db.lock"] {
            let id = Some(Self::ID);
            std::os::unix::fs::chown(tree.path(own), id, id).expect("chown");
        }
        mode("locked", 0o700);
        mode("single", 0o600);
        // The chmod of a file has moved its change time.
        Recorded::inside(tree.root()).record();
        Ok(Self)
    }

    fn command() -> std::process::Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.uid(Self::ID).gid(Self::ID);
        command
    }

    fn run(&self, arguments: &[std::ffi::OsString]) -> support::Run {
        let output = Self::command().args(arguments).output().expect("start fsure");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        support::Run { code: support::code(output.status), stdout, stderr }
    }
}
