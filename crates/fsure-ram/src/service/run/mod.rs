//! `ram run`: a command that sees folders in memory, and the process that brings
//! their disk sides up to date while it runs and when it has ended.
//!
//! The content in memory has three holders: the command, this process and the keeper.
//! As long as the keeper or this process lives, nothing is lost: the keeper outlives
//! this one, and this one starts another when the keeper is killed.

mod preflight;
mod syncer;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use fsure_os::mount_sandbox::{MountSandbox, Overlay};
use fsure_os::process_tree::CommandEnd;

pub use syncer::{KeepOptions, SyncerEvent, keep};

use super::client::check_loss;
use fsure_core::{Error, IoContext as _, Result};

/// Options of [`run`]: the command and its folders.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folders that it sees in memory.
    pub folders: Vec<PathBuf>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Maximum age of the oldest change that a crash loses.
    pub max_loss: Duration,
    /// Bytes of memory that each may take; `None` for what suits its content.
    pub bytes: Option<u64>,
    /// The user's own runtime folder, where each run notes what it takes.
    pub runtime: Option<PathBuf>,
    /// The program that does as [`keep`] with the arguments that it is given, behind
    /// `--adopt` where it takes over.
    pub keeper: Vec<OsString>,
}

/// Result of [`run`].
#[derive(Debug)]
pub struct RunOutcome {
    /// The command; an error where it could not be started.
    pub command: std::io::Result<CommandEnd>,
    /// Folders of which not everything is on the disk, with the reason for each.
    pub lost: Vec<UnsyncedFolder>,
}

/// A folder whose last generation did not come to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsyncedFolder {
    /// The folder.
    pub folder: PathBuf,
    /// The obstacle and some of the names, as text.
    pub why: String,
}

/// A keeper that dies so often, so soon, is not started again.
const EARLY_DEATHS_MAX: u32 = 5;
const EARLY_DEATH_TIME: Duration = Duration::from_secs(2);

/// Runs the command, and brings the folders to the disk. `warn` receives messages for the
/// user meanwhile. [`RunOutcome::command`] says if the command itself could not be started.
///
/// Fails before the command is started if the options are wrong, or a folder cannot be put
/// into RAM. Fails after the command has run if its keeper was killed and no other could be
/// started, or if the thread that watches the keeper has panicked: then the disk might lack
/// changes that the command has made.
pub fn run(options: &RunOptions, warn: &(dyn Fn(&str) + Sync)) -> Result<RunOutcome> {
    check_loss(options.max_loss)?;
    let plans = preflight::check(&options.folders, options.bytes, options.runtime.as_deref(), warn)
        .map_err(not_started)?;
    for warning in plans.iter().flat_map(|plan| &plan.warnings) {
        warn(warning);
    }
    let covers = plans.iter().map(|plan| Overlay {
        place: plan.path.clone(),
        bytes: plan.bytes,
        names: plan.inodes,
    });
    let covers: Vec<_> = covers.collect();
    let folders: Vec<_> = plans.iter().map(|plan| plan.path.clone()).collect();
    let inside = MountSandbox::enter(&covers, &options.command)
        .map_err(|error| refused(&folders, &error))?;
    let least = plans.iter().filter_map(|plan| plan.least).collect();
    let mut keeping = Keeping { options, inside: &inside, folders: &folders, least, warn };
    let mut first = keeping.start(false).map_err(not_started)?;
    keeping.fill(&mut first)?;
    std::thread::scope(|scope| {
        let keeper = scope.spawn(move || keeping.follow(first));
        let command = inside.run();
        if command.is_err() {
            // It is not there, and the keeper waits for its end.
            let _ = inside.kill();
        }
        let lost = keeper.join().map_err(|_| Error::Internal("the keeper's thread".into()))?;
        Ok(RunOutcome { command, lost: lost? })
    })
}

/// Turns an I/O error into a usage error. Whatever failed, nothing has changed; with
/// another exit code the user would look for changes that are not on the disk.
fn not_started(error: Error) -> Error {
    match error {
        Error::Io { .. } => Error::FailedPrecondition {
            message: format!("the command was not started: {error}"),
            hint: error.hint().or(Some("nothing has changed".to_owned())),
        },
        other => other,
    }
}

fn refused(folders: &[PathBuf], error: &std::io::Error) -> Error {
    let named: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let named = named.join(", ");
    match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::FailedPrecondition {
            message: format!("{named} is in RAM by another 'fsure ram run'"),
            hint: Some("wait until that has ended".to_owned()),
        },
        _ => Error::FailedPrecondition {
            message: format!("cannot put {named} into RAM: {error}"),
            hint: Some("'fsure ram doctor' shows what this machine lacks".to_owned()),
        },
    }
}

