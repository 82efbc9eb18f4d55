//! `fsure ram bind` and all of its daemon, on a disk of the test's own and among
//! mounts that no process outside of the test sees.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::ram_machine::{
    FSURE, Shell, bind, home, is_bound, kill, kill_daemons, on_own_machine, process, ram, sh,
    status, unbind, until, wait_while,
};
use crate::support::{Tree, skip};

/// Waits until a file of the disk side is this.
fn until_on_disk(name: &str, content: &[u8]) {
    wait_while(|| fs::read(home().join("disk").join(name)).ok().as_deref() != Some(content));
}

#[test]
fn a_folder_outlives_its_daemon_however_that_ends() {
    on_own_machine(module_path!(), "a_folder_outlives_its_daemon_however_that_ends", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        fs::write(folder.join("new"), "1").expect("write");
        fs::remove_file(folder.join("below/0")).expect("remove");
        until_on_disk("new", b"1");
        until(&folder, |code, state| code == 0 && state["generation"].as_u64() > Some(0));
        let worker = process("worker", 0);
        kill(&[worker]);
        fs::write(folder.join("new"), "2").expect("write");
        until_on_disk("new", b"2");
        let (worker, keeper) = (process("worker", worker), process("keeper", 0));
        kill(&[keeper]);
        process("keeper", keeper);
        assert_eq!(process("worker", 0), worker, "it had no reason to end");
        kill_daemons();
        let state = until(&folder, |code, _| code == 1);
        assert!(state["kept"] == false && state["mounted"] == true, "{state}");
        fs::write(folder.join("new"), "3").expect("write");
        let run = ram(&["bind", "--plan"], &folder);
        assert!(run.code == 2 && run.stderr.contains("no process keeps it"), "{run:?}");
        assert_eq!(status(&folder).1["kept"], false, "it was only to be looked at");
        let run = ram(&["bind"], &folder);
        assert!(run.code == 0 && run.stdout.contains("kept again"), "{run:?}");
        until_on_disk("new", b"3");
        kill_daemons();
        fs::write(folder.join("new"), "4").expect("write");
        let run = ram(&["recover"], &folder);
        assert!(run.code == 0 && run.stdout.contains("kept again"), "{run:?}");
        unbind(&folder);
        assert_eq!(fs::read(folder.join("new")).expect("read"), b"4");
        assert!(!folder.join("below/0").exists() && !folder.join(".fsure-ram").exists());
        assert_eq!(fs::read(folder.join("below/7")).expect("read"), [7; 5000]);
    });
}

#[test]
fn what_would_lose_something_is_refused() {
    on_own_machine(module_path!(), "what_would_lose_something_is_refused", 64, |disk| {
        let folder = disk.folder();
        let refused = |folder: &Path, words: &str| {
            let run = ram(&["bind"], folder);
            assert!(run.code == 2 && run.stderr.contains(words), "{words}: {run:?}");
            assert!(run.stderr.contains("hint"), "{run:?}");
        };
        refused(Path::new("/etc"), "the system");
        refused(Path::new("/run"), "the system");
        refused(Path::new("/dev/shm"), "the system");
        refused(&disk.0.join("none"), "not a folder");
        let path = folder.display();
        for (does, words) in [
            (format!("exec 3>>{path}/below/1"), "writes to"),
            (format!("cd {path}/below"), "works in"),
            (format!("exec 3<{path}/below"), "has open the folder"),
        ] {
            let shell = Shell::new(&does);
            refused(&folder, words);
            refused(&folder, &shell.id());
        }
        for (does, undoes, words) in [
            ("mount -t tmpfs test below", "umount below", "something else is mounted"),
            ("ln below/1 ../outside", "rm ../outside", "hard links outside"),
            ("chattr +i below/1", "chattr -i below/1", "immutable"),
            ("ln -s / .fsure-ram", "rm .fsure-ram", ".fsure-ram"),
        ] {
            sh(&format!("cd {path} && {does}"));
            refused(&folder, words);
            sh(&format!("cd {path} && {undoes}"));
        }
        let plan = ram(&["bind", "--plan"], &folder);
        assert!(plan.code == 0 && plan.stdout.contains("Nothing was done"), "{plan:?}");
        assert!(!is_bound(&folder));
        bind(&folder);
        refused(&folder, "already in RAM");
        refused(&folder.join("below"), "already in RAM");
        refused(&disk.0, "already in RAM");
        unbind(&folder);
    });
}

