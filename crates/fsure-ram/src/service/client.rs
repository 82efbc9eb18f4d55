//! Commands of the user on RAM folders. They send requests to the daemon of a folder, and
//! start a daemon if there should be one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fsure_os::control_socket::{AT_ONCE, ask};
use fsure_os::path as os_path;

use super::backend::Backend;
use super::cleanup::{clear_if_unmounted, refuse_unseen};
use super::facts::Facts;
use super::preflight::{PlacementPlan, gather, judge};
use super::protocol::{DaemonEvent, FolderState, Request, Response, line};
use super::registry::{FolderIdentity, Registry, RegistryEntry, Role};
use super::run_memory::RamFolders;
use super::session::is_mounted;
use super::supervisor::{CallerContext, SelfExec};
use crate::write_back::{OWN, Recovered, RecoveryOutcome, recover};
use fsure_core::{Clock, Error, IoContext as _, Result, shell_command};

/// Options for putting a folder into RAM.
#[derive(Clone, Debug)]
pub struct Bind {
    /// The folder.
    pub folder: PathBuf,
    /// Maximum age of a change that a crash loses.
    pub max_loss: Duration,
    /// Bytes of memory at most; `None` for what suits its content.
    pub size: Option<u64>,
    /// Backend of the RAM side.
    pub backend: Backend,
    /// True to only check whether it can be done.
    pub plan: bool,
    /// Folders that were only checked before it, and that would be in RAM by then.
    pub planned: RamFolders,
}

/// Result of [`prepare`].
#[derive(Clone, Debug)]
pub enum BindPlan {
    /// It can be done, and is entered unless it was only checked.
    New(PlacementPlan, RegistryEntry),
    /// It is in RAM, and no process keeps it.
    Orphan(RegistryEntry),
}

/// The least and the greatest loss. If it were shorter, most of the time would be
/// generations; if it were longer, it would not be a bound for any user.
const LOSS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3600)];

/// Refuses a loss that is not a bound, or that cannot be kept.
pub(super) fn check_loss(max_loss: Duration) -> Result<()> {
    let [least, most] = LOSS;
    if (least..=most).contains(&max_loss) {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("a '--max-loss' of {max_loss:?} is out of range"),
        hint: Some(format!("give a time from {least:?} to {} h", most.as_secs() / 3600)),
    })
}

/// Checks whether a folder can be put into RAM, and enters it. Fails if it cannot.
pub fn prepare(registry: &Registry, bind: &Bind) -> Result<BindPlan> {
    check_loss(bind.max_loss)?;
    let path = os_path::without_links(&bind.folder).context("access", &bind.folder)?;
    let _lock = if bind.plan { None } else { Some(registry.lock()?) };
    if let Some(entry) = registry.find(&path)? {
        if is_kept(registry, &entry) {
            return Err(Error::FailedPrecondition {
                message: format!("{} is already in RAM", path.display()),
                hint: Some("'fsure ram status' shows it; 'fsure ram unbind' ends it".to_owned()),
            });
        }
        if is_mounted(&entry)? {
            if bind.plan {
                return Err(Error::FailedPrecondition {
                    message: format!("{} is in RAM, but no process keeps it", path.display()),
                    hint: Some(format!("run {}", shell_command("fsure ram recover", &path))),
                });
            }
            return Ok(BindPlan::Orphan(entry));
        }
        if !bind.plan {
            clear_if_unmounted(registry, &entry)?;
        }
    }
    let own = path.join(OWN);
    if !bind.plan && os_path::is_folder(&own) && !os_path::is_link(&own) {
        // A crash may have left files of fsure's that are also names of the user's files.
        recover(&path)?;
    }
    let (backend, lacks) = (bind.backend, bind.backend.hindrance());
    let facts = Facts { backend, lacks, ..gather(&path, registry)? };
    let plan = judge(&beside(facts, bind.planned), bind.size);
    let entry = RegistryEntry::new(&plan.path, bind.max_loss, (plan.bytes, plan.inodes));
    let (least, since_ns) = (plan.least, Clock::default().now_ns());
    let entry = RegistryEntry {
        least,
        since_ns,
        backend,
        which: FolderIdentity::at(&plan.path).ok(),
        ..entry
    };
    refuse_moved(registry, &entry)?;
    if bind.plan {
        return Ok(BindPlan::New(plan, entry));
    }
    if let Some(first) = plan.refusals.first() {
        let whys: Vec<_> = plan.refusals.iter().map(|refusal| &*refusal.why).collect();
        return Err(Error::FailedPrecondition {
            message: format!("{}: {}", plan.path.display(), whys.join("; ")),
            hint: Some(first.remedy.clone()),
        });
    }
    registry.put(&entry)?;
    Ok(BindPlan::New(plan, entry))
}

