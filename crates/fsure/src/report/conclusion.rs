//! The end of the report for a person: what the counts mean, in plain words,
//! and what to do now. It claims no more than the run has looked at.

use super::log::signature;
use super::paths::{LinkEnd, RootLink, allowing};
use super::{RootPaths, number, protect, scrub, with_command};
use fsure_core::{ExitCode, RelPath, units};
use fsure_core::{count, safe, who_may_read};
use fsure_integrity::model::{Outcome, StopReason, Verdict};

/// Returns sentences on what the results mean and what to do now: one for everything that
/// needs one, the gravest first.
pub(super) fn closing(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let healing = outcome.healing.iter();
    let healing = healing.flat_map(|one| super::heal::closing(paths, one, outcome));
    let mut sentences = healing.collect::<Vec<_>>();
    sentences.extend(untrusted(paths, outcome));
    sentences.extend(damage(paths, outcome));
    sentences.extend(unread(outcome));
    sentences.extend(beside(paths, outcome));
    sentences.extend(unfinished(paths, outcome));
    let not_looked_at = not_looked_at(paths, outcome);
    let left_out = not_looked_at.len();
    sentences.extend(not_looked_at);
    sentences.extend(outcome.parity.as_ref().and_then(protect::sentence));
    let is_sound = outcome.record_untrusted.is_none() && outcome.offline.is_none();
    if outcome.is_update
        && is_sound
        && !matches!(outcome.stopped, Some(StopReason::RecordFailed(_)))
    {
        sentences.extend(recorded(paths, outcome));
    } else if !outcome.is_update && outcome.offline.is_none() {
        sentences.extend(differences(paths, outcome));
    }
    let only_left_out = sentences.len() == left_out;
    if let Some(scrub) = &outcome.scrub {
        sentences.extend(scrub::sentences(paths, scrub, outcome));
    } else if only_left_out && outcome.offline.is_none() {
        sentences.push(all_is_well(paths, outcome));
    }
    sentences.extend(outcome.signed.as_ref().map(signature));
    if outcome.forgotten > 0 {
        let records = number(outcome.forgotten, "record", "records");
        let verb = if outcome.is_dry_run { "Would forget" } else { "Forgot" };
        sentences.push(format!("{verb} {records} of what had been gone for long enough."));
    }
    // Recording from memory is what `update` may do; proving from it is not.
    if outcome.bytes.cached > 0 && !outcome.is_update {
        let cached = units::size(outcome.bytes.cached);
        sentences.push(format!(
            "Warning: {cached} came through the page cache, possibly not from the medium: \
             they prove nothing about it."
        ));
    }
    if outcome.bytes.remote > 0 && !outcome.is_update {
        let remote = units::size(outcome.bytes.remote);
        sentences.push(format!(
            "Note: {remote} came from a server or a program, which may have had them in memory: \
             for the medium behind it, verify there."
        ));
    }
    // A heal has a sentence of its own.
    if outcome.is_record_read_only && outcome.exit_code() != ExitCode::Clean {
        let first = "The record CANNOT BE WRITTEN by this user or on this mount. Before a command that \
                     follows, change that: mount it so that it can be written, or make it yours.";
        sentences.insert(0, first.to_owned());
    }
    let is_dry_run = outcome.is_dry_run && outcome.healing.is_none() && outcome.offline.is_none();
    sentences.extend(is_dry_run.then(|| dry_run(paths, outcome)));
    sentences
}

/// Says that nothing was written, and what a run that writes would do beyond its report.
fn dry_run(paths: &RootPaths, outcome: &Outcome) -> String {
    if outcome.is_update && recorded(paths, outcome).is_empty() {
        return "Dry run: nothing was written. Without -n, no file would be recorded anew."
            .to_owned();
    }
    let more = match outcome.is_update {
        true => "update records this, and brings recovery data in line with it",
        false => "the run also saves when these files were verified, and what is wrong with them",
    };
    format!("Dry run: nothing was written. Without -n, {more}.")
}

