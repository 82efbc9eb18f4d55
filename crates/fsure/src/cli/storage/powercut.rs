//! `fsure powercut`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::report::storage::powercut as report;
use clap::{Args, Subcommand};
use fsure_core::safe;
use fsure_core::{Clock, Error, ExitCode, Monitor, Result, units};
use fsure_powercut as cut;
use fsure_powercut::{CheckOptions, Pattern, Secret, Way, WitnessOptions, WriteOptions};
use fsure_powercut::{Message, PowercutMonitor};

use super::save_args::SaveArgs;
use super::screen::{Live, Screen};
use super::{OutputArgs, user_dirs};

/// Test whether a drive keeps acknowledged writes in a power cut
///
/// It takes two machines: the witness remembers which writes were acknowledged to the
/// writer as durable, and after the cut the writer's machine is checked against that.
/// Cut at least 5 times, each after another while. Exit codes: 0 passed, 3 an
/// acknowledged write does not hold, 5 nothing is shown.
#[derive(Args)]
pub(crate) struct PowercutArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    Witness(WitnessArgs),
    Write(WriteArgs),
    Check(CheckArgs),
}

/// Remember the writes acknowledged as durable, on a machine that keeps its power
#[derive(Args)]
struct WitnessArgs {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT")]
    listen: String,
    /// Folder to keep the reports of the writers in
    #[arg(long, value_name = "FOLDER")]
    dir: PathBuf,
    #[command(flatten)]
    token: TokenArgs,
}

/// Write below FOLDER until the power is cut
///
/// All it writes is in a folder of its own there, which is gone after a clean end.
#[derive(Args)]
struct WriteArgs {
    /// A folder on the drive in question
    folder: PathBuf,
    /// The witness
    #[arg(long, value_name = "HOST:PORT")]
    witness: String,
    #[command(flatten)]
    token: TokenArgs,
    /// Ways to make a write durable [default: those that programs use most]
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = way)]
    methods: Vec<Way>,
    /// Patterns of writing [default: overwrite,append,create,rename]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    patterns: Vec<Pattern>,
    /// Repeat the random choices of another run
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Cut the power by this command, such as one for a smart plug
    #[arg(long, value_name = "COMMAND")]
    cut_cmd: Option<String>,
    /// Run it at a random moment in this span
    #[arg(long, value_name = "FROM-TO", default_value = "5s-60s", value_parser = wait)]
    cut_wait: (Duration, Duration),
    /// End the run after this time, if no power is cut
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    span: Option<Duration>,
}

/// Compare what is there after a cut with what the witness remembers
#[derive(Args)]
struct CheckArgs {
    /// The folder that was written to
    folder: PathBuf,
    /// The witness
    #[arg(long, value_name = "HOST:PORT")]
    witness: String,
    #[command(flatten)]
    token: TokenArgs,
    /// Another run than the last one of that folder of this machine
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    save: SaveArgs,
}

#[derive(Args)]
struct TokenArgs {
    /// A file with the secret that both machines share, at least 16 characters
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Minimum length of a token, in bytes: a shorter one could be guessed.
const TOKEN_MIN: usize = 16;

impl TokenArgs {
    fn secret(&self) -> Result<Option<Secret>> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let text = user_dirs::text(file)?;
        let token = text.trim();
        if token.len() < TOKEN_MIN {
            return Err(Error::Usage {
                message: format!("the token in {} is too short", file.display()),
                hint: Some(format!("a secret has at least {TOKEN_MIN} characters, by chance")),
            });
        }
        Ok(Some(Secret::new(token.as_bytes())))
    }

    /// Returns the secret of a client: without a token, the witness accepts every
    /// client.
    fn secret_or_none(&self) -> Result<Secret> {
        Ok(self.secret()?.unwrap_or_else(|| Secret::new(b"")))
    }
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    units::span_option(text, "a time such as 30s or 5m")
}

