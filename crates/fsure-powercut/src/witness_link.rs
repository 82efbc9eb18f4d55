//! The writer's connection to the witness. The thread that writes to the drive hands over
//! what it does and goes on. The thread of this module sends it, and keeps it until the
//! witness has it on its own medium, over as many connections as that takes.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::tcp::Stream;

use super::protocol_records::{self, LogRecord, RECORD_MAX, RunDescription};
use super::wire::{
    self, BODY_MAX, MessageKind, RESPONSE_TIMEOUT, Receiver, Secret, Sender, broken,
};

/// Interval at which the writer sends a sign of life to the witness.
const PING: Duration = Duration::from_millis(100);
/// Pause before another connection is tried.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout after which a witness that has recorded nothing is called again: it responds
/// to every ping.
const SILENCE: Duration = Duration::from_secs(30);

/// The connection to the witness.
pub(super) struct Link<'a> {
    pub(super) address: &'a str,
    pub(super) secret: &'a Secret,
    pub(super) opened: &'a RunDescription,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Records that the witness has not recorded yet, each with the time at which it was
    /// handed over.
    records: VecDeque<(LogRecord, Instant)>,
    /// The number of the first of them.
    first: u64,
    /// The number of the first that was not sent.
    unsent: u64,
    state: LinkState,
    /// The current connection, to be ended.
    stream: Option<Stream>,
    is_closing: bool,
}

/// State of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The witness receives the records.
    Connected,
    /// It does not, with the reason; that may change.
    Away(String),
    /// It never will, with the reason.
    Refused(String),
}

impl Default for LinkState {
    fn default() -> Self {
        Self::Away("no connection has been tried yet".to_owned())
    }
}

impl Queue {
    /// Drops the records before this number, which the witness has recorded.
    fn recorded(&mut self, next: u64) -> io::Result<()> {
        if next < self.first {
            return Err(wire::refused(
                b"the witness has lost writes that it had confirmed: its folder was changed",
            ));
        }
        let count = usize::try_from(next - self.first).unwrap_or(usize::MAX);
        if count > self.records.len() {
            return Err(broken("the witness confirms writes that it was not sent"));
        }
        self.records.drain(..count);
        self.first = next;
        self.unsent = self.unsent.max(next);
        Ok(())
    }

    /// Returns the body of the next frame of unsent records; without any record if all
    /// were sent.
    fn batch(&mut self) -> Vec<u8> {
        let mut body = self.unsent.to_le_bytes().to_vec();
        let sent = usize::try_from(self.unsent - self.first).unwrap_or(usize::MAX);
        for (record, _) in self.records.iter().skip(sent) {
            if body.len() + RECORD_MAX > BODY_MAX {
                break;
            }
            record.put(&mut body);
            self.unsent += 1;
        }
        body
    }

    fn is_all_sent(&self) -> bool {
        self.unsent == self.first + self.records.len() as u64
    }
}

impl<'a> Link<'a> {
    /// Creates a connection that no thread serves yet.
    pub(super) fn new(address: &'a str, secret: &'a Secret, opened: &'a RunDescription) -> Self {
        Self { address, secret, opened, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record to those for the witness.
    pub(super) fn append(&self, record: LogRecord) {
        self.queue().records.push_back((record, Instant::now()));
        self.changed.notify_all();
    }

    /// Waits for at most `timeout` until no more than `count` records are missing on the
    /// witness's medium, or until the witness refuses. Returns true if no more are
    /// missing.
    pub(super) fn wait(&self, count: usize, timeout: Duration) -> bool {
        let is_more = |queue: &mut Queue| {
            queue.records.len() > count && !matches!(queue.state, LinkState::Refused(_))
        };
        let waited = self.changed.wait_timeout_while(self.queue(), timeout, is_more);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.records.len() <= count
    }

    /// Returns the state, and the time for which the oldest record has waited for the
    /// witness to record it; `None` if all are recorded.
    pub(super) fn state(&self) -> (LinkState, Option<Duration>) {
        let queue = self.queue();
        (queue.state.clone(), queue.records.front().map(|(_, since)| since.elapsed()))
    }

    /// Ends the connection, whatever was not recorded.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        queue.is_closing = true;
        if let Some(stream) = &queue.stream {
            stream.end();
        }
        self.changed.notify_all();
    }

    /// Serves the connection until it is closed, or refused permanently.
    pub(super) fn serve(&self) {
        loop {
            let ended = self.connect();
            let mut queue = self.queue();
            if queue.is_closing {
                return;
            }
            let Err(error) = ended else { continue };
            let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
            let why = error.to_string();
            queue.state = if is_refused { LinkState::Refused(why) } else { LinkState::Away(why) };
            queue.stream = None;
            self.changed.notify_all();
            if is_refused {
                return;
            }
            let closes = |queue: &mut Queue| !queue.is_closing;
            // Woken or not, it is time to try again.
            drop(self.changed.wait_timeout_while(queue, RECONNECT_INTERVAL, closes));
        }
    }

    /// One connection, from its beginning to its end.
    fn connect(&self) -> io::Result<()> {
        let stream = Stream::connect(self.address, RESPONSE_TIMEOUT)?;
        let second = stream.second()?;
        let (mut sender, mut receiver) = wire::call(stream, self.secret)?;
        let opened = serde_json::to_vec(self.opened).map_err(io::Error::other)?;
        sender.send(MessageKind::Open, &opened)?;
        let welcome =
            receiver.expect(MessageKind::Welcome, Some(Instant::now() + 2 * RESPONSE_TIMEOUT))?;
        let mut queue = self.queue();
        queue.unsent = queue.first;
        queue.recorded(number(&welcome)?)?;
        queue.state = LinkState::Connected;
        queue.stream = Some(second);
        drop(queue);
        self.changed.notify_all();
        std::thread::scope(|scope| {
            let listens = std::thread::Builder::new().name("recorded".into());
            let listens = listens.spawn_scoped(scope, || {
                let listened = self.listen(&mut receiver);
                receiver.end();
                self.changed.notify_all();
                listened
            })?;
            let sent = self.send(&mut sender, || listens.is_finished());
            if let Some(stream) = &self.queue().stream {
                stream.end();
            }
            let listened = listens.join().unwrap_or_else(|_| Err(broken("an internal fault")));
            // A message of the witness counts for more than the end of the connection.
            listened.and(sent)
        })
    }

    fn listen(&self, receiver: &mut Receiver) -> io::Result<()> {
        loop {
            let body = receiver.expect(MessageKind::Recorded, Some(Instant::now() + SILENCE))?;
            self.queue().recorded(number(&body)?)?;
            self.changed.notify_all();
        }
    }

    fn send(&self, sender: &mut Sender, is_over: impl Fn() -> bool) -> io::Result<()> {
        let mut pinged = Instant::now();
        loop {
            let idle = |queue: &mut Queue| queue.is_all_sent() && !queue.is_closing;
            let left = PING.saturating_sub(pinged.elapsed());
            let waited = self.changed.wait_timeout_while(self.queue(), left, idle);
            let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if queue.is_closing || is_over() {
                return Ok(());
            }
            let is_all_sent = queue.is_all_sent();
            let body = queue.batch();
            drop(queue);
            if !is_all_sent {
                sender.send(MessageKind::Records, &body)?;
            }
            if pinged.elapsed() >= PING {
                sender.send(MessageKind::Ping, &[])?;
                pinged = Instant::now();
            }
        }
    }
}

fn number(body: &[u8]) -> io::Result<u64> {
    Ok(protocol_records::numbered(body).ok_or_else(|| broken("no number"))?.0)
}
