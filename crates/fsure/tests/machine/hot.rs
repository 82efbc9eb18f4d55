//! `fsure hot` as its users meet it: counts of what this test does itself, the
//! lines that programs read, what is said without root, and an early end. That
//! each kind of call is counted is tested in `fsure-os`.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Mounted, Run, code, fsure, or_skip, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A folder whose path has no link in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("make a folder");
    let path = folder.path().canonicalize().expect("resolve it");
    (folder, path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// `fsure hot`, with further arguments; without an end.
fn command(sub: &[&str], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.arg("hot").args(sub).args(["--for", "1h"]).args(args);
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Does `work` while it is watched, and ends that early. `None`, loudly, where
/// it cannot be watched here.
fn watched(test: &str, mut command: Command, work: impl Fn()) -> Option<Run> {
    let mut started = Started(Some(command.spawn().expect("start fsure")));
    let begun = Instant::now();
    loop {
        let child = started.0.as_mut().expect("it is there");
        if is_watching(child) {
            break;
        }
        if child.try_wait().expect("ask for it").is_some() {
            skip(test, &started.ended().stderr);
            return None;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not begin to watch");
        std::thread::sleep(Duration::from_millis(10));
    }
    work();
    let child = started.0.as_ref().expect("it is there");
    kill_process(Pid::from_child(child), Signal::INT).expect("send a signal");
    Some(started.ended())
}

/// Killed where a test fails before it ends it: it would watch for an hour.
struct Started(Option<Child>);

impl Started {
    fn ended(mut self) -> Run {
        ended(self.0.take().expect("it is there"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns true if the child has its means to watch: a program in the kernel whose link
/// is there, or marks.
fn is_watching(child: &Child) -> bool {
    let list = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", child.id()));
    let links = list("fd").into_iter().flatten().flatten();
    let names = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    let is_link = |name: &PathBuf| {
        let name = name.to_string_lossy();
        name.contains("bpf_link") || name.contains("raw-tracepoint")
    };
    let infos = list("fdinfo").into_iter().flatten().flatten();
    let mut infos = infos.filter_map(|info| std::fs::read_to_string(info.path()).ok());
    let is_mark = |line: &str| line.starts_with("fanotify ") && line.contains(" mask:");
    // Two programs count calls, each attached by a link; others come behind.
    names.filter(is_link).count() >= 2 || infos.any(|info| info.lines().any(is_mark))
}

fn ended(child: Child) -> Run {
    let output = child.wait_with_output().expect("wait for fsure");
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// All lines, of which the last is the summary.
fn lines(run: &Run) -> Vec<Value> {
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| line["type"] != "start").collect();
    let last = lines.last().expect("a line");
    assert_eq!((&last["type"], &last["exit_code"]), (&"summary".into(), &run.code.into()));
    lines
}

fn of_path<'a>(lines: &'a [Value], path: &Path) -> &'a Value {
    let line = lines.iter().find(|line| line["path"] == text(path));
    line.unwrap_or_else(|| panic!("{} is not among {lines:#?}", path.display()))
}

/// Ten writes of 100 bytes, four reads, three flushes.
fn work_in(folder: &Path) {
    std::fs::create_dir_all(folder).expect("make a folder");
    let file = File::create(folder.join("file")).expect("make a file");
    for place in 0..10 {
        file.write_all_at(&[1; 100], place * 100).expect("write");
    }
    (0..3).for_each(|_| file.sync_all().expect("flush"));
    let mut file = File::open(folder.join("file")).expect("open it");
    (0..4).for_each(|_| file.read_exact(&mut [0; 50]).expect("read"));
}

#[test]
fn io_is_reported_exactly_and_by_program() {
    let _alone = crate::support::serial::alone();
    let test = "io_is_reported_exactly_and_by_program";
    let (_folder, path) = folder();
    let work = || {
        work_in(&path.join("a/b"));
        std::fs::write(path.join("a/file"), "12345").expect("write");
    };
    let command = command(&[], &["--json", "--source", "ebpf", text(&path)]);
    let Some(run) = watched(test, command, work) else { return };
    assert_eq!(run.code, 130, "{}", run.stderr);
    let lines = lines(&run);
    let b = of_path(&lines, &path.join("a/b"));
    for (field, value) in [
        ("writes", 10),
        ("bytes_written", 1000),
        ("reads", 4),
        ("bytes_read", 200),
        ("fsyncs", 3),
        ("processes", 1),
    ] {
        assert_eq!(b[field], value, "{field}: {b:#}");
    }
    assert!(b["fsync_ms"].as_f64().expect("a number") > 0.0, "{b:#}");
    assert!(
        ["bind", "pin", "try", "leave", "exclude"].contains(&b["advice"].as_str().expect("words"))
    );
    assert_eq!(b["type"], "folder");
    let a = of_path(&lines, &path.join("a"));
    assert_eq!((&a["bytes_written"], &a["below"]["bytes_written"]), (&5.into(), &1005.into()));
    assert_eq!(lines[0]["path"], text(&path.join("a/b")), "hottest first");
    let summary = &lines[lines.len() - 1];
    assert_eq!((&summary["source"], &summary["ended_early"]), (&"ebpf".into(), &true.into()));
    assert_eq!(summary["fell_back"], Value::Null);
    // A machine that does much else fills the ring of names, and each is reported again.
    let lost = summary["lost"].as_array().expect("a list");
    let is_again = |line: &Value| line["what"].as_str().expect("words").starts_with("names");
    assert!(lost.iter().all(is_again), "{lost:?}");
    assert!(summary["seconds"].as_f64().expect("a number") > 0.0);
    assert!(!summary["not_seen"].as_array().expect("a list").is_empty());
}

#[test]
fn a_log_has_each_call_and_the_summary_behind_it() {
    let _alone = crate::support::serial::alone();
    let test = "a_log_has_each_call_and_the_summary_behind_it";
    let (_folder, path) = folder();
    let file = path.join("a/fi\nle");
    let work = || {
        work_in(&path.join("b"));
        std::fs::create_dir_all(path.join("a")).expect("make a folder");
        std::fs::write(&file, "12345").expect("write");
        File::open(&file).expect("open it").sync_all().expect("flush");
    };
    let saved = path.join("saved");
    let args = ["--json", "--log", "--save", text(&saved), text(&path)];
    let Some(run) = watched(test, command(&[], &args), work) else { return };
    let all = lines(&run);
    let calls: Vec<_> = all.iter().filter(|line| line["type"] == "call").collect();
    let count = |call: &str| calls.iter().filter(|line| line["call"] == call).count();
    assert_eq!([count("pwrite64"), count("write"), count("read"), count("fsync")], [10, 1, 4, 4]);
    let own = std::process::id();
    for call in &calls {
        assert_eq!((&call["process"], &call["error"]), (&own.into(), &Value::Null), "{call}");
        assert!(call["took_ms"].as_f64().expect("a number") > 0.0, "{call}");
        assert_eq!(call["waited"], call["operation"] == "flush", "{call}");
    }
    let write = calls.iter().find(|call| call["call"] == "write").expect("a write");
    assert_eq!((&write["path"], &write["bytes"]), (&text(&file).into(), &5.into()));
    // In the order in which they ended, and saved as they were printed.
    let times: Vec<_> = calls.iter().map(|call| call["time"].as_str().expect("text")).collect();
    assert!(times.is_sorted(), "{times:?}");
    let kept = std::fs::read_to_string(&saved).expect("read it");
    assert_eq!(
        kept.lines().skip(1).collect::<Vec<_>>(),
        run.stdout.lines().skip(1).collect::<Vec<_>>()
    );
    let summary = &all[all.len() - 1];
    assert_eq!((&summary["logged"], &summary["writes"]), (&19.into(), &11.into()));
    // Filters choose calls; the counts have them all.
    for (filter, logged) in [
        (&["--operation", "flush"][..], 4),
        (&["--path", "*/b/*", "--operation", "read,write"], 14),
        (&["--program", "no such program"], 0),
        (&["--program", &own.to_string(), "--path", "*/a/*"], 2),
    ] {
        let args = [&["--json", "--log", text(&path)], filter].concat();
        let run = watched(test, command(&[], &args), work).expect("it was watched before");
        let all = lines(&run);
        let calls = all.iter().filter(|line| line["type"] == "call").count();
        let summary = &all[all.len() - 1];
        assert_eq!(calls, logged, "{filter:?}");
        assert_eq!((&summary["logged"], &summary["writes"]), (&logged.into(), &11.into()));
    }
    let run = watched(test, command(&[], &["--log", text(&path)]), work).expect("as before");
    let mut text_lines = run.stdout.lines();
    assert!(text_lines.next().is_some_and(|head| head.contains("W: waited for the device")));
    assert!(run.stdout.contains("/a/fi\\nle"), "on one line: {}", run.stdout);
    assert!(run.stdout.contains("Logged: 19 calls."), "{}", run.stdout);
}

#[test]
fn a_log_of_a_command_is_beside_its_output() {
    let _alone = crate::support::serial::alone();
    let test = "a_log_of_a_command_is_beside_its_output";
    let (_folder, path) = folder();
    let script = "cd $0; (setsid sh -c 'echo x > a') & wait; sync a; echo x > /dev/full; echo out";
    let script = ["--", "sh", "-c", script, text(&path)];
    let run = fsure(&[&["hot", "--log", text(&path)], &script[..]].concat());
    if run.code == 2 {
        return skip(test, &run.stderr);
    }
    assert_eq!((run.code, &*run.stdout), (0, "out\n"), "{}", run.stderr);
    for words in [" write ", " fsync ", "Logged: 2 calls.", text(&path.join("a"))] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let run = fsure(&[&["hot", "--log", "--json"], &script[..]].concat());
    assert_eq!((run.code, run.stderr.contains("--json-fd 3 3> calls.jsonl")), (2, true));
}

#[test]
fn a_view_shows_programs_and_folders_until_it_is_ended() {
    let _alone = crate::support::serial::alone();
    let test = "a_view_shows_programs_and_folders_until_it_is_ended";
    let (_folder, path) = folder();
    let work = || {
        for number in 0..20 {
            std::fs::write(path.join("file"), format!("{number}")).expect("write");
            File::open(path.join("file")).expect("open it").sync_all().expect("flush");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Until an interval that has it is over.
        std::thread::sleep(Duration::from_millis(500));
    };
    let args = ["--json", "--top", "--interval", "100ms", text(&path)];
    let Some(run) = watched(test, command(&[], &args), work) else { return };
    let all = lines(&run);
    let intervals: Vec<_> = all.iter().filter(|line| line["type"] == "interval").collect();
    assert!(intervals.len() > 1, "{intervals:?}");
    let sum = |what: &str, name: &str, field: &str| -> u64 {
        let entries = intervals.iter().flat_map(|line| line[what].as_array().expect("a list"));
        let of_name = entries.filter(|entry| entry["path"] == name || entry["program"] == name);
        of_name.map(|entry| entry[field].as_u64().expect("a number")).sum()
    };
    assert_eq!(sum("folders", text(&path), "fsyncs"), 20);
    let own = std::fs::read_to_string("/proc/self/comm").expect("read it");
    assert!(sum("programs", own.trim_end(), "fsyncs") >= 20, "{own}: {intervals:#?}");
    let plain = ["--top", "--interval", "100ms", text(&path)];
    let run = watched(test, command(&[], &plain), work).expect("it was watched before");
    assert!(!run.stdout.contains('\x1b'), "{}", run.stdout);
    assert!(run.stdout.matches("waits ms/s").count() >= 4, "two tables each: {}", run.stdout);
    assert!(run.stdout.contains("Watched for "), "{}", run.stdout);
}

/// Without an end of its own, Ctrl-C is its end, and so is a reader that goes away.
#[test]
fn a_log_without_an_end_is_ended_by_its_user_or_its_reader() {
    let _alone = crate::support::serial::alone();
    let test = "a_log_without_an_end_is_ended_by_its_user_or_its_reader";
    let (_folder, path) = folder();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["hot", "--log", text(&path)]).env("XDG_CONFIG_HOME", "/nonexistent");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let Some(run) = watched(test, start(), || work_in(&path)) else { return };
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains("ended early"), "{}", run.stdout);
    let mut child = start().spawn().expect("start fsure");
    drop(child.stdout.take());
    while child.try_wait().expect("ask for it").is_none() {
        work_in(&path);
    }
    assert_eq!(ended(child).code, 0);
}

#[test]
fn what_needs_ebpf_says_so() {
    let _alone = crate::support::serial::alone();
    for option in ["--log", "--top"] {
        let run = fsure(&["hot", option, "--source", "fanotify"]);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("'{option}' needs eBPF")), "{}", run.stderr);
        let mut command = command(&[], &[option]);
        as_nobody(&mut command);
        let Ok(child) = command.spawn() else {
            return skip("what_needs_ebpf_says_so", "a user without rights cannot start fsure");
        };
        let run = ended(child);
        assert_eq!(run.code, 2, "{}", run.stderr);
        let hint = format!("run it as root: 'sudo fsure hot {option}'");
        assert!(run.stderr.contains(&hint), "{}", run.stderr);
    }
}

#[test]
fn a_folder_is_reported_under_the_requested_path() {
    let _alone = crate::support::serial::alone();
    let test = "a_folder_is_reported_under_the_requested_path";
    let (_folder, path) = folder();
    let [one, other] = ["one", "other"].map(|name| path.join(name));
    std::fs::create_dir(&one).expect("make a folder");
    std::fs::create_dir(&other).expect("make a folder");
    let Some(_mounted) = or_skip(test, Mounted::bind(&one, &other)) else { return };
    let command = command(&[], &["--json", "--source", "ebpf", text(&one)]);
    let Some(run) = watched(test, command, || work_in(&one.join("a"))) else { return };
    assert_eq!(of_path(&lines(&run), &one.join("a"))["writes"], 10);
}

#[test]
fn without_its_process_number_hot_excludes_no_process_and_says_so() {
    let _alone = crate::support::serial::alone();
    let test = "without_its_process_number_hot_excludes_no_process";
    let (_folder, path) = folder();
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", env!("CARGO_BIN_EXE_fsure")])
        .args(["hot", "--json", "--source", "ebpf", "--for", "100ms", text(&path)])
        .output();
    let output = match output {
        Ok(output) if output.status.success() => output,
        other => return skip(test, &format!("{other:?}")),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("which process is fsure itself"), "{stdout}");
}

#[test]
fn notifications_show_less_and_the_report_says_so() {
    let _alone = crate::support::serial::alone();
    let test = "notifications_show_less_and_the_report_says_so";
    let (_folder, path) = folder();
    let command = command(&[], &["--json", "--source", "fanotify", text(&path)]);
    let Some(run) = watched(test, command, || work_in(&path)) else { return };
    let lines = lines(&run);
    let reported = of_path(&lines, &path);
    for (field, most) in [("writes", 10), ("reads", 4)] {
        let count = reported[field].as_u64().expect("a number");
        assert!((1..=most).contains(&count), "{field}: {reported:#}");
    }
    for field in ["fsync_ms", "bytes_written", "bytes_read", "fsyncs", "advice"] {
        assert!(reported[field].is_null(), "{field}: {reported:#}");
    }
    let summary = &lines[lines.len() - 1];
    assert_eq!((&summary["source"], &summary["bytes_read"]), (&"fanotify".into(), &Value::Null));
    let blind = summary["not_seen"].to_string();
    for what in ["merges", "mappings", "io_uring", "fsync"] {
        assert!(blind.contains(what), "{what}: {blind}");
    }
}

/// Makes a command run as the user `nobody`, who has no rights, if the test runs as root.
fn as_nobody(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
}

#[test]
fn without_root_named_folders_are_watched_and_no_others() {
    let _alone = crate::support::serial::alone();
    let test = "without_root_named_folders_are_watched_and_no_others";
    let (_folder, path) = folder();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).expect("open it to all");
    let mut everything = command(&[], &[]);
    as_nobody(&mut everything);
    let Ok(child) = everything.spawn() else {
        return skip(test, "somebody without rights cannot start the program where it is");
    };
    let run = ended(child);
    assert_eq!(run.code, 2, "{}", run.stderr);
    for words in ["without root only folders that are named", "hint: name them", "as root"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let mut exact = command(&[], &["--source", "ebpf", text(&path)]);
    as_nobody(&mut exact);
    let run = ended(exact.spawn().expect("start fsure"));
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("hint: run it as root, or with '--source fanotify'"));
    let mut named = command(&[], &["--json", text(&path)]);
    as_nobody(&mut named);
    let Some(run) = watched(test, named, || work_in(&path)) else { return };
    let lines = lines(&run);
    assert!(of_path(&lines, &path)["writes"].as_u64().expect("a number") >= 1);
    let summary = &lines[lines.len() - 1];
    assert_eq!(summary["source"], "fanotify");
    let why = summary["fell_back"].as_str().expect("words");
    assert!(why.contains("refuses"), "{why}");
}

/// Hides the types of the kernel in a mount namespace of the test.
#[test]
fn without_kernel_type_information_notifications_are_used() {
    let _alone = crate::support::serial::alone();
    let test = "without_kernel_type_information_notifications_are_used";
    let (_folder, path) = folder();
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let hidden = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_fsure"), "hot"]);
        let output = command.args(args).output().expect("start unshare");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
    };
    let (code, _, words) = hidden(&["--for", "100ms", "--source", "ebpf", text(&path)]);
    let words = String::from_utf8_lossy(&words);
    if !words.contains("fsure: ") {
        return skip(test, &words);
    }
    assert_eq!(code, Some(5), "{words}");
    for part in ["the kernel does not describe its types", "'--source fanotify'"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    // What cannot do without says so, and runs nothing.
    let (code, _, words) = hidden(&["--for", "100ms", "--log"]);
    let words = String::from_utf8_lossy(&words);
    assert_eq!((code, words.contains("'--log' needs eBPF")), (Some(5), true), "{words}");
    let made = path.join("made");
    let (code, _, words) = hidden(&["--", "touch", text(&made)]);
    let words = String::from_utf8_lossy(&words);
    assert_eq!((code, made.exists()), (Some(2), false), "{words}");
    assert!(words.contains("watched by eBPF, which is not available here"), "{words}");
    let (code, lines, _) = hidden(&["--for", "100ms", "--json", text(&path)]);
    assert_eq!(code, Some(0), "{lines}");
    let summary: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!(summary["source"], "fanotify");
    let why = summary["fell_back"].as_str().expect("words");
    assert!(why.starts_with("the kernel does not describe its types"), "{why}");
}

#[test]
fn advice_is_given_where_programs_wait() {
    let _alone = crate::support::serial::alone();
    let test = "advice_is_given_where_programs_wait";
    let (_folder, path) = folder();
    if fsure_os::io_trace::is_in_memory(&path).expect("ask") {
        return skip(test, "the folder for temporary files is in memory: set TMPDIR");
    }
    let flush = |name: &str| {
        let file = File::create(path.join(name)).expect("make a file");
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            file.write_all_at(b"x", 0).expect("write");
            file.sync_all().expect("flush");
        }
    };
    let words = command(&["advise"], &[text(&path)]);
    let json = command(&["advise"], &["--json", text(&path)]);
    let Some(run) = watched(test, words, || flush("queue")) else { return };
    let start = format!("bind     {}\n         saves ", path.display());
    assert!(run.stdout.starts_with(&start), "{}", run.stdout);
    let Some(run) = watched(test, json, || flush("orders.sqlite")) else { return };
    let lines = lines(&run);
    let line = of_path(&lines, &path);
    assert_eq!((&line["type"], &line["advice"]), (&"advice".into(), &"exclude".into()), "{line}");
    assert_eq!((&line["risk"], &line["memory_bytes"]), (&"database".into(), &8192.into()));
    assert!(line["saves_s_per_hour"].as_f64().expect("a number") > 10.0, "{line}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let _alone = crate::support::serial::alone();
    let (_folder, path) = folder();
    let file = path.join("file");
    std::fs::write(&file, "").expect("write");
    for args in [
        &["hot", "--for", "0s"][..],
        &["hot", "--for", "5"],
        &["hot", "--by", "colour"],
        &["hot", text(&file)],
        &["hot", "--log", "--top"],
        &["hot", "--top", "--", "true"],
        &["hot", "--program", "cat"],
        &["hot", "--interval", "1s"],
        &["hot", "--log", "--operation", "open"],
    ] {
        let run = fsure(args);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
    }
    for args in [&["hot", "/a folder that is not there"][..], &["hot", "--log", "advise"]] {
        let run = fsure(args);
        assert_eq!((run.code, &*run.stdout), (5, ""), "{args:?}: {}", run.stderr);
    }
}

/// A developer who edits the source has to build it; other developers do not need a compiler.
#[test]
fn the_object_for_the_kernel_was_made_of_its_source() {
    let _alone = crate::support::serial::alone();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fsure-os/bpf");
    let read = |name: &str| std::fs::read(folder.join(name)).expect("read it");
    let digest = Sha256::digest(read("hot.bpf.c"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let object = read("hot.bpf.o");
    let has = object.windows(digest.len()).any(|part| part == digest.as_bytes());
    assert!(has, "hot.bpf.c was edited: run crates/fsure-os/bpf/build");
    assert!(object.len() < 110_000, "{} bytes", object.len());
}