/// `record it:` and the command; of several, that for the first.
fn record_it(paths: &RootPaths, first: Option<&RelPath>, of_several: bool) -> String {
    let command = match first {
        Some(path) => paths.accept(path),
        None => format!("{} --accept PATH", paths.command("update")),
    };
    with_command(if of_several { "record it, the first with" } else { "record it" }, &command)
}

pub(super) fn untrusted(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let whole = outcome.record_untrusted.as_ref().map(|why| {
        if outcome.is_against_list {
            return format!("The list CANNOT BE TRUSTED as a whole: {}.", safe(why));
        }
        with_command(
            &format!(
                "The record CANNOT BE TRUSTED: {}. Put it together from what is sound of it and \
                 from its backup",
                safe(why)
            ),
            &paths.command_on("recover", &RelPath::root()),
        )
    });
    let is_bad = |verdict: Verdict| verdict == Verdict::RecordBad;
    let rows = subject(outcome, is_bad).map(|(who, is)| {
        let first = outcome.to_accept.verdict(is_bad);
        let look = with_command(
            &format!(
                "RECORD BAD for {who}: the record fails its own seal, which says nothing of the \
                 data. Look for it in the backup"
            ),
            &paths.command_on("recover", &RelPath::root()),
        );
        let record_it = record_it(paths, first, is == "are");
        format!("{look}\nOnly if the data is known to be good, {record_it}")
    });
    whole.into_iter().chain(rows).collect()
}

fn damage(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let mismatch = subject(outcome, |verdict| verdict == Verdict::Mismatch).map(|(who, is)| {
        format!("{who} {is} a MISMATCH: other content than the list says. Put back good copies.")
    });
    let is_dated = |verdict: Verdict| verdict.is_suspicious() && verdict != Verdict::Mismatch;
    // Of what a heal repairs, or would, its own sentences speak.
    let is_healed = outcome.healing.as_ref().is_some_and(|healing| healing.unhealed.total() == 0);
    let suspicious = subject(outcome, is_dated).filter(|_| !is_healed).map(|(who, is)| {
        let first = outcome.to_accept.verdict(is_dated);
        format!(
            "{who} {is} SUSPICIOUS: other content than recorded, and no date that explains it. \
             {} if the content is known to be right, {}",
            put_back(paths, outcome),
            record_it(paths, first, is == "are")
        )
    });
    let flaky = subject(outcome, |verdict| verdict == Verdict::Flaky).map(|(who, is)| {
        format!(
            "{who} {is} FLAKY: a first read failed or differed, a second gave the recorded \
             content. Copy the data while it can be read, then check medium, cable and memory."
        )
    });
    let open = outcome.known_damage.total();
    let known = (open > 0).then(|| {
        let (who, it) = match open {
            1 => ("1 file was".to_owned(), "it was"),
            _ => (format!("{} files were", count(open)), "they were"),
        };
        format!(
            "{who} DAMAGED when last read as recorded, and nothing shows that {it} put right. \
             {} if the content is known to be right, {}",
            put_back(paths, outcome),
            record_it(paths, outcome.to_accept.known_damage.as_ref(), open > 1)
        )
    });
    mismatch.into_iter().chain(suspicious).chain(flaky).chain(known).collect()
}

/// Says how good copies come back. A heal has just tried it.
fn put_back(paths: &RootPaths, outcome: &Outcome) -> String {
    if outcome.healing.is_some() {
        return "Put back good copies. Only".to_owned();
    }
    let heal = paths.command("heal");
    let from_copy = format!("{heal} --from COPY");
    let advice = match outcome.has_recovery_data {
        true => {
            let first = with_command("Put back what is good, from the recovery data", &heal);
            first + "\n" + &with_command("What these lack, from the folder of a copy", &from_copy)
        }
        false => with_command("Put back what is good, from the folder of a copy", &from_copy),
    };
    advice + "\nOnly"
}

