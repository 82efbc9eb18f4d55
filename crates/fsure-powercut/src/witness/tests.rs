//! A witness in this process, and callers that keep to the protocol until they
//! do not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as ChannelReceiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::super::protocol_records::{self, LogRecord, RunInfo, Write, run_name};
use super::super::wire::{BODY_MAX, call};
use super::*;
use fsure_core::Monitor;

struct Ear {
    address: SyncSender<String>,
    stops: AtomicBool,
}

impl Monitor for Ear {
    fn stop_requested(&self) -> Option<ExitCode> {
        self.stops.load(Ordering::Relaxed).then_some(ExitCode::Interrupted)
    }
}

impl PowercutMonitor for Ear {
    fn report(&self, line: &Message) {
        if let Message::Listening { address } = line {
            self.address.send(address.clone()).unwrap();
        }
    }
}

/// Stops the witness whatever becomes of the test, or the test would wait for it.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const TOKEN: &[u8] = b"a token of the test";

fn with_witness(test: impl FnOnce(&str)) {
    let folder = tempfile::tempdir().unwrap();
    let (address, addresses): (_, ChannelReceiver<String>) = sync_channel(1);
    let ear = Ear { address, stops: AtomicBool::new(false) };
    let options = WitnessOptions {
        listen: "127.0.0.1:0".to_owned(),
        folder: folder.path().join("runs"),
        secret: Some(Secret::new(TOKEN)),
        clock: Clock::default(),
    };
    std::thread::scope(|scope| {
        let listens = scope.spawn(|| witness(&options, &ear));
        let stop = Stop(&ear.stops);
        test(&addresses.recv().unwrap());
        drop(stop);
        assert_eq!(listens.join().unwrap().unwrap(), ExitCode::Interrupted);
    });
}

fn opened(run: u8) -> RunDescription {
    RunDescription {
        run: run_name(&[run; 16]),
        program: "fsure".to_owned(),
        host: "host".to_owned(),
        folder: "/folder".to_owned(),
        device: None,
        volume: None,
        life: None,
        boot: None,
        started: format!("2026-11-21T22:40:{run:02}Z"),
        replaces: Vec::new(),
    }
}

type Halves = (Sender, Receiver);

fn known(address: &str) -> Halves {
    let stream = Stream::connect(address, RESPONSE_TIMEOUT).unwrap();
    call(stream, &Secret::new(TOKEN)).unwrap()
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + 4 * RESPONSE_TIMEOUT)
}

/// Opens a run; returns the number of the next record.
fn open(address: &str, run: u8) -> io::Result<(Halves, u64)> {
    let (mut sender, mut receiver) = known(address);
    sender.send(MessageKind::Open, &serde_json::to_vec(&opened(run)).unwrap())?;
    let next = receiver.expect(MessageKind::Welcome, soon())?;
    Ok(((sender, receiver), protocol_records::numbered(&next).unwrap().0))
}

fn body(first: u64, records: &[LogRecord]) -> Vec<u8> {
    let mut body = first.to_le_bytes().to_vec();
    records.iter().for_each(|record| record.put(&mut body));
    body
}

/// A write begun and acknowledged.
fn done(number: u64) -> [LogRecord; 2] {
    let write = Write { number, file: 1, method: 1, offset: number * 4096 };
    [LogRecord::Begin(write), LogRecord::Ack(number)]
}

/// Waits until all before a number are on the witness's medium.
fn recorded(receiver: &mut Receiver, next: u64) -> io::Result<()> {
    loop {
        let body = receiver.expect(MessageKind::Recorded, soon())?;
        if protocol_records::numbered(&body).unwrap().0 == next {
            return Ok(());
        }
    }
}

