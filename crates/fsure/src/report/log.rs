//! The history of a record and what was signed, for a person and for a program.

use jiff::tz::TimeZone;
use serde::Serialize;

use super::json::{KnownLine, line};
use super::signed_line::{SignedLine, rfc3339};
use super::{RootPaths, date_and_time, number};
use fsure_core::json_path_and_bytes;
use fsure_core::{count, safe};
use fsure_core::{escape, units};
use fsure_integrity::model::{Basis, Changes, Generation, SignatureInfo, Verification};
use fsure_integrity::trust::describe;
use fsure_integrity::{History, SignOutcome, SignedGeneration};

/// The history for a person.
pub fn text(paths: &RootPaths, history: &History) -> String {
    let mut lines: Vec<(i64, String)> = history
        .generations
        .iter()
        .map(|(one, claim)| (one.at_s, generation_text(one, claim.as_ref())))
        .collect();
    lines.extend(history.verifications.iter().map(|one| (one.at_s, verification_text(one))));
    // Of one second in the order above: what was verified had been recorded.
    lines.sort_by_key(|(at_s, _)| *at_s);
    let root = escape(&fsure_os::path::bytes(paths.root()));
    let mut text = format!("log {root}\n\n");
    for (_, line) in lines {
        text += &line;
        text.push('\n');
    }
    text.push('\n');
    text += &known_damage(paths, history);
    text += &match (&history.objection, &history.signed) {
        (Some(why), _) => {
            format!("NOT AS SIGNED: {}.\n", safe(why))
        }
        (None, Some(signed)) => format!("{}\n", signature(signed)),
        (None, None) => {
            let signed = history.generations.iter().any(|(_, claim)| claim.is_some());
            let what = match (signed, history.generations.is_empty()) {
                (true, _) => "No signature was checked: '--signed-by KEY' checks it",
                (_, true) => "This record has no history, and it is not signed",
                _ => "Nothing is signed: any user with write access could have written this",
            };
            format!("{what}.\n")
        }
    };
    text
}

/// The files that are known to be damaged, each with its dates.
fn known_damage(paths: &RootPaths, history: &History) -> String {
    let mut text = String::new();
    for (path, known) in &history.known_damage {
        let (verdict, path) = (known.verdict.name(), paths.shown(path));
        let (found, seen) = (date(known.found_s), date(known.seen_s));
        text += &format!("{verdict:<12} {path}  found on {found}, last read on {seen}\n");
    }
    let omitted = history.damaged_files.total() - history.known_damage.len() as u64;
    if omitted > 0 {
        text += &format!("... and {} more\n", count(omitted));
    }
    if history.damaged_files.total() > 0 {
        let files = number(history.damaged_files.total(), "file is", "files are");
        let (heal, verify) = (paths.command("heal"), paths.command("verify"));
        let heal = match history.has_recovery_data {
            true => format!("To heal from the recovery data, run '{heal} --yes'"),
            false => format!("To heal from a copy, run '{heal} --from COPY --yes'"),
        };
        text += &format!("{files} known to be DAMAGED. {heal}, and then '{verify}'.\n\n");
    }
    text
}

/// Returns a sentence on a signature: its key, and what was signed with it.
pub(super) fn signature(signed: &SignatureInfo) -> String {
    format!(
        "Signed with {} as generation {} of {} on {} (chain {}).",
        signed.key_id,
        signed.generation,
        safe(&signed.root),
        date(signed.at_s),
        signed.chain
    )
}

fn date(at_s: i64) -> String {
    date_and_time(at_s, &TimeZone::system())
}

fn generation_text(one: &Generation, claim: Option<&SignedGeneration>) -> String {
    let command = escape(one.command.as_bytes());
    let head = format!("{:>5}  {}  {command:<7}  ", one.number, date(one.at_s));
    let Some(claim) = claim else {
        return format!("{head}{}", describe(&one.changes));
    };
    let files = number(claim.files, "file", "files");
    let (size, key, head_digest) = (units::size(claim.bytes), &claim.key_id, &claim.head);
    format!("{head}{files}, {size}, with key {key}\n       head {head_digest}")
}

fn verification_text(one: &Verification) -> String {
    let command = escape(one.command.as_bytes());
    let files = number(one.files, "file", "files");
    let (date, size) = (date(one.at_s), units::size(one.bytes));
    format!("    -  {date}  {command:<7}  {files} read, {size}, exit code {}", one.exit_code)
}

