//! Files of equal content, for a person and for a program.

use serde::Serialize;

use super::json::{line, text_and_bytes};
use super::number;
use crate::words::digest::hex;
use crate::words::{Duplicate, Duplicates, units};

/// One file for a person; the first of a group after a line with its size.
pub fn text_line(root: &str, duplicate: &Duplicate, is_first: bool) -> String {
    let head = if is_first {
        format!("{} each, {}\n", units::size(duplicate.size), hex(&duplicate.digest))
    } else {
        String::new()
    };
    let link = if duplicate.is_link { "  (another name of the one above)" } else { "" };
    format!("{head}    {root}/{}{link}", duplicate.path.shown())
}

/// What was found, in a few sentences for a person.
pub fn text_summary(root: &str, found: &Duplicates) -> String {
    let mut text = match found.groups {
        0 => format!("{root}: no two files of equal content are recorded.\n"),
        groups => format!(
            "{root}: {} of equal content in {}; {} would be saved with one of each.\n",
            number(found.files, "file", "files"),
            number(groups, "group", "groups"),
            units::size(found.bytes_saved)
        ),
    };
    if found.stale > 0 {
        let files = number(found.stale, "file was", "files were");
        text += &format!(
            "{files} left out, not being as recorded; after 'fsure update' they are compared.\n"
        );
    }
    if found.bad_records > 0 {
        let records = number(found.bad_records, "record", "records");
        text += &format!("RECORD BAD: {records} left out; see 'fsure verify'.\n");
    }
    text
}

/// One file for a program; no line end.
pub fn json_line(root: &str, duplicate: &Duplicate) -> String {
    let (path, path_bytes) = text_and_bytes(duplicate.path.as_bytes());
    let Duplicate { group, size, is_link, .. } = *duplicate;
    let digest = hex(&duplicate.digest);
    line(&Line { r#type: "duplicate", root, group, path, path_bytes, size, digest, is_link })
}

/// What was found in one root, or, without one, in all; no line end.
pub fn json_summary(root: Option<&str>, found: &Duplicates, exit_code: u8) -> String {
    let Duplicates { groups, files, links, bytes_saved, stale, bad_records, was_stopped } = *found;
    let r#type = if root.is_some() { "root" } else { "summary" };
    let counts = Counts { groups, files, links, bytes_saved, stale, bad_records, was_stopped };
    line(&Summary { r#type, command: "dupes", root, counts, exit_code })
}

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    root: &'a str,
    group: u64,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    size: u64,
    digest: String,
    is_link: bool,
}

#[derive(Serialize)]
struct Summary<'a> {
    r#type: &'static str,
    command: &'static str,
    root: Option<&'a str>,
    #[serde(flatten)]
    counts: Counts,
    exit_code: u8,
}

#[derive(Serialize)]
struct Counts {
    groups: u64,
    files: u64,
    links: u64,
    bytes_saved: u64,
    stale: u64,
    bad_records: u64,
    was_stopped: bool,
}
