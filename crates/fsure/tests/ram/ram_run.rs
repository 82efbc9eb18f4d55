//! `fsure ram run`, as root and as the user `nobody`: the command sees memory, and the
//! disk gets all of it, whichever process is killed.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::noise::undisturbed;
use crate::support::ram_run_folders::{NOBODY, Place, User, users, words};
use crate::support::{EXT4, Image, or_skip, skip};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_command_has_its_way_and_its_exit_code() {
    for user in users("the_command_has_its_way_and_its_exit_code") {
        let place = Place::new(user);
        place.write("old", "old");
        let cases: [(&str, i32); 6] = [
            ("test $(cat old) = old && echo new > new", 0),
            ("test $(cat new) = new && rm new && mkdir -p a/b && ln -s ../old a/l; exit 3", 3),
            ("ln old a/b/second && echo more >> old; kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("stat -f -c %T . | grep -qx tmpfs && exit 77", 77),
            ("(sleep 1000 & exec sleep 1000) & echo $! > child; exit 1", 1),
        ];
        for (script, expected) in cases {
            let output = place.run(&[], script).output().unwrap();
            assert_eq!(output.status.code(), Some(expected), "{script}: {}", words(&output));
            assert_eq!(words(&output), "", "{script}");
            place.assert_clean();
        }
        assert_eq!(place.read("old").as_deref(), Some("oldmore\n"));
        assert_eq!((place.read("new"), place.read("a/l").is_some()), (None, true));
        let inode = |name| fs::metadata(place.folder().join(name)).unwrap().ino();
        assert_eq!(inode("old"), inode("a/b/second"));
        assert_eq!(
            fs::metadata(place.folder().join("child")).unwrap().uid(),
            match user {
                User::Own => rustix::process::geteuid().as_raw(),
                User::Nobody => NOBODY,
            }
        );
    }
}

#[test]
fn a_command_that_cannot_be_started_is_reported_as_by_a_shell() {
    let place = Place::new(User::Own);
    if users("a_command_that_cannot_be_started").is_empty() {
        return;
    }
    for (name, code) in [("fsure-that-is-nowhere", 127), ("/dev/null", 126)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        let output =
            command.args(["ram", "run"]).arg(place.folder()).args(["--", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", words(&output));
        assert!(words(&output).contains("start the command"), "{}", words(&output));
        place.assert_clean();
    }
}

/// Starts it, and gives its output line by line.
fn start(command: &mut Command) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

#[test]
fn others_see_the_disk_and_changes_come_to_it_meanwhile() {
    for user in users("others_see_the_disk") {
        let place = Place::new(user);
        place.write("file", "before");
        // Holds until it may go on, which is said outside.
        let go = place.home.path().join("go");
        let wait = format!("until test -e {}; do sleep 0.01; done", go.display());
        let script = format!("echo after > file; mkdir deep; echo 1 > deep/x; {wait}; rm file");
        let mut command = place.run(&["--max-loss", "200ms"], &script);
        let (child, _) = start(&mut command);
        while (place.read("deep/x"), place.read("file"))
            != (Some("1\n".to_owned()), Some("after\n".to_owned()))
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // A second run cannot have it too, nor what is in it.
        for folder in [place.folder(), place.folder().join("deep")] {
            let mut second = place.run_in(&[&folder], &[], "true");
            let output = second.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", words(&output));
            assert!(words(&output).contains("in RAM"), "{}", words(&output));
        }
        fs::write(go, "").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*words(&output)), (Some(0), ""));
        assert_eq!(place.read("file"), None);
        place.assert_clean();
    }
}

#[test]
fn several_folders_are_each_their_own() {
    for user in users("several_folders_are_each_their_own") {
        let (one, other) = (Place::new(user), Place::new(user));
        other.write("x", "x");
        let (first, second) = (one.folder(), other.folder());
        let script = format!("echo 1 > a; mv {}/x .; echo 2 > {0}/b", second.display());
        let output = one.run_in(&[&first, &second], &[], &script).output().unwrap();
        assert_eq!((output.status.code(), &*words(&output)), (Some(0), ""));
        assert_eq!((one.read("a"), one.read("x")), (Some("1\n".into()), Some("x".into())));
        assert_eq!((other.read("b"), other.read("x")), (Some("2\n".into()), None));
        one.assert_clean();
        other.assert_clean();
        let output = one.run_in(&[&first, &first], &[], "true").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(words(&output).contains("contains the other"), "{}", words(&output));
    }
}

#[test]
fn what_cannot_be_kept_is_refused_before_anything_is_done() {
    for user in users("what_cannot_be_kept_is_refused") {
        let place = Place::new(user);
        place.write("file", "1");
        let refused = |command: &mut Command, expected: &str| {
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", words(&output));
            assert!(words(&output).contains(expected), "{expected}: {}", words(&output));
            assert_eq!(output.stdout, b"", "it was started");
            place.assert_clean();
        };
        refused(&mut place.run(&["--size", "4K"], "echo"), "its content takes");
        refused(&mut place.run_in(&[Path::new("/etc")], &[], "echo"), "the system itself");
        for none in ["file", "none"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
            command.args(["ram", "run"]).arg(place.folder().join(none)).args(["--", "echo"]);
            refused(&mut command, "is not a folder");
        }
        let log = fs::File::create(place.folder().join("log")).unwrap();
        place.give(&place.folder().join("log"));
        let mut command = place.run(&[], "echo");
        let status = command.stdout(log).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(2), "the output goes to the covered folder");
        if user == User::Nobody {
            let path = place.folder().join("group");
            fs::write(&path, "").unwrap();
            chown(&path, Some(NOBODY), Some(12)).unwrap();
            refused(&mut place.run(&[], "echo"), "hot/group has group 12");
        }
    }
}

