//! The few kinds of pieces that all sections of the page are made of, whatever the command.

use minijinja::value::Value;
use serde::Serialize;

/// Grade of a result, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Grade {
    /// Neither good nor bad, such as a measurement.
    #[default]
    Plain,
    /// All is as it should be.
    Good,
    /// Something needs a look.
    Warn,
    /// Something is wrong.
    Bad,
}

impl Grade {
    /// The grade in a word, for readers who do not see the colour.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Plain => "Measured",
            Self::Good => "Good",
            Self::Warn => "Look at this",
            Self::Bad => "Bad",
        }
    }
}

/// A part of the page about one result.
#[derive(Default, Serialize)]
pub(super) struct Section {
    /// File of the result.
    pub(super) file: String,
    /// Command and root: what was asked.
    pub(super) title: String,
    /// Grade of the result.
    pub(super) grade: Grade,
    /// The grade in a word.
    pub(super) grade_word: &'static str,
    /// The result in a sentence.
    pub(super) sentence: String,
    /// Sentences on what else there is to know at first sight.
    pub(super) notes: Vec<String>,
    /// The figure that matters most, and what it is of.
    pub(super) key: Option<(String, String)>,
    /// Facts: who, when, what.
    pub(super) facts: Vec<(String, String)>,
    /// The rest, in order.
    pub(super) pieces: Vec<Piece>,
}

impl Section {
    /// Returns true for the section of a result, and false for one that compares several.
    pub(super) fn is_result(&self) -> bool {
        !self.sentence.is_empty()
    }
}

/// A piece of a section.
#[derive(Serialize)]
#[serde(tag = "is", content = "of", rename_all = "kebab-case")]
pub(super) enum Piece {
    /// A heading for the pieces that follow.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A sentence that stands out.
    Note(Grade, String),
    /// Names with values.
    Facts(Vec<(String, String)>),
    /// Items, each with a name.
    List(Vec<(String, String)>),
    /// Rows and columns.
    Table(Table),
    /// A chart.
    Figure(Figure),
}

/// A chart in its place on the page.
#[derive(Serialize)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: Value,
    /// A sentence below it; empty for none.
    pub(super) caption: String,
}

/// Rows and columns.
#[derive(Default, Serialize)]
pub(super) struct Table {
    /// Name for readers who do not see it.
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The values of the first column, if the rows can be filtered by them.
    pub(super) filter: Vec<String>,
}

/// A column.
#[derive(Clone, Serialize)]
pub(super) struct Column {
    name: String,
    is_number: bool,
}

/// A cell.
#[derive(Clone, Default, Serialize)]
pub(super) struct Cell {
    text: String,
    /// A second line, smaller.
    small: String,
    /// The style: `n`, `path`, `bad`, ...
    class: &'static str,
    /// The value to sort by, if it is not the text.
    key: Option<String>,
    /// True if it names its row.
    is_head: bool,
}

impl Table {
    /// A table with these columns; those of numbers are marked by `#` in front.
    pub(super) fn new(name: &str, columns: &[&str]) -> Self {
        let column = |text: &&str| Column {
            name: text.trim_start_matches('#').to_owned(),
            is_number: text.starts_with('#'),
        };
        let columns = columns.iter().map(column).collect();
        Self { name: name.to_owned(), columns, ..Self::default() }
    }

    /// Adds a row if there is something in it.
    pub(super) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Returns the table, or nothing if it has no rows.
    pub(super) fn unless_empty(self) -> Option<Piece> {
        (!self.rows.is_empty()).then_some(Piece::Table(self))
    }
}

impl Cell {
    /// Text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A number.
    pub(super) fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "n", ..Self::default() }
    }

    /// The name of the row.
    pub(super) fn head(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_head: true, ..Self::default() }
    }

    /// A path, which may be broken anywhere.
    pub(super) fn path(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "path", ..Self::default() }
    }

    /// Sentences, which get some room even in a narrow window.
    pub(super) fn sentences(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "wide", ..Self::default() }
    }

    /// A date, which is not broken.
    pub(super) fn date(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "date", ..Self::default() }
    }

    /// Text on the colour of a grade, as in a heat map.
    pub(super) fn heat(text: impl Into<String>, grade: Grade) -> Self {
        let class = match grade {
            Grade::Plain => "",
            Grade::Good => "heat good",
            Grade::Warn => "heat warn",
            Grade::Bad => "heat bad",
        };
        Self { text: text.into(), class, ..Self::default() }
    }

    /// Text in the colour of a grade.
    pub(super) fn graded(text: impl Into<String>, grade: Grade) -> Self {
        let class = match grade {
            Grade::Plain => "",
            Grade::Good => "good",
            Grade::Warn => "warn",
            Grade::Bad => "bad",
        };
        Self { text: text.into(), class, ..Self::default() }
    }

    /// With a second line.
    pub(super) fn with_small(self, small: impl Into<String>) -> Self {
        Self { small: small.into(), ..self }
    }

    /// With a value to sort by.
    pub(super) fn with_key(self, key: impl ToString) -> Self {
        Self { key: Some(key.to_string()), ..self }
    }
}
