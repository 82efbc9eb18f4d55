//! A RAM folder among what else a machine does: mounts inside it, files of it that are
//! disks, file systems that do not answer, and who asks while it ends.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::ram_machine::{
    FSURE, Shell, bind, home, is_bound, on_own_machine, pause, ram, sh, status, unbind, until,
    wait_while,
};
use crate::support::skip;

/// Timeout: an event that takes longer is taken for one that never happens.
const LONG: Duration = Duration::from_secs(60);

fn has_not_ended(process: &mut Child) -> bool {
    process.try_wait().expect("wait").is_none()
}

#[test]
fn what_is_mounted_in_it_does_not_come_to_the_disk() {
    on_own_machine(module_path!(), "what_is_mounted_in_it_does_not_come_to_the_disk", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let below = folder.join("below");
        sh(&format!("mount -t tmpfs foreign {}", below.display()));
        fs::write(below.join("foreign"), "of somebody else").expect("write");
        fs::write(folder.join("new"), "1").expect("write");
        let run = ram(&["sync"], &folder);
        assert_eq!(run.code, 0, "{run:?}");
        // A machine that stands still for a moment is behind for one.
        let state = until(&folder, |code, _| code == 0);
        assert_eq!(state["tracking"], "names that changed", "{state}");
        let there = home().join("disk");
        assert_eq!(fs::read(there.join("new")).expect("read"), b"1");
        assert_eq!(fs::read(there.join("below/7")).expect("read"), [7; 5000]);
        assert!(!there.join("below/foreign").exists());
        let run = ram(&["unbind"], &folder);
        let named = format!("mounted in it, on {}", below.display());
        assert!(run.code == 2 && run.stderr.contains(&named), "{run:?}");
        assert!(is_bound(&folder));
        sh(&format!("umount {}", below.display()));
        fs::remove_file(below.join("7")).expect("remove");
        unbind(&folder);
        assert!(!below.join("7").exists() && !below.join("foreign").exists());
        assert_eq!(fs::read(below.join("8")).expect("read"), [8; 5000]);
    });
}

#[test]
fn a_request_while_it_ends_gets_an_answer() {
    on_own_machine(module_path!(), "a_request_while_it_ends_gets_an_answer", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let mut asked = loop {
            let shell = Shell::new(&format!("exec 3>{}/open", folder.display()));
            let mut command = Command::new(FSURE);
            command.args(["ram", "unbind"]).arg(&folder).stderr(Stdio::null());
            let mut unbind = command.spawn().expect("start");
            // From here on it waits for the shell, and hears nothing.
            while status(&folder).1["ending"] != true && has_not_ended(&mut unbind) {
                pause();
            }
            let mut asked = UnixStream::connect(home().join("control")).expect("connect");
            writeln!(asked, r#"{{"do":"sync"}}"#).expect("ask");
            // Until it is in the queue.
            (0..30).for_each(|_| pause());
            drop(shell);
            if unbind.wait().expect("wait").success() {
                break asked;
            }
        };
        asked.set_read_timeout(Some(LONG)).expect("a limit");
        let mut answer = String::new();
        BufReader::new(&mut asked).read_line(&mut answer).expect("an answer");
        assert!(answer.contains("out of RAM"), "{answer}");
        let began = Instant::now();
        while fs::read_dir("/run/fsure/ram").expect("list").count() > 1 {
            assert!(began.elapsed() < LONG, "its processes do not end");
            pause();
        }
    });
}

