//! `fsure crash` as its users meet it: an honest drive keeps what was
//! acknowledged, a lying one does not, and nothing is left behind, whichever process
//! ends it and how.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Report, Run, cannot_crash, code, fsure, is_torn_superblock, skip};
use serde_json::Value;

/// Numbers in a file, each on its medium before it is acknowledged.
const WRITER: &str = "n=0; while :; do n=$((n+1)); echo $n >> log; sync -d log; echo ACK $n; done";
/// As many as there are from 1 on.
const CHECK: &str =
    r#"awk '$1 == NR { n = NR } END { print "LAST " n+0 }' log 2>/dev/null || echo LAST 0"#;

/// The exit code, the lines and the words of a run; `None`, and said so, where this
/// machine cannot.
fn crash(test: &str, folder: &Path, args: &[&str]) -> Option<(i32, Vec<Value>, String)> {
    let Report { code, lines, stderr, .. } = support::crash(test, folder, args)?;
    Some((code, lines, stderr))
}

fn cuts(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|line| line["type"] == "cut" && line["twin"] != true)
}

#[test]
fn an_honest_drive_keeps_what_was_acknowledged_and_a_lying_one_does_not() {
    for fs in ["ext4", "xfs", "btrfs"] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("crash on {fs}");
        let args = ["--fs", fs, "--drive", "honest,lying", "--cuts", "6", "--check", CHECK, "--"];
        let args = [&args[..], &["sh", "-c", WRITER]].concat();
        let Some((code, lines, _)) = crash(&name, folder.path(), &args) else { continue };
        assert_eq!(code, 3, "{lines:?}");
        let of = |drive: &str| cuts(&lines).filter(|cut| cut["drive"] == drive).collect::<Vec<_>>();
        assert_eq!((of("honest").len(), of("lying").len()), (6, 6));
        for (number, cut) in (1..).zip(of("honest")) {
            assert_eq!((&cut["n"], &cut["fs"]), (&number.into(), &fs.into()));
            if is_torn_superblock(fs, cut) {
                continue;
            }
            assert_eq!((&cut["state"], &cut["lost"]), (&"survived".into(), &0.into()), "{cut}");
            assert!(cut["acked"].as_u64() > Some(0) && cut["oldest_lost_ms"].is_null(), "{cut}");
        }
        let variants: Vec<_> = of("honest").iter().map(|cut| cut["variant"].clone()).collect();
        assert_eq!(variants, ["none", "all", "prefix", "epoch", "random", "torn"]);
        let none = of("lying")[0];
        assert!(["lost", "unmountable"].iter().any(|state| none["state"] == *state), "{none}");
        assert_eq!(none["lost"], none["acked"], "nothing was ever on the medium");
        assert!(none["oldest_lost_ms"].is_u64(), "{none}");
        let twin = lines.iter().find(|line| line["twin"] == true).unwrap();
        assert_eq!((&twin["drive"], &twin["state"]), (&"lying".into(), &none["state"]));
        let last = lines.last().unwrap();
        assert_eq!((&last["type"], &last["cuts"]), (&"summary".into(), &12.into()));
        assert_eq!((&last["exit_code"], &last["harness_broken"]), (&3.into(), &0.into()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left behind");
    }
}

/// Without a file system below, the names are the program's own affair: POSIX
/// promises none that no sync of the folder has covered.
#[test]
fn a_folder_keeps_what_posix_promises() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a folder keeps what POSIX promises";
    let with = |fs: &str, program: &str| {
        let args = ["--fs", fs, "--cuts", "6", "--variant", "none,torn,torn-4k", "--check", CHECK];
        let args = [&args[..], &["--", "sh", "-c", program]].concat();
        crash(name, folder.path(), &args)
    };
    let Some((code, lines, _)) = with("folder", WRITER) else { return };
    // A name that no sync has covered may survive by chance, where anything may.
    let mut none = cuts(&lines).filter(|cut| cut["variant"] == "none");
    assert!(code == 3 && none.all(|cut| cut["state"] == "lost"), "{lines:?}");
    let named = format!("touch log; sync .; {WRITER}");
    for (fs, program) in [("folder", &named[..]), ("folder-journal", WRITER)] {
        let (code, lines, _) = with(fs, program).unwrap();
        assert_eq!((code, cuts(&lines).count()), (0, 6), "{fs}: {lines:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left behind");
}

#[test]
fn what_proves_nothing_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let name = "what proves nothing is no success";
    let with = |check: &str| {
        let args = ["--fs", "ext4", "--cuts", "2", "--check", check, "--", "sh", "-c", WRITER];
        crash(name, folder.path(), &args)
    };
    // It looks at nothing, and so finds nothing on a drive that lies, either.
    let Some((code, lines, _)) = with("echo LAST 999999999") else { return };
    assert_eq!((code, cuts(&lines).count()), (5, 2));
    assert!(cuts(&lines).all(|cut| cut["state"] == "harness-broken"), "{lines:?}");
    for check in ["kill -SEGV $$", "exec no-such-check"] {
        let (code, lines, _) = with(check).unwrap();
        assert_eq!(code, 5, "{lines:?}");
        assert!(cuts(&lines).all(|cut| cut["state"] == "harness-broken"), "{lines:?}");
    }
    // 255 is how Perl dies, and no signal.
    let flood = "head -c 1000000 /dev/zero | tr '\\0' y >&2; exit 9";
    for (check, detail) in [
        ("echo bad >&2; exit 9", "bad".to_owned()),
        ("echo bad >&2; exit 255", "bad".to_owned()),
        (flood, "y".repeat(1000)),
    ] {
        let (code, lines, _) = with(check).unwrap();
        assert_eq!(code, 3, "{lines:?}");
        let first = cuts(&lines).next().unwrap();
        assert_eq!((&first["state"], &first["detail"]), (&"corrupt".into(), &detail.into()));
    }
}