fn unread(outcome: &Outcome) -> Option<String> {
    let (who, _) = subject(outcome, Verdict::is_unread)?;
    let denied = format!("denied: run again {}", who_may_read());
    let advice = [
        (Verdict::Unreadable, "unreadable: try again, then copy what can be read off the medium"),
        (Verdict::Denied, &*denied),
        (Verdict::Busy, "busy: run again when no program writes to it"),
    ];
    let advice = advice.into_iter().filter_map(|(verdict, text)| {
        let there: u64 = by_kind(outcome, |other| other == verdict).iter().sum();
        (there > 0).then(|| format!("{} {text}", count(there)))
    });
    let advice = advice.collect::<Vec<_>>().join("; ");
    Some(format!("{who} could NOT BE READ in full ({advice})."))
}

/// Returns sentences on what is wrong with the metadata, or with the record of it.
fn beside(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let bad = rest_of(outcome.meta_bad).map(|who| {
        format!(
            "RECORD BAD for the metadata of {who}: it fails its own seal, which says nothing of \
             the data. If what is there is right, {}",
            record_it(paths, outcome.to_accept.metadata.as_ref(), outcome.meta_bad > 1)
        )
    });
    let unread = rest_of(outcome.meta_unread)
        .map(|who| format!("The metadata of {who} could NOT BE READ in full."));
    let carriers = &outcome.carriers;
    let count = |records: u64| (records > 0).then(|| number(records, "record", "records"));
    let update = paths.command("update");
    let travelling = [
        (
            carriers.damaged + carriers.conflicts,
            "that travel with the data CANNOT BE TRUSTED; the warnings above name them.",
        ),
        (
            carriers.refused,
            "that are to travel with the data COULD NOT BE WRITTEN; the warnings above say why.",
        ),
        (
            if outcome.is_update { 0 } else { carriers.behind },
            &*with_command(
                "that travel with the data are older than the catalog. Write them again",
                &update,
            ),
        ),
    ];
    let travelling =
        travelling.into_iter().filter_map(|(n, what)| Some(format!("{} {what}", count(n)?)));
    bad.into_iter().chain(unread).chain(travelling).collect()
}

pub(super) fn unfinished(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let offline = outcome.offline.as_ref().map(|offline| {
        let other_record = paths.catalog().map_or(String::new(), |catalog| {
            format!(" If {catalog} is the record of another folder, name that folder.")
        });
        let saved = match outcome.saved_before_offline {
            true => "What this run had recorded before that is saved",
            false => "Nothing was changed",
        };
        let sentence = format!(
            "OFFLINE: {offline}. {saved}. If its disk is not mounted, mount it, and run \
             the same command again.{other_record} Only if this is as it should be"
        );
        let command = same_command(paths, outcome);
        with_command(&sentence, &format!("{command} {}", offline.option()))
    });
    let stopped = outcome.stopped.as_ref().map(|stop| match stop {
        StopReason::Interrupted(_) => interrupted(paths, outcome),
        StopReason::StorageSilent(timeout) => format!(
            "GIVEN UP before the end: again and again the storage did not answer for {} s. Check \
             medium, cable and network; '--timeout' waits longer.",
            timeout.as_secs_f64()
        ),
        StopReason::RecordFailed(why) => {
            let again = ": run the same command again to go on";
            let again = if why.contains("run the same command again") { "" } else { again };
            let why = safe(why);
            format!(
                "The record COULD NOT BE WRITTEN: {why}. It holds what was saved before{again}."
            )
        }
    });
    offline.into_iter().chain(stopped).collect()
}

/// The command of this run, for a hint that adds an option to it.
fn same_command(paths: &RootPaths, outcome: &Outcome) -> String {
    let command = paths.command(outcome.command);
    let command = super::heal::with_replicas(command, &outcome.replicas);
    let command = match outcome.command {
        "heal" if !outcome.is_dry_run => command + " --yes",
        "heal" => command,
        _ if outcome.is_dry_run => command + " --dry-run",
        _ => command,
    };
    allowing(command, outcome.allowed)
}