/// Requests a run; returns the response and the number of writes that are owed.
fn ask(address: &str, run: u8) -> io::Result<(RunInfo, usize)> {
    let (mut sender, mut receiver) = known(address);
    let name = Some(run_name(&[run; 16]));
    let asked = RunQuery { run: name, host: String::new(), folder: String::new() };
    sender.send(MessageKind::Ask, &serde_json::to_vec(&asked).unwrap())?;
    let run_info = serde_json::from_slice(&receiver.expect(MessageKind::Run, soon())?).unwrap();
    let mut owed = 0;
    loop {
        match receiver.receive(soon())? {
            (MessageKind::Owed, body) => {
                owed += protocol_records::owed([run; 16], &body).unwrap().len();
            }
            (kind, _) => {
                assert_eq!(kind, MessageKind::Done);
                return Ok((run_info, owed));
            }
        }
    }
}

#[test]
fn a_run_goes_on_over_connections_until_its_end() {
    with_witness(|address| {
        let ((mut sender, mut receiver), next) = open(address, 1).unwrap();
        assert_eq!(next, 0);
        sender.send(MessageKind::Records, &body(0, &done(1))).unwrap();
        recorded(&mut receiver, 2).unwrap();
        // The next comes while the first is still there, and says some of it again.
        let ((mut second, mut receiver), next) = open(address, 1).unwrap();
        assert_eq!(next, 2);
        second.send(MessageKind::Records, &body(0, &[done(1), done(2)].concat())).unwrap();
        recorded(&mut receiver, 4).unwrap();
        second.send(MessageKind::Ping, &[]).unwrap();
        recorded(&mut receiver, 4).unwrap();
        let (run_info, owed) = ask(address, 1).unwrap();
        assert_eq!(
            (run_info.opened, run_info.acked[&1], run_info.is_ended, owed),
            (opened(1), 2, false, 2)
        );
        second.send(MessageKind::Records, &body(4, &[LogRecord::End])).unwrap();
        recorded(&mut receiver, 5).unwrap();
        assert!(ask(address, 1).unwrap().0.is_ended);
        let error = open(address, 1).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    });
}

/// A power cut ends no connection: the witness goes on listening to who is gone.
#[test]
fn a_run_whose_files_are_removed_ends_even_if_its_writer_seems_to_be_there() {
    with_witness(|address| {
        let ((mut sender, mut receiver), _) = open(address, 1).unwrap();
        sender.send(MessageKind::Records, &body(0, &done(1))).unwrap();
        recorded(&mut receiver, 2).unwrap();
        let (mut next, mut receiver) = known(address);
        let replaces = vec![run_name(&[1; 16]), run_name(&[9; 16])];
        let opened = RunDescription { replaces, ..opened(2) };
        next.send(MessageKind::Open, &serde_json::to_vec(&opened).unwrap()).unwrap();
        receiver.expect(MessageKind::Welcome, soon()).unwrap();
        assert!(ask(address, 1).unwrap().0.is_ended);
        assert!(!ask(address, 2).unwrap().0.is_ended);
        let unknown = ask(address, 9).unwrap_err().to_string();
        assert!(unknown.contains("does not know"), "{unknown}");
    });
}

#[test]
fn what_does_not_keep_to_the_protocol_is_refused_and_changes_nothing() {
    with_witness(|address| {
        let refused = |spoil: &dyn Fn(&mut Sender)| {
            let ((mut sender, mut receiver), _) = open(address, 2).unwrap();
            spoil(&mut sender);
            // Nothing was recorded; before the refusal that may be said.
            let error = recorded(&mut receiver, u64::MAX).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            error.to_string()
        };
        let gap = refused(&|sender| sender.send(MessageKind::Records, &body(1, &done(1))).unwrap());
        assert!(gap.contains("left out"), "{gap}");
        refused(&|sender| sender.send(MessageKind::Records, b"short").unwrap());
        refused(&|sender| {
            sender.send(MessageKind::Records, &[&body(0, &[])[..], &[99]].concat()).unwrap();
        });
        refused(&|sender| sender.send(MessageKind::Ask, b"{}").unwrap());
        assert_eq!(ask(address, 2).unwrap().1, 0);
        let unknown = ask(address, 3).unwrap_err().to_string();
        assert!(unknown.contains("does not know") && unknown.contains("/folder"), "{unknown}");
        for run in ["../../../../etc/passwd", "", "zz"] {
            let (mut sender, mut receiver) = known(address);
            let opened = RunDescription { run: run.to_owned(), ..opened(1) };
            sender.send(MessageKind::Open, &serde_json::to_vec(&opened).unwrap()).unwrap();
            assert!(receiver.expect(MessageKind::Welcome, soon()).is_err(), "{run}");
        }
    });
}

