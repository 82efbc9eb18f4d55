//! Files that somebody writes to while they are read. What was read is then no
//! content that ever was: the verdict is `busy` and not damage, and nothing of
//! it is recorded. When the writer is done, all is as usual.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{Recorded, Tree, content, told};

const MIB: u64 = 1 << 20;
/// Large enough for a write or two to fall into the reading of it.
const SIZE: u64 = 48 * MIB;

/// What a writer does, over and over.
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

/// Runs `look` while the writer is at work.
fn while_written<T>(writer: Writer, path: &Path, look: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                writer.write(path, round);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        let result = look();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_file_that_is_written_to_is_busy_and_keeps_its_record() {
    for writer in [Writer::Grows, Writer::Shrinks, Writer::IsReplaced, Writer::Rewrites] {
        let tree = Tree::new();
        let victim = tree.write("victim", content(8 * MIB as usize, 1).repeat(6));
        tree.write("good", "x");
        tree.age("victim");
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        let row = recorded.row("victim");
        let no_beside = ["--exclude", "*.beside"];
        for command in ["verify", "update"] {
            let report = while_written(writer, &victim, || recorded.run(command, &no_beside));
            let told: Vec<_> =
                report.told().into_iter().filter(|(_, verdict)| verdict != "ignored").collect();
            let busy = support::told(&[("victim", "busy")]);
            assert_eq!((report.code, told), (4, busy), "{writer:?}, {command}: {report:?}");
            assert_eq!(recorded.row("victim"), row, "{writer:?}, {command}");
        }
        let accept = [&no_beside[..], &["--accept-all"]].concat();
        let report = while_written(writer, &victim, || recorded.run("update", &accept));
        assert_eq!(report.code, 4, "there is nothing to accept: {writer:?}: {report:?}");
        assert_eq!(recorded.row("victim"), row, "{writer:?}");
        let report = recorded.update();
        assert_eq!(report.verdict("victim").as_deref(), Some("modified"), "{writer:?}: {report:?}");
        assert_eq!(report.code, 0, "{writer:?}: {report:?}");
        let report = recorded.verify();
        assert_eq!((report.code, report.told()), (0, vec![]), "{writer:?}: {report:?}");
    }
}

#[test]
fn a_new_file_that_is_written_to_is_busy_and_not_recorded() {
    let tree = Tree::new();
    let victim = tree.write("victim", content(8 * MIB as usize, 1).repeat(6));
    tree.write("good", "x");
    let recorded = Recorded::inside(tree.root());
    let report = while_written(Writer::Rewrites, &victim, || recorded.update());
    let expected = told(&[("good", "new"), ("victim", "busy")]);
    assert_eq!((report.code, report.told()), (4, expected), "{report:?}");
    assert_eq!(recorded.rows().len(), 1);
    let report = recorded.update();
    assert_eq!((report.code, report.told()), (0, told(&[("victim", "new")])), "{report:?}");
}

#[test]
fn a_writer_that_ends_in_time_is_waited_for() {
    let tree = Tree::new();
    let victim = tree.write("victim", content(8 * MIB as usize, 1).repeat(6));
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let report = std::thread::scope(|scope| {
        let update = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            recorded.update()
        });
        for round in 0..100 {
            Writer::Rewrites.write(&victim, round);
            std::thread::sleep(Duration::from_micros(500));
        }
        update.join().expect("update")
    });
    // It is read once more after 100 ms and after 200 ms.
    assert_eq!((report.code, report.told()), (0, told(&[("victim", "modified")])), "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.told()), (0, vec![]), "{report:?}");
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
            for (path, verdict) in report.told() {
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
    assert_eq!((report.code, report.told()), (0, vec![]), "{report:?}");
    assert_eq!(report.count("ok"), 400);
}
