//! Compares two results: rung by rung by ranks, with the probability corrected for
//! how many rungs there are (Holm, "A Simple Sequentially Rejective Multiple Test
//! Procedure", 1979); otherwise one of twenty would be a change of nothing.

use serde::Serialize;

use super::super::environment;
use crate::results::{Measurement, ResultHeader, ResultLine, Rung, StoredResult};
use crate::stats::{Difference, difference};
use fsure_core::{Error, ExitCode, Result, units};

/// Probability of any false change over all rungs together.
const CHANCE: f64 = 0.05;
/// Smallest relative change that counts: a smaller one goes unnoticed, however sure
/// it is.
const EFFECT: f64 = 0.05;

/// A rung in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeedChange {
    /// The rung.
    pub name: String,
    /// The folder in the first result.
    pub target: String,
    /// The unit of both medians.
    pub unit: String,
    /// Median of the first.
    pub before: f64,
    /// Median of the second.
    pub after: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Probability of such runs if nothing had changed, corrected for the number of
    /// rungs; `null` if both have too few runs for any result.
    pub p: Option<f64>,
    /// True if it has changed: not by chance, and by enough to be noticed.
    pub changed: bool,
}

/// Two results side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpeedChanges {
    /// Differences that make them hard to compare: another machine, another setup.
    pub unlike: Vec<String>,
    /// The rungs of both, in the order of the first.
    pub rungs: Vec<SpeedChange>,
    /// Rungs of one of them only.
    pub only_in_one: Vec<String>,
}

impl SpeedChanges {
    /// Returns the exit code of a command with this result: 1 if anything has
    /// changed, and 5 if there was nothing to be compared.
    pub fn exit_code(&self) -> ExitCode {
        match self.rungs.iter().any(|rung| rung.changed) {
            true => ExitCode::Differences,
            false if self.rungs.is_empty() => ExitCode::Incomplete,
            false => ExitCode::Clean,
        }
    }

    /// Returns the number of rungs with too few runs for any result.
    pub fn undecided(&self) -> usize {
        self.rungs.iter().filter(|rung| rung.p.is_none()).count()
    }
}

/// Compares two results of `speed`. Folders are paired in their order, so that
/// one disk can be compared with another.
pub fn compare_speed(before: &StoredResult, after: &StoredResult) -> Result<SpeedChanges> {
    for stored in [before, after] {
        if stored.header.kind != Measurement::Speed {
            return Err(Error::Usage {
                message: "it is not a result of 'fsure speed'".to_owned(),
                hint: Some("make one with 'fsure speed --save FILE'".to_owned()),
            });
        }
    }
    let (first, second) = (rungs(before), rungs(after));
    let twin = |rung: &Rung| {
        let target = renamed(&rung.target, &before.header, &after.header);
        second.iter().find(|other| other.name == rung.name && other.target == target)
    };
    let pairs: Vec<_> =
        first.iter().filter_map(|rung| Some((*rung, *twin(rung)?))).filter(same_unit).collect();
    let is_paired = |rung: &Rung| {
        pairs.iter().any(|(one, two)| std::ptr::eq(*one, rung) || std::ptr::eq(*two, rung))
    };
    let single = first.iter().chain(&second).filter(|rung| !is_paired(rung));
    Ok(SpeedChanges {
        unlike: unlike(before, after),
        rungs: judged(&pairs),
        only_in_one: single.map(|rung| format!("{}, {}", rung.name, rung.target)).collect(),
    })
}

fn same_unit(pair: &(&Rung, &Rung)) -> bool {
    pair.0.unit == pair.1.unit
}

fn rungs(stored: &StoredResult) -> Vec<&Rung> {
    let lines = stored.lines.iter();
    lines
        .filter_map(|line| match line {
            ResultLine::Rung(rung) => Some(rung),
            _ => None,
        })
        .collect()
}

/// Returns the name in the second result of a folder of the first.
fn renamed<'a>(target: &'a str, before: &ResultHeader, after: &'a ResultHeader) -> &'a str {
    let place = before.targets.iter().position(|known| known.path == target);
    place.and_then(|place| after.targets.get(place)).map_or(target, |found| &found.path)
}

