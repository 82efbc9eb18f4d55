//! The answer of `speed --tree` in sentences, for the terminal and the page alike.

use fsure_core::units::{self, microseconds};
use fsure_measure::results::{CacheCost, CacheVerdict, ResultLine, TreeWay};
use fsure_measure::stats::Spread;
use fsure_measure::{TREE_ROUNDS_MIN, TREE_RUN_SECONDS_MIN, losses_percent};

use crate::chart::figure;

/// Name of the way that shows what the device can give.
pub const PAST: &str = "past the cache";
/// Name of the way that shows what reading through the page cache gives.
pub const THROUGH: &str = "through the cache";

/// Memory that was full by then, in seconds, was so before anything was read.
const FROM_THE_BEGINNING_S: f64 = 0.002;

/// A loss below this, in per cent, is shown as zero.
const LOSS_SHOWN_PERCENT: f64 = 0.5;

/// A rate over less than this, in seconds, is not reported.
const RATE_SECONDS_MIN: f64 = 0.25;

/// The ways in a result.
pub fn ways(lines: &[ResultLine]) -> Vec<&TreeWay> {
    lines.iter().filter_map(way).collect()
}

/// The prices in a result.
pub fn costs(lines: &[ResultLine]) -> Vec<&CacheCost> {
    lines.iter().filter_map(cost).collect()
}

fn way(line: &ResultLine) -> Option<&TreeWay> {
    if let ResultLine::TreeWay(way) = line { Some(way) } else { None }
}

fn cost(line: &ResultLine) -> Option<&CacheCost> {
    if let ResultLine::CacheCost(cost) = line { Some(cost) } else { None }
}

/// The price that the answer is about: the highest of those that matter, or else that of the
/// longest runs.
pub fn decisive<'a>(costs: &[&'a CacheCost]) -> Option<&'a CacheCost> {
    let matters = costs.iter().filter(|cost| cost.verdict == CacheVerdict::Matters);
    let worst = matters.max_by(|one, other| one.loss_percent.total_cmp(&other.loss_percent));
    let longest = || costs.iter().max_by(|a, b| a.run_seconds.total_cmp(&b.run_seconds));
    worst.or_else(longest).copied()
}

/// The answer in a sentence or two.
pub fn answer(costs: &[&CacheCost]) -> String {
    let Some(cost) = decisive(costs) else {
        return "The price of the page cache cannot be told: the notes say why".to_owned();
    };
    let (potential, actual) = (figure(cost.potential_mib_s), figure(cost.actual_mib_s));
    // The loss is one of rounds, so that the two rates need not have that ratio.
    let rounds =
        format!("by the median of {} rounds (all turns: {actual} of {potential} MiB/s)", cost.runs);
    let cpu = cost
        .cpu_ratio
        .map_or(String::new(), |ratio| format!(", with {ratio:.1} times the processor time"));
    let load = if costs.len() > 1 { format!(" with {}", load(cost)) } else { String::new() };
    match cost.verdict {
        CacheVerdict::Matters => format!(
            "Reading through the page cache costs {:.0} % of the speed on this machine{load}, \
             {rounds}{cpu}. It matters here",
            cost.loss_percent
        ),
        CacheVerdict::NoDifference if cost.loss_percent >= LOSS_SHOWN_PERCENT => format!(
            "Reading through the page cache costs little on this machine{load}, {:.0} % of the \
             speed{}, {rounds}{cpu}. It does not matter here",
            cost.loss_percent,
            if cost.low < LOSS_SHOWN_PERCENT { " if anything" } else { "" },
        ),
        CacheVerdict::NoDifference => format!(
            "Reading through the page cache costs no speed that shows on this machine{load}: \
             {actual} of {potential} MiB/s{cpu}. It does not matter here"
        ),
        CacheVerdict::Faster => format!(
            "Reading through the page cache is {:.0} % faster on this machine{load}: {actual} in \
             place of {potential} MiB/s{cpu}. It costs no speed here",
            -cost.loss_percent
        ),
        CacheVerdict::Unsure => format!(
            "It is not sure what the page cache costs on this machine{load}: {actual} of \
             {potential} MiB/s{cpu}. {}",
            why_unsure(cost)
        ),
    }
}

fn why_unsure(cost: &CacheCost) -> String {
    match () {
        () if cost.runs < TREE_ROUNDS_MIN => {
            format!("Less than three runs are no answer, and there were {}", cost.runs)
        }
        () if cost.run_seconds < TREE_RUN_SECONDS_MIN => format!(
            "A run of {:.2} s is too short for an answer: more '--bytes' or files make it longer",
            cost.run_seconds
        ),
        () => format!(
            "The loss was {:.0} to {:.0} %, which is no answer: more '--runs' on a quiet machine \
             give one",
            cost.low, cost.high
        ),
    }
}

/// The load of a price, in words.
pub fn load(cost: &CacheCost) -> String {
    load_words(cost.wanted_bytes, cost.wanted_readers)
}

/// A load in words: bytes of each volume, and readers if their number was asked for.
pub fn load_words(bytes: u64, readers: Option<usize>) -> String {
    let bytes = units::size(bytes);
    match readers {
        None => bytes,
        Some(1) => format!("{bytes} and 1 reader"),
        Some(readers) => format!("{bytes} and {readers} readers"),
    }
}

