//! The dying disk: reads that fail with EIO, for ever or now and then, and
//! reads that lie. A read error is neither damage nor a deletion, it never
//! costs a record, and it costs the rest of the tree nothing.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{
    Fault, FaultyFs, Mounted, Recorded, Row, Run, Tree, code, content, or_skip, path_verdicts,
};
use rusqlite::types::Value;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

/// A tree, a faulty view of it, and a record kept beside both.
struct Setting {
    tree: Tree,
    view: FaultyFs,
    recorded: Recorded,
    _beside: Tree,
}

impl Setting {
    fn new(test: &str, files: &[(&str, u64)]) -> Option<Self> {
        let (tree, beside) = (Tree::new(), Tree::new());
        for (number, (path, size)) in files.iter().enumerate() {
            tree.write(path, content(*size as usize, number as u64 + 1));
        }
        let view = or_skip(test, FaultyFs::new(tree.root()))?;
        let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
        Some(Self { tree, view, recorded, _beside: beside })
    }

    /// The rows without the dates at which a file was seen to be well.
    fn rows(&self) -> BTreeMap<Vec<u8>, Row> {
        let mut rows = self.recorded.rows();
        for row in rows.values_mut() {
            for column in ["hashed_ns", "verified_s", "seal"] {
                row.remove(column);
            }
        }
        rows
    }
}

const THREE: &[(&str, u64)] = &[("a", MIB), ("b", MIB), ("c", MIB)];

#[test]
fn a_bad_sector_costs_its_own_bytes_and_never_the_record() {
    let Some(setting) = Setting::new("a_bad_sector_costs_its_own_bytes", THREE) else { return };
    let recorded = &setting.recorded;
    recorded.record();
    let (row, rows) = (recorded.row("b"), setting.rows());
    setting.tree.flip("c", 5);
    setting.view.set([Fault::eio("b", 64 * KIB..u64::MAX)]);
    for (command, more) in [("verify", ""), ("update", "--full")] {
        let more = [more].into_iter().filter(|more| !more.is_empty()).collect::<Vec<_>>();
        let report = recorded.run(command, &[&["--all"], &more[..]].concat());
        let expected = path_verdicts(&[("a", "ok"), ("b", "unreadable"), ("c", "altered")]);
        assert_eq!((report.code, report.path_verdicts()), (3, expected), "{command}: {report:?}");
        let finding = report.finding("b").expect("told");
        assert_eq!(finding["unreadable"], json!([[64 * KIB, MIB]]), "{command}: {finding:#}");
        assert_eq!(finding["blocks"], json!([]), "{command}: {finding:#}");
        assert_eq!(recorded.row("b"), row, "{command} wrote what it could not read");
        assert_eq!(setting.rows(), rows, "{command}");
    }
    setting.tree.flip("c", 5);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (4, path_verdicts(&[("b", "unreadable")])),
        "{report:?}"
    );
    let everything = recorded.run("update", &["--full", "--accept-all"]);
    assert_eq!((everything.code, recorded.row("b")), (4, row), "there is nothing to accept");
    setting.view.set([]);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "well again: {report:?}");
}

/// File size, bad ranges, and the ranges that must be named.
type Ranges = &'static [[u64; 2]];
const BAD_PLACES: &[(u64, Ranges, Ranges)] = &[
    (1, &[[0, 1]], &[[0, 1]]),
    (10_000, &[[9_000, 9_001]], &[[8_192, 10_000]]),
    (5 * MIB, &[[2 * MIB + 5, 2 * MIB + 6]], &[[2 * MIB, 2 * MIB + 4096]]),
    (
        9 * MIB + 5,
        &[[0, 1], [MIB - 1, MIB + 1], [9 * MIB, 9 * MIB + 5]],
        &[[0, 4096], [MIB - 4096, MIB + 4096], [9 * MIB, 9 * MIB + 5]],
    ),
    (3 * MIB, &[[0, 3 * MIB]], &[[0, 3 * MIB]]),
    (70 * MIB, &[[65 * MIB, 65 * MIB + 1]], &[[65 * MIB, 65 * MIB + 4096]]),
];

