//! `fsure speed`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use fsure::job::{Data, SpeedOptions, speed};
use fsure::report::speed as report;
use fsure::words::{Clock, ExitCode, units};

use super::OutputArgs;

/// Measure how fast storage is, step by step, and how far verify is from it
///
/// Each rung is measured in turn, round after round, and says what it truly
/// measured: memory, the hash, and for each DIR what a write costs as far as the
/// page cache, the device and the medium, and what a read gives from memory and
/// from the device. All files are new ones in a folder of their own in DIR, take
/// no more than a quarter of its free space, and are gone afterwards.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SpeedArgs {
    #[command(subcommand)]
    command: Option<Sub>,
    /// Folders to measure the storage of [default: the current folder]
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Bytes of each stream; less where space or memory are short
    #[arg(long, value_name = "SIZE", default_value = "450M", value_parser = size)]
    size: u64,
    /// Runs of each rung [default: until each is sure to 5 %]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Time for all of it, preparations included
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget)]
    budget: Duration,
    /// What is written and hashed
    #[arg(long, value_enum, value_name = "KIND", default_value = "random")]
    data: DataArg,
    /// Only these rungs, by name or by its first words: 'disk,hash blake3'
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rungs: Vec<String>,
    /// Append each line of the result to FILE, a new one, as it is measured
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Sub {}

#[derive(Clone, Copy, ValueEnum)]
enum DataArg {
    /// What nothing can pack
    Random,
    /// Zeros, which flatter whatever packs
    Zeros,
    /// Words of a common text
    Text,
}

fn size(text: &str) -> Result<u64, String> {
    let size = units::parse_size(text).filter(|size| *size >= units::MIB);
    size.ok_or_else(|| "a size of at least 1M, such as 450M or 2GiB".to_owned())
}

fn budget(text: &str) -> Result<Duration, String> {
    let time = units::parse_span(text).filter(|time| *time >= Duration::from_secs(1));
    time.ok_or_else(|| "a time of at least 1s, such as 60s or 5m".to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &SpeedArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let here = vec![PathBuf::from(".")];
    let options = SpeedOptions {
        program: format!("fsure {}", env!("CARGO_PKG_VERSION")),
        targets: if args.folders.is_empty() { here } else { args.folders.clone() },
        size: args.size,
        runs: args.runs.map(usize::from),
        budget: args.budget,
        data: match args.data {
            DataArg::Random => Data::Random,
            DataArg::Zeros => Data::Zeros,
            DataArg::Text => Data::Text,
        },
        rungs: args.rungs.iter().map(|name| name.trim().to_owned()).collect(),
        clock: Clock::default(),
    };
    let listener = Tmp { screen: &screen, json: output.json, lines: Default::default() };
    let code = speed(&options, &listener).unwrap_or_else(|error| {
        screen.error(&error);
        error.exit_code()
    });
    if !output.json {
        screen.print(&report::text(&listener.lines.into_inner().unwrap()));
    }
    screen.end(code)
}

struct Tmp<'a> {
    screen: &'a super::screen::Screen,
    json: bool,
    lines: std::sync::Mutex<Vec<fsure::results::Line>>,
}
impl fsure::words::Monitor for Tmp<'_> {
    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}
impl fsure::results::Listener for Tmp<'_> {
    fn measured(&self, line: &fsure::results::Line) {
        if self.json {
            self.screen.print(&line.to_json());
        }
        self.lines.lock().unwrap().push(line.clone());
    }
}
