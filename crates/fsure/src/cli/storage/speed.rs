//! `fsure speed`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::report::storage::speed as report;
use crate::verify_rung::OwnVerifier;
use clap::{Args, Subcommand, ValueEnum};
use fsure_core::{Clock, ExitCode, Result, units};
use fsure_measure::results::Measurement;
use fsure_measure::{Data, IoExperiment, IoOptions, SpeedOptions, Verifier, speed};

use super::OutputArgs;
use super::comparison::CompareArgs;
use super::measurement_screen::Measuring;
use super::save_args::SaveArgs;
use super::screen::Screen;
use super::speed_io;
use super::speed_tree::{Shared, TreeArgs};

/// Measure how fast storage is, and how far verify is from that
///
/// Each rung is measured in turn, round after round, and reports what it truly
/// measured: memory, the hash, and for each DIR what a write costs as far as the page
/// cache, the device and the medium, and what a read gives from memory and from the
/// device. All files are new ones in a folder of their own in DIR, take no more than
/// a quarter of its free space, and are gone afterwards.
///
/// With '--io' it measures requests: how many a second, how long each takes, how long a
/// drive keeps its first speed, and if all of its area is as fast.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SpeedArgs {
    #[command(subcommand)]
    command: Option<Sub>,
    /// Folders to measure the storage of [default: the current folder]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// Bytes of each stream; less if space or memory are short. With '--io': of the file for
    /// random requests, and most bytes of a sustained write [default: 450M; sustained: a
    /// quarter of the free space]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Runs of each rung [default: until each is sure to 5 %]; of each queue depth and size
    /// with '--io random,sizes' [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Time for all of it, preparations included
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget)]
    budget: Duration,
    /// Content that is written and hashed
    #[arg(long, value_enum, value_name = "KIND", default_value = "random")]
    data: DataArg,
    /// Only these rungs, by the first words of their names: 'disk,hash blake3'; 'all'
    /// for every one [default: ten that show the whole ladder]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rungs: Vec<String>,
    /// Also read a set twice this size through the page cache and past it, with only
    /// so much memory to cache it, and report what each way cost
    #[arg(long, value_name = "SIZE", value_parser = size)]
    cache: Option<u64>,
    /// Also run 'pv -faSs450m < /dev/zero > FILE' ten times each: to nowhere, in each DIR,
    /// in folders in memory and through FUSE
    #[arg(long)]
    pv: bool,
    /// Measure requests in place of the ladder: 'random' reads and writes of 4 KiB by
    /// queue depth; of all 'sizes' to 4 MiB, one at a time; 'sustained' writes until the
    /// drive's fast cache is used up; reads over the 'area' of the device below DIR, or of
    /// a device named in its place
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["rungs", "cache", "pv"])]
    io: Vec<IoArg>,
    /// Let '--io sustained' write all but a tenth of the free space without asking, and
    /// not a quarter only
    #[arg(short = 'y', long, requires = "io")]
    yes: bool,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    tree: TreeArgs,
}

