//! `fsure ram bind`, and the two processes of its daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{Error, ExitCode, Result, units};
use fsure_os::detached_process;
use fsure_ram::Preset;
use fsure_ram::service::{
    Backend, Bind, BindPlan, CallerContext, DaemonEvent, FolderStatus, PlacementPlan, RamFolders,
    Registry, SelfExec, SupervisorConfig, WorkerConfig, keep, prepare, refuse_nested, status,
    withdraw, work,
};

use super::super::OutputArgs;
use super::super::screen::Screen;
use super::preset;

/// Show a folder to all programs from memory, until it is unbound
///
/// Needs root. Refused if anything in the folder would be lost or would not work;
/// 'fsure ram unbind' ends it.
#[derive(Args)]
pub(super) struct BindArgs {
    /// The folders; each is bound for itself, and one that cannot be keeps no other from it
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath,
          required_unless_present = "preset")]
    folders: Vec<PathBuf>,
    /// Bind the folders of a kind that this user has, and say before what is at risk: browser,
    /// builds, caches or logs; with '-n' to look first
    #[arg(long, value_name = "NAME", value_parser = preset::named, conflicts_with = "folders")]
    preset: Option<Preset>,
    /// Maximum age of the oldest change that a crash loses: from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    max_loss: Duration,
    /// Memory that it takes at most: 2G, or auto, which follows what is in it up to half of
    /// the memory that is available to all RAM folders (tmpfs)
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    size: Size,
    /// File system in memory: tmpfs, or zram-xfs, which is compressed and frozen for
    /// every generation, so that each is one moment whatever is written
    #[arg(long, value_name = "NAME", default_value = "tmpfs", value_parser = backend)]
    backend: Backend,
    /// Show what would be done, and do nothing
    #[arg(short = 'n', long = "dry-run", alias = "plan")]
    plan: bool,
    /// Stay in the foreground and notify systemd; a signal unbinds the folder
    #[arg(long, conflicts_with = "plan")]
    foreground: bool,
}

/// A process of a RAM folder's daemon
#[derive(Args)]
pub(crate) struct DaemonArgs {
    /// Id of the folder
    id: String,
    /// No other process starts a keeper that was killed
    #[arg(long, conflicts_with = "supervised")]
    alone: bool,
    /// Another process starts a keeper that was killed
    #[arg(long)]
    supervised: bool,
}

/// A limit on the memory of a RAM folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Auto,
    Bytes(u64),
}

pub(super) fn size(text: &str) -> std::result::Result<Size, String> {
    match text {
        "auto" => Ok(Size::Auto),
        _ => units::size_option(text, "a size such as 500M or 2G, or auto").map(Size::Bytes),
    }
}

fn backend(text: &str) -> std::result::Result<Backend, String> {
    Backend::named(text).ok_or_else(|| "tmpfs or zram-xfs".to_owned())
}

pub(super) fn time(text: &str) -> std::result::Result<Duration, String> {
    units::span_option(text, "a time such as 1s or 200ms")
}

/// Runs the command.
pub(super) fn run(args: &BindArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let folders = folders(args, output, screen)?;
    refuse_nested(&folders)?;
    if args.foreground && folders.len() > 1 {
        return Err(Error::Usage {
            message: "'--foreground' keeps one folder, and several were named".to_owned(),
            hint: Some("run one for each, as fsure-ram@.service does".to_owned()),
        });
    }
    let (stop, mut planned, mut code) = (super::signals(), RamFolders::default(), ExitCode::Clean);
    let mut left = vec![];
    for folder in &folders {
        if stop.load(Ordering::Relaxed) > 0 {
            left.push(folder);
            code = code.worse(ExitCode::Interrupted);
            continue;
        }
        let bind = args.bind(folder, planned);
        let one = match bind_one(args, &bind, &stop, output, screen) {
            Ok(Bound::Planned(plan)) => {
                planned = planned.and(1, plan.need);
                if plan.refusals.is_empty() { ExitCode::Clean } else { ExitCode::Usage }
            }
            Ok(Bound::InRam) => ExitCode::Clean,
            // The others are not to wait for this one.
            Err(error) => {
                left.push(folder);
                screen.failed(&error)
            }
        };
        code = code.worse(one);
    }
    if !left.is_empty() && folders.len() > 1 && !args.plan {
        let names: Vec<_> = left.iter().map(|folder| folder.display().to_string()).collect();
        let (count, all, names) = (folders.len() - left.len(), folders.len(), names.join(", "));
        screen.warn(&format!("{count} of {all} folders are in RAM and stay there; not: {names}"));
    }
    Ok(code)
}

/// The folders that are meant. What is at risk in those of a preset is reported before anything is
/// done.
fn folders(args: &BindArgs, output: &OutputArgs, screen: &Screen) -> Result<Vec<PathBuf>> {
    let Some(preset) = args.preset else { return Ok(args.folders.clone()) };
    let folders = preset::folders(preset)?;
    let form = if output.json { report::preset_json } else { report::preset };
    screen.print_now(&form(preset, &folders, args.max_loss_ms()));
    Ok(folders.into_iter().filter(|(_, is_there)| *is_there).map(|(path, _)| path).collect())
}

