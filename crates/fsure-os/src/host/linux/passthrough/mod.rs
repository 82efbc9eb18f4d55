//! The pass-through file system: the server, and who starts it. See
//! [`crate::passthrough`].

mod counts;
mod nodes;
mod view;

use std::io::{self, BufRead as _, BufReader, Write};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::io::FdFlags;

use super::private_mounts::{Mount, Namespace};
use crate::passthrough::{Served, Server};
use counts::{RequestCounters, of_line, to_line};
use view::PassthroughFs;

const READY: &str = "ready\n";
/// bindfs says nothing when it is mounted.
const BINDFS_MOUNT_TIMEOUT: Duration = Duration::from_secs(10);
const MOUNT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A folder mounted a second time through FUSE. Dropping it ends the server.
#[derive(Debug)]
pub struct Passthrough {
    /// Gone before the server is.
    mount: Option<Mount>,
    server: ServerProcess,
}

/// The server, which is ended when this is dropped.
#[derive(Debug)]
struct ServerProcess {
    child: Child,
    /// Output of fsure's own server; `None` for bindfs.
    answers: Option<Mutex<BufReader<ChildStdout>>>,
}

impl Passthrough {
    /// Mounts `source` over the folder `at`. `program` is the one that calls
    /// [`serve`] when it is called with `pass-through`.
    pub fn mount(
        space: &Namespace,
        server: Server,
        program: &Path,
        (source, at): (&Path, &Path),
    ) -> io::Result<Self> {
        let command = match server {
            Server::Bindfs => bindfs(source, at),
            Server::Plain | Server::Kernel => own_server(program, server, source, at),
        };
        if let Some(mounted) = space.mount_fuse(at) {
            return Self::serve_mounted(mounted?, (command, server), at);
        }
        let process = Arc::new(Mutex::new(None));
        let (started, place) = (Arc::clone(&process), at.to_owned());
        let mounted = space.mount_by(at, move || {
            let process = start(command, server, &place)?;
            *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
            Ok(())
        });
        let server = process.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mount = Some(mounted?);
        let server = server.ok_or_else(|| io::Error::other("no server was started"))?;
        Ok(Self { mount, server })
    }

