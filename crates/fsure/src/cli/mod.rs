//! The command line of `fsure`: arguments to options, a job, a report, an exit code.
//! Each sub-command is a file of its own.

mod access_args;
mod choices;
mod command_notes;
mod compare;
mod dupes;
mod environment;
mod examples;
mod exclude_args;
mod export;
mod foreign_words;
mod headings;
mod heal;
mod help;
mod hints;
mod import;
mod internal;
mod io_args;
mod list_advice;
mod log;
mod loop_keeper;
mod output_args;
mod path_list;
mod protect;
mod recover;
mod root_runner;
mod screen;
mod scrub;
mod seal;
mod signed_by_args;
mod status;
#[cfg(feature = "storage")]
mod storage;
mod topics;
mod update;
mod user_dirs;
mod verify;
mod version;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::{ArgMatches, FromArgMatches as _, Parser, Subcommand};
use fsure_core::ExitCode;
use fsure_os::input::is_waiting_for_writer;
use fsure_os::output::{Destination, is_waiting_for_reader};
use output_args::OutputArgs;

pub use command_notes::CommandNotes;
pub use examples::notes;
pub use help::{COMMAND_GROUPS, CommandGroup, command};
pub use topics::EXIT_CODES;

/// Columns of the widest help.
const HELP_WIDTH: usize = 100;

#[cfg_attr(
    feature = "storage",
    doc = "Find files that have changed by themselves (bit rot), and measure storage honestly"
)]
#[cfg_attr(not(feature = "storage"), doc = "Find files that have changed by themselves (bit rot)")]
///
/// fsure records a checksum of every file once, and reads the files again from the disk for
/// decades: it names those that are damaged, and repairs them from copies or recovery data.
#[cfg_attr(
    feature = "storage",
    doc = "It also measures storage, and tests what a power cut leaves."
)]
#[derive(Parser)]
#[command(name = "fsure", version, max_term_width = HELP_WIDTH, disable_help_subcommand = true,
          after_help = MORE_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: OutputArgs,
}

const MORE_HELP: &str = "'fsure COMMAND --help' shows a command with examples; 'fsure help \
exit-codes', 'fsure help verdicts' and 'fsure help patterns' explain these.";

#[derive(Subcommand)]
enum Command {
    #[command(aliases = ["init", "add", "record"])]
    Update(update::UpdateArgs),
    #[command(aliases = ["check", "audit"])]
    Verify(verify::VerifyArgs),
    Status(status::StatusArgs),
    Scrub(scrub::ScrubArgs),
    #[command(aliases = ["repair", "restore", "fix"])]
    Heal(heal::HealArgs),
    Protect(protect::ProtectArgs),
    Recover(recover::RecoverArgs),
    Compare(compare::CompareArgs),
    Dupes(dupes::DupesArgs),
    Log(log::LogArgs),
    Seal(seal::SealArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    #[cfg(feature = "storage")]
    #[command(flatten)]
    Storage(storage::StorageCommand),
    Help(help::HelpArgs),
}

/// Time limit for a run to end after a signal. It waits neither for reads nor for
/// listings, but a commit may take a disk a while.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// Time limit of a run that has to unmount or remove something or to notify another
/// process, on a disk that may be slow. A user who cannot wait that long sends a
/// second signal.
const LONG_WAIT: Duration = Duration::from_secs(120);

/// Commands whose JSON does not begin with a line that names the command: the results of
/// measurements begin with a line of their own, and a page has none.
const WITHOUT_START_LINE: [&str; 3] = ["speed", "flush", "report"];

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
    if let Err(error) = std::thread::Builder::new().name("command".into()).spawn(command) {
        let why = format!(
            "fsure: cannot start a thread: {error}. Raise the limit on processes ('ulimit -u'), or \
             that of the container\n"
        );
        // If this fails, there is no output left to report it on.
        let _ = std::io::stderr().write_all(why.as_bytes());
        return std::process::ExitCode::from(ExitCode::Usage.number());
    }
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
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(internal) = internal::asked_for(&args) {
        return internal.as_ref().map_or_else(end_of_parsing, internal::run);
    }
    if let Some(version) = version::VersionArgs::parse_line(&args) {
        // If this fails, there is no output left to report it on.
        let _ = std::io::stdout().write_all(version.lines().as_bytes());
        return ExitCode::Clean;
    }
    if args.len() < 2 {
        // If this fails, there is no output left to report it on.
        let _ = help::first_steps(screen::help_width().unwrap_or(usize::MAX)).print_help();
        return ExitCode::Usage;
    }
    let mut cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) => return end_of_parsing(&error),
    };
    let user = user_dirs::config();
    if let Err(error) = user.and_then(|user| cli.output.prepare(user)) {
        return cli.output.screen(false, &[]).failed(&error);
    }
    match &cli.command {
        Command::Update(args) => update::run(args, &cli.output),
        Command::Verify(args) => verify::run(args, &cli.output),
        Command::Status(args) => status::run(args, &cli.output),
        Command::Scrub(args) => scrub::run(args, &cli.output),
        Command::Heal(args) => heal::run(args, &cli.output),
        Command::Protect(args) => protect::run(args, &cli.output),
        Command::Recover(args) => recover::run(args, &cli.output),
        Command::Compare(args) => compare::run(args, &cli.output),
        Command::Dupes(args) => dupes::run(args, &cli.output),
        Command::Log(args) => log::run(args, &cli.output),
        Command::Seal(args) => seal::run(args, &cli.output),
        Command::Export(args) => export::run(args, &cli.output),
        Command::Import(args) => import::run(args, &cli.output),
        #[cfg(feature = "storage")]
        Command::Storage(command) => storage::run(command, &cli.output),
        Command::Help(args) => show_help(args),
    }
}