#[test]
fn a_full_disk_fences_the_folder_until_there_is_space() {
    on_own_machine(
        module_path!(),
        "a_full_disk_fences_the_folder_until_there_is_space",
        64,
        |disk| {
            let folder = disk.folder();
            bind(&folder);
            let fill = disk.0.join("fill");
            let mut file = fs::File::create(&fill).expect("make");
            let error = std::io::copy(&mut std::io::repeat(1), &mut file).expect_err("full");
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            drop(file);
            fs::write(folder.join("large"), vec![2; 10 << 20]).expect("there is memory");
            let state = until(&folder, |_, state| state["fenced"] == true);
            assert!(
                state["error"].as_str().is_some_and(|error| error.contains("space")),
                "{state}"
            );
            assert_eq!(status(&folder).0, 1);
            let error = fs::write(folder.join("more"), "x").expect_err("read-only");
            assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
            assert_ne!(ram(&["unbind"], &folder).code, 0);
            assert!(is_bound(&folder), "it is nowhere else");
            fs::remove_file(&fill).expect("remove");
            until(&folder, |code, state| code == 0 && state["fenced"] == false);
            fs::write(folder.join("more"), "x").expect("writable again");
            unbind(&folder);
            assert_eq!(fs::read(folder.join("large")).expect("read"), vec![2; 10 << 20]);
            assert_eq!(fs::read(folder.join("more")).expect("read"), b"x");
        },
    );
}

#[test]
fn what_is_removed_at_one_stroke_is_kept() {
    on_own_machine(module_path!(), "what_is_removed_at_one_stroke_is_kept", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        // The mount stays, as rm says: busy.
        let rm = Command::new("rm").arg("-rf").arg(&folder).output().expect("rm");
        assert!(!rm.status.success(), "{rm:?}");
        let state = until(&folder, |_, state| state["trash"].is_string());
        unbind(&folder);
        assert!(!folder.join("below").exists());
        let trash = PathBuf::from(state["trash"].as_str().expect("a path"));
        assert!(trash.starts_with(folder.join(".fsure-ram/trash")), "{state}");
        assert_eq!(fs::read(trash.join("below/7")).expect("kept"), [7; 5000]);
    });
}

#[test]
fn a_process_in_the_way_of_the_end_is_named() {
    on_own_machine(module_path!(), "a_process_in_the_way_of_the_end_is_named", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let path = folder.display();
        for does in [format!("exec 3>{path}/open"), format!("cd {path}/below")] {
            let shell = Shell::new(&does);
            let run = ram(&["unbind"], &folder);
            assert!(run.code == 2 && run.stderr.contains(&shell.id()), "{run:?}");
            assert!(is_bound(&folder), "unmounted under a program");
            fs::write(folder.join("open"), "still writable").expect("write");
        }
        // It has mounts of its own, as a container does.
        let own = format!("unshare -m --propagation private sh -c 'echo; read -r end'; : {path}");
        let mut command = Command::new("sh");
        command.args(["-c", &own]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut container = command.spawn().expect("a shell");
        let mut word = [0];
        let output = container.stdout.as_mut().expect("its output");
        std::io::Read::read_exact(output, &mut word).expect("a word");
        let run = ram(&["unbind"], &folder);
        assert!(run.code == 1 && run.stdout.contains("still sees the old RAM side"), "{run:?}");
        assert!(!is_bound(&folder));
        drop(container.stdin.take());
        container.wait().expect("wait");
        assert_eq!(fs::read(folder.join("open")).expect("read"), b"still writable");
    });
}

#[test]
fn what_is_changed_behind_its_back_is_found() {
    on_own_machine(module_path!(), "what_is_changed_behind_its_back_is_found", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let behind = home().join("disk");
        assert_eq!(ram(&["verify"], &folder).code, 0);
        fs::write(behind.join("below/3"), "rotten").expect("write");
        fs::write(behind.join("stray"), "of a program that was there before").expect("write");
        let run = ram(&["verify"], &folder);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.contains("content") && run.stdout.contains("only-on-disk"), "{run:?}");
        let run = ram(&["unbind"], &folder);
        assert!(run.code == 2 && run.stderr.contains("stray"), "{run:?}");
        sh(&format!("mv {}/stray {}", behind.display(), disk.0.display()));
        let run = ram(&["unbind"], &folder);
        assert!(run.code == 1 && run.stdout.contains("below/3"), "{run:?}");
        assert_eq!(fs::read(folder.join("below/3")).expect("read"), [3; 5000], "as in memory");
        let trash = folder.join(".fsure-ram/trash");
        let kept = fs::read_dir(trash).expect("list").map(|one| one.expect("one").path());
        let kept: Vec<_> = kept.map(|of| fs::read(of.join("below/3")).expect("read")).collect();
        assert_eq!(kept, [b"rotten"]);
    });
}

