//! A program and all that it starts, which end together: a database that
//! becomes a daemon would otherwise outlive the disk under it, and keep it
//! mounted.
//!
//! They get a process namespace of their own, whose first process is one of fsure:
//! when that ends, the kernel kills all others. So two processes stand between
//! this process and the program, both of them the hidden command `fsure family`:
//!
//! ```text
//! this process -> outer   dies with it, by the kernel's word, and has the namespace made
//!                  -> first   process 1 in there: reaps orphans, ends with the program
//!                      -> the program
//! ```
//!
//! Linux only; elsewhere there is no namespace to start one in.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

pub use crate::host::private_mounts::{first, outer};

/// The exit code of a program that could not be started, as a shell says it.
pub const NOT_STARTED: u8 = 126;
/// The exit code of a program that is not there, as a shell says it.
pub const NOT_FOUND: u8 = 127;

/// The longest line of a program that is passed on whole, in bytes.
const LINE_MAX: u64 = 64 << 10;

/// A program to run, with its environment and its working folder.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that are added to the environment of this process.
    pub environment: Vec<(String, OsString)>,
    /// The folder that it works in.
    pub folder: PathBuf,
}

/// The exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with an exit code. 126 and 127: it could not be started.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

#[cfg(unix)]
impl From<std::process::ExitStatus> for Ended {
    fn from(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = || Self::Signal(status.signal().unwrap_or(0));
        status.code().map_or_else(signal, Self::Code)
    }
}

/// The end of a command that ran to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit status.
    pub ended: Ended,
    /// The time from its start to its end.
    pub time: Duration,
    /// The first signal that asked this process to end meanwhile, and was passed on.
    pub asked: Option<i32>,
}

/// The receiver of the lines that a program prints, without their ends.
pub type Lines = Box<dyn FnMut(&[u8]) + Send>;

/// A program that runs. Dropping it kills it, and all that it has started.
#[derive(Debug)]
pub struct ProcessTree {
    outer: Child,
    readers: Vec<JoinHandle<()>>,
}

impl ProcessTree {
    /// Starts a program where `start` starts processes. `program` does as [`outer`]
    /// when it is called with `family outer` and the number of this process. The
    /// lines of the program's standard output and error are passed on as they come.
    pub fn spawn(
        start: impl FnOnce(Command) -> io::Result<Child>,
        program: &Path,
        task: &Task,
        output: Lines,
        error: Lines,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["family", "outer", &std::process::id().to_string()])
            .arg(&task.folder)
            .arg("--")
            .args(&task.command)
            .envs(task.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A Ctrl-C is for this process alone, which ends the program when it has read
        // what that said.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut outer = start(command)?;
        let mut readers = Vec::new();
        if let Some(from) = outer.stdout.take() {
            readers.push(std::thread::spawn(move || forward_lines(from, output)));
        }
        if let Some(from) = outer.stderr.take() {
            readers.push(std::thread::spawn(move || forward_lines(from, error)));
        }
        Ok(Self { outer, readers })
    }

    /// Returns the exit status if the program has ended; its last lines have been
    /// reported then. `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        let Some(status) = self.outer.try_wait()? else { return Ok(None) };
        self.join();
        Ok(Some(ended(status.code())))
    }

    fn join(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        // The kernel ends the others before this one is gone.
        let _ = self.outer.kill();
        let _ = self.outer.wait();
        self.join();
    }
}

/// Decodes the exit code of the outermost process. A signal is 128 plus its
/// number, as for a shell; the highest number is 64.
fn ended(code: Option<i32>) -> Ended {
    match code {
        Some(code @ 129..=192) => Ended::Signal(code - 128),
        Some(code) => Ended::Code(code),
        None => Ended::Signal(0),
    }
}

fn forward_lines(from: impl Read, mut to: Lines) {
    let mut input = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        if !read.is_ok_and(|count| count > 0) {
            return;
        }
        let end = if line.last() == Some(&b'\n') { line.len() - 1 } else { line.len() };
        to(&line[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_signal_is_one() {
        for code in [0, 1, 125, 128, 193, 255] {
            assert_eq!(ended(Some(code)), Ended::Code(code));
        }
        assert_eq!(ended(Some(129)), Ended::Signal(1));
        assert_eq!(ended(Some(192)), Ended::Signal(64));
        assert_eq!(ended(None), Ended::Signal(0));
    }
}
