//! `defer` as its users meet it, on whatever file system the tests are built on:
//! what is refused and with which words, whose exit code is whose, and which
//! programs are deferred for.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::committer::committer;
use crate::support::noise::undisturbed;
use crate::support::{BTRFS, EXT4, Format, Image, Run, XFS, code, fsure, or_skip, skip};
use serde_json::Value;
use tempfile::TempDir;

/// A folder on the file system of the build, which is none in memory.
fn folder(test: &str) -> Option<TempDir> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = defer(folder.path(), &["--force-unordered", "--", "true"]);
    if run.code == 0 {
        return Some(folder);
    }
    skip(test, &run.stderr);
    None
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["--json", "defer", "--max-loss", "1s"]).args(args).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns true if this process was started so that it ignores SIGHUP or SIGINT.
fn ignores_signals() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 0b11 != 0
}

fn defer(folder: &Path, args: &[&str]) -> Run {
    let output = command(folder, args).output().unwrap();
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn forced(folder: &Path, args: &[&str]) -> Run {
    defer(folder, &[&["--force-unordered", "--"], args].concat())
}

/// Calls for this file system: deferred, or real because the disk is busy.
fn met(summary: &Value) -> u64 {
    summary["deferred"].as_u64().unwrap() + summary["waited"].as_u64().unwrap()
}

fn summary(run: &Run) -> Value {
    let line = run.stdout.lines().last().unwrap_or_else(|| panic!("{}", run.stderr));
    serde_json::from_str(line).unwrap()
}

#[test]
fn what_keeps_no_order_is_refused_with_the_remedy() {
    undisturbed("what keeps no order is refused with the remedy", || {
        for (format, remedy) in [
            (&EXT4, "mount -o data=journal /dev/loop"),
            (&BTRFS, "mount -o remount,flushoncommit,notreelog /"),
            (&XFS, "use ext4 with data=journal"),
        ] {
            let Some(image) = or_skip(format.name, Image::new(format, 0)) else { continue };
            let run = defer(image.root(), &["--", "touch", "ran"]);
            assert_eq!((run.code, image.root().join("ran").exists()), (2, false), "{run:?}");
            assert!(run.stderr.contains(remedy), "{run:?}");
            assert!(run.stderr.contains("--force-unordered"), "{run:?}");
            let run = forced(image.root(), &["touch", "ran"]);
            assert_eq!((run.code, image.root().join("ran").exists()), (0, true), "{run:?}");
            assert!(run.stderr.contains("CORRUPTION RISK: "), "{run:?}");
        }
    });
}

/// Mounted as the remedies say, and once by a default of the file system alone.
#[test]
fn what_keeps_the_order_is_accepted() {
    undisturbed("what keeps the order is accepted", || {
        const JOURNAL: Format = Format { options: "data=journal", ..EXT4 };
        const ORDERED: Format = Format { options: "flushoncommit,notreelog", ..BTRFS };
        for format in [&JOURNAL, &ORDERED] {
            let Some(mut image) = or_skip(format.name, Image::new(format, 0)) else { continue };
            let run = defer(image.root(), &["--", "sync", "-d", "."]);
            assert_eq!((run.code, met(&summary(&run))), (0, 1), "{run:?}");
            let accepted = || defer(image.root(), &["--", "true"]).code;
            assert_eq!(accepted(), 0);
            let _ = &mut image;
        }
        let Some(mut image) = or_skip("ext4 by its own default", Image::new(&EXT4, 0)) else {
            return;
        };
        let file = image.root().with_file_name("ext4");
        image.unmounted(|_| {
            let tuned = Command::new("tune2fs").args(["-o", "journal_data"]).arg(&file).output();
            assert!(tuned.unwrap().status.success());
        });
        assert_eq!(defer(image.root(), &["--", "true"]).code, 0);
    });
}

#[test]
fn memory_is_refused_even_if_it_is_forced() {
    if !fsure_os::defer::mount_of(Path::new("/dev/shm")).is_ok_and(|it| it.kind == "tmpfs") {
        return skip("memory is refused", "no tmpfs");
    }
    let run = forced(Path::new("/dev/shm"), &["true"]);
    assert!(run.code == 2 && run.stderr.contains("nothing there survives a power cut"), "{run:?}");
}

#[test]
fn the_exit_code_is_the_commands() {
    let Some(folder) = folder("exit codes") else { return };
    let shell = |script: &str| forced(folder.path(), &["sh", "-c", script]);
    assert_eq!(shell("exit 7").code, 7);
    let run = shell("kill -SEGV $$");
    assert_eq!((run.code, &summary(&run)["command_signal"]), (139, &11.into()), "{run:?}");
    let run = forced(folder.path(), &["no-such-program"]);
    assert!(run.code == 2 && run.stderr.contains("no-such-program"), "{run:?}");
    let run = shell("echo out; echo err >&2; cat; exit 3");
    assert!(run.stdout.contains("}\nout\n") && run.stderr.contains("err\n"), "{run:?}");
    let run = shell("printf abc");
    assert!(run.stdout.contains("}\nabc\n{") && run.code == 0, "{run:?}");
    for wrong in ["1", "5ms", "2h", "-1s"] {
        let run = fsure(&["defer", "--max-loss", wrong, "--", "true"]);
        assert_eq!(run.code, 2, "{wrong}: {run:?}");
    }
}

#[test]
fn a_signal_is_passed_on_and_waited_for() {
    let Some(folder) = folder("signals") else { return };
    if ignores_signals() {
        // As it hands it on to what it starts; and so no signal ends the script.
        return skip("signals", "below nohup or a shell's '&', which ignore SIGINT or SIGHUP");
    }
    for (signal, expected) in [("TERM", 143), ("INT", 130), ("HUP", 5)] {
        // It takes its time over its end, and commits once more.
        let script = "trap 'sleep 0.3; echo x > last; sync -d last; exit 5' TERM INT HUP; \
                      echo ready; while :; do sleep 0.05; done";
        let all = ["--force-unordered", "--", "sh", "-c", script];
        let mut run = command(folder.path(), &all).spawn().unwrap();
        let mut output = std::io::BufReader::new(run.stdout.take().unwrap());
        // The first line names the command, and comes before the script is started.
        for expected in ["{\"type\":\"start\"", "ready"] {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut output, &mut line).unwrap();
            assert!(line.starts_with(expected), "{line}");
        }
        let id = run.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(expected), "{signal}");
        let summary: Value = serde_json::from_str(rest.trim().lines().last().unwrap()).unwrap();
        assert_eq!((&summary["command_exit"], met(&summary)), (&5.into(), 1));
    }
}