/// The run is not cut, whatever the check makes of an empty drive.
#[test]
fn a_program_that_does_not_run_is_an_error_with_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    for (command, words) in [
        (
            &["sh", "-c", "echo one >&2; echo two >&2; exit 4"][..],
            "was not cut: exit code 4: one | two",
        ),
        (&["/nonexistent/program"], "cannot start /nonexistent/program: No such file"),
        (&["sh", "-c", "kill -SEGV $$"], "was not cut: signal 11"),
    ] {
        for (fs, check) in [("folder", "exit 1"), ("ext4", "exit 1"), ("folder", "true")] {
            let args = [&["--fs", fs, "--check", check, "--"], command].concat();
            let run = crash("a program that does not run", folder.path(), &args);
            let Some((code, lines, error)) = run else { continue };
            assert_eq!(code, 2, "{error}");
            assert!(error.contains(words) && error.contains("hint: run it by hand"), "{error}");
            assert!(lines.iter().all(|line| line["type"] != "cut"), "{lines:?}");
        }
    }
}

#[test]
fn the_program_finds_what_was_prepared_and_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let keep = kept.path().to_str().unwrap();
    let args = ["--fs", "ext4", "--drive", "lying", "--cuts", "2", "--variant", "none"];
    let prepare = ["--prepare", "echo there > before", "--keep", keep];
    let check = r#"test "$(cat $MNT/before)" = there && test "$ACKED" = 7 && echo LAST 6"#;
    // It ends by itself: a cut is made then, and it is started anew.
    let program = r#"cd / && cat "$MNT/before" "$1/before" >&2 && echo ACK 7"#;
    let rest = ["--check", check, "--", "sh", "-c", program, "sh", "$MNT"];
    let all = [&args[..], &prepare, &rest].concat();
    let Some((code, lines, error)) = crash("what was prepared", folder.path(), &all) else {
        return;
    };
    assert_eq!((code, cuts(&lines).count()), (3, 2), "{error} {lines:?}");
    for cut in cuts(&lines) {
        assert_eq!((&cut["state"], &cut["lost"]), (&"lost".into(), &1.into()), "{cut}");
        let image = std::fs::metadata(cut["image"].as_str().unwrap()).unwrap();
        assert_eq!(image.len(), 512 << 20);
    }
}

