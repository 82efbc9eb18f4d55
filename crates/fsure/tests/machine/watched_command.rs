//! `fsure flush trace` and `fsure hot -- COMMAND`: a command that is watched with all that it
//! starts. Each kind of flush is tested in `fsure-os`.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Run, code, fsure, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A folder whose path has no link in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("make a folder");
    let path = folder.path().canonicalize().expect("resolve it");
    (folder, path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Runs fsure with these arguments and a script behind them; `None`, loudly, if a command
/// cannot be watched here.
fn watched(test: &str, args: &[&str], script: &str, folder: &Path) -> Option<Run> {
    let run = fsure(&[args, &["--", "sh", "-c", script, text(folder)]].concat());
    let is_refused = run.code == 2 && run.stderr.contains("watched by eBPF");
    if is_refused {
        skip(test, &run.stderr);
    }
    (!is_refused).then_some(run)
}

/// The lines of fsure in what it and its command have printed.
fn lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn line<'a>(lines: &'a [Value], field: &str, value: &str) -> &'a Value {
    let line = lines.iter().find(|line| line[field] == value);
    line.unwrap_or_else(|| panic!("no {field} {value} in {lines:#?}"))
}

const FLUSHES: &str = "cd $0; echo a > a; sync a; sync -d a; sync -d a; \
    dd if=/dev/zero of=d bs=512 count=7 oflag=dsync status=none; \
    setsid setpriv --reuid=65534 --regid=65534 --clear-groups sync a; printf out; exit 3";

#[test]
fn flushes_are_told_by_kind_and_file_with_the_code_of_the_command() {
    let _alone = crate::support::serial::alone();
    let test = "flushes_are_told_by_kind_and_file";
    let (_folder, path) = folder();
    // For the other user.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("let others in");
    let saved = path.join("saved");
    let args = ["flush", "trace", "--json", "--save", text(&saved)];
    let Some(run) = watched(test, &args, FLUSHES, &path) else { return };
    assert_eq!((run.code, &*run.stderr), (3, ""));
    // The command had not ended its line.
    assert!(run.stdout.contains("out\n{"), "{}", run.stdout);
    let lines = lines(&run.stdout);
    assert_eq!((&lines[0]["type"], &lines[0]["command"]), (&"start".into(), &"flush trace".into()));
    for (kind, count, is_deferrable) in
        [("fsync", 2, true), ("fdatasync", 2, true), ("O_DSYNC write", 7, false)]
    {
        let of_kind = line(&lines, "kind", kind);
        assert_eq!(of_kind["count"], count, "{of_kind}");
        assert_eq!(of_kind["is_deferrable"], is_deferrable);
        let [half, most, longest] = ["p50_us", "p99_us", "max_us"].map(|name| &of_kind[name]);
        let order = [half, most, longest].map(|us| us.as_f64().expect("a number"));
        assert!(0.0 < order[0] && order.is_sorted(), "{of_kind}");
    }
    let file = line(&lines, "path", text(&path.join("d")));
    assert_eq!((&file["count"], &file["kind"]), (&7.into(), &"O_DSYNC write".into()));
    let summary = lines.last().expect("a line");
    assert_eq!((&summary["count"], &summary["exit_code"]), (&11.into(), &3.into()));
    let ms = |name: &str| summary[name].as_f64().expect("a number");
    assert!(ms("deferrable_ms") < ms("waited_ms"), "writes are not deferred: {summary}");
    assert!(ms("waited_ms") <= ms("total_ms") && ms("waited_ms") <= ms("seconds") * 1e3);
    let saved = std::fs::read_to_string(&saved).expect("it is saved");
    let own: Vec<_> = saved.lines().skip(1).collect();
    assert!(run.stdout.ends_with(&(own.join("\n") + "\n")), "{saved}");
    assert!(saved.starts_with("{\"type\":\"start\""), "{saved}");
}

#[test]
fn the_report_is_beside_the_output_of_the_command() {
    let _alone = crate::support::serial::alone();
    let test = "the_report_is_beside_the_output_of_the_command";
    let (_folder, path) = folder();
    let script = "cd $0; echo a > a; sync a; rm a; echo b > b; sync b; echo out; kill -9 $$";
    let Some(run) = watched(test, &["flush", "trace"], script, &path) else { return };
    assert_eq!((run.code, &*run.stdout), (137, "out\n"), "{}", run.stderr);
    let gone = format!("fsync {} (since removed or renamed)", path.join("a").display());
    let there = format!("fsync {}\n", path.join("b").display());
    for words in [" was in 2 flushes.", &gone, &there, "'fsure defer' would save", "Not seen: "] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let quiet = watched(test, &["--quiet", "flush", "trace"], script, &path);
    assert_eq!(quiet.map(|run| (run.code, run.stderr)), Some((137, String::new())));
    let Some(run) = watched(test, &["flush", "trace"], "true", &path) else { return };
    assert!(run.stderr.contains("flushed nothing"), "{}", run.stderr);
    assert_eq!(run.code, 0);
}