#[test]
fn systemd_is_notified_and_its_signal_brings_all_back() {
    on_own_machine(
        module_path!(),
        "systemd_is_notified_and_its_signal_brings_all_back",
        64,
        |disk| {
            let folder = disk.folder();
            let name = disk.0.join("notify");
            let socket = UnixDatagram::bind(&name).expect("a socket");
            let mut command = Command::new(FSURE);
            command.args(["ram", "bind", "--foreground", "--max-loss", "1h"]).arg(&folder);
            let mut daemon = command.env("NOTIFY_SOCKET", &name).spawn().expect("start");
            socket.set_read_timeout(Some(Duration::from_secs(300))).expect("a time");
            let mut reported = String::new();
            while !reported.contains("READY=1") {
                let mut bytes = [0; 1000];
                let count = socket.recv(&mut bytes).expect("a word");
                reported = String::from_utf8_lossy(&bytes[..count]).into_owned();
            }
            fs::write(folder.join("last"), "x").expect("write");
            sh(&format!("kill -TERM {}", daemon.id()));
            assert!(daemon.wait().expect("wait").success());
            assert!(!is_bound(&folder));
            assert_eq!(fs::read(folder.join("last")).expect("read"), b"x");
        },
    );
}

#[test]
fn a_lazy_unmount_by_another_process_is_noticed() {
    on_own_machine(module_path!(), "a_lazy_unmount_by_another_process_is_noticed", 64, |disk| {
        let folder = disk.folder();
        let path = folder.display();
        let run = ram(&["bind", "--max-loss", "1h"], &folder);
        assert_eq!(run.code, 0, "{run:?}");
        fs::write(folder.join("last"), "x").expect("write");
        // Plainly it is refused: the worker holds it.
        let plain = Command::new("umount").arg(&folder).output().expect("umount");
        assert!(!plain.status.success() && is_bound(&folder), "{plain:?}");
        sh(&format!("umount -l {path}"));
        wait_while(|| fs::read_dir("/run/fsure/ram").expect("list").count() > 1);
        assert_eq!(fs::read(folder.join("last")).expect("read"), b"x");
        assert!(!folder.join(".fsure-ram").exists());
    });
}

#[test]
fn a_daemon_that_was_killed_does_not_take_back_what_is_out_of_ram() {
    on_own_machine(
        module_path!(),
        "a_daemon_that_was_killed_does_not_take_back_what_is_out_of_ram",
        64,
        |disk| {
            let folder = disk.folder();
            bind(&folder);
            kill_daemons();
            sh(&format!("umount {}", folder.display()));
            let run = ram(&["recover"], &folder);
            assert_eq!(run.code, 0, "{run:?}");
            assert!(!is_bound(&folder) && !folder.join(".fsure-ram").exists());
            assert_eq!(fs::read_dir("/run/fsure/ram").expect("list").count(), 1);
            bind(&folder);
            unbind(&folder);
        },
    );
}

#[test]
fn remains_of_a_crash_are_cleared_before_the_verdict() {
    on_own_machine(
        module_path!(),
        "remains_of_a_crash_are_cleared_before_the_verdict",
        64,
        |disk| {
            let folder = disk.folder();
            // Staged by a generation that never counted: a renamed file's second name.
            let stage = folder.join(".fsure-ram/stage");
            fs::create_dir_all(&stage).expect("make");
            sh(&format!("chmod 700 {}/.fsure-ram", folder.display()));
            fs::hard_link(folder.join("below/3"), stage.join("7-1")).expect("link");
            bind(&folder);
            fs::write(folder.join("below/3"), "new").expect("write");
            unbind(&folder);
            assert_eq!(fs::read(folder.join("below/3")).expect("read"), b"new");
            assert!(!folder.join(".fsure-ram").exists());
        },
    );
}

