//! The witness: it remembers what writers have reported as durable, whatever happens to
//! them, to the network, and to itself.
//!
//! There is a thread for each connection, so their number is bounded. Among those that
//! have not proved anything the oldest makes way, so that ten thousand callers that send
//! nothing keep no other out for longer than a handshake takes.

mod session;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use fsure_os::path as os_path;
use fsure_os::tcp::{self, Stream};

use super::messages::{Message, PowercutMonitor};
use super::protocol_records::{RunDescription, RunId, RunQuery};
use super::wire::{self, MessageKind, RESPONSE_TIMEOUT, Receiver, Secret, Sender, broken};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result};

/// Options of a witness.
#[derive(Clone, Debug)]
pub struct WitnessOptions {
    /// Address at which to listen, `HOST:PORT`.
    pub listen: String,
    /// Folder of the logs; created if it does not exist.
    pub folder: PathBuf,
    /// Secret that callers must know; `None` if every program of this machine may call.
    pub secret: Option<Secret>,
    /// Source of the time.
    pub clock: Clock,
}

/// Connections of each kind, at most.
const CONNECTIONS: usize = 64;
/// Interval at which the witness checks for new connections.
const ACCEPT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Listens until it is asked to stop.
pub fn witness(options: &WitnessOptions, listener: &dyn PowercutMonitor) -> Result<ExitCode> {
    let door = tcp::TcpServer::bind(&options.listen);
    let door = door.context("listen at", options.listen.as_ref())?;
    let address = door.address().context("listen at", options.listen.as_ref())?;
    let is_loopback = door.is_loopback().context("listen at", options.listen.as_ref())?;
    if options.secret.is_none() && !is_loopback {
        return Err(Error::Usage {
            message: format!(
                "without a token any machine that reaches {address} could be a writer"
            ),
            hint: Some(
                "name a file with a secret of at least 16 characters, '--token-file FILE', here \
                 and for the writer; or listen at 127.0.0.1"
                    .to_owned(),
            ),
        });
    }
    os_path::make_folder(&options.folder).context("make", &options.folder)?;
    let witness = Witness {
        options,
        listener,
        secret: options.secret.clone().unwrap_or_else(|| Secret::new(b"")),
        present: Mutex::default(),
        writers: Mutex::default(),
        writer_has_gone: Condvar::new(),
    };
    // Each caller takes two or three.
    fsure_os::rlimit::open_files();
    listener.report(&Message::Listening { address });
    Ok(std::thread::scope(|scope| witness.open(&door, scope)))
}

struct Witness<'a> {
    options: &'a WitnessOptions,
    listener: &'a dyn PowercutMonitor,
    secret: Secret,
    present: Mutex<ConnectedWriters>,
    /// By run, the connection of its writer.
    writers: Mutex<Writers>,
    writer_has_gone: Condvar,
}

type Writers = HashMap<RunId, Stream>;

/// The current connections.
#[derive(Default)]
struct ConnectedWriters {
    next: u64,
    /// Connections that have not proved anything, in the order in which they came.
    strangers: Vec<(u64, Stream)>,
    known: Vec<KnownRun>,
}

struct KnownRun {
    id: u64,
    stream: Stream,
    last_contact: Instant,
}

impl ConnectedWriters {
    /// Adds a connection that has not proved anything; returns its number.
    fn enter(&mut self, stream: Stream) -> u64 {
        if self.strangers.len() >= CONNECTIONS {
            self.strangers.remove(0).1.end();
        }
        self.next += 1;
        self.strangers.push((self.next, stream));
        self.next
    }

    /// Moves a connection to those that have proved the secret. False if it had to make
    /// way meanwhile.
    fn is_known(&mut self, id: u64) -> bool {
        let Some(at) = self.strangers.iter().position(|one| one.0 == id) else { return false };
        let stream = self.strangers.remove(at).1;
        if self.known.len() >= CONNECTIONS {
            let silent = self.known.iter().enumerate().min_by_key(|(_, known)| known.last_contact);
            let silent = silent.map_or(0, |(at, _)| at);
            self.known.remove(silent).stream.end();
        }
        self.known.push(KnownRun { id, stream, last_contact: Instant::now() });
        true
    }

    fn note_contact(&mut self, id: u64) {
        if let Some(known) = self.known.iter_mut().find(|known| known.id == id) {
            known.last_contact = Instant::now();
        }
    }

    fn leave(&mut self, id: u64) {
        self.strangers.retain(|one| one.0 != id);
        self.known.retain(|known| known.id != id);
    }

    fn close(&self) {
        self.strangers.iter().for_each(|one| one.1.end());
        self.known.iter().for_each(|known| known.stream.end());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Witness<'_> {
    fn open<'s>(&'s self, door: &tcp::TcpServer, scope: &'s Scope<'s, '_>) -> ExitCode {
        loop {
            if let Some(code) = self.listener.stop_requested() {
                locked(&self.present).close();
                return code;
            }
            match door.accept() {
                Ok(Some(stream)) => self.enter(stream, scope),
                Ok(None) => std::thread::sleep(ACCEPT_POLL_INTERVAL),
                Err(error) => {
                    // Out of descriptors: those that make way give some back.
                    self.listener.warn(&format!("a connection could not be accepted: {error}"));
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
        }
    }

    fn enter<'s>(&'s self, stream: Stream, scope: &'s Scope<'s, '_>) {
        let Ok(second) = stream.second() else { return };
        let id = locked(&self.present).enter(second);
        let serve = move || {
            self.serve(id, stream);
            locked(&self.present).leave(id);
        };
        let spawned = std::thread::Builder::new().name("caller".into()).spawn_scoped(scope, serve);
        if spawned.is_err() {
            locked(&self.present).leave(id);
        }
    }

    /// Serves a connection. Nothing is reported of a caller that has proved nothing, or
    /// garbage would fill the screen. A caller with another token gets the error at its
    /// end.
    fn serve(&self, id: u64, stream: Stream) {
        let until = Instant::now() + RESPONSE_TIMEOUT;
        let (peer, Ok(second)) = (stream.peer(), stream.second()) else { return };
        let Ok((mut sender, receiver)) = wire::answer(stream, &self.secret, until) else { return };
        if !locked(&self.present).is_known(id) {
            return;
        }
        let caller = AuthenticatedPeer { id, stream: second, receiver, until };
        if let Err(error) = self.talk(caller, &mut sender)
            && !is_gone(&error)
        {
            sender.refuse(&error.to_string());
            self.listener.warn(&format!("{peer} was refused: {error}"));
        }
    }

    fn talk(&self, mut caller: AuthenticatedPeer, sender: &mut Sender) -> io::Result<()> {
        let no_json = |_| broken("a request that is not the JSON of 'fsure powercut'");
        match caller.receiver.receive(Some(caller.until))? {
            (MessageKind::Open, body) => {
                let opened: RunDescription = serde_json::from_slice(&body).map_err(no_json)?;
                self.listen_to(caller, &opened, sender)
            }
            (MessageKind::Ask, body) => {
                let asked: RunQuery = serde_json::from_slice(&body).map_err(no_json)?;
                self.send_run(&asked, sender)
            }
            _ => Err(broken("an unexpected frame")),
        }
    }
}

/// A caller that has proved that it knows the secret.
struct AuthenticatedPeer {
    id: u64,
    stream: Stream,
    receiver: Receiver,
    /// Deadline for its first request.
    until: Instant,
}

/// Returns true if an error means only that the other side has gone: then there is no
/// side left to inform.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof];
    kinds.contains(&error.kind())
}
