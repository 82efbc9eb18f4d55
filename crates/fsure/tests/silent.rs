//! Storage that does not answer: a server that is gone, a disk that hangs.
//! The rest of the tree is judged, the file is `unreadable` and never `ok`,
//! and neither the run nor Ctrl-C waits for it for ever.
#![cfg(target_os = "linux")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{FaultyFs, Report, Run, Tree, content, fsure_json, or_skip};

const MIB: usize = 1 << 20;

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
    /// What a command says while these do not answer. They answer again when
    /// it has said all: a process that waits in the kernel cannot end before.
    fn run(&self, silent: &[&str], args: &[&str], interrupt: bool) -> Report {
        self.view.silence(silent);
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(args)
            .args([self.view.root(), "--catalog".as_ref(), &self.catalog, "--json".as_ref()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("start fsure");
        if interrupt {
            // Long enough to get stuck; if not, the test is easier, not wrong.
            std::thread::sleep(Duration::from_millis(700));
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupt");
        }
        let mut stdout = String::new();
        for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
            let line = line.expect("read what it says");
            stdout += &(line.clone() + "\n");
            if line.contains(r#""type":"summary""#) {
                self.view.silence(&[]);
            }
        }
        let code = support::code(child.wait().expect("wait for fsure"));
        Report::new(Run { code, stdout, stderr: String::new() })
    }

    fn verify(&self, silent: &[&str]) -> Report {
        self.run(silent, &["verify", "--timeout", "3s"], false)
    }
}

#[test]
fn what_does_not_answer_is_unreadable_and_the_rest_is_judged() {
    let Some(setting) = setting("what_does_not_answer_is_unreadable") else { return };
    for silent in [&["small/042"][..], &["large"], &["small/007", "small/042", "large", "other"]] {
        let report = setting.verify(silent);
        assert_eq!(report.code, 4, "{report:?}");
        let mut expected: Vec<_> =
            silent.iter().map(|path| ((*path).to_owned(), "unreadable".to_owned())).collect();
        expected.sort();
        assert_eq!(report.told(), expected, "{report:?}");
        assert_eq!(report.count("ok"), 102 - silent.len() as u64);
        let reason = report.finding(silent[0]).expect("a finding")["reason"].to_string();
        assert!(reason.contains("did not answer for 3 s"), "{reason}");
    }
    assert_eq!(setting.verify(&[]).code, 0);
}

#[test]
fn a_folder_that_does_not_answer_hides_nothing() {
    let Some(setting) = setting("a_folder_that_does_not_answer_hides_nothing") else { return };
    let report = setting.verify(&["small"]);
    assert_eq!(report.code, 4, "{report:?}");
    assert_eq!(report.count("missing"), 0, "{report:?}");
    assert_eq!(report.count("ok"), 2, "{report:?}");
    assert_eq!(report.verdict("small").as_deref(), Some("unreadable"), "{report:?}");
}

#[test]
fn storage_that_never_answers_is_given_up() {
    let Some(setting) = setting("storage_that_never_answers_is_given_up") else { return };
    let all: Vec<_> = (0..100).map(|number| format!("small/{number:03}")).collect();
    let report = setting.verify(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(report.code, 4, "{report:?}");
    assert_eq!(report.summary()["stopped"]["why"], "storage-silent", "{report:?}");
}

#[test]
fn an_interrupt_waits_for_no_answer() {
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
