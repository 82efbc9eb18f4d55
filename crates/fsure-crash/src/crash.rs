//! `crash`: a program on a simulated drive, cut while it runs, and each time
//! what is left is mounted and checked. `docs/crash.md` is the contract.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fsure_os::loop_device::Reliance;
use fsure_os::loop_mount::{MountArea, MountError};
use fsure_os::process_tree::Ended;

use super::AccessMode;
use super::backend::{DriveConfig, MountedMedium, OfflineDrive};
use super::every_flush::every_flush;
use super::program::{Program, ProgramCommand};
use super::run::CrashRun;
use crate::{CrashLine, CrashSummary, CutMade, CutState, DriveTried};
use fsure_core::Random;
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Monitor, Result};
use fsure_simdrive::SYNCFS;
use fsure_simdrive::{Behavior, CutVariant, Latency};

/// Attempts at something that another process disturbs each time.
const ATTEMPTS_MAX: u32 = 20;
/// Cuts of a twin, of which one has to show a loss.
const TWIN_CUTS: u64 = 6;

/// Options of a run: the program, the drives, and the number of cuts.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// The drives, each tried by itself.
    pub drives: Vec<Behavior>,
    /// Time that their requests take.
    pub latency: Latency,
    /// Number of the program's write that fails, from 1 on; `None` if none does.
    pub failing_write: Option<u64>,
    /// Form in which the program sees the drives.
    pub front: AccessMode,
    /// Bytes of a drive.
    pub size: u64,
    /// Variants of the cuts, in turn: they decide which writes survive.
    pub variants: Vec<CutVariant>,
    /// Cuts for each drive.
    pub cuts: u64,
    /// Instead of cuts at random moments, check every flush that an honest drive is sent
    /// in this time.
    pub every_flush: Option<Duration>,
    /// The longest time between one check and the next cut.
    pub pause: Duration,
    /// Seed of all random choices.
    pub seed: u64,
    /// A program that is run to its end on the new file system; what it leaves
    /// is on the medium when the first cut comes. May be empty.
    pub prepare: Vec<OsString>,
    /// Name of the workload, if the program is a built-in one.
    pub workload: Option<String>,
    /// The program.
    pub command: Vec<OsString>,
    /// The program that checks what is left.
    pub check: Vec<OsString>,
    /// A folder for the images of cuts that have shown a loss.
    pub keep: Option<PathBuf>,
    /// This program's own file, for its hidden commands.
    pub program: PathBuf,
    /// Folder with room for mount points; nothing is stored there.
    pub folder: PathBuf,
    /// Folder with room for all writes of a run that is checked at every flush.
    pub room: PathBuf,
    /// Source of the time.
    pub clock: Clock,
}

/// Receiver of the progress and the results of a run.
pub trait CrashMonitor: Monitor {
    /// Receives a line of the result, as soon as it is known.
    fn told(&self, _line: &CrashLine) {}

    /// Receives the current activity, and the share of the run that is done, 0 to 1.
    fn under_way(&self, _what: &str, _share: f64) {}
}

/// Result of a run, whose lines were reported already.
#[derive(Clone, Debug, PartialEq)]
pub struct Crashed {
    /// Each drive that was tried, in the order given.
    pub drives: Vec<DriveTried>,
    /// The last line.
    pub summary: CrashSummary,
    /// Exit code of the run.
    pub exit_code: ExitCode,
}

/// Runs the program on each drive and cuts it. Nothing is left mounted. Fails if this
/// machine cannot do it, or if the program does not run.
pub fn crash(options: &CrashOptions, listener: &dyn CrashMonitor) -> Result<Crashed> {
    check(options)?;
    let began = options.clock.watch();
    if matches!(options.front, AccessMode::Folder(_)) {
        listener.told(&CrashLine::Warning { words: SYNCFS.to_owned() });
    }
    let site = site(options)?;
    let base = prepared(options, &site, listener)?;
    let mut tried = Vec::new();
    let mut made = 0;
    for (place, drive) in options.drives.iter().enumerate() {
        let from = place as f64 / options.drives.len() as f64;
        let run = CrashRun { options, site: &site, base: &base, listener, from };
        let mut one = DriveTried {
            drive: drive.to_string(),
            fs: options.front.name().to_owned(),
            ..DriveTried::default()
        };
        // Cuts that were made before count.
        match try_drive(&run, *drive, &mut made, &mut one) {
            Err(Error::HarnessBroken { why }) => one.disturbed = Some(why),
            other => other?,
        }
        let is_last = one.disturbed.is_some() || listener.stop_requested().is_some();
        listener.told(&CrashLine::Drive(one.clone()));
        tried.push(one);
        if is_last {
            break;
        }
    }
    let exit_code = listener.stop_requested().unwrap_or_else(|| code(&tried));
    let seconds = began.elapsed().as_secs_f64();
    let sum = |of: fn(&DriveTried) -> u64| tried.iter().map(of).sum();
    let summary = CrashSummary {
        seed: options.seed,
        cuts: sum(|one| one.cuts),
        losses: sum(DriveTried::losses),
        harness_broken: sum(|one| one.harness_broken),
        seconds,
        cuts_per_minute: made as f64 / seconds * 60.0,
        exit_code: exit_code.number(),
        ..CrashSummary::default()
    };
    listener.told(&CrashLine::Summary(summary.clone()));
    Ok(Crashed { drives: tried, summary, exit_code })
}