/// Takes back what [`prepare`] has entered, if the keeper was ended before it had begun.
pub fn withdraw(registry: &Registry, entry: &RegistryEntry) -> Result<()> {
    let _lock = registry.lock()?;
    if is_kept(registry, entry) || is_mounted(entry)? {
        return Ok(());
    }
    clear_if_unmounted(registry, entry)
}

/// Refuses folders of which one is in another, or is the same: only one of the two can be in RAM.
/// A folder that cannot be found is not looked at.
pub fn refuse_nested(folders: &[PathBuf]) -> Result<()> {
    let paths = folders.iter().filter_map(|folder| os_path::without_links(folder).ok());
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    let pair = paths.windows(2).find(|pair| pair[1].starts_with(&pair[0]));
    let Some([outer, inner]) = pair else { return Ok(()) };
    let message = match inner == outer {
        true => format!("{} is named twice", inner.display()),
        false => format!("{} is in {}, and is in RAM with it", inner.display(), outer.display()),
    };
    Err(Error::Usage { message, hint: Some("name each folder once, and none in another".into()) })
}

/// The facts of a folder as they are once others are in RAM, too.
fn beside(facts: Facts, planned: RamFolders) -> Facts {
    Facts {
        others: facts.others.and(planned.folders, planned.bytes),
        available: facts.available.map(|bytes| bytes.saturating_sub(planned.bytes)),
        ..facts
    }
}

/// Refuses where a folder that was moved has the name in the registry.
fn refuse_moved(registry: &Registry, entry: &RegistryEntry) -> Result<()> {
    let is_other = |other: &RegistryEntry| other.id == entry.id && other.path != entry.path;
    let Some(other) = registry.entries()?.into_iter().find(is_other) else { return Ok(()) };
    let (was, is) = (entry.path.display(), other.path.display());
    Err(Error::FailedPrecondition {
        message: format!("the folder {was} is in RAM, and its path is now {is}"),
        hint: Some(format!("first run {}", shell_command("fsure ram unbind", &other.path))),
    })
}

/// Returns true if a process keeps it or is about to.
fn is_kept(registry: &Registry, entry: &RegistryEntry) -> bool {
    [Role::Worker, Role::Keeper].iter().any(|role| registry.process(&entry.id, *role).is_some())
}

/// One RAM folder, and what its daemon reports of it.
#[derive(Clone, Debug)]
pub struct FolderStatus {
    /// As it was asked for.
    pub entry: RegistryEntry,
    /// Its state; `None` if no process keeps it or that process does not respond.
    pub state: Option<FolderState>,
    /// The process that keeps it and does not respond.
    pub silent: Option<u32>,
    /// True if its RAM side is mounted.
    pub is_mounted: bool,
    /// Last message of its daemon, if the daemon has not taken the folder over.
    pub failing: Option<String>,
}

/// Returns the state of a folder, or of all folders in RAM.
pub fn status(registry: &Registry, folder: Option<&Path>) -> Result<Vec<FolderStatus>> {
    let entries = match folder {
        Some(folder) => vec![find(registry, folder)?],
        None => registry.entries()?,
    };
    let known = |entry: RegistryEntry| {
        let (state, is_silent) = match answer(registry, &entry, Request::Status) {
            Ok(Response::Status(state)) => (Some(*state), false),
            Err(Error::Io { source, .. }) => (None, source.kind() == io::ErrorKind::TimedOut),
            _ => (None, false),
        };
        let worker = registry.process(&entry.id, Role::Worker).filter(|_| is_silent);
        let silent = worker.map(|process| process.number);
        let is_failing = state.is_none() && silent.is_none() && is_kept(registry, &entry);
        let last = || registry.events(Some(&entry.id), 1).pop().map(|event| event.words);
        let failing = if is_failing { last() } else { None };
        Ok(FolderStatus { is_mounted: is_mounted(&entry)?, entry, state, silent, failing })
    };
    entries.into_iter().map(known).collect()
}

