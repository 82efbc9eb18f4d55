//! The commands that measure storage, cut its power, defer its flushes and watch it. What they
//! find does not matter here.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::json_schema::{Printed, TEST};
use crate::support::powercut::{Place, Talking, check, witness, witnessed_writes};
use crate::support::{EXT4, Image, Run, crash, fsure};

const NO_HOME: &str = "/nonexistent";

/// A folder on the file system of the build, which is none in memory.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// `speed` and `flush`.
pub(crate) fn print_measurements() -> Printed {
    let mut printed = Printed::default();
    let home = Path::new(NO_HOME);
    // In memory, where it is quick.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { TempDir::new_in(memory).expect("a folder") } else { folder() };
    let flush = ["flush", "--time", "5ms", "--threads", "1", "--profile", "sqlite"];
    printed.run(home, &[&flush[..], &[text(place.path())]].concat());
    printed.run(home, &["flush", "/a folder that is not there"]);
    let saves = folder();
    let saves = ["one", "two"].map(|name| saves.path().join(name));
    for saved in &saves {
        let short = ["flush", "--time", "5ms", "--threads", "1", "--rate", "1000/s", "--save"];
        printed.run(home, &[&short[..], &[text(saved), text(place.path())]].concat());
    }
    printed.run(home, &["flush", "compare", text(&saves[0]), text(&saves[1])]);
    let place = folder();
    let saved = place.path().join("saved");
    let saved = text(&saved);
    let rungs = ["--rungs", "void,disk read direct,verify", "--runs", "1", "--size", "1M"];
    let more = ["--budget", "20s", "--cache", "64M", "--save", saved, text(place.path())];
    printed.run(home, &[&["speed"], &rungs[..], &more].concat());
    print_requests(&mut printed, place.path());
    let again = place.path().join("again");
    let short = ["speed", "--rungs", "void", "--runs", "1", "--size", "1M", "--save"];
    printed.run(home, &[&short[..], &[text(&again), text(place.path())]].concat());
    printed.run(home, &["speed", "compare", saved, text(&again)]);
    // No disk has the space for this.
    let too_large = ["--rungs", "void", "--runs", "1", "--size", "1M", "--cache", "1000T"];
    printed.run(home, &[&["speed"], &too_large[..], &[text(place.path())]].concat());
    let tree = ["speed", "--tree", "--bytes", "1M", "--runs", "1", text(place.path())];
    let run = printed.run(home, &tree);
    assert_eq!(run.code, 0, "{run:?}");
    let is_of = |name: &str, line: &Value| line["type"] == name;
    if !printed.lines.iter().any(|(_, line)| is_of("series", line)) {
        let mut reasons = printed.lines.iter().filter(|(_, line)| is_of("not-run", line));
        let why = reasons.next().map_or(String::new(), |(_, line)| line["why"].to_string());
        printed.excuse(&["series"], &why);
    }
    printed
}

/// `speed --io`: in a folder on any disk, and over the area of a device of the test's own.
fn print_requests(printed: &mut Printed, place: &Path) {
    let home = Path::new(NO_HOME);
    let io = ["speed", "--io", "random,sustained", "--size", "64M", "--runs", "1"];
    printed.run(home, &[&io[..], &["--budget", "4s", text(place)]].concat());
    match Image::new(&EXT4, 64) {
        Ok(image) => {
            let area = ["speed", "--io", "area", "--budget", "2s", text(image.root())];
            printed.run(home, &area);
        }
        Err(why) => printed.excuse(&["area"], &why),
    }
}

/// `powercut`, `defer`, `uncached`, `hot`, `flush trace` and `ram try`, and stored results.
pub(crate) fn print_rest() -> Printed {
    let mut printed = Printed::default();
    print_powercut(&mut printed);
    let place = folder();
    let defer = ["defer", "--max-loss", "1s", "--force-unordered", "--dir", text(place.path())];
    let run = printed.run(Path::new(NO_HOME), &[&defer[..], &["--", "true"]].concat());
    if run.code != 0 {
        printed.excuse(&["defer_summary"], &run.stderr);
    }
    let run = printed.run(Path::new(NO_HOME), &["uncached", "--", "true"]);
    if run.code != 0 {
        printed.excuse(&["uncached_summary"], &run.stderr);
    }
    keep_experiments(&mut printed);
    print_hot(&mut printed);
    print_flush_trace(&mut printed);
    print_trial(&mut printed);
    printed
}

