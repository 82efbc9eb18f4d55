//! The first screen: one verdict over all results, and a card for each.

use serde::Serialize;

use super::pieces::{Grade, Section};
use super::words::number;

/// The verdict over all results.
#[derive(Serialize)]
pub(super) struct Band {
    grade: Grade,
    grade_word: &'static str,
    /// Command and root of the result that the sentence is of.
    asked: String,
    sentence: String,
    notes: Vec<String>,
    facts: Vec<(String, String)>,
    /// Place of the section that the sentence is of, from 1, if there are several.
    place: Option<usize>,
}

/// The verdict over these sections: that of the worst, the first of several.
pub(super) fn of(sections: &[Section]) -> Band {
    let results: Vec<_> = sections.iter().enumerate().filter(|(_, one)| one.is_result()).collect();
    let worst = results.iter().rev().max_by_key(|(_, section)| section.grade);
    let Some((place, worst)) = worst else {
        return Band {
            grade: Grade::Plain,
            grade_word: Grade::Plain.word(),
            asked: String::new(),
            sentence: "There is no result".to_owned(),
            notes: Vec::new(),
            facts: Vec::new(),
            place: None,
        };
    };
    let is_one = results.len() == 1;
    let mut notes = worst.notes.clone();
    if !is_one {
        notes.push(counts(&results));
    }
    Band {
        grade: worst.grade,
        grade_word: worst.grade_word,
        asked: worst.title.clone(),
        sentence: worst.sentence.clone(),
        notes,
        facts: worst.facts.clone(),
        place: (!is_one).then_some(place + 1),
    }
}

/// `4 results on this page: 1 bad, 2 good, 1 measured.`
fn counts(results: &[(usize, &Section)]) -> String {
    let of = |grade: Grade| results.iter().filter(|(_, one)| one.grade == grade).count();
    let grades = [
        (Grade::Bad, "bad"),
        (Grade::Warn, "to look at"),
        (Grade::Good, "good"),
        (Grade::Plain, "measured"),
    ];
    let grades = grades.map(|(grade, word)| (of(grade), word));
    let grades = grades.iter().filter(|(count, _)| *count > 0);
    let grades: Vec<_> = grades.map(|(count, word)| format!("{count} {word}")).collect();
    let results = number(results.len() as u64, "result", "results");
    format!("{results} on this page: {}.", grades.join(", "))
}
