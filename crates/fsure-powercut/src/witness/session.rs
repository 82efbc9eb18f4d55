//! Services of a witness for those who have proved that they know the secret: it listens
//! to writers, and reports to checkers.

use std::io;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use fsure_os::path as os_path;

use super::super::protocol_records::{
    self, LogRecord, OWED, RunDescription, RunId, RunInfo, RunQuery,
};
use super::super::wire::{
    BODY_MAX, MessageKind, RESPONSE_TIMEOUT, Receiver, Sender, broken, refused,
};
use super::super::witness_log::{self, Log};
use super::{AuthenticatedPeer, Message, Witness, is_gone, locked};

/// Time for which received records can be missing on the medium.
const SYNC_INTERVAL: Duration = Duration::from_millis(25);
/// Number of runs to name in the response to a request for a run that does not exist.
const RUNS_SHOWN_MAX: usize = 5;

impl Witness<'_> {
    /// Listens to a writer as long as the connection exists. However long the writer
    /// sends nothing, its run goes on: a flush may take its time.
    pub(super) fn listen_to(
        &self,
        caller: AuthenticatedPeer,
        opened: &RunDescription,
        sender: &mut Sender,
    ) -> io::Result<()> {
        let run =
            protocol_records::run_of(&opened.run).ok_or_else(|| broken("a run without a name"))?;
        let stream = caller.stream.second()?;
        self.take_over(run, stream)?;
        let listened = self.record(run, caller, opened, sender);
        locked(&self.writers).remove(&run);
        self.writer_has_gone.notify_all();
        listened
    }

    /// Waits until an earlier connection of the same writer has come to its end:
    /// what it had received is read, and the log has one author.
    fn take_over(&self, run: RunId, stream: fsure_os::tcp::Stream) -> io::Result<()> {
        let writers = locked(&self.writers);
        if let Some(earlier) = writers.get(&run) {
            earlier.end();
        }
        let is_there = |writers: &mut super::Writers| writers.contains_key(&run);
        let waited = self.writer_has_gone.wait_timeout_while(writers, RESPONSE_TIMEOUT, is_there);
        let (mut writers, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        if is_there(&mut writers) {
            // The earlier connection will not be there for ever: the writer is to call
            // again.
            return Err(io::ErrorKind::TimedOut.into());
        }
        writers.insert(run, stream);
        Ok(())
    }

    fn record(
        &self,
        run: RunId,
        caller: AuthenticatedPeer,
        opened: &RunDescription,
        sender: &mut Sender,
    ) -> io::Result<()> {
        self.end_replaced(opened, &caller.stream)?;
        let log = Log::open(&self.options.folder, &run, opened, &self.options.clock)?;
        if log.memory.is_ended {
            return Err(refused(b"this run has ended"));
        }
        let acked = |log: &Log| log.memory.acked.values().sum();
        self.listener.report(&Message::Writer {
            run: opened.run.clone(),
            host: opened.host.clone(),
            folder: opened.folder.clone(),
            acked: acked(&log),
        });
        sender.send(MessageKind::Welcome, &log.memory.next.to_le_bytes())?;
        let session = WriterSession::new(log)?;
        let AuthenticatedPeer { id, stream, mut receiver, .. } = caller;
        let (session, stream) = (&session, &stream);
        let received = std::thread::scope(|scope| {
            let confirms = || {
                let confirmed = session.confirm(sender);
                // Nothing is received that cannot be confirmed.
                stream.end_reading();
                confirmed
            };
            let named = std::thread::Builder::new().name("confirm".into());
            let confirms = named.spawn_scoped(scope, confirms)?;
            let received = self.receive(session, id, &mut receiver);
            session.end();
            let confirmed = confirms.join().unwrap_or_else(|_| Err(broken("an internal fault")));
            // A failure of the log counts for more than the end of the connection.
            confirmed.and(received)
        });
        let state = locked(&session.state);
        let (acked, is_ended) = (acked(&state.log), state.log.memory.is_ended);
        self.listener.report(&Message::Silence { run: opened.run.clone(), acked, is_ended });
        received
    }

    /// Ends the runs whose files a writer is going to remove, or a check of them
    /// would find that all is lost. The connection of one whose power was cut is
    /// there still, as far as this machine knows.
    fn end_replaced(
        &self,
        opened: &RunDescription,
        stream: &fsure_os::tcp::Stream,
    ) -> io::Result<()> {
        for run in opened.replaces.iter().filter_map(|name| protocol_records::run_of(name)) {
            if !os_path::exists(&witness_log::path_of(&self.options.folder, &run)) {
                continue;
            }
            self.take_over(run, stream.second()?)?;
            let ended = self.end_run(run);
            locked(&self.writers).remove(&run);
            self.writer_has_gone.notify_all();
            ended?;
        }
        Ok(())
    }

    fn end_run(&self, run: RunId) -> io::Result<()> {
        let Self { options, .. } = self;
        // By a log that is damaged nothing is judged.
        let Ok((first, memory)) = witness_log::read(&options.folder, &run) else { return Ok(()) };
        if memory.is_ended {
            return Ok(());
        }
        let mut log = Log::open(&options.folder, &run, &first, &options.clock)?;
        let mut end = Vec::new();
        LogRecord::End.put(&mut end);
        log.records(memory.next, &end, &[LogRecord::End])?;
        log.file()?.sync()
    }

    fn receive(&self, session: &WriterSession, id: u64, receiver: &mut Receiver) -> io::Result<()> {
        loop {
            let (kind, body) = receiver.receive(None)?;
            locked(&self.present).note_contact(id);
            match kind {
                MessageKind::Records => session.records(&body)?,
                MessageKind::Ping => session.ping()?,
                _ => return Err(broken("an unexpected frame")),
            }
        }
    }

    /// Sends all of a run to a checker.
    pub(super) fn send_run(&self, asked: &RunQuery, sender: &mut Sender) -> io::Result<()> {
        let run = self.find(asked)?;
        let (opened, memory) = witness_log::read(&self.options.folder, &run)?;
        self.listener.report(&Message::Asked { run: opened.run.clone() });
        let run_info = RunInfo {
            opened,
            acked: memory.acked.clone(),
            heard_ms: memory.last_contact_ms,
            is_ended: memory.is_ended,
        };
        sender.send(MessageKind::Run, &serde_json::to_vec(&run_info).expect("plain text"))?;
        let mut body = Vec::with_capacity(BODY_MAX);
        for write in memory.owed(run) {
            protocol_records::put_owed(&write, &mut body);
            if body.len() + OWED > BODY_MAX {
                sender.send(MessageKind::Owed, &body)?;
                body.clear();
            }
        }
        sender.send(MessageKind::Owed, &body)?;
        sender.send(MessageKind::Done, &[])
    }

    /// Finds the requested run: by its name, else the last of that folder of that
    /// machine.
    fn find(&self, asked: &RunQuery) -> io::Result<RunId> {
        let runs = witness_log::runs(&self.options.folder)?;
        let found = runs.iter().rfind(|opened| match &asked.run {
            Some(name) => opened.run == *name,
            None => (&opened.host, &opened.folder) == (&asked.host, &asked.folder),
        });
        if let Some(run) = found.and_then(|opened| protocol_records::run_of(&opened.run)) {
            return Ok(run);
        }
        let what = match &asked.run {
            Some(run) => format!("the run {run}"),
            None => format!("a run of {} on {}", asked.folder, asked.host),
        };
        let last = runs.iter().rev().take(RUNS_SHOWN_MAX);
        let last = last.map(|run| format!("{} ({} on {})", run.run, run.folder, run.host));
        let last: Vec<_> = last.collect();
        let last = if last.is_empty() { "none".to_owned() } else { last.join(", ") };
        Err(refused(format!("the witness does not know {what}; its latest are: {last}").as_bytes()))
    }
}