    /// Starts a server for what is mounted already, without root.
    fn serve_mounted(
        (mount, device): (Mount, OwnedFd),
        (mut command, server): (Command, Server),
        at: &Path,
    ) -> io::Result<Self> {
        let needs_root = match server {
            Server::Plain => None,
            Server::Kernel => Some("the kernel passes reads and writes on by itself for root only"),
            Server::Bindfs => Some("bindfs is mounted for fsure alone by root only"),
        };
        if let Some(why) = needs_root {
            let why = format!("needs root: {why}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let number = device.as_raw_fd();
        command.args(["--device", &number.to_string()]);
        // SAFETY: between fork and exec one system call is made.
        unsafe {
            command.pre_exec(move || {
                // SAFETY: it is open until the server has been started.
                let device = BorrowedFd::borrow_raw(number);
                Ok(rustix::io::fcntl_setfd(device, FdFlags::empty())?)
            });
        }
        let server = start(command, server, at)?;
        drop(device);
        Ok(Self { mount: Some(mount), server })
    }

    /// A path that leads to it from everywhere.
    pub fn path(&self) -> PathBuf {
        self.mount.as_ref().map(Mount::path).unwrap_or_default()
    }

    /// Returns the requests that the server has answered so far; `None` for bindfs, which does
    /// not report them.
    pub fn served(&mut self) -> Option<Served> {
        let answers = self.server.answers.as_ref()?;
        self.server.child.stdin.as_mut()?.write_all(b"served\n").ok()?;
        let mut line = String::new();
        answers.lock().unwrap_or_else(PoisonError::into_inner).read_line(&mut line).ok()?;
        of_line(&line)
    }
}

impl Drop for Passthrough {
    fn drop(&mut self) {
        // First what uses the server.
        drop(self.mount.take());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.answers.is_none() {
            // bindfs ends when it is unmounted; where that failed, now.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn own_server(program: &Path, server: Server, source: &Path, at: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("pass-through").args([source, at]).stdin(Stdio::piped()).stdout(Stdio::piped());
    if server == Server::Kernel {
        command.arg("--kernel");
    }
    command
}

fn bindfs(source: &Path, at: &Path) -> Command {
    let mut command = Command::new("bindfs");
    command.arg("-f").args([source, at]).stdin(Stdio::null()).stdout(Stdio::null());
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only two system calls are made.
    unsafe {
        command.pre_exec(move || {
            use rustix::process::{Signal, getppid, set_parent_process_death_signal};
            // By itself bindfs does not end with any other process: the thread that
            // mounts is its parent, and bindfs goes with that.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            match getppid() == Some(parent) {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        });
    }
    command
}

/// Starts a server, in the namespace, and waits until it has mounted.
fn start(mut command: Command, server: Server, at: &Path) -> io::Result<ServerProcess> {
    let mut child = command.stderr(Stdio::null()).spawn().map_err(|error| {
        let program = command.get_program().display();
        let remedy = if server == Server::Bindfs { "install bindfs: " } else { "" };
        io::Error::new(error.kind(), format!("{remedy}cannot start {program}: {error}"))
    })?;
    let answers = child.stdout.take().map(|output| Mutex::new(BufReader::new(output)));
    let mut process = ServerProcess { child, answers };
    let Some(answers) = process.answers.as_ref() else {
        wait_for_mount(&mut process.child, at)?;
        return Ok(process);
    };
    let mut line = String::new();
    answers.lock().unwrap_or_else(PoisonError::into_inner).read_line(&mut line)?;
    if line == READY {
        return Ok(process);
    }
    let why = line.trim().strip_prefix("failed: ").unwrap_or("the server ended at once");
    Err(io::Error::other(format!("cannot mount a FUSE file system: {why}")))
}

/// Waits until there is another file system at a folder.
fn wait_for_mount(child: &mut Child, at: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let above = std::fs::metadata(at.parent().unwrap_or(at))?.dev();
    let begun = Instant::now();
    while std::fs::metadata(at)?.dev() == above {
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("bindfs ended at once: {status}")));
        }
        if begun.elapsed() > BINDFS_MOUNT_TIMEOUT {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "bindfs did not mount"));
        }
        std::thread::sleep(MOUNT_POLL_INTERVAL);
    }
    Ok(())
}

/// The duty of the server: mounts `source` over `at`, unless `device` is of a mount that is there
/// already, and says so on `output`, answers for as long as its input lasts, and unmounts.
pub fn serve(
    source: &Path,
    at: &Path,
    kernel: bool,
    device: Option<i32>,
    mut output: impl Write,
) -> io::Result<()> {
    // Each name that the kernel knows of is a descriptor of this process.
    crate::rlimit::open_files();
    let counts = Arc::new(RequestCounters::default());
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::DefaultPermissions, MountOption::FSName("fsure".into())];
    let session = PassthroughFs::new(source, kernel, Arc::clone(&counts))
        .and_then(|view| match device {
            Some(number) => {
                // SAFETY: the process that started this one has left it open for this purpose.
                let device = unsafe { OwnedFd::from_raw_fd(number) };
                Session::from_fd(view, device, SessionACL::Owner, Config::default())
            }
            None => Session::new(view, at, &config),
        })
        .and_then(Session::spawn);
    let session = match session {
        Ok(session) => session,
        Err(error) => return writeln!(output, "failed: {error}"),
    };
    output.write_all(READY.as_bytes())?;
    output.flush()?;
    for line in io::stdin().lines() {
        if line? == "served" {
            output.write_all(to_line(&counts.read()).as_bytes())?;
            output.flush()?;
        }
    }
    drop(session);
    Ok(())
}