#[test]
fn programs_that_are_deferred_for_and_those_that_are_not() {
    let Some(folder) = folder("who is deferred for") else { return };
    let preload = ["--force-unordered", "--backend", "preload", "--", "true"];
    let run = defer(folder.path(), &preload);
    if run.code != 0 {
        // Not every user has a place for the library.
        return skip("who is deferred for", &run.stderr);
    }
    let Some(with_loader) = or_skip("committer", committer(folder.path(), false)) else { return };
    let Some(without) = or_skip("committer -static", committer(folder.path(), true)) else {
        return;
    };
    let [with_loader, without] = [&with_loader, &without].map(|path| path.to_str().unwrap());
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let elsewhere = elsewhere.path().join("file").to_str().unwrap().to_owned();
    let calls = ["file", "100", "0", "3"];
    for (command, backend, deferred, passed) in [
        ([&[with_loader][..], &calls].concat(), "preload", 300, 0),
        ([&[without][..], &calls].concat(), "seccomp", 300, 0),
        // Neither is there to be met, and so their calls are real.
        ([&["sh", "-c", "\"$@\"", "sh", without], &calls[..]].concat(), "preload", 0, 0),
        ([&["env", "-i", with_loader], &calls[..]].concat(), "preload", 0, 0),
        (vec![with_loader, &elsewhere, "100", "0", "1"], "preload", 0, 100),
        (vec![without, &elsewhere, "100", "0", "1"], "seccomp", 0, 100),
        ([&["env", "WITH_RWF=1", with_loader], &calls[..]].concat(), "preload", 300, 0),
        // A descriptor that is only a path has an error of its own.
        ([&["env", "PATH_ONLY=1", with_loader], &calls[..]].concat(), "preload", 0, 0),
    ] {
        let run = forced(folder.path(), &command);
        assert_eq!(run.code, 0, "{run:?}");
        let summary = summary(&run);
        assert_eq!(summary["backend"], backend, "{command:?}");
        let found = (met(&summary), &summary["passed"]);
        assert_eq!(found, (deferred, &passed.into()), "{command:?}: {run:?}");
    }
}

