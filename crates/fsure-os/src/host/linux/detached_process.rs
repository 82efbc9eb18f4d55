//! Processes that outlive the one that started them. See [`crate::detached_process`].

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Socket of the system log.
const LOG: &str = "/dev/log";
/// Bytes in a line, at most: no process of fsure writes a longer one.
const LINE_MAX: u64 = 4 << 20;

/// A process that was started. Dropping this leaves it alone.
#[derive(Debug)]
pub struct DetachedProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl DetachedProcess {
    /// Starts a process in a session of its own, so that no terminal ends it, with
    /// the root as its working folder, so that it holds none. Its standard error goes
    /// where that of this process goes if `shows_errors`.
    pub fn spawn(program: &Path, arguments: &[OsString], shows_errors: bool) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
        if !shows_errors {
            command.stderr(Stdio::null());
        }
        // SAFETY: between fork and exec only a system call is made.
        unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    /// Its number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its next line, without its end; `None` once it says no more.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.output.by_ref().take(LINE_MAX).read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end_matches('\n').to_owned()))
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    /// Takes note of it if it has ended.
    pub fn reap(&mut self) -> io::Result<()> {
        self.child.try_wait().map(drop)
    }
}

/// Returns the start time of a process, in ticks since the machine was started; `None` if
/// it has ended, even if its parent has not waited for it yet.
pub fn begun(process: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name may have any letters in it, parentheses too.
    let (_, fields) = line.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let is_over = ["Z", "X"].contains(fields.first()?);
    fields.get(19)?.parse().ok().filter(|_| !is_over)
}

/// Returns true if the process with this number and start time is running.
pub fn is_running(process: u32, began: u64) -> bool {
    begun(process) == Some(began)
}

/// Asks the process that began then to end.
pub fn terminate(process: u32, began: u64) -> io::Result<()> {
    if !is_running(process, began) {
        return Ok(());
    }
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    Ok(kill_process(process.ok_or(io::ErrorKind::InvalidInput)?, Signal::TERM)?)
}

/// Says something to systemd, at the socket that it named (sd_notify(3)).
pub fn notify(socket: &OsStr, words: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(words.as_bytes(), &address).map(drop)
}

/// Says something to the system's log, as a warning of a daemon (syslog(3); RFC 3164,
/// whose date the log adds).
pub fn log(words: &str) -> io::Result<()> {
    /// `LOG_DAEMON`, `LOG_WARNING`.
    const PRIORITY: u8 = 3 << 3 | 4;
    let line = format!("<{PRIORITY}>fsure[{}]: {words}", std::process::id());
    let socket = UnixDatagram::unbound()?;
    // A log that does not read is none.
    socket.set_nonblocking(true)?;
    socket.send_to(line.as_bytes(), LOG).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_process_are_read_and_it_is_identified_by_its_start() {
        let script = "echo one; echo two; read -r x < /proc/self/stat; exec sleep 1000";
        let arguments = ["-c", script].map(OsString::from);
        let mut started = DetachedProcess::spawn(Path::new("/bin/sh"), &arguments, true).unwrap();
        assert_eq!(started.line().unwrap().as_deref(), Some("one"));
        assert_eq!(started.line().unwrap().as_deref(), Some("two"));
        let began = begun(started.process()).unwrap();
        assert!(is_running(started.process(), began));
        assert!(!is_running(started.process(), began + 1), "another of this number");
        terminate(started.process(), began + 1).unwrap();
        assert!(is_running(started.process(), began), "another one was meant");
        terminate(started.process(), began).unwrap();
        assert_eq!(started.line().unwrap(), None);
        let asked = std::time::Instant::now();
        while is_running(started.process(), began) {
            assert!(asked.elapsed().as_secs() < 60, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        started.reap().unwrap();
        assert_eq!(begun(started.process()), None);
    }

    #[test]
    fn systemd_is_notified() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("socket");
        let socket = UnixDatagram::bind(&name).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        notify(name.as_os_str(), "READY=1\n").unwrap();
        let mut received = [0; 100];
        let length = socket.recv(&mut received).expect("nothing was told");
        assert_eq!(&received[..length], b"READY=1\n");
    }
}