/// The moment at which memory was full, with the rates before and after. `None` if the system
/// does not report it.
pub fn memory(way: &TreeWay) -> Option<String> {
    let memory = units::size(way.memory_bytes?);
    let Some(full_at) = way.full_at_s else {
        return Some(format!(
            "Memory ({memory}) was not full at the end of a run: more '--bytes' than that show \
             what happens then"
        ));
    };
    let (before, after) = (rate(way, 0.0, full_at), rate(way, full_at, f64::INFINITY));
    Some(match (before, after) {
        (_, Some(after)) if full_at < FROM_THE_BEGINNING_S => {
            format!("Memory ({memory}) was full from the beginning: {} MiB/s", figure(after))
        }
        (Some(before), Some(after)) => format!(
            "Memory ({memory}) was full after {full_at:.1} s: {} MiB/s until then, {} MiB/s \
             afterwards",
            figure(before),
            figure(after)
        ),
        _ => format!("Memory ({memory}) was full after {full_at:.1} s"),
    })
}

/// The mean rate between two moments, in MiB/s; `None` if that was too short a time.
fn rate(way: &TreeWay, from: f64, to: f64) -> Option<f64> {
    let (mut seconds, mut mib, mut last) = (0.0, 0.0, 0.0);
    for (at, rate, _) in &way.points {
        if last >= from && *at <= to {
            seconds += at - last;
            mib += rate * (at - last);
        }
        last = *at;
    }
    (seconds >= RATE_SECONDS_MIN).then(|| mib / seconds)
}

/// The effect of the reading on a program beside it, by two ways. `None` without one.
pub fn bystander(past: &TreeWay, through: &TreeWay) -> Option<String> {
    let (calm, other) = (past.bystander?, through.bystander?);
    let evicted = other.evicted_bytes.map_or(String::new(), |bytes| match bytes {
        0 => "; none of its files were pushed out of memory".to_owned(),
        bytes => format!("; {} of them were pushed out of memory", units::size(bytes)),
    });
    Some(format!(
        "A program that reads its own {} meanwhile waited at most {} for {} past the cache, and \
         {} through it (99 of 100 reads: {} and {}){evicted}",
        units::size(other.hot_bytes),
        microseconds(calm.max_us),
        units::size(other.read_bytes),
        microseconds(other.max_us),
        microseconds(calm.p99_us),
        microseconds(other.p99_us),
    ))
}

/// A loss in percent, as text; that of a way which is faster is none.
pub fn loss_or_none(loss_percent: f64) -> String {
    if loss_percent < 0.0 { "none".to_owned() } else { format!("{loss_percent:.0} %") }
}

/// The loss of a way against the one past the page cache, in percent: the median of all rounds,
/// with its interval. `None` for that itself.
pub fn loss_percent(way: &TreeWay, past: &TreeWay) -> Option<Spread> {
    if way.name == past.name {
        return None;
    }
    Spread::of(&losses_percent(&past.samples, &way.samples))
}

/// The way past the page cache that was measured under the same load.
pub fn past_of<'a>(way: &TreeWay, ways: &[&'a TreeWay]) -> Option<&'a TreeWay> {
    of_load(way, ways, PAST)
}

/// The way of a name that was measured under the same load as another.
pub fn of_load<'a>(way: &TreeWay, ways: &[&'a TreeWay], name: &str) -> Option<&'a TreeWay> {
    let load = |way: &TreeWay| (way.wanted_bytes, way.wanted_readers);
    ways.iter().find(|other| other.name == name && load(other) == load(way)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(loss_percent: f64, verdict: CacheVerdict) -> CacheCost {
        CacheCost {
            wanted_bytes: 4 << 30,
            wanted_readers: None,
            potential_mib_s: 2000.0,
            actual_mib_s: 20.0 * (100.0 - loss_percent),
            loss_percent,
            low: loss_percent - 1.0,
            high: loss_percent + 1.0,
            runs: 3,
            run_seconds: 0.1,
            cpu_ratio: Some(2.04),
            verdict,
        }
    }

    #[test]
    fn the_answer_comes_first_and_is_that_of_the_worst_load() {
        let (bad, none) =
            (cost(41.0, CacheVerdict::Matters), cost(1.0, CacheVerdict::NoDifference));
        assert_eq!(
            answer(&[&bad]),
            "Reading through the page cache costs 41 % of the speed on this machine, by the \
             median of 3 rounds (all turns: 1,180 of 2,000 MiB/s), with 2.0 times the processor \
             time. It matters here"
        );
        let both = answer(&[&none, &bad]);
        assert!(both.contains("41 % of the speed on this machine with 4.0 GiB, by "), "{both}");
        assert!(
            answer(&[&none]).contains("little on this machine, 1 % of the speed if anything, by ")
        );
        assert!(answer(&[&none]).ends_with("It does not matter here"));
        let each_time = CacheCost { low: 0.6, ..none.clone() };
        assert!(answer(&[&each_time]).contains("1 % of the speed, by "));
        let nothing = CacheCost { loss_percent: 0.4, ..none.clone() };
        assert!(answer(&[&nothing]).contains("costs no speed that shows"));
        let faster = answer(&[&cost(-15.0, CacheVerdict::Faster)]);
        assert!(faster.contains("is 15 % faster"), "{faster}");
        let unsure = cost(9.0, CacheVerdict::Unsure);
        assert!(answer(&[&unsure]).contains("A run of 0.10 s is too short"));
        let long = CacheCost { run_seconds: 2.0, ..unsure.clone() };
        assert!(answer(&[&long]).contains("The loss was 8 to 10 %, which is no answer"));
        assert!(answer(&[&CacheCost { runs: 1, ..unsure }]).ends_with("there were 1"));
        assert!(answer(&[]).contains("cannot be told"));
    }
}
