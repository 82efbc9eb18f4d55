//! The drive that each program starts from: a file system is made on it, proved to send
//! its flushes, and filled by the `--prepare` command.

use std::io;
use std::sync::Arc;

use fsure_os::loop_device::Reliance;
use fsure_os::loop_mount::{MountArea, MountError};
use fsure_os::process_tree::Ended;

use super::AccessMode;
use super::backend::{DriveConfig, MountedMedium, OfflineDrive};
use super::disturbed::{undisturbed, unmounted};
use super::program::{Program, ProgramCommand, describe_end};
use super::{CrashMonitor, CrashOptions};
use crate::CrashLine;
use fsure_core::{Error, ExitCode, IoContext as _, Random, Result};
use fsure_simdrive::{Behavior, CutVariant};

/// Makes the folder for the mount points of a run.
pub(super) fn site(options: &CrashOptions) -> Result<Arc<MountArea>> {
    MountArea::create(&options.folder, &options.program)
        .context("make room for mount points in", &options.folder)
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
            "with '--mount-options {given}' a sync on {name} sends no flush: any drive can lose \
             what it acknowledges, whatever the program does"
        );
        listener.report(&CrashLine::Warning { words });
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
        io::ErrorKind::PermissionDenied => io::Error::other(format!(
            "{error}; without '--fs' fsure simulates a folder, which needs no root"
        )),
        _ => error,
    }
}

fn prepare(
    options: &CrashOptions,
    mounted: &MountedMedium,
    listener: &dyn CrashMonitor,
) -> Result<()> {
    listener.under_way("preparing", 0.0);
    let failed = |why: String| Error::FailedPrecondition {
        message: format!("'--prepare' failed: {why}"),
        hint: Some("'--prepare LINE' is run by 'sh -c' in the new file system".to_owned()),
    };
    let command = ProgramCommand { words: &options.prepare, acked: None };
    let started = Program::start(mounted, &command, Box::new(|_: &[u8]| {}));
    let mut program = started.map_err(|error| failed(error.to_string()))?;
    match program.wait(listener).map_err(|error| failed(error.to_string()))? {
        Some(Ended::Code(0)) => Ok(()),
        None => Err(Error::Interrupted(listener.stop_requested().unwrap_or(ExitCode::Interrupted))),
        Some(ended) => Err(failed(describe_end(ended, &program.last_words()))),
    }
}
