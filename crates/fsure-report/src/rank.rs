//! Ranks the rungs by speed: a rung is called faster than another only if their intervals
//! have no value in common, and never if it ran too rarely to have an interval.

use std::fmt;

use fsure_measure::results::Rung;

/// Runs below which the range of a rung says too little of it: with two, the
/// median is as likely outside of it as inside.
const RUNS_MIN: usize = 3;

/// The ranks that a rung may have, the fastest being 1; none where it ran too
/// rarely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank(Option<(usize, usize)>);

impl Rank {
    /// Returns true if the rung is neither faster nor slower than some other.
    pub fn is_shared(self) -> bool {
        self.0.is_none_or(|(first, last)| first != last)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.pad("-"),
            Some((first, last)) if first == last => f.pad(&first.to_string()),
            Some((first, last)) => f.pad(&format!("{first}-{last}")),
        }
    }
}

/// The rank of each rung among these.
pub fn ranks(rungs: &[&Rung]) -> Vec<Rank> {
    let ranked: Vec<_> = rungs.iter().filter(|rung| rung.runs >= RUNS_MIN).collect();
    let rank = |rung: &&Rung| {
        let faster = ranked.iter().filter(|other| other.low > rung.high).count();
        let slower = ranked.iter().filter(|other| other.high < rung.low).count();
        Rank((rung.runs >= RUNS_MIN).then_some((faster + 1, ranked.len() - slower)))
    };
    rungs.iter().map(rank).collect()
}

/// The characters of the longest of these ranks.
pub fn longest(ranks: &[Rank]) -> usize {
    ranks.iter().map(|rank| rank.to_string().len()).max().unwrap_or(0)
}

/// Explanation of the ranks, in two lines.
pub const MEANING: [&str; 2] = [
    "A rank such as 2-3: the interval has a value in common with another's, so neither may be \
     called the",
    "faster. A rank of -: there were fewer than three runs.",
];