/// A writer that is listened to.
struct WriterSession {
    state: Mutex<SessionState>,
    changed: Condvar,
    file: fsure_os::append_file::AppendFile,
}

struct SessionState {
    log: Log,
    is_dirty: bool,
    is_over: bool,
}

impl WriterSession {
    fn new(log: Log) -> io::Result<Self> {
        let file = log.file()?;
        // The first entry of this connection is not on the medium yet.
        let state = Mutex::new(SessionState { log, is_dirty: true, is_over: false });
        Ok(Self { state, changed: Condvar::new(), file })
    }

    fn records(&self, body: &[u8]) -> io::Result<()> {
        let (first, body) = protocol_records::numbered(body).ok_or_else(|| broken("no number"))?;
        let records = LogRecord::all(body).ok_or_else(|| broken("no records"))?;
        let mut state = locked(&self.state);
        if !state.log.memory.can_take(first) {
            return Err(broken("records are left out, or come behind the end"));
        }
        state.log.records(first, body, &records)?;
        self.touched(&mut state);
        Ok(())
    }

    fn ping(&self) -> io::Result<()> {
        let mut state = locked(&self.state);
        state.log.note_contact()?;
        self.touched(&mut state);
        Ok(())
    }

    fn touched(&self, state: &mut SessionState) {
        state.is_dirty = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        locked(&self.state).is_over = true;
        self.changed.notify_all();
    }

    /// Syncs what was received, and confirms it to the writer, until the connection is
    /// over.
    fn confirm(&self, sender: &mut Sender) -> io::Result<()> {
        loop {
            let began = Instant::now();
            let state = locked(&self.state);
            let rests = |state: &mut SessionState| !state.is_dirty && !state.is_over;
            let waited = self.changed.wait_while(state, rests);
            let mut state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            let (next, is_over) = (state.log.memory.next, state.is_over);
            state.is_dirty = false;
            drop(state);
            self.file.sync()?;
            match sender.send(MessageKind::Recorded, &next.to_le_bytes()) {
                Err(error) if !is_gone(&error) => return Err(error),
                Err(_) if !is_over => return Ok(()),
                _ if is_over => return Ok(()),
                _ => std::thread::sleep(SYNC_INTERVAL.saturating_sub(began.elapsed())),
            }
        }
    }
}
