//! The keeper of a control group: a process that bounds its page cache, and outlives fsure if
//! that is killed, or if the command leaves processes behind.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::group::{Charged, Group};

/// The pause between two checks of a group that is at work. A fast drive reads 100 MB meanwhile.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// The pause if its processes wait for what they have written.
const THROTTLED_INTERVAL: Duration = Duration::from_millis(5);
/// The longest pause, for one that is idle.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// The process, seen from the one that waits for the command.
pub(super) struct Keeper(Child);

impl Keeper {
    pub(super) fn begin(program: &Path, group: &Group, cache: u64) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("uncached-keep").arg(group.folder()).arg(cache.to_string());
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        // Not of the group to which a terminal sends its signals.
        let mut child = command.stderr(Stdio::null()).process_group(0).spawn()?;
        let (output, folder) = (child.stdout.take(), group.folder().to_owned());
        std::thread::spawn(move || lift_at_end(output, folder));
        Ok(Self(child))
    }

    pub(super) fn process(&self) -> u32 {
        self.0.id()
    }

    /// Returns true if it has ended before [`Keeper::dismiss`].
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Has it remove the group, which is empty, and waits for that.
    pub(super) fn dismiss(mut self) {
        drop(self.0.stdin.take());
        // A keeper that cannot be waited for has ended.
        let _ = self.0.wait();
    }

    /// Ends it at once, if it has nothing to keep.
    pub(super) fn kill(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes the bound of the group away if the keeper is killed: a command that then needs more
/// memory would stand still.
fn lift_at_end(output: Option<ChildStdout>, folder: PathBuf) -> io::Result<()> {
    // Nothing is ever written to it: it ends with the keeper.
    output.map(|mut output| output.read_to_end(&mut Vec::new())).transpose()?;
    // A keeper that was not killed has removed the group.
    Group::at(folder)?.lift()
}

pub(crate) fn keep(folder: &Path, cache: u64, input: &io::Stdin) -> io::Result<()> {
    let mut group = Group::at(folder.to_owned())?;
    let mut events = group.events();
    let (mut is_alone, mut pause, mut seen) = (false, BUSY_INTERVAL, Charged::default());
    loop {
        let now = group.bound(cache)?;
        if is_alone && group.processes()? == 0 {
            group.give_back()?;
            return group.remove();
        }
        pause = match group.is_throttled() {
            true => THROTTLED_INTERVAL,
            false if now == seen => IDLE_INTERVAL.min(pause * 2),
            false => BUSY_INTERVAL,
        };
        seen = now;
        // Nothing is ever written to it: it is ready when fsure has ended.
        let input = (!is_alone).then_some(input);
        is_alone |= wait(input, events.as_mut(), pause)?;
    }
}

/// Waits until the input has ended, and returns true then; or until the bound was exceeded, or
/// the pause is over.
fn wait(
    input: Option<&io::Stdin>,
    mut events: Option<&mut File>,
    pause: Duration,
) -> io::Result<bool> {
    if let Some(events) = &mut events {
        // Only what comes after it was read makes it ready.
        events.rewind()?;
        events.read_to_end(&mut Vec::new())?;
    }
    let mut files = Vec::new();
    files.extend(input.map(|input| PollFd::new(input, PollFlags::IN)));
    files.extend(events.as_deref().map(|events| PollFd::new(events, PollFlags::PRI)));
    let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
    match poll(&mut files, Some(&pause)) {
        Ok(_) => Ok(input.is_some() && !files[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
