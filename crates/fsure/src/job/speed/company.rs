//! Where and in what company it was measured, and what to make of that.

use std::time::Duration;

use crate::results::{Machine, Noise};

/// Processor time of this process so far.
pub(super) fn cpu_time() -> Option<Duration> {
    None
}

/// This machine.
pub(super) fn machine() -> Machine {
    Machine { host: fsure_os::plain::host(), ..Machine::default() }
}

/// What goes on beside the run.
pub(super) struct Company {}

impl Company {
    /// From now on.
    pub(super) fn begin() -> Self {
        Self {}
    }

    /// Until now.
    pub(super) fn end(&self) -> Noise {
        Noise::default()
    }
}

/// Of the processors' time that was not this program's: from here on it shows in
/// the figures.
const NOISY_PERCENT: f64 = 10.0;

/// What to do about a run in bad company.
pub(super) fn advice(noise: &Noise, cores: usize) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(others) = noise.others_percent.filter(|others| *others >= NOISY_PERCENT) {
        advice.push(format!(
            "other programs used {others:.0} % of the processors meanwhile: end them and measure \
             once more, or compare only within this run"
        ));
    }
    if let Some(steal) = noise.steal_percent.filter(|steal| *steal >= NOISY_PERCENT / 5.0) {
        advice.push(format!(
            "the hypervisor gave {steal:.0} % of this machine's processors to others: measure at \
             another hour, or on a machine of its own"
        ));
    }
    let load = noise.load_before.filter(|load| *load >= cores as f64 / 2.0);
    if let Some(load) = load.filter(|_| noise.others_percent.is_none()) {
        advice.push(format!(
            "{load:.1} tasks were running on {cores} cores before this began: wait until they \
             are done, and measure once more"
        ));
    }
    advice
}
