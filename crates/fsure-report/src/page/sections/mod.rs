//! A section of the page for each kind of output, and what all of them have.

mod ages;
mod cache_trial;
mod checked;
mod compared;
mod crash;
mod deferred;
mod duplicates;
mod findings;
mod flush_trace;
mod history;
mod hot;
mod marks;
mod measured;
mod measured_tree;
mod power_cut;
mod protected;
mod ram;
mod recovered;
mod requests;
mod side_by_side;
mod stored_lines;
mod trial;

pub(super) use side_by_side::side_by_side;

use super::Named;
use super::charts::Charts;
use super::pieces::{Grade, Piece, Section};
use super::words::{date, machine_words, number};
use crate::outputs::{CommonLines, ResultContent, StartLine, StartMachine};

/// Roots whose record is named.
const ROOTS_MAX: usize = 20;

/// The section of a result.
pub(super) fn of(named: &Named, charts: &mut Charts) -> Section {
    let common = &named.result.common;
    charts.set_subtitle(machine_of(named));
    let mut section = match &named.result.content {
        ResultContent::Measured(stored) => measured::section(stored, charts),
        ResultContent::Checked(found) => checked::section(found, common, charts),
        ResultContent::Compared(found) => compared::section(found),
        ResultContent::Duplicates(found) => duplicates::section(found, charts),
        ResultContent::CacheTrial(run) => cache_trial::section(run, charts),
        ResultContent::Crash(run) => crash::section(run, charts),
        ResultContent::FlushTrace(run) => flush_trace::section(run, charts),
        ResultContent::Hot(run) => hot::section(run, charts),
        ResultContent::Ram(run) => ram::section(run, charts),
        ResultContent::Trial(run) => trial::section(run, charts),
        ResultContent::Deferred(run) => deferred::section(run, charts),
        ResultContent::History(history) => history::section(history, common, charts),
        ResultContent::PowerCut(run) => power_cut::section(run, charts),
        ResultContent::Recovered(run) => recovered::section(run),
        ResultContent::Protected(run) => protected::section(run),
    };
    charts.set_subtitle(None);
    section.file.clone_from(&named.file);
    if let Some(start) = &common.start {
        begin(&mut section, start);
    }
    end_early(&mut section, common);
    section.pieces.extend(remarks(common));
    section.grade_word = section.grade.word();
    section
}

/// Returns the line that names the machine of a result, if it names one in its first line.
fn machine_of(named: &Named) -> Option<String> {
    let words = match &named.result.content {
        ResultContent::Measured(stored) => {
            machine_words(&StartMachine::from(&stored.header.machine))
        }
        _ => machine_words(named.result.common.start.as_ref()?.machine.as_ref()?),
    };
    Some(format!("On {words}"))
}

/// Returns the line that names the machine of several results, if it is one.
fn machine_of_all<'a>(mut results: impl Iterator<Item = &'a Named>) -> Option<String> {
    let first = results.next().and_then(machine_of)?;
    results.all(|other| machine_of(other).as_ref() == Some(&first)).then_some(first)
}

/// Puts who, when and what before the other facts.
fn begin(section: &mut Section, start: &StartLine) {
    let roots: Vec<_> = start.roots.iter().map(|root| root.root.as_str()).collect();
    // A section may know more of the command than its first line does: `crash matrix`.
    let knows_more = roots.is_empty() && section.title.starts_with(&start.command);
    if !knows_more {
        section.title = format!("{} {}", start.command, roots.join(" ")).trim_end().to_owned();
    }
    let asked = format!("fsure {}", section.title);
    let mut facts = vec![("Asked".to_owned(), asked)];
    facts.push(("Date".to_owned(), format!("{} UTC", date(&start.time))));
    facts.extend(start.host.clone().map(|host| ("Host".to_owned(), host)));
    let machine = start.machine.as_ref().map(machine_words);
    facts.extend(machine.map(|machine| ("Machine".to_owned(), machine)));
    facts.push(("Program".to_owned(), format!("fsure {}", start.fsure)));
    for root in start.roots.iter().take(ROOTS_MAX) {
        let generation = root.generation.map(|number| format!("generation {number}"));
        let record: Vec<_> = root.catalog.clone().into_iter().chain(generation).collect();
        if !record.is_empty() {
            let name = match start.roots.len() {
                1 => "Record".to_owned(),
                _ => format!("Record of {}", root.root),
            };
            facts.push((name, record.join(", ")));
        }
    }
    facts.append(&mut section.facts);
    // Said twice by some outputs.
    facts.retain(|(_, value)| !value.is_empty());
    section.facts = facts;
}