/// The results of the experiments, as they are stored in `docs/experiments`. One kind of them is
/// no command's: a script runs programs in several ways.
fn keep_experiments(printed: &mut Printed) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments");
    for file in crate::experiments::results(&folder) {
        let text = std::fs::read_to_string(&file).expect("read a result");
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        printed.keep_lines(&file.to_string_lossy(), lines);
    }
}

/// A witness, a writer that is killed, a check, and a writer that ends.
fn print_powercut(printed: &mut Printed) {
    let place = Place::new();
    let (mut witness, address) = witness(place.home(), "127.0.0.1:0");
    printed.keep_lines("powercut witness", [witness.first_line.clone()]);
    let write = ["write", place.disk(), "--witness", &address, "--methods", "fsync"];
    let writer = Talking::start(place.home(), &write);
    printed.keep_lines("powercut write", [writer.first_line.clone()]);
    let run = writer.first_line["run"].as_str().expect("a name").to_owned();
    while witnessed_writes(place.home(), &run) == 0 {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    writer.kill();
    printed.keep_lines("powercut check", check(place.home(), &place.disk, &address, &[]).0);
    // By this seed it writes until the cut.
    let cut = ["--seed", "1", "--cut-cmd", "true", "--cut-wait", "0s-0s", "--for", "0.3s"];
    let args = [&["powercut"], &write[..], &cut].concat();
    let run = printed.run(place.home(), &args);
    assert_eq!(run.code, 0, "{run:?}");
    let mut lines = Vec::new();
    let has = |lines: &[Value], name: &str| lines.iter().any(|line| line["type"] == name);
    while !(has(&lines, "asked") && has(&lines, "silence") && has(&lines, "writer")) {
        lines.push(witness.next().expect("a line of the witness"));
    }
    printed.keep_lines("powercut witness", lines);
    printed.excuse(&["cutting"], "the writer was over before its time to cut the power");
}

fn print_hot(printed: &mut Printed) {
    let place = folder();
    let place = place.path().canonicalize().expect("resolve it");
    let watch = |args: &[&str]| {
        thread::scope(|scope| {
            let command = [&["--json", "hot"], args, &["--for", "0.3s", text(&place)]].concat();
            let run = scope.spawn(move || fsure(&command));
            while !run.is_finished() {
                let file = File::create(place.join("file")).expect("make a file");
                (&file).write_all(b"written").expect("write");
                file.sync_all().expect("sync");
                thread::sleep(std::time::Duration::from_millis(5));
            }
            run.join().expect("a run")
        })
    };
    let run = watch(&[]);
    printed.keep("hot", &run);
    if run.code != 0 {
        let kinds = ["hot_folder", "hot_summary", "advice", "hot_call", "hot_interval"];
        printed.excuse(&kinds, &run.stderr);
        return printed.excuse(&["hot_recorded_interval", "hot_record_summary"], &run.stderr);
    }
    for (kind, args) in
        [("hot_call", &["--log"][..]), ("hot_interval", &["--top", "--interval", "0.1s"])]
    {
        let run = watch(args);
        printed.keep(&format!("hot {}", args[0]), &run);
        if run.code != 0 {
            printed.excuse(&[kind], &run.stderr);
        }
    }
    let run = watch(&["advise"]);
    printed.keep("hot advise", &run);
    if !run.stdout.contains(r#""source":"ebpf""#) {
        printed.excuse(&["advice"], "without eBPF there is no advice");
    }
    print_history(printed);
}

/// `hot record`, and what it has stored.
fn print_history(printed: &mut Printed) {
    let place = folder();
    let store = place.path().join("store");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["hot", "record", "--json", "--interval", "1s", "--store", text(&store)]);
    let mut recorder = command
        .env("XDG_CONFIG_HOME", NO_HOME)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start fsure");
    let output = BufReader::new(recorder.stdout.take().expect("a pipe"));
    let mut lines: Vec<Value> = Vec::new();
    for line in output.lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        // One signal: a second one would end it at once.
        if line["type"] == "interval" && lines.iter().all(|line| line["type"] != "interval") {
            let pid = Pid::from_child(&recorder);
            kill_process(pid, Signal::TERM).expect("send a signal");
        }
        lines.push(line);
    }
    let code = recorder.wait().expect("wait for fsure").code();
    printed.keep_lines("hot record", lines);
    if code != Some(0) {
        let why = "it cannot be recorded here";
        return printed.excuse(&["hot_recorded_interval", "hot_record_summary"], why);
    }
    for sub in [&["hot", "--history"][..], &["hot", "advise", "--history"]] {
        printed.run(Path::new(NO_HOME), &[sub, &["--store", text(&store)]].concat());
    }
}

