//! The command line of `fsure`: arguments to options, a job, a report, an exit code.
//! Each sub-command is a file of its own.

mod compare;
mod crash;
mod crash_matrix;
mod crash_serve;
mod defer;
mod dupes;
mod export;
mod flush;
mod flush_loop;
mod generate;
mod heal;
mod hot;
mod import;
mod io_args;
mod log;
mod loop_keeper;
mod measurement_screen;
mod output_args;
mod pass_through;
mod powercut;
mod process_tree;
mod protect;
mod ram;
mod recover;
mod report;
mod root_runner;
mod scratch_guard;
mod screen;
mod scrub;
mod seal;
mod signed_by_args;
mod speed;
mod status;
mod update;
mod user_dirs;
mod verify;
mod workload;

use std::io::Write as _;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use fsure_core::ExitCode;
use fsure_os::input::is_waiting_for_writer;
use fsure_os::output::is_waiting_for_reader;
use output_args::OutputArgs;

/// Is my data intact? Record the digests of a tree once, verify it from the
/// medium for decades.
#[derive(Parser)]
#[command(name = "fsure", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: OutputArgs,
}

const EXIT_CODES: &str = "Exit codes, the first of 6, 3, 4, 5, 7, 1, 0 that applies: \
0 clean, 1 differences, 2 usage, 3 damage, 4 something could not be read, \
5 root offline, no record or unfinished, 6 record untrusted, 7 healed, 70 internal fault or \
broken harness, \
130 and 143 interrupted with the state saved.";

#[derive(Subcommand)]
enum Command {
    Update(update::UpdateArgs),
    Verify(verify::VerifyArgs),
    Status(status::StatusArgs),
    Scrub(scrub::ScrubArgs),
    Seal(seal::SealArgs),
    Log(log::LogArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Compare(compare::CompareArgs),
    Dupes(dupes::DupesArgs),
    Heal(heal::HealArgs),
    Protect(protect::ProtectArgs),
    Recover(recover::RecoverArgs),
    Speed(speed::SpeedArgs),
    Flush(flush::FlushArgs),
    Powercut(powercut::PowercutArgs),
    Crash(crash::CrashArgs),
    Defer(defer::DeferArgs),
    Ram(ram::RamArgs),
    Hot(hot::HotArgs),
    Report(report::ReportArgs),
    #[command(hide = true)]
    Family(process_tree::FamilyArgs),
    #[command(hide = true)]
    FlushAgain(flush_loop::FlushAgainArgs),
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
    #[command(hide = true)]
    LoopKeeper(loop_keeper::LoopKeeperArgs),
    #[command(hide = true)]
    Outlive(defer::OutliveArgs),
    #[command(hide = true)]
    PassThrough(pass_through::PassThroughArgs),
    #[command(hide = true)]
    Sweep(scratch_guard::SweepArgs),
    #[command(hide = true)]
    Workload(workload::WorkloadArgs),
}

/// Time limit for a run to end after a signal. It waits neither for reads nor for
/// listings, but a commit may take a disk a while.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// Time limit of a run that has to unmount or remove something or to notify another
/// process, on a disk that may be slow. A user who cannot wait that long sends a
/// second signal.
const LONG_WAIT: Duration = Duration::from_secs(120);

/// The number of the signal that asks to stop, once there is one.
static STOP: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// Time limit for the run to end after a signal, if it is not [`LAST_WAIT`].
static END_TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// Runs the command on a thread of its own: one that waits in the kernel for
/// storage that does not answer could take no signal.
pub fn main() -> std::process::ExitCode {
    let (done, is_done) = sync_channel(1);
    let command = move || {
        // The panic has been reported by then; an internal fault must not pass for
        // any verdict.
        let _ = done.send(catch_unwind(run).unwrap_or(ExitCode::Internal));
    };
    let Ok(_) = std::thread::Builder::new().name("command".into()).spawn(command) else {
        return std::process::ExitCode::from(ExitCode::Internal.number());
    };
    let mut asked_at = None;
    loop {
        if let Ok(code) = is_done.recv_timeout(Duration::from_millis(100)) {
            return std::process::ExitCode::from(code.number());
        }
        let signal = STOP.get().map_or(0, |stop| stop.load(Ordering::Relaxed));
        let most = *END_TIMEOUT.get().unwrap_or(&LAST_WAIT);
        if signal > 0 && asked_at.get_or_insert_with(Instant::now).elapsed() >= most {
            let why = match () {
                () if is_waiting_for_reader() => {
                    "the program that reads its output has stopped reading"
                }
                () if is_waiting_for_writer() => "the program that writes its input does not write",
                () => "the storage does not answer",
            };
            let last_words = format!(
                "fsure: ended without a report: {why}. What was recorded more than a second ago \
                 is safe\n"
            );
            // If this fails, there is no output left to report it on.
            let _ = std::io::stderr().write_all(last_words.as_bytes());
            return std::process::ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
        }
    }
}

fn run() -> ExitCode {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If this fails, there is no output left to report it on.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::Usage } else { ExitCode::Clean };
        }
    };
    match user_dirs::config() {
        Ok(user) => cli.output.set_user(user),
        Err(error) => {
            cli.output.screen(false, &[]).error(&error);
            return error.exit_code();
        }
    }
    if let Some(name) = name_in_json(&cli.command) {
        cli.output.set_command(name.to_owned());
    }
    if let Err(error) = cli.output.prepare() {
        cli.output.screen(false, &[]).error(&error);
        return error.exit_code();
    }
    match &cli.command {
        Command::Update(args) => update::run(args, &cli.output),
        Command::Verify(args) => verify::run(args, &cli.output),
        Command::Status(args) => status::run(args, &cli.output),
        Command::Scrub(args) => scrub::run(args, &cli.output),
        Command::Seal(args) => seal::run(args, &cli.output),
        Command::Log(args) => log::run(args, &cli.output),
        Command::Export(args) => export::run(args, &cli.output),
        Command::Import(args) => import::run(args, &cli.output),
        Command::Compare(args) => compare::run(args, &cli.output),
        Command::Dupes(args) => dupes::run(args, &cli.output),
        Command::Heal(args) => heal::run(args, &cli.output),
        Command::Protect(args) => protect::run(args, &cli.output),
        Command::Recover(args) => recover::run(args, &cli.output),
        Command::Speed(args) => speed::run(args, &cli.output),
        Command::Flush(args) => flush::run(args, &cli.output),
        Command::Powercut(args) => powercut::run(args, &cli.output),
        Command::Crash(args) => crash::run(args, &cli.output),
        Command::Defer(args) => defer::run(args, &cli.output),
        Command::Ram(args) => ram::run(args, &cli.output),
        Command::Hot(args) => hot::run(args, &cli.output),
        Command::Report(args) => report::run(args, &cli.output),
        Command::Family(args) => process_tree::run(args),
        Command::FlushAgain(args) => flush_loop::run(args),
        Command::Generate(args) => generate::run(args),
        Command::LoopKeeper(args) => loop_keeper::run(args),
        Command::Outlive(args) => defer::outlive(args),
        Command::PassThrough(args) => pass_through::run(args),
        Command::Sweep(args) => scratch_guard::run(args),
        Command::Workload(args) => workload::run(args),
    }
}