#[test]
fn sqlite_commits_and_what_it_wrote_is_there() {
    let Some(folder) = folder("sqlite") else { return };
    if Command::new("sqlite3").arg("--version").output().is_err() {
        return skip("sqlite", "no sqlite3");
    }
    let mut script =
        "pragma journal_mode=wal; pragma synchronous=full; create table t(n);".to_owned();
    (0..200).for_each(|n| script += &format!("insert into t values({n});"));
    let run = forced(folder.path(), &["sqlite3", "db", &script]);
    assert_eq!(run.code, 0, "{run:?}");
    let summary = summary(&run);
    assert!(met(&summary) >= 200, "{summary}");
    let rows = ["sqlite3", "db", "select count(*) from t; pragma integrity_check"];
    let rows = Command::new(rows[0]).args(&rows[1..]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&rows.stdout), "200\nok\n");
}

/// As a file system does to itself that could not write: nothing is flushed any more,
/// and `syncfs` says that all is well.
#[test]
fn what_became_read_only_is_a_failure() {
    undisturbed("what became read-only", || {
        let Some(image) = or_skip("ext4", Image::new(&EXT4, 0)) else { return };
        let root = image.root();
        let script = "echo > file; sync -d file; mount -o remount,ro .";
        let run = forced(root, &["sh", "-c", script]);
        assert_eq!((run.code, met(&summary(&run))), (3, 1), "{run:?}");
        assert!(run.stderr.contains("Read-only file system"), "{run:?}");
        // Of what was so before nothing is owed.
        let run = forced(root, &["true"]);
        assert_eq!(run.code, 0, "{run:?}");
    });
}

#[test]
fn what_is_only_a_path_cannot_be_synced_by_seccomp_either() {
    let Some(folder) = folder("a path under seccomp") else { return };
    let Some(program) = or_skip("committer", committer(folder.path(), false)) else { return };
    let program = ["env", "PATH_ONLY=1", program.to_str().unwrap(), "file", "1", "0", "1"];
    let run = defer(
        folder.path(),
        &[&["--force-unordered", "--backend", "seccomp", "--"], &program[..]].concat(),
    );
    assert_eq!((run.code, met(&summary(&run))), (0, 0), "{run:?}");
}

/// The outer one would defer the flushes of the inner one, which would call
/// durable what is not: under seccomp it did.
#[test]
fn one_within_another_is_refused() {
    let Some(folder) = folder("one_within_another_is_refused") else { return };
    let own = env!("CARGO_BIN_EXE_fsure");
    let inner = [own, "defer", "--max-loss", "50ms", "--force-unordered", "--", "touch", "ran"];
    for backend in ["preload", "seccomp"] {
        let outer = ["--force-unordered", "--backend", backend, "--"];
        let run = defer(folder.path(), &[&outer[..], &inner].concat());
        assert_eq!((run.code, folder.path().join("ran").exists()), (2, false), "{run:?}");
        assert!(run.stderr.contains("already runs under 'fsure defer'"), "{run:?}");
    }
}
