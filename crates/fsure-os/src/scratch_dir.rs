//! Folders of fsure for what is measured: nothing of them is left behind, not
//! after `kill -9` either.
//!
//! Three things see to that, each for what the one before cannot. Who drops a
//! [`Scratch`] removes it. A guard, another process that waits for the end of
//! the first, removes it when that was killed. Where both were, the next
//! [`Scratch::create`] in the same folder sweeps: a lock inside each folder
//! tells the living from the dead.
//!
//! A resource that the system keeps beyond the folder is noted in it before it is
//! used, in the file `registered`, one line each, the latest counts:
//!
//! ```text
//! zram 3 5f1c…            a zram device, and the boot that it belongs to
//! group /sys/fs/cgroup/…  a control group
//! - zram 3 5f1c…          released by its owner
//! ```
//!
//! Mounts need no line: they are made in a private namespace, which ends with
//! its last process (see [`crate::private_mounts`]).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::host::scratch_dir as host;
pub use crate::scratch_registry::Resource;

/// The prefix of the name of each such folder.
const PREFIX: &str = ".fsure-scratch-";
/// The line that a guard prints once nothing can be lost any more.
const READY: &str = "ready\n";
/// The timeout for the release of what a killed process had: the kernel takes
/// down its mounts after its descriptors, and a device is busy until then.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// The same timeout if no process has just been killed.
const BUSY_TIMEOUT_SHORT: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A folder that is removed with all that is in it when this is dropped.
///
/// It is to be made before the calling thread has a mount namespace of its own,
/// and to be dropped after what was mounted in it: the guard would hold the
/// namespace, and what lies behind a mount is never removed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    place: host::Place,
    guard: Option<Child>,
}

impl Scratch {
    /// Makes a folder in `folder`, for its owner alone, after the removal of
    /// those whose processes are dead. `guard` is a program that does as
    /// [`guard`] when it is called with `sweep`, the folder and the name.
    pub fn create(folder: &Path, guard: Option<&Path>) -> io::Result<Self> {
        let folder = std::path::absolute(folder)?;
        sweep(&folder)?;
        let (name, place) = loop {
            let name = format!("{PREFIX}{}-{:016x}", std::process::id(), random());
            if let Some(place) = host::Place::make(&folder, &name)? {
                break (name, place);
            }
        };
        let mut scratch = Self { path: folder.join(&name), place, guard: None };
        if let Some(program) = guard {
            scratch.guard = Some(start(program, &folder, &name)?);
        }
        Ok(scratch)
    }

    /// The absolute path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the guard's process.
    pub fn guard_id(&self) -> Option<u32> {
        Some(self.guard.as_ref()?.id())
    }

    /// Has a resource released when this process cannot do it any more; to be
    /// called before the resource is used.
    pub fn register(&self, resource: &Resource) -> io::Result<()> {
        self.place.note(&format!("{}\n", resource.line(host::boot)?))
    }

    /// Takes that back: its owner has released it.
    pub fn released(&self, resource: &Resource) -> io::Result<()> {
        self.place.note(&format!("- {}\n", resource.line(host::boot)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed now is left to the guard, or the next sweep. On a
        // device that is gone the guard goes on trying, and this process does not
        // wait for that.
        let is_clear = clear(&self.place, BUSY_TIMEOUT_SHORT).is_ok();
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            if is_clear {
                let _ = guard.wait();
            }
        }
    }
}

/// The duty of the guard, in a process of its own: says on `output` that it is
/// there, waits for the end of its input, and then removes what is left of the
/// scratch folder `name` in `folder`, and of what is registered there.
pub fn guard(folder: &Path, name: &str, mut output: impl io::Write) -> io::Result<()> {
    if !is_scratch_name(name) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not the name of a scratch folder",
        ));
    }
    host::leave_session()?;
    let place = host::Place::open(folder, name)?;
    // A process that was killed by now does not take it, and has left the folder all the same.
    let _ = output.write_all(READY.as_bytes()).and_then(|()| output.flush());
    // Nothing is ever written: this returns when the other end is closed.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    clear(&place, BUSY_TIMEOUT)
}

