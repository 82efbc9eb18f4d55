//! Files that another process writes to while they are read. What was read then is
//! not a content that ever was: the verdict is `busy` and not damage, and nothing of
//! it is recorded. When the writer is done, all is as usual.
#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::{
    FaultyFs, Meanwhile, Moment, Recorded, Tree, content, or_skip, path_verdicts,
};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 9 * MIB;

/// The change that a writer makes at each request to read.
#[derive(Clone, Copy, Debug)]
enum Writer {
    Grows,
    Shrinks,
    IsReplaced,
    Rewrites,
}

impl Writer {
    fn write(self, path: &Path, round: u64) {
        let open = || OpenOptions::new().write(true).open(path).expect("open");
        match self {
            Self::Grows => {
                let file = open();
                let end = file.metadata().expect("stat").len();
                file.write_all_at(&round.to_le_bytes(), end).expect("grow");
            }
            Self::Shrinks => {
                let file = open();
                let end = file.metadata().expect("stat").len();
                file.set_len(end - 1).expect("shrink");
            }
            Self::IsReplaced => {
                let beside = path.with_extension("beside");
                let file = File::create(&beside).expect("create");
                file.set_len(SIZE).expect("size");
                file.write_all_at(&round.to_le_bytes(), 0).expect("write");
                std::fs::rename(beside, path).expect("rename");
            }
            Self::Rewrites => open().write_all_at(&round.to_le_bytes(), 5).expect("write"),
        }
    }
}

/// A tree with a file to be written to and one that is left alone, a view that
/// lets the one be written to while it is read, and a record beside both.
struct Setting {
    tree: Tree,
    view: FaultyFs,
    recorded: Recorded,
    _beside: Tree,
}

impl Setting {
    fn new(test: &str) -> Option<Self> {
        let (tree, beside) = (Tree::new(), Tree::new());
        tree.write("victim", content(SIZE as usize, 1));
        tree.write("good", "x");
        tree.age("victim");
        let view = or_skip(test, FaultyFs::new(tree.root()))?;
        let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
        Some(Self { tree, view, recorded, _beside: beside })
    }

    /// From now on, each of the next so many requests is met by a write.
    fn write_meanwhile(&self, writer: Writer, times: u64) {
        let (victim, mut round) = (self.tree.path("victim"), 0);
        let meanwhile = Meanwhile::new(move |path, moment| {
            let is_read = path == Path::new("victim") && moment == Moment::Read;
            if is_read && round < times {
                round += 1;
                writer.write(&victim, round);
            }
        });
        self.view.faults.lock().expect("lock").meanwhile = meanwhile;
    }
}

#[test]
fn a_file_that_is_written_to_is_busy_and_keeps_its_record() {
    for writer in [Writer::Grows, Writer::Shrinks, Writer::IsReplaced, Writer::Rewrites] {
        let Some(setting) = Setting::new("a_file_that_is_written_to_is_busy") else { return };
        let recorded = &setting.recorded;
        recorded.record();
        let row = recorded.row("victim");
        setting.write_meanwhile(writer, u64::MAX);
        // `--accept-all`: there is nothing to accept.
        for (command, more) in [("verify", ""), ("update", "--full"), ("update", "--accept-all")] {
            // An update reads what has changed since it was recorded.
            let more: Vec<_> = [more].into_iter().filter(|more| !more.is_empty()).collect();
            let report = recorded.run(command, &more);
            let busy = path_verdicts(&[("victim", "busy")]);
            let case = format!("{writer:?}, {command} {more:?}");
            assert_eq!((report.code, report.path_verdicts()), (4, busy), "{case}: {report:?}");
            assert_eq!(recorded.row("victim"), row, "{case}");
        }
        setting.write_meanwhile(writer, 0);
        let report = recorded.update();
        assert_eq!(report.verdict("victim").as_deref(), Some("modified"), "{writer:?}: {report:?}");
        assert_eq!(report.code, 0, "{writer:?}: {report:?}");
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{writer:?}: {report:?}");
    }
}

#[test]
fn a_new_file_that_is_written_to_is_busy_and_not_recorded() {
    let Some(setting) = Setting::new("a_new_file_that_is_written_to") else { return };
    setting.write_meanwhile(Writer::Rewrites, u64::MAX);
    let report = setting.recorded.update();
    let expected = path_verdicts(&[("good", "new"), ("victim", "busy")]);
    assert_eq!((report.code, report.path_verdicts()), (4, expected), "{report:?}");
    assert_eq!(setting.recorded.rows().len(), 1);
    setting.write_meanwhile(Writer::Rewrites, 0);
    let report = setting.recorded.update();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (0, path_verdicts(&[("victim", "new")])),
        "{report:?}"
    );
}