#[test]
fn hot_counts_the_command_and_no_other_program() {
    let _alone = crate::support::serial::alone();
    let test = "hot_counts_the_command_and_no_other_program";
    let (_folder, path) = folder();
    let script = "cd $0; echo 12345 > a; (echo 12345 > b) & wait; sync a; exit 9";
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| watched(test, &["hot", "--json", text(&path)], script, &path));
        while !run.is_finished() {
            std::fs::write(path.join("other"), "of another process").expect("write");
        }
        run.join().expect("a run")
    });
    let Some(run) = run else { return };
    assert_eq!(run.code, 9, "{}", run.stderr);
    let lines = lines(&run.stdout);
    let seen = line(&lines, "path", text(&path));
    let figures = ["bytes_written", "writes", "fsyncs"].map(|name| seen[name].as_u64());
    assert_eq!(figures, [Some(12), Some(2), Some(1)], "{seen}");
    let summary = lines.last().expect("a line");
    assert_eq!((&summary["is_of_command"], &summary["exit_code"]), (&true.into(), &9.into()));
    let Some(run) = watched(test, &["hot"], script, &path) else { return };
    assert!(run.stdout.is_empty() && run.stderr.contains("Watched one command for"), "{run:?}");
}

#[test]
fn hot_counts_the_files_that_a_command_makes_and_removes() {
    let _alone = crate::support::serial::alone();
    let test = "hot_counts_the_files_that_a_command_makes_and_removes";
    let (_folder, path) = folder();
    // Of truncate, two: it can make the file. What fails, and what only looks, is none.
    let script = "cd $0; mkdir d; echo a > d/a; echo b >> d/a; ln d/a d/b; ln -s a d/c; \
                  mv d/b d/e; truncate -s 9 d/a; cat d/a d/c; rmdir d 2>/dev/null; \
                  rm d/a d/c d/e; rmdir d";
    let counted = ["hot", "advise", "--json", text(&path)];
    let Some(run) = watched(test, &counted, script, &path) else { return };
    assert_eq!(run.code, 0, "{}", run.stderr);
    let from = run.stdout.find('{').expect("lines behind the output");
    let lines = lines(&run.stdout[from..]);
    let summary = lines.last().expect("a line");
    // The /dev/null of rmdir is opened to be truncated, too.
    assert_eq!(summary["metadata_changes"], 13, "{summary}");
    let ms = |name: &str| summary[name].as_f64().expect("a number");
    let share = ms("metadata_ms") / 1e3 / ms("seconds");
    assert!(share > 0.0, "{summary}");
    let advice: Vec<_> = lines.iter().filter(|line| line["type"] == "advice").collect();
    let is_to_try = advice.iter().any(|line| line["advice"] == "try");
    assert!(!is_to_try || share >= 0.1, "{share}: {advice:?}");
    let Some(run) = watched(test, &["hot"], script, &path) else { return };
    let words = " Making, truncating, renaming and removing files took it ";
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

/// Both watch one and the same run.
#[test]
fn hot_counts_what_strace_counts() {
    let _alone = crate::support::serial::alone();
    let test = "hot_counts_what_strace_counts";
    let (_folder, path) = folder();
    let (table, work) = (path.join("strace"), path.join("work"));
    std::fs::create_dir(&work).expect("make a folder");
    let script = "dd if=/dev/zero of=$0/a bs=512 count=700 conv=fsync status=none; \
                  (dd if=$0/a of=$0/b bs=1k oflag=dsync status=none; sync -d $0/b) & wait";
    let strace = ["strace", "-f", "-c", "-o", text(&table), "-e", "trace=write,fsync,fdatasync"];
    let hot = ["hot", "--log", "--json-fd", "3", text(&work), "--"];
    let lines_at = path.join("lines");
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3> $0; exec \"$@\"", text(&lines_at), env!("CARGO_BIN_EXE_fsure")]);
    command.args(hot).args(strace).args(["sh", "-c", script, text(&work)]);
    let output = command.output().expect("start it");
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return skip(test, &words);
    }
    let table = std::fs::read_to_string(&table).expect("strace has a table");
    let counted = |call: &str| -> u64 {
        let row = table.lines().find(|line| line.split_whitespace().last() == Some(call));
        let count = row.and_then(|row| row.split_whitespace().nth(3)?.parse().ok());
        count.unwrap_or_else(|| panic!("no {call} in {table}"))
    };
    let text_of_lines = std::fs::read_to_string(&lines_at).expect("lines");
    assert!(!text_of_lines.contains("\n\n"), "no empty line: {text_of_lines}");
    let lines = lines(&text_of_lines);
    let seen = line(&lines, "path", text(&work));
    assert_eq!(seen["writes"], counted("write"), "{seen} {table}");
    assert_eq!(seen["fsyncs"], counted("fsync") + counted("fdatasync"), "{seen} {table}");
    let logged = |call: &str| lines.iter().filter(|line| line["call"] == call).count() as u64;
    for call in ["write", "fsync", "fdatasync"] {
        assert_eq!(logged(call), counted(call), "{call}: {table}");
    }
}