fn start(program: &Path, folder: &Path, name: &str) -> io::Result<Child> {
    let mut guard = Command::new(program)
        .arg("sweep")
        .args([folder.as_os_str(), name.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = guard.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line == READY {
        return Ok(guard);
    }
    drop(guard.stdin.take());
    let status = guard.wait()?;
    let program = program.display();
    Err(io::Error::other(format!("{program}, which cleans up after a kill, has ended: {status}")))
}

/// Removes the scratch folders of processes that have ended. What cannot be
/// removed is left for the next time.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str().filter(|name| is_scratch_name(name))
            && let Ok(Some(dead)) = host::Place::take(folder, name)
        {
            let _ = clear(&dead, BUSY_TIMEOUT_SHORT);
        }
    }
    Ok(())
}

/// Returns true if a name is one that [`Scratch::create`] gives.
fn is_scratch_name(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, random)| {
        process.parse::<u32>().is_ok()
            && random.len() == 16
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Releases what is registered, and then removes the folder; tries again until
/// the timeout. What is registered and not released stays noted.
fn clear(place: &host::Place, timeout: Duration) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        if !place.is_there() {
            return Ok(());
        }
        let released = registered(&place.noted()?).iter().try_for_each(host::release);
        let cleared = match &released {
            Ok(()) => place.remove(),
            Err(_) => place.empty().and(released),
        };
        if cleared.is_ok() || begun.elapsed() >= timeout {
            return cleared;
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

/// Returns the resources that the lines leave registered, the latest first: it
/// may be in use by nothing but what came before it.
fn registered(lines: &str) -> Vec<Resource> {
    let mut standing: Vec<&str> = Vec::new();
    // A line without its end was not acknowledged, and nothing came of it.
    for line in lines.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        match line.strip_prefix("- ") {
            Some(gone) => standing.retain(|line| *line != gone),
            None => standing.push(line),
        }
    }
    standing.into_iter().rev().filter_map(|line| Resource::parse(line, host::boot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn it_goes_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(folder.path(), None).unwrap();
        std::fs::create_dir_all(scratch.path().join("a/b/c")).unwrap();
        std::fs::write(scratch.path().join("a/b/file"), "x").unwrap();
        drop(scratch);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn what_the_dead_left_is_swept_and_the_living_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let living = Scratch::create(folder.path(), None).unwrap();
        let dead = folder.path().join(format!("{PREFIX}77-0123456789abcdef"));
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("file"), "x").unwrap();
        for other in [".fsure-scratch-x", ".fsure-scratch-7-short", "file"] {
            std::fs::write(folder.path().join(other), "precious").unwrap();
        }
        let next = Scratch::create(folder.path(), None).unwrap();
        assert!(living.path().exists() && next.path().exists() && !dead.exists());
        assert_eq!(names(folder.path()).len(), 5);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("precious"), "x").unwrap();
        let scratch = Scratch::create(folder.path(), None).unwrap();
        symlink(outside.path(), scratch.path().join("link")).unwrap();
        symlink(outside.path().join("precious"), scratch.path().join("file")).unwrap();
        drop(scratch);
        // Nor by the sweep: a link in the place of a folder belongs to no process.
        let planted = folder.path().join(format!("{PREFIX}77-0123456789abcdef"));
        symlink(outside.path(), &planted).unwrap();
        drop(Scratch::create(folder.path(), None).unwrap());
        assert!(planted.is_symlink());
        assert_eq!(names(outside.path()), ["precious"]);
        assert_eq!(names(folder.path()).len(), 1);
    }

    #[test]
    fn the_latest_line_counts() {
        let group = |name: &str| Resource::Group(name.into());
        assert_eq!(registered("group a\ngroup b\n- group a\n"), [group("b")]);
        assert_eq!(registered("group a\ngroup b\n"), [group("b"), group("a")]);
        assert_eq!(registered("group a\ngroup cut o"), [group("a")]);
        assert_eq!(registered("zram 3 of-another-boot\nnonsense\n\n"), []);
    }

    #[test]
    fn a_guard_that_does_not_start_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        assert!(Scratch::create(folder.path(), Some(&none)).is_err());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