#[test]
fn the_bad_bytes_are_found_to_the_page() {
    for case in BAD_PLACES {
        let (size, bad, named) = case;
        let files = [("file", *size), ("good", 10)];
        let Some(setting) = Setting::new("the_bad_bytes_are_found", &files) else { return };
        setting.recorded.record();
        let row = setting.recorded.row("file");
        for direct_io in [false, true] {
            setting.view.faults.lock().expect("lock").direct_io = direct_io;
            setting.view.set(bad.iter().map(|[from, to]| Fault::eio("file", *from..*to)));
            let report = setting.recorded.verify();
            let expected = (4, path_verdicts(&[("file", "unreadable")]));
            assert_eq!((report.code, report.path_verdicts()), expected, "{case:?}: {report:?}");
            let finding = report.finding("file").expect("told");
            assert_eq!(finding["unreadable"], json!(named), "{case:?} {direct_io}: {finding:#}");
            assert_eq!(setting.recorded.row("file"), row, "{case:?}");
        }
    }
}

/// In one segment, and each in another one.
#[test]
fn damage_beside_a_bad_sector_is_damage_and_both_are_listed() {
    for (mebibytes, damaged, bad) in [(5, 3, 1), (130, 129, 65)] {
        let files = [("file", mebibytes * MIB + 5), ("good", 10)];
        let Some(setting) = Setting::new("damage_beside_a_bad_sector", &files) else { return };
        setting.recorded.record();
        let row = setting.recorded.row("file");
        let (damaged, bad) = (damaged * MIB, bad * MIB);
        setting.tree.flip("file", damaged + 1);
        setting.view.set([Fault::eio("file", bad..bad + 1)]);
        for command in ["verify", "update"] {
            let report = setting.recorded.run(command, &[""; 0]);
            let expected = (3, path_verdicts(&[("file", "altered")]));
            assert_eq!((report.code, report.path_verdicts()), expected, "{command}: {report:?}");
            let finding = report.finding("file").expect("told");
            assert_eq!(finding["blocks"], json!([[damaged, damaged + MIB]]), "{finding:#}");
            assert_eq!(finding["unreadable"], json!([[bad, bad + 4096]]), "{finding:#}");
            assert_eq!(setting.recorded.row("file"), row, "{command}");
        }
    }
}

/// Faults that pass, with `FOPEN_DIRECT_IO` or without. A single EIO behind the
/// first MiB of an `O_DIRECT` read is not among them: Linux reads the rest
/// through the page cache (`generic_file_read_iter`), and no program sees it.
fn passing_faults() -> Vec<(&'static str, bool, Fault)> {
    let path = "file";
    vec![
        ("eio once", true, Fault::eio(path, 0..1).times(1)),
        ("eio twice", true, Fault::eio(path, 0..1).times(2)),
        ("eio twice behind the first MiB", true, Fault::eio(path, MIB..MIB + 1).times(2)),
        ("flip once", true, Fault::flip(path, MIB + 9..MIB + 10).times(1)),
        ("eio once, O_DIRECT", false, Fault::eio(path, 0..1).times(1)),
        ("eio twice, O_DIRECT", false, Fault::eio(path, 0..1).times(2)),
        ("flip once, O_DIRECT", false, Fault::flip(path, MIB + 9..MIB + 10).times(1)),
    ]
}

#[test]
fn a_read_that_fails_or_lies_only_once_is_flaky() {
    for (name, direct_io, fault) in passing_faults() {
        let files = [("file", 3 * MIB), ("good", 10)];
        let Some(setting) = Setting::new("a_read_that_fails_only_once", &files) else { return };
        setting.recorded.record();
        let row = setting.recorded.row("file");
        setting.view.faults.lock().expect("lock").direct_io = direct_io;
        for command in ["verify", "update --full"] {
            setting.view.set([fault.clone()]);
            let mut words = command.split(' ');
            let command = words.next().expect("a word");
            let report = setting.recorded.run(command, &words.collect::<Vec<_>>());
            let expected = (3, path_verdicts(&[("file", "flaky")]));
            assert_eq!(
                (report.code, report.path_verdicts()),
                expected,
                "{name}, {command}: {report:?}"
            );
            assert_eq!(setting.recorded.row("file"), row, "{name}, {command}");
        }
        let report = setting.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{name}: {report:?}");
    }
}