/// The entry of a folder that is in RAM.
fn find(registry: &Registry, folder: &Path) -> Result<RegistryEntry> {
    let path = os_path::without_links(folder).context("access", folder)?;
    registry.find(&path)?.ok_or_else(|| Error::FailedPrecondition {
        message: match registry.last_event(&path) {
            Some(event) => {
                format!("{} is not in RAM; its last message: {}", path.display(), event.words)
            }
            None => format!("{} is not in RAM", path.display()),
        },
        hint: Some("'fsure ram status', as root, shows which folders are in RAM".to_owned()),
    })
}

fn answer(registry: &Registry, entry: &RegistryEntry, request: Request) -> Result<Response> {
    let socket = registry.control(&entry.id);
    let longest = (request == Request::Status).then_some(AT_ONCE);
    let text = ask(&socket, &line(&request), longest).context("ask at", &socket)?;
    serde_json::from_str(&text)
        .map_err(|why| Error::Internal(format!("the daemon's answer cannot be read: {why}")))
}

/// Pause between two looks at a daemon that has not answered, and the time that it must
/// have been at one step before the user gets a message about that step.
const PROGRESS_MESSAGE_DELAY: Duration = Duration::from_secs(5);

/// Sends a request that may take long. Reports each step that delays the daemon's response
/// to the user, once.
fn request_with_progress(
    registry: &Registry,
    entry: &RegistryEntry,
    request: Request,
    call: &CallerContext<'_>,
) -> Result<Response> {
    let (sender, answers) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(answer(registry, entry, request)));
        let mut last_reported = None;
        loop {
            match answers.recv_timeout(PROGRESS_MESSAGE_DELAY) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Internal(
                        "the thread that asks the daemon has ended".to_owned(),
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let Some((what, words)) = explain_delay(registry, entry, request) else { continue };
            if last_reported.as_ref() != Some(&what) {
                (call.report)(&DaemonEvent::Warning { words });
                last_reported = Some(what);
            }
        }
    })
}

/// Returns the step that delays the daemon's response, and a message for the user about
/// it; `None` if there is nothing to report.
fn explain_delay(
    registry: &Registry,
    entry: &RegistryEntry,
    request: Request,
) -> Option<(String, String)> {
    let path = entry.path.display();
    match answer(registry, entry, Request::Status) {
        Ok(Response::Status(state)) => {
            let long = u64::try_from(PROGRESS_MESSAGE_DELAY.as_millis()).unwrap_or(u64::MAX);
            let doing = state.doing.filter(|_| state.doing_ms >= long)?;
            let hint = match request {
                Request::Unbind => "it stays in RAM until then, and is unbound afterwards",
                _ => "nothing newer is on the disk until then",
            };
            let (seconds, loss) = (state.doing_ms / 1000, state.worst_loss_ms as f64 / 1e3);
            let words = format!(
                "{path}: waiting for its daemon, which has been busy with one step for {seconds} \
                 s: {doing}; {hint} (a crash would lose {loss:.0} s now). Ctrl-C ends only the \
                 waiting"
            );
            Some((doing, words))
        }
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::TimedOut => {
            let number = registry.process(&entry.id, Role::Worker)?.number;
            let words = format!(
                "{path}: waiting for its daemon, process {number}, which does not answer: if it is \
                 stopped, 'kill -CONT {number}' resumes it. Ctrl-C ends only the waiting"
            );
            Some((String::new(), words))
        }
        _ => None,
    }
}

/// Asks the daemon of a folder, which is started where it was killed.
pub fn request(
    registry: &Registry,
    program: &SelfExec,
    folder: &Path,
    request: Request,
    call: &CallerContext<'_>,
) -> Result<Response> {
    let entry = find(registry, folder)?;
    if !is_kept(registry, &entry) {
        if !is_mounted(&entry)? {
            return Err(Error::FailedPrecondition {
                message: format!("{} is not in RAM any more", entry.path.display()),
                hint: Some(
                    "'fsure ram recover' completes or discards the generation that was under way"
                        .to_owned(),
                ),
            });
        }
        program.keep(&entry.id, call)?;
    }
    match answer_in_time(registry, &entry, request, call)? {
        Response::Failed(failed) => Err(failed.into()),
        answer => Ok(answer),
    }
}