/// Tells how far a run came that was asked to end, and how it goes on.
fn interrupted(paths: &RootPaths, outcome: &Outcome) -> String {
    if outcome.is_dry_run {
        return "INTERRUPTED before the end of the dry run; nothing is said of the rest."
            .to_owned();
    }
    if outcome.is_update || outcome.scrub.is_some() {
        return "INTERRUPTED before the end; what was done is saved. Run the same command again \
                to go on."
            .to_owned();
    }
    let judged = number(outcome.files.total(), "file was", "files were");
    let rest = match outcome.unjudged_files {
        Some(1) => "1 recorded file was not, and nothing is said of it".to_owned(),
        Some(left) => {
            format!("{} recorded files were not, and nothing is said of them", count(left))
        }
        None => "nothing is said of the rest".to_owned(),
    };
    let mut text = format!("INTERRUPTED before the end: {judged} judged; {rest}.");
    if outcome.hashed > 0 && !outcome.is_against_list && outcome.healing.is_none() {
        text += &with_command(
            " The same command begins anew. To begin with what was verified longest ago",
            &paths.command("scrub"),
        );
    }
    text
}

/// Returns sentences on what is in the record and was not checked: it must not be taken
/// for undamaged.
fn not_looked_at(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let left_out = outcome.recorded_left_out;
    let record_it = record_it(paths, outcome.to_accept.left_out.as_ref(), left_out.by_pattern > 1);
    let parts = [
        (left_out.by_command_line, "by a pattern of the command line", String::new()),
        (left_out.by_pattern, "by a pattern", format!(" If that is meant, {record_it}")),
        (
            left_out.by_border,
            "because another file system or another root is in their place",
            " Is something mounted over them?".to_owned(),
        ),
    ];
    let left_out = parts.into_iter().filter(|(files, ..)| *files > 0).map(|(files, why, hint)| {
        let who = number(files, "recorded file was", "recorded files were");
        format!("{who} LEFT OUT {why}, and so not judged.{hint}")
    });
    let absent = outcome.absent_roots.iter().map(|path| {
        with_command(
            &format!(
                "{} had a record of its own and is NOT THERE: is its medium mounted? If it is \
                 gone for good, forget it",
                paths.shown(path)
            ),
            &paths.accept(path),
        )
    });
    let unusable = (outcome.unusable_entries > 0).then(|| {
        let who = number(outcome.unusable_entries, "entry", "entries");
        format!("{who} of the list COULD NOT BE USED, and so nothing is said of them.")
    });
    let unknown = (outcome.unknown_paths > 0).then(|| {
        let who = number(outcome.unknown_paths, "path was", "paths were");
        format!("{who} NOT THERE and not recorded either; the warnings above name them.")
    });
    left_out.chain(absent).chain(unusable).chain(unknown).collect()
}

