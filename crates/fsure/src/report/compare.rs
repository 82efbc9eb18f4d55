//! Two trees side by side, for a person and for a program.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::json::line;
use super::{number, with_command};
use fsure_core::count;
use fsure_core::json_path_and_bytes;
use fsure_core::shell_quoted;
use fsure_core::units;
use fsure_integrity::catalog::locate;
use fsure_integrity::manifest::is_database;
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

/// One side of a comparison, for the commands that are advised.
#[derive(Clone, Debug)]
pub struct Side {
    /// The path as a word of a command line.
    word: String,
    /// The path without links.
    resolved: PathBuf,
    is_folder: bool,
    /// True if it is a list that can be read again.
    is_list: bool,
    /// True if it is a folder that has a record, which tells what is right.
    is_recorded: bool,
}

impl Side {
    /// The side of a path.
    pub fn of(path: &Path) -> Self {
        let is_folder = path.is_dir();
        let is_recorded = is_folder && locate(path, None).is_ok_and(|place| place.is_recorded());
        let is_list = path.is_file() && is_database(path).is_ok_and(|is_database| !is_database);
        let resolved = fsure_os::path::without_links(path).unwrap_or(path.to_owned());
        Self { word: shell_quoted(path), resolved, is_folder, is_list, is_recorded }
    }

    /// Returns true if the other side is a folder below this one.
    fn contains(&self, other: &Self) -> bool {
        other.is_folder
            && other.resolved != self.resolved
            && other.resolved.starts_with(&self.resolved)
    }
}

/// Returns the result of a comparison for the user, with the command that goes on from there.
pub fn text_summary(found: &Comparison, sides: &[Side; 2]) -> String {
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
    if found.unknown > 0 {
        text += &format!(
            "{} NOT BE READ, and so not compared: run it {}; fsure verify names the reasons.\n",
            number(found.unknown, "name could", "names could"),
            fsure_core::who_may_read()
        );
    }
    if found.empty_lists > 0 {
        text += "A list CANNOT BE TRUSTED: it names no file. It is not a list of checksums, or of a \
                 format that '--format' has to name. compare takes folders, records and lists; two \
                 files are compared by 'cmp'.\n";
    }
    let next = next_step(found, sides);
    text += &unread(found, sides, next.is_none());
    text += &next.unwrap_or_default();
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

/// Says what tells which side of a difference is right, and how to ask it.
fn next_step(found: &Comparison, sides: &[Side; 2]) -> Option<String> {
    if found.different + found.only_here + found.only_there == 0 || found.empty_lists > 0 {
        return None;
    }
    let [here, there] = sides;
    if here.contains(there) || there.contains(here) {
        return Some(
            "One side lies within the other: names are compared from each of the two folders on.\n"
                .to_owned(),
        );
    }
    // Nothing differs, and a recorded side lacks nothing.
    let is_complete =
        (here.is_recorded && found.only_there == 0) || (there.is_recorded && found.only_here == 0);
    if found.different == 0 && is_complete {
        return None;
    }
    let heal = |one: &Side, other: &Side| {
        let sentence = "The record tells whether files are damaged or lost; the other side may \
                        repair those. To see it";
        with_command(sentence, &format!("fsure heal {} --from {}", one.word, other.word))
    };
    let against = |folder: &Side, list: &Side| {
        let command = format!("fsure verify {} --against {}", folder.word, list.word);
        with_command("To read each file from the medium and judge it by the list", &command)
    };
    let text = match (here.is_recorded, there.is_recorded) {
        // The side that is known to be damaged is healed from the other one.
        (true, true) if found.is_known_damaged == [false, true] => heal(there, here),
        (true, _) if there.is_folder => heal(here, there),
        (_, true) if here.is_folder => heal(there, here),
        _ if here.is_folder && there.is_list => against(here, there),
        _ if there.is_folder && here.is_list => against(there, here),
        (true, _) => with_command(WHICH_IS_DAMAGED, &format!("fsure verify {}", here.word)),
        (_, true) => with_command(WHICH_IS_DAMAGED, &format!("fsure verify {}", there.word)),
        _ => "Neither side is a recorded folder, so that nothing tells which of them is right."
            .to_owned(),
    };
    Some(text + "\n")
}

const WHICH_IS_DAMAGED: &str = "The record tells whether files are damaged or lost. To see it";

/// Says how many files were not read, and how to read them: a record does not show that the
/// content of its file rotted since.
fn unread(found: &Comparison, sides: &[Side; 2], is_next_step: bool) -> String {
    let [here, there] = sides;
    let sides = [(found.recorded_here, here, "here"), (found.recorded_there, there, "there")];
    let sides: Vec<_> = sides.into_iter().filter(|(files, ..)| *files > 0).collect();
    let counts =
        sides.iter().map(|(files, _, side)| format!("{} {side}", number(*files, "file", "files")));
    let counts = counts.collect::<Vec<_>>().join(" and ");
    let folders = sides.iter().filter(|(_, side, _)| side.is_folder && is_next_step);
    let mut folders: Vec<_> = folders.map(|(_, side, _)| *side).collect();
    folders.dedup_by_key(|side| &side.resolved);
    let folders: Vec<_> = folders.iter().map(|side| &*side.word).collect();
    let sentence = format!("Not read, the record stands for the content: {counts}.");
    match folders.join(" ").as_str() {
        _ if sides.is_empty() => String::new(),
        "" => sentence + "\n",
        folders => {
            let command = format!("fsure verify {folders}");
            with_command(&format!("{sentence} To read them, too"), &command) + "\n"
        }
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
        empty_lists: found.empty_lists,
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
    empty_lists: u64,
    known_damage: u64,
    recorded_here: u64,
    recorded_there: u64,
    bytes_read: u64,
    exit_code: u8,
}