/// Longer than a keeper waits between two workers.
const WORKER_RESTART_TIMEOUT: Duration = Duration::from_secs(40);

/// The worker's answer, once it has one: one that was killed is started again in a
/// moment, and takes over what may be much. Fails where each of them fails.
fn answer_in_time(
    registry: &Registry,
    entry: &RegistryEntry,
    request: Request,
    call: &CallerContext<'_>,
) -> Result<Response> {
    let (began_ns, mut since) = (Clock::default().now_ns(), None);
    loop {
        match request_with_progress(registry, entry, request, call) {
            Err(Error::Io { .. }) if registry.read(&entry.id).is_none() => {
                let message = format!("{} is not in RAM any more", entry.path.display());
                return Err(Error::FailedPrecondition { message, hint: None });
            }
            Err(Error::Io { .. }) if is_kept(registry, entry) => {}
            other => return other,
        }
        let last = registry.events(Some(&entry.id), 1).pop();
        let has_failed = last.as_ref().is_some_and(|event| event.at_ns >= began_ns);
        since = match registry.process(&entry.id, Role::Worker) {
            Some(_) => None,
            None => Some(since.unwrap_or_else(Instant::now)),
        };
        if since
            .is_some_and(|since: Instant| has_failed || since.elapsed() > WORKER_RESTART_TIMEOUT)
        {
            let last = last
                .map_or("its daemon was restarted and does not stay alive".to_owned(), |event| {
                    event.words
                });
            return Err(Error::Io {
                doing: "reach the daemon of",
                path: entry.path.clone(),
                source: std::io::Error::other(format!("nothing reaches the disk: {last}")),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Result of the recovery of a folder after a crash.
#[derive(Clone, Debug)]
pub enum RecoverOutcome {
    /// A daemon keeps it: nothing is to be done.
    Kept,
    /// It was in RAM still, and a daemon keeps it again.
    Adopted,
    /// It is on the disk alone.
    Recovered(RecoveryOutcome),
}

/// Folders that were in RAM when the machine went down, or whose daemon is gone.
pub fn left_over(registry: &Registry) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = registry.left_over()?.into_iter().map(|entry| entry.path).collect();
    let lost = registry.entries()?.into_iter().filter(|entry| !is_kept(registry, entry));
    paths.extend(lost.map(|entry| entry.path));
    Ok(paths)
}

/// Settles what a crash has left of a folder: takes over what is still in RAM, and
/// completes or discards what was under way on the disk.
pub fn recover_folder(
    registry: &Registry,
    program: &SelfExec,
    folder: &Path,
    call: &CallerContext<'_>,
) -> Result<RecoverOutcome> {
    let path = os_path::without_links(folder).context("access", folder)?;
    if let Some(entry) = registry.find(&path)? {
        if is_kept(registry, &entry) {
            // A keeper may have workers of which each fails.
            return answer_in_time(registry, &entry, Request::Status, call)
                .map(|_| RecoverOutcome::Kept);
        }
        if is_mounted(&entry)? {
            program.keep(&entry.id, call)?;
            return Ok(RecoverOutcome::Adopted);
        }
        refuse_unseen(&entry)?;
        let recovered = recover(&path)?;
        clear_if_unmounted(registry, &entry)?;
        return Ok(RecoverOutcome::Recovered(recovered));
    }
    let recovered = recover(&path)?;
    let Some(left) = registry.left_over()?.into_iter().find(|left| left.path == path) else {
        return Ok(RecoverOutcome::Recovered(recovered));
    };
    let is = FolderIdentity::at(&path).context("access", &path)?;
    if recovered.found == Recovered::Nothing && left.which.is_some_and(|which| which != is) {
        let why = "it is not the folder that was in RAM: mount its disk, and try again";
        let source = std::io::Error::other(why);
        return Err(Error::Io { doing: "recover", path, source });
    }
    registry.forget(&left.id);
    Ok(RecoverOutcome::Recovered(recovered))
}
