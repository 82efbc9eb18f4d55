//! Describes the machine, the storage and the load by other processes during a measurement,
//! for all jobs that measure, and derives warnings and advice from the load.

use fsure_os::machine::{self, LoadSample};
use fsure_os::storage_stack::{self, Stack};

use crate::results::{LayerLine, Machine, Noise};
use fsure_core::Clock;

/// Returns the current time as text, as the first line of a result has it.
pub(super) fn timestamp(clock: &Clock) -> String {
    jiff::Timestamp::from_second(clock.now_s()).unwrap_or_default().to_string()
}

/// Describes this machine.
pub(super) fn machine() -> Machine {
    let known = machine::machine();
    Machine {
        host: fsure_os::user_file::host(),
        system: known.system.unwrap_or_else(|| "not known".to_owned()),
        processor: known.processor,
        cores: known.cores.unwrap_or(1),
        memory_bytes: known.memory_bytes,
        virtualization: known.virtualization,
        backup_power: machine::backup_power(),
    }
}

/// The layers, as a result has them.
pub(super) fn layers(target: &str, stack: &Stack) -> Vec<LayerLine> {
    let layer = |layer: &storage_stack::StorageLayer| LayerLine {
        target: target.to_owned(),
        layer: layer.kind.to_owned(),
        name: layer.name.clone(),
        facts: layer
            .facts
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    };
    stack.layers.iter().map(layer).collect()
}

/// The load by other processes and virtual machines during a measurement.
pub(super) struct NoiseMeter {
    before: LoadSample,
}

impl NoiseMeter {
    /// Starts to record the load.
    pub(super) fn begin() -> Self {
        Self { before: machine::moment() }
    }

    /// Returns the load since `begin`.
    pub(super) fn end(&self) -> Noise {
        let now = machine::moment();
        let others = now.since(&self.before);
        Noise {
            load_before: self.before.load,
            load_after: now.load,
            steal_percent: others.steal_percent,
            others_percent: others.others_percent,
        }
    }
}

/// Percent of the processors' time that other programs used; from this share on it
/// shows in the figures.
const OTHERS_MAX: f64 = 10.0;
/// The same for the time that the hypervisor took, which it takes in long pieces.
const STEAL_MAX: f64 = 2.0;

/// Describes the load as text; `None` if it does not show in the figures.
pub(super) fn describe_noise(noise: &Noise) -> Option<String> {
    let others = noise.others_percent.filter(|others| *others >= OTHERS_MAX);
    let steal = noise.steal_percent.filter(|steal| *steal >= STEAL_MAX);
    let others = others.map(|others| format!("other programs used {others:.0} %"));
    let steal = steal.map(|steal| format!("the hypervisor took {steal:.0} %"));
    let all: Vec<_> = others.into_iter().chain(steal).collect();
    (!all.is_empty()).then(|| format!("{} of the processors", all.join(" and ")))
}

/// Returns advice on a measurement that other load has disturbed, one text for each
/// cause; empty if the load does not show.
pub(super) fn advice(noise: &Noise, cores: usize) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(others) = noise.others_percent.filter(|others| *others >= OTHERS_MAX) {
        advice.push(format!(
            "other programs used {others:.0} % of the processors during the run: end them and \
             measure again, or trust only differences within this run"
        ));
    }
    if let Some(steal) = noise.steal_percent.filter(|steal| *steal >= STEAL_MAX) {
        advice.push(format!(
            "the hypervisor gave {steal:.0} % of the processors' time to other machines: measure \
             at another hour, or on a machine of its own"
        ));
    }
    let load = noise.load_before.filter(|load| *load >= cores as f64 / 2.0);
    if let Some(load) = load.filter(|_| noise.others_percent.is_none()) {
        advice.push(format!(
            "{load:.1} tasks were running on {cores} cores before the run: wait until they are \
             done, and measure again"
        ));
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_noisy_environment_is_reported() {
        let quiet = Noise {
            load_before: Some(5.0),
            load_after: None,
            steal_percent: Some(0.1),
            others_percent: Some(3.0),
        };
        assert_eq!(advice(&quiet, 2), [""; 0]);
        assert_eq!(describe_noise(&quiet), None);
        let busy = Noise { others_percent: Some(40.0), ..quiet };
        assert_eq!(describe_noise(&busy).unwrap(), "other programs used 40 % of the processors");
        let advised = |noise| advice(&noise, 2).len();
        assert_eq!(advised(Noise { others_percent: Some(40.0), ..quiet }), 1);
        assert_eq!(advised(Noise { steal_percent: Some(9.0), ..quiet }), 1);
        // The load includes processes that have just ended, so that it is checked last.
        assert_eq!(advised(Noise { others_percent: None, ..quiet }), 1);
        assert_eq!(advised(Noise::default()), 0);
    }
}