#[test]
fn a_file_that_the_kernel_writes_to_is_not_covered() {
    on_own_machine(module_path!(), "a_file_that_the_kernel_writes_to_is_not_covered", 64, |disk| {
        let folder = disk.folder();
        let (path, other) = (folder.display(), disk.0.join("other"));
        fs::create_dir(&other).expect("make");
        // By a name in another place.
        sh(&format!("mount --bind {path} {} && truncate -s 1M {path}/image", other.display()));
        let mut attach = Command::new("losetup");
        let output = attach.args(["-f", "--show"]).arg(other.join("image")).output();
        let output = output.expect("losetup");
        let node = String::from_utf8(output.stdout).expect("text");
        let run = ram(&["bind"], &folder);
        sh(&format!("losetup -d {} && umount {}", node.trim(), other.display()));
        assert!(run.code == 2 && run.stderr.contains("loop devices or swap"), "{run:?}");
        let swap = folder.join("a swap");
        sh(&format!("dd status=none if=/dev/zero of='{0}' bs=1M count=2", swap.display()));
        sh(&format!("chmod 600 '{0}' && mkswap -q '{0}'", swap.display()));
        let on = Command::new("swapon").arg(&swap).output().expect("swapon");
        if on.status.success() {
            let run = ram(&["bind"], &folder);
            sh(&format!("swapoff '{}'", swap.display()));
            assert!(run.code == 2 && run.stderr.contains("loop devices or swap"), "swap: {run:?}");
        } else {
            skip("a_file_that_the_kernel_writes_to_is_not_covered", "this kernel has no swap");
        }
        bind(&folder);
        unbind(&folder);
    });
}

#[test]
fn a_file_system_that_does_not_answer_is_not_waited_for() {
    on_own_machine(
        module_path!(),
        "a_file_system_that_does_not_answer_is_not_waited_for",
        64,
        |disk| {
            let (folder, other) = (disk.folder(), disk.0.join("other"));
            let seen = disk.0.join("seen");
            fs::create_dir(&other).and_then(|()| fs::create_dir(&seen)).expect("make");
            fs::write(other.join("file"), "x").expect("write");
            let mut command = Command::new(FSURE);
            command.arg("pass-through").args([&other, &seen]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut server = command.spawn().expect("start");
            let mut line = String::new();
            let output = server.stdout.as_mut().expect("its output");
            BufReader::new(output).read_line(&mut line).expect("a word");
            if line != "ready\n" {
                let _ = server.wait();
                return skip("a_file_system_that_does_not_answer", "no FUSE here");
            }
            let shell = Shell::new(&format!("cd {}; exec 3<file", seen.display()));
            // What was asked for is believed for a second.
            (0..150).for_each(|_| pause());
            sh(&format!("kill -STOP {}", server.id()));
            let mut command = Command::new(FSURE);
            let mut bound = command.args(["ram", "bind"]).arg(&folder).spawn().expect("start");
            let began = Instant::now();
            while has_not_ended(&mut bound) && began.elapsed() < LONG {
                pause();
            }
            let is_late = has_not_ended(&mut bound);
            let unbound = (!is_late).then(|| ram(&["unbind"], &folder));
            sh(&format!("kill -CONT {}", server.id()));
            assert!(bound.wait().expect("wait").success() && !is_late, "it waits for another");
            assert_eq!(unbound.map(|run| run.code), Some(0));
            drop(shell);
            sh(&format!("umount {}", seen.display()));
            drop(server.stdin.take());
            server.wait().expect("wait");
        },
    );
}

#[test]
fn a_comparison_delays_no_other_run() {
    on_own_machine(module_path!(), "a_comparison_delays_no_other_run", 128, |disk| {
        let folder = disk.folder();
        fs::write(folder.join("large"), vec![1; 40 << 20]).expect("write");
        bind(&folder);
        for _ in 0..3 {
            let mut command = Command::new(FSURE);
            command.args(["ram", "verify"]).arg(&folder).stderr(Stdio::piped());
            let verify = command.spawn().expect("start");
            unbind(&folder);
            let output = verify.wait_with_output().expect("wait");
            let words = String::from_utf8_lossy(&output.stderr);
            let late = ["out of RAM", "not in RAM", "being unbound"];
            let was_late = late.iter().any(|late| words.contains(late));
            assert!(output.status.success() || was_late, "{words}");
            bind(&folder);
        }
        fs::write(folder.join("new"), "1").expect("write");
        let run = ram(&["verify"], &folder);
        assert!(run.code == 0 && run.stdout.contains("hold the same"), "{run:?}");
        unbind(&folder);
    });
}

#[test]
fn a_hanging_disk_is_named_to_every_waiting_command() {
    let test = "a_hanging_disk_is_named_to_every_waiting_command";
    on_own_machine(module_path!(), test, 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        if !Command::new("fsfreeze").arg("-f").arg(&disk.0).status().is_ok_and(|it| it.success()) {
            return skip("a_hanging_disk_is_named", "fsfreeze does not do");
        }
        fs::write(folder.join("new"), "1").expect("there is memory");
        let hangs = |code: i32, state: &serde_json::Value| {
            let doing = state["doing"].as_str().is_some_and(|doing| doing.contains("disk"));
            code == 1 && doing && state["worst_loss_ms"].as_u64() > Some(1000)
        };
        let state = until(&folder, hangs);
        let is_reported = state["wrong"].to_string().contains("no generation is made");
        let mut words = Vec::new();
        for what in ["sync", "unbind"] {
            let mut command = Command::new(FSURE);
            let output = command.args(["ram", what]).arg(&folder).stderr(Stdio::piped());
            let mut child = output.spawn().expect("start");
            let mut line = String::new();
            let stderr = child.stderr.take().expect("its words");
            words.push(BufReader::new(stderr).read_line(&mut line).map(|_| line).expect("a word"));
            child.kill().and_then(|()| child.wait()).expect("kill");
        }
        // More than it keeps waiting: who only asks has a place all the same.
        let waiting: Vec<_> = (0..80)
            .map(|_| {
                let mut asked = UnixStream::connect(home().join("control")).expect("connect");
                // One client too many gets its response before it asks.
                match writeln!(asked, r#"{{"do":"sync"}}"#) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                    other => other.expect("ask"),
                }
                asked
            })
            .collect();
        // Until all have been heard.
        (0..30).for_each(|_| pause());
        drop(waiting);
        let (code, state) = status(&folder);
        sh(&format!("fsfreeze -u {}", disk.0.display()));
        assert!(is_reported && hangs(code, &state), "{state}");
        for words in words {
            assert!(words.contains("waiting for its daemon"), "{words}");
        }
        // It was asked for, and comes when it can.
        wait_while(|| is_bound(&folder));
        assert_eq!(fs::read(folder.join("new")).expect("read"), b"1");
    });
}