/// Each flush of half a second of work, and what was owed there.
#[test]
fn every_flush_boundary_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    // Ended by itself, so that the number of flushes is small. What is acknowledged is owed from
    // the moment on at which fsure has read it, which a busy machine may do after all of eight
    // quick flushes.
    let program =
        WRITER.replace("while :", "while [ $n -lt 8 ]").replace("done", "sleep 0.2; done");
    let args = ["--fs", "xfs", "--every-flush", "600s", "--check", CHECK, "--", "sh", "-c"];
    let args = [&args[..], &[program.as_str()]].concat();
    let Some((code, lines, error)) = crash("every flush", folder.path(), &args) else { return };
    assert_eq!(code, 0, "{error} {lines:?}");
    let acked: Vec<_> = cuts(&lines).map(|cut| cut["acked"].as_u64().unwrap()).collect();
    assert!(acked.len() >= 8 && acked.is_sorted(), "{acked:?}");
    assert!(acked.last() >= Some(&7), "{acked:?}");
    let mut numbers = cuts(&lines).map(|cut| cut["n"].as_u64().unwrap());
    assert!((1..).zip(numbers.by_ref()).all(|(expected, number)| expected == number));
    // What is acknowledged before no flush at all says nothing of one.
    let never = "echo 1 > log; echo ACK 1; sleep 60";
    // ext4 would commit by itself every 5 s.
    let silent = ["--fs", "ext4", "--mount-options", "commit=600", "--every-flush", "0.3s"];
    let silent = [&silent[..], &["--check", CHECK, "--", "sh", "-c", never]].concat();
    let (code, lines, _) = crash("every flush", folder.path(), &silent).unwrap();
    assert!(cuts(&lines).all(|cut| cut["state"] == "survived"), "{lines:?}");
    assert_eq!(code, 5, "{lines:?}");
    // Who does not flush owes what no boundary has. On a busy machine its words take a
    // while to be read; what is read after a flush is not owed there.
    let program = program.replace("sync -d log", "true") + "; sleep 3; sync -d .";
    let args = [&args[..args.len() - 1], &[program.as_str()]].concat();
    let (code, lines, _) = crash("every flush", folder.path(), &args).unwrap();
    assert_eq!(code, 3, "{lines:?}");
    assert!(cuts(&lines).any(|cut| cut["state"] == "lost"), "{lines:?}");
}

/// One write fails: the first flush says so and the next does not, although the
/// data never came to the medium.
#[test]
fn what_a_flush_reports_after_an_error_is_shown() {
    for fs in ["ext4", "xfs", "btrfs"] {
        let folder = tempfile::tempdir().unwrap();
        let args = ["--fs", fs, "--error", "eio"];
        let name = format!("an error on {fs}");
        let Some((code, lines, error)) = crash(&name, folder.path(), &args) else { continue };
        let is_own = |line: &&Value| line["type"] != "warning";
        let own: Vec<_> = lines.iter().filter(is_own).collect();
        let [line, summary] = own[..] else { panic!("{error} {lines:?}") };
        let flushes: Vec<_> = line["calls"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|call| call["call"] == "fsync")
            .collect();
        let first = flushes[0]["result"].as_str().unwrap();
        assert!(flushes.len() >= 5 && first.contains("os error 5"), "{line}");
        assert_eq!(line["reported"], true, "{line}");
        // Kernels differ here; what is reported has to follow from what was seen.
        let is_reported_ok = flushes.iter().any(|call| call["result"] == "ok");
        let forgets = is_reported_ok && line["after_cut"] != "new";
        assert_eq!(line["forgets"], forgets, "{line}");
        assert_eq!(code, i32::from(forgets), "{line}");
        assert_eq!((&summary["type"], &summary["exit_code"]), (&"summary".into(), &code.into()));
    }
}