/// Says so where an error ended the run.
fn end_early(section: &mut Section, common: &CommonLines) {
    for failure in common.failures.iter().rev() {
        if section.grade != Grade::Bad {
            section.notes.insert(0, std::mem::take(&mut section.sentence));
            section.sentence = format!("The run ended with an error: {}", failure.message);
            section.grade = Grade::Bad;
        }
        let hint = failure.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
        let note = format!("Error: {}{hint}", failure.message);
        section.pieces.insert(0, Piece::Note(Grade::Bad, note));
    }
    section.notes.retain(|note| !note.is_empty());
}

/// Warnings, and what was passed over.
fn remarks(common: &CommonLines) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if !common.warnings.is_empty() {
        pieces.push(Piece::Heading("Warnings".to_owned()));
        let notes = common.warnings.iter().cloned();
        pieces.extend(notes.map(|words| Piece::Note(Grade::Warn, words)));
    }
    if common.unknown > 0 {
        let lines = number(common.unknown, "line", "lines");
        pieces.push(Piece::Text(format!(
            "{lines} of types that this version of fsure does not know were passed over."
        )));
    }
    pieces
}

/// A section that is being made.
struct Draft(Section);

impl Draft {
    /// A section with a title, of a run that was cut off until there is a verdict.
    fn new(title: impl Into<String>) -> Self {
        Self(Section {
            title: title.into(),
            grade: Grade::Warn,
            sentence: "CUT OFF: the run did not come to its end; this is what it had".to_owned(),
            ..Section::default()
        })
    }

    /// Sets the verdict.
    fn verdict(&mut self, grade: Grade, sentence: impl Into<String>) {
        self.0.grade = grade;
        self.0.sentence = sentence.into();
    }

    /// Sets the figure that matters most.
    fn key(&mut self, figure: impl Into<String>, of: impl Into<String>) {
        self.0.key = Some((figure.into(), of.into()));
    }

    /// Adds a sentence.
    fn note(&mut self, sentence: impl Into<String>) {
        self.0.notes.push(sentence.into());
    }

    /// Adds a fact.
    fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.0.facts.push((name.to_owned(), value.into()));
    }

    /// Adds the exit code of a command that has its own meanings for it.
    fn plain_exit_code(&mut self, code: u8) {
        self.fact("Exit code", code.to_string());
    }

    /// Adds the exit code, with what it means for files and their record.
    fn exit_code(&mut self, code: u8) {
        let meaning = match code {
            0 => "all is as it should be",
            1 => "there are differences",
            2 => "the command was not understood",
            3 => "damage",
            4 => "some of it could not be read",
            5 => "not done, or not all of it",
            6 => "the record cannot be trusted",
            7 => "damage was found and repaired",
            130 | 143 => "interrupted",
            _ => "an error",
        };
        self.fact("Exit code", format!("{code}: {meaning}"));
    }

    /// Adds a heading with pieces, if there are any.
    fn part(&mut self, heading: &str, pieces: impl IntoIterator<Item = Piece>) {
        let mut pieces = pieces.into_iter().peekable();
        if pieces.peek().is_some() {
            self.0.pieces.push(Piece::Heading(heading.to_owned()));
            self.0.pieces.extend(pieces);
        }
    }

    /// Adds the counts that are not zero.
    fn counts(&mut self, counts: &[(&str, u64)]) {
        let shown = counts.iter().filter(|(_, count)| *count > 0);
        let facts: Vec<_> =
            shown.map(|(name, count)| ((*name).to_owned(), fsure_core::count(*count))).collect();
        self.part("Counts", (!facts.is_empty()).then_some(Piece::Facts(facts)));
    }

    /// Returns the section.
    fn done(self) -> Section {
        self.0
    }
}
