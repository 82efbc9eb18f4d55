//! `ram try`: a command in its folder as it lies on the disk, in memory, and with its flushes
//! deferred, in turns, so that what else the machine does meets all of them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fsure_core::{Error, ExitCode, Result};
use fsure_defer::{DeferOptions, defer};
use fsure_measure::stats::Spread;
use fsure_os::process_tree::{CommandEnd, Ended};
use fsure_ram::service::run::{RunOptions, run as run_in_ram};

/// A way to run the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the folder, as it lies on the disk.
    Disk,
    /// With the folder in memory, as `ram run` does.
    Ram,
    /// With the flushes deferred, as `defer` does.
    Deferred,
}

impl Way {
    /// The ways, in the order of their first turn: one that is refused is so before the command
    /// has run.
    pub const ALL: [Self; 3] = [Self::Ram, Self::Deferred, Self::Disk];

    /// Its name, as results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Ram => "ram",
            Self::Deferred => "deferred",
        }
    }
}

/// One run of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialRun {
    /// Its end.
    pub end: CommandEnd,
    /// The time from its start to its end, with what the way takes before and behind: copies,
    /// and flushes.
    pub whole: Duration,
}

/// The runs of one way.
#[derive(Clone, Debug, PartialEq)]
pub struct WayResult {
    /// The way.
    pub way: Way,
    /// Runs that count, in their order.
    pub runs: Vec<TrialRun>,
    /// The reason why there are none.
    pub refused: Option<String>,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The ways: on the disk, in memory, deferred.
    pub ways: [WayResult; 3],
    /// The exit code of the request that ended it early.
    pub ended_by: Option<ExitCode>,
}

impl WayResult {
    fn new(way: Way) -> Self {
        Self { way, runs: Vec::new(), refused: None }
    }

    /// Returns the spread of the command's own times, in seconds; `None` without runs.
    pub fn times(&self) -> Option<Spread> {
        Spread::of(&self.seconds())
    }

    /// Returns the spread of the times with all that the way takes.
    pub fn whole(&self) -> Option<Spread> {
        Spread::of(&self.whole_seconds())
    }

    /// Returns the spread of the ratios of the whole times, as [`Self::speed_up_over`].
    pub fn whole_speed_up_over(&self, other: &Self) -> Option<Spread> {
        speed_up(&other.whole_seconds(), &self.whole_seconds())
    }

    /// Returns the spread of the ratios of the times of another way to those of this one, turn
    /// by turn: above 1, this one is faster.
    pub fn speed_up_over(&self, other: &Self) -> Option<Spread> {
        speed_up(&other.seconds(), &self.seconds())
    }

    /// The times of the command, in seconds, in their order.
    pub fn seconds(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.end.time.as_secs_f64()).collect()
    }

    fn whole_seconds(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.whole.as_secs_f64()).collect()
    }
}

/// The spread of the ratios of the times of another way to those of this one, turn by turn.
fn speed_up(other: &[f64], own: &[f64]) -> Option<Spread> {
    let turns = other.iter().zip(own);
    let ratios: Vec<_> = turns.map(|(other, own)| other / own.max(1e-9)).collect();
    Spread::of(&ratios)
}

