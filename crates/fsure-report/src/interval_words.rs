//! Words for the interval of a median. It is one of 95 % from some runs on; of fewer it is their
//! range, and must not be called more.

use fsure_measure::stats::SURE_RUNS;

/// Name of a column of intervals of medians of so many runs each.
pub fn heading(runs: impl Iterator<Item = usize>) -> &'static str {
    match least_and_most(runs) {
        (least, _) if least >= SURE_RUNS => "95 % interval",
        (_, most) if most < SURE_RUNS => "range",
        _ => "interval",
    }
}

/// Meaning of the intervals of medians of so many runs each.
pub fn meaning(runs: impl Iterator<Item = usize>) -> String {
    match least_and_most(runs) {
        (least, _) if least >= SURE_RUNS => "95 % interval of the median".to_owned(),
        (least, most) if least == most => format!("range of {most} runs"),
        (least, most) if most < SURE_RUNS => format!("range of {least} to {most} runs"),
        _ => format!("95 % interval of the median; of less than {SURE_RUNS} runs, their range"),
    }
}

/// Returns the least and the most of some numbers of runs; 0 for both without any.
fn least_and_most(runs: impl Iterator<Item = usize>) -> (usize, usize) {
    let ends = runs
        .map(|runs| (runs, runs))
        .reduce(|(least, most), (runs, _)| (least.min(runs), most.max(runs)));
    ends.unwrap_or_default()
}

/// Numbers of runs in words: `6`, or `6 to 12`.
pub fn span(runs: impl Iterator<Item = usize>) -> String {
    let (least, most) = least_and_most(runs);
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one() {
        assert_eq!(span([6, 6].into_iter()), "6");
        assert_eq!(span([12, 6, 8].into_iter()), "6 to 12");
    }

    #[test]
    fn few_runs_have_a_range() {
        for (runs, column, words) in [
            (&[6, 15][..], "95 % interval", "95 % interval of the median"),
            (&[4, 4], "range", "range of 4 runs"),
            (&[5, 3, 4], "range", "range of 3 to 5 runs"),
            (&[5, 6], "interval", "95 % interval of the median; of less than 6 runs, their range"),
            (&[], "range", "range of 0 runs"),
        ] {
            assert_eq!(heading(runs.iter().copied()), column, "{runs:?}");
            assert_eq!(meaning(runs.iter().copied()), words, "{runs:?}");
        }
    }
}
