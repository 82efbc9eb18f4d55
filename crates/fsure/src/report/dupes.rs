//! Files of equal content, for a person and for a program.

use serde::Serialize;

use super::json::line;
use super::{RootPaths, number};
use fsure_core::digest::hex;
use fsure_core::json_path_and_bytes;
use fsure_core::units;
use fsure_integrity::model::{Duplicate, Duplicates};

/// One file for a person; the first of a group after a line with its size.
pub fn text_line(paths: &RootPaths, duplicate: &Duplicate, is_first: bool) -> String {
    let head = if is_first {
        format!("{} each, {}\n", units::size(duplicate.size), hex(&duplicate.digest))
    } else {
        String::new()
    };
    let link = if duplicate.is_link { "  (hard link to the file above)" } else { "" };
    format!("{head}    {}{link}", paths.shown(&duplicate.path))
}

/// Returns the result in a few sentences for the user.
pub fn text_summary(paths: &RootPaths, found: &Duplicates) -> String {
    let root = paths.shown_scope();
    if let Some(offline) = &found.offline {
        return format!(
            "{root}: OFFLINE: {offline}. Nothing was read. If its disk is not mounted, mount it, \
             and run the same command again.\n"
        );
    }
    let mut text = match found.groups {
        0 => format!("{root}: no two files have the same content.\n"),
        groups => format!(
            "{root}: {} with the same content in {}; one of each would save {}.\n",
            number(found.files, "file", "files"),
            number(groups, "group", "groups"),
            units::size(found.bytes_saved)
        ),
    };
    if found.files_read > 0 {
        let files = number(found.files_read, "file", "files");
        let bytes = units::size(found.bytes_read);
        text += &format!(
            "Read for this: {files} without a current record ({bytes}); to record them, run \
             '{}'.\n",
            paths.command("update")
        );
    }
    for (count, what) in [
        (found.unread, "could NOT BE READ: fsure did not compare"),
        (found.changed, "changed during the run: fsure did not compare"),
    ] {
        if count > 0 {
            let them = if count == 1 { "it" } else { "them" };
            text += &format!("{} {what} {them}.\n", number(count, "path", "paths"));
        }
    }
    if found.bad_records > 0 {
        let records = number(found.bad_records, "record", "records");
        let verify = paths.command("verify");
        text += &format!("RECORD BAD: {records} not used; run '{verify}'.\n");
    }
    text
}

/// One file for a program; no line end.
pub fn json_line(root: &str, duplicate: &Duplicate) -> String {
    let (path, path_bytes) = json_path_and_bytes(duplicate.path.as_bytes());
    let Duplicate { group, size, is_link, .. } = *duplicate;
    let digest = hex(&duplicate.digest);
    line(&DuplicateLine {
        r#type: "duplicate",
        root,
        group,
        path,
        path_bytes,
        size,
        digest,
        is_link,
    })
}

/// Returns the result of one root or, without a root, of all roots as a line of JSON; no
/// line end.
pub fn json_summary(root: Option<&str>, found: &Duplicates, exit_code: u8) -> String {
    let r#type = if root.is_some() { "root" } else { "summary" };
    let counts = DuplicateCounts {
        groups: found.groups,
        files: found.files,
        links: found.links,
        bytes_saved: found.bytes_saved,
        files_read: found.files_read,
        bytes_read: found.bytes_read,
        unread: found.unread,
        changed: found.changed,
        bad_records: found.bad_records,
        known_damage: found.known_damage.total(),
        is_offline: found.offline.is_some(),
        was_stopped: found.was_stopped,
    };
    line(&DuplicatesSummary { r#type, command: "dupes", root, counts, exit_code })
}

#[derive(Serialize)]
struct DuplicateLine<'a> {
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
struct DuplicatesSummary<'a> {
    r#type: &'static str,
    command: &'static str,
    root: Option<&'a str>,
    #[serde(flatten)]
    counts: DuplicateCounts,
    exit_code: u8,
}

#[derive(Serialize)]
struct DuplicateCounts {
    groups: u64,
    files: u64,
    links: u64,
    bytes_saved: u64,
    files_read: u64,
    bytes_read: u64,
    unread: u64,
    changed: u64,
    bad_records: u64,
    known_damage: u64,
    is_offline: bool,
    was_stopped: bool,
}