#[test]
fn a_full_memory_is_the_commands_to_see() {
    for user in users("a_full_memory_is_the_commands_to_see") {
        let place = Place::new(user);
        let script =
            "head -c 20000000 /dev/zero | tr '\\0' x > big; echo $?; rm big; echo 1 > small";
        let output = place.run(&["--size", "8M"], script).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(words(&output).contains("No space left"), "{}", words(&output));
        assert_eq!((place.read("big"), place.read("small")), (None, Some("1\n".into())));
        place.assert_clean();
    }
}

#[test]
fn a_signal_that_only_the_command_knows_is_the_commands() {
    for user in users("a_signal_that_only_the_command_knows") {
        let place = Place::new(user);
        let script = "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done";
        let mut command = place.run(&[], script);
        let (child, mut lines) = start(&mut command);
        assert_eq!(lines.next().as_deref(), Some("ready"));
        kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*words(&output)), (Some(9), ""));
        place.assert_clean();
    }
}

#[test]
fn nothing_stays_of_a_run_that_ends_while_it_is_filled() {
    for user in users("nothing_stays_of_a_run_that_ends_while_it_is_filled") {
        let place = Place::new(user);
        (0..2000).for_each(|name| place.write(&name.to_string(), "x"));
        let mut child = place.run(&[], "sleep 1000").spawn().unwrap();
        while !place.folder().join(".fsure-ram").exists() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert!(!child.wait().unwrap().success());
        let begun = Instant::now();
        while place.folder().join(".fsure-ram").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "something of ours is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        place.assert_clean();
    }
}

