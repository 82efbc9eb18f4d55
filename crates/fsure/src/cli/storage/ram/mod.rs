//! `fsure ram`: folders whose content is in memory while it is used. One file
//! per sub-command.

mod bind;
mod disk;
mod doctor;
mod pin;
mod preset;
mod recover;
mod run;
mod status;
mod sync;
mod trial;
mod unbind;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use clap::{Args, Subcommand};
use fsure_core::{ExitCode, IoContext as _, Result};
use fsure_ram::service::{
    CallerContext, DaemonEvent, LASTING, RUNTIME, Registry, Request, Response, SelfExec,
    UnbindReport, request,
};

use super::OutputArgs;
use super::screen::Screen;

/// Keep folders in memory, with a disk copy a moment behind
///
/// fsync inside a RAM folder returns at once and does NOT hold: what it acknowledged
/// is on the disk with the next generation, up to --max-loss later. What is on the
/// disk is always one whole generation, never a mixture. Nothing is ever unmounted
/// lazily, and no folder is ever removed with what is in it. docs/ram.md describes
/// what is stored where. Exit codes: 0 done, 1 something is wrong or differs, 2
/// refused, 5 not finished.
#[derive(Args)]
pub(crate) struct RamArgs {
    #[command(subcommand)]
    what: RamCommand,
}

#[derive(Subcommand)]
enum RamCommand {
    Run(run::RunArgs),
    Try(trial::TryArgs),
    Bind(bind::BindArgs),
    Status(status::StatusArgs),
    Sync(sync::SyncArgs),
    Verify(verify::VerifyArgs),
    Unbind(unbind::UnbindArgs),
    Recover(recover::RecoverArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
    Disk(disk::DiskArgs),
    Doctor(doctor::DoctorArgs),
}

/// A process that keeps RAM folders, which fsure starts for itself.
#[derive(Subcommand)]
pub(crate) enum RamProcess {
    Keep(bind::DaemonArgs),
    Work(bind::DaemonArgs),
    KeepRun(run::KeepArgs),
}

/// The RAM folders that a command is for.
#[derive(Args)]
struct Which {
    /// The folders
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath, required_unless_present = "all")]
    folders: Vec<PathBuf>,
    /// Every RAM folder of this machine
    #[arg(long, conflicts_with = "folders")]
    all: bool,
}

/// Runs the command.
pub(crate) fn run(args: &RamArgs, output: &OutputArgs) -> ExitCode {
    match &args.what {
        RamCommand::Run(args) => run::run(args, output),
        RamCommand::Try(args) => trial::run(args, output),
        RamCommand::Bind(args) => on_screen(output, |screen| bind::run(args, output, screen)),
        RamCommand::Status(args) => on_screen(output, |screen| status::run(args, output, screen)),
        RamCommand::Sync(args) => on_screen(output, |screen| sync::run(args, output, screen)),
        RamCommand::Verify(args) => on_screen(output, |screen| verify::run(args, output, screen)),
        RamCommand::Unbind(args) => on_screen(output, |screen| unbind::run(args, output, screen)),
        RamCommand::Recover(args) => on_screen(output, |screen| recover::run(args, output, screen)),
        RamCommand::Pin(args) => on_screen(output, |screen| pin::run(args, output, screen)),
        RamCommand::Disk(args) => on_screen(output, |screen| disk::run(args, output, screen)),
        RamCommand::Doctor(args) => on_screen(output, |screen| doctor::run(args, output, screen)),
        RamCommand::Unpin(args) => on_screen(output, |screen| pin::evict(args, output, screen)),
    }
}

/// Runs a process that keeps RAM folders.
pub(crate) fn run_process(process: &RamProcess, output: &OutputArgs) -> ExitCode {
    match process {
        RamProcess::Keep(args) => on_screen(output, |screen| bind::keep_on(args, screen)),
        RamProcess::Work(args) => on_screen(output, |screen| bind::work_on(args, screen)),
        RamProcess::KeepRun(args) => run::run_keeper(args),
    }
}

/// Runs a sub-command on the screen, which reports why it ended. A signal ends the
/// command, and not the daemon that got its request.
fn on_screen(output: &OutputArgs, run: impl FnOnce(&Screen) -> Result<ExitCode>) -> ExitCode {
    let screen = output.screen_beside_program();
    let code = run(&screen).unwrap_or_else(|error| {
        screen.error(&error);
        error.exit_code()
    });
    screen.end(code)
}

fn registry() -> Registry {
    Registry::new(Path::new(RUNTIME), Path::new(LASTING))
}

fn program() -> Result<SelfExec> {
    let path = std::env::current_exe().context("find", Path::new("fsure"))?;
    Ok(SelfExec { path, is_alone: true })
}

/// The number of the signal that asks to end, once there is one. However often: a
/// folder is not out of RAM before its content is on the disk.
fn signals() -> Arc<AtomicUsize> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::<AtomicUsize>::default();
    for signal in [SIGINT, SIGTERM] {
        // A system that refuses handlers ends the process, and the folder stays in
        // RAM until another process keeps it again.
        let number = signal.unsigned_abs() as usize;
        let _ = signal_hook::flag::register_usize(signal, stop.clone(), number);
    }
    stop
}

fn report(screen: &Screen, reported: &DaemonEvent) {
    match reported {
        DaemonEvent::Warning { words } => screen.warn(words),
        DaemonEvent::Ended(ended) => warnings(screen, ended),
        DaemonEvent::Ready { .. } | DaemonEvent::Failed(_) => {}
    }
}

fn warnings(screen: &Screen, ended: &UnbindReport) {
    ended.warnings.iter().for_each(|warning| screen.warn(warning));
}

/// Sends a request to the daemons of the folders meant, one after the other.
fn ask_each(
    which: &Which,
    screen: &Screen,
    what: Request,
    show: impl Fn(&Path, &Response) -> ExitCode,
) -> Result<ExitCode> {
    let (registry, program) = (registry(), program()?);
    let stop = AtomicUsize::new(0);
    let call = CallerContext { stop: &stop, report: &|reported| report(screen, reported) };
    let folders = match &*which.folders {
        [] => registry.entries()?.into_iter().map(|entry| entry.path).collect(),
        folders => folders.to_vec(),
    };
    let mut code = ExitCode::Clean;
    for folder in folders {
        let one = match request(&registry, &program, &folder, what, &call) {
            Ok(answer) => show(&folder, &answer),
            // The others are not to wait for this one.
            Err(error) => screen.failed(&error),
        };
        code = code.worse(one);
    }
    Ok(code)
}
