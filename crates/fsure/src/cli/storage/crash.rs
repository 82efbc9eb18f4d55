//! `fsure crash`.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::report::storage::crash as report;
use crate::workload::{WORKLOADS, Workload};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Monitor, Result, units};
use fsure_crash::CrashLine;
use fsure_crash::{
    AccessMode, CrashMonitor, CrashOptions, CrashWorkload, MatrixOptions, crash, fail_a_write,
};
use fsure_os::loop_mount::FileSystem;
use fsure_simdrive::files::Mode;
use fsure_simdrive::{Behavior, CutVariant, Latency};

use super::OutputArgs;
use super::built_in::built_in;
use super::crash_matrix;
use super::crash_serve::ServeArgs;
use super::save_args::SaveArgs;
use super::screen::progress::step_line;
use super::screen::{Live, Screen};

/// Run a program on a simulated drive, cut its power, and check it
///
/// The program runs with the file system as its working folder and in $MNT, and
/// prints 'ACK n' on standard output when everything up to n is safe. Each cut is an
/// image of the drive as the loss of power would leave it, mounted anew; the check
/// runs in it with MNT and ACKED, prints 'LAST n' when everything up to n is there,
/// and ends with 0 if what is there is consistent. docs/crash.md describes all of it.
/// Exit codes: 0 every cut survived, 3 something was lost or damaged, 5 nothing was
/// shown, 70 another process disturbs the loop devices all the time.
#[derive(Args)]
pub(crate) struct CrashArgs {
    /// Drives: honest, plp (its cache survives), lying, lying:TIME (written after
    /// that time), defer:TIME (flushes deferred, out of order)
    /// [default: honest; of the matrix honest,lying,defer:1s]
    #[arg(long, value_name = "DRIVE", value_delimiter = ',')]
    drive: Vec<Behavior>,
    /// The file system on the drive; a folder needs no root [default: folder; of the
    /// matrix ext4,xfs,btrfs]
    #[arg(long, value_enum, value_name = "FS", value_delimiter = ',')]
    fs: Vec<System>,
    /// Run this built-in program, and its check; docs/crash.md lists them
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = built_in(),
          ignore_case = true,
          conflicts_with_all = ["command", "check"])]
    workload: Vec<&'static Workload>,
    /// Print a table of all workloads, or those named, on all file systems and
    /// drives, each cell compared with what is guaranteed there
    #[arg(long, conflicts_with_all = [
        "command", "check", "prepare", "mount_options", "error", "error_after", "every_flush",
    ])]
    matrix: bool,
    /// Options for 'mount', of a file system
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount_options: String,
    /// Size of the drive; it is held in memory as far as it is written
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    size: u64,
    /// Simulated response times, as measured on drives of this kind
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Pace::None)]
    latency: Pace,
    /// The N-th write to the drive fails, from the program's start on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    error_after: Option<u64>,
    /// Cuts on each drive
    #[arg(long, value_name = "N", default_value_t = 12,
          value_parser = clap::value_parser!(u64).range(1..))]
    cuts: u64,
    /// Writes that survive of those that no flush has covered: those before a moment
    /// (prefix), those before a flush and some until the next (epoch), some (random),
    /// some sectors of each (torn; torn-4k: of 4 KiB) [default: all but torn-4k in turn]
    #[arg(long, value_name = "KIND", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(CutVariant::ALL.map(CutVariant::name))
              .try_map(|name| name.parse::<CutVariant>()))]
    variant: Vec<CutVariant>,
    /// Instead of cutting at random moments: let the program run for TIME, and then
    /// check the drive after each flush that it was sent
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = [
        "cuts", "variant", "pause",
    ])]
    every_flush: Option<Duration>,
    /// The longest time from the first acknowledgement after a check to the next cut
    #[arg(long, value_name = "TIME", default_value = "0.5s", value_parser = time)]
    pause: Duration,
    /// Seed of the random choices [default: a new one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A line for 'sh' that prepares the new file system; what it leaves is safe
    #[arg(long, value_name = "LINE")]
    prepare: Option<String>,
    /// A line for 'sh' that checks what a cut has left
    #[arg(long, value_name = "LINE")]
    check: Option<String>,
    /// Keep the images of cuts that have shown a loss in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Instead of cutting: show what fsync reports after one write that failed
    #[arg(long, value_enum, value_name = "ERROR", conflicts_with_all = [
        "drive", "latency", "error_after", "cuts", "variant", "pause", "every_flush", "prepare", "check",
        "keep", "command", "workload",
    ])]
    error: Option<DriveFailure>,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    serve: ServeArgs,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The largest drive: even empty, each image of it takes a five-hundredth.
