//! Outputs that the user names: a regular file is replaced as a whole, a stream is written
//! to as it is, and a link, a FIFO or a device is still there afterwards. A reader of
//! standard output that goes away ends the output and no run.
#![cfg(target_os = "linux")]

mod support;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use support::{Recorded, Run, Tree, fsure, skip};

/// Timeout far beyond the duration of any run here: the test fails then, instead of
/// waiting forever.
const HANGS: Duration = Duration::from_secs(60);

fn os(text: &str) -> OsString {
    OsString::from(text)
}

/// A recorded tree, and a place beside it for outputs.
struct Sample {
    tree: Tree,
    beside: Tree,
}

impl Sample {
    fn new() -> Self {
        let (tree, beside) = (Tree::new(), Tree::new());
        for name in ["a", "b", "sub/c"] {
            tree.write(name, name);
        }
        Recorded::inside(tree.root()).record();
        let run = fsure(&[os("verify"), tree.root().into(), os("--json")]);
        beside.write("result", run.stdout);
        Self { tree, beside }
    }

    /// The calls that take an output, each with what its output begins with.
    fn calls(&self) -> [(Vec<OsString>, &'static str); 3] {
        let root = || OsString::from(self.tree.root());
        let result = OsString::from(self.beside.path("result"));
        [
            (vec![os("export"), root(), os("--format"), os("json"), os("-o")], "{\"type\":\"fsure"),
            (vec![os("verify"), root(), os("--quiet"), os("--metrics")], "# HELP fsure_"),
            (vec![os("report"), result, os("-o")], "<!doctype html>"),
        ]
    }
}

/// A run that is killed if it hangs.
fn ended(mut child: Child) -> Run {
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        drop(stdout.as_mut().map(|stdout| stdout.read_to_string(&mut text)));
        text
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().expect("wait") {
            Some(status) => break status,
            None if begun.elapsed() > HANGS => {
                child.kill().and_then(|()| child.wait()).expect("kill");
                panic!("it hangs");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut errors = String::new();
    drop(stderr.as_mut().map(|stderr| stderr.read_to_string(&mut errors)));
    Run { code: support::code(status), stdout: read.join().expect("read"), stderr: errors }
}

fn command(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    piped(command.args(args));
    command
}

fn piped(command: &mut Command) -> &mut Command {
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Runs a line of bash, in which `$F` is fsure, in a folder.
fn shell(line: &str, folder: &Path) -> Run {
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", line]).current_dir(folder).env("F", env!("CARGO_BIN_EXE_fsure"));
    ended(piped(bash).spawn().expect("start bash"))
}

fn to(call: &[OsString], output: &Path) -> Run {
    let args = [call, &[output.into()]].concat();
    ended(command(&args).spawn().expect("start fsure"))
}

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("make a FIFO");
}

#[test]
fn a_link_leads_to_its_file_and_stays() {
    let sample = Sample::new();
    for (number, (call, begin)) in sample.calls().into_iter().enumerate() {
        let target = sample.beside.path(format!("real-{number}"));
        let (near, far) = (sample.beside.path("near"), sample.beside.path("far"));
        symlink(&target, &near).unwrap();
        symlink("near", &far).unwrap();
        for round in 0..2 {
            let inode = fs::metadata(&target).map(|meta| meta.ino()).ok();
            let run = to(&call, &far);
            assert_eq!(run.code, 0, "{call:?}: {}", run.stderr);
            assert!(fs::read_to_string(&target).unwrap().starts_with(begin), "{call:?}");
            let now = fs::metadata(&target).unwrap().ino();
            assert!(round == 0 || inode != Some(now), "replaced as a whole, and not written over");
        }
        assert_eq!(fs::read_link(&near).unwrap(), target, "{call:?}");
        assert_eq!(fs::read_link(&far).unwrap(), PathBuf::from("near"), "{call:?}");
        fs::remove_file(near).and_then(|()| fs::remove_file(far)).unwrap();
    }
    let names = fs::read_dir(sample.beside.root()).unwrap().count();
    assert_eq!(names, 4, "nothing is left over");
}

#[test]
fn a_device_is_written_to_and_stays() {
    let sample = Sample::new();
    let at = |name: &str| sample.beside.path(name);
    for (name, minor) in [("null", 3), ("full", 7)] {
        let mode = Mode::RUSR | Mode::WUSR;
        let made = mknodat(CWD, at(name), FileType::CharacterDevice, mode, makedev(1, minor));
        if let Err(error) = made.and_then(|()| rustix::fs::open(at(name), OFlags::WRONLY, mode)) {
            return skip("a_device_is_written_to_and_stays", &format!("a device: {error}"));
        }
    }
    // No such disk is there: it must not even be opened.
    let block = mknodat(CWD, at("block"), FileType::BlockDevice, Mode::RUSR, makedev(240, 7));
    block.expect("make a block device");
    let _socket = UnixListener::bind(at("socket")).unwrap();
    for (call, _) in sample.calls() {
        for (name, code, why) in [
            ("null", 0, ""),
            ("full", 5, "No space left"),
            ("block", 5, "it is a block device"),
            ("socket", 5, "it is a socket"),
        ] {
            let run = to(&call, &at(name));
            assert_eq!(run.code, code, "{name} {call:?}: {}", run.stderr);
            assert!(run.stderr.contains(why), "{name} {call:?}: {}", run.stderr);
        }
    }
    let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
    assert!(kind("null").is_char_device() && kind("full").is_char_device());
    assert!(kind("block").is_block_device() && kind("socket").is_socket());
    assert_eq!(fs::read_dir(sample.beside.root()).unwrap().count(), 5, "nothing is left over");
}

#[test]
fn a_fifo_is_written_to_once_it_has_a_reader_and_stays() {
    let sample = Sample::new();
    let fifo = sample.beside.path("fifo");
    make_fifo(&fifo);
    for (call, begin) in sample.calls() {
        let args = [&call[..], &[fifo.clone().into()]].concat();
        let child = command(&args).spawn().expect("start fsure");
        let (send, text) = std::sync::mpsc::channel();
        let path = fifo.clone();
        std::thread::spawn(move || send.send(fs::read_to_string(path).expect("read")));
        let run = ended(child);
        assert_eq!(run.code, 0, "{call:?}: {}", run.stderr);
        let text = text.recv_timeout(HANGS).expect("its reader waits for ever");
        assert!(text.starts_with(begin), "{call:?}: {text}");
        assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "{call:?}");
    }
    // Without a reader it says so, and ends when it is asked to.
    let (call, _) = &sample.calls()[0];
    let mut child = command(&[&call[..], &[fifo.into()]].concat()).spawn().expect("start fsure");
    let mut said = String::new();
    let stderr = child.stderr.as_mut().expect("a pipe");
    while !said.ends_with('\n') {
        let mut byte = [0];
        stderr.read_exact(&mut byte).expect("read");
        said.push(char::from(byte[0]));
    }
    assert!(said.contains("is a FIFO that no program reads; waiting for one"), "{said}");
    kill_process(Pid::from_child(&child), Signal::INT).expect("kill");
    assert_eq!(ended(child).code, 130);
}

#[test]
fn standard_output_has_a_name_and_is_never_replaced() {
    let sample = Sample::new();
    let folder = sample.beside.root();
    for (call, begin) in sample.calls() {
        for name in ["-", "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
            let run = to(&call, Path::new(name));
            assert_eq!(run.code, 0, "{name} {call:?}: {}", run.stderr);
            assert!(run.stdout.starts_with(begin), "{name} {call:?}: {}", run.stdout);
            let mut file = fs::File::create(sample.beside.path("redirected")).unwrap();
            file.write_all(b"before\n").unwrap();
            let args = [&call[..], &[os(name)]].concat();
            let child = command(&args).stdout(file.try_clone().unwrap()).spawn();
            assert_eq!(ended(child.expect("start fsure")).code, 0, "{name} {call:?}");
            file.write_all(b"behind\n").unwrap();
            let text = fs::read_to_string(sample.beside.path("redirected")).unwrap();
            let rest = text.strip_prefix("before\n").expect("it was replaced");
            assert!(rest.starts_with(begin) && rest.ends_with("behind\n"), "{name} {call:?}");
        }
    }
    assert!(!folder.join("-").exists() && !Path::new("-").exists());
    let root = OsString::from(sample.tree.root());
    let both = [os("verify"), root, os("--json"), os("--metrics"), os("-")];
    let run = ended(command(&both).spawn().expect("start fsure"));
    assert_eq!((run.code, run.stdout.lines().count()), (2, 1), "{run:?}");
    assert!(run.stdout.starts_with("{\"type\":\"error\""), "{run:?}");
    let run = shell("$F report result -o - --svg -", folder);
    assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
}

#[test]
fn a_reader_that_goes_away_ends_the_output_and_nothing_else() {
    let sample = Sample::new();
    // More than any pipe holds.
    for number in 0..3000 {
        sample.tree.write(format!("many/{number:0200}"), "");
    }
    Recorded::inside(sample.tree.root()).update();
    let root = sample.tree.root().display();
    for call in [
        format!("$F export {root} --format json"),
        format!("$F export {root} --format json -o -"),
        format!("$F export {root} --format json -o /dev/stdout"),
        format!("$F export {root} --format json -o >(head -c 10 > /dev/null)"),
        "$F report result -o /dev/stdout".to_owned(),
        format!("$F verify {root} --quiet --metrics -"),
        format!("$F verify {root} --all"),
    ] {
        let run = shell(
            &format!("{call} | head -c 10; echo ${{PIPESTATUS[0]}} >&2"),
            sample.beside.root(),
        );
        assert!(run.stderr.ends_with("0\n"), "{call}: {}", run.stderr);
        assert!(!run.stderr.contains("fsure:"), "{call}: {}", run.stderr);
    }
    // What is lost on the way to a reader that wants it is an error.
    let run = shell(&format!("$F export {root} --format json > /dev/full"), sample.beside.root());
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert!(run.stderr.contains("No space left"), "{}", run.stderr);
}

#[test]
fn a_reader_that_stops_reading_is_not_called_storage() {
    let sample = Sample::new();
    for number in 0..3000 {
        sample.tree.write(format!("many/{number:0200}"), "");
    }
    Recorded::inside(sample.tree.root()).update();
    let (call, _) = &sample.calls()[0];
    let mut child = command(&[&call[..], &[os("-")]].concat()).spawn().expect("start fsure");
    let stdout = child.stdout.take().expect("a pipe");
    let process = Pid::from_child(&child);
    // Until no more comes into the pipe.
    let (mut before, mut there) = (0, 0);
    while there == 0 || there != before {
        std::thread::sleep(Duration::from_millis(500));
        (before, there) = (there, rustix::io::ioctl_fionread(&stdout).expect("ask"));
    }
    kill_process(process, Signal::INT).expect("kill");
    let run = ended(child);
    drop(stdout);
    assert_eq!(run.code, 130);
    let why = "the program that reads its output has stopped reading";
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn a_result_is_saved_to_a_stream_and_never_over_a_file() {
    let sample = Sample::new();
    let folder = sample.beside.root();
    let flush = "$F flush . --quick --threads 1 --quiet --save";
    let run = shell(&format!("{flush} -"), folder);
    let line = run.stdout.lines().next().unwrap_or_default();
    assert!(line.starts_with("{\"type\":\"result\""), "{run:?}");
    assert!(run.stdout.lines().all(|line| line.starts_with('{')), "{run:?}");
    assert!(!folder.join("-").exists());
    symlink("saved", folder.join("link")).unwrap();
    let run = shell(&format!("{flush} link"), folder);
    assert!(fs::read_to_string(folder.join("saved")).is_ok(), "{run:?}");
    assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
    let before = fs::read(folder.join("saved")).unwrap();
    let run = shell(&format!("{flush} link"), folder);
    assert_eq!((run.code, fs::read(folder.join("saved")).unwrap()), (5, before), "{run:?}");
}

#[test]
fn a_chart_of_a_report_goes_through_no_link() {
    let sample = Sample::new();
    let folder = sample.beside.root();
    let text = shell("$F flush . --quick --threads 1 --save result --quiet", folder);
    let run = shell("$F report result -o page.html --svg charts", folder);
    let charts: Vec<_> = fs::read_dir(folder.join("charts")).into_iter().flatten().collect();
    if run.code != 0 || charts.is_empty() {
        return skip("a_chart_of_a_report_goes_through_no_link", &format!("{text:?} {run:?}"));
    }
    let chart = charts.into_iter().next().unwrap().unwrap().path();
    let victim = sample.beside.write("victim", fs::read(&chart).unwrap());
    fs::remove_file(&chart).and_then(|()| symlink(&victim, &chart)).unwrap();
    let run = shell("$F report result -o page.html --svg charts", folder);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("it is a symbolic link"), "{run:?}");
}