/// Runs the command each way in turns: once to warm up, which does not count, and `turns`
/// times. `run` runs it; an error that is a refusal leaves the way out, but for memory and
/// the disk. A command that fails ends the trial, and so does one that a signal ends.
pub fn trial(turns: u16, run: &mut dyn FnMut(Way) -> Result<TrialRun>) -> Result<Trial> {
    let mut ways = [Way::Disk, Way::Ram, Way::Deferred].map(WayResult::new);
    for turn in 0..=turns {
        for place in 0..Way::ALL.len() {
            // No way is always the first: what the one before has left in memory differs.
            let way = Way::ALL[(place + usize::from(turn)) % Way::ALL.len()];
            let result = ways.iter_mut().find(|result| result.way == way);
            let Some(result) = result.filter(|result| result.refused.is_none()) else { continue };
            match run(way) {
                Ok(done) => {
                    if let Some(code) = stop_of(&done.end) {
                        return Ok(whole_turns(ways, Some(code)));
                    }
                    if done.end.ended != Ended::Code(0) {
                        return Err(failed(way, done.end.ended));
                    }
                    // The first turn is to warm up.
                    result.runs.extend((turn > 0).then_some(done));
                }
                Err(error) if way == Way::Deferred && turn == 0 && is_refusal(&error) => {
                    result.refused = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(whole_turns(ways, None))
}

/// The result, without the runs of a turn that is not whole: ratios are of the same turn.
fn whole_turns(mut ways: [WayResult; 3], ended_by: Option<ExitCode>) -> Trial {
    let counts = ways.iter().filter(|way| way.refused.is_none()).map(|way| way.runs.len());
    let turns = counts.min().unwrap_or(0);
    ways.iter_mut().for_each(|way| way.runs.truncate(turns));
    Trial { ways, ended_by }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::FailedPrecondition { .. } | Error::Usage { .. })
}

/// The exit code for a command that the user has ended.
fn stop_of(end: &CommandEnd) -> Option<ExitCode> {
    let by_itself = match end.ended {
        // As a shell says it.
        Ended::Code(code) => code - 128,
        Ended::Signal(signal) => signal,
    };
    end.asked.and_then(ExitCode::of_signal).or(ExitCode::of_signal(by_itself))
}

fn failed(way: Way, ended: Ended) -> Error {
    let how = match ended {
        Ended::Code(code) => format!("ended with exit code {code}"),
        Ended::Signal(signal) => format!("was ended by signal {signal}"),
    };
    Error::Reported {
        message: format!("the command {how} ({}), so its time says nothing", way.name()),
        hint: Some("name a command that does the same work each time and ends with 0".to_owned()),
        code: ExitCode::Incomplete,
    }
}

/// The command and its folder.
#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// The folder.
    pub folder: PathBuf,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Maximum age of the oldest change that a crash loses, in memory and deferred.
    pub max_loss: Duration,
    /// The user's own runtime folder.
    pub runtime: Option<PathBuf>,
    /// This program.
    pub program: PathBuf,
}

/// Runs the command once.
pub fn run_once(
    options: &TrialOptions,
    way: Way,
    warn: &(dyn Fn(&str) + Sync),
) -> Result<TrialRun> {
    let began = Instant::now();
    let end = match way {
        Way::Disk => fsure_os::foreground::run(&options.command).map_err(not_started)?,
        Way::Ram => in_ram(options, warn)?,
        Way::Deferred => deferred(options, warn)?,
    };
    Ok(TrialRun { end, whole: began.elapsed() })
}

fn in_ram(options: &TrialOptions, warn: &(dyn Fn(&str) + Sync)) -> Result<CommandEnd> {
    let run = RunOptions {
        folders: vec![options.folder.clone()],
        command: options.command.clone(),
        max_loss: options.max_loss,
        bytes: None,
        runtime: options.runtime.clone(),
        keeper: vec![options.program.clone().into(), "ram".into(), "keep-run".into()],
    };
    let done = run_in_ram(&run, warn)?;
    if let Some(lost) = done.lost.first() {
        let (folder, why) = (lost.folder.display(), &lost.why);
        return Err(Error::Reported {
            message: format!("the last changes in {folder} are NOT on the disk: {why}"),
            hint: None,
            code: ExitCode::Incomplete,
        });
    }
    done.command.map_err(not_started)
}

fn deferred(options: &TrialOptions, warn: &dyn Fn(&str)) -> Result<CommandEnd> {
    let run = DeferOptions {
        command: options.command.clone(),
        folders: vec![options.folder.clone()],
        longest: options.max_loss,
        backend: None,
        force_unordered: false,
        heir: Some(options.program.clone()),
    };
    let done = defer(&run, warn)?;
    if let Some(why) = done.failure {
        return Err(Error::Reported {
            message: format!("a background flush failed: {why}"),
            hint: None,
            code: ExitCode::Damage,
        });
    }
    Ok(done.end)
}

fn not_started(error: std::io::Error) -> Error {
    Error::FailedPrecondition {
        message: format!("the command was not started: {error}"),
        hint: Some("check the name of the program behind '--'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ended: Ended, ms: u64) -> TrialRun {
        let time = Duration::from_millis(ms);
        TrialRun { end: CommandEnd { ended, time, asked: None }, whole: time * 2 }
    }

    fn refusal() -> Error {
        Error::FailedPrecondition { message: "no order".to_owned(), hint: None }
    }

    #[test]
    fn turns_alternate_and_the_first_does_not_count() {
        let mut seen = Vec::new();
        let mut run = |way: Way| {
            seen.push(way);
            let ms = match way {
                // Slow until it is warm.
                _ if seen.len() <= 3 => 9_000,
                Way::Disk => 400,
                Way::Ram => 100,
                Way::Deferred => 200,
            };
            Ok(ended(Ended::Code(0), ms))
        };
        let trial = trial(2, &mut run).unwrap();
        use Way::{Deferred, Disk, Ram};
        let order = [Ram, Deferred, Disk, Deferred, Disk, Ram, Disk, Ram, Deferred];
        assert_eq!(seen, order);
        let [disk, ram, deferred] = &trial.ways;
        assert_eq!(disk.times().unwrap().median, 0.4);
        assert_eq!(ram.whole().unwrap().median, 0.2);
        assert_eq!(ram.whole_speed_up_over(disk).map(|ratio| ratio.median), Some(4.0));
        let speed_up = ram.speed_up_over(disk).unwrap();
        assert_eq!((speed_up.low, speed_up.median, speed_up.high), (4.0, 4.0, 4.0));
        assert_eq!(deferred.speed_up_over(disk).unwrap().median, 2.0);
        assert_eq!(trial.ended_by, None);
    }

    #[test]
    fn a_way_that_is_refused_is_left_out_and_memory_is_not() {
        let mut refused = 0;
        let mut run = |way: Way| {
            if way == Way::Deferred {
                refused += 1;
                return Err(refusal());
            }
            Ok(ended(Ended::Code(0), 5))
        };
        let done = trial(6, &mut run).unwrap();
        assert_eq!(refused, 1, "asked once");
        assert_eq!(done.ways.each_ref().map(|way| way.runs.len()), [6, 6, 0]);
        assert_eq!(done.ways[2].refused.as_deref(), Some("no order"));
        assert!(done.ways[2].times().is_none());
        let mut run = |way: Way| match way {
            Way::Ram => Err(refusal()),
            _ => panic!("nothing is run"),
        };
        assert_eq!(trial(6, &mut run).unwrap_err().exit_code(), ExitCode::Usage);
    }

    #[test]
    fn a_command_that_fails_has_no_time_and_a_signal_keeps_whole_turns() {
        let mut run =
            |way: Way| Ok(ended(if way == Way::Disk { Ended::Code(3) } else { Ended::Code(0) }, 5));
        let error = trial(6, &mut run).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Incomplete);
        assert!(error.to_string().contains("exit code 3 (disk)"), "{error}");
        let mut runs = 0;
        let mut run = |_: Way| {
            runs += 1;
            let end = if runs == 8 { Ended::Signal(2) } else { Ended::Code(0) };
            Ok(ended(end, 5))
        };
        let done = trial(6, &mut run).unwrap();
        assert_eq!(done.ended_by, Some(ExitCode::Interrupted));
        assert_eq!(done.ways.each_ref().map(|way| way.runs.len()), [1, 1, 1]);
    }

    #[test]
    fn a_command_that_survives_a_signal_to_end_is_cut_short_all_the_same() {
        let mut runs = 0;
        let mut run = |_: Way| {
            runs += 1;
            let mut done = ended(Ended::Code(0), 5);
            done.end.asked = (runs == 8).then_some(15);
            Ok(done)
        };
        let done = trial(6, &mut run).unwrap();
        assert_eq!(done.ended_by, Some(ExitCode::Terminated));
        assert_eq!(done.ways.each_ref().map(|way| way.runs.len()), [1, 1, 1]);
    }
}
