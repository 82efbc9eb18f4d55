//! `fsure speed --io`: asks before a sustained write uses more than a quarter of the free
//! space, measures, and reports.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::report::storage::speed as report;
use fsure_core::{Error, ExitCode, Result, units};
use fsure_measure::{IoExperiment, IoOptions, speed_io};

use super::OutputArgs;
use super::measurement_screen::Measuring;
use super::screen::Screen;

/// Pause between two checks for Ctrl-C while the answer is awaited.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Measures, and prints the report.
pub(super) fn measure(
    options: &IoOptions,
    save: Option<&Path>,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<ExitCode> {
    let mut options = options.clone();
    if options.experiments.contains(&IoExperiment::Sustained) && !options.may_fill {
        match may_fill(&options, output.json, screen) {
            Some(may_fill) => options.may_fill = may_fill,
            None => return Ok(ExitCode::Interrupted),
        }
    }
    let measuring = Measuring::begin(screen, output.json, save)?;
    let prints_lines = measuring.prints_lines;
    let ended = speed_io(&options, &measuring);
    let code = ended.as_ref().map_or_else(Error::exit_code, |code| *code);
    let (lines, code) = measuring.end(code);
    if !prints_lines {
        screen.print(&report::text(&lines));
    }
    ended.map(|_| code)
}

/// Returns the answer of the user at the terminal; `None` if it was Ctrl-C. Without a user to
/// be asked, the answer is no.
fn may_fill(options: &IoOptions, json: bool, screen: &Screen) -> Option<bool> {
    let attended = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if json || !attended {
        return Some(false);
    }
    let free = |target: &std::path::PathBuf| fsure_os::machine::free_bytes(target).unwrap_or(0);
    let all: Vec<u64> = options.targets.iter().map(free).collect();
    let sum =
        |may_fill| all.iter().map(|free| options.sustained_bytes(*free, may_fill)).sum::<u64>();
    let (quarter, most) = (sum(false), sum(true));
    if most <= quarter {
        return Some(false);
    }
    let (quarter, most) = (units::size(quarter), units::size(most));
    let mut error = std::io::stderr();
    let _ = write!(
        error,
        "The sustained write ends when the drive becomes slower. If it does not, it may need more\n\
         than a quarter of the free space ({quarter}), and every byte wears the drive.\n\
         Write up to {most}? [y/N] "
    );
    let _ = error.flush();
    answer(screen)
}

/// Reads a line. A thread waits for it, so that Ctrl-C is seen in the meantime.
fn answer(screen: &Screen) -> Option<bool> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let _ = sender.send(["y", "yes"].contains(&&*line.trim().to_lowercase()));
    });
    loop {
        if screen.stop_requested().is_some() {
            return None;
        }
        match receiver.recv_timeout(STOP_POLL_INTERVAL) {
            Ok(answer) => return Some(answer),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Some(false),
        }
    }
}