/// A process that is in a session of its own and runs as another user is one of the command, and
/// so is one that is left behind.
#[test]
fn hot_follows_what_the_command_starts_however_it_is_started() {
    let _alone = crate::support::serial::alone();
    let test = "hot_follows_what_the_command_starts_however_it_is_started";
    let (_folder, path) = folder();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&path, mode).expect("let others in");
    let script = "cd $0; setsid setpriv --reuid=65534 --regid=65534 --clear-groups \
                  sh -c 'echo 12345 > other; sync other'; mkfifo fifo; \
                  (setsid sh -c 'echo 1 > left; : > done; read line < fifo' < /dev/null \
                  > /dev/null 2>&1 &); while [ ! -e done ]; do sleep 0.01; done";
    let args = ["hot", "--log", text(&path)];
    let Some(run) = watched(test, &args, script, &path) else { return };
    // Let the one that was left behind end.
    std::fs::write(path.join("fifo"), "end\n").expect("write");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for name in ["other", "left"] {
        assert!(run.stderr.contains(text(&path.join(name))), "{name}: {}", run.stderr);
    }
    assert!(run.stderr.contains("1 process of it still ran at its end"), "{}", run.stderr);
    assert!(run.stderr.contains("Logged: 3 calls."), "{}", run.stderr);
}

#[test]
fn a_signal_is_the_commands_and_the_report_comes() {
    let _alone = crate::support::serial::alone();
    let test = "a_signal_is_the_commands_and_the_report_comes";
    let (_folder, path) = folder();
    let script = "cd $0; trap 'sync a; exit 5' TERM; touch a; while :; do sleep 0.01; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["flush", "trace", "--", "sh", "-c", script, text(&path)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start fsure");
    while !path.join("a").exists() {
        if child.try_wait().expect("ask for it").is_some() {
            let output = child.wait_with_output().expect("wait for fsure");
            return skip(test, &String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("send a signal");
    let output = child.wait_with_output().expect("wait for fsure");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(output.status), 5, "{words}");
    assert!(words.contains(" was in 1 flush."), "{words}");
}

#[test]
fn without_rights_nothing_is_run() {
    let _alone = crate::support::serial::alone();
    let (_folder, path) = folder();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&path, mode).expect("let others in");
    let program = path.join("fsure");
    std::fs::copy(env!("CARGO_BIN_EXE_fsure"), &program).expect("copy it");
    for args in [&["flush", "trace"][..], &["hot"]] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        let saved = path.join("saved");
        command.args(args).args(["--save", text(&saved), "--", "touch", "made"]);
        let output = command.current_dir(&path).output().expect("run it");
        let words = String::from_utf8_lossy(&output.stderr);
        if words.contains("setpriv:") {
            return skip("without_rights_nothing_is_run", &words);
        }
        assert_eq!(code(output.status), 2, "{words}");
        assert!(words.contains("put 'sudo -E' in front of fsure"), "{words}");
        assert!(words.contains("--reuid=65534 --regid=65534"), "{words}");
        assert!(!path.join("made").exists() && !saved.exists());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let _alone = crate::support::serial::alone();
    for args in [
        &["flush", "trace"][..],
        &["hot", "--for", "5s", "--", "true"],
        &["hot", "--source", "fanotify", "--", "true"],
        &["flush", "trace", "--", "/no/such/program"],
        &["hot", "--", "/no/such/program"],
    ] {
        let run = fsure(args);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
    }
}
