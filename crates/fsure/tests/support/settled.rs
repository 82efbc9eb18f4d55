//! Waiting for a child process by what it does, and not by the clock: on a busy machine it may
//! get no processor for seconds.

use std::fs;
use std::os::fd::AsFd;
use std::process::Child;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Looks in a row that find a pipe as it was: threads that wait for each other all sleep for a
/// moment, too.
const SAME_LOOKS_MIN: u32 = 10;

/// Waits until all threads of a process sleep, and it has handled each signal that was sent to
/// it; or until it has ended.
pub fn settle(process: &Child) {
    while !is_settled(process) {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until a process has written to a pipe, and sleeps because no more fits in.
pub fn fill(process: &Child, pipe: impl AsFd) {
    let (mut before, mut looks) = (0, 0);
    while looks < SAME_LOOKS_MIN {
        std::thread::sleep(POLL_INTERVAL);
        let has_ended = threads(process).iter().all(|thread| thread.state == 'Z');
        let there = rustix::io::ioctl_fionread(&pipe).expect("ask a pipe for its length");
        assert!(there > 0 || !has_ended, "it has ended, and written nothing");
        looks = if there > 0 && there == before && is_settled(process) { looks + 1 } else { 0 };
        before = there;
    }
}

fn is_settled(process: &Child) -> bool {
    let mut threads = threads(process).into_iter();
    threads.all(|thread| thread.state == 'Z' || thread.state == 'S' && !thread.has_signals)
}

struct Thread {
    /// As proc_pid_stat(5) has it.
    state: char,
    /// True if a signal waits for it or for its process.
    has_signals: bool,
}

fn threads(process: &Child) -> Vec<Thread> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).expect("list its threads");
    let status = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")));
    // A thread that has ended meanwhile cannot be read.
    status.flatten().map(|status| thread(&status)).collect()
}

fn thread(status: &str) -> Thread {
    let field = |name: &str| {
        let mut fields = status.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| *field == name).expect("a field of each thread").1.trim()
    };
    let is_pending = |name| field(name).bytes().any(|digit| digit != b'0');
    Thread {
        state: field("State").chars().next().expect("a letter"),
        has_signals: is_pending("SigPnd") || is_pending("ShdPnd"),
    }
}
