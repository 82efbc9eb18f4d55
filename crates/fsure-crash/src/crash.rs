//! `crash`: a program on a simulated drive, cut while it runs, and each time
//! what is left is mounted and checked. `docs/crash.md` is the contract.

use super::context::CrashRun;
use super::every_flush::every_flush;
use super::prepare::{prepared, site};
use super::{AccessMode, CrashMonitor, CrashOptions};
use crate::{CrashLine, CrashSummary, CutMade, DriveTried};
use fsure_core::{Error, ExitCode, Result};
use fsure_simdrive::{Behavior, SYNCFS};

/// Cuts of a twin, of which one has to show a loss.
const TWIN_CUTS: u64 = 6;

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
        listener.report(&CrashLine::Warning { words: SYNCFS.to_owned() });
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
            mount_options: options.front.mount_options().to_owned(),
            flush_ms: Some(options.latency.flush.as_secs_f64() * 1e3).filter(|ms| *ms > 0.0),
            pause_max_ms: options
                .every_flush
                .is_none()
                .then_some(options.pause.as_secs_f64() * 1e3),
            ..DriveTried::default()
        };
        // Cuts that were made before count.
        match try_drive(&run, *drive, &mut made, &mut one) {
            Err(Error::HarnessBroken { why }) => one.disturbed = Some(why),
            other => other?,
        }
        let is_last = one.disturbed.is_some() || listener.stop_requested().is_some();
        listener.report(&CrashLine::Drive(one.clone()));
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
    listener.report(&CrashLine::Summary(summary.clone()));
    Ok(Crashed { drives: tried, summary, exit_code })
}

fn check(options: &CrashOptions) -> Result<()> {
    let usage = |message: &str, hint: &str| {
        Err(Error::Usage { message: message.to_owned(), hint: Some(hint.to_owned()) })
    };
    if options.command.is_empty() {
        return usage(
            "there is no program to run",
            "give a program after '--', or '--workload NAME'",
        );
    }
    if options.check.is_empty() {
        return usage(
            "there is no check of what a cut leaves",
            "'--check LINE' is run by 'sh -c' in each image; '--check true' only mounts them",
        );
    }
    if options.every_flush.is_some() && options.drives != [Behavior::Honest] {
        return usage(
            "'--every-flush' needs an honest drive: of others it is not known what they hold after \
             a flush",
            "leave '--drive' out",
        );
    }
    let is_folder = matches!(options.front, AccessMode::Folder(_));
    if is_folder && (options.every_flush.is_some() || options.keep.is_some()) {
        return usage(
            "'--every-flush' and '--keep' need a drive under a file system",
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
                message: format!("'--size' is too small: a drive for {name} needs {least} MiB"),
                hint: Some("leave '--size' out".to_owned()),
            })
        }
        AccessMode::Mounted { .. } | AccessMode::Folder(_) => Ok(()),
    }
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