/// Holm's steps: the smallest probability is compared with the number of all rungs,
/// the next with one less.
fn judged(pairs: &[(&Rung, &Rung)]) -> Vec<SpeedChange> {
    let found: Vec<Option<Difference>> =
        pairs.iter().map(|(before, after)| difference(&before.samples, &after.samples)).collect();
    let mut order: Vec<usize> = (0..pairs.len()).filter(|place| found[*place].is_some()).collect();
    let p_of = |place: usize| found[place].map_or(1.0, |difference| difference.p);
    order.sort_by(|one, other| p_of(*one).total_cmp(&p_of(*other)));
    let mut corrected = vec![None; pairs.len()];
    let mut largest = 0.0_f64;
    for (step, place) in order.iter().enumerate() {
        let left = (order.len() - step) as f64;
        largest = largest.max((p_of(*place) * left).min(1.0));
        corrected[*place] = Some(largest);
    }
    let each = pairs.iter().zip(corrected);
    each.map(|((before, after), p)| {
        let smallest_p = least_p(before.samples.len(), after.samples.len()) * pairs.len() as f64;
        let p = p.filter(|_| smallest_p < CHANCE);
        let ratio = if before.median > 0.0 { after.median / before.median } else { 1.0 };
        SpeedChange {
            name: before.name.clone(),
            target: before.target.clone(),
            unit: before.unit.clone(),
            before: before.median,
            after: after.median,
            ratio,
            p,
            changed: p.is_some_and(|p| p < CHANCE) && (ratio - 1.0).abs() >= EFFECT,
        }
    })
    .collect()
}

/// The smallest probability that so many runs can have: all of the one before
/// all of the other.
fn least_p(before: usize, after: usize) -> f64 {
    let ways = (1..=after).fold(1.0, |ways, n| ways * (before + n) as f64 / n as f64);
    (2.0 / ways).min(1.0)
}

fn unlike(before: &StoredResult, after: &StoredResult) -> Vec<String> {
    let mut unlike = Vec::new();
    let mut held = |what: &str, one: &str, other: &str| {
        if one != other {
            unlike.push(format!("{what}: {one} before, {other} after"));
        }
    };
    let (one, other) = (&before.header.machine, &after.header.machine);
    held("machine", &one.host, &other.host);
    held("system", &one.system, &other.system);
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
    held("processor", &known(&one.processor), &known(&other.processor));
    held("cores", &one.cores.to_string(), &other.cores.to_string());
    let memory = |bytes: Option<u64>| known(&bytes.map(units::size));
    held("memory", &memory(one.memory_bytes), &memory(other.memory_bytes));
    held("virtual machine", &known(&one.virtualization), &known(&other.virtualization));
    held("program", &before.header.program, &after.header.program);
    let setups = (setup(before, after), &after.header.setup);
    let of = |setup: &[(String, String)], name: &str| {
        let found = setup.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "not recorded".to_owned(), |(_, value)| value.clone())
    };
    for (name, value) in &setups.0 {
        held(name, value, &of(setups.1, name));
    }
    for (name, value) in setups.1.iter().filter(|(name, _)| of(&setups.0, name) == "not recorded") {
        held(name, "not recorded", value);
    }
    for (stored, which) in [(before, "first"), (after, "second")] {
        match &stored.summary {
            None => unlike.push(format!("the {which} result is incomplete: its run did not end")),
            Some(summary) => {
                let trouble = environment::describe_noise(&summary.noise);
                unlike.extend(trouble.map(|trouble| format!("during the {which}, {trouble}")));
            }
        }
    }
    unlike
}

/// The setup of the first, with its folders called as in the second.
fn setup(before: &StoredResult, after: &StoredResult) -> Vec<(String, String)> {
    let renamed = |name: &String| {
        let targets = before.header.targets.iter().zip(&after.header.targets);
        let mut named = targets.filter_map(|(old, new)| {
            let what = name.strip_suffix(&old.path).filter(|what| what.ends_with(' '))?;
            Some(format!("{what}{}", new.path))
        });
        named.next().unwrap_or_else(|| name.clone())
    };
    let setup = before.header.setup.iter();
    setup.map(|(name, value)| (renamed(name), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_prove_nothing() {
        assert!((least_p(5, 5) - 2.0 / 252.0).abs() < 1e-12);
        assert!((least_p(6, 6) - 2.0 / 924.0).abs() < 1e-12);
        assert!(least_p(1, 1) >= 1.0);
    }
}
