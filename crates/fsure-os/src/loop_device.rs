//! A file as a block device, and proof that it still is one: loop devices belong to
//! the whole machine, and any process may change their settings.
//!
//! The setting that matters most is `queue/write_cache`. It outlives the file that
//! was attached when it was changed, and on `write through` the kernel sends no
//! flush: a simulated drive would lose what a program has made durable, and the
//! program would be blamed for it. So the setting is put right before the device is
//! used, a write and a flush are sent through it, and all that another process
//! changes afterwards is noticed.
//!
//! All of that is done by a process of its own, the hidden command `fsure
//! loop-keeper`. The file may be one that the calling process serves ([`crate::fuse_disk`]),
//! and a change of the setting waits for requests to that file: a process that waits
//! for itself in the kernel cannot be killed. The keeper ends when its standard input
//! does, and the device is detached once nothing uses it any more.
//!
//! Linux only; elsewhere there are no loop devices.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::host::loop_device::Attached;

/// The name of the hidden command that does as [`keep`].
pub const COMMAND: &str = "loop-keeper";

/// Requests to the keeper, each a line.
const SEND_FLUSH: &str = "send a flush";
const NOTE_MOUNT: &str = "note the mount";
const SYNC_FILE: &str = "sync a file";
const CHECK_FLUSHES: &str = "check flushes";
const CHECK_CONTENT: &str = "check content";
/// First words of its answers, each a line.
const FINE: &str = "fine";
const DISTURBED: &str = "disturbed";
const FAILED: &str = "failed";

/// The reason why a loop device cannot be relied upon.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// Another process has changed it, or its settings cannot be put right.
    #[error("{0}")]
    Disturbed(String),
    /// The system refuses it.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// Properties of a device that its user relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliance {
    /// Flushes reach the file, and what is read and written is the file's content.
    Flushes,
    /// The content alone.
    Content,
}

/// A loop device that is attached to a file until this is dropped, or for as long as
/// it is mounted.
#[derive(Debug)]
pub struct LoopDevice {
    keeper: Child,
    /// `None` once the keeper is to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    node: PathBuf,
}

impl LoopDevice {
    /// Attaches a file that is to be mounted at `place`. `program` is this program's own
    /// file, and `start` starts it where the file is seen.
    pub fn attach(
        start: impl FnOnce(Command) -> io::Result<Child>,
        program: &Path,
        (file, place): (&Path, &Path),
    ) -> Result<Self, LoopError> {
        let mut command = Command::new(program);
        command.arg(COMMAND).arg(file).arg(place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A Ctrl-C is for the calling process, which then ends the keeper.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut keeper = start(command)?;
        let (requests, answers) = (keeper.stdin.take(), keeper.stdout.take());
        let answers =
            BufReader::new(answers.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?);
        let mut device = Self { keeper, requests, answers, node: PathBuf::new() };
        device.node = device.answer()?.into();
        Ok(device)
    }

    /// The device's node in `/dev`.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// Writes the first block as it is and flushes the device. Must not be called once
    /// it is mounted.
    pub fn send_flush(&mut self) -> Result<(), LoopError> {
        self.ask(SEND_FLUSH).map(drop)
    }

    /// Notes the options with which it is mounted: they must not change from then on.
    pub fn note_mount(&mut self) -> Result<(), LoopError> {
        self.ask(NOTE_MOUNT).map(drop)
    }

    /// Writes a file in the mounted file system, syncs it, and removes it.
    pub fn sync_file(&mut self) -> Result<(), LoopError> {
        self.ask(SYNC_FILE).map(drop)
    }

    /// Fails where another process has changed anything since the device was attached.
    /// The answer is how many flushes the commits of the mounted file system must have
    /// sent since it was mounted, by its own count; 0 where that is not known.
    pub fn check(&mut self, reliance: Reliance) -> Result<u64, LoopError> {
        let answer = self.ask(match reliance {
            Reliance::Flushes => CHECK_FLUSHES,
            Reliance::Content => CHECK_CONTENT,
        })?;
        Ok(answer.parse().unwrap_or(0))
    }

    fn ask(&mut self, request: &str) -> Result<String, LoopError> {
        let sent = self.requests.as_mut().map(|to| writeln!(to, "{request}"));
        // Whether the keeper still runs shows when its answer is read.
        drop(sent);
        self.answer()
    }

    fn answer(&mut self) -> Result<String, LoopError> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match word {
            FINE => Ok(rest.to_owned()),
            DISTURBED => Err(LoopError::Disturbed(rest.to_owned())),
            FAILED => Err(io::Error::other(rest.to_owned()).into()),
            _ => Err(LoopError::Disturbed(format!(
                "the process that watches the loop device {} has been ended",
                self.node.display()
            ))),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.keeper.wait();
    }
}

/// The duty of the keeper: attaches a file, says which device it is, and answers
/// requests until there are no more.
pub fn keep(
    (file, place): (&Path, &Path),
    requests: impl BufRead,
    mut answers: impl Write,
) -> io::Result<()> {
    let mut respond = |answer: Result<String, LoopError>| match answer {
        Ok(words) => writeln!(answers, "{FINE} {words}"),
        Err(LoopError::Disturbed(words)) => writeln!(answers, "{DISTURBED} {}", on_a_line(&words)),
        Err(LoopError::Failed(error)) => {
            writeln!(answers, "{FAILED} {}", on_a_line(&error.to_string()))
        }
    };
    let mut device = match Attached::new(file, place) {
        Ok(device) => device,
        Err(error) => return respond(Err(error)),
    };
    respond(Ok(device.node().display().to_string()))?;
    for request in requests.lines() {
        let answer = match request?.as_str() {
            SEND_FLUSH => device.send_flush().map(|()| String::new()),
            NOTE_MOUNT => device.note_mount().map(|()| String::new()),
            SYNC_FILE => device.sync_file().map(|()| String::new()),
            CHECK_FLUSHES => device.check(Reliance::Flushes).map(|flushes| flushes.to_string()),
            CHECK_CONTENT => device.check(Reliance::Content).map(|flushes| flushes.to_string()),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
        };
        respond(answer)?;
    }
    Ok(())
}

fn on_a_line(words: &str) -> String {
    words.replace('\n', " ")
}
