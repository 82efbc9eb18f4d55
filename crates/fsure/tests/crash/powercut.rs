//! `fsure powercut` over loopback, on folders that are spoilt by hand: each fault
//! is told from the others, and neither the end of the writer nor of the witness
//! nor another program on the network makes a judgement wrong.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::powercut::{
    Place, Talking, acked, check, lines, sum, summary, witness, witness_again,
};
use crate::support::{fsure_of, or_skip};
use rustix::process::{Pid, Signal, kill_process};

/// A second witness where the first was.
fn again(place: &Place, first: Talking, address: &str) -> Talking {
    first.kill();
    witness_again(place.home(), address)
}

#[test]
fn what_is_all_there_is_no_pass_where_nothing_was_cut() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    place.write(&address, &[]);
    let (lines, code) = check(place.home(), &place.disk, &address, &[]);
    assert_eq!((sum(&lines, "lost") + sum(&lines, "old") + sum(&lines, "torn"), code), (0, 5));
    assert_eq!(summary(&lines)["state"], "nothing-shown");
    let why = summary(&lines)["why"].as_str().expect("words");
    assert!(why.contains("still mounted as it was"), "{why}");
    assert!(!place.home().join("state/fsure/powercut.jsonl").exists(), "and nothing is kept");
    // It was checked, so the next may take its place, and leaves nothing behind.
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "0.3s"];
    let run = fsure_of(place.home(), &args);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(place.disk.read_dir().expect("list it").count(), 0);
    let first = summary(&lines)["run"].as_str().expect("a name");
    for run in [&[][..], &["--run", first]] {
        let (lines, code) = check(place.home(), &place.disk, &address, run);
        assert_eq!((code, lines.len()), (5, 1), "{lines:?}");
        let why = summary(&lines)["why"].as_str().expect("words");
        assert!(why.contains("ended"), "{why}");
    }
}

#[test]
fn each_fault_is_distinguished_from_the_others() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let folder = place.write(&address, &["--patterns", "append"]);
    // The first file is written over, the second renamed: the third grows.
    let file = folder.join("00000003");
    let original = std::fs::read(&file).expect("read it");
    assert!(original.len() >= 40 * 4096, "{}", original.len());
    let judged = |spoil: &dyn Fn(&std::fs::File)| {
        std::fs::write(&file, &original).expect("write it");
        let open = std::fs::OpenOptions::new().write(true).open(&file).expect("open it");
        spoil(&open);
        let (lines, code) = check(place.home(), &place.disk, &address, &[]);
        assert_eq!((code, &summary(&lines)["state"]), (3, &"failed".into()), "{lines:?}");
        assert!(lines[0]["oldest_lost_ms"].is_u64());
        ["lost", "old", "torn", "misdirected", "reordered"].map(|what| sum(&lines, what))
    };
    let block = |at: usize| &original[at * 4096..(at + 1) * 4096];
    let put = |file: &std::fs::File, data: &[u8], at: u64| file.write_all_at(data, at).unwrap();
    assert_eq!(judged(&|file| put(file, &[0; 8192], 4096)), [2, 0, 0, 0, 2]);
    assert_eq!(judged(&|file| put(file, &[0; 512], 4096 + 512)), [0, 0, 1, 0, 1]);
    assert_eq!(judged(&|file| put(file, block(7), 4096)), [0, 0, 0, 1, 1]);
    assert_eq!(judged(&|file| put(file, b"x", 4096 + 100)), [0, 0, 1, 0, 1]);
    // What was written, and of which the witness did not hear, is not owed.
    let all = acked(&check(place.home(), &place.disk, &address, &[]).0);
    // On a busy machine it may have gone on to a second file.
    let lost = if all > 1024 { [1024, 0, 0, 0, 1024] } else { [all, 0, 0, 0, 0] };
    assert_eq!(judged(&|file| file.set_len(0).unwrap()), lost);
    let gone = judged(&|_| std::fs::remove_file(&file).unwrap());
    assert_eq!(gone, lost, "a name is owed, too");
    std::fs::write(&file, &original).expect("write it");
    assert_eq!(check(place.home(), &place.disk, &address, &[]).1, 5, "all is there again");
    let open = std::fs::OpenOptions::new().write(true).open(&file).expect("open it");
    open.set_len(1 << 40).expect("a hole");
    let ended = check(place.home(), &place.disk, &address, &[]).1;
    assert_eq!(ended, 5, "what was never written is not read, however much it is");
    std::fs::remove_dir_all(&folder).expect("remove it");
    assert_eq!(check(place.home(), &place.disk, &address, &[]).1, 3, "the folder is gone");
}