pub(super) fn site(options: &CrashOptions) -> Result<Arc<MountArea>> {
    MountArea::create(&options.folder, &options.program)
        .context("make room for mount points in", &options.folder)
}

fn check(options: &CrashOptions) -> Result<()> {
    let usage = |message: &str, hint: &str| {
        Err(Error::Usage { message: message.to_owned(), hint: Some(hint.to_owned()) })
    };
    if options.command.is_empty() {
        return usage("nothing to run", "give a program after '--', or '--workload NAME'");
    }
    if options.check.is_empty() {
        return usage(
            "nothing would look at what is left",
            "'--check LINE' is run by 'sh -c' in each image; '--check true' only mounts them",
        );
    }
    if options.every_flush.is_some() && options.drives != [Behavior::Honest] {
        return usage(
            "what a drive has right after a flush is known of an honest one only",
            "leave '--drive' out",
        );
    }
    let is_folder = matches!(options.front, AccessMode::Folder(_));
    if is_folder && (options.every_flush.is_some() || options.keep.is_some()) {
        return usage(
            "flushes are remembered, and images kept, of a drive under a file system only",
            "add '--fs ext4', '--fs xfs' or '--fs btrfs'",
        );
    }
    check_size(options)
}

fn check_size(options: &CrashOptions) -> Result<()> {
    match &options.front {
        AccessMode::Mounted { system, .. } if options.size < system.least_bytes() => {
            let (name, least) = (system.name(), system.least_bytes() >> 20);
            Err(Error::Usage {
                message: format!("a drive for {name} needs {least} MiB"),
                hint: Some("leave '--size' out".to_owned()),
            })
        }
        AccessMode::Mounted { .. } | AccessMode::Folder(_) => Ok(()),
    }
}

/// Repeats an attempt that another process has disturbed, with a warning each time.
pub(super) fn undisturbed<T>(
    listener: &dyn CrashMonitor,
    what: &str,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt() {
            Err(Error::HarnessBroken { why }) if listener.stop_requested().is_none() => {
                let words = format!("{what} is done once more: {why}");
                listener.told(&CrashLine::Warning { words });
            }
            other => return other,
        }
    }
    attempt()
}

/// Returns a drive with the file system on it, and what is prepared, all of it on the
/// medium.
pub(super) fn prepared(
    options: &CrashOptions,
    site: &Arc<MountArea>,
    listener: &dyn CrashMonitor,
) -> Result<OfflineDrive> {
    let what = format!("making {}", options.front.name());
    undisturbed(listener, &what, || prepare_once(options, site, listener))
}

fn prepare_once(
    options: &CrashOptions,
    site: &Arc<MountArea>,
    listener: &dyn CrashMonitor,
) -> Result<OfflineDrive> {
    listener.under_way(&format!("making {}", options.front.name()), 0.0);
    let (folder, front) = (&options.folder, &options.front);
    let formatted = front.format(site, options.size, Behavior::Protected);
    let drive = formatted.map_err(rootless).context("make a file system on a drive at", folder)?;
    // Mounted once even without anything to prepare: a failure to mount now is not a
    // result of a cut.
    let mounted = drive.mount(site, front).map_err(|error| unmounted(options, error))?;
    prove(options, &mounted, listener)?;
    if !options.prepare.is_empty() {
        prepare(options, &mounted, listener)?;
    }
    mounted.check(Reliance::Content)?;
    // All of it is durable on a drive that protects its cache.
    let now = || drive.cut(CutVariant::None, &mut Random::new(options.seed));
    if let Err(error) = now().switch_on(DriveConfig::HONEST).mount(site, front) {
        if let MountError::Disturbed(why) = error {
            return Err(Error::HarnessBroken { why });
        }
        let name = front.name();
        let why = format!("this kernel does not mount a copy of {name} beside it: {error}");
        let source = io::Error::new(io::ErrorKind::Unsupported, why);
        return Err(Error::Io { doing: "mount a drive at", path: folder.clone(), source });
    }
    drop(mounted);
    Ok(now())
}

