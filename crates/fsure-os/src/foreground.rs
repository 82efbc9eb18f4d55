//! A command in the foreground: it has the terminal, and gets the signals that ask this process
//! to end.
//!
//! Linux only; elsewhere [`run`] fails with `Unsupported`.

use std::ffi::OsString;
use std::io;

use crate::host;
use crate::process_tree::CommandEnd;

/// The reason why a command that is to be watched does not run.
#[derive(Debug)]
pub enum StartError {
    /// It cannot be watched: it was not started, or was ended at once.
    Unwatched(io::Error),
    /// It could not be started.
    NotStarted(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Unwatched(error)
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unwatched(error) | Self::NotStarted(error) => error.fmt(to),
        }
    }
}

/// Runs a command to its end.
pub fn run(command: &[OsString]) -> io::Result<CommandEnd> {
    host::foreground::run(command)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process_tree::Ended;

    #[test]
    fn the_end_of_a_command_is_its_own() {
        let run = |words: &[&str]| run(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(run(&["sh", "-c", "exit 7"]).unwrap().ended, Ended::Code(7));
        assert_eq!(run(&["sh", "-c", "kill -9 $$"]).unwrap().ended, Ended::Signal(9));
        let error = run(&["/no/such/program"]).unwrap_err();
        assert!(error.to_string().contains("cannot start '/no/such/program'"), "{error}");
        assert_eq!(run(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