#[test]
fn what_is_written_while_the_end_is_waited_for_comes_in_time() {
    on_own_machine(
        module_path!(),
        "what_is_written_while_the_end_is_waited_for_comes_in_time",
        64,
        |disk| {
            let folder = disk.folder();
            bind(&folder);
            let there = home().join("disk/log");
            let mut log = fs::File::create(folder.join("log")).expect("make");
            let seen_while_waiting = |log: &mut fs::File| {
                let mut command = Command::new(FSURE);
                command.args(["ram", "unbind"]).arg(&folder).stderr(Stdio::null());
                let (mut unbind, mut seen) = (command.spawn().expect("start"), BTreeSet::new());
                while has_not_ended(&mut unbind) {
                    log.write_all(b"line\n").expect("it waits for this");
                    seen.insert(fs::metadata(&there).map_or(0, |is| is.len()));
                    pause();
                }
                seen.len()
            };
            // One generation comes before, and one when it has given up.
            let seen = (0..5).map(|_| seen_while_waiting(&mut log)).max();
            assert!(seen > Some(4), "{seen:?} generations");
            drop(log);
            unbind(&folder);
        },
    );
}

#[test]
fn what_the_disk_cannot_have_is_in_no_other_s_way() {
    on_own_machine(module_path!(), "what_the_disk_cannot_have_is_in_no_other_s_way", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let there = home().join("disk");
        let set = |name: &str| {
            let (path, none) = (folder.join(name), rustix::fs::XattrFlags::empty());
            rustix::fs::setxattr(path, "user.x", &[b'x'; 10_000], none).is_ok()
        };
        fs::create_dir(folder.join("new")).expect("make");
        fs::write(folder.join("new/file"), "1").expect("write");
        // Memory takes user attributes since Linux 6.6.
        let mut odd = vec!["huge", "link"];
        odd.extend(["below/1", "new"].into_iter().filter(|name| set(name)));
        let huge = fs::File::create(folder.join("huge")).expect("make");
        huge.set_len(20 << 40).expect("a hole");
        drop(huge);
        symlink("x".repeat(3000), folder.join("link")).expect("link");
        fs::write(folder.join("last"), "1").expect("write");
        let is_reported = |state: &serde_json::Value| {
            let unsettled = state["unsettled"].to_string();
            odd.iter().all(|name| unsettled.contains(&format!("\"{name}\"")))
        };
        let state = until(&folder, |code, state| code == 1 && is_reported(state));
        assert!(state["fenced"] == false && state["failures"] == 0, "{state}");
        assert_eq!(fs::read(there.join("last")).expect("read"), b"1");
        assert_eq!(fs::read(there.join("new/file")).expect("read"), b"1");
        assert_eq!(fs::read(there.join("below/1")).expect("read"), [1; 5000]);
        let run = ram(&["unbind"], &folder);
        assert!(run.code == 2 && run.stderr.contains("to the disk in full"), "{run:?}");
        for name in ["huge", "link"] {
            fs::remove_file(folder.join(name)).expect("remove");
        }
        for name in &odd[2..] {
            rustix::fs::removexattr(folder.join(name), "user.x").expect("remove");
        }
        until(&folder, |code, _| code == 0);
        // Nor a date that it does not know.
        sh(&format!("touch -d 1850-01-01 {}/last", folder.display()));
        let run = ram(&["verify"], &folder);
        assert_eq!(run.code, 0, "{run:?}");
        unbind(&folder);
        let mode = fs::metadata(folder.join("new")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    });
}

