//! A socket in the file system. See [`crate::control_socket`].

use std::fs::Permissions;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::control_socket::{CLIENTS_MAX, LINE_MAX};

/// Interval of the calls of `is_over`.
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);
const BUSY_RESPONSE: &[u8] =
    b"{\"ok\":false,\"error\":\"too many clients: close one, and connect again\"}\n";

#[derive(Debug)]
pub(crate) struct Control {
    name: PathBuf,
    listener: UnixListener,
    /// File system and inode of the name that was made.
    made: (u64, u64),
}

impl Control {
    pub(crate) fn listen(name: &Path) -> io::Result<Self> {
        let is = std::fs::symlink_metadata(name);
        let is_socket = is.is_ok_and(|is| is.file_type().is_socket());
        let refuses = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
        if is_socket && UnixStream::connect(name).is_err_and(|error| refuses(&error)) {
            std::fs::remove_file(name)?;
        }
        let listener = UnixListener::bind(name)?;
        let made = identity(name)?;
        let control = Self { name: name.to_owned(), listener, made };
        std::fs::set_permissions(name, Permissions::from_mode(0o600))?;
        control.listener.set_nonblocking(true)?;
        Ok(control)
    }

    pub(crate) fn serve(
        &self,
        answer: &(dyn Fn(Option<&str>) -> String + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) {
        let clients = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !is_over() {
                let Ok((mut client, _)) = self.listener.accept() else {
                    // No client is there, or the system is short of something.
                    std::thread::sleep(END_POLL_INTERVAL);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= CLIENTS_MAX {
                    let _ = client.write_all(BUSY_RESPONSE);
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let clients = &clients;
                let talk = move || {
                    // A client that breaks off is its own affair.
                    let _ = talk(&mut client, answer, is_over);
                    clients.fetch_sub(1, Ordering::Relaxed);
                };
                let thread = std::thread::Builder::new().name("control".into());
                if thread.spawn_scoped(scope, talk).is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // It might be gone, or belong to another process by now.
        if identity(&self.name).is_ok_and(|is| is == self.made) {
            let _ = std::fs::remove_file(&self.name);
        }
    }
}

fn identity(name: &Path) -> io::Result<(u64, u64)> {
    let is = std::fs::symlink_metadata(name)?;
    Ok((is.dev(), is.ino()))
}

pub(crate) fn ask(name: &Path, line: &str, longest: Option<Duration>) -> io::Result<String> {
    exchange(UnixStream::connect(name)?, line, longest)
}

/// Sends a line and returns the response to it.
fn exchange(mut stream: UnixStream, line: &str, longest: Option<Duration>) -> io::Result<String> {
    stream.set_read_timeout(longest)?;
    stream.set_write_timeout(longest)?;
    let mut answer = String::new();
    let sent = match stream.write_all(format!("{line}\n").as_bytes()) {
        // A program with too many clients responds before it reads, and closes.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    };
    let asked =
        sent.and_then(|()| BufReader::new(stream.take(LINE_MAX as u64)).read_line(&mut answer));
    asked.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            let why = format!("no answer after {:?}", longest.unwrap_or_default());
            io::Error::new(ErrorKind::TimedOut, why)
        }
        _ => error,
    })?;
    if !answer.ends_with('\n') {
        let why = "it ended before it answered";
        return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
    }
    Ok(answer.trim_end_matches('\n').to_owned())
}

/// Answers one client.
fn talk(
    client: &mut UnixStream,
    answer: &dyn Fn(Option<&str>) -> String,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Accepted sockets are blocking on Linux and not on macOS.
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(END_POLL_INTERVAL))?;
    client.set_write_timeout(Some(END_POLL_INTERVAL))?;
    let (mut line, mut is_too_long) = (Vec::new(), false);
    let mut piece = vec![0; 64 << 10];
    while !is_over() {
        let read = match client.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if is_patient(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &piece[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            is_too_long |= line.len() > LINE_MAX;
            let text = std::str::from_utf8(&line).ok().filter(|_| !is_too_long);
            let mut response = answer(text);
            response.push('\n');
            send(client, response.as_bytes(), is_over)?;
            line.clear();
            is_too_long = false;
        }
        line.extend_from_slice(rest);
        if line.len() > LINE_MAX {
            // The rest of the line is read and not kept.
            is_too_long = true;
            line.clear();
        }
    }
    Ok(())
}

/// Sends all of it, as long as there is a client to get it.
fn send(client: &mut UnixStream, mut text: &[u8], is_over: &dyn Fn() -> bool) -> io::Result<()> {
    let mut waited = Duration::ZERO;
    while !text.is_empty() {
        match client.write(text) {
            Ok(sent) => text = &text[sent..],
            Err(error) if is_patient(&error) && (!is_over() || waited < LAST_WAIT) => {
                waited += END_POLL_INTERVAL;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Timeout for a client to read the last response.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn is_patient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_comes_before_the_request_is_read() {
        let (asking, mut responding) = UnixStream::pair().unwrap();
        responding.write_all(BUSY_RESPONSE).unwrap();
        drop(responding);
        let response = exchange(asking, "status", None).unwrap();
        assert_eq!(format!("{response}\n").as_bytes(), BUSY_RESPONSE);
    }
}