#[test]
fn an_older_version_is_old() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let args = ["write", place.disk(), "--witness", &address, "--methods", "dsync"];
    let writer = Talking::start(place.home(), &[&args[..], &["--patterns", "rename"]].concat());
    let file = Path::new(writer.first_line["folder"].as_str().unwrap()).join("00000002");
    let early = loop {
        match std::fs::read(&file) {
            Ok(block) if block.len() == 4096 => break block,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    while acked(&check(place.home(), &place.disk, &address, &[]).0) < 10 {
        std::thread::sleep(Duration::from_millis(20));
    }
    writer.kill();
    std::fs::write(&file, early).expect("write it");
    let (lines, code) = check(place.home(), &place.disk, &address, &[]);
    assert_eq!((sum(&lines, "old"), sum(&lines, "lost"), code), (1, 0, 3), "{lines:?}");
}

#[test]
fn the_witness_may_die_and_come_back_while_the_writer_writes() {
    let place = Place::new();
    let (mut first, address) = witness(place.home(), "127.0.0.1:0");
    let args = ["write", place.disk(), "--witness", &address, "--methods", "fdatasync"];
    let writer = Talking::start(place.home(), &args);
    let mut before = 0;
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        first = again(&place, first, &address);
        // Until the writer has come back and is heard.
        let line = first.next().expect("a line");
        assert_eq!(line["type"], "writer", "{line}");
        let known = line["acked"].as_u64().expect("a number");
        assert!(known >= before, "{known} of {before}");
        before = known;
    }
    // How long that takes is the machine's: a connection is known before it has said more.
    while acked(&check(place.home(), &place.disk, &address, &[]).0) <= before {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(pid(&writer), Signal::INT).expect("ask it to end");
    let mut writer = writer;
    let last = std::iter::from_fn(|| writer.next()).last().expect("a last line");
    assert_eq!(last["type"], "written", "{last}");
    assert_eq!(writer.child.wait().expect("wait").code(), Some(130));
    // On a machine that is very busy the witness might not have recorded the end.
    let left = place.disk.read_dir().expect("list it").count();
    assert_eq!(left, usize::from(last["is_ended"] == false), "nothing else is left behind");
    assert_eq!(check(place.home(), &place.disk, &address, &[]).1, 5);
}

fn pid(talking: &Talking) -> Pid {
    Pid::from_child(&talking.child)
}

#[test]
fn a_writer_that_is_silent_for_long_goes_on() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let args = ["write", place.disk(), "--witness", &address, "--methods", "fsync"];
    let writer = Talking::start(place.home(), &args);
    kill_process(pid(&writer), Signal::STOP).expect("stop it");
    std::thread::sleep(Duration::from_secs(7));
    let before = acked(&check(place.home(), &place.disk, &address, &[]).0);
    kill_process(pid(&writer), Signal::CONT).expect("let it go on");
    while acked(&check(place.home(), &place.disk, &address, &[]).0) <= before {
        std::thread::sleep(Duration::from_millis(20));
    }
    writer.kill();
    assert_eq!(check(place.home(), &place.disk, &address, &[]).1, 5, "all is there");
}

/// Stands between a caller and the witness, and remembers what the caller said.
fn between(witness: &str) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("an address").to_string();
    let witness = witness.to_owned();
    let thread = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().expect("a caller");
        drop(listener);
        let mut called = TcpStream::connect(witness).expect("the witness");
        let (mut from, mut to) = (called.try_clone().unwrap(), caller.try_clone().unwrap());
        let back = std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(bytes @ 1..) = caller.read(&mut buffer) {
            received.extend(&buffer[..bytes]);
            if called.write_all(&buffer[..bytes]).is_err() {
                break;
            }
        }
        let _ = called.shutdown(Shutdown::Both);
        back.join().expect("the way back");
        received
    });
    (address, thread)
}