#[test]
fn a_client_that_does_not_read_holds_up_no_other() {
    with_witness(|address| {
        let ((mut sender, mut receiver), _) = open(address, 4).unwrap();
        // More than any socket keeps: 12 MiB of what is owed.
        let (mut next, mut number) = (0, 0);
        while number < 400_000 {
            let mut records = Vec::new();
            while 8 + (records.len() + 2) * protocol_records::RECORD_MAX <= BODY_MAX {
                number += 1;
                records.extend(done(number));
            }
            sender.send(MessageKind::Records, &body(next, &records)).unwrap();
            next += records.len() as u64;
        }
        recorded(&mut receiver, next).unwrap();
        let (mut slow, _unread) = known(address);
        let asked =
            RunQuery { run: Some(run_name(&[4; 16])), host: String::new(), folder: String::new() };
        slow.send(MessageKind::Ask, &serde_json::to_vec(&asked).unwrap()).unwrap();
        assert_eq!(ask(address, 4).unwrap().1 as u64, number);
        sender.send(MessageKind::Records, &body(next, &done(number + 1))).unwrap();
        recorded(&mut receiver, next + 2).unwrap();
    });
}

#[test]
fn unproven_connections_make_way_for_proven_ones() {
    with_witness(|address| {
        let began = Instant::now();
        let connect = |_| Stream::connect(address, RESPONSE_TIMEOUT).unwrap();
        let strangers: Vec<_> = (0..CONNECTIONS * 4).map(connect).collect();
        let (_halves, next) = open(address, 5).unwrap();
        assert_eq!(next, 0);
        // The first has made way, and those that are left are sent away in time.
        for stranger in &strangers {
            let ended = stranger.read_until(&mut [0], soon()).unwrap_err();
            assert_ne!(ended.kind(), io::ErrorKind::TimedOut);
        }
        assert!(began.elapsed() >= Duration::from_secs(1), "the last had a while");
        assert!(ask(address, 5).is_ok());
    });
}

#[test]
fn the_most_silent_of_the_proven_connections_is_dropped() {
    with_witness(|address| {
        let ((mut sender, mut receiver), _) = open(address, 60).unwrap();
        let mut others = Vec::new();
        for run in 0..50 {
            others.push(open(address, run).unwrap());
        }
        for _ in 0..CONNECTIONS {
            sender.send(MessageKind::Ping, &[]).unwrap();
            recorded(&mut receiver, 0).unwrap();
            assert!(ask(address, 60).is_ok());
        }
        for run in 61..61 + CONNECTIONS as u8 {
            sender.send(MessageKind::Ping, &[]).unwrap();
            others.push(open(address, run).unwrap());
        }
        sender.send(MessageKind::Records, &body(0, &done(1))).unwrap();
        recorded(&mut receiver, 2).unwrap();
        let ((_, first), _) = &mut others[0];
        // It receives nothing any more, and its run goes on.
        let ended = loop {
            if let Err(error) = first.receive(soon()) {
                break error;
            }
        };
        assert!(is_gone(&ended) && ended.kind() != io::ErrorKind::TimedOut, "{ended}");
        assert!(open(address, 0).is_ok());
    });
}

#[test]
fn without_a_token_it_listens_to_its_own_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let options = WitnessOptions {
        listen: "0.0.0.0:0".to_owned(),
        folder: folder.path().to_owned(),
        secret: None,
        clock: Clock::default(),
    };
    let error = witness(&options, &fsure_core::NullMonitor).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Usage);
    assert!(error.to_string().starts_with("without a token"), "{error}");
}