/// Ends a run in the middle and sees that nothing of it is left.
#[test]
fn nothing_is_left_however_it_is_ended() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let folder = tempfile::tempdir().unwrap();
        // A daemon that works on the drive, in a session of its own.
        let program = format!("setsid sh -c '{WRITER}'");
        let mut run = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["crash", "--json", "--fs", "ext4", "--cuts", "100000", "--check", CHECK, "--"])
            .args(["sh", "-c", &program])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..3 {
            if std::io::BufRead::read_line(&mut output, &mut line).unwrap() == 0 {
                run.wait().unwrap();
                return skip("nothing is left", "it does not run here");
            }
        }
        let kill = Command::new("kill").args(["-s", signal, &run.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
        assert_eq!(run.wait().unwrap().code(), code, "{signal}");
        assert_eq!(code.is_some(), rest.contains(r#""type":"summary""#), "{rest}");
        // A guard removes the folder once nothing is mounted there; it ends when
        // it has.
        while std::fs::read_dir(folder.path()).unwrap().count() > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let marked = folder.path().to_str().unwrap();
        for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let Ok(mounts) = std::fs::read_to_string(process.path().join("mountinfo")) else {
                continue;
            };
            assert!(!mounts.contains(marked), "{signal}: still mounted for {process:?}");
        }
    }
}

#[test]
fn a_wrong_command_line_gets_a_correction() {
    for (args, part) in [
        (&["--fs", "ext4", "--check", "true"][..], "no program to run"),
        (&["--fs", "ext4", "--", "true"], "--check LINE"),
        (&["--error", "eio"], "add '--fs ext4'"),
        (&["--error", "eio", "--workload", "append:fsync"], "cannot be used with"),
        (&["--every-flush", "1s", "--check", "true", "--", "true"], "add '--fs ext4'"),
        (&["--fs", "ext4", "--size", "1M", "--check", "true", "--", "true"], "needs 16 MiB"),
        (&["--fs", "ext4", "--size", "65G", "--check", "true", "--", "true"], "at most 64 GiB"),
        (&["--fs", "ext4", "--drive", "good", "--check", "true", "--", "true"], "lying:TIME"),
    ] {
        let run = fsure(&[&["crash"], args].concat());
        assert!(run.code == 2 && run.stderr.contains(part), "{args:?}: {}", run.stderr);
    }
}

/// Kills the process between fsure and a program at many moments of its start: the kernel
/// is told to end the program with it before the program begins.
#[test]
fn a_family_ends_with_its_first_process_from_its_first_moment_on() {
    let mark = format!("31{:07}", std::process::id());
    let own = std::process::id().to_string();
    for moment in 0..80 {
        let mut outer = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["family", "outer", &own, "/", "--", "sleep", &mark])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(moment * 250));
        let _ = outer.kill();
        let _ = outer.wait();
    }
    let is_left = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read(entry.unwrap().path().join("cmdline"))
            .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
    };
    // A process that the kernel has killed can take a moment to be gone; one that it has
    // not killed would be here for a year.
    while std::fs::read_dir("/proc").unwrap().any(is_left) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// On a terminal a Ctrl-C goes to all that is in front there.
#[test]
fn an_interruption_is_none_of_mounts_business() {
    // On a busy machine its `mkfs` may come and go between two looks.
    for _ in 0..20 {
        match interrupted_at_mkfs() {
            (true, run) => return assert_eq!(run.code, 130, "{run:?}"),
            (false, run) if cannot_crash(&run) => {
                return skip("an interruption of mkfs", &run.stderr);
            }
            _ => {}
        }
    }
    panic!("no mkfs was seen");
}

/// Interrupts a run and its `mkfs`, if that is seen; whether it was.
fn interrupted_at_mkfs() -> (bool, Run) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["crash", "--fs", "ext4", "--size", "2G", "--cuts", "3", "--check", CHECK, "--"]);
    command.args(["sh", "-c", WRITER]).env("TMPDIR", folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut run = command.spawn().unwrap();
    let group = run.id().to_string();
    // It takes a while on a drive of this size.
    let has_mkfs = || {
        let of = |entry: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()
        };
        let mut all = std::fs::read_dir("/proc").unwrap().filter_map(of);
        all.any(|stat| {
            let words: Vec<_> = stat.split(' ').collect();
            words[1].starts_with("(mkfs.") && words[3] == group
        })
    };
    let is_seen = loop {
        if has_mkfs() {
            let kill =
                Command::new("kill").args(["-s", "INT", "--", &format!("-{group}")]).status();
            assert!(kill.unwrap().success());
            break true;
        }
        if run.try_wait().unwrap().is_some() {
            break false;
        }
    };
    let output = run.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let run = Run {
        code: code(output.status),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    };
    (is_seen, run)
}

