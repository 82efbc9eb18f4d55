//! A rung of the ladder as the schedule sees it: something that can be made ready,
//! run once at a time, and that reports what it truly measured.

use std::time::{Duration, Instant};

use fsure_os::block_stats::{Counters, DeviceCounters};
use fsure_os::machine;

use fsure_core::ExitCode;

/// Bytes per second, in MiB.
pub(super) const MIB_PER_S: &str = "MiB/s";
/// Files per second.
pub(super) const FILES_PER_S: &str = "files/s";
/// The target of rungs that measure no folder.
pub(super) const MEMORY: &str = "memory";

/// The name of a rung, with its target and its unit.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// In words: `disk write cached`.
    pub(super) name: String,
    /// The folder as text, or [`MEMORY`].
    pub(super) target: String,
    /// [`MIB_PER_S`] or [`FILES_PER_S`].
    pub(super) unit: &'static str,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RungRun {
    /// Bytes, or files if that is the unit.
    pub(super) amount: u64,
    /// Duration of the run, in seconds.
    pub(super) seconds: f64,
    /// Processor time of this process, user and system.
    pub(super) cpu_s: Option<f64>,
    /// Change of the device's counters during the run; `None` without counters.
    pub(super) device: Option<Counters>,
}

/// A reason why a rung did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RungUnavailable {
    /// It is not available here: the reason, and what would make it possible.
    NotHere(String),
    /// The budget was spent in the middle of it.
    NoTime,
    /// The user wants to stop.
    Stopped,
}

impl From<std::io::Error> for RungUnavailable {
    fn from(error: std::io::Error) -> Self {
        Self::NotHere(error.to_string())
    }
}

/// The result of a step that may be refused.
pub(super) type RunResult<T> = std::result::Result<T, RungUnavailable>;

/// One rung. Dropping it takes back whatever it made.
pub(super) trait Rung {
    /// Returns the name, the target and the unit of the rung.
    fn spec(&self) -> Spec;

    /// Makes what the runs need; its time is of the budget and not of a run.
    fn prepare(&mut self, _go: &RunContext<'_>) -> RunResult<()> {
        Ok(())
    }

    /// Returns how often it is to be run, whatever the others are; `None` for as
    /// often as the others.
    fn runs(&self) -> Option<usize> {
        None
    }

    /// Runs once. What it needs before and after is not in its seconds.
    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun>;

    /// Returns one line on what was truly measured; called after the runs.
    fn measured(&self) -> String;
}

/// The conditions for a run to go on. They are checked in the middle of every long
/// run, a few times a second at least, so that neither a slow disk nor a dead one
/// outlasts the budget or a signal.
pub(super) struct RunContext<'a> {
    /// Time since the whole run began.
    pub(super) now: &'a (dyn Fn() -> Duration + Sync),
    /// Time at which the budget is spent, since the whole run began.
    pub(super) end: Duration,
    /// Returns the exit code if the user wants to stop.
    pub(super) stop: &'a (dyn Fn() -> Option<ExitCode> + Sync),
}

impl RunContext<'_> {
    /// Fails once the budget is spent or the user wants to stop.
    pub(super) fn check(&self) -> RunResult<()> {
        if (self.stop)().is_some() {
            return Err(RungUnavailable::Stopped);
        }
        if (self.now)() > self.end { Err(RungUnavailable::NoTime) } else { Ok(()) }
    }
}

/// Measures one run: clock, processor and device.
pub(super) struct Stopwatch<'a> {
    meter: Option<&'a DeviceCounters>,
    device: Option<Counters>,
    cpu: Option<Duration>,
    began: Instant,
}

impl<'a> Stopwatch<'a> {
    /// Begins; the clock last.
    pub(super) fn start(meter: Option<&'a DeviceCounters>) -> Self {
        let device = meter.and_then(|meter| meter.read().ok());
        Self { meter, device, cpu: machine::own_time(), began: Instant::now() }
    }

    /// Ends; the clock first.
    pub(super) fn stop(self, amount: u64) -> RungRun {
        // A clock that did not move would make the rate infinite.
        let seconds = self.began.elapsed().as_secs_f64().max(1e-9);
        let cpu = machine::own_time().zip(self.cpu);
        let after = self.meter.and_then(|meter| meter.read().ok());
        RungRun {
            amount,
            seconds,
            cpu_s: cpu.map(|(after, before)| after.saturating_sub(before).as_secs_f64()),
            device: after.zip(self.device).map(|(after, before)| after.since(&before)),
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
