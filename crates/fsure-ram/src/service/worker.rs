//! The worker of a RAM folder: brings the disk side up to date in time, answers at
//! its socket, looks after the memory, and ends only when the folder is out of RAM.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::control_socket::Control;
use fsure_os::detached_process;

use super::auto_size::{RamMountPoint, follow};
use super::cleanup::clear_if_unmounted;
use super::memory_pressure::{self, Need};
use super::other_ram_folders::{self, LastCount};
use super::protocol::{
    DaemonEvent, Failed, FolderState, Request, Response, SyncReport, UnbindReport, line,
};
use super::registry::{Registry, RegistryEntry, Role, already_running_error};
use super::request_handler::{
    PendingRequest, PublishedState, Reply, RequestHandler, WorkerRequest, ms,
};
use super::run_memory::RamFolders;
use super::session::{Session, is_mounted, place};
use super::supervisor::{SelfExec, restart_supervisor};
use crate::write_back::{CompareDepth, SyncSchedule};
use fsure_core::{Error, IoContext as _, Result};

/// Longest delay before a signal is noticed.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between checks of the memory and of the keeper.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait until no file is open for writing, when the folder is taken out of RAM.
const WRITERS_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of names that are reported at once.
const NAMES_SHOWN_MAX: usize = 5;
/// Between attempts to end that failed.
const UNBIND_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Between attempts at a generation that failed: at once, then more slowly.
const SYNC_RETRY_INTERVAL: Duration = Duration::from_millis(50);
const SYNC_RETRY_FACTOR_MAX: u32 = 20;

/// Parameters of [`work`].
pub struct WorkerConfig<'a> {
    /// Registry that has the folder.
    pub registry: &'a Registry,
    /// Id of the folder.
    pub id: &'a str,
    /// This program, by which a keeper is started.
    pub program: SelfExec,
    /// Not 0 once it is asked to end.
    pub stop: &'a AtomicUsize,
    /// Receives the messages for the user.
    pub report: &'a (dyn Fn(&DaemonEvent) + Sync),
}

/// Works until the folder is out of RAM. Fails where it never came into it, or
/// could not be taken over.
pub fn work(work: &WorkerConfig<'_>) -> Result<()> {
    let WorkerConfig { registry, id, .. } = *work;
    let entry = registry.read(id).ok_or_else(|| Error::FailedPrecondition {
        message: format!("no folder is registered as {id}"),
        hint: Some("'fsure ram bind DIR' registers one".to_owned()),
    });
    let entry =
        entry.inspect_err(|error| (work.report)(&DaemonEvent::Failed(Failed::from(error))))?;
    let report_failure =
        |error: &Error| work.note_and_report(&entry, &DaemonEvent::Failed(Failed::from(error)));
    let Some(_role) = registry.take(id, Role::Worker)? else {
        return Err(already_running_error(&entry)).inspect_err(report_failure);
    };
    if registry.was_published(id) && !is_mounted(&entry)? {
        work.note_and_report(&entry, &DaemonEvent::Ended(unmounted_report(registry, &entry)));
        return Ok(());
    }
    let (session, adopted) =
        Session::begin(registry, entry.clone(), work.stop).inspect_err(report_failure)?;
    let name = registry.control(id);
    let control = Control::listen(&name).context("listen at", &name).inspect_err(report_failure)?;
    let (asked, asks) = channel::<PendingRequest>();
    let place = RamMountPoint::default();
    let follows = entry.least.is_some();
    let count = || other_ram_folders::count(registry, Some(&entry));
    let others = LastCount::new(if follows { count() } else { RamFolders::default() });
    let state =
        Mutex::new(PublishedState { doing: session.doing().clone(), ..PublishedState::default() });
    let is_over = AtomicBool::new(false);
    let answers = RequestHandler::new(&state, asked);
    let answer = |text: Option<&str>| line(&answers.answer(text));
    let mut worker = Worker::new(work, session, &state, &place, &others);
    if adopted {
        // It is not known for how long nothing was brought to the disk. If this fails,
        // it is tried again, and reported.
        let _ = worker.sync();
    }
    worker.show();
    let ended = std::thread::scope(|scope| {
        let (is_followed, wait) = sync_channel(1);
        scope.spawn(|| control.serve(&answer, &|| is_over.load(Ordering::Relaxed)));
        scope.spawn(|| follow(&entry, &place, &others, is_followed, &is_over));
        if follows {
            scope.spawn(|| others.renew(&is_over, count));
        }
        // Programs write as soon as `bind` has ended: the sizes are looked after by then. An
        // error says that they do not follow.
        let _ = wait.recv();
        (work.report)(&DaemonEvent::Ready { adopted });
        let ended = worker.run(&asks);
        is_over.store(true, Ordering::Relaxed);
        // A process that asked meanwhile gets the answer that it is over, and is waited for.
        drop(asks);
        ended
    });
    work.note_and_report(&entry, &DaemonEvent::Ended(ended));
    Ok(())
}

