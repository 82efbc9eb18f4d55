//! Outputs that the user names: a regular file is replaced as a whole, a stream is written
//! to as it is, and a link, a FIFO or a device is still there afterwards. A reader of
//! standard output that goes away ends the output and no run.
#![cfg(target_os = "linux")]

use crate::support;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::settled::{fill, settle};
use crate::support::{Recorded, Run, Tree, fsure, skip};
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};

/// Timeout far beyond the duration of any run here, also of one behind everything else on a busy
/// machine: the test fails then, instead of waiting forever.
const HANGS: Duration = Duration::from_secs(600);

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
    fn calls(&self) -> Vec<(Vec<OsString>, &'static str)> {
        let root = || OsString::from(self.tree.root());
        let mut calls = vec![
            (vec![os("export"), root(), os("--format"), os("json"), os("-o")], "{\"type\":\"fsure"),
            (vec![os("verify"), root(), os("--quiet"), os("--metrics")], "# HELP fsure_"),
        ];
        if cfg!(feature = "storage") {
            let result = OsString::from(self.beside.path("result"));
            calls.push((vec![os("report"), result, os("-o")], "<!doctype html>"));
        }
        calls
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
    assert_eq!(names, 1 + sample.calls().len(), "nothing is left over");
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
    let mut message = String::new();
    let stderr = child.stderr.as_mut().expect("a pipe");
    while !message.ends_with('\n') {
        let mut byte = [0];
        stderr.read_exact(&mut byte).expect("read");
        message.push(char::from(byte[0]));
    }
    assert!(message.contains("is a FIFO that no program reads; waiting for one"), "{message}");
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
    assert_eq!((run.code, run.stdout.lines().count()), (2, 2), "{run:?}");
    assert!(run.stdout.contains("\n{\"type\":\"error\""), "{run:?}");
    if cfg!(feature = "storage") {
        let run = shell("$F report result -o - --svg -", folder);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_output_and_nothing_else() {
    let sample = large();
    let root = sample.tree.root().display();
    for call in [
        format!("$F export {root} --format json"),
        format!("$F export {root} --format json -o -"),
        format!("$F export {root} --format json -o /dev/stdout"),
        #[cfg(feature = "storage")]
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

/// A tree of which a list is more than any pipe holds.
fn large() -> Sample {
    let sample = Sample::new();
    for number in 0..3000 {
        sample.tree.write(format!("many/{number:0200}"), "");
    }
    Recorded::inside(sample.tree.root()).update();
    sample
}

#[test]
fn a_named_output_whose_reader_goes_away_is_not_whole() {
    let sample = large();
    let (root, folder) = (sample.tree.root().display(), sample.beside.root());
    for reader in ["head -c 10", "cat"] {
        let call = format!("$F export {root} --format json -o >({reader} > /dev/full)");
        let run = shell(&call, folder);
        assert_eq!((run.code, &*run.stdout), (5, ""), "{run:?}");
        assert!(run.stderr.contains("ended after at most "), "{run:?}");
        assert!(run.stderr.contains(" of 3003 files"), "{run:?}");
    }
    // It holds what a pipe does; so this one is gone before the output begins.
    let gone = "exec 3> >(exec true); wait $!";
    let run = shell(&format!("{gone}; $F verify {root} --quiet --metrics /dev/fd/3"), folder);
    assert_eq!(run.code, 5, "{run:?}");
    if cfg!(feature = "storage") {
        let run = shell(&format!("{gone}; $F report result -o /dev/fd/3"), folder);
        assert_eq!(run.code, 5, "{run:?}");
    }
}

#[test]
fn a_stop_that_was_asked_for_counts_and_not_the_reader_that_goes_then() {
    let sample = large();
    let fifo = sample.beside.path("fifo");
    make_fifo(&fifo);
    let (call, _) = &sample.calls()[0];
    for output in [fifo.as_path(), Path::new("-")] {
        let mut child = command(&[&call[..], &[output.into()]].concat()).spawn().expect("start");
        let reader: std::os::fd::OwnedFd = match output == Path::new("-") {
            true => child.stdout.take().expect("a pipe").into(),
            false => fs::File::open(&fifo).expect("open").into(),
        };
        fill(&child, &reader);
        kill_process(Pid::from_child(&child), Signal::INT).expect("kill");
        settle(&child);
        drop(reader);
        let run = ended(child);
        assert_eq!((run.code, &*run.stdout), (130, ""), "{output:?}: {run:?}");
    }
}

#[test]
fn a_descriptor_that_fsure_has_opened_itself_is_no_output_and_no_input() {
    let sample = Sample::new();
    let (root, folder) = (sample.tree.root(), sample.beside.root());
    let catalog = root.join(".fsure/catalog.db");
    let none = "for n in {3..40}; do eval \"exec $n>&-\"; done";
    let shown = root.display();
    for number in 3..16 {
        for way in ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"] {
            for call in ["export ROOT --format sha256sums -o", "import --root ROOT"] {
                let call = call.replace("ROOT", &shown.to_string());
                let run = shell(&format!("{none}; $F {call} {way}/{number}"), folder);
                assert_eq!(run.code, 5, "{call} {way}/{number}: {run:?}");
                assert!(run.stderr.contains("started without"), "{call} {way}/{number}: {run:?}");
            }
        }
        let is_sound = fs::read(&catalog).unwrap().starts_with(b"SQLite format 3\0");
        assert!(is_sound, "the record was written over: {number}");
    }
    let run = shell(&format!("$F export {shown} --format sha256sums -o /dev/fd/3 3>list"), folder);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = fs::read_to_string(folder.join("list")).unwrap().lines().count();
    let run = shell(&format!("$F import --root {shown} --catalog new /dev/fd/3 3<list"), folder);
    assert_eq!((run.code, lines), (0, 3), "{run:?}");
}

#[test]
fn a_standard_output_that_is_closed_is_an_error() {
    let sample = Sample::new();
    let (root, folder) = (sample.tree.root().display(), sample.beside.root());
    for call in [
        format!("$F export {root} --format sha256sums"),
        format!("$F export {root} --format sha256sums -o /dev/stdout"),
        format!("$F verify {root}"),
        format!("$F verify {root} --quiet --metrics -"),
    ] {
        let run = shell(&format!("{call} >&-"), folder);
        assert_eq!(run.code, 5, "{call}: {run:?}");
        assert!(run.stderr.contains("standard output"), "{call}: {run:?}");
        let run = shell(&format!("{call} 1<>/dev/null"), folder);
        assert_eq!(run.code, 0, "{call}: {run:?}");
    }
    // Nothing is lost where there is nothing to say.
    let run = shell(&format!("$F verify {root} --quiet >&-"), folder);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn a_draft_that_a_killed_process_has_left_is_in_no_output_s_way() {
    let sample = Sample::new();
    let (root, folder) = (sample.tree.root().display(), sample.beside.root());
    let test = "a_draft_that_a_killed_process_has_left_is_in_no_output_s_way";
    // In a container the process has the same number each time.
    if shell("unshare -fp true", folder).code != 0 {
        return skip(test, "'unshare -fp' needs root");
    }
    sample.beside.write("list.making-1", "left");
    let run = shell(&format!("unshare -fp $F export {root} --format json -o list"), folder);
    assert_eq!(run.code, 0, "{run:?}");
    let run = shell(&format!("$F export {root} --format json -o none/list"), folder);
    assert_eq!(run.code, 5, "{run:?}");
}

#[test]
fn a_file_that_is_replaced_is_open_to_no_other_users() {
    let sample = Sample::new();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("a_file_that_is_replaced_is_open_to_no_other_users", "the owner: needs root");
    }
    // The owner reads and writes, user 1001 reads, the group and the others do nothing.
    let entries = [(1u16, 6u16, u32::MAX), (2, 4, 1001), (4, 0, u32::MAX), (16, 4, u32::MAX)];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, may, id) in entries.into_iter().chain([(32, 0, u32::MAX)]) {
        list.extend(tag.to_le_bytes());
        list.extend(may.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    for (number, (call, _)) in sample.calls().iter().enumerate() {
        let path = sample.beside.path(format!("list-{number}"));
        // A page is replaced only by a page.
        assert_eq!(to(call, &path).code, 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root {
            std::os::unix::fs::chown(&path, Some(1000), Some(1002)).unwrap();
        }
        let flags = rustix::fs::XattrFlags::empty();
        let attribute = "system.posix_acl_access";
        let has_list = rustix::fs::setxattr(&path, attribute, &list, flags).is_ok();
        let state = || {
            let meta = fs::metadata(&path).unwrap();
            let mut value = vec![0; 1000];
            let length = rustix::fs::getxattr(&path, attribute, &mut value[..]).unwrap_or(0);
            (meta.uid(), meta.gid(), meta.mode(), value[..length].to_vec())
        };
        let (before, inode) = (state(), fs::metadata(&path).unwrap().ino());
        assert!(!has_list || before.3 == list, "{before:?}");
        assert_eq!(to(call, &path).code, 0);
        assert_eq!(state(), before, "{call:?}");
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode, "replaced as a whole");
    }
}

#[test]
fn a_reader_that_stops_reading_is_not_called_storage() {
    let sample = large();
    let (call, _) = &sample.calls()[0];
    let mut child = command(&[&call[..], &[os("-")]].concat()).spawn().expect("start fsure");
    let stdout = child.stdout.take().expect("a pipe");
    fill(&child, &stdout);
    kill_process(Pid::from_child(&child), Signal::INT).expect("kill");
    let run = ended(child);
    drop(stdout);
    assert_eq!(run.code, 130);
    let why = "the program that reads its output has stopped reading";
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
#[cfg(feature = "storage")]
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
#[cfg(feature = "storage")]
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