#[test]
fn a_job_in_the_background_leaves_the_terminal_to_the_shell() {
    let test = "a_job_in_the_background_leaves_the_terminal_to_the_shell";
    if users(test).is_empty() {
        return;
    }
    let place = Place::new(User::Own);
    let at = |name: &str| place.home.path().join(name);
    let mut command = Command::new("script");
    command.args(["-qec", "bash --norc -i", "/dev/null"]).current_dir(place.home.path());
    command.env("F", env!("CARGO_BIN_EXE_fsure")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = match command.stderr(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) => return skip(test, &format!("script: {error}")),
    };
    let mut keys = child.stdin.take().unwrap();
    let mut press = |text: &str| std::io::Write::write_all(&mut keys, text.as_bytes()).unwrap();
    // Again and again: a shell throws away what is typed while it changes the terminal.
    let mut until = |name: &str, keys: &[&str]| {
        let begun = Instant::now();
        while !at(name).exists() {
            for keys in keys {
                press(keys);
                std::thread::sleep(Duration::from_millis(300));
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{name}");
        }
    };
    // Stopped, and in the background from then on; its end is none of the shell's.
    // None of the jobs starts a program for long: a shell that is stopped while it does is not.
    let job = "touch runs; read x < go; echo 1 > hot/made; touch over";
    let pipe = Command::new("mkfifo").arg(at("go")).status().unwrap();
    assert!(pipe.success());
    until("runs", &[&format!("$F ram run hot -- sh -c '{job}'\n")]);
    until("stopped", &["\x1a", "touch stopped\n"]);
    until("over", &["bg; echo > go\n"]);
    until("alive", &["wait; touch alive\n"]);
    // In front again without having been stopped: it can be stopped again.
    let job = "touch works; exec sleep 1000";
    until("works", &[&format!("$F ram run hot -- sh -c '{job}'\n")]);
    until("behind", &["\x1a", "bg; touch behind\n"]);
    until("again", &["fg\n", "\x1a", "touch again\n"]);
    until("killed", &["kill -9 %1; touch killed\n"]);
    std::io::Write::write_all(&mut keys, b"exit\n").unwrap();
    drop(keys);
    child.wait().unwrap();
    assert_eq!(place.read("made").as_deref(), Some("1\n"));
}

/// Returns the content of the files in a folder, by name.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|name| name.unwrap().path());
    let files = names.filter(|path| path.is_file());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect()
}

#[test]
fn a_full_disk_is_waited_for_and_what_is_missing_is_named() {
    undisturbed("a full disk", || {
        let test = "a_full_disk_is_waited_for";
        let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
        let folder = image.root().join("hot");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("old"), "old").unwrap();
        let ballast = image.root().join("ballast");
        let place = Place::new(User::Own);
        // Also where the half of it is on the disk already: the rest then takes its space twice.
        let script = "head -c 8500000 /dev/urandom > big; cp big again; echo written; rm -f old; \
                  read -r line";
        for is_helped in [true, false] {
            fs::write(&ballast, vec![1; 10 << 20]).unwrap();
            let mut command = place.run_in(&[&folder], &["--max-loss", "200ms"], script);
            let (mut child, mut lines) = start(command.stdin(Stdio::piped()));
            assert_eq!(lines.next().as_deref(), Some("written"));
            let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
            let late = errors.next().unwrap().unwrap();
            assert!(late.contains("more than 200ms would be lost"), "{late}");
            let kept: Vec<_> = content(&folder).into_keys().collect();
            assert!(!kept.contains(&"again".to_owned()), "{kept:?}");
            if is_helped {
                fs::remove_file(&ballast).unwrap();
            }
            drop(child.stdin.take());
            let status = child.wait().unwrap();
            let rest: Vec<_> = errors.map(Result::unwrap).collect();
            if is_helped {
                // `read` finds no line.
                assert_eq!((status.code(), rest.len()), (Some(1), 0), "{rest:?}");
                let content = content(&folder);
                assert!(content["big"] == content["again"] && content["big"].len() == 8_500_000);
                assert!(!content.contains_key("old"));
                assert!(!folder.join(".fsure-ram").exists());
                for name in ["big", "again"] {
                    fs::remove_file(folder.join(name)).unwrap();
                }
                fs::write(folder.join("old"), "old").unwrap();
                continue;
            }
            assert_eq!(status.code(), Some(5), "{rest:?}");
            let last = rest.join("\n");
            assert!(last.contains("NOT on the disk") && last.contains("again"), "{last}");
            assert!(last.contains("No space left"), "{last}");
            // The next run finds the last generation.
            fs::remove_file(&ballast).unwrap();
            let output = place.run_in(&[&folder], &[], "ls").output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", words(&output));
            assert!(!folder.join(".fsure-ram").exists());
        }
    });
}

