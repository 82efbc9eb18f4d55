//! Reports the result of keeping recovery data, for the user and for a program.

use std::path::Path;

use serde::Serialize;

use super::json::line;
use super::{RootPaths, number, with_command};
use fsure_core::safe;
use fsure_core::units;
use fsure_integrity::model::{ParityUpdate, ProtectOutcome};

/// For a person, several lines.
pub fn text_summary(root: &str, folder: &Path, paths: &RootPaths, done: &ProtectOutcome) -> String {
    let (whole, tenth) = (done.per_mille / 10, done.per_mille % 10);
    let percent = if tenth == 0 { whole.to_string() } else { format!("{whole}.{tenth}") };
    let (protected, read, wrote) = match done.is_dry_run {
        true => ("Would protect", "Would read", "write"),
        false => ("Protected", "Read", "wrote"),
    };
    let mut text = format!(
        "protect {root}\n\n{protected} {} ({}) by {} of recovery data, {percent} %: fsure can \
         restore that share of each\ngroup of up to 64 MiB, in pieces of 16 KiB.\n",
        number(done.files, "file", "files"),
        units::size(done.bytes),
        units::size(done.space),
    );
    let to = match done.is_dry_run {
        true => format!(" to {}", safe(&folder.display().to_string())),
        false => String::new(),
    };
    text += &format!(
        "Groups: {} kept, {} made, {} deleted. {read} {}, {wrote} {}{to}.\n",
        done.kept,
        done.made,
        done.deleted,
        units::size(done.bytes_read),
        units::size(done.bytes_written),
    );
    if done.damaged > 0 {
        let groups = number(done.damaged, "group was", "groups were");
        let made = if done.is_dry_run { "would be made" } else { "made" };
        text +=
            &format!("{groups} of recovery data DAMAGED, and {made} again. Check the medium.\n");
    }
    if done.left_out > 0 {
        let files = number(done.left_out, "file is", "files are");
        let why = match done.left_out == 1 {
            true => "its content differs from the record or cannot be read",
            false => "the content of each differs from the record or cannot be read",
        };
        text += &with_command(
            &format!("{files} NOT PROTECTED, because {why}. To see it"),
            &paths.command("verify"),
        );
        text += "\n";
    }
    if done.listed_only > 0 {
        let files = number(done.listed_only, "of them was", "of them were");
        let sentence = format!("{files} recorded from a list only. To record the content");
        text += &with_command(&sentence, &paths.command("update"));
        text += "\n";
    }
    if done.is_dry_run {
        text += "Dry run: nothing was written, and none of the files was read. Without -n, files that are \
                 not as recorded are left out.\n";
    }
    text
}

/// Recovery data that are not of what is recorded.
pub(super) fn sentence(parity: &ParityUpdate) -> Option<String> {
    match parity {
        ParityUpdate::Stale(why) => Some(format!(
            "The recovery data are NOT UP TO DATE: {}. Remove the cause and run the same command \
             again.",
            safe(why)
        )),
        ParityUpdate::Kept(done) if done.left_out > 0 => Some(format!(
            "{} NOT PROTECTED by recovery data; see above for the reasons.",
            number(done.left_out, "file is", "files are")
        )),
        ParityUpdate::Kept(_) => None,
    }
}

/// For a program; no line end.
pub fn json_summary(root: &str, done: &ProtectOutcome) -> String {
    line(&ProtectSummary {
        r#type: "summary",
        command: "protect",
        root,
        redundancy: f64::from(done.per_mille) / 1000.0,
        files: done.files,
        bytes: done.bytes,
        room: done.space,
        groups_kept: done.kept,
        groups_made: done.made,
        groups_deleted: done.deleted,
        groups_damaged: done.damaged,
        left_out: done.left_out,
        bytes_read: done.bytes_read,
        bytes_written: done.bytes_written,
        dry_run: done.is_dry_run,
        exit_code: done.exit_code().number(),
    })
}

#[derive(Serialize)]
struct ProtectSummary<'a> {
    r#type: &'static str,
    command: &'static str,
    root: &'a str,
    redundancy: f64,
    files: u64,
    bytes: u64,
    room: u64,
    groups_kept: u64,
    groups_made: u64,
    groups_deleted: u64,
    groups_damaged: u64,
    left_out: u64,
    bytes_read: u64,
    bytes_written: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    exit_code: u8,
}
