//! Contact point of the process that holds a folder: a socket in the runtime folder,
//! named after the folder, is all that other processes know of it. The process that
//! responds there holds the folder. A lock beside the socket keeps two processes from
//! holding the same folder. A process that lets go of a folder while no client listens
//! leaves a message.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsure_os::control_socket::{self, Control};
use fsure_os::lock::{self, Attempt, Lock};

use super::Pinned;
use fsure_core::{Error, IoContext as _, Result, escape};

/// File name extension of a message that was left.
const WORD: &str = "word";
/// File name extension of a lock.
const LOCK: &str = "lock";
/// Timeout for a process to let go of a folder, or to begin.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const RESPONSE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The socket of this process, until it is dropped. The lock goes after the socket:
/// who has the lock takes over what a killed one has left, and nothing else.
pub(super) struct PinSocket {
    control: Control,
    _lock: LockFile,
}

/// A lock whose file goes with it.
struct LockFile {
    name: PathBuf,
    _lock: Lock,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        fsure_os::path::remove(&self.name, false);
    }
}

impl PinSocket {
    /// Opens the socket of a folder. Fails if another process holds the folder.
    pub(super) fn open(folder: &Path, runtime: &Path) -> Result<Self> {
        for made in [runtime, &runtime.join("pin")] {
            fsure_os::path::make_folder(made).context("make", made)?;
        }
        let socket = socket(folder, runtime);
        let begun = Instant::now();
        // One that is just beginning, or ending, is there and does not answer.
        while begun.elapsed() < RESPONSE_TIMEOUT {
            let lock = lock(&socket)?;
            let answered = ask(&socket, "status")?;
            if matches!(answered, Answered::By(_)) {
                break;
            }
            if let (Ok(lock), Answered::NoProcess) = (lock, answered) {
                match Control::listen(&socket) {
                    // One that was killed has not let go of all that it had.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    listened => {
                        let control = listened.context("listen on", &socket)?;
                        return Ok(Self { control, _lock: lock });
                    }
                }
            }
            std::thread::sleep(RESPONSE_POLL_INTERVAL);
        }
        Err(Error::FailedPrecondition {
            message: format!("{} is already pinned", folder.display()),
            hint: Some(format!(
                "to unpin it, run {}",
                fsure_core::shell_command("fsure ram unpin", folder)
            )),
        })
    }

    pub(super) fn serve(
        &self,
        answer: &(dyn Fn(Option<&str>) -> String + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) {
        self.control.serve(answer, is_over);
    }
}

/// Has the process that holds a folder let go of it, and waits until it has. `None`
/// if no process holds it.
pub fn unpin(folder: &Path, runtime: &Path) -> Result<Option<Pinned>> {
    let folder = real(folder)?;
    let socket = socket(&folder, runtime);
    let begun = Instant::now();
    let mut pinned = None;
    loop {
        match ask(&socket, "end")? {
            Answered::NoProcess => return Ok(pinned),
            Answered::By(answer) => pinned = Some(answer),
            Answered::Silence => {}
        }
        if begun.elapsed() > RESPONSE_TIMEOUT {
            let holder =
                lock(&socket)?.err().unwrap_or_else(|| "the process that holds it".to_owned());
            return Err(Error::FailedPrecondition {
                message: format!("{holder} does not unpin {}", folder.display()),
                hint: Some("end it with 'kill -9': nothing can be lost".to_owned()),
            });
        }
        std::thread::sleep(RESPONSE_POLL_INTERVAL);
    }
}

/// All that hold a folder and answer, and the sockets of those that were killed.
pub fn pinned(runtime: &Path) -> Result<(Vec<Pinned>, Vec<PathBuf>)> {
    let (mut living, mut dead) = (Vec::new(), Vec::new());
    let folder = runtime.join("pin");
    if !fsure_os::path::exists(&folder) {
        return Ok((living, dead));
    }
    let names = fsure_os::user_file::names(&folder).context("list", &folder)?;
    // The name of a socket has no extension.
    for name in names.iter().filter(|name| !name.contains(&b'.')) {
        let socket = folder.join(fsure_os::path::from_bytes(name));
        match ask(&socket, "status")? {
            Answered::By(pinned) => living.push(pinned),
            Answered::NoProcess => dead.push(socket),
            Answered::Silence => {}
        }
    }
    living.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok((living, dead))
}

