//! Storage that does not answer: a server that is gone, a disk that hangs.
//! The rest of the tree is judged, the file is `unreadable` and never `ok`,
//! and neither the run nor Ctrl-C waits for it for ever.
#![cfg(target_os = "linux")]

use crate::support;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{FaultyFs, Report, Run, Tree, content, fsure_json, or_skip};

const MIB: usize = 1 << 20;

/// Files in the tree: small ones, a large one, and one with many names.
const FILES: u64 = 100 + 1 + 41;

struct Setting {
    view: FaultyFs,
    catalog: PathBuf,
    _beside: Tree,
    _tree: Tree,
}

/// A recorded view of a tree with small and large files.
fn setting(test: &str) -> Option<Setting> {
    let tree = Tree::new();
    for number in 0..100 {
        tree.write(format!("small/{number:03}"), content(10_000, number));
    }
    tree.write("large", content(130 * MIB, 1));
    tree.write("other", content(3 * MIB, 2));
    for number in 0..40 {
        std::fs::hard_link(tree.path("other"), tree.path(format!("other-{number:02}")))
            .expect("another name");
    }
    std::os::unix::fs::symlink("nowhere", tree.path("link")).expect("make a link");
    let view = or_skip(test, FaultyFs::new(tree.root()))?;
    let beside = Tree::new();
    let catalog = beside.path("c.db");
    let recorded = fsure_json(&args("update", view.root(), &catalog));
    assert_eq!(recorded.code, 0, "{recorded:?}");
    Some(Setting { view, catalog, _beside: beside, _tree: tree })
}

fn args(command: &str, root: &Path, catalog: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    vec![command.to_owned(), text(root), "--catalog".to_owned(), text(catalog)]
}

