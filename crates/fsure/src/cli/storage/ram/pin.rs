//! `fsure ram pin` and `unpin`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::report::storage::pin as report;
use clap::Args;
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_os::detached_process::{DetachedProcess, begun, terminate};
use fsure_ram::ReleaseReason;
use signal_hook::consts::SIGINT;

use super::super::screen::Screen;
use super::super::{OutputArgs, user_dirs};

/// Interval at which signals are checked, to pass them on.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Hold the files of a folder in memory: read from there, written to the disk
///
/// There is no second copy, and nothing can be lost. New, replaced and grown files
/// are followed. At most half of the memory that is available is taken, and all of
/// it is let go of when memory becomes short. The folder cannot be unmounted
/// meanwhile. Exit codes: 0 held, 1 let go of because memory is short or the folder has
/// another path, 2 refused.
#[derive(Args)]
pub(super) struct PinArgs {
    /// The folder
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Stay in the foreground, as systemd wants it
    #[arg(long)]
    foreground: bool,
}

/// Let go of a folder that is held in memory
#[derive(Args)]
pub(super) struct UnpinArgs {
    /// The folder
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
}

/// Runs `pin`.
pub(super) fn run(args: &PinArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    if !args.foreground {
        return in_background(&args.folder, output, screen);
    }
    let pinned = |pinned: &fsure_ram::Pinned| {
        let line = if output.json { report::json_line(pinned) } else { report::text(pinned) };
        screen.print_now(&line);
    };
    let stop = super::signals();
    let is_over = || stop.load(Ordering::Relaxed) > 0;
    Ok(match fsure_ram::pin(&args.folder, &user_dirs::runtime()?, &pinned, &is_over)? {
        ReleaseReason::Asked => ExitCode::Clean,
        ReleaseReason::Gone => {
            screen.note(&format!("{} is gone", args.folder.display()));
            ExitCode::Clean
        }
        ReleaseReason::Moved => {
            screen.warn(&format!("unpinned {}: its path changed", args.folder.display()));
            ExitCode::Differences
        }
        ReleaseReason::Short(how) => {
            screen.warn(&format!("unpinned {}: {how}", args.folder.display()));
            ExitCode::Differences
        }
    })
}

/// Starts the process that holds the folder, and prints its report once all is in
/// memory.
fn in_background(folder: &Path, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let program = std::env::current_exe().context("find the program of", Path::new("fsure"))?;
    // It works in no folder, so that a relative path would lead elsewhere.
    let folder = fsure_os::path::without_links(folder).context("find", folder)?;
    let arguments = ["ram", "pin", "--foreground", "--json"].map(Into::into);
    let arguments: Vec<_> = arguments.into_iter().chain([folder.clone().into()]).collect();
    let stop = super::signals();
    let mut started =
        DetachedProcess::spawn(&program, &arguments, false).context("start", &program)?;
    let line = first_line(&mut started, &stop).context("read from", &program)?;
    match i32::try_from(stop.load(Ordering::Relaxed)) {
        Ok(0) => {}
        Ok(SIGINT) => return Err(Error::Interrupted(ExitCode::Interrupted)),
        _ => return Err(Error::Interrupted(ExitCode::Terminated)),
    }
    let line = line.unwrap_or_default();
    let word = fsure_ram::word(&folder, &user_dirs::runtime()?);
    if let Some(word) = word {
        screen.note(&format!("last time: {word}"));
    }
    let Ok(pinned) = serde_json::from_str(&line) else { return Err(refused(&line, &folder)) };
    if output.json {
        screen.print(&line);
    } else if !output.quiet {
        screen.print(&report::text(&pinned));
    }
    Ok(ExitCode::Clean)
}

/// Returns the first line that the process prints behind the one that names the command. A
/// signal that asks to end is passed on, and its end is waited for: otherwise a process that
/// goes on taking memory would go unnoticed.
fn first_line(started: &mut DetachedProcess, stop: &AtomicUsize) -> io::Result<Option<String>> {
    let (process, is_over) = (started.process(), AtomicBool::new(false));
    let began = begun(process).unwrap_or_default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && stop.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(SIGNAL_POLL_INTERVAL);
            }
            if stop.load(Ordering::Relaxed) > 0 {
                // It may have ended meanwhile.
                let _ = terminate(process, began);
            }
        });
        let line = match started.line() {
            Ok(Some(line)) if line.starts_with(r#"{"type":"start","#) => started.line(),
            line => line,
        };
        is_over.store(true, Ordering::Relaxed);
        line
    })
    .and_then(|line| {
        if stop.load(Ordering::Relaxed) > 0 {
            let _ = terminate(process, began);
            started.wait()?;
        }
        Ok(line)
    })
}

/// Returns the error that the process reported; without one, that the folder was let
/// go of too early.
fn refused(line: &str, folder: &Path) -> Error {
    let error: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    match error["message"].as_str() {
        Some(message) => Error::Usage {
            message: message.to_owned(),
            hint: error["hint"].as_str().map(str::to_owned),
        },
        None => Error::FailedPrecondition {
            message: format!("{} was unpinned before it was in memory", folder.display()),
            hint: Some(
                "another process ran 'fsure ram unpin' or killed the process that pins it"
                    .to_owned(),
            ),
        },
    }
}

/// Runs `unpin`.
pub(super) fn evict(args: &UnpinArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let folder = &args.folder;
    let runtime = user_dirs::runtime()?;
    let Some(pinned) = fsure_ram::unpin(folder, &runtime)? else {
        return Err(Error::FailedPrecondition {
            message: format!("{} is not pinned", folder.display()),
            hint: fsure_ram::word(folder, &runtime),
        });
    };
    if output.json {
        screen.print(&report::unpinned_json_line(&pinned));
    } else if !output.quiet {
        screen.print(&report::unpinned(&pinned));
    }
    Ok(ExitCode::Clean)
}
