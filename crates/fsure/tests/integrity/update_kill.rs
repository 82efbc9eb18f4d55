//! The plug pulled: `update` killed at random moments, interrupted, terminated.
//! The record opens each time, what it holds is true, nothing that was once
//! recorded is lost, and the next run goes on from there.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{
    FaultyFs, Meanwhile, Moment, Recorded, Run, Tree, campaign, code, content, or_skip,
};
use rustix::process::{Pid, Signal, kill_process};

const MIB: u64 = 1 << 20;
const FILES: u64 = 1500;

/// Kills of an update at random moments.
const KILLS: u32 = 6;

/// Returns small files, a large one with data, and a sparse one that costs seconds of
/// hashing: there is always something to be killed in.
fn tree(sparse_gib: u64) -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..FILES {
        tree.write(format!("small/{:02}/{number:04}", number % 50), content(200, number));
    }
    let chunk = content(8 << 20, 1);
    tree.write("middle", chunk.repeat(10));
    let sparse = std::fs::File::create(tree.path("sparse")).expect("create");
    sparse.set_len(sparse_gib << 30).expect("size");
    let recorded = Recorded::inside(tree.root());
    (tree, recorded)
}

/// Starts an update that tells little: no process reads its pipe before it ends.
fn start(recorded: &Recorded) -> Child {
    start_with(recorded, &[], Stdio::piped())
}

fn start_with(recorded: &Recorded, options: &[&str], stdout: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(recorded.arguments("update", options));
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().expect("start fsure")
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

fn finish(child: Child) -> Run {
    let output = child.wait_with_output().expect("wait for fsure");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Run { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The rows, once the catalog exists.
fn rows(recorded: &Recorded) -> BTreeMap<Vec<u8>, support::Row> {
    if recorded.catalog.exists() { recorded.rows() } else { BTreeMap::new() }
}

/// Rows and kept parts of large files, as they are committed now.
fn saved(recorded: &Recorded) -> (i64, i64) {
    if !recorded.catalog.exists() {
        return (0, 0);
    }
    let connection = recorded.connect();
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).expect("count")
    };
    (count("record"), count("unfinished"))
}

/// Asserts that the record is true: `verify` finds nothing but files that are new.
fn assert_sound(recorded: &Recorded, case: &str) {
    let report = recorded.run("verify", &["--exclude", "sparse"]);
    assert!([0, 1].contains(&report.code), "{case}: {report:?}");
    let strange =
        report.verdicts().into_values().find(|verdict| verdict != "new" && verdict != "ignored");
    assert_eq!(strange, None, "{case}: {report:?}");
}

#[test]
fn a_killed_update_loses_nothing_that_was_recorded() {
    let (_tree, recorded) = tree(4);
    let random = content(campaign(KILLS) as usize * 8, 4711);
    let mut before: BTreeMap<Vec<u8>, support::Row> = BTreeMap::new();
    for (kill, bytes) in random.as_chunks::<8>().0.iter().enumerate() {
        // Most of them early, while the small files come in.
        let most = if kill % 3 == 0 { 3000 } else { 400 };
        let delay = Duration::from_millis(u64::from_le_bytes(*bytes) % most);
        let child = start(&recorded);
        sleep(delay);
        send(&child, Signal::KILL);
        let run = finish(child);
        let case = format!("kill {kill} after {delay:?}");
        assert!([0, 128 + 9].contains(&run.code), "{case}: {} {}", run.code, run.stderr);
        let after = rows(&recorded);
        for (path, row) in &before {
            assert_eq!(after.get(path), Some(row), "{case}: {}", path.escape_ascii());
        }
        if recorded.catalog.exists() && kill % 4 == 0 {
            assert_sound(&recorded, &case);
        }
        // Not `after`: a verification notes its date.
        before = rows(&recorded);
        if run.code == 0 {
            // Finished: from the start again.
            std::fs::remove_dir_all(recorded.root.join(".fsure")).expect("remove the record");
            before.clear();
        }
    }
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, FILES + 2), "{report:?}");
    assert_eq!(saved(&recorded).1, 0, "no parts are left of files that are whole");
}

