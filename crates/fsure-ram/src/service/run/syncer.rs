//! The process that brings the disk sides of `ram run` up to date. It holds both
//! sides by descriptor and outlives the command and the process that started it, so that
//! the last generation is written whichever of them was killed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fsure_os::mount_sandbox::{Alive, enter_mounts, name, side};
use fsure_os::overmount::Top;
use serde::{Deserialize, Serialize};

use super::super::auto_size::{Following, each_interval};
use super::super::change_tracker::ChangeTracker;
use super::super::other_ram_folders::{self, LastCount};
use super::super::registry::Registry;
use super::super::run_memory::RamFolders;
use crate::write_back::{
    CompareDepth, DifferenceKind, Engine, Generation, NoTracker, SideDifference, SyncSchedule,
    recover,
};
use fsure_core::{Error, ExitCode, IoContext as _, RelPath, Result};

/// Options of a keeper.
#[derive(Clone, Debug)]
pub struct KeepOptions {
    /// Maximum age of the oldest change that a crash loses.
    pub max_loss: Duration,
    /// True if the memory is filled already, because another keeper was killed.
    pub adopts: bool,
    /// The first process of the command's namespaces, as it was handed over.
    pub first: i32,
    /// The sides of each folder: of the disk, and in memory.
    pub sides: Vec<(i32, i32)>,
    /// Bytes that each has in any case, if their sizes follow their use; empty if not.
    pub least: Vec<u64>,
    /// The user's own runtime folder, where each run notes what it takes.
    pub runtime: Option<PathBuf>,
}

/// Messages of a keeper, one JSON value a line. Folders are numbered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum SyncerEvent {
    /// A folder is in memory.
    Filled {
        /// Number of the folder.
        folder: usize,
    },
    /// A warning for the user.
    Warning {
        /// Number of the folder.
        folder: usize,
        /// Text of the warning.
        words: String,
    },
    /// All is on the disk, and nothing of fsure's own is left there.
    Done {
        /// Number of the folder.
        folder: usize,
    },
    /// Not all of it is on the disk.
    Failed {
        /// Number of the folder.
        folder: usize,
        /// The reason, and what is not on the disk.
        why: String,
        /// True if it was refused before anything was done.
        is_usage: bool,
    },
}

/// Longest time for which the last generation is tried: the user can make room on a full
/// disk meanwhile.
const LAST_GENERATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks at what has been reported: the queue is limited without root.
const GATHER_INTERVAL: Duration = Duration::from_millis(50);
/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Number of names that are reported as not on the disk.
const NAMES_SHOWN_MAX: usize = 10;

/// Keeps all folders until the command and all that it started have ended and what
/// they left is on the disk. `report` hears of it from several threads.
pub fn keep(options: &KeepOptions, report: &(dyn Fn(&SyncerEvent) + Sync)) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let registry = Registry::of_user(options.runtime.as_deref());
    let others = LastCount::new(other_ram_folders::count(&registry, None));
    let all = std::thread::scope(|scope| {
        scope.spawn(|| follow_use(options, &others, &is_over));
        scope.spawn(|| count_use(options, &registry, &others, &is_over));
        let folders = options.sides.iter().enumerate();
        let threads: Vec<_> = folders
            .map(|(folder, sides)| {
                scope.spawn(move || {
                    let alive =
                        Alive::open(options.first).context("watch", "the command".as_ref())?;
                    let ways = ways(*sides);
                    let one =
                        SyncedFolder { folder, report, alive, max_loss: options.max_loss, ways };
                    one.live(*sides, options.adopts)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::Internal("a folder's thread".into())))
        });
        let all = joined.collect::<Vec<Result<()>>>();
        is_over.store(true, Ordering::Relaxed);
        all
    });
    all.into_iter().collect()
}

