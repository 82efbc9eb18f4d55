//! A command that is deferred for: the shared page, the thread that flushes, and
//! the two ways of meeting its calls. See [`crate::defer`].

mod flusher;
mod program;
mod seccomp;
mod shared;
mod shared_page;
mod shim;
mod storage;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use super::foreground::not_started;
use super::signal_forward::Relay;
use crate::defer::{Backend, Deferred, Options};
use crate::process_tree::CommandEnd;
use flusher::Flusher;
use seccomp::SeccompListener;
use shared::Shared;
use storage::Storage;

pub(crate) use storage::mount_of;

/// Environment variable from which the shim gets the path of the page. It also marks the
/// processes whose flushes are deferred, under seccomp as well.
const PAGE: &str = "FSURE_DEFER";
const PRELOAD: &str = "LD_PRELOAD";

pub(crate) fn run(options: &Options, warn: &dyn Fn(&str)) -> io::Result<Deferred> {
    let [name, arguments @ ..] = &options.command[..] else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    is_shown()?;
    is_outermost()?;
    let shim = shim_for(options.backend, name)?;
    let backend = if shim.is_some() { Backend::Preload } else { Backend::Seccomp };
    let storage = open(&options.folders)?;
    let devices: Vec<_> = storage.iter().map(|one| one.device).collect();
    let shared = Arc::new(Shared::new(options.longest, &devices)?);
    let mut command = Command::new(name);
    command.args(arguments);
    let socket = prepare(&mut command, shim, &shared)?;
    // The first file that is opened after a mount changes ext4's superblock. A flush makes that
    // durable in the journal, and leaves it in its place in the drive's cache, where a cut can
    // tear it until the next flush. Of the cuts in the first 0.7 s that tore 512 bytes, 36 of 80
    // did, and then nothing mounts; with a second flush, 0 of 40.
    storage.iter().try_for_each(Storage::flush_a_write)?;
    let began = Instant::now();
    storage.iter().try_for_each(Storage::flush_a_write)?;
    let heir = options.heir.as_ref().map(|heir| Heir::begin(heir, &options.folders));
    let heir = heir.transpose()?;
    let relay = Relay::begin();
    let flusher = Flusher::begin(&shared, storage, began.elapsed());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| not_started(&options.command, &error))?;
    let listener = socket.map(|socket| SeccompListener::begin(&socket, &shared)).transpose();
    if listener.is_err() {
        // No thread answers it.
        let _ = child.kill();
    }
    let status = relay.wait(&mut child)?;
    let time = started.elapsed();
    let tally = match listener? {
        Some(listener) => attend(&listener, flusher, &shared, &relay, warn),
        None => flusher.end(),
    };
    heir.map_or(Ok(()), |heir| heir.dismiss(tally.failure.is_none()))?;
    let end = CommandEnd { ended: status.into(), time, asked: relay.asked() };
    Ok(outcome(backend, end, &shared, tally))
}

/// The library to preload, if the command's calls are to be met by it. If there is
/// no place for that, and the user has not asked for it, they are met by seccomp.
fn shim_for(wanted: Option<Backend>, name: &OsStr) -> io::Result<Option<PathBuf>> {
    match wanted {
        Some(Backend::Preload) => shim::file().map(Some),
        Some(Backend::Seccomp) => Ok(None),
        None => Ok(match program::backend_for(name)? {
            Backend::Preload => shim::file().ok(),
            Backend::Seccomp => None,
        }),
    }
}

/// Has the calls of a command come to fsure: by the library, or else by the filter,
/// whose listener comes through what is returned.
fn prepare(
    command: &mut Command,
    shim: Option<PathBuf>,
    shared: &Shared,
) -> io::Result<Option<UnixDatagram>> {
    command.env(PAGE, shared.place());
    let Some(shim) = shim else { return seccomp::prepare(command).map(Some) };
    let mut preload = shim.into_os_string();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.env(PRELOAD, preload);
    Ok(None)
}