#[test]
fn garbage_replays_and_other_tokens_change_nothing() {
    let place = Place::new();
    let token = |name: &str, text: &str| {
        let file = place.home().join(name);
        std::fs::write(&file, text).expect("write a token");
        file.to_str().expect("UTF-8").to_owned()
    };
    let (own, other) = (token("own", "0123456789abcdef\n"), token("other", "0123456789abcdeX"));
    let short = token("short", "secret");
    let folder = place.home().join("witness");
    let folder = folder.to_str().expect("UTF-8");
    let args = ["witness", "--listen", "127.0.0.1:0", "--dir", folder, "--token-file", &own];
    let mut witness = Talking::start(place.home(), &args);
    let address = witness.first_line["address"].as_str().expect("an address").to_owned();
    let (proxy, traffic) = between(&address);
    let writer = Talking::start(
        place.home(),
        &["write", place.disk(), "--witness", &proxy, "--token-file", &own, "--methods", "fsync"],
    );
    let with = ["--token-file", own.as_str()];
    while acked(&check(place.home(), &place.disk, &address, &with).0) < 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    writer.kill();
    let traffic = traffic.join().expect("what was said");
    assert!(traffic.len() > 1000);
    let log = || {
        let entry = Path::new(folder).read_dir().unwrap().next().expect("a log").unwrap();
        std::fs::read(entry.path()).expect("read the log")
    };
    // Until it has read the last.
    while witness.next().expect("a line")["type"] != "silence" {}
    let before = log();
    let send = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&address).expect("connect");
        // It may hang up in the middle.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    send(&traffic);
    send(&traffic[49..]);
    send(b"GET / HTTP/1.1\r\nHost: witness\r\n\r\n");
    let mut noise = fsure_core::Random::new(1);
    for length in 0..200 {
        let garbage: Vec<_> = (0..length * 7).map(|_| noise.next_bits() as u8).collect();
        send(&garbage);
        let mut spoilt = traffic[..500.min(traffic.len())].to_vec();
        let at = noise.below(spoilt.len() as u64) as usize;
        spoilt[at] ^= 1 << noise.below(8);
        send(&spoilt);
    }
    assert!(log() == before, "the log has changed");
    assert_eq!(check(place.home(), &place.disk, &address, &with).1, 5);
    for (token, words) in [(&other, "if its token differs"), (&short, "too short")] {
        let args =
            ["powercut", "write", place.disk(), "--witness", &address, "--token-file", token];
        let run = fsure_of(place.home(), &args);
        assert!(run.code == 2 && run.stderr.contains(words), "{run:?}");
    }
    assert!(log() == before, "the log has changed");
    assert_eq!(check(place.home(), &place.disk, &address, &with).1, 5);
}

#[test]
fn ten_thousand_half_open_connections_keep_no_writer_out() {
    let test = "ten_thousand_half_open_connections_keep_no_writer_out";
    let space = fsure_os::rlimit::open_files();
    let enough = if space > 10_200 { Ok(()) } else { Err(format!("{space} open files")) };
    if or_skip(test, enough).is_none() {
        return;
    }
    let place = Place::new();
    let (witness, address) = witness(place.home(), "127.0.0.1:0");
    let connect = |_| TcpStream::connect(&address).expect("connect");
    let half_open: Vec<_> = (0..10_000).map(connect).collect();
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "1s"];
    let run = fsure_of(place.home(), &args);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stderr, "");
    let status = format!("/proc/{}/status", witness.child.id());
    let status = std::fs::read_to_string(status).expect("its status");
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    let threads: u32 = threads.and_then(|word| word.trim().parse().ok()).expect("a number");
    assert!(threads < 200, "{threads} threads");
    drop(half_open);
}