#[test]
fn what_does_not_fit_twice_is_not_appended() {
    on_own_machine(module_path!(), "what_does_not_fit_twice_is_not_appended", 64, |disk| {
        let folder = disk.folder();
        let (log, fill, mib) = (folder.join("log"), disk.0.join("fill"), 1 << 20);
        fs::write(&log, vec![1; 8 * mib]).expect("write");
        bind(&folder);
        let there = home().join("disk");
        let mut file = fs::File::create(&fill).expect("make");
        let all = std::io::copy(&mut std::io::repeat(1), &mut file).expect_err("full");
        assert_eq!(all.kind(), std::io::ErrorKind::StorageFull);
        let length = file.metadata().expect("look").len();
        file.set_len(length - 6 * mib as u64).and_then(|()| file.sync_all()).expect("room");
        drop(file);
        let mut grown = fs::File::options().append(true).open(&log).expect("open");
        grown.write_all(&vec![2; 4 * mib]).expect("there is memory");
        drop(grown);
        let state = until(&folder, |_, state| state["fenced"] == true);
        assert!(state["error"].as_str().is_some_and(|error| error.contains("space")), "{state}");
        let is = fs::metadata(there.join("log")).expect("look").len();
        assert_eq!(is, 8 * mib as u64, "the disk side is the last generation");
        assert!(!there.join(".fsure-ram/journal").exists(), "it counts, and cannot be done");
        fs::remove_file(&fill).expect("remove");
        until(&folder, |code, state| code == 0 && state["fenced"] == false);
        unbind(&folder);
        assert_eq!(fs::metadata(&log).expect("look").len(), 12 * mib as u64);
    });
}