#[test]
fn what_is_not_to_be_seen_from_here_is_not_given_up() {
    on_own_machine(
        module_path!(),
        "what_is_not_to_be_seen_from_here_is_not_given_up",
        64,
        |disk| {
            let folder = disk.folder();
            let run = ram(&["bind", "--max-loss", "1h"], &folder);
            assert_eq!(run.code, 0, "{run:?}");
            kill_daemons();
            fs::write(folder.join("only"), "in memory").expect("write");
            // Among mounts of which none of this is told to the others.
            let path = folder.display();
            for does in ["recover", "bind"] {
                let script = format!("umount {path} && {FSURE} ram {does} {path}");
                let mut away = Command::new("unshare");
                away.args(["-m", "--propagation", "private", "sh", "-c", &script]);
                let away = away.output().expect("unshare");
                let stderr = String::from_utf8_lossy(&away.stderr);
                assert!(
                    away.status.code() == Some(2) && stderr.contains("in the mount namespace"),
                    "{stderr}"
                );
            }
            let run = ram(&["recover"], &folder);
            assert!(run.code == 0 && run.stdout.contains("kept again"), "{run:?}");
            unbind(&folder);
            assert_eq!(fs::read(folder.join("only")).expect("read"), b"in memory");
        },
    );
}

#[test]
fn a_signal_waits_for_the_processes_in_the_way() {
    on_own_machine(module_path!(), "a_signal_waits_for_the_processes_in_the_way", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let shell = Shell::new(&format!("cd {}; exec 3>open", folder.display()));
        sh(&format!("kill -TERM {}", process("keeper", 0)));
        until(&folder, |_, state| state["ending"] == true);
        fs::write(folder.join("late"), "x").expect("it is writable");
        until_on_disk("late", b"x");
        drop(shell);
        wait_while(|| is_bound(&folder));
        assert_eq!(fs::read(folder.join("late")).expect("read"), b"x");
    });
}

/// The units with the command that was built in the place of the installed one.
#[test]
fn the_units_are_as_systemd_wants_them() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/systemd");
    let folder = Tree::new();
    for (unit, instance) in [
        ("fsure-ram@.service", "fsure-ram@srv-my\\x20work.service"),
        ("fsure-ram-recover.service", "fsure-ram-recover.service"),
        ("fsure-ram-sleep.service", "fsure-ram-sleep.service"),
    ] {
        let text = fs::read_to_string(units.join(unit)).expect("a unit");
        folder.write(instance, text.replace("/usr/bin/fsure", FSURE));
    }
    let mut command = Command::new("systemd-analyze");
    command.arg("verify");
    command.args(fs::read_dir(folder.root()).expect("list").map(|one| one.expect("one").path()));
    let Ok(output) = command.output() else {
        return skip("the_units_are_as_systemd_wants_them", "systemd-analyze is not there");
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

/// Every hint is typed as it is printed, in a folder with a blank and a quotation mark.
#[test]
fn a_hint_works_as_it_is_printed() {
    on_own_machine(module_path!(), "a_hint_works_as_it_is_printed", 64, |disk| {
        let folder = disk.0.join("it's my work");
        fs::create_dir(&folder).expect("make");
        let type_after = |text: &str, begin: &str| {
            let at = text.find(begin).unwrap_or_else(|| panic!("no '{begin}' in: {text}"));
            let line = text[at..].lines().next().expect("a line");
            let own = Path::new(FSURE).parent().expect("a folder").display();
            sh(&format!("PATH={own}:$PATH; {line}"));
        };
        bind(&folder);
        let again = ram(&["bind"], &folder.join("."));
        assert_eq!(again.code, 2, "{again:?}");
        fs::create_dir(folder.join("sub folder")).expect("make");
        let inner = ram(&["bind"], &folder.join("sub folder"));
        type_after(&inner.stderr, "fsure ram unbind");
        bind(&folder);
        kill_daemons();
        let (mut run, advice) = (ram(&["status"], &folder), "fsure ram recover");
        wait_while(|| {
            run = ram(&["status"], &folder);
            !run.stdout.contains(advice)
        });
        type_after(&run.stdout, advice);
        // A daemon on a busy machine is late with its first generation, and says so.
        until(&folder, |code, _| code == 0);
        let cover = folder.join("sub folder");
        sh(&format!("mount -t tmpfs cover \"{}\"", cover.display()));
        let run = ram(&["unbind"], &folder);
        assert_eq!(run.code, 2, "{run:?}");
        type_after(&run.stderr, "umount");
        unbind(&folder);
    });
}