/// Syncs a file of the harness through the file system, which has to reach the drive. If
/// the user has requested a file system that sends no flush, a warning says so: it is the
/// subject of the run.
fn prove(
    options: &CrashOptions,
    mounted: &MountedMedium,
    listener: &dyn CrashMonitor,
) -> Result<()> {
    let AccessMode::Mounted { system, options: given } = &options.front else { return Ok(()) };
    if mounted.sync_file()? != Some(0) {
        return Ok(());
    }
    let name = system.name();
    if given.contains("barrier") {
        let words = format!(
            "with '--mount-options {given}' a sync on {name} sends no flush: any drive may lose \
             what it acknowledges, whatever the program does"
        );
        listener.told(&CrashLine::Warning { words });
        return Ok(());
    }
    let why = format!(
        "a file on a new {name} was synced, and no flush has reached the simulated drive; is \
         'nobarrier' among the mount options of new file systems (/etc/mke2fs.conf)?"
    );
    Err(Error::HarnessBroken { why })
}

/// Names the way that needs no root, in place of a hint that does not help here.
fn rootless(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            io::Error::other(format!("{error}; without '--fs' it is a folder, which needs no root"))
        }
        _ => error,
    }
}

pub(super) fn unmounted(options: &CrashOptions, error: MountError) -> Error {
    match error {
        MountError::Disturbed(why) => Error::HarnessBroken { why },
        MountError::Refused(error) => Error::Io {
            doing: "mount a drive at",
            path: options.folder.clone(),
            source: match error.kind() {
                io::ErrorKind::StorageFull => error,
                // Of another kind: the remedy is in its words.
                _ => io::Error::other(error),
            },
        },
        MountError::Unmountable(words) => Error::FailedPrecondition {
            message: format!("a new {} does not mount: {words}", options.front.name()),
            hint: Some("look at '--mount-options'".to_owned()),
        },
    }
}

fn prepare(
    options: &CrashOptions,
    mounted: &MountedMedium,
    listener: &dyn CrashMonitor,
) -> Result<()> {
    listener.under_way("preparing", 0.0);
    let failed = |why: String| Error::FailedPrecondition {
        message: format!("what was to be prepared failed: {why}"),
        hint: Some("'--prepare LINE' is run by 'sh -c' in the new file system".to_owned()),
    };
    let command = ProgramCommand { words: &options.prepare, acked: None };
    let started = Program::start(mounted, &command, Box::new(|_: &[u8]| {}));
    let mut program = started.map_err(|error| failed(error.to_string()))?;
    match program.wait(listener).map_err(|error| failed(error.to_string()))? {
        Some(Ended::Code(0)) => Ok(()),
        None => Err(Error::Interrupted(listener.stop_requested().unwrap_or(ExitCode::Interrupted))),
        Some(ended) => Err(failed(told(ended, &program.last_words()))),
    }
}

/// Describes the end of a program in words.
pub(super) fn told(ended: Ended, last_words: &[String]) -> String {
    let end = match ended {
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
    };
    if last_words.is_empty() { end } else { format!("{end}: {}", last_words.join(" | ")) }
}

/// Tries one drive, and its twin before it: if the twin shows no loss, the drive shows
/// nothing.
fn try_drive(
    run: &CrashRun<'_>,
    drive: Behavior,
    made: &mut u64,
    tried: &mut DriveTried,
) -> Result<()> {
    // A drive that lies has one, too: with other variants, or a lag, its own cuts may
    // all survive.
    (tried.twin_lost, tried.twin_acked) = run.twin(TWIN_CUTS, made)?;
    let has_teeth = tried.twin_lost != Some(false);
    let mut count = |cut: &CutMade| {
        *made += 1;
        tried.add(cut);
    };
    if run.options.every_flush.is_some() {
        every_flush(run, has_teeth, &mut count)
    } else {
        run.cuts(drive, has_teeth, &mut count)
    }
}

/// Returns the exit code of a run. A loss counts for more than a result that could not be
/// shown.
fn code(tried: &[DriveTried]) -> ExitCode {
    let of = |one: &DriveTried| {
        if one.losses() > 0 {
            ExitCode::Damage
        } else if one.disturbed.is_some() {
            ExitCode::Internal
        } else if one.survived < one.cuts || one.cuts == 0 || one.owed_nothing() {
            ExitCode::Incomplete
        } else {
            ExitCode::Clean
        }
    };
    let codes = tried.iter().map(of);
    // A loss was seen on a drive that was not disturbed, whatever came after it.
    let is_loss = codes.clone().any(|code| code == ExitCode::Damage);
    match codes.reduce(ExitCode::worse) {
        _ if is_loss => ExitCode::Damage,
        worst => worst.unwrap_or(ExitCode::Incomplete),
    }
}

/// Turns a survived cut into a broken harness if the twin has shown that the check
/// notices no loss.
pub(super) fn twin_found_no_loss(state: CutState, has_teeth: bool) -> CutState {
    if state == CutState::Survived && !has_teeth { CutState::HarnessBroken } else { state }
}