#[test]
fn what_was_committed_before_the_kill_is_there_after_it() {
    let (_tree, recorded) = tree(20);
    let child = start(&recorded);
    let mut last = (0, 0);
    // The files come first, in about a second; then parts of the sparse one.
    while last.0 == 0 || last.1 < 2 {
        assert!(is_at_work(&child), "it ended, and this is committed: {last:?}");
        sleep(Duration::from_millis(20));
        last = saved(&recorded);
    }
    send(&child, Signal::KILL);
    let run = finish(child);
    assert_eq!(run.code, 128 + 9, "it was still at work: {}", run.stderr);
    let now = saved(&recorded);
    assert!(now.0 >= last.0 && now.1 >= last.1, "{now:?} are left of {last:?}");
    assert_sound(&recorded, "killed");
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    let news = report.findings().filter(|finding| finding["verdict"] == "new").count() as i64;
    let all = FILES as i64 + 2 + 51;
    assert!(news <= all - now.0, "{news} were recorded anew, {} were recorded", now.0);
}

/// A record is under its old name or under its new one, whenever the plug is
/// pulled, and what it says of the content goes with it.
#[test]
fn a_killed_update_of_a_renamed_folder_leaves_each_record_under_one_name() {
    // Enough for a commit before the last of them.
    const MANY: u64 = 40_000;
    let tree = Tree::new();
    for number in 0..MANY {
        tree.write(format!("old/{number:05}"), content(50, number));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let digests = || {
        let files = rows(&recorded).into_iter().filter(|(path, _)| path.contains(&b'/'));
        let named = files.map(|(path, row)| (path[4..].to_vec(), row["blake3"].clone()));
        let mut all: Vec<_> = named.collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    };
    let before = digests();
    std::fs::rename(tree.path("old"), tree.path("new")).expect("rename");
    // Tells of every file, and no process reads it.
    let child = start_with(&recorded, &[], Stdio::null());
    let has_ended = || !Path::new(&format!("/proc/{}/exe", child.id())).exists();
    let count = |name: &str| {
        let sql = format!(
            "SELECT count(*) FROM record WHERE path > CAST('{name}/' AS BLOB) \
                               AND path < CAST('{name}0' AS BLOB)"
        );
        recorded
            .connect()
            .query_row(&sql, [], |row| row.get::<_, i64>(0))
            .expect("count")
            .cast_unsigned()
    };
    while !has_ended() && count("new") == 0 {
        sleep(Duration::from_millis(5));
    }
    send(&child, Signal::KILL);
    finish(child);
    assert_eq!(count("old") + count("new"), MANY);
    if count("old") == 0 || count("new") == 0 {
        let test = "a_killed_update_of_a_renamed_folder";
        support::skip(test, "the kill did not come between two commits");
    }
    assert!(digests() == before, "rows were lost, doubled or changed");
    let report = recorded.update();
    assert_eq!((report.code, report.count("missing") + report.count("new")), (0, 0));
    assert_eq!(report.summary()["bytes_read"], 0, "{}", report.summary());
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, MANY), "{}", report.summary());
}

#[test]
fn a_large_file_is_not_begun_anew() {
    const SIZE: u64 = 20 * 64 * MIB;
    let (tree, beside) = (Tree::new(), Tree::new());
    let file = std::fs::File::create(tree.path("large")).expect("create");
    file.set_len(SIZE).expect("size");
    let Some(view) = or_skip("a_large_file_is_not_begun_anew", FaultyFs::new(tree.root())) else {
        return;
    };
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    sleep(Duration::from_millis(50));
    let (reads, killed) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let is_killed = Arc::clone(&killed);
    // One part takes a fifth of a second at least, a commit comes every second
    // or so, and the update does not get beyond the middle before the plug is pulled.
    let meanwhile = Meanwhile::new(move |_, moment| {
        let read = reads.fetch_add((moment == Moment::Read).into(), Ordering::Relaxed);
        sleep(Duration::from_millis(if moment == Moment::Read { 3 } else { 0 }));
        while read > 640 && !is_killed.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(1));
        }
    });
    let faults = || view.faults.lock().expect("lock");
    (faults().direct_io, faults().meanwhile) = (true, meanwhile);
    let child = start_with(&recorded, &["--threads", "1"], Stdio::piped());
    while saved(&recorded).1 == 0 && is_at_work(&child) {
        sleep(Duration::from_millis(5));
    }
    send(&child, Signal::KILL);
    killed.store(true, Ordering::Relaxed);
    let run = finish(child);
    assert_eq!(run.code, 128 + 9, "it was still at work: {}", run.stderr);
    let kept = saved(&recorded).1.cast_unsigned();
    faults().meanwhile = Meanwhile::default();
    assert!((1..20).contains(&kept), "{kept} parts of 64 MiB were kept");
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    let read = report.summary()["bytes_read"].as_u64().expect("a number");
    assert_eq!(read, SIZE - kept * 64 * MIB, "kept parts are not read again: {report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, 1), "{report:?}");
}