/// Notes the use for other runs, and counts that of all others. On a thread of its own: the
/// sizes do not wait for it, and it sees the mounts of the machine, not those of the command.
fn count_use(options: &KeepOptions, registry: &Registry, others: &LastCount, is_over: &AtomicBool) {
    let tops = options.sides.iter().filter_map(|(_, ram)| Top::open(&side(*ram)).ok());
    let tops: Vec<_> = tops.collect();
    others.renew(is_over, || {
        let used = tops.iter().filter_map(|top| Some(top.space().ok()?.used)).sum();
        registry.runs().put(RamFolders { folders: tops.len() as u64, bytes: used });
        other_ram_folders::count(registry, None)
    });
    registry.runs().remove();
}

/// Has the sizes follow the use. Where the mounts of the command cannot be entered, they
/// stay as they were made.
fn follow_use(options: &KeepOptions, others: &LastCount, is_over: &AtomicBool) {
    let (least, sides) = (&options.least, &options.sides);
    let tops: Option<Vec<_>> = sides.iter().map(|(_, ram)| Top::open(&side(*ram)).ok()).collect();
    let Some(tops) = tops.filter(|_| !least.is_empty()) else { return };
    let Ok(alive) = Alive::open(options.first) else { return };
    if enter_mounts(options.first).is_err() {
        return;
    }
    let mut all: Vec<_> = least.iter().map(|least| Following::new(*least)).collect();
    each_interval(is_over, || {
        // The mounts of the command are not held longer than it lives.
        if alive.has_ended(Duration::ZERO).unwrap_or(true) {
            return false;
        }
        for (number, (top, following)) in tops.iter().zip(&mut all).enumerate() {
            let beside = tops.iter().enumerate().filter(|(other, _)| *other != number);
            let used = beside.filter_map(|(_, top)| Some(top.space().ok()?.used));
            following.follow(top, used.fold(others.get(), |sum, used| sum.and(1, used)));
        }
        true
    });
}

struct SyncedFolder<'a> {
    folder: usize,
    report: &'a (dyn Fn(&SyncerEvent) + Sync),
    alive: Alive,
    max_loss: Duration,
    /// Paths by which each side is reached, and the names that messages show instead.
    ways: Vec<(String, String)>,
}

fn ways((disk, ram): (i32, i32)) -> Vec<(String, String)> {
    let shown = |path: &Path| path.display().to_string();
    // In memory it is called as on the disk, and is where it is seen by no name.
    let Some(called) = name(disk) else { return Vec::new() };
    let way = |argument| (shown(&side(argument)), format!("{}/", shown(&called)));
    [disk, ram].into_iter().map(way).collect()
}