#[test]
fn what_makes_no_sense_is_refused_with_words() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let write = |disk: &str, more: &[&str]| {
        fsure_of(
            place.home(),
            &[&["powercut", "write", disk, "--witness", &address], more].concat(),
        )
    };
    for (run, words) in [
        (write("/dev/shm", &[]), "is in memory"),
        (write(place.disk(), &["--methods", "direct"]), "on this system there are: fsync,"),
        (write(place.disk(), &["--patterns", "x"]), "there are: overwrite, append"),
        (write(place.disk(), &["--cut-wait", "9s-1s"]), "two times such as 5s-60s"),
        (write(place.disk(), &["--cut-cmd", "exit 1", "--cut-wait", "0s-0s"]), "it has failed"),
    ] {
        assert!(run.code == 2 && run.stderr.contains(words), "{run:?}");
    }
    assert_eq!(place.disk.read_dir().expect("list it").count(), 0, "nothing is left behind");
    let run =
        fsure_of(place.home(), &["powercut", "check", place.disk(), "--witness", "127.0.0.1:1"]);
    assert!(run.code == 2 && run.stderr.contains("cannot be reached"), "{run:?}");
    let unknown = ["--run", "00112233445566778899aabbccddeeff"];
    let (lines, code) = check(place.home(), &place.disk, &address, &unknown);
    assert_eq!((code, &summary(&lines)["state"]), (5, &"nothing-shown".into()));
    std::fs::create_dir(place.disk.join("fsure-powercut-1")).expect("make a folder");
    let run = write(place.disk(), &["--for", "0.1s"]);
    assert!(run.code == 2 && run.stderr.contains("looks like the folder of a run"), "{run:?}");
}

/// Returns the verdicts of `flush` on cuts in a folder, and its exit code.
fn verdicts(place: &Place) -> (Vec<String>, i32) {
    let args = ["flush", "--time", "0.02s", "--threads", "1", "--json", place.disk()];
    let run = fsure_of(place.home(), &args);
    let all = lines(&run);
    let ids = all.iter().filter(|line| line["type"] == "verdict");
    let ids = ids.map(|line| line["id"].as_str().expect("an id").to_owned());
    (ids.filter(|id| id.starts_with("CUT_")).collect(), run.code)
}

#[test]
fn flush_reports_what_a_cut_has_shown_of_a_drive() {
    let place = Place::new();
    let stack = fsure_os::storage_stack::Stack::of(&place.disk).expect("what is below");
    let known = fsure_powercut::TestedDevice::below(&stack);
    let Some(device) = or_skip("flush_reports_what_a_cut_has_shown_of_a_drive", known) else {
        return;
    };
    assert_eq!(verdicts(&place).0, [""; 0]);
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let folder = place.write(&address, &["--patterns", "append"]);
    std::fs::remove_file(folder.join("00000003")).expect("remove it");
    for _ in 0..2 {
        let (lines, code) = check(place.home(), &place.disk, &address, &[]);
        let last = summary(&lines);
        assert_eq!((code, &last["cuts"]["made"]), (3, &1.into()), "one cut, however often");
        assert_eq!(last["device"]["serial"], device.serial.as_str());
    }
    assert_eq!(verdicts(&place), (vec!["CUT_FAILED".to_owned()], 3));
    let file = place.home().join("state/fsure/powercut.jsonl");
    let text = std::fs::read_to_string(&file).expect("read what is kept");
    assert_eq!(text.lines().count(), 2);
    let passed = text.split("\"failed\":").next().expect("a line").to_owned() + "\"failed\":0}\n";
    std::fs::write(&file, &passed).expect("write it");
    assert_eq!(verdicts(&place).0, ["CUT_PASSED"]);
    let other = passed.replace(&device.serial, "another drive");
    std::fs::write(&file, other).expect("write it");
    assert_eq!(verdicts(&place).0, [""; 0]);
}