impl WorkerConfig<'_> {
    /// Says how it begins or ends, and notes that.
    fn note_and_report(&self, entry: &RegistryEntry, event: &DaemonEvent) {
        event.lines().iter().for_each(|words| self.note(entry, words));
        (self.report)(event);
    }

    /// Notes what the user should know, even if no process is listening.
    fn note(&self, entry: &RegistryEntry, words: &str) {
        self.registry.log_event(entry, words);
        if self.program.is_alone {
            // Below systemd it comes to the log anyway.
            let _ = detached_process::log(&format!("{}: {words}", entry.path.display()));
        }
    }
}

/// Reports on a folder that was in RAM and is not any more: a worker was killed while it
/// was about to end, or another process has unmounted the folder while there was none.
fn unmounted_report(registry: &Registry, entry: &RegistryEntry) -> UnbindReport {
    let words = format!(
        "{} is not in RAM any more: the disk has the last generation that was written",
        entry.path.display()
    );
    let mut warnings = vec![words];
    warnings.extend(clear_if_unmounted(registry, entry).err().map(|error| error.to_string()));
    UnbindReport { warnings, ..UnbindReport::default() }
}

/// Counts of all generations since the worker began.
#[derive(Default)]
struct WorkerTotals {
    generations: u64,
    spread: u64,
    spread_max_ms: f64,
    changed: u64,
    written: u64,
}

impl WorkerTotals {
    /// Counts one; `is_new` if it has changed anything.
    fn add(&mut self, done: &SyncReport, is_new: bool) {
        self.generations += u64::from(is_new);
        self.changed += done.changed + done.removed;
        self.written += done.written;
        if is_new && done.spread_ms > 0.0 {
            self.spread += 1;
            self.spread_max_ms = self.spread_max_ms.max(done.spread_ms);
        }
    }
}

struct Worker<'a> {
    work: &'a WorkerConfig<'a>,
    session: Session,
    shown: &'a Mutex<PublishedState>,
    place: &'a RamMountPoint,
    others: &'a LastCount,
    pace: SyncSchedule,
    fenced: bool,
    /// Since when a file would not hold still.
    unsettled: Option<Instant>,
    /// The last generation, and what came of all.
    last: SyncReport,
    totals: WorkerTotals,
    error: Option<String>,
    cared: Instant,
    tried: Instant,
    /// Earliest time of the next attempt to take it out of RAM.
    ending: Instant,
    /// Keepers that were started.
    keepers: Vec<detached_process::DetachedProcess>,
    /// Reported once.
    warned: Option<String>,
    reported_needs: memory_pressure::ReportedNeeds,
}

impl<'a> Worker<'a> {
    fn new(
        work: &'a WorkerConfig<'a>,
        session: Session,
        shown: &'a Mutex<PublishedState>,
        place: &'a RamMountPoint,
        others: &'a LastCount,
    ) -> Self {
        let now = Instant::now();
        place.set(session.mount().as_ref().ok());
        let last = SyncReport { generation: session.generation(), ..SyncReport::default() };
        Self {
            work,
            pace: SyncSchedule::new(session.entry.max_loss, now),
            session,
            shown,
            place,
            others,
            fenced: false,
            unsettled: None,
            last,
            totals: WorkerTotals::default(),
            error: None,
            cared: now,
            tried: now,
            ending: now,
            keepers: Vec::new(),
            warned: None,
            reported_needs: memory_pressure::ReportedNeeds::default(),
        }
    }