/// Returns sentences on what `update` recorded, and on what it does not record unless the
/// user requests it.
fn recorded(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let of = |condition: fn(Verdict) -> bool| subject(outcome, condition).map(|(who, _)| who);
    let parts = [
        ("new", of(|verdict| verdict == Verdict::New)),
        ("changed", settled_edits(outcome).map(|(who, _)| who)),
        ("with another date", of(|verdict| verdict == Verdict::Touched)),
        ("moved", of(|verdict| verdict == Verdict::Moved)),
        ("in another spelling", name_mismatches(outcome)),
        ("with other metadata", rest_of(outcome.meta_changed)),
        ("gone", of(|verdict| verdict == Verdict::Missing)),
    ];
    let parts: Vec<_> =
        parts.into_iter().filter_map(|(what, who)| Some(format!("{} {what}", who?))).collect();
    let verb = if outcome.is_dry_run { "Would record" } else { "Recorded" };
    let recorded = (!parts.is_empty()).then(|| format!("{verb}: {}.", parts.join("; ")));
    let added = outcome.added_digests;
    let completed = (added.files > 0).then(|| {
        let verb = if outcome.is_dry_run { "Would add" } else { "Added" };
        let files = number(added.files, "file, which is", "files, which are");
        format!("{verb} {} to {files} as recorded.", added.digests)
    });
    let accepted = (outcome.accepted.total() > 0).then(|| {
        let who = number(outcome.accepted.total(), "finding was", "findings were");
        match outcome.is_dry_run {
            true => format!("{who} not accepted: without -n the record would hold what is there."),
            false => format!("{who} accepted: the record now holds what is there."),
        }
    });
    let retyped = subject(outcome, |verdict| verdict == Verdict::TypeChanged).map(|(who, is)| {
        let first = outcome.to_accept.verdict(|verdict| verdict == Verdict::TypeChanged);
        let record_it = record_it(paths, first, is == "are");
        format!("{who} {is} of another type than recorded. If that is meant, {record_it}")
    });
    let begun = (outcome.is_first && recorded.is_some() && !outcome.is_dry_run).then(|| {
        let sentence = "The record is new: it takes what is there now for sound. To find out later \
                        whether it still is";
        with_command(sentence, &paths.command("verify"))
    });
    let crossed = outcome.other_file_systems.first().map(|first| {
        let sentence = match outcome.other_file_systems.len() {
            1 => format!("{} is another file system, and was LEFT OUT", paths.shown(first)),
            many => format!(
                "{} folders are other file systems, the first {}, and were LEFT OUT",
                count(many as u64),
                paths.shown(first)
            ),
        };
        let command = paths.command_on("update", &RelPath::root()) + " --cross-file-systems";
        with_command(&format!("{sentence}. To record what is in them, too"), &command)
    });
    // Of recorded files another sentence says that they were left out.
    let new_left_out =
        outcome.left_out_once.saturating_sub(outcome.recorded_left_out.by_command_line);
    let left_out = (new_left_out > 0).then(|| {
        let who = number(new_left_out, "name was", "names were");
        format!(
            "{who} left out by '--exclude', which holds for this run only: verify calls them new. To \
             leave such names out always, put the patterns into {}, a line each.",
            paths.shown(&RelPath::from_bytes(*b".fsureignore"))
        )
    });
    let all = [recorded, left_out, crossed, begun, completed, accepted, retyped];
    all.into_iter().flatten().collect()
}

fn differences(paths: &RootPaths, outcome: &Outcome) -> Option<String> {
    let of = |condition: fn(Verdict) -> bool, what: &str| {
        subject(outcome, condition).map(|(who, is)| format!("{who} {is} {what}"))
    };
    let parts = [
        settled_edits(outcome)
            .map(|(who, is)| format!("{who} {is} changed, with another date to show for it")),
        (outcome.redated_unread > 0).then(|| {
            let who = number(outcome.redated_unread, "file has", "files have");
            format!("{who} another date (no content was read; fsure verify reads it)")
        }),
        of(|verdict| verdict == Verdict::TypeChanged, "of another type"),
        of(|verdict| verdict == Verdict::Moved, "under another name"),
        name_mismatches(outcome).map(|who| {
            let are = if outcome.name_mismatches == 1 { "is" } else { "are" };
            format!("{who} {are} spelled otherwise than recorded")
        }),
        rest_of(outcome.meta_changed).map(|who| format!("{who} with other metadata")),
        // Of what a heal makes again, or cannot, its own sentences speak.
        of(|verdict| verdict == Verdict::Missing, "missing").filter(|_| outcome.healing.is_none()),
        of(|verdict| verdict == Verdict::New, "new"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| {
        let parts = parts.join("; ");
        if outcome.is_against_list || outcome.healing.is_some() {
            return format!("{parts}.");
        }
        let sentence = format!("{parts}. If that is as it should be, record it");
        with_command(&sentence, &paths.command_allowing("update", outcome.allowed))
    })
}

/// Names that are the recorded ones in another spelling.
fn name_mismatches(outcome: &Outcome) -> Option<String> {
    rest_of(outcome.name_mismatches)
}

fn rest_of(names: u64) -> Option<String> {
    (names > 0).then(|| number(names, "name", "names"))
}

/// Says no more than was looked at: a stat is not a proof of a content.
fn all_is_well(paths: &RootPaths, outcome: &Outcome) -> String {
    let files = outcome.files.count(|verdict| matches!(verdict, Verdict::Ok | Verdict::Touched));
    let (all, are) = match files {
        0 => return paths.link().map_or("There was no file to judge.".to_owned(), link_only),
        1 => ("1 file".to_owned(), "is"),
        _ if outcome.recorded_left_out.total() > 0 => (format!("{} files", count(files)), "are"),
        _ => (format!("All {} files", count(files)), "are"),
    };
    let touched = match outcome.files.of(Verdict::Touched) {
        0 => String::new(),
        touched => format!(", {} under another date", count(touched)),
    };
    match outcome.hashed {
        0 => format!("{all} {are} as recorded by name, size and date; no content was read."),
        hashed if hashed >= files => format!("{all} {are} as recorded{touched}."),
        hashed => format!("{all} {are} as recorded{touched}; {} of them read.", count(hashed)),
    }
}

/// Says what a link stands for, since a run over it looks at the link alone.
fn link_only(link: RootLink) -> String {
    let is_link = format!("{} is a link, which is as recorded, and NO FILE WAS READ", link.shown);
    match link.end {
        LinkEnd::Recorded(command) => {
            with_command(&format!("{is_link}. To verify the file that it leads to"), &command)
        }
        LinkEnd::Elsewhere(target) => {
            format!("{is_link}: it leads out of the recorded folder, to {target}.")
        }
        LinkEnd::Nowhere(target) => format!("{is_link}: it leads to {target}, which is not there."),
    }
}

fn is_edit(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Modified | Verdict::Reverted)
}