#[derive(Subcommand)]
enum Sub {
    /// Compare saved results, such as those of several drives
    ///
    /// Reports how many times faster or slower each is than the first, with an interval, and
    /// which of them suits which purpose. A difference is by ranks, corrected for the number
    /// of ratios, with intervals that have no value in common, and of 5 % or more. Exit
    /// codes: 0 no difference seen, 1 a difference, 5 nothing in common.
    Compare(CompareArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum IoArg {
    /// Random reads and writes of 4 KiB, 1, 4 and 32 at a time
    Random,
    /// Random reads and writes of 4 KiB to 4 MiB, one at a time
    Sizes,
    /// Writes until the drive's fast cache is used up
    Sustained,
    /// Reads over the area of the device; nothing is written
    Area,
}

impl IoArg {
    fn experiment(self) -> IoExperiment {
        match self {
            Self::Random => IoExperiment::Random,
            Self::Sizes => IoExperiment::Sizes,
            Self::Sustained => IoExperiment::Sustained,
            Self::Area => IoExperiment::Area,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum DataArg {
    /// Random bytes, which cannot be compressed
    Random,
    /// Zeros, which flatter storage that compresses
    Zeros,
    /// Words of a common text
    Text,
}

fn size(text: &str) -> std::result::Result<u64, String> {
    const FORM: &str = "a size of at least 1M, such as 450M or 2GiB";
    let size = units::size_option(text, FORM)?;
    if size < units::MIB { Err(FORM.to_owned()) } else { Ok(size) }
}

fn budget(text: &str) -> std::result::Result<Duration, String> {
    const FORM: &str = "a time of at least 1s, such as 60s or 5m";
    let time = units::span_option(text, FORM)?;
    if time < Duration::from_secs(1) { Err(FORM.to_owned()) } else { Ok(time) }
}

/// Runs the command.
pub(crate) fn run(args: &SpeedArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.patient_screen();
    let done = match &args.command {
        Some(Sub::Compare(args)) => args.run(Measurement::Speed, output, &screen),
        None if args.tree.is_wanted() => measure_tree(args, output, &screen),
        None if args.io.is_empty() => measure(args, output, &screen),
        None => speed_io::measure(&args.io_options(), args.save.path(), output, &screen),
    };
    let code = done.unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn measure_tree(args: &SpeedArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let shared = Shared {
        folders: args.targets(),
        runs: args.runs,
        budget: args.budget,
        measuring: Measuring::begin(screen, output.json, args.save.path())?,
    };
    args.tree.measure(shared, screen)
}

impl SpeedArgs {
    fn targets(&self) -> Vec<PathBuf> {
        match &self.folders[..] {
            [] => vec![PathBuf::from(".")],
            folders => folders.to_vec(),
        }
    }

    fn data(&self) -> Data {
        match self.data {
            DataArg::Random => Data::Random,
            DataArg::Zeros => Data::Zeros,
            DataArg::Text => Data::Text,
        }
    }

    fn io_options(&self) -> IoOptions {
        let mut experiments: Vec<_> = self.io.clone();
        experiments.sort();
        experiments.dedup();
        IoOptions {
            program: PROGRAM.to_owned(),
            targets: self.targets(),
            experiments: experiments.into_iter().map(IoArg::experiment).collect(),
            size: self.size,
            runs: self.runs.map(usize::from),
            budget: self.budget,
            data: self.data(),
            may_fill: self.yes,
            guard: std::env::current_exe().ok(),
            clock: Clock::default(),
        }
    }
}

/// Bytes of a stream, unless the user gives another size: those of the founders' experiment.
const STREAM_BYTES: u64 = 450 << 20;

/// The program, as the first line of a result names it.
const PROGRAM: &str = concat!("fsure ", env!("CARGO_PKG_VERSION"));

fn measure(args: &SpeedArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let options = SpeedOptions {
        program: PROGRAM.to_owned(),
        targets: args.targets(),
        size: args.size.unwrap_or(STREAM_BYTES),
        runs: args.runs.map(usize::from),
        budget: args.budget,
        data: args.data(),
        rungs: args.rungs.iter().map(|name| name.trim().to_owned()).collect(),
        cache: args.cache,
        guard: std::env::current_exe().ok(),
        pv: args.pv,
        clock: Clock::default(),
    };
    let measuring = Measuring::begin(screen, output.json, args.save.path())?;
    let prints_lines = measuring.prints_lines;
    let verifier: Arc<dyn Verifier> = Arc::new(OwnVerifier);
    let ended = speed(&options, &verifier, &measuring);
    let code = ended.as_ref().map_or_else(fsure_core::Error::exit_code, |code| *code);
    let (lines, code) = measuring.end(code);
    if !prints_lines {
        screen.print(&report::text(&lines));
    }
    ended.map(|_| code)
}
