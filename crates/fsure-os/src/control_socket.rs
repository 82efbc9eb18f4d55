//! A socket by which other programs ask this one, line by line: each line gets
//! one line for an answer. Whatever a client sends, it cannot end this program or
//! keep others from being answered.
//!
//! Only this user can reach it. It is not there on Windows yet:
//! [`Control::listen`] fails with `Unsupported`.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::host;

/// The longest line, in bytes: 8 MiB in base64, with a margin.
pub const LINE_MAX: usize = 12 << 20;
/// Clients at the same time.
pub const CLIENTS_MAX: usize = 64;
/// Timeout for requests that are answered from what is already known, without
/// waiting. A program that has not responded by then is stopped or stuck, and is
/// not worth waiting for.
pub const AT_ONCE: Duration = Duration::from_secs(2);

/// A socket that is there, until this is dropped.
#[derive(Debug)]
pub struct Control(host::control_socket::Control);

impl Control {
    /// Makes a socket of this name. One left behind by a program that is gone is
    /// taken over; anything else of this name is left alone.
    pub fn listen(name: &Path) -> io::Result<Self> {
        Ok(Self(host::control_socket::Control::listen(name)?))
    }

    /// Answers until `is_over` says so. A line that is too long, or not text, is
    /// `None`.
    pub fn serve(
        &self,
        answer: &(dyn Fn(Option<&str>) -> String + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) {
        self.0.serve(answer, is_over);
    }
}

/// Asks a program at its socket, and waits for the answer: however long it takes
/// if there is no `longest`, else fails with `TimedOut` when nothing was heard for
/// so long. Fails with `ConnectionRefused` or `NotFound` if no program listens.
pub fn ask(name: &Path, line: &str, longest: Option<Duration>) -> io::Result<String> {
    host::control_socket::ask(name, line, longest)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_answer_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("socket");
        // It listens, and that is all it does.
        let _control = Control::listen(&name).unwrap();
        let error = ask(&name, "status", Some(Duration::from_millis(1))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn a_process_that_ends_late_leaves_the_next_one_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("socket");
        let before = Control::listen(&name).unwrap();
        // A name of the same inode would be taken for its own.
        std::fs::rename(&name, folder.path().join("gone")).unwrap();
        let next = Control::listen(&name).unwrap();
        drop(before);
        let error = ask(&name, "status", Some(Duration::from_millis(1))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        drop(next);
        assert!(!name.exists());
    }
}
