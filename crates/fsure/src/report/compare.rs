//! Two trees side by side, for a person and for a program.

use std::path::Path;

use serde::Serialize;

use super::json::line;
use super::number;
use fsure_core::count;
use fsure_core::json_path_and_bytes;
use fsure_core::shell_quoted;
use fsure_core::units;
use fsure_integrity::model::{ComparedPath, Comparison, EntryKind};

/// One path that is not the same, for a person; no line end.
pub fn text_line(compared: &ComparedPath) -> String {
    let kind = match compared.kind {
        EntryKind::File => String::new(),
        kind => format!("  {}", kind.name()),
    };
    let there = compared.there.as_ref().map(|there| format!(" -> {}", there.display()));
    let name = compared.difference.name();
    format!("{name:<10}  {}{}{kind}", compared.path.display(), there.unwrap_or_default())
}

/// Returns the result of a comparison for the user.
///
/// `here` and `there` are the folders; files whose records stood for them are read by the
/// command that it advises.
pub fn text_summary(found: &Comparison, here: &Path, there: &Path) -> String {
    let rows = [
        ("Same", found.same),
        ("Different", found.different),
        ("Only here", found.only_here),
        ("Only there", found.only_there),
        ("Moved", found.moved),
        ("Unknown", found.unknown),
    ];
    let shown = rows.iter().filter(|(_, number)| *number > 0);
    let mut text: String =
        shown.map(|(name, number)| format!("{name:<10}  {:>12}\n", count(*number))).collect();
    text += &format!("Read: {}\n", units::size(found.bytes_read));
    if rows[1..].iter().all(|(_, number)| *number == 0) {
        let is_all = found.malformed + found.unusable + found.bad_records == 0;
        text += match found.same {
            0 => "There was nothing to compare.\n",
            _ if is_all => "Both sides have the same content.\n",
            _ => "What could be compared is the same on both sides.\n",
        };
    }
    text += &unread(found, here, there);
    if found.bad_records > 0 {
        let records = number(found.bad_records, "record fails its", "records fail their");
        text += &format!("RECORD BAD: {records} own seal.\n");
    }
    for (count, what) in [
        (found.malformed, "of a list that CANNOT BE UNDERSTOOD"),
        (found.unusable, "of a list that CANNOT BE USED"),
    ] {
        if count > 0 {
            text += &format!("{} {what}.\n", number(count, "line", "lines"));
        }
    }
    text
}

/// Says how many files were not read, and how to read them: a record does not show that the
/// content of its file rotted since.
fn unread(found: &Comparison, here: &Path, there: &Path) -> String {
    let sides = [(found.recorded_here, here, "here"), (found.recorded_there, there, "there")];
    let sides: Vec<_> = sides.into_iter().filter(|(files, ..)| *files > 0).collect();
    let counts =
        sides.iter().map(|(files, _, side)| format!("{} {side}", number(*files, "file", "files")));
    let counts = counts.collect::<Vec<_>>().join(" and ");
    let mut folders: Vec<_> = sides
        .iter()
        .filter(|(_, path, _)| path.is_dir())
        .map(|(_, path, _)| shell_quoted(path))
        .collect();
    folders.dedup();
    match folders.join(" ").as_str() {
        _ if sides.is_empty() => String::new(),
        "" => format!("Not read, the record stands for the content: {counts}.\n"),
        folders => format!(
            "Not read, the record stands for the content: {counts}. To read them, too:\n    fsure \
             verify {folders}\n"
        ),
    }
}

/// One path that is not the same, for a program; no line end.
pub fn json_line(compared: &ComparedPath) -> String {
    let (path, path_bytes) = json_path_and_bytes(compared.path.as_bytes());
    let there = compared.there.as_ref().map(|there| json_path_and_bytes(there.as_bytes()));
    let (there, there_bytes) = there.map_or((None, None), |(text, bytes)| (Some(text), bytes));
    let (result, kind) = (compared.difference.name(), compared.kind.name());
    line(&ComparisonLine { r#type: "compared", result, path, path_bytes, there, there_bytes, kind })
}

/// The last line for a program; no line end.
pub fn json_summary(found: &Comparison, exit_code: u8) -> String {
    let Comparison { same, different, only_here, only_there, moved, unknown, .. } = *found;
    line(&ComparisonSummary {
        r#type: "summary",
        command: "compare",
        same,
        different,
        only_here,
        only_there,
        moved,
        unknown,
        bad_records: found.bad_records,
        malformed: found.malformed,
        unusable: found.unusable,
        known_damage: found.known_damage.total(),
        recorded_here: found.recorded_here,
        recorded_there: found.recorded_there,
        bytes_read: found.bytes_read,
        exit_code,
    })
}

#[derive(Serialize)]
struct ComparisonLine {
    r#type: &'static str,
    result: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    there_bytes: Option<String>,
    kind: &'static str,
}

#[derive(Serialize)]
struct ComparisonSummary {
    r#type: &'static str,
    command: &'static str,
    same: u64,
    different: u64,
    only_here: u64,
    only_there: u64,
    moved: u64,
    unknown: u64,
    bad_records: u64,
    malformed: u64,
    unusable: u64,
    known_damage: u64,
    recorded_here: u64,
    recorded_there: u64,
    bytes_read: u64,
    exit_code: u8,
}