/// The keeper, seen from here.
struct Keeping<'a> {
    options: &'a RunOptions,
    inside: &'a MountSandbox,
    folders: &'a [PathBuf],
    /// Bytes that each has in any case; empty if their sizes stay as they are.
    least: Vec<u64>,
    warn: &'a (dyn Fn(&str) + Sync),
}

/// A keeper that runs, and what it says.
struct Keeper {
    process: Child,
    words: BufReader<ChildStdout>,
    began: Instant,
}

impl Keeper {
    /// Returns its next message; `None` once it has ended.
    fn next_event(&mut self) -> Option<SyncerEvent> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.words.read_line(&mut line).ok()?;
            if read == 0 {
                let _ = self.process.wait();
                return None;
            }
            if let Ok(event) = serde_json::from_str(&line) {
                return Some(event);
            }
        }
    }
}

impl Keeping<'_> {
    fn start(&self, adopts: bool) -> Result<Keeper> {
        let [program, arguments @ ..] = &self.options.keeper[..] else {
            return Err(Error::Internal("no keeper".to_owned()));
        };
        let max_loss = self.options.max_loss.as_millis().to_string();
        let mut arguments = arguments.to_vec();
        arguments.extend(["--max-loss-ms".into(), max_loss.into()]);
        for least in &self.least {
            arguments.extend(["--least".into(), least.to_string().into()]);
        }
        if let Some(runtime) = &self.options.runtime {
            arguments.extend(["--runtime".into(), runtime.into()]);
        }
        if adopts {
            arguments.push("--adopt".into());
        }
        let kept = self.inside.keep(program, &arguments);
        let mut process = kept.context("start", Path::new(program))?;
        let words = process.stdout.take().map(BufReader::new);
        let words =
            words.ok_or_else(|| Error::Internal("a keeper without a message".to_owned()))?;
        Ok(Keeper { process, words, began: Instant::now() })
    }

    /// Waits until all folders are in memory.
    fn fill(&self, keeper: &mut Keeper) -> Result<()> {
        let mut filled = 0;
        while filled < self.folders.len() {
            match keeper.next_event() {
                Some(SyncerEvent::Filled { .. }) => filled += 1,
                Some(SyncerEvent::Warning { folder, words }) => self.warn(folder, &words),
                Some(SyncerEvent::Done { .. }) => {}
                Some(SyncerEvent::Failed { folder, why, is_usage }) => {
                    let folder = self.name(folder).display();
                    let message = format!("cannot put {folder} into RAM: {why}");
                    let hint = is_usage.then(|| "nothing has changed".to_owned());
                    return Err(Error::FailedPrecondition { message, hint });
                }
                None => {
                    let message = "the keeper ended while it filled the memory".to_owned();
                    return Err(Error::FailedPrecondition {
                        message,
                        hint: Some("nothing has changed".into()),
                    });
                }
            }
        }
        Ok(())
    }

    /// Listens to the keeper until all is on the disk, and starts another where it
    /// was killed.
    fn follow(&mut self, mut keeper: Keeper) -> Result<Vec<UnsyncedFolder>> {
        let (mut done, mut lost, mut deaths) = (BTreeSet::new(), Vec::new(), 0);
        loop {
            while let Some(event) = keeper.next_event() {
                match event {
                    SyncerEvent::Filled { .. } => {}
                    SyncerEvent::Warning { folder, words } => self.warn(folder, &words),
                    SyncerEvent::Done { folder } => {
                        done.insert(folder);
                    }
                    SyncerEvent::Failed { folder, why, .. } => {
                        done.insert(folder);
                        lost.push(UnsyncedFolder { folder: self.name(folder).to_owned(), why });
                    }
                }
            }
            if done.len() >= self.folders.len() {
                return Ok(lost);
            }
            deaths = if keeper.began.elapsed() < EARLY_DEATH_TIME { deaths + 1 } else { 1 };
            if deaths > EARLY_DEATHS_MAX {
                let left = (0..self.folders.len()).filter(|number| !done.contains(number));
                let why = "the process that writes it to the disk died repeatedly; the disk has \
                           the last generation before that";
                lost.extend(left.map(|folder| UnsyncedFolder {
                    folder: self.name(folder).to_owned(),
                    why: why.to_owned(),
                }));
                return Ok(lost);
            }
            // Those that are done are closed, and adopted once more: no harm.
            done.clear();
            lost.clear();
            keeper = self.start(true)?;
        }
    }

    fn name(&self, folder: usize) -> &Path {
        self.folders.get(folder).map_or(Path::new("?"), PathBuf::as_path)
    }

    fn warn(&self, folder: usize, words: &str) {
        (self.warn)(&format!("{}: {words}", self.name(folder).display()));
    }
}