#[test]
fn a_large_file_survives_kills_at_any_request() {
    const SIZE: u64 = 12 * 64 * MIB + 12_345;
    let test = "a_large_file_survives_kills";
    let (tree, beside) = (Tree::new(), Tree::new());
    let file = std::fs::File::create(tree.path("large")).expect("create");
    file.set_len(SIZE).expect("size");
    for place in (0..SIZE).step_by(MIB as usize) {
        file.write_all_at(&place.to_le_bytes(), place).expect("write");
    }
    let read = std::fs::File::open(tree.path("large")).expect("open");
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut { read }, &mut hasher).expect("read");
    let sum = hasher.finalize().as_bytes().to_vec();
    let Some(view) = or_skip(test, FaultyFs::new(tree.root())) else { return };
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    sleep(Duration::from_millis(50));
    view.faults.lock().expect("lock").direct_io = true;
    let (mut kept, mut kills) = (0, 0);
    for bytes in content(6 * 8, 815).as_chunks::<8>().0 {
        // Slowly, so that parts are committed; the later the kill, the more.
        let mut left = 300 + u64::from_le_bytes(*bytes) % 500;
        let (reached, is_reached) = std::sync::mpsc::channel();
        let meanwhile = Meanwhile::new(move |_, moment| {
            sleep(Duration::from_millis(if moment == Moment::Read { 3 } else { 0 }));
            left = left.saturating_sub(u64::from(moment == Moment::Read));
            let _ = (left == 0).then(|| reached.send(()));
        });
        view.faults.lock().expect("lock").meanwhile = meanwhile;
        let child = start(&recorded);
        // It may also have less to read than that, and end.
        while is_reached.recv_timeout(Duration::from_millis(20)).is_err() && is_at_work(&child) {}
        send(&child, Signal::KILL);
        let run = finish(child);
        assert!([0, 128 + 9].contains(&run.code), "{}: {}", run.code, run.stderr);
        if run.code == 0 {
            break;
        }
        kills += 1;
        let now = saved(&recorded).1;
        assert!(now >= kept, "{now} parts are left of {kept} after {kills} kills");
        kept = now;
    }
    assert!(kills > 0 && kept > 0, "{kills} kills, {kept} parts kept");
    view.faults.lock().expect("lock").meanwhile = Meanwhile::default();
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(support::bytes(&recorded.row("large")["blake3"]), sum, "{kills} kills");
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, 1), "{report:?}");
}

/// Returns true if a child has not ended. One that has ended and is not waited for is a
/// zombie: it has no files.
fn is_at_work(child: &Child) -> bool {
    std::fs::read_link(format!("/proc/{}/exe", child.id())).is_ok()
}

#[test]
fn a_signal_ends_the_update_with_its_code_and_the_state_saved() {
    let (_tree, recorded) = tree(20);
    for (signals, expected) in [
        (&[Signal::INT][..], 130),
        (&[Signal::TERM], 143),
        (&[Signal::INT, Signal::INT], 130),
        (&[Signal::TERM, Signal::INT], 130),
    ] {
        recorded.forget();
        let child = start(&recorded);
        while saved(&recorded).0 == 0 && is_at_work(&child) {
            sleep(Duration::from_millis(5));
        }
        for signal in signals {
            send(&child, *signal);
        }
        let run = finish(child);
        let case = format!("{signals:?}: {}", run.stderr);
        let codes = [expected, 143];
        let is_expected = run.code == expected || signals.len() > 1 && codes.contains(&run.code);
        assert!(is_expected, "{} after {case}", run.code);
        if signals.len() == 1 {
            assert!(saved(&recorded).0 > 0, "the state is saved: {case}");
            assert!(run.stdout.contains("INTERRUPTED"), "it is said: {case}{}", run.stdout);
        }
        assert_sound(&recorded, &case);
    }
}

#[test]
fn a_signal_ends_the_wait_for_another_process() {
    let (_tree, recorded) = tree(1);
    recorded.record();
    let lock = recorded.catalog.with_extension("db.lock");
    let lock = std::fs::File::open(lock).expect("open the lock");
    lock.lock().expect("lock");
    let mut child = start(&recorded);
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let is_waiting = stderr.lines().map_while(Result::ok).any(|line| line.contains("waiting"));
    assert!(is_waiting, "it says that it waits");
    send(&child, Signal::INT);
    let run = finish(child);
    assert_eq!(run.code, 130, "{}", run.stdout);
}