/// Returns the edited files, links and folders, without files of known damage: an edit
/// explains its own content, and `update` records it only if it is accepted.
fn settled_edits(outcome: &Outcome) -> Option<(String, &'static str)> {
    let [files, links, folders] = outcome.troubles(is_edit);
    let files = files.saturating_sub(outcome.unsettled_edits.total());
    who([files, links, folders])
}

/// Files, links and folders with such a verdict. A folder that could not be
/// listed is counted among the files too, and here only once.
pub(super) fn by_kind(outcome: &Outcome, condition: impl Fn(Verdict) -> bool) -> [u64; 3] {
    let folders = outcome.folders.count(&condition);
    let twice = outcome.folders.count(|verdict| verdict.is_unread() && condition(verdict));
    let files = outcome.files.count(&condition).saturating_sub(twice);
    [files, outcome.links.count(&condition), folders]
}

/// Returns the files, links and folders with such a verdict (`2 files and 1 link`), with
/// the verb they take; `None` if there are none.
fn subject(
    outcome: &Outcome,
    condition: impl Fn(Verdict) -> bool,
) -> Option<(String, &'static str)> {
    // What was accepted or healed is not trouble any more.
    let [files, links, folders] = outcome.troubles(&condition);
    let twice = outcome.folders.count(|verdict| verdict.is_unread() && condition(verdict));
    who([files.saturating_sub(twice), links, folders])
}

/// `2 files and 1 link`, with the verb it takes.
fn who([files, links, folders]: [u64; 3]) -> Option<(String, &'static str)> {
    let kinds =
        [(files, "file", "files"), (links, "link", "links"), (folders, "folder", "folders")];
    let there: Vec<_> = kinds.into_iter().filter(|kind| kind.0 > 0).collect();
    let named: Vec<_> = there.iter().map(|(n, one, many)| number(*n, one, many)).collect();
    let verb = if files + links + folders == 1 { "is" } else { "are" };
    (!named.is_empty()).then(|| (listed(&named), verb))
}