fn wait(text: &str) -> std::result::Result<(Duration, Duration), String> {
    let spans = text
        .split_once('-')
        .and_then(|(from, to)| Some((units::parse_span(from)?, units::parse_span(to)?)));
    let spans = spans.filter(|(from, to)| from <= to);
    spans.ok_or_else(|| "two times such as 5s-60s".to_owned())
}

fn way(text: &str) -> std::result::Result<Way, String> {
    let all = Way::all();
    let names: Vec<_> = all.iter().map(|way| way.name).collect();
    let found = all.iter().find(|way| way.name == text).copied();
    found.ok_or_else(|| format!("on this system there are: {}", names.join(", ")))
}

fn pattern(text: &str) -> std::result::Result<Pattern, String> {
    let found = Pattern::ALL.into_iter().find(|pattern| pattern.name() == text);
    let names = Pattern::ALL.map(Pattern::name).join(", ");
    found.ok_or_else(|| format!("there are: {names}"))
}

/// Runs the command.
pub(crate) fn run(args: &PowercutArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.patient_screen();
    let reported = TerminalMonitor {
        screen: &screen,
        json: output.json,
        quiet: output.quiet,
        live: screen.live_line(),
        is_table: AtomicBool::new(false),
    };
    let done = match &args.role {
        Role::Witness(args) => witness(args, &reported),
        Role::Write(args) => write(args, &reported),
        Role::Check(args) => check(args, &reported),
    };
    drop(reported);
    let code = done.unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn witness(args: &WitnessArgs, reported: &TerminalMonitor<'_>) -> Result<ExitCode> {
    let options = WitnessOptions {
        listen: args.listen.clone(),
        folder: args.dir.clone(),
        secret: args.token.secret()?,
        clock: Clock::default(),
    };
    cut::witness(&options, reported)
}

fn write(args: &WriteArgs, reported: &TerminalMonitor<'_>) -> Result<ExitCode> {
    let or_all = |given: &[Pattern]| match given {
        [] => Pattern::ALL.to_vec(),
        given => given.to_vec(),
    };
    let options = WriteOptions {
        folder: args.folder.clone(),
        witness: args.witness.clone(),
        secret: args.token.secret_or_none()?,
        ways: if args.methods.is_empty() { Way::usual() } else { args.methods.clone() },
        patterns: or_all(&args.patterns),
        seed: args.seed,
        cut: args.cut_cmd.clone(),
        wait: args.cut_wait,
        span: args.span,
        clock: Clock::default(),
    };
    cut::write(&options, reported)
}

fn check(args: &CheckArgs, reported: &TerminalMonitor<'_>) -> Result<ExitCode> {
    args.save.begin(reported.screen, "powercut")?;
    let options = CheckOptions {
        folder: args.folder.clone(),
        witness: args.witness.clone(),
        secret: args.token.secret_or_none()?,
        run: args.run.clone(),
        results: user_dirs::cuts()?,
        clock: Clock::default(),
    };
    cut::check(&options, reported)
}

/// The terminal as a listener.
struct TerminalMonitor<'a> {
    screen: &'a Screen,
    json: bool,
    quiet: bool,
    live: Option<Live<'a>>,
    /// True if the head of a table was printed.
    is_table: AtomicBool,
}

impl Monitor for TerminalMonitor<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl PowercutMonitor for TerminalMonitor<'_> {
    fn report(&self, line: &Message) {
        self.screen.result_line(&line.to_json());
        if self.json {
            return;
        }
        // The end of a check is its result; all other lines are its progress.
        if self.quiet && !matches!(line, Message::Method(_) | Message::Summary(_)) {
            return;
        }
        let is_row = matches!(line, Message::Method(_));
        let is_first = is_row && !self.is_table.swap(true, Ordering::Relaxed);
        self.screen.print_now(&report::text(line, is_first));
    }

    fn under_way(&self, words: &str) {
        if let Some(live) = &self.live {
            live.set_text(safe(words).to_string());
        }
    }
}