impl Setting {
    /// Runs a command while the files in `silent` do not respond, and returns its report.
    /// They respond again after its last output: a process that waits in the kernel cannot
    /// end before.
    fn run(&self, silent: &[&str], args: &[&str], interrupt: bool) -> Report {
        self.view.silence(silent);
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(args)
            .args([self.view.root(), "--catalog".as_ref(), &self.catalog, "--json".as_ref()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start fsure");
        if interrupt {
            // When it has got stuck.
            while !self.view.is_waited_for() && child.try_wait().expect("ask").is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupt");
        }
        let (stdout, stderr) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let (stdout, stderr) = std::thread::scope(|scope| {
            let stderr = scope.spawn(|| self.read_until(stderr, "ended without a report"));
            (self.read_until(stdout, r#""type":"summary""#), stderr.join().expect("all it says"))
        });
        let code = support::code(child.wait().expect("wait for fsure"));
        Report::new(Run { code, stdout, stderr })
    }

    /// All that it says there; everything answers again when it has said its last.
    fn read_until(&self, from: impl Read, last: &str) -> String {
        let mut all = String::new();
        for line in BufReader::new(from).lines() {
            let line = line.expect("read what it says");
            if line.contains(last) {
                self.view.silence(&[]);
            }
            all += &(line + "\n");
        }
        all
    }

    fn verify(&self, silent: &[&str]) -> Report {
        self.run(silent, &["verify", "--timeout", "3s"], false)
    }
}

#[test]
fn what_does_not_answer_is_unreadable_and_the_rest_is_judged() {
    let _shared = crate::support::serial::shared();
    let all = [&["small/042"][..], &["large"], &["large", "small/007", "small/042"]];
    std::thread::scope(|scope| {
        for silent in all {
            scope.spawn(move || assert_only_these_are_unreadable(silent));
        }
    });
}

fn assert_only_these_are_unreadable(silent: &[&str]) {
    let Some(setting) = setting("what_does_not_answer_is_unreadable") else { return };
    let report = setting.verify(silent);
    assert_eq!(report.code, 4, "{report:?}");
    let mut expected: Vec<_> =
        silent.iter().map(|path| ((*path).to_owned(), "unreadable".to_owned())).collect();
    expected.sort();
    assert_eq!(report.path_verdicts(), expected, "{report:?}");
    assert_eq!(report.count("ok"), FILES - silent.len() as u64);
    let reason = report.finding(silent[0]).expect("a finding")["reason"].to_string();
    assert!(reason.contains("did not answer for 3 s"), "{reason}");
    assert_eq!(setting.verify(&[]).code, 0);
}

#[test]
fn a_folder_that_does_not_answer_hides_nothing() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("a_folder_that_does_not_answer_hides_nothing") else { return };
    let report = setting.verify(&["small"]);
    assert_eq!(report.code, 4, "{report:?}");
    assert_eq!(report.count("missing"), 0, "{report:?}");
    assert_eq!(report.count("ok"), FILES - 100, "{report:?}");
    assert_eq!(report.verdict("small").as_deref(), Some("unreadable"), "{report:?}");
}

#[test]
fn storage_that_never_answers_is_given_up() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("storage_that_never_answers_is_given_up") else { return };
    let all: Vec<_> = (0..100).map(|number| format!("small/{number:03}")).collect();
    let report = setting.verify(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(report.code, 4, "{report:?}");
    assert_eq!(report.summary()["stopped"]["why"], "storage-silent", "{report:?}");
}

#[test]
fn an_interrupt_waits_for_no_answer() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("an_interrupt_waits_for_no_answer") else { return };
    for (silent, command) in
        [("large", "verify"), ("small/042", "verify"), ("small", "verify"), ("small", "status")]
    {
        // Two minutes is what the storage would be given.
        let report = setting.run(&[silent], &[command], true);
        assert_eq!(report.code, 130, "{silent}: {report:?}");
        let seconds = report.summary()["seconds"].as_f64().expect("a number");
        assert!(seconds < 60.0, "{silent}: it waited {seconds} s");
    }
}

#[test]
fn one_inode_that_does_not_answer_is_asked_for_once() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("one_inode_that_does_not_answer") else { return };
    let names: Vec<_> = (0..40).map(|number| format!("other-{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).chain(["other"]).collect();
    let report = setting.verify(&names);
    assert_eq!((report.code, report.count("unreadable")), (4, 41), "{report:?}");
    assert_eq!(report.count("ok"), FILES - 41, "{report:?}");
    assert!(report.summary()["stopped"].is_null(), "{report:?}");
}

#[test]
fn an_abandoned_reader_keeps_no_thread_waiting() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("an_abandoned_reader_keeps_no_thread_waiting") else { return };
    let args = ["verify", "--timeout", "3s", "--threads", "1", "--depth", "1"];
    let report = std::thread::scope(|scope| {
        // The reader that was given up gets its answer, and what it has in
        // hand next does not answer at all.
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(6));
            setting.view.silence(&["small/002"]);
        });
        setting.run(&["small/001", "small/002"], &args, false)
    });
    // An error at last, and then the right content: that is flaky.
    assert!([3, 4].contains(&report.code), "{report:?}");
    assert!(report.count("ok") >= FILES - 2, "{report:?}");
    assert_eq!(report.verdict("small/002").as_deref(), Some("unreadable"), "{report:?}");
}

#[test]
fn what_is_asked_for_between_reads_does_not_keep_ctrl_c_waiting() {
    let _shared = crate::support::serial::shared();
    let Some(setting) = setting("what_is_asked_for_between_reads") else { return };
    let report = setting.run(&["link"], &["verify"], true);
    assert_eq!(report.code, 130, "{report:?}");
    assert!(report.stderr.contains("ended without a report"), "{report:?}");
}

#[test]
fn few_open_files_are_enough() {
    let _shared = crate::support::serial::shared();
    let tree = Tree::new();
    for number in 0..3000 {
        tree.write(format!("{number}"), content(100, number));
    }
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let (fsure, root) = (env!("CARGO_BIN_EXE_fsure"), text(tree.root()));
    let shell = format!("ulimit -n 256 && '{fsure}' update --threads 64 --quiet '{root}'");
    let output = Command::new("sh").args(["-c", &shell]).output().expect("start a shell");
    assert!(output.status.success(), "{output:?}");
}