/// `a, b and c`.
fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::finding;
    use super::*;
    use EntryKind::{File, Folder, Link};
    use fsure_integrity::model::{EntryKind, Finding, Offline};

    type Change = fn(&mut Outcome);

    const TWO_OK: &[(Verdict, EntryKind, u64)] = &[(Verdict::Ok, File, 2)];
    const EDITED: &[(Verdict, EntryKind, u64)] =
        &[(Verdict::Modified, File, 3), (Verdict::New, Folder, 1), (Verdict::New, Link, 2)];

    /// The sentences on so many findings of each verdict, all files hashed.
    fn text_of(
        verdicts: &[(Verdict, EntryKind, u64)],
        change: impl FnOnce(&mut Outcome),
    ) -> String {
        let mut outcome = Outcome::default();
        for (verdict, kind, times) in verdicts {
            for _ in 0..*times {
                outcome.add(Finding { kind: *kind, ..finding(b"f", *verdict) });
            }
        }
        outcome.hashed = outcome.files.total();
        change(&mut outcome);
        closing(&RootPaths::in_root(), &outcome).join("\n")
    }

    #[test]
    fn nothing_to_report_claims_no_more_than_was_looked_at() {
        for (verdicts, hashed, sentence) in [
            (&[][..], 0, "There was no file to judge."),
            (&[(Verdict::Ok, File, 1)], 1, "1 file is as recorded."),
            (&[(Verdict::Ok, File, 1_234)], 1_234, "All 1,234 files are as recorded."),
            (TWO_OK, 1, "All 2 files are as recorded; 1 of them read."),
            (TWO_OK, 0, "All 2 files are as recorded by name, size and date; no content was read."),
            (
                &[(Verdict::Ok, File, 1), (Verdict::Touched, File, 1)],
                2,
                "All 2 files are as recorded, 1 under another date.",
            ),
        ] {
            assert_eq!(text_of(verdicts, |outcome| outcome.hashed = hashed), sentence);
        }
        let warned = text_of(TWO_OK, |outcome| outcome.bytes.cached = 2 << 30);
        let warning = "All 2 files are as recorded.\nWarning: 2.0 GiB came through the page \
             cache, possibly not from the medium: they prove nothing about it.";
        assert_eq!(warned, warning);
    }

    #[test]
    fn differences_are_named_and_update_reports_what_it_wrote() {
        let differing = "3 files are changed, with another date to show for it; 2 links and 1 \
             folder are new. If that is as it should be, record it:\n    fsure update .";
        assert_eq!(text_of(EDITED, |_| ()), differing);
        let recorded = "Recorded: 2 links and 1 folder new; 3 files changed.";
        assert_eq!(text_of(EDITED, |outcome| outcome.is_update = true), recorded);
        let nothing_written: [(Change, &str); 3] = [
            (
                |o| o.stopped = Some(StopReason::RecordFailed("disk full".to_owned())),
                "The record COULD NOT BE WRITTEN: disk full. ",
            ),
            (|o| o.record_untrusted = Some("cut short".to_owned()), "The record CANNOT BE "),
            (|o| o.offline = Some(Offline::Empty), "OFFLINE: nothing is here, "),
        ];
        for (change, head) in nothing_written {
            let text = text_of(EDITED, |outcome| {
                outcome.is_update = true;
                change(outcome);
            });
            assert!(text.starts_with(head), "{text}");
            assert!(!text.contains("Recorded:"), "{text}");
        }
    }

    #[test]
    fn an_unfinished_run_is_never_reported_as_ok() {
        let interrupted = |is_update| {
            text_of(TWO_OK, |o| {
                o.is_update = is_update;
                o.stopped = Some(StopReason::Interrupted(ExitCode::Interrupted));
            })
        };
        let expected = "INTERRUPTED before the end; what was done is saved. Run the same command \
             again to go on.";
        assert_eq!(interrupted(true), expected);
        let expected = "INTERRUPTED before the end: 2 files were judged; nothing is said of the \
             rest. The same command begins anew. To begin with what was verified longest ago:\n    \
             fsure scrub .";
        assert_eq!(interrupted(false), expected);
        let dry = text_of(TWO_OK, |o| {
            (o.is_update, o.is_dry_run) = (true, true);
            o.stopped = Some(StopReason::Interrupted(ExitCode::Interrupted));
        });
        assert!(dry.starts_with("INTERRUPTED before the end of the dry run; "), "{dry}");
        assert!(!dry.contains("saved"), "{dry}");
        let one_left = text_of(&[(Verdict::Ok, File, 1)], |o| {
            o.stopped = Some(StopReason::Interrupted(ExitCode::Terminated));
            (o.hashed, o.unjudged_files) = (0, Some(1));
        });
        let expected = "INTERRUPTED before the end: 1 file was judged; 1 recorded file was not, and \
             nothing is said of it.";
        assert_eq!(one_left, expected);
        let offline = text_of(&[(Verdict::Missing, File, 3)], |outcome| {
            outcome.offline = Some(Offline::MostlyMissing { missing: 3, recorded: 5 });
            outcome.command = "verify";
        });
        let expected = "OFFLINE: 3 of 5 recorded files are gone. Nothing was changed. If its disk \
             is not mounted, mount it, and run the same command again. Only if this is as it \
             should be:\n    fsure verify . --allow-missing";
        assert_eq!(offline, expected);
        let vanished = text_of(&[(Verdict::Missing, File, 3)], |outcome| {
            outcome.offline = Some(Offline::MostlyMissing { missing: 3, recorded: 5 });
            outcome.saved_before_offline = true;
        });
        assert!(vanished.contains("What this run had recorded before that is saved. If its disk"));
        let unread = text_of(&[(Verdict::Denied, Folder, 1), (Verdict::Busy, Link, 2)], |_| ());
        let expected = format!(
            "2 links and 1 folder could NOT BE READ in full (1 denied: run again {}; 2 busy: run again \
             when no program writes to it).",
            who_may_read()
        );
        assert_eq!(unread, expected);
    }

    #[test]
    fn the_gravest_comes_first() {
        let grave = [Verdict::Unreadable, Verdict::Flaky, Verdict::Rotten, Verdict::RecordBad];
        let text = text_of(&grave.map(|verdict| (verdict, File, 1)), |outcome| {
            outcome.record_untrusted = Some("root digest\x1b differs".to_owned());
        });
        let heads = [
            "The record CANNOT BE TRUSTED: root digest\\x1b differs. ",
            "RECORD BAD for 1 file: ",
            "1 file is SUSPICIOUS: ",
            "1 file is FLAKY: ",
            "1 file could NOT BE READ in full (1 unreadable: ",
        ];
        let mut at = 0;
        for head in heads {
            let found = text[at..].find(head).unwrap_or_else(|| panic!("{head} in {text}"));
            assert!(text[..at + found].is_empty() || text[..at + found].ends_with('\n'), "{text}");
            at += found;
        }
    }

    #[test]
    fn an_unread_file_is_reported_and_never_called_ok() {
        let text = text_of(&[(Verdict::Ok, File, 3)], |outcome| {
            outcome.hashed = 3;
            outcome.recorded_left_out.by_pattern = 1;
            outcome.recorded_left_out.by_border = 20;
            outcome.absent_roots = vec![fsure_core::RelPath::from_bytes(*b"inner")];
        });
        for part in [
            "1 recorded file was LEFT OUT by a pattern",
            "20 recorded files were LEFT OUT because another file system",
            "inner had a record of its own and is NOT THERE",
            "\n3 files are as recorded.",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn accepted_findings_are_reported() {
        let text = text_of(&[(Verdict::Rotten, File, 1)], |outcome| {
            outcome.is_update = true;
            outcome.accepted.files.add(Verdict::Altered);
            outcome.files.add(Verdict::Altered);
        });
        let accepted = "\n1 finding was accepted: the record now holds what is there.";
        assert!(text.ends_with(accepted), "{text}");
    }

    #[test]
    fn a_list_ends_with_and() {
        let parts = ["a", "b", "c"].map(str::to_owned);
        for (length, text) in [(0, ""), (1, "a"), (2, "a and b"), (3, "a, b and c")] {
            assert_eq!(listed(&parts[..length]), text);
        }
    }
}