/// A loss that was found counts, whether or not there is space for its image.
#[test]
fn an_image_that_cannot_be_kept_is_reported_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let place = kept.path().join("lying-ext4-1-none.img");
    std::fs::write(&place, "of another run").unwrap();
    let keep = kept.path().to_str().unwrap();
    let args = ["--fs", "ext4", "--size", "64M", "--drive", "lying", "--variant", "none"];
    let args = [&args[..], &["--cuts", "2", "--keep", keep, "--check", CHECK, "--"]].concat();
    let args = [&args[..], &["sh", "-c", WRITER]].concat();
    let Some((code, lines, error)) = crash("an image has no room", folder.path(), &args) else {
        return;
    };
    assert_eq!((code, cuts(&lines).count()), (3, 2), "{error} {lines:?}");
    assert!(error.contains("cannot keep an image in"), "{error}");
    assert_eq!(std::fs::read(&place).unwrap(), b"of another run");
    let images: Vec<_> = cuts(&lines).map(|cut| cut["image"].is_string()).collect();
    assert_eq!(images, [false, true], "{lines:?}");
}

/// Of all its cells, although their cuts have the same numbers.
#[test]
fn a_matrix_keeps_all_its_images() {
    let folder = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let keep = kept.path().to_str().unwrap();
    let args = ["--matrix", "--fs", "ext4", "--size", "64M", "--drive", "lying", "--variant"];
    let rows = ["none", "--cuts", "1", "--keep", keep, "--workload", "append:none,overwrite:fsync"];
    let args = [&args[..], &rows].concat();
    let Some((code, lines, error)) = crash("images of a matrix", folder.path(), &args) else {
        return;
    };
    assert_eq!((code, cuts(&lines).count(), &error[..]), (0, 2, ""), "{lines:?}");
    assert!(cuts(&lines).all(|cut| cut["image"].is_string()), "{lines:?}");
    assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 2);
}

/// Fills the drive, acknowledges, and goes on, so that the power is cut.
const FILLER: &str = "head -c 1G /dev/zero > big 2>/dev/null; sync big .; echo ACK 1; sleep 600";

#[test]
fn a_check_that_fails_for_want_of_room_blames_no_program() {
    for fs in ["folder", "ext4", "btrfs"] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("a full {fs}");
        // As a database that is recovered when it is opened.
        let recovers = "head -c 3000000 /dev/zero > recovered && sync recovered";
        let run = |writer: &str, check: &str| {
            let args = ["--fs", fs, "--drive", "honest", "--cuts", "1", "--variant", "none"];
            let check = format!("test -s big || {{ echo LAST 0; exit 0; }}; {check}");
            let rest = ["--size", "200M", "--check", &check, "--", "sh", "-c", writer];
            let (code, lines, _) = crash(&name, folder.path(), &[&args[..], &rest].concat())?;
            let cut = cuts(&lines).next().unwrap_or_else(|| panic!("{lines:?}")).clone();
            Some((code, cut))
        };
        let Some((code, cut)) = run(FILLER, recovers) else { continue };
        assert_eq!((code, &cut["state"]), (5, &"harness-broken".into()), "{fs}: {cut}");
        let detail = cut["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("is full: name a larger drive with '--size'"), "{fs}: {cut}");
        // With room, a failed check is a failed check.
        let has_room = FILLER.replace("1G", "1M");
        let (code, cut) = run(&has_room, "echo bad >&2; exit 1").unwrap();
        assert_eq!((code, &cut["state"]), (3, &"corrupt".into()), "{fs}: {cut}");
    }
}

/// A cut that survives on a drive that lies proves as little as on others, if the
/// check could not have noticed anything.
#[test]
fn a_check_that_never_fails_proves_nothing_on_any_drive() {
    let folder = tempfile::tempdir().unwrap();
    // On a real file system the cut of a twin can leave an image that does not mount,
    // which the check has not noticed.
    for (drive, fs) in [
        ("honest", "folder"),
        ("lying", "folder"),
        ("lying:1s", "folder"),
        ("plp", "folder"),
        ("honest", "ext4"),
        ("honest", "xfs"),
        ("honest", "btrfs"),
    ] {
        let args = ["--drive", drive, "--fs", fs, "--cuts", "2", "--variant", "none,all"];
        let args = [&args[..], &["--check", "true", "--", "sh", "-c", WRITER]].concat();
        let name = format!("a check without teeth on {fs}");
        let Some((code, lines, _)) = crash(&name, folder.path(), &args) else { continue };
        assert_eq!(code, 5, "{drive} on {fs}: {lines:?}");
        assert!(cuts(&lines).all(|cut| cut["state"] == "harness-broken"), "{lines:?}");
    }
}