#[test]
fn small_files_are_flaky_too() {
    for (name, fault) in
        [("eio", Fault::eio("file", 0..1).times(1)), ("flip", Fault::flip("file", 7..8).times(1))]
    {
        let files = [("file", 100), ("good", 10)];
        let Some(setting) = Setting::new("small_files_are_flaky_too", &files) else { return };
        setting.recorded.record();
        setting.view.faults.lock().expect("lock").direct_io = true;
        setting.view.set([fault]);
        let report = setting.recorded.verify();
        let expected = (3, path_verdicts(&[("file", "flaky")]));
        assert_eq!((report.code, report.path_verdicts()), expected, "{name}: {report:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_listed_hides_its_files_and_loses_none() {
    let files = [("dir/a", 10), ("dir/sub/b", 10), ("dir-x", 10), ("z", 10)];
    let Some(setting) = Setting::new("a_folder_that_cannot_be_listed", &files) else { return };
    setting.recorded.record();
    let rows = setting.rows();
    setting.view.set([Fault::eio("dir", 0..1)]);
    for command in ["verify", "update", "status"] {
        let report = setting.recorded.run(command, &["--all"]);
        let expected = path_verdicts(&[
            ("dir", "unreadable"),
            ("dir-x", "ok"),
            ("dir/a", "unreadable"),
            ("dir/sub", "unreadable"),
            ("dir/sub/b", "unreadable"),
            ("z", "ok"),
        ]);
        assert_eq!(reported_once(&report), expected, "{command}: {report:?}");
        assert_eq!(report.code, 4, "{command}: {report:?}");
        assert_eq!(setting.rows(), rows, "{command} wrote tombstones");
    }
    let report = setting.recorded.run("update", &["--accept-all"]);
    assert_eq!((report.code, setting.rows()), (4, rows.clone()), "nothing to accept");
    setting.view.set([]);
    let report = setting.recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
}

/// With `--all` the folder itself is reported twice: its own entry was well, and
/// only listing it showed otherwise. The last word counts.
fn reported_once(report: &support::Report) -> Vec<(String, String)> {
    let mut last = BTreeMap::new();
    for finding in report.findings() {
        let text = |field: &str| finding[field].as_str().expect("text").to_owned();
        last.insert(text("path"), text("verdict"));
    }
    last.into_iter().collect()
}

#[test]
fn a_new_file_that_cannot_be_read_is_not_recorded() {
    let Some(setting) = Setting::new("a_new_file_that_cannot_be_read", THREE) else { return };
    setting.view.set([Fault::eio("b", 64 * KIB..u64::MAX)]);
    let report = setting.recorded.update();
    let expected = (4, path_verdicts(&[("a", "new"), ("b", "unreadable"), ("c", "new")]));
    assert_eq!((report.code, report.path_verdicts()), expected, "{report:?}");
    let rows = setting.recorded.rows();
    assert_eq!(rows.keys().collect::<Vec<_>>(), [b"a", b"c"], "{rows:#?}");
    setting.view.set([]);
    let report = setting.recorded.update();
    assert_eq!(report.verdict("b").as_deref(), Some("new"), "{report:?}");
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(setting.recorded.row("b")["size"], Value::Integer(MIB as i64));
}

/// A size is what a file claims: on tmpfs, xfs and btrfs up to 8 EiB that are
/// nothing but a hole.
#[test]
fn an_oversized_sparse_file_is_reported_and_costs_the_others_nothing() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted =
        or_skip("an_oversized_sparse_file_is_reported", Mounted::tmpfs(tree.root(), 1 << 10));
    let Some(_mounted) = mounted else { return };
    tree.write("good", "x");
    for name in ["huge 1", "huge 2", "huge 3"] {
        let file = std::fs::File::create(tree.path(name)).expect("create");
        file.set_len(7 << 60).expect("a size");
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    // Its memory is limited, so that this machine does not suffer where it fails.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 8000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fsure")]);
    limited.args(recorded.arguments("update", &["--json"]));
    let run = limited.output().expect("start fsure");
    let stdout = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(code(run.status), 4, "{stdout}{}", String::from_utf8_lossy(&run.stderr));
    for name in ["huge 1", "huge 2", "huge 3"] {
        let line = stdout.lines().find(|line| line.contains(name)).expect("a finding");
        assert!(line.contains("\"unreadable\"") && line.contains("it claims 7168.0 PiB"), "{line}");
    }
    assert_eq!(recorded.rows().into_keys().collect::<Vec<_>>(), [b"good".to_vec()]);
}

/// A file that might be a disk image is read, including all of its zeros, until the user
/// interrupts the run.
#[test]
fn a_large_hole_is_read_until_the_run_is_interrupted() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = or_skip("a_large_hole_is_read", Mounted::tmpfs(tree.root(), 1 << 10));
    let Some(_mounted) = mounted else { return };
    let file = std::fs::File::create(tree.path("image")).expect("create");
    file.set_len(60 << 40).expect("a size");
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(recorded.arguments("update", &[""; 0]));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
    let is_begun = || {
        let count = "SELECT count(*) FROM unfinished";
        let count = |it: rusqlite::Connection| it.query_row(count, [], |row| row.get::<_, i64>(0));
        recorded.catalog.exists() && count(recorded.connect()).is_ok_and(|count| count > 0)
    };
    let is_at_work = || std::fs::read_link(format!("/proc/{}/exe", child.id())).is_ok();
    while !is_begun() && is_at_work() {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupt it");
    let run = child.wait_with_output().expect("wait");
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(code(run.status), 130, "{}{stderr}", String::from_utf8_lossy(&run.stdout));
}

/// Runs fsure as another user; skips the test if that cannot be.
fn as_another_user(test: &str, args: &[&str], root: &Path) -> Option<Run> {
    const OTHER: &str = "65534";
    let output = Command::new("setpriv")
        .args(["--reuid", OTHER, "--regid", OTHER, "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_fsure"))
        .args(args)
        .arg(root)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/nonexistent")
        .output();
    let Ok(output) = output else {
        support::skip(test, "there is no setpriv");
        return None;
    };
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (said(&output.stdout), said(&output.stderr));
    if stderr.starts_with("setpriv: ") {
        support::skip(test, &stderr);
        return None;
    }
    Some(Run { code: code(output.status), stdout, stderr })
}

#[test]
fn a_record_of_another_user_can_be_made_ones_own() {
    const TEST: &str = "a_record_of_another_user_can_be_made_ones_own";
    let tree = Tree::new();
    tree.write("a", "1");
    let others = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.root(), others).expect("set a mode");
    if std::os::unix::fs::chown(tree.path("a"), Some(65534), None).is_err() {
        return support::skip(TEST, "it needs root");
    }
    Recorded::inside(tree.root()).record();
    let own = tree.path(".fsure");
    let command = format!("sudo chown -R \"$(id -un)\" {}", own.display());
    for (name, code) in [("update", 5), ("verify", 0)] {
        let Some(run) = as_another_user(TEST, &[name], tree.root()) else { return };
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.stderr.contains(&command), "{run:?}");
    }
    for path in
        [".fsure", ".fsure/catalog.db", ".fsure/catalog.db.lock", ".fsure/catalog.db.backup"]
    {
        std::os::unix::fs::chown(tree.path(path), Some(65534), None).expect("chown");
    }
    let Some(run) = as_another_user(TEST, &["update"], tree.root()) else { return };
    assert_eq!((run.code, run.stderr.contains("chown")), (0, false), "{run:?}");
}

