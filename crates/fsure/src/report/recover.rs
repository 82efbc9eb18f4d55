//! The report on a damaged record, for a person and for a program.

use serde::Serialize;

use super::json::line;
use super::{RootPaths, number, with_command};
use fsure_core::escape;
use fsure_core::{count, safe};
use fsure_integrity::CatalogRepair;

/// The report for a person.
pub fn text(paths: &RootPaths, recovery: &CatalogRepair) -> String {
    let root = escape(&fsure_os::path::bytes(paths.root()));
    let Some(damage) = &recovery.damage else {
        return format!("recover {root}\n\nThe record is sound: there is nothing to do.\n");
    };
    let found = &recovery.recovered;
    let mut text = format!("recover {root}\n\nDamaged: {}\n\n", safe(damage));
    for (what, rows) in [
        ("Rows found sound in the damaged record", found.from_catalog),
        ("Rows from its backup", found.from_backup),
        ("Rows from sidecars", recovery.from_sidecars),
        ("Rows known to be lost", recovery.lost()),
        ("Files whose block values are lost", recovery.without_blocks),
    ] {
        text += &format!("{what:<42}  {:>10}\n", count(rows));
    }
    if found.bytes_unreadable > 0 {
        let bytes = count(found.bytes_unreadable);
        text += &format!("{:<42}  {bytes:>10}\n", "Bytes that cannot be read from the medium");
    }
    text.push('\n');
    for sentence in sentences(paths, recovery) {
        text += &sentence;
        text.push('\n');
    }
    text
}

fn sentences(paths: &RootPaths, recovery: &CatalogRepair) -> Vec<String> {
    let found = &recovery.recovered;
    let rows = number(recovery.rows, "row", "rows");
    let verify = paths.command("verify");
    let verify = if recovery.is_root_unproved { verify + " --allow-other-disk" } else { verify };
    let mut sentences = Vec::new();
    sentences.push(match (found.is_whole(), recovery.is_dry_run) {
        (true, false) => format!("The record is WHOLE again: {rows}, as many as were written."),
        (true, true) => {
            format!("The record would be whole again: {rows}, as many as were written.")
        }
        (false, _) if recovery.lost() == 0 && found.has_all_rows => {
            format!("All {rows} of files, folders and links are proved to be there.")
        }
        (false, false) => format!(
            "The record has {rows}, and it is NOT PROVED that none is missing. Files whose row is \
             lost count as 'new': compare them with copies before you run '{}', which records them \
             as they are.",
            paths.command("update")
        ),
        (false, true) => format!(
            "The record would have {rows}, and it is not proved that none would be missing. \
             '--from FILE' names a backup that is kept elsewhere."
        ),
    });
    if !found.lost_tables.is_empty() {
        let lost: Vec<_> = found.lost_tables.iter().map(|table| content_of(table)).collect();
        sentences.push(with_command(
            &format!(
                "It is not proved that these are complete: {}. To find damage again",
                lost.join(", ")
            ),
            &verify,
        ));
    }
    if recovery.is_root_unproved {
        sentences.push(with_command(
            "The record does not tell whether this folder is the recorded one. If it is",
            &verify,
        ));
    }
    if recovery.is_dry_run {
        let again = "Nothing was changed: to recover the record, run it again without '--dry-run'.";
        sentences.push(again.to_owned());
    }
    if found.settings_are_lost {
        sentences.push(
            "The options of 'update' that the record kept are lost: if you used '--digest' or \
             '--cross-file-systems', give them again."
                .to_owned(),
        );
    }
    if recovery.without_blocks > 0 {
        sentences.push(format!(
            "To compute block values again, run '{} --full'; until then these files are verified \
             and healed as a whole.",
            paths.command("update")
        ));
    }
    if let Some(kept) = &recovery.kept_as {
        let kept = kept.to_string_lossy();
        sentences.push(format!("The damaged record is kept as {}.", safe(&kept)));
    }
    sentences
}

/// The content of a table beside that of the files, for a person.
fn content_of(table: &str) -> &str {
    match table {
        "choice" => "what 'update' was asked to record beyond content ('--meta')",
        "nested" => "folders with a record of their own",
        "finding" => "known damage",
        "metadata" => "modes, owners and attributes",
        "generation" => "the history of updates",
        "verification" => "the history of verifications",
        "redated" => "the counts of an interrupted update",
        "accepted" => "the list of accepted changes",
        "file_system" => "the file systems (their files are judged as copies)",
        other => other,
    }
}

/// The report for a program; no line end.
pub fn json(root: &str, recovery: &CatalogRepair) -> String {
    let found = &recovery.recovered;
    line(&RecoveryLine {
        r#type: "summary",
        command: "recover",
        root,
        damage: recovery.damage.as_deref(),
        rows: recovery.rows,
        rows_before: found.rows_before,
        from_catalog: found.from_catalog,
        from_backup: found.from_backup,
        from_sidecars: recovery.from_sidecars,
        lost: recovery.lost(),
        without_blocks: recovery.without_blocks,
        is_whole: found.is_whole(),
        has_current_backup: found.has_current_backup,
        lost_tables: &found.lost_tables,
        bytes_unreadable: found.bytes_unreadable,
        is_dry_run: recovery.is_dry_run,
        kept_as: recovery.kept_as.as_ref().map(|kept| kept.to_string_lossy().into_owned()),
        exit_code: recovery.exit_code().number(),
    })
}

#[derive(Serialize)]
struct RecoveryLine<'a> {
    r#type: &'static str,
    command: &'static str,
    root: &'a str,
    damage: Option<&'a str>,
    rows: u64,
    rows_before: Option<u64>,
    from_catalog: u64,
    from_backup: u64,
    from_sidecars: u64,
    lost: u64,
    without_blocks: u64,
    is_whole: bool,
    has_current_backup: bool,
    lost_tables: &'a [&'static str],
    bytes_unreadable: u64,
    is_dry_run: bool,
    kept_as: Option<String>,
    exit_code: u8,
}