const SIZE_MAX: u64 = 64 << 30;

/// The columns of the matrix.
const MATRIX_DRIVES: [Behavior; 3] = [
    Behavior::Honest,
    Behavior::Lying { lag: None },
    Behavior::Defer { longest: Duration::from_secs(1) },
];

/// Its file systems.
const MATRIX_SYSTEMS: [System; 3] = [System::Ext4, System::Xfs, System::Btrfs];

/// A file system.
#[derive(Clone, Copy, ValueEnum)]
enum System {
    /// A simulated folder that keeps what POSIX promises, and no more
    Folder,
    /// The same, but a sync makes all names durable, as one journal does
    FolderJournal,
    Ext4,
    Xfs,
    Btrfs,
}

/// A drive that was measured.
#[derive(Clone, Copy, ValueEnum)]
enum Pace {
    /// No time at all
    None,
    /// A disk of 7200 revolutions a minute
    Hdd,
    /// A consumer's NVMe drive
    Nvme,
    /// Apple's, 21 ms a flush
    Apple,
}

/// A failure of a drive.
#[derive(Clone, Copy, ValueEnum)]
enum DriveFailure {
    /// One write fails, and none after it
    Eio,
}

fn size(text: &str) -> std::result::Result<u64, String> {
    let size = units::size_option(text, "a size such as 512M or 2G")?;
    if size > SIZE_MAX {
        return Err(format!("at most {} GiB: it is held in memory", SIZE_MAX >> 30));
    }
    Ok(size)
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    units::span_option(text, "a time such as 1s or 0.5s")
}