/// `flush trace`, whose command prints nothing between the lines.
fn print_flush_trace(printed: &mut Printed) {
    let place = folder();
    let command = ["--", "sync", text(place.path())];
    let run = printed.run(Path::new(NO_HOME), &[&["flush", "trace"][..], &command].concat());
    if run.code != 0 {
        let kinds = ["flushes", "flushed_file", "flush_trace_summary"];
        printed.excuse(&kinds, &run.stderr);
    }
}

/// `ram try`, whose command prints nothing between the lines.
fn print_trial(printed: &mut Printed) {
    let place = folder();
    let trial = ["ram", "try", "--runs", "1", text(place.path()), "--", "true"];
    let run = printed.run(Path::new(NO_HOME), &trial);
    if run.code != 0 {
        printed.excuse(&["trial", "trial_summary"], &run.stderr);
    }
}

/// `crash`, with each of its forms.
pub(crate) fn print_crashes() -> Printed {
    let mut printed = Printed::default();
    let place = folder();
    // It flushes nothing, and so loses what it acknowledges.
    let workload = ["--workload", "append:none", "--drive", "honest", "--fs", "folder"];
    let folder_cuts = [&workload[..], &["--cuts", "1"]].concat();
    let of_cuts = &["cut", "drive", "crash_summary"];
    print_crash(&mut printed, place.path(), &folder_cuts, of_cuts);
    print_crash(&mut printed, place.path(), &[&["--matrix"], &folder_cuts[..]].concat(), &["cell"]);
    let error = ["--error", "eio", "--fs", "ext4", "--size", "64M"];
    print_crash(&mut printed, place.path(), &error, &["flush_after_error"]);
    print_serving(&mut printed, place.path());
    printed
}

fn print_crash(printed: &mut Printed, place: &Path, args: &[&str], kinds: &[&'static str]) {
    let Some(report) = crash(TEST, place, args) else {
        return printed.excuse(kinds, "fsure crash cannot run on this machine");
    };
    if let Some(error) = report.lines.iter().find(|line| line["type"] == "error") {
        printed.excuse(kinds, &error["message"].to_string());
    }
    let all = [report.start].into_iter().chain(report.lines);
    printed.keep_lines(&format!("crash {}", args.join(" ")), all);
}

/// A drive that is served, and ended by a request.
fn print_serving(printed: &mut Printed, place: &Path) {
    let socket = place.join("socket");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["crash", "--json", "--serve"]).arg(&socket).stdout(Stdio::piped());
    let mut server = command.spawn().expect("start fsure");
    let lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let mut kept = String::new();
    for line in lines {
        let line = line.expect("read a line");
        if line.contains(r#""type":"serving""#) {
            let mut client = BufReader::new(UnixStream::connect(&socket).expect("connect"));
            client.get_mut().write_all(b"{\"do\":\"end\"}\n").expect("ask");
            client.read_line(&mut String::new()).expect("an answer");
        }
        kept += &format!("{line}\n");
    }
    let code = server.wait().expect("wait").code().expect("an exit code");
    let run = Run { code, stdout: kept, stderr: String::new() };
    assert_eq!(run.code, 0, "{run:?}");
    printed.keep("crash --serve", &run);
    // It may be gone already.
    let _ = fs::remove_file(&socket);
}
