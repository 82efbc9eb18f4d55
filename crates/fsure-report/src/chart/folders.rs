//! Folders with two figures each, side by side: the time for which programs waited, and the bytes
//! that they moved. What is moved most is seldom what is waited for.

use super::Chart;
use super::axis::on_paper;
use super::legend::{Glyph, legend, note};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use fsure_core::safe;

const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Left end of the second panel.
const SECOND: f64 = 268.0;
/// Room behind the longest bar for its figure: a time with its share, and bytes.
const TIME_FIGURE: f64 = 114.0;
const FIGURE: f64 = 82.0;
const HEAD: f64 = 24.0;
const LINE: f64 = 20.0;
pub(super) const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
/// Bars that are narrower are left out.
const WIDTH_MIN: f64 = 0.5;

/// A folder.
#[derive(Clone, Debug, PartialEq)]
pub struct FolderBars {
    /// Its path.
    pub path: String,
    /// Advice on it; empty for none.
    pub advice: String,
    /// Memory that the advice takes, in words; empty for none.
    pub memory: String,
    /// The time, and the same in words.
    pub waited: (f64, String),
    /// The bytes that were read, those that were written, and both in words.
    pub moved: (f64, f64, String),
}

/// Width of a bold character, of a plain one.
const BOLD: f64 = 1.12;

/// Styles of the bytes.
const READ: &str = "bar";
const WRITTEN: &str = "fourth";

/// Returns a sentence on the memory that the advice takes; `None` if it takes none.
fn memory_words(folders: &[FolderBars]) -> Option<String> {
    let with_memory = folders.iter().filter(|one| !one.memory.is_empty());
    let words = with_memory.map(|one| format!("{} takes {}", one.path, one.memory));
    let words = words.collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then(|| format!("Memory: {words}, for all its files, used or not."))
}

/// Meaning of each advice.
const ADVICE: [(&str, &str); 5] = [
    ("bind", "into a folder in memory, written to the disk in the background"),
    ("pin", "keep the files in the page cache, if they are read again"),
    ("exclude", "not into memory: what was flushed must survive a power cut"),
    ("try", "measure with 'fsure ram try' if it is faster in memory"),
    ("leave", "memory would save hardly any waiting"),
];

/// Folders as two rows of bars, each from zero, of what was done in a time.
pub fn folders(title: &str, folders: &[FolderBars], time: &str, rest: &str) -> Chart {
    let mut canvas = Canvas::default();
    canvas.text(LEFT, 15.0, "soft", &clipped(&format!("programs waited in {time}"), 32));
    canvas.text(SECOND, 15.0, "soft", "they read and wrote");
    let bottom = HEAD + folders.len() as f64 * (LINE + BAR + GAP);
    for (place, folder) in folders.iter().enumerate() {
        let top = HEAD + place as f64 * (LINE + BAR + GAP);
        let advice = &folder.advice;
        let room = (RIGHT - LEFT - 3.0) / COLUMN_CHARACTER - advice.chars().count() as f64 - 2.0;
        let path = end_of(&folder.path, (room / BOLD) as usize);
        canvas.text(LEFT + 3.0, top + 15.0, "strong", &path);
        let after = path.chars().count() as f64 * BOLD * COLUMN_CHARACTER + 14.0;
        if !advice.is_empty() {
            canvas.text(LEFT + 3.0 + after, top + 15.0, "", advice);
        }
        for left in [LEFT, SECOND] {
            canvas.line("axis", (left, top + LINE - 2.0), (left, top + LINE + BAR + 2.0));
        }
        let most = |of: fn(&FolderBars) -> f64| folders.iter().map(of).fold(0.0, f64::max);
        let (waited, words) = &folder.waited;
        let share = waited / most(|one| one.waited.0);
        let right = SECOND - 12.0 - TIME_FIGURE;
        bar(&mut canvas, (LEFT, right), "second", (share, words), top + LINE);
        let (read, written, words) = &folder.moved;
        let most = most(|one| one.moved.0 + one.moved.1);
        let right = RIGHT - FIGURE;
        bar(&mut canvas, (SECOND, right), WRITTEN, ((read + written) / most, words), top + LINE);
        bar(&mut canvas, (SECOND, right), READ, (read / most, ""), top + LINE);
    }
    let entries = [
        (Glyph::Bar("second"), "waited for the device"),
        (Glyph::Bar(READ), "read"),
        (Glyph::Bar(WRITTEN), "written"),
    ];
    let mut height = legend(&mut canvas, bottom + 4.0, &entries);
    height = note(&mut canvas, height, rest);
    let given = |name: &str| folders.iter().any(|one| one.advice == name);
    for (name, meaning) in ADVICE.iter().filter(|(name, _)| given(name)) {
        height = note(&mut canvas, height, &format!("{name}: {meaning}"));
    }
    if let Some(words) = memory_words(folders) {
        height = note(&mut canvas, height, &words);
    }
    let height = height + 6.0;
    let rows = folders.iter().map(|one| {
        let advice =
            if one.advice.is_empty() { String::new() } else { format!(", {}", one.advice) };
        format!("{}{advice}: waited {}, moved {}", one.path, one.waited.1, one.moved.2)
    });
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// A bar of a share of its room, with its figure behind.
pub(super) fn bar(
    canvas: &mut Canvas,
    (left, right): (f64, f64),
    class: &str,
    (share, words): (f64, &str),
    top: f64,
) {
    let width = (right - left) * on_paper(share);
    // A bar of the least width that can be seen would show more than there is.
    if width >= WIDTH_MIN {
        canvas.rect(class, (left, top), (width, BAR));
    }
    if !words.is_empty() {
        canvas.text(left + width + 6.0, top + BAR - 2.0, "strong", words);
    }
}

/// At most so many characters of a path, of which the end says most.
fn end_of(path: &str, characters_max: usize) -> String {
    let path = safe(path);
    let length = path.chars().count();
    if length <= characters_max {
        return path;
    }
    let rest: String = path.chars().skip(length + 1 - characters_max.max(1)).collect();
    format!("…{rest}")
}