#[test]
fn a_folder_that_the_user_may_not_enter_is_denied_and_the_rest_is_recorded() {
    const TEST: &str = "a_folder_that_the_user_may_not_enter";
    let tree = Tree::new();
    tree.write("a", "1");
    tree.write("lost+found/b", "2");
    let other = Some(65534);
    let own = |path: &str| std::os::unix::fs::chown(tree.path(path), other, other);
    // As root makes it on every ext4.
    let shut = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(tree.path("lost+found"), shut).expect("set a mode");
    if own("").and_then(|()| own("a")).is_err() {
        return support::skip(TEST, "it needs root");
    }
    for (command, verdicts) in [("update", ["a new"]), ("verify", ["a ok"])] {
        let args = [command, "--all"];
        let Some(run) = as_another_user(TEST, &args, tree.root()) else { return };
        let Run { code, stdout, stderr } = run;
        assert_eq!(code, 4, "{command}: {stdout}{stderr}");
        assert!(!stderr.contains("sidecar"), "{command}: {stderr}");
        let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("denied ") && words.contains("lost+found folder"), "{stdout}");
        for verdict in verdicts {
            let (path, verdict) = verdict.split_once(' ').expect("two words");
            let line = format!("{verdict} {}/{path} ", tree.root().display());
            assert!(words.contains(&line), "{command}: {stdout}");
        }
    }
    assert!(tree.path(".fsure/catalog.db").exists());
}
