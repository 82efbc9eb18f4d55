//! The keeper of a RAM folder starts its worker, and starts it again when it was
//! killed: the mounts are still there, and what is in them. It ends when the folder
//! is out of RAM. A worker whose keeper was killed starts another one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use fsure_os::detached_process::{DetachedProcess, begun, terminate};

use super::protocol::{DaemonEvent, Failed};
use super::registry::{Registry, Role, already_running_error};
use fsure_core::{Error, ExitCode, IoContext as _, Result};

/// Interval between checks of the worker and of signals.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A worker that ends sooner than this has met what the next one will, too.
const EARLY_EXIT_TIME: Duration = Duration::from_secs(5);
/// Between such, at most.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// This program, as it starts itself.
#[derive(Clone, Debug)]
pub struct SelfExec {
    /// Path of the executable.
    pub path: PathBuf,
    /// True if no other process restarts a keeper that was killed. It is false below
    /// systemd, which restarts it.
    pub is_alone: bool,
}

impl SelfExec {
    fn start(&self, role: &str, id: &str) -> Result<DetachedProcess> {
        let alone = if self.is_alone { "--alone" } else { "--supervised" };
        let arguments = ["ram", role, id, alone].map(OsString::from);
        DetachedProcess::spawn(&self.path, &arguments, !self.is_alone).context("start", &self.path)
    }

    /// Starts a keeper, and waits for what becomes of its folder. A signal that asks
    /// to stop meanwhile is passed on.
    pub fn keep(&self, id: &str, call: &CallerContext<'_>) -> Result<()> {
        let mut keeper = self.start("keep", id)?;
        let (process, is_over) = (keeper.process(), AtomicBool::new(false));
        let began = begun(process).unwrap_or_default();
        std::thread::scope(|scope| {
            let passing_on = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if call.stop.load(Ordering::Relaxed) > 0 {
                        // It may have ended meanwhile.
                        let _ = terminate(process, began);
                        return true;
                    }
                    std::thread::sleep(WORKER_POLL_INTERVAL);
                }
                false
            });
            let result = self.wait_until_ready(&mut keeper, call.report);
            is_over.store(true, Ordering::Relaxed);
            let is_terminated = passing_on.join().unwrap_or(false);
            match result {
                // It was ready at that moment, and takes the folder out of RAM again.
                Ok(()) if is_terminated => Err(Error::Interrupted(ExitCode::Interrupted)),
                // It had no handler for signals yet.
                Err(Error::Internal(_)) if is_terminated => {
                    Err(Error::Interrupted(ExitCode::Interrupted))
                }
                Err(Error::Reported { .. }) if call.stop.load(Ordering::Relaxed) > 0 => {
                    Err(Error::Interrupted(ExitCode::Interrupted))
                }
                other => other,
            }
        })
    }

    fn wait_until_ready(
        &self,
        keeper: &mut DetachedProcess,
        report: &dyn Fn(&DaemonEvent),
    ) -> Result<()> {
        while let Some(line) = keeper.line().context("hear", &self.path)? {
            match serde_json::from_str(&line) {
                Ok(DaemonEvent::Ready { .. }) => return Ok(()),
                Ok(DaemonEvent::Failed(failed)) => return Err(failed.into()),
                Ok(event) => report(&event),
                // Not a message of fsure: a loader's warning.
                Err(_) => {}
            }
        }
        Err(Error::Internal("the keeper has ended without a message".to_owned()))
    }
}

/// The command that started it.
pub struct CallerContext<'a> {
    /// Not 0 once it is asked to end.
    pub stop: &'a AtomicUsize,
    /// Receives the messages for the user.
    pub report: &'a dyn Fn(&DaemonEvent),
}

/// A keeper in the place of one that was killed. Where it cannot be started, it is
/// tried again.
pub(super) fn restart_supervisor(program: &SelfExec, id: &str) -> Option<DetachedProcess> {
    program.start("keep", id).ok()
}

/// Parameters of [`keep`].
pub struct SupervisorConfig<'a> {
    /// Registry that has the folder.
    pub registry: &'a Registry,
    /// Id of the folder.
    pub id: &'a str,
    /// This program.
    pub program: SelfExec,
    /// Not 0 once it is asked to end.
    pub stop: &'a AtomicUsize,
    /// Receives the messages of the worker.
    pub report: &'a dyn Fn(&DaemonEvent),
    /// Called often, as long as all is well.
    pub beat: &'a dyn Fn(),
}

/// Keeps until the folder is out of RAM.
pub fn keep(keep: &SupervisorConfig<'_>) -> Result<()> {
    let SupervisorConfig { registry, id, .. } = *keep;
    let Some(_role) = registry.take(id, Role::Keeper)? else {
        let gone = || Error::Internal(format!("no folder is registered as {id}"));
        let error = registry.read(id).map_or_else(gone, |entry| already_running_error(&entry));
        (keep.report)(&DaemonEvent::Failed(Failed::from(&error)));
        return Err(error);
    };
    let mut worker: Option<RunningWorker> = None;
    let (mut next, mut pause, mut asked) = (Instant::now(), Duration::ZERO, 0);
    let mut last = None;
    loop {
        if let Some(running) = &mut worker {
            running.pass_on(keep.report, &mut last);
            if running.is_over {
                let is_quick = running.since.elapsed() < EARLY_EXIT_TIME;
                pause = if is_quick {
                    (pause * 2).clamp(WORKER_POLL_INTERVAL, PAUSE_MAX)
                } else {
                    WORKER_POLL_INTERVAL
                };
                next = Instant::now() + pause;
                worker = None;
            }
        }
        let is_keeper = registry.has(id, Role::Keeper);
        if !is_keeper && worker.is_none() {
            return last.map_or(Ok(()), |failed: Failed| Err(failed.into()));
        }
        if !is_keeper {
            // Its worker is just ending.
            std::thread::sleep(WORKER_POLL_INTERVAL);
            continue;
        }
        let process = registry.process(id, Role::Worker);
        let signals = keep.stop.load(Ordering::Relaxed);
        if let (Some(process), true) = (process, signals > asked) {
            asked = signals;
            // It may have ended meanwhile.
            let _ = terminate(process.number, process.began);
        }
        if process.is_none() && worker.is_none() && Instant::now() >= next {
            // If there are too many processes now, there might be fewer then.
            worker = RunningWorker::start(&keep.program, id).ok();
            (asked, next) = (0, Instant::now() + EARLY_EXIT_TIME);
        }
        (keep.beat)();
        std::thread::sleep(WORKER_POLL_INTERVAL);
    }
}

/// A worker of this keeper's.
struct RunningWorker {
    lines: Receiver<String>,
    since: Instant,
    is_over: bool,
}

impl RunningWorker {
    fn start(program: &SelfExec, id: &str) -> Result<Self> {
        let mut started = program.start("work", id)?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            while let Ok(Some(line)) = started.line() {
                // A keeper that ends hears no more.
                let _ = sender.send(line);
            }
            let _ = started.wait();
        });
        Ok(Self { lines, since: Instant::now(), is_over: false })
    }

    /// Passes on what it says. A failure is remembered until there is a success.
    fn pass_on(&mut self, report: &dyn Fn(&DaemonEvent), last: &mut Option<Failed>) {
        loop {
            match self.lines.try_recv() {
                Ok(line) => {
                    let Ok(event) = serde_json::from_str(&line) else { continue };
                    match &event {
                        DaemonEvent::Failed(failed) => *last = Some(failed.clone()),
                        DaemonEvent::Ready { .. } => *last = None,
                        _ => {}
                    }
                    report(&event);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }
}