#[test]
fn an_input_and_an_output_are_the_commands() {
    for user in users("an_input_and_an_output_are_the_commands") {
        let place = Place::new(user);
        let mut command = place.run(&[], "cat; echo 1 > x; echo end >&2");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"through").unwrap();
        drop(input);
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((&*stdout, &*words(&output)), ("through", "end\n"));
    }
}

#[test]
fn what_others_do_on_the_disk_side_meanwhile_is_no_loss() {
    for user in users("what_others_do_on_the_disk_side_meanwhile_is_no_loss") {
        let place = Place::new(user);
        place.write("file", "before");
        let mut child = place.run(&[], "echo new > new; echo; read -r end; exit 7");
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        // One generation is there: what is changed after it is found only at the end.
        while place.read("new").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        place.write("file", "of others");
        place.write("stray", "of others");
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{words}");
        assert!(words.contains("stray was made on the disk side"), "{words}");
        assert_eq!(place.read("stray").as_deref(), Some("of others"));
        place.assert_clean();
    }
}

#[test]
fn what_the_command_mounts_in_it_is_in_no_generation_s_way() {
    let test = "what_the_command_mounts_in_it_is_in_no_generation_s_way";
    if !rustix::process::geteuid().is_root() {
        return skip(test, "only root can mount in there");
    }
    let place = Place::new(User::Own);
    fs::create_dir(place.folder().join("below")).unwrap();
    place.write("below/old", "of below");
    let go = place.home.path().join("go");
    let wait = format!("until test -e {}; do sleep 0.01; done", go.display());
    let mount = "mount -t tmpfs foreign below && echo x > below/foreign";
    let script = format!("echo 1 > below/first; {mount}; echo 1 > new; {wait}; rm below/foreign");
    let (child, _) = start(&mut place.run(&["--max-loss", "200ms"], &script));
    let began = std::time::Instant::now();
    while place.read("new").is_none() && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (new, below) = (place.read("new"), ["old", "first", "foreign"]);
    let below = below.map(|name| place.read(&format!("below/{name}")));
    fs::write(go, "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*words(&output)), (Some(0), ""));
    assert_eq!(new.as_deref(), Some("1\n"), "it did not come to the disk meanwhile");
    assert_eq!(below, [Some("of below".to_owned()), Some("1\n".to_owned()), None]);
    assert_eq!(place.read("below/first").as_deref(), Some("1\n"));
    assert!(place.read("below/foreign").is_none());
    place.assert_clean();
}

#[test]
fn a_folder_above_or_below_a_ram_folder_is_refused() {
    let test = "a_folder_above_or_below_a_ram_folder_is_refused";
    for user in users(test) {
        let place = Place::new(user);
        let (inner, go) = (place.folder().join("inner"), place.home.path().join("go"));
        fs::create_dir(&inner).unwrap();
        place.give(&inner);
        place.write("inner/file", "before");
        let wait = format!("echo in; until test -e {}; do sleep 0.01; done", go.display());
        let script = format!("{wait}; echo of inner > file");
        let (child, mut lines) = start(&mut place.run_in(&[&inner], &[], &script));
        assert_eq!(lines.next().as_deref(), Some("in"));
        let output = place.run(&[], "true").output().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let mut bound = Command::new(env!("CARGO_BIN_EXE_fsure"));
        let bound = bound.args(["ram", "bind", "--plan"]).arg(place.folder()).output().unwrap();
        fs::write(go, "").unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), &*words(&ended)), (Some(0), ""));
        let refused = [Some(&output), is_root.then_some(&bound)];
        for output in refused.into_iter().flatten() {
            let words = words(output) + &String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(2), "{words}");
            assert!(words.contains("inner is in RAM"), "{words}");
        }
        assert_eq!(place.read("inner/file").as_deref(), Some("of inner\n"));
        place.assert_clean();
    }
}

#[test]
fn a_loss_that_is_no_bound_is_refused() {
    let place = Place::new(User::Own);
    for loss in ["0ms", "99ms", "30d"] {
        let output = place.run(&["--max-loss", loss], "true").output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && words.contains("is out of range"), "{words}");
    }
}
