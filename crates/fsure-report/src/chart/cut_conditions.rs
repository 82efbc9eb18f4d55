//! The conditions of some cuts of the power: what most runs have in common is said once, and what
//! is special beside its run.

use super::cut_run::CutRun;

/// The drive, the time of its flush and the pause of most runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CutConditions<'a> {
    runs: &'a [CutRun],
    drive: &'a str,
    flush: &'a str,
    pause_max: &'a str,
}

impl<'a> CutConditions<'a> {
    pub(super) fn of(runs: &'a [CutRun]) -> Self {
        Self {
            runs,
            drive: most_frequent(runs.iter().map(|run| run.drive.as_str())),
            flush: most_frequent(runs.iter().map(|run| run.flush.as_str())),
            pause_max: most_frequent(runs.iter().map(|run| run.pause_max.as_str())),
        }
    }

    /// Returns what most runs have in common.
    pub(super) fn words(&self) -> String {
        let has_others = self.runs.iter().any(|run| self.own(run) != run.filesystem);
        let start = if has_others { "Unless said otherwise, the" } else { "The" };
        let mut words = format!("{start} simulated drive {}", self.drive);
        if !self.flush.is_empty() {
            words += &format!(", a flush takes {}", self.flush);
        }
        if !self.pause_max.is_empty() {
            let pause = self.pause_max;
            words += &format!(", and a cut came at most {pause} after the first write since the ");
            words += "cut before, so that no older loss can show";
        }
        words + "."
    }

    /// Returns the conditions of a run: its file system, and what it does not have in common with
    /// most.
    pub(super) fn own(&self, run: &CutRun) -> String {
        let mut words = run.filesystem.clone();
        if run.drive != self.drive {
            words += &format!(" on a simulated drive that {}", run.drive);
        }
        if run.flush != self.flush {
            words += &match run.flush.as_str() {
                "" => "; no time of a flush is recorded".to_owned(),
                time => format!("; a flush takes {time}"),
            };
        }
        if run.pause_max != self.pause_max {
            words += &match run.pause_max.as_str() {
                "" => "; no pause before a cut is recorded".to_owned(),
                pause => format!("; cuts at most {pause} after the first write"),
            };
        }
        words
    }
}

/// Returns the value that there is most often, the first of several such ones.
fn most_frequent<'a>(values: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let count = |value: &str| values.clone().filter(|other| *other == value).count();
    let most = values.clone().map(count).max();
    values.clone().find(|value| Some(count(value)) == most).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tests::deferred_cuts;
    use super::*;

    #[test]
    fn what_is_special_is_said_beside_its_run() {
        let of = |drive: &str, flush: &str, pause_max: &str| CutRun {
            filesystem: "ext4".to_owned(),
            drive: drive.to_owned(),
            flush: flush.to_owned(),
            pause_max: pause_max.to_owned(),
            ..deferred_cuts(1)
        };
        let alike = [of("lies", "", ""), of("lies", "", "")];
        assert_eq!(CutConditions::of(&alike).words(), "The simulated drive lies.");
        let runs = [of("lies", "", "2 s"), of("flushes", "9 ms", "2 s"), of("flushes", "9 ms", "")];
        let conditions = CutConditions::of(&runs);
        let words = "Unless said otherwise, the simulated drive flushes, a flush takes 9 ms, and a \
                     cut came at most 2 s after the first write since the cut before, so that no \
                     older loss can show.";
        assert_eq!(conditions.words(), words);
        let own = runs.each_ref().map(|run| conditions.own(run));
        assert_eq!(
            own,
            [
                "ext4 on a simulated drive that lies; no time of a flush is recorded",
                "ext4",
                "ext4; no pause before a cut is recorded",
            ]
        );
        let long = of("flushes", "9 ms", "60 s");
        assert_eq!(conditions.own(&long), "ext4; cuts at most 60 s after the first write");
    }
}