/// Waits for the processes that the command has left behind, and flushes. The listener has a
/// thread that answers their calls, which would fail without it. If fsure was asked to end
/// by a signal, also while the command ran, it flushes at once: from then on their calls are
/// real, or fail if a flush has failed. Then it warns, and waits until the last process has
/// ended or another signal comes.
fn attend(
    listener: &SeccompListener,
    flusher: Flusher,
    shared: &Shared,
    relay: &Relay,
    warn: &dyn Fn(&str),
) -> flusher::Tally {
    let is_over = listener.wait_unless(|| relay.times() > 0);
    let tally = flusher.end();
    if is_over {
        return tally;
    }
    let seen = relay.times();
    let state = match &tally.failure {
        None => "all is flushed, and their fsync is real".to_owned(),
        Some(why) => format!("a background flush failed ({why}), and their fsync fails"),
    };
    warn(&format!(
        "fsure was asked to end, but processes of the command still run: {}. From now on {state}. \
         A second signal ends fsure; after that their flushes fail",
        left_behind(&shared.place())
    ));
    listener.wait_unless(|| relay.times() > seen);
    tally
}

/// Those with the mark of this process in their environment, in words.
fn left_behind(mark: &OsStr) -> String {
    const NAMES_SHOWN_MAX: usize = 8;
    let mark = [PAGE.as_bytes(), b"=", mark.as_bytes()].concat();
    let mut names = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let (place, number) = (process.path(), process.file_name());
        let environment = std::fs::read(place.join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
            let name = std::fs::read_to_string(place.join("comm")).unwrap_or_default();
            names.push(format!("{} ({})", name.trim_end(), number.to_string_lossy()));
        }
    }
    match names.len() {
        0 => "processes with an environment of their own".to_owned(),
        count if count > NAMES_SHOWN_MAX => {
            format!("{} and {} more", names[..NAMES_SHOWN_MAX].join(", "), count - NAMES_SHOWN_MAX)
        }
        _ => names.join(", "),
    }
}

/// Fails unless `/proc` shows this process by its own number. Both backends go by the
/// numbers of processes, that of this one and those of others.
fn is_shown() -> io::Result<()> {
    let shown = std::fs::read_link("/proc/self").unwrap_or_default();
    if shown == Path::new(&std::process::id().to_string()) {
        return Ok(());
    }
    let why = "needs the /proc of this namespace: run 'mount -t proc proc /proc'";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The flushes of one that is run by another would be deferred in turn, and what
/// it calls durable would not be.
fn is_outermost() -> io::Result<()> {
    if std::env::var_os(PAGE).is_none() {
        return Ok(());
    }
    let why = "it already runs under 'fsure defer': name the file systems there, with '--dir'";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The file systems of these folders, each once.
fn open(folders: &[PathBuf]) -> io::Result<Vec<Storage>> {
    let mut storage: Vec<Storage> = Vec::new();
    for folder in folders {
        let one = Storage::open(folder)?;
        if storage.iter().all(|other| other.device != one.device) {
            storage.push(one);
        }
    }
    Ok(storage)
}

fn outcome(backend: Backend, end: CommandEnd, shared: &Shared, tally: flusher::Tally) -> Deferred {
    Deferred {
        backend,
        end,
        deferred: shared.deferred.load(SeqCst),
        waited: shared.waited.load(SeqCst),
        passed: shared.passed.load(SeqCst),
        refused: shared.refused.load(SeqCst),
        flushes: tally.flushes,
        longest_flush: tally.longest_flush,
        largest_lag: tally.largest_lag,
        failure: tally.failure,
    }
}

/// A child process that flushes if this process is killed.
struct Heir(Child);

/// Message to the heir that it is not needed.
const DISMISSED: &[u8] = b"d";

impl Heir {
    fn begin(program: &Path, folders: &[PathBuf]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("outlive").args(folders).stdin(Stdio::piped()).stdout(Stdio::null());
        // Not of the group to which a terminal sends its signals.
        let child = command.stderr(Stdio::null()).process_group(0).spawn()?;
        Ok(Self(child))
    }

    /// It has nothing to do, unless the last flush is not known to have been done.
    fn dismiss(mut self, is_done: bool) -> io::Result<()> {
        if let Some(mut input) = self.0.stdin.take().filter(|_| is_done) {
            // If the heir is gone already, this process has not been killed either.
            let _ = io::Write::write_all(&mut input, DISMISSED);
        }
        self.0.wait().map(|_| ())
    }
}

pub(crate) fn outlive(folders: &[PathBuf], mut input: impl io::Read) -> io::Result<()> {
    let storage = folders.iter().map(|folder| Storage::open(folder));
    let storage: Vec<_> = storage.collect::<io::Result<_>>()?;
    let mut word = Vec::new();
    input.read_to_end(&mut word)?;
    if word == DISMISSED {
        return Ok(());
    }
    storage.iter().try_for_each(Storage::flush)
}