#[test]
fn a_writer_that_ends_in_time_is_waited_for() {
    for writer in [Writer::Grows, Writer::Shrinks, Writer::IsReplaced, Writer::Rewrites] {
        let Some(setting) = Setting::new("a_writer_that_ends_in_time") else { return };
        setting.recorded.record();
        setting.write_meanwhile(writer, 1);
        let report = setting.recorded.run("update", &["--full"]);
        let expected = (0, path_verdicts(&[("victim", "modified")]));
        assert_eq!((report.code, report.path_verdicts()), expected, "{writer:?}: {report:?}");
        let report = setting.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{writer:?}: {report:?}");
    }
}

/// Returns the duration of an update with `count` files, each of which is written to
/// whenever it is read; `None` if the test is skipped.
fn time_with_busy_files(count: usize) -> Option<Duration> {
    let (tree, beside) = (Tree::new(), Tree::new());
    for number in 0..count {
        tree.write(format!("busy {number}"), content(100, number as u64));
    }
    let view = or_skip("busy_files_share_their_waits", FaultyFs::new(tree.root()))?;
    let root = tree.root().to_owned();
    let meanwhile = move |path: &Path, moment| {
        if moment == Moment::Read {
            let file = OpenOptions::new().append(true).open(root.join(path)).expect("open");
            (&file).write_all(b"more").expect("write");
        }
    };
    view.faults.lock().expect("lock").meanwhile = Meanwhile::new(meanwhile);
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    let begun = Instant::now();
    let report = recorded.run("update", &["--threads", "1"]);
    let taken = begun.elapsed();
    assert_eq!((report.code, report.count("busy")), (4, count as u64), "{report:?}");
    Some(taken)
}

/// A file that changed gives its writer time; what else there is to read does
/// not wait for that.
#[test]
fn busy_files_share_their_waits() {
    let Some(one) = time_with_busy_files(1) else { return };
    let Some(many) = time_with_busy_files(64) else { return };
    assert!(many < one * 16, "one busy file: {one:?}, 64 of them: {many:?}");
}

/// Renamed away when it is to be opened, and back when it is looked for: each
/// time is one attempt.
#[test]
fn a_name_that_comes_and_goes_is_not_asked_for_without_end() {
    const ROUNDS_MAX: u32 = 50;
    let Some(setting) = Setting::new("a_name_that_comes_and_goes") else { return };
    let (here, away) = (setting.tree.path("victim"), setting.tree.path("away"));
    let rounds = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&rounds);
    setting.recorded.record();
    let meanwhile = move |path: &Path, moment| {
        if path != Path::new("victim") || seen.load(Ordering::Relaxed) >= ROUNDS_MAX {
            return;
        }
        match moment {
            Moment::Open => {
                seen.fetch_add(1, Ordering::Relaxed);
                std::fs::rename(&here, &away).expect("rename");
            }
            Moment::Name if away.exists() => std::fs::rename(&away, &here).expect("rename back"),
            _ => {}
        }
    };
    setting.view.faults.lock().expect("lock").meanwhile = Meanwhile::new(meanwhile);
    let report = setting.recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (4, path_verdicts(&[("victim", "busy")])),
        "{report:?}"
    );
    assert!(rounds.load(Ordering::Relaxed) < 10, "{rounds:?}: {report:?}");
}

#[test]
fn files_that_come_and_go_during_the_run_end_none() {
    let tree = Tree::new();
    for number in 0..400 {
        tree.write(format!("stay/{number}"), content(2000, number));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let names: Vec<_> = (0..200).map(|n| tree.path(format!("stay/{n}x"))).collect();
            while !stop.load(Ordering::Relaxed) {
                names.iter().for_each(|name| std::fs::write(name, "here").expect("write"));
                names.iter().for_each(|name| std::fs::remove_file(name).expect("remove"));
            }
        });
        for round in 0..12 {
            let command = if round % 2 == 0 { "update" } else { "verify" };
            let report = recorded.run(command, &["--force"]);
            let codes: &[i32] = if command == "update" { &[0, 4] } else { &[0, 1, 4] };
            assert!(codes.contains(&report.code), "{command}, round {round}: {report:?}");
            for (path, verdict) in report.path_verdicts() {
                let may = ["new", "missing", "busy", "modified", "touched"];
                let is_fine = path.ends_with('x') && may.contains(&&*verdict);
                assert!(is_fine, "round {round}: {path} {verdict}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let report = recorded.run("update", &["--force"]);
    assert_eq!(report.code, 0, "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    assert_eq!(report.count("ok"), 400);
}