/// Returns the name of a command whose lines of JSON begin with one that names it. The results
/// of measurements begin with a line of their own, and internal commands print none.
fn name_in_json(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Update(_) => "update",
        Command::Verify(_) => "verify",
        Command::Status(_) => "status",
        Command::Scrub(_) => "scrub",
        Command::Seal(_) => "seal",
        Command::Log(_) => "log",
        Command::Export(_) => "export",
        Command::Import(_) => "import",
        Command::Compare(_) => "compare",
        Command::Dupes(_) => "dupes",
        Command::Heal(_) => "heal",
        Command::Protect(_) => "protect",
        Command::Recover(_) => "recover",
        Command::Powercut(_) => "powercut",
        Command::Crash(_) => "crash",
        Command::Defer(_) => "defer",
        Command::Ram(_) => "ram",
        Command::Hot(_) => "hot",
        _ => return None,
    })
}

/// Gives a command that has something to clear away more time to end after a signal.
fn wait_long_for_the_end() {
    let _ = END_TIMEOUT.set(LONG_WAIT);
}

/// Listens to signals from now on.
fn listen() -> Arc<AtomicUsize> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::clone(STOP.get_or_init(Arc::default));
    let is_second = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = 128 + signal;
        let number = signal.unsigned_abs() as usize;
        // In this order: the second signal finds the flag that the first set.
        // A system that refuses handlers ends the process at the first, and
        // the record is sound then, too.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, is_second.clone());
        let _ = signal_hook::flag::register(signal, is_second.clone());
        let _ = signal_hook::flag::register_usize(signal, stop.clone(), number);
    }
    stop
}