    /// Goes on until the folder is out of RAM.
    fn run(&mut self, asks: &Receiver<PendingRequest>) -> UnbindReport {
        loop {
            let now = Instant::now();
            let due = self.due().saturating_duration_since(now);
            match asks.recv_timeout(due.min(SIGNAL_POLL_INTERVAL)) {
                Ok((ask, to)) => {
                    let reply = self.reply(ask);
                    let ended = match &reply {
                        Reply::Answer(Response::Ended(ended)) => Some(ended.clone()),
                        _ => None,
                    };
                    // The client might have ended.
                    let _ = to.send(reply);
                    if let Some(ended) = ended {
                        return ended;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.session.gather();
            if Instant::now() >= self.due() {
                let _ = self.sync();
            }
            if let Some(ended) = self.end_if_asked().or_else(|| self.health_check()) {
                return ended;
            }
            self.show();
        }
    }

    /// Returns the time at which the next generation is to begin.
    fn due(&self) -> Instant {
        match self.pace.failures() {
            0 => self.pace.next(),
            failures => self.tried + SYNC_RETRY_INTERVAL * failures.min(SYNC_RETRY_FACTOR_MAX),
        }
    }

    fn reply(&mut self, ask: WorkerRequest) -> Reply {
        self.follow_moved_mount();
        let answer = |answer| Ok(Reply::Answer(answer));
        let reply = match ask {
            WorkerRequest::Request(Request::Sync) => {
                self.sync().map(Response::Synced).and_then(answer)
            }
            WorkerRequest::Request(Request::Unbind) => {
                self.unbind(WRITERS_TIMEOUT).map(Response::Ended).and_then(answer)
            }
            // Answered by who was asked.
            WorkerRequest::Request(Request::Status | Request::Verify) => {
                answer(Response::Status(Box::default()))
            }
            WorkerRequest::Comparison => self.sync().and_then(|_| self.session.comparison()),
            WorkerRequest::Known(paths, is_new) => {
                let done = if is_new { self.sync().map(drop) } else { Ok(()) };
                done.and_then(|()| self.session.known(&paths))
            }
        };
        reply.unwrap_or_else(|error| Reply::Answer(Response::Failed(Failed::from(&error))))
    }

    /// One generation, and what follows from its success or failure.
    fn sync(&mut self) -> Result<SyncReport> {
        self.tried = Instant::now();
        let done = match self.session.sync(CompareDepth::Dates) {
            Ok(done) => done,
            Err(error) => {
                self.pace.failed();
                self.error = Some(error.to_string());
                self.fence();
                self.show();
                return Err(error);
            }
        };
        self.pace.done(&done);
        let held = (!done.unsettled.is_empty()).then_some(done.began);
        self.unsettled = held.map(|began| self.unsettled.unwrap_or(began));
        let synced = SyncReport::from(&done);
        self.totals.add(&synced, done.number > self.last.generation);
        if let Some(trash) = &synced.trash {
            let trash = self.session.uncovered(trash);
            self.warn(&format!(
                "generation {} removed suspiciously many files: they are kept in {trash}, on the \
                 disk side",
                done.number
            ));
        }
        for path in done.changed_outside.iter().take(NAMES_SHOWN_MAX) {
            self.warn(&format!(
                "another process changed {} on the disk side: it now has the content of the RAM \
                 side, and the other content is in the trash",
                path.display()
            ));
        }
        // One that had nothing to do is not what one wants to know of.
        let trash = synced.trash.clone().or(self.last.trash.take());
        self.last = SyncReport { trash, ..synced.clone() };
        self.unfence();
        self.show();
        Ok(synced)
    }

    /// Makes the folder read-only if more than was agreed on can be lost. The loss grows,
    /// and no process is to add to it.
    fn fence(&mut self) {
        if self.fenced || !self.pace.is_broken(Instant::now()) {
            return;
        }
        // As long as a process has a file open for writing, this fails.
        if self.session.set_read_only(true).is_ok() {
            self.fenced = true;
            let error = self.error.clone().unwrap_or_default();
            self.warn(&format!("read-only, until the disk takes a generation: {error}"));
        }
    }

    fn unfence(&mut self) {
        if self.fenced && self.session.set_read_only(false).is_ok() {
            self.fenced = false;
            self.warn("writable again: the disk has taken a generation");
        }
    }

    fn unbind(&mut self, timeout: Duration) -> Result<UnbindReport> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).state.ending = true;
        let (pace, shown) = (&mut self.pace, self.shown);
        let ended = self.session.unbind(timeout, true, &mut |done| {
            pace.done(done);
            shown.lock().unwrap_or_else(PoisonError::into_inner).since = Some(done.began);
        });
        // If it could not be made writable again, the next generation does that.
        self.fenced = self.session.is_read_only();
        ended
    }

    /// After a signal, tries until the folder is out of RAM, and brings the disk up to
    /// date in between. An impatient user loses no more than was agreed on.
    fn end_if_asked(&mut self) -> Option<UnbindReport> {
        if self.work.stop.load(Ordering::Relaxed) == 0 || Instant::now() < self.ending {
            return None;
        }
        let ended = self.unbind(WRITERS_TIMEOUT);
        self.ending = Instant::now() + UNBIND_RETRY_INTERVAL;
        self.warn_of_failure(ended)
    }

    fn warn_of_failure(&mut self, ended: Result<UnbindReport>) -> Option<UnbindReport> {
        match ended {
            Ok(ended) => Some(ended),
            Err(error) => {
                self.warn(&format!("it stays in RAM: {error}"));
                None
            }
        }
    }

    /// Goes along where a folder above it was renamed; whether it is mounted at all.
    fn follow_moved_mount(&mut self) -> bool {
        let place = match place(&self.session.entry) {
            Ok(Some(place)) => place,
            Ok(None) => return false,
            // If that cannot be seen now, it can in a second.
            Err(_) => return true,
        };
        if place != self.session.entry.path {
            let moved = format!("was moved to {}, and is kept there", place.display());
            self.warn(&moved);
            if let Err(error) = self.session.move_to(place) {
                self.warn(&error.to_string());
            }
        }
        true
    }

    /// Looks after the memory, and after the keeper.
    fn health_check(&mut self) -> Option<UnbindReport> {
        if self.cared.elapsed() < HEALTH_CHECK_INTERVAL {
            return None;
        }
        self.cared = Instant::now();
        let WorkerConfig { registry, id, program, .. } = self.work;
        self.keepers.iter_mut().for_each(|keeper| drop(keeper.reap()));
        if registry.process(id, Role::Keeper).is_none() && program.is_alone {
            self.keepers.extend(restart_supervisor(program, id));
        }
        if !self.follow_moved_mount() {
            return Some(self.session.give_up_unmounted());
        }
        self.session.look_for_disks();
        // A mount over it is not the RAM side: neither its space nor its size counts.
        let mount = self.session.mount();
        self.place.set(mount.as_ref().ok());
        if mount.is_err() {
            return None;
        }
        let need = memory_pressure::need(registry, &self.session.entry, self.others.get());
        if let Some(words) = self.reported_needs.words(&need) {
            self.report_warning(words);
        }
        if !matches!(need, Need::Evict { .. }) || Instant::now() < self.ending {
            return None;
        }
        // No generation is made while writers are waited for.
        let ended = self.unbind(WRITERS_TIMEOUT.min(self.session.entry.max_loss));
        self.ending = Instant::now() + UNBIND_RETRY_INTERVAL;
        self.warn_of_failure(ended)
    }

    /// Says something, unless it was said last.
    fn warn(&mut self, words: &str) {
        if self.warned.as_deref() != Some(words) {
            self.report_warning(words);
        }
    }

    fn report_warning(&mut self, words: &str) {
        self.warned = Some(words.to_owned());
        self.work.note(&self.session.entry, words);
        let path = self.session.entry.path.display();
        (self.work.report)(&DaemonEvent::Warning { words: format!("{path}: {words}") });
    }

    /// Has what is known be known to those who ask.
    fn show(&self) {
        let now = Instant::now();
        let safe = now.checked_sub(self.pace.worst_loss(now)).unwrap_or(now);
        let since = self.unsettled.map_or(safe, |since| since.min(safe));
        let entry = &self.session.entry;
        let space = fsure_os::overmount::space(&entry.path).unwrap_or_default();
        let (files, content) = self.session.size();
        let state = FolderState {
            max_loss_ms: ms(entry.max_loss),
            worst_loss_ms: 0,
            generation: self.last.generation,
            took_ms: self.last.took_ms,
            spread_ms: self.last.spread_ms,
            generations: self.totals.generations,
            spread_generations: self.totals.spread,
            spread_max_ms: self.totals.spread_max_ms,
            changed: self.totals.changed,
            written: self.totals.written,
            files,
            content,
            used: space.used,
            bytes: space.bytes,
            fenced: self.fenced,
            too_slow: self.pace.is_too_slow(),
            failures: self.pace.failures(),
            error: self.error.clone().filter(|_| self.pace.failures() > 0),
            unsettled: self.last.unsettled.clone(),
            trash: self.last.trash.as_ref().map(|trash| self.session.uncovered(trash)),
            tracking: self.session.tracking().to_owned(),
            ending: self.work.stop.load(Ordering::Relaxed) > 0,
            // Asked for when it is to be known.
            doing: None,
            doing_ms: 0,
        };
        let shown =
            PublishedState { state, since: Some(since), doing: self.session.doing().clone() };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}