/// Runs the command.
pub(crate) fn run(args: &CrashArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.patient_screen();
    let code = try_it(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn try_it(args: &CrashArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    args.refuse_several()?;
    let options = args.options()?;
    if args.serve.is_asked_for() {
        let drive = (&options.drives[..], options.latency, options.size);
        return args.serve.run(screen, output.json, drive);
    }
    args.save.begin(screen, "crash")?;
    if args.matrix {
        return crash_matrix::run(&args.matrix(options), output, screen);
    }
    let monitor = TerminalMonitor {
        screen,
        json: output.json,
        quiet: output.quiet,
        live: screen.live_line(),
        lines: Mutex::default(),
    };
    let ended = match args.error {
        Some(DriveFailure::Eio) => {
            let child = [options.program.clone().into(), "flush-again".into()];
            fail_a_write(&options, &child, &monitor)
        }
        None => crash(&options, &monitor).map(|crashed| crashed.exit_code),
    };
    let lines = monitor.into_lines();
    if !output.json && !output.quiet && !lines.is_empty() {
        screen.print(&report::text(&lines));
    }
    ended
}

impl CrashArgs {
    fn options(&self) -> Result<CrashOptions> {
        let shell = |line: &Option<String>| match line {
            Some(line) => ["sh", "-c", line].map(OsString::from).to_vec(),
            None => Vec::new(),
        };
        if let Some(folder) = self.keep.as_ref().filter(|path| !fsure_os::path::is_folder(path)) {
            return Err(Error::Usage {
                message: format!("{} is not a folder", folder.display()),
                hint: Some("make it first with mkdir: fsure keeps the images in it".to_owned()),
            });
        }
        let program = std::env::current_exe();
        let several = if self.matrix { &MATRIX_DRIVES[..] } else { &[Behavior::Honest] };
        let options = CrashOptions {
            drives: if self.drive.is_empty() { several.to_vec() } else { self.drive.clone() },
            workload: None,
            latency: self.latency.latency(),
            front: self.front()?,
            size: self.size,
            variants: if self.variant.is_empty() {
                CutVariant::IN_TURN.to_vec()
            } else {
                self.variant.clone()
            },
            failing_write: self.error_after,
            cuts: self.cuts,
            every_flush: self.every_flush,
            pause: self.pause,
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 32),
            prepare: shell(&self.prepare),
            command: self.command.clone(),
            check: shell(&self.check),
            keep: self.keep.clone(),
            program: program.context("find the file of", "this program".as_ref())?,
            folder: std::env::temp_dir(),
            history_folder: fsure_os::unnamed_file::folder(),
            clock: Clock::default(),
        };
        Ok(match self.workload.first().filter(|_| !self.matrix) {
            Some(workload) => options.with_workload(workload.name),
            None => options,
        })
    }

    /// Returns the file system, or the simulated folder, in which the program finds
    /// the drive: the first that was named. Fails if an option needs a file system
    /// and it is a folder.
    fn front(&self) -> Result<AccessMode> {
        let system = self.fs.first().copied().unwrap_or(System::Folder);
        let front = system.front(&self.mount_options);
        let needs_more = !self.matrix && (self.error.is_some() || !self.mount_options.is_empty());
        if needs_more && matches!(front, AccessMode::Folder(_)) {
            return Err(no_file_system());
        }
        Ok(front)
    }

    /// Refuses several file systems or workloads without `--matrix`: a run has one of
    /// each.
    fn refuse_several(&self) -> Result<()> {
        if self.matrix || self.fs.len() < 2 && self.workload.len() < 2 {
            return Ok(());
        }
        Err(Error::Usage {
            message: "one file system and one workload at a time".to_owned(),
            hint: Some("'--matrix' takes several".to_owned()),
        })
    }

    fn matrix(&self, each: CrashOptions) -> MatrixOptions {
        let all = || WORKLOADS.iter().map(dynamic).collect();
        let workloads = if self.workload.is_empty() {
            all()
        } else {
            self.workload.iter().copied().map(dynamic).collect()
        };
        let systems = if self.fs.is_empty() { &MATRIX_SYSTEMS[..] } else { &self.fs };
        let fronts = systems.iter().map(|system| system.front("")).collect();
        MatrixOptions { workloads, fronts, each }
    }
}

fn dynamic(workload: &'static Workload) -> &'static dyn CrashWorkload {
    workload
}

fn no_file_system() -> Error {
    Error::Usage {
        message: "this option needs a file system".to_owned(),
        hint: Some("add '--fs ext4', '--fs xfs' or '--fs btrfs'".to_owned()),
    }
}

impl System {
    fn front(self, options: &str) -> AccessMode {
        let system = match self {
            Self::Folder => return AccessMode::Folder(Mode::Strict),
            Self::FolderJournal => return AccessMode::Folder(Mode::Journal),
            Self::Ext4 => FileSystem::Ext4,
            Self::Xfs => FileSystem::Xfs,
            Self::Btrfs => FileSystem::Btrfs,
        };
        AccessMode::Mounted { system, options: options.to_owned() }
    }
}

impl Pace {
    fn latency(self) -> Latency {
        match self {
            Self::None => Latency::NONE,
            Self::Hdd => Latency::DISK_7200,
            Self::Nvme => Latency::CONSUMER_NVME,
            Self::Apple => Latency::APPLE,
        }
    }
}

/// A listener that keeps the lines and prints them.
struct TerminalMonitor<'a> {
    screen: &'a Screen,
    json: bool,
    quiet: bool,
    live: Option<Live<'a>>,
    lines: Mutex<Vec<CrashLine>>,
}

impl TerminalMonitor<'_> {
    fn lines(&self) -> MutexGuard<'_, Vec<CrashLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All lines; the live one is gone.
    fn into_lines(self) -> Vec<CrashLine> {
        self.lines.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Monitor for TerminalMonitor<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl CrashMonitor for TerminalMonitor<'_> {
    fn report(&self, line: &CrashLine) {
        self.screen.result_line(&line.to_json());
        if let (true, false, CrashLine::Cut(cut)) = (self.quiet, self.json, line)
            && let Some(words) = report::loss(cut).filter(|_| !cut.twin)
        {
            self.screen.print_now(&words);
        }
        self.lines().push(line.clone());
    }

    fn under_way(&self, what: &str, share: f64) {
        if let Some(live) = &self.live {
            live.set_text(step_line(what, share));
        }
    }
}