impl SyncedFolder<'_> {
    fn live(&self, (disk, ram): (i32, i32), adopts: bool) -> Result<()> {
        let (disk, ram) = (side(disk), side(ram));
        let changes = ChangeTracker::begin(&ram);
        let begun = if adopts { self.adopt(&disk, &ram) } else { self.fill(&disk, &ram) };
        let mut engine = match begun {
            Ok(engine) => engine,
            Err(error) => {
                let is_usage = error.exit_code() == ExitCode::Usage;
                let why = words(&error);
                self.emit(SyncerEvent::Failed { folder: self.folder, why, is_usage });
                return Err(error);
            }
        };
        self.emit(SyncerEvent::Filled { folder: self.folder });
        engine.set_max_loss(self.max_loss);
        self.follow(&mut engine, changes)?;
        self.finish(engine, (&disk, &ram))
    }

    fn fill(&self, disk: &Path, ram: &Path) -> Result<Engine> {
        let filled = Engine::fill(disk, ram, &mut |_, _| {
            // The process that started this one was interrupted.
            match self.alive.has_ended(Duration::ZERO) {
                Ok(false) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(ExitCode::Interrupted),
            }
        });
        if filled.is_err() {
            // Nothing has changed, and nothing of fsure stays. If another process holds the
            // folder, all of that belongs to that process.
            let _ = recover(disk);
        }
        filled
    }

    /// Takes over what another has left, which may take a moment to be gone.
    fn adopt(&self, disk: &Path, ram: &Path) -> Result<Engine> {
        let mut ended_at = None;
        loop {
            match Engine::adopt(disk, ram) {
                Ok(engine) => return Ok(engine),
                Err(error) if self.is_hopeless(&mut ended_at)? => return Err(error),
                Err(_) => {}
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Returns true if the command ended so long ago that trying again is useless.
    fn is_hopeless(&self, ended_at: &mut Option<Instant>) -> Result<bool> {
        if !self.has_ended(Duration::ZERO)? {
            return Ok(false);
        }
        Ok(ended_at.get_or_insert_with(Instant::now).elapsed() > LAST_GENERATION_TIMEOUT)
    }

    /// One generation after another, until the command has ended.
    fn follow(&self, engine: &mut Engine, mut changes: ChangeTracker) -> Result<()> {
        let mut pace = SyncSchedule::new(self.max_loss, Instant::now());
        let (mut is_late, mut is_first) = (false, true);
        loop {
            let wait = match pace.failures() {
                0 => pace.next().saturating_duration_since(Instant::now()),
                _ => RETRY_INTERVAL,
            };
            let due = Instant::now() + wait;
            loop {
                let left = due.saturating_duration_since(Instant::now());
                if self.has_ended(left.min(GATHER_INTERVAL))? {
                    return Ok(());
                }
                changes.gather();
                if left <= GATHER_INTERVAL {
                    break;
                }
            }
            if std::mem::take(&mut is_first) {
                self.warn_of_strays(engine)?;
            }
            match engine.sync(&mut changes, CompareDepth::Dates, None) {
                Ok(generation) => {
                    pace.done(&generation);
                    self.remark(&generation);
                    is_late = false;
                }
                Err(error) => {
                    pace.failed();
                    if pace.is_broken(Instant::now()) && !is_late {
                        is_late = true;
                        let limit = self.max_loss;
                        let why = words(&error);
                        self.warn(format!("more than {limit:?} would be lost in a crash: {why}"));
                    }
                }
            }
        }
    }

    /// Warns of files that another process has written on the disk side. Called before fsure
    /// itself first changes that side.
    fn warn_of_strays(&self, engine: &mut Engine) -> Result<()> {
        for path in engine.files_written_behind()?.iter().take(NAMES_SHOWN_MAX) {
            let path = path.display();
            self.warn(format!("{path} was written on the disk side while it was copied into RAM"));
        }
        Ok(())
    }

    /// The last generation, and the proof that it is there.
    fn finish(&self, engine: Engine, sides: (&Path, &Path)) -> Result<()> {
        let (began, mut engine, mut strays) = (Instant::now(), Some(engine), BTreeSet::new());
        let finished = loop {
            match self.finish_once(&mut engine, &mut strays, sides) {
                Err(_) if began.elapsed() <= LAST_GENERATION_TIMEOUT => {
                    std::thread::sleep(RETRY_INTERVAL);
                }
                other => break other,
            }
        };
        if let Err(error) = finished {
            let why = format!("{}{}", words(&error), missing(engine.as_ref()));
            self.emit(SyncerEvent::Failed { folder: self.folder, why, is_usage: false });
            return Err(error);
        }
        for path in strays.iter().take(NAMES_SHOWN_MAX) {
            let path = path.display();
            self.warn(format!(
                "{path} was made on the disk side in the meantime, and was left there"
            ));
        }
        if let Some(trash) = engine.map(Engine::close).transpose()?.flatten() {
            let trash = trash.display();
            self.warn(format!("what was deleted is kept in {trash}: remove it when you are sure"));
        }
        self.emit(SyncerEvent::Done { folder: self.folder });
        Ok(())
    }

    /// The last generation, beside names that others have made on the disk side.
    fn finish_once(
        &self,
        engine: &mut Option<Engine>,
        strays: &mut BTreeSet<RelPath>,
        sides: (&Path, &Path),
    ) -> Result<()> {
        let mut behind;
        (*strays, behind) = self.last(held(engine, strays, sides)?)?;
        if !behind.is_empty() {
            // Another process has changed the disk side: what is in memory is what the
            // command saw, and is brought to the disk side once more.
            *engine = None;
            (*strays, behind) = self.last(held(engine, strays, sides)?)?;
        }
        let Some(first) = behind.first() else { return Ok(()) };
        let message = format!("{} differs on the disk: {:?}", first.path.display(), first.how);
        Err(Error::FailedPrecondition { message, hint: None })
    }

    /// A generation with every file hashed; names that are on the disk side alone, and
    /// what is not there as it is in RAM.
    fn last(&self, engine: &mut Engine) -> Result<(BTreeSet<RelPath>, Vec<SideDifference>)> {
        // At once what has a date: to hash everything can take minutes.
        let generation = engine.sync(&mut NoTracker, CompareDepth::Dates, None)?;
        self.remark(&generation);
        // No process writes any more; what was stored through a mapping has no date.
        let generation = engine.sync(&mut NoTracker, CompareDepth::Everything, None)?;
        self.remark(&generation);
        Ok(apart(engine.verify()?))
    }

    fn remark(&self, generation: &Generation) {
        if let Some(trash) = &generation.trash {
            let (count, trash) = (generation.removed, trash.display());
            self.warn(format!("{count} names were deleted; what they held is kept in {trash}"));
        }
        for path in generation.changed_outside.iter().take(NAMES_SHOWN_MAX) {
            self.warn(format!(
                "another process changed {} on the disk side: it now has the content of the RAM \
                 side, and the other content is in .fsure-ram/trash",
                path.display()
            ));
        }
    }

    fn has_ended(&self, at_most: Duration) -> Result<bool> {
        self.alive.has_ended(at_most).context("watch", "the command".as_ref())
    }

    fn warn(&self, words: String) {
        self.emit(SyncerEvent::Warning { folder: self.folder, words });
    }

    fn emit(&self, mut event: SyncerEvent) {
        if let SyncerEvent::Warning { words, .. } | SyncerEvent::Failed { why: words, .. } =
            &mut event
        {
            for (way, name) in &self.ways {
                *words = words.replace(way, name);
            }
        }
        (self.report)(&event);
    }
}

/// An error, and what to do.
fn words(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// The engine; taken over where the one before was let go.
fn held<'a>(
    engine: &'a mut Option<Engine>,
    strays: &BTreeSet<RelPath>,
    (disk, ram): (&Path, &Path),
) -> Result<&'a mut Engine> {
    if engine.is_none() {
        let mut next = Engine::adopt(disk, ram)?;
        next.leave_alone(strays);
        *engine = Some(next);
    }
    engine.as_mut().ok_or_else(|| Error::Internal("no engine".to_owned()))
}

/// Names that are on the disk side alone, and what of RAM is not there. A folder in
/// which others have made a name has another date, and no more.
fn apart(unequal: Vec<SideDifference>) -> (BTreeSet<RelPath>, Vec<SideDifference>) {
    let (strays, mut rest): (Vec<_>, Vec<_>) =
        unequal.into_iter().partition(|one| one.how == DifferenceKind::OnlyOnDisk);
    let strays: BTreeSet<_> = strays.into_iter().map(|one| one.path).collect();
    let dated: BTreeSet<_> = strays.iter().filter_map(RelPath::parent).collect();
    rest.retain(|one| one.how != DifferenceKind::Metadata || !dated.contains(&one.path));
    (strays, rest)
}

/// Returns the names that are not on the disk as they are in RAM, as text for an error
/// message.
fn missing(engine: Option<&Engine>) -> String {
    let Some(Ok(unequal)) = engine.map(Engine::verify) else {
        return "; fsure cannot list what is missing".to_owned();
    };
    let (_, unequal) = apart(unequal);
    let names: Vec<_> =
        unequal.iter().take(NAMES_SHOWN_MAX).map(|one| one.path.display().to_string()).collect();
    let rest = unequal.len().saturating_sub(NAMES_SHOWN_MAX);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("; not on the disk as it was in RAM: {}{rest}", names.join(", "))
}
