//! Reports the results of `export` and `import`, for the user and for a program.

use std::path::Path;

use serde::Serialize;

use super::{RootPaths, number, with_command};
use fsure_core::units;
use fsure_core::{RelPath, safe};
use fsure_integrity::{Exported, Imported};

/// Returns the result of an export to a file or a folder, for the user.
pub fn exported(paths: &RootPaths, done: &Exported, to: &Path) -> String {
    let files = number(done.files, "file", "files");
    let size = units::size(done.bytes);
    let mut text = format!("Exported {files} ({size}) to {}.", safe(&to.display().to_string()));
    for (count, what) in [
        (done.not_expressed, "LEFT OUT, because the list cannot express its name"),
        (done.without_digest, "LEFT OUT, because the record lacks the digest that the list needs"),
        (done.bad, "LEFT OUT, because its record fails its own seal"),
        (done.known_damage.total(), "in it KNOWN TO BE DAMAGED: the list has the recorded digests"),
        (done.gone, "recorded as gone, and left out"),
        (done.not_recorded, "of '--files-from' NOT RECORDED, and left out"),
    ] {
        if count > 0 {
            text += &format!("\n{} {what}.", number(count, "file", "files"));
        }
    }
    if done.is_in_root {
        let sentence = "\nThe list is in the recorded folder, so that the next verify calls it new. \
                        To record it, too";
        text += &with_command(sentence, &paths.command_on("update", &RelPath::root()));
    }
    text
}

/// The same for a program.
pub fn exported_json(done: &Exported) -> String {
    line(&ExportLine {
        r#type: "summary",
        command: "export",
        files: done.files,
        bytes: done.bytes,
        not_expressed: done.not_expressed,
        without_digest: done.without_digest,
        gone: done.gone,
        not_recorded: done.not_recorded,
        changed: done.changed,
        absent: done.absent,
        record_bad: done.bad,
        known_damage: done.known_damage.total(),
        exit_code: done.exit_code().number(),
    })
}

/// Advice on a file without one line that names a file.
const NOT_A_LIST: &str = "\nIt is not a list of checksums, or of a format that '--format' has to \
                          name: fsure help import";

/// Returns the result of an import, for the user.
pub fn imported(paths: &RootPaths, done: &Imported) -> String {
    let recorded = number(done.recorded, "file", "files");
    let read = "file that was read and matches the list";
    let proven = number(done.recorded, read, "files that were read and match the list");
    let mut text = match done.is_proven {
        _ if done.is_empty => "Nothing was recorded: the list names no file.".to_owned(),
        false if done.recorded == 0 => "Nothing is new to the record.".to_owned(),
        true if done.is_dry_run => {
            format!("Would record {proven}.")
        }
        false if done.is_dry_run => format!("Would record {recorded} from the list."),
        true => format!("Recorded {proven}."),
        false => format!("Recorded {recorded} from the list, none of which is verified yet."),
    };
    for (count, what) in [
        (done.mismatched, "NOT MATCHING THE LIST, and not recorded"),
        (done.unread, "that could NOT BE READ, and not recorded"),
        (done.missing, "of the list missing, and not recorded"),
        (done.absent, "of them missing, which the next verify reports"),
        (done.known, "recorded before with the same digests"),
        (done.incomparable, "recorded before with other kinds of digests, and left unchanged"),
        (done.conflicts, "recorded before with ANOTHER DIGEST, and left unchanged"),
    ] {
        if count > 0 {
            text += &format!("\n{} {what}.", number(count, "file", "files"));
        }
    }
    for (count, what) in [
        (done.malformed, "of the list that CANNOT BE UNDERSTOOD"),
        (done.unusable, "of the list that CANNOT BE USED"),
    ] {
        if count > 0 {
            text += &format!("\n{} {what}.", number(count, "line", "lines"));
        }
    }
    if done.is_empty {
        text += NOT_A_LIST;
    }
    if done.absent > done.recorded / 2 {
        text += "\nMost of these files are not here: if the list is about another folder, name that with \
                 '--root DIR'.";
    }
    if done.is_dry_run {
        let without = match done.recorded {
            0 => "Without -n, nothing would be recorded either.",
            _ => "Without -n, this would be recorded.",
        };
        return format!("{text}\nDry run: nothing was written. {without}");
    }
    if done.recorded > 0 && !done.is_proven {
        text += "\n";
        let command = paths.command_allowing("verify", done.verify_allows);
        text += &with_command("To read and judge the files", &command);
    }
    text
}

/// The same for a program.
pub fn imported_json(root: &str, done: &Imported) -> String {
    line(&ImportLine {
        r#type: "summary",
        command: "import",
        root,
        recorded: done.recorded,
        absent: done.absent,
        known: done.known,
        incomparable: done.incomparable,
        conflicts: done.conflicts,
        malformed: done.malformed,
        unusable: done.unusable,
        mismatched: done.mismatched,
        unread: done.unread,
        missing: done.missing,
        dry_run: done.is_dry_run,
        exit_code: done.exit_code().number(),
    })
}

fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("numbers and text under fixed names")
}

#[derive(Serialize)]
struct ExportLine {
    r#type: &'static str,
    command: &'static str,
    files: u64,
    bytes: u64,
    not_expressed: u64,
    without_digest: u64,
    gone: u64,
    not_recorded: u64,
    changed: u64,
    absent: u64,
    record_bad: u64,
    known_damage: u64,
    exit_code: u8,
}

#[derive(Serialize)]
struct ImportLine<'a> {
    r#type: &'static str,
    command: &'static str,
    root: &'a str,
    recorded: u64,
    absent: u64,
    known: u64,
    incomparable: u64,
    conflicts: u64,
    malformed: u64,
    unusable: u64,
    mismatched: u64,
    unread: u64,
    missing: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    exit_code: u8,
}