#[test]
fn the_command_that_cuts_is_run_in_its_time() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let sign = place.home().join("cut");
    let command = format!("echo cut; touch '{}'", sign.display());
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "9s", "--json"];
    let more = ["--cut-cmd", &command, "--cut-wait", "0.5s-1s", "--seed", "3"];
    let run = fsure_of(place.home(), &[&args[..], &more].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let all = lines(&run);
    let cutting = all.iter().find(|line| line["type"] == "cutting").expect("a line");
    let seconds = cutting["seconds"].as_f64().expect("a number");
    assert!(seconds >= 0.5, "{seconds}");
    assert!(sign.exists() && run.stderr.contains("power is still on"), "{run:?}");
}

/// A file that the writer removes during a check is not lost, and the cut of the run is
/// still to come: the run keeps its files.
#[test]
fn of_a_run_that_is_being_written_nothing_is_judged() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let args = ["write", place.disk(), "--witness", &address, "--patterns", "append"];
    let writer = Talking::start(place.home(), &args);
    let folder = PathBuf::from(writer.first_line["folder"].as_str().expect("a folder"));
    while acked(&check(place.home(), &place.disk, &address, &[]).0) < 100 {
        std::thread::sleep(Duration::from_millis(50));
    }
    for entry in folder.read_dir().expect("list it").map(|entry| entry.unwrap()) {
        if entry.file_name().to_string_lossy().starts_with('0') {
            std::fs::remove_file(entry.path()).expect("remove it");
        }
    }
    let (lines, code) = check(place.home(), &place.disk, &address, &[]);
    assert_eq!((code, &summary(&lines)["state"]), (5, &"nothing-shown".into()), "{lines:?}");
    assert!(summary(&lines)["failed"].as_u64() > Some(0), "{lines:?}");
    let why = summary(&lines)["why"].as_str().expect("words");
    assert!(why.contains("still being written"), "{why}");
    writer.kill();
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "0.1s"];
    let run = fsure_of(place.home(), &args);
    assert!(run.code == 2 && run.stderr.contains("was not checked"), "{run:?}");
    assert_eq!(check(place.home(), &place.disk, &address, &[]).1, 3, "and now it is judged");
}

#[test]
fn what_could_not_be_kept_was_not_checked() {
    let place = Place::new();
    let stack = fsure_os::storage_stack::Stack::of(&place.disk).expect("what is below");
    let known = fsure_powercut::TestedDevice::below(&stack);
    if or_skip("what_could_not_be_kept_was_not_checked", known).is_none() {
        return;
    }
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let folder = place.write(&address, &["--patterns", "append"]);
    std::fs::remove_file(folder.join("00000003")).expect("remove it");
    std::fs::create_dir_all(place.home().join("state/fsure/powercut.jsonl")).expect("in the way");
    let args = ["powercut", "check", place.disk(), "--witness", &address];
    let run = fsure_of(place.home(), &args);
    assert!(run.code == 5 && run.stderr.contains("cannot keep the result"), "{run:?}");
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "0.1s"];
    let run = fsure_of(place.home(), &args);
    assert!(run.code == 2 && run.stderr.contains("was not checked"), "{run:?}");
}

/// Else a later start of the machine would be taken for a cut that was passed.
#[test]
fn a_writer_that_ends_without_its_witness_was_not_cut() {
    let place = Place::new();
    let (first, address) = witness(place.home(), "127.0.0.1:0");
    let args = ["write", place.disk(), "--witness", &address, "--methods", "fsync"];
    let mut writer = Talking::start(place.home(), &args);
    while acked(&check(place.home(), &place.disk, &address, &[]).0) < 10 {
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill();
    kill_process(pid(&writer), Signal::INT).expect("ask it to end");
    assert_eq!(writer.child.wait().expect("wait").code(), Some(130));
    let _second = witness_again(place.home(), &address);
    let (lines, code) = check(place.home(), &place.disk, &address, &[]);
    let why = summary(&lines)["why"].as_str().expect("words");
    assert!(code == 5 && why.contains("the writer ended by itself"), "{lines:?}");
    let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "0.1s"];
    let run = fsure_of(place.home(), &args);
    assert_eq!(run.code, 0, "it was checked: {run:?}");
}
