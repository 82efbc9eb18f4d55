//! `fsure hot record`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fsure_core::{Clock, ExitCode, Monitor, Result, Step, StepMonitor, units};
use fsure_hot::{RecordMonitor, RecordOptions, RecordedInterval, StoreLimits, record, stored_line};

use super::OutputArgs;
use super::hot_history::{STORE, age};
use super::screen::progress::step_line;
use super::screen::{Live, Screen};
use crate::report::storage::hot as report;

/// Least size of a store, in bytes: it holds a few intervals of the longest paths.
const SIZE_MIN: u64 = 1 << 20;

/// Record for days what programs wait for, for 'fsure hot advise --history'
///
/// Watches all programs until Ctrl-C or SIGTERM, and appends a summary of each interval to a store
/// of bounded size: the folders and programs that waited most or moved most bytes, and the sum of
/// the others. The names of folders are personal data: only root can read the store. A kill or a
/// power cut loses the interval that was under way; on a full disk, intervals are kept together
/// until there is room. As a service: 'systemctl enable --now fsure-hot.service'. Needs root, and
/// eBPF. Exit codes: 0 ended by a signal, 2 not allowed or another recorder is at work, 5 it
/// cannot be watched here, or the last interval could not be stored.
#[derive(Args)]
pub(super) struct RecordArgs {
    /// Folder of the store, which is made
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        default_value = STORE
    )]
    store: PathBuf,
    /// Length of an interval, 1s or more
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "10m")]
    interval: Duration,
    /// Age at which an interval is dropped
    #[arg(long, value_name = "TIME", value_parser = age, default_value = "30d")]
    keep: Duration,
    /// Size of the store, at most: older intervals are merged two by two before it is exceeded
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    max_size: u64,
}

fn interval(text: &str) -> std::result::Result<Duration, String> {
    const FORM: &str = "a time of one second or more, such as 10m or 1h";
    let span = units::span_option(text, FORM)?;
    if span < Duration::from_secs(1) { Err(FORM.to_owned()) } else { Ok(span) }
}

fn size(text: &str) -> std::result::Result<u64, String> {
    const FORM: &str = "a size of 1MiB or more, such as 64MiB";
    let size = units::size_option(text, FORM)?;
    if size < SIZE_MIN { Err(FORM.to_owned()) } else { Ok(size) }
}

/// The name of the command in its lines.
const NAME: &str = "hot record";

/// Runs the command.
pub(super) fn run(args: &RecordArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.patient_screen();
    let code = run_on(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn run_on(args: &RecordArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    screen.starts(NAME);
    let options = RecordOptions {
        store: args.store.clone(),
        interval: args.interval,
        limits: StoreLimits { keep: args.keep, size_max: args.max_size },
        clock: Clock::default(),
    };
    let recording = Recording { args, screen, live: screen.live_line() };
    let recorded = record(&options, &recording)?;
    drop(recording);
    screen.result_line(&report::recorded_summary_line(&recorded, ExitCode::Clean));
    if !output.json && !output.quiet {
        screen.print(&report::recorded_text(&recorded));
    }
    Ok(ExitCode::Clean)
}

/// The terminal, while it is recorded.
struct Recording<'a> {
    args: &'a RecordArgs,
    screen: &'a Screen,
    live: Option<Live<'a>>,
}

impl RecordMonitor for Recording<'_> {
    fn recording(&self, file: &Path) {
        let RecordArgs { interval, keep, max_size, .. } = self.args;
        let (interval, keep) =
            (units::span(interval.as_secs_f64()), units::span(keep.as_secs_f64()));
        self.screen.note(&format!(
            "recording into {}: intervals of {interval}, kept for {keep}, {} at most; Ctrl-C ends it",
            file.display(),
            units::size(*max_size)
        ));
    }

    fn interval(&self, interval: &RecordedInterval) {
        self.screen.result_line(&stored_line(interval));
    }
}

impl Monitor for Recording<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl StepMonitor for Recording<'_> {
    fn under_way(&self, step: &Step<'_>) {
        if let Some(live) = &self.live {
            live.set_text(step_line(step.what, step.share));
        }
    }
}