/// The history for a program: a line each, the last one the summary.
pub fn json(root: &str, history: &History) -> Vec<String> {
    let generations = history.generations.iter().map(|(one, claim)| {
        let Changes { new, modified, touched, missing, moved, accepted, bytes } = one.changes;
        line(&GenerationLine {
            r#type: "generation",
            root,
            generation: one.number,
            time: rfc3339(one.at_s),
            command: &one.command,
            made_by: &one.made_by,
            changes: ChangesLine { new, modified, touched, missing, moved, accepted, bytes },
            signed_with: claim.as_ref().map(|claim| &*claim.key_id),
            head: claim.as_ref().map(|claim| &*claim.head),
            files: claim.as_ref().map(|claim| claim.files),
            bytes: claim.as_ref().map(|claim| claim.bytes),
        })
    });
    let verifications = history.verifications.iter().map(|one| {
        line(&VerificationLine {
            r#type: "verification",
            root,
            generation: one.generation,
            time: rfc3339(one.at_s),
            command: &one.command,
            files: one.files,
            bytes: one.bytes,
            exit_code: one.exit_code,
        })
    });
    let known_damage = history.known_damage.iter().map(|(path, known)| {
        let (path, path_bytes) = json_path_and_bytes(path.as_bytes());
        let known = KnownLine::of(known, Basis::KnownDamage);
        line(&DamageLine { r#type: "known-damage", root, path, path_bytes, known })
    });
    let summary = line(&LogSummaryLine {
        r#type: "summary",
        command: "log",
        root,
        known_damage: history.damaged_files.total(),
        generations: history.generations.len() as u64,
        verifications: history.verifications.len() as u64,
        signed: history.signed.as_ref().map(SignedLine::of),
        record_untrusted: history.objection.as_deref(),
        exit_code: history.exit_code().number(),
    });
    generations.chain(verifications).chain(known_damage).chain([summary]).collect()
}

/// Returns the result of signing, for the user.
pub fn sealed_text(root: &str, sealed: &SignOutcome) -> String {
    let SignOutcome { signed, files, bytes, changes, .. } = sealed;
    let what = format!("{} ({})", number(*files, "file", "files"), units::size(*bytes));
    let since = match changes {
        none if *none == Changes::default() => String::new(),
        some => format!("Since the signature before: {}.\n", describe(some)),
    };
    let file = safe(&sealed.file.to_string_lossy()).to_string();
    if sealed.is_dry_run {
        return format!(
            "Would sign {}: generation {}, {what}, with key {}.\n{since}Statement: {file}\n\
             Dry run: nothing was written; without -n this would sign the record.\n",
            safe(root),
            signed.generation,
            signed.key_id,
        );
    }
    format!(
        "Signed {}: generation {}, {what}, with key {}.\n{since}Statement: {file}\nHead: {}\n",
        safe(root),
        signed.generation,
        signed.key_id,
        signed.head
    )
}

/// Returns the result of signing, for a program; no line end.
pub fn sealed_json(root: &str, sealed: &SignOutcome) -> String {
    let Changes { new, modified, touched, missing, moved, accepted, bytes } = sealed.changes;
    line(&SealedLine {
        r#type: "summary",
        command: "seal",
        root,
        signed: SignedLine::of(&sealed.signed),
        files: sealed.files,
        bytes: sealed.bytes,
        changes: ChangesLine { new, modified, touched, missing, moved, accepted, bytes },
        statement: sealed.file.to_string_lossy().into_owned(),
        dry_run: sealed.is_dry_run,
        exit_code: 0,
    })
}

#[derive(Serialize)]
struct ChangesLine {
    new: u64,
    modified: u64,
    touched: u64,
    missing: u64,
    moved: u64,
    accepted: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct GenerationLine<'a> {
    r#type: &'static str,
    root: &'a str,
    generation: u64,
    time: String,
    command: &'a str,
    made_by: &'a str,
    changes: ChangesLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_with: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct VerificationLine<'a> {
    r#type: &'static str,
    root: &'a str,
    generation: u64,
    time: String,
    command: &'a str,
    files: u64,
    bytes: u64,
    exit_code: u8,
}

#[derive(Serialize)]
struct DamageLine<'a> {
    r#type: &'static str,
    root: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    known: KnownLine,
}

#[derive(Serialize)]
struct LogSummaryLine<'a> {
    r#type: &'static str,
    command: &'static str,
    root: &'a str,
    known_damage: u64,
    generations: u64,
    verifications: u64,
    signed: Option<SignedLine>,
    record_untrusted: Option<&'a str>,
    exit_code: u8,
}

#[derive(Serialize)]
struct SealedLine<'a> {
    r#type: &'static str,
    command: &'static str,
    root: &'a str,
    signed: SignedLine,
    files: u64,
    bytes: u64,
    changes: ChangesLine,
    statement: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    exit_code: u8,
}
