//! Several folders in one `fsure ram bind`, and those of a preset: each is in RAM for itself, and
//! one that cannot be, or whose daemon is killed, takes nothing from another.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::ram_machine::{
    FSURE, Shell, is_bound, is_there, kill, on_own_machine, ram, sh, status, wait_while,
};
use crate::support::{Run, code, fsure, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Makes folders with a file each.
fn folders(disk: &Path, names: &[&str]) -> Vec<PathBuf> {
    let folder = |name: &&str| {
        let folder = disk.join(name);
        fs::create_dir_all(&folder).expect("make");
        fs::write(folder.join("file"), "old").expect("write");
        folder
    };
    names.iter().map(folder).collect()
}

fn texts(folders: &[PathBuf]) -> Vec<&str> {
    folders.iter().map(|folder| folder.to_str().expect("text")).collect()
}

/// Runs `fsure ram` on several folders.
fn ram_all(args: &[&str], folders: &[PathBuf]) -> Run {
    fsure(&[&["ram"], args, &texts(folders)].concat())
}

/// The processes of each folder in RAM, by the folder's path.
fn daemons() -> BTreeMap<PathBuf, Vec<u64>> {
    let read =
        |file: PathBuf| -> Option<Value> { serde_json::from_slice(&fs::read(file).ok()?).ok() };
    let homes =
        fs::read_dir("/run/fsure/ram").into_iter().flatten().flatten().map(|entry| entry.path());
    let daemons = homes.filter(|home| home.is_dir()).map(|home| {
        let bound = read(home.join("bound.json")).unwrap_or_default();
        let path = PathBuf::from(bound["path"].as_str().unwrap_or_default());
        // The keeper first: it would start another worker.
        let numbers = ["keeper", "worker"]
            .into_iter()
            .filter_map(|role| read(home.join(format!("{role}.json")))?["number"].as_u64());
        (path, numbers.collect())
    });
    daemons.collect()
}

#[test]
fn several_folders_are_in_ram_each_for_itself() {
    on_own_machine(module_path!(), "several_folders_are_in_ram_each_for_itself", 64, |disk| {
        let all = folders(&disk.0, &["a", "b", "c"]);
        let plan = ram_all(&["bind", "-n"], &all);
        assert_eq!(
            (plan.code, plan.stdout.matches("Nothing was done").count()),
            (0, 3),
            "{plan:?}"
        );
        assert!(!all.iter().any(|folder| is_bound(folder)));
        // One that is in use, and one that is not there.
        let shell = Shell::new(&format!("exec 3>>{}/file", all[1].display()));
        let mut named = all.clone();
        named.insert(2, disk.0.join("none"));
        let run = ram_all(&["bind", "--max-loss", "300ms"], &named);
        assert_eq!((run.code, run.stdout.matches("is in RAM").count()), (2, 2), "{run:?}");
        for words in ["writes to", "none is not a folder", "2 of 4 folders are in RAM", "b, "] {
            assert!(run.stderr.contains(words), "{words}: {run:?}");
        }
        assert_eq!([0, 1, 2].map(|place| is_bound(&all[place])), [true, false, true]);
        drop(shell);
        let run = ram_all(&["bind", "--max-loss", "300ms"], &all[1..2]);
        assert_eq!(run.code, 0, "{run:?}");
        // The daemon of one is killed: its content stays, and the others go on.
        let killed = daemons().remove(&all[0]).expect("its processes");
        assert_eq!(killed.len(), 2, "a keeper and a worker");
        kill(&killed);
        for folder in &all {
            fs::write(folder.join("file"), "new").expect("write");
        }
        assert_eq!(status(&all[0]).1["kept"], false);
        let run = ram_all(&["sync"], &all[1..]);
        assert_eq!((run.code, run.stdout.matches("is on the disk").count()), (0, 2), "{run:?}");
        let run = ram_all(&["status"], &all);
        assert_eq!((run.code, run.stdout.matches("worst loss now").count()), (1, 2), "{run:?}");
        // One cannot be unbound yet; the others are nevertheless, and the one that was killed is
        // taken over for it.
        let shell = Shell::new(&format!("cd {}", all[2].display()));
        let run = ram_all(&["unbind"], &all);
        assert_eq!((run.code, run.stdout.matches(": unbound;").count()), (2, 2), "{run:?}");
        assert_eq!([0, 1, 2].map(|place| is_bound(&all[place])), [false, false, true]);
        drop(shell);
        wait_while(|| ram_all(&["unbind"], &all[2..]).code != 0);
        for folder in &all {
            assert_eq!(fs::read(folder.join("file")).expect("read"), b"new");
            assert!(!folder.join(".fsure-ram").exists());
        }
        assert!(!killed.iter().any(|process| is_there(*process)));
    });
}

/// Those that are in RAM by then stay there, the one under way is taken back, and no other begins.
#[test]
fn an_interrupted_bind_of_several_says_which_are_in_ram() {
    let test = "an_interrupted_bind_of_several_says_which_are_in_ram";
    on_own_machine(module_path!(), test, 128, |disk| {
        let all = folders(&disk.0, &["a", "b", "c"]);
        // So that it takes a moment to fill.
        fs::write(all[1].join("large"), vec![7; 40 << 20]).expect("write");
        let mut command = Command::new(FSURE);
        command.args(["ram", "bind"]).args(&all).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start fsure");
        let is_begun = || daemons().contains_key(&all[1]);
        while !is_begun() && child.try_wait().expect("ask for it").is_none() {}
        kill_process(Pid::from_child(&child), Signal::INT).expect("send a signal");
        let output = child.wait_with_output().expect("wait for fsure");
        let words = String::from_utf8_lossy(&output.stderr);
        if code(output.status) == 0 {
            let test = "an_interrupted_bind_of_several_says_which_are_in_ram";
            return skip(test, "all were in RAM before the signal came");
        }
        assert_eq!(code(output.status), 130, "{words}");
        assert!(is_bound(&all[0]) && !is_bound(&all[2]), "{words}");
        let named = format!("; not: {}, {}", all[1].display(), all[2].display());
        let named_last =
            format!("2 of 3 folders are in RAM and stay there; not: {}", all[2].display());
        assert!(words.contains(&named) || words.contains(&named_last), "{words}");
        if words.contains(&named) {
            wait_while(|| is_bound(&all[1]));
        }
        assert_eq!(ram(&["unbind"], Path::new("--all")).code, 0);
    });
}

#[test]
fn what_makes_no_sense_together_is_refused_before_anything_is_done() {
    let test = "what_makes_no_sense_together_is_refused_before_anything_is_done";
    on_own_machine(module_path!(), test, 64, |disk| {
        let all = folders(&disk.0, &["a", "a/b", "c"]);
        let again = disk.0.join("c/../c");
        for (named, words) in [
            (vec![all[2].clone(), all[0].clone(), all[1].clone()], "and is in RAM with it"),
            (vec![all[2].clone(), again], "is named twice"),
        ] {
            let run = ram_all(&["bind"], &named);
            assert!(run.code == 2 && run.stderr.contains(words), "{run:?}");
        }
        let run = ram_all(&["bind", "--foreground"], &all[1..]);
        assert!(run.code == 2 && run.stderr.contains("keeps one folder"), "{run:?}");
        assert!(!all.iter().any(|folder| is_bound(folder)));
    });
}

/// Runs `fsure ram bind --preset` with another home folder.
fn preset(name: &str, args: &[&str], home: &Path) -> Run {
    let mut command = Command::new(FSURE);
    command.args(["ram", "bind", "--preset", name]).args(args);
    let output = command.env("HOME", home).env_remove("SUDO_UID").output().expect("start fsure");
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_preset_says_what_is_at_risk_and_binds_what_is_there() {
    let test = "a_preset_says_what_is_at_risk_and_binds_what_is_there";
    on_own_machine(module_path!(), test, 64, |disk| {
        let home = disk.0.join("home");
        fs::create_dir(&home).expect("make");
        let run = preset("browser", &[], &home);
        let words = format!("no folder of the preset 'browser' is there: {}", home.display());
        assert!(run.code == 2 && run.stderr.contains(&words), "{run:?}");
        let all = folders(&home, &[".mozilla/firefox", ".config/chromium"]);
        let run = preset("browser", &["-n"], &home);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.starts_with("Preset browser. At risk in a crash, of the last 1 s: "));
        let there =
            |folder: &PathBuf| run.stdout.contains(&format!("  there      {}", folder.display()));
        assert!(all.iter().all(there) && run.stdout.contains("not there  "), "{run:?}");
        assert!(!all.iter().any(|folder| is_bound(folder)));
        let run = preset("browser", &["--json", "--max-loss", "5s"], &home);
        assert_eq!(run.code, 0, "{run:?}");
        let lines: Vec<Value> =
            run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().expect("text")).collect();
        assert_eq!(kinds, ["start", "preset", "bound", "bound"], "the risk comes first");
        assert!(all.iter().all(|folder| is_bound(folder)));
        assert_eq!(ram(&["unbind"], Path::new("--all")).code, 0);
        sh(&format!("rm -r {}/.config", home.display()));
        let run = preset("caches", &["-n"], &home);
        assert!(run.code == 2 && run.stderr.contains("/.cache"), "{run:?}");
        assert_eq!(preset("colours", &["-n"], &home).code, 2);
    });
}