/// Leaves a message: there might be no process that listens. If this fails, there is
/// nothing to read.
pub(super) fn leave_word(folder: &Path, runtime: &Path, how: &str) {
    let file = socket(folder, runtime).with_extension(WORD);
    let shown = escape(&fsure_os::path::bytes(folder));
    let _ = fsure_os::user_file::create_new(&file)
        .and_then(|mut word| writeln!(word, "unpinned {shown}: {how}"));
}

/// Returns the message of a process that let go of a folder by itself, and removes it;
/// `None` if there is none.
pub fn word(folder: &Path, runtime: &Path) -> Option<String> {
    let file = socket(&real(folder).ok()?, runtime).with_extension(WORD);
    let mut word = String::new();
    fsure_os::user_file::open(&file).ok()?.take(4096).read_to_string(&mut word).ok()?;
    fsure_os::path::remove(&file, false);
    Some(word.trim_end().to_owned())
}

/// The lock of a folder, or who has it.
fn lock(socket: &Path) -> Result<std::result::Result<LockFile, String>> {
    let name = socket.with_extension(LOCK);
    Ok(match lock::try_lock(&name).context("lock", &name)? {
        Attempt::Locked(lock) => Ok(LockFile { name, _lock: lock }),
        Attempt::HeldBy(holder) => Err(holder),
    })
}

/// Result of a request at a socket.
enum Answered {
    By(Pinned),
    /// It is there, and does not answer.
    Silence,
    NoProcess,
}

fn ask(socket: &Path, line: &str) -> Result<Answered> {
    use io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, TimedOut, UnexpectedEof,
    };
    match control_socket::ask(socket, line, Some(control_socket::AT_ONCE)) {
        Ok(answer) => serde_json::from_str(&answer).map(Answered::By).map_err(|error| {
            Error::Internal(format!("an answer on {}: {error}", socket.display()))
        }),
        Err(error) => match error.kind() {
            TimedOut => Ok(Answered::Silence),
            // One that ends just now closes its socket before or behind the question.
            BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof => {
                Ok(Answered::NoProcess)
            }
            _ => Err(error).context("ask", socket),
        },
    }
}

/// The folder under its one name.
pub(super) fn real(folder: &Path) -> Result<PathBuf> {
    let real = fsure_os::path::without_links(folder).context("find", folder)?;
    if fsure_os::path::is_folder(&real) {
        return Ok(real);
    }
    let message = format!("{} is not a folder", folder.display());
    Err(Error::Usage {
        message,
        hint: Some(
            "name the folder that holds it: a folder is pinned with all its files".to_owned(),
        ),
    })
}

fn socket(folder: &Path, runtime: &Path) -> PathBuf {
    // A socket's name may have 107 bytes, and a folder's path any number.
    let name = blake3::hash(&fsure_os::path::bytes(folder)).to_hex();
    runtime.join("pin").join(&name[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_a_short_name_of_its_own() {
        let runtime = Path::new("/run/fsure");
        let [one, other] = ["/a", "/b"].map(|folder| socket(Path::new(folder), runtime));
        assert_ne!(one, other);
        let long = socket(Path::new(&"/long".repeat(500)), runtime);
        assert!(long.as_os_str().len() < 100);
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_is_just_beginning_is_waited_for() {
        let runtime = tempfile::tempdir().unwrap();
        let folder = Path::new("/srv");
        // One was killed, and two others begin.
        let dead = PinSocket::open(folder, runtime.path()).unwrap();
        let name = socket(folder, runtime.path());
        std::fs::hard_link(&name, runtime.path().join("kept")).unwrap();
        drop(dead);
        std::fs::rename(runtime.path().join("kept"), &name).unwrap();
        assert_eq!(pinned(runtime.path()).unwrap().1, vec![name.clone()]);
        let first = lock(&name).unwrap().unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| PinSocket::open(folder, runtime.path()).is_ok());
            std::thread::sleep(10 * RESPONSE_POLL_INTERVAL);
            assert!(!second.is_finished(), "it takes the other one's place");
            drop(first);
            assert!(second.join().unwrap());
        });
        assert_eq!(std::fs::read_dir(runtime.path().join("pin")).unwrap().count(), 0);
    }
}
