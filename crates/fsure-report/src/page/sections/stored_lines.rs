//! Helpers of the sections of `speed` and `flush`: lines by kind and by folder, and the verdict
//! of a run that might have been cut off.

use super::super::pieces::Grade;
use super::Draft;
use fsure_measure::results::{ResultLine, StoredResult};

/// All lines of a kind.
pub(super) fn lines<'a, T: 'a>(
    stored: &'a StoredResult,
    of: impl Fn(&'a ResultLine) -> Option<&'a T> + 'a,
) -> impl Iterator<Item = &'a T> + 'a {
    stored.lines.iter().filter_map(of)
}

/// Groups in the order in which each first appears.
pub(super) fn by<'a, T>(
    all: impl Iterator<Item = &'a T>,
    name: impl Fn(&T) -> &str,
) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&'a T>> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|group| name(group[0]) == name(one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Sets the verdict; a run that was cut off says so behind it.
pub(super) fn conclude(draft: &mut Draft, stored: &StoredResult, grade: Grade, sentence: String) {
    match stored.summary {
        Some(_) => draft.verdict(grade, sentence),
        None => {
            let cut_off = std::mem::take(&mut draft.0.sentence);
            draft.verdict(grade.max(Grade::Warn), sentence);
            draft.note(format!("{cut_off}."));
        }
    }
}