/// A folder that was named.
enum Bound {
    /// It was only checked.
    Planned(PlacementPlan),
    /// It is in RAM, or was until its keeper ended in the foreground.
    InRam,
}

fn bind_one(
    args: &BindArgs,
    bind: &Bind,
    stop: &Arc<AtomicUsize>,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<Bound> {
    let registry = super::registry();
    let (entry, adopted) = match prepare(&registry, bind)? {
        BindPlan::New(plan, _) if args.plan => {
            let form = if output.json { report::plan_json } else { report::plan };
            screen.print(&form(&plan, args.max_loss_ms()));
            return Ok(Bound::Planned(plan));
        }
        BindPlan::New(plan, entry) => {
            plan.warnings.iter().for_each(|warning| screen.warn(warning));
            (entry, false)
        }
        BindPlan::Orphan(entry) => (entry, true),
    };
    if args.foreground {
        foreground(&registry, &entry.id, stop, output, screen)?;
        return Ok(Bound::InRam);
    }
    let call = CallerContext { stop, report: &|reported| super::report(screen, reported) };
    let kept = super::program()?.keep(&entry.id, &call);
    if let Err(Error::Interrupted(_)) = kept {
        withdraw(&registry, &entry)?;
    }
    kept?;
    let known = status(&registry, Some(&entry.path))?;
    show(&known, adopted, output, screen);
    Ok(Bound::InRam)
}

impl BindArgs {
    fn bind(&self, folder: &Path, planned: RamFolders) -> Bind {
        Bind {
            folder: folder.to_owned(),
            max_loss: self.max_loss,
            size: match self.size {
                Size::Auto => None,
                Size::Bytes(bytes) => Some(bytes),
            },
            backend: self.backend,
            plan: self.plan,
            planned,
        }
    }

    fn max_loss_ms(&self) -> u64 {
        u64::try_from(self.max_loss.as_millis()).unwrap_or(u64::MAX)
    }
}

fn show(known: &[FolderStatus], adopted: bool, output: &OutputArgs, screen: &Screen) {
    let Some(known) = known.first() else { return };
    if output.json {
        screen.print_now(&report::json("bound", &known.entry.path, &known.state));
    } else {
        screen.print_now(&report::bound(known, adopted));
    }
}

/// The keeper in the foreground, under systemd.
fn foreground(
    registry: &Registry,
    id: &str,
    stop: &Arc<AtomicUsize>,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<()> {
    let socket = std::env::var_os("NOTIFY_SOCKET");
    let notify = |words: &str| {
        if let Some(socket) = &socket {
            // If systemd does not listen, there is no process to notify.
            let _ = detached_process::notify(socket, words);
        }
    };
    let report = |reported: &DaemonEvent| match reported {
        DaemonEvent::Ready { adopted } => {
            notify("READY=1\nSTATUS=in RAM, and kept\n");
            let known =
                registry.read(id).and_then(|entry| status(registry, Some(&entry.path)).ok());
            show(&known.unwrap_or_default(), *adopted, output, screen);
        }
        DaemonEvent::Failed(failed) => notify(&format!("STATUS={}\n", failed.message)),
        DaemonEvent::Warning { words } => {
            notify(&format!("STATUS={words}\n"));
            screen.warn(words);
        }
        DaemonEvent::Ended(ended) => {
            notify("STOPPING=1\nSTATUS=out of RAM\n");
            super::warnings(screen, ended);
        }
    };
    let program = SelfExec { is_alone: false, ..super::program()? };
    let keep_it = SupervisorConfig {
        registry,
        id,
        program,
        stop,
        report: &report,
        beat: &|| notify("WATCHDOG=1\n"),
    };
    keep(&keep_it)
}

/// Runs a keeper that was started by another process.
pub(super) fn keep_on(args: &DaemonArgs, screen: &Screen) -> Result<ExitCode> {
    let (registry, stop) = (super::registry(), super::signals());
    keep(&SupervisorConfig {
        registry: &registry,
        id: &args.id,
        program: args.program()?,
        stop: &stop,
        report: &|reported| print_event(screen, reported),
        beat: &|| {},
    })?;
    Ok(ExitCode::Clean)
}

/// Runs a worker.
pub(super) fn work_on(args: &DaemonArgs, screen: &Screen) -> Result<ExitCode> {
    let (registry, stop): (_, Arc<AtomicUsize>) = (super::registry(), super::signals());
    work(&WorkerConfig {
        registry: &registry,
        id: &args.id,
        program: args.program()?,
        stop: &stop,
        report: &|reported| print_event(screen, reported),
    })?;
    Ok(ExitCode::Clean)
}

/// A line for the process that started this one.
fn print_event(screen: &Screen, reported: &DaemonEvent) {
    if let Ok(line) = serde_json::to_string(reported) {
        screen.print_now(&line);
    }
}

impl DaemonArgs {
    fn program(&self) -> Result<SelfExec> {
        Ok(SelfExec { is_alone: self.alone, ..super::program()? })
    }
}