/// Parses a command line; an error has advice on what to type.
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let exists = |path: &OsStr| fsure_os::path::exists(Path::new(path));
    let command = help::command_for(screen::help_width().unwrap_or(usize::MAX));
    let matches = environment::parse(command, args);
    let matches = matches.map_err(|error| hints::advise(error, args, &exists))?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let name = matches.subcommand_name().filter(|name| !WITHOUT_START_LINE.contains(name));
    cli.output.set_command(name.map(str::to_owned));
    cli.output.json |= saves_to_standard_output(&matches);
    Ok(cli)
}

/// Returns true if the result is to be saved in standard output, which is to print it as JSON.
fn saves_to_standard_output(matches: &ArgMatches) -> bool {
    let path = matches.try_get_one::<PathBuf>("save").ok().flatten();
    path.is_some_and(|path| Destination::is_standard_output(path))
        || matches.subcommand().is_some_and(|(_, below)| saves_to_standard_output(below))
}

/// Prints what the parser has to say, help or an error.
fn end_of_parsing(error: &clap::Error) -> ExitCode {
    let written = error.render().to_string();
    let width = screen::error_width().filter(|width| {
        error.use_stderr() && written.lines().any(|line| line.chars().count() > *width)
    });
    let printed = match width {
        Some(width) => {
            let lines = written.lines().map(|line| screen::wrap_message(line, width) + "\n");
            std::io::stderr().write_all(lines.collect::<String>().as_bytes())
        }
        None => error.print(),
    };
    match printed {
        _ if error.use_stderr() => ExitCode::Usage,
        Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
            // If this fails, there is no output left to report it on.
            let _ = writeln!(std::io::stderr(), "fsure: cannot write the help: {failed}");
            ExitCode::Incomplete
        }
        _ => ExitCode::Clean,
    }
}

/// Prints a topic, or the help of a command.
fn show_help(args: &help::HelpArgs) -> ExitCode {
    if let Some(topic) = args.topic() {
        let help_width = screen::help_width().unwrap_or(usize::MAX);
        // If this fails, there is no output left to report it on.
        let _ = help::page(&topic, help_width).print_help();
        return ExitCode::Clean;
    }
    let words: Vec<_> = args.command_line().into_iter().map(OsString::from).collect();
    parse(&words).err().as_ref().map_or(ExitCode::Clean, end_of_parsing)
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
