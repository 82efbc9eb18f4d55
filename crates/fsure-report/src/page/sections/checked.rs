//! `verify`, `update`, `scrub`, `status` and `heal`.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{date, files_are, is_or_are, number, path};
use super::{Draft, ages, findings};
use crate::chart::{Amount, amounts, figure};
use crate::outputs::{Checked, CommonLines, OutputTotals, Remedy, Signed};
use fsure_core::{count, units};

/// Verdicts that mean damage, as the exit code counts them.
const DAMAGE: [&str; 4] = ["rotten", "altered", "damaged-copy", "mismatch"];

/// The exit code of a run that found damage and repaired all of it.
const HEALED: u8 = 7;

/// Verdicts of differences that no one has to worry about.
const DIFFERENCES: [&str; 6] = ["modified", "touched", "new", "moved", "reverted", "type-changed"];

/// The section of a run.
pub(super) fn section(checked: &Checked, common: &CommonLines, charts: &mut Charts) -> Section {
    let command = checked.command.as_deref();
    let command = command.or_else(|| common.start.as_ref().map(|start| start.command.as_str()));
    let command = command.unwrap_or("Findings");
    let mut draft = Draft::new(format!("{command} {}", roots(checked).join(" ")).trim().to_owned());
    if let Some(totals) = &checked.summary {
        judge(&mut draft, command, checked, totals);
        facts(&mut draft, totals, common.start.is_some());
    }
    troubles(&mut draft, checked);
    let with_root = roots(checked).len() > 1;
    draft.part("Findings", findings::pieces(checked, with_root, charts));
    draft.part("Repairs", remedies(checked));
    draft.part("Each root", each_root(&checked.roots));
    if let Some(totals) = checked.summary.as_ref().filter(|totals| !totals.verified.is_empty()) {
        draft.part("Coverage", [ages::coverage(&totals.verified)]);
    }
    draft.part("Last verified, by folder", ages::picture(checked, with_root, charts));
    for age in &checked.ages {
        let heading = format!("Last verified: {}", age.root);
        draft.part(&heading, [ages::chart(&heading, age, charts)]);
    }
    if let Some(totals) = &checked.summary {
        draft.part("Counts", counts(totals));
        draft.part("How the data was read", ways(totals, charts));
    }
    draft.done()
}

fn roots(checked: &Checked) -> Vec<&str> {
    let of_roots = checked.roots.iter().filter_map(|root| root.root.as_deref());
    let of_ages = checked.ages.iter().map(|age| age.root.as_str());
    let of_summary = checked.summary.iter().filter_map(|totals| totals.root.as_deref());
    let of_findings = checked.found.iter().map(|found| found.root.as_str());
    let mut roots: Vec<_> = of_roots.chain(of_ages).chain(of_summary).chain(of_findings).collect();
    let mut seen = std::collections::BTreeSet::new();
    roots.retain(|root| !root.is_empty() && seen.insert(*root));
    roots
}

impl OutputTotals {
    fn of(&self, verdict: &str) -> u64 {
        self.verdicts.get(verdict).copied().unwrap_or_default()
    }

    fn sum(&self, verdicts: &[&str]) -> u64 {
        verdicts.iter().map(|verdict| self.of(verdict)).sum()
    }

    /// Damaged files that are so still: the verdicts are those from before a repair.
    fn damaged(&self) -> u64 {
        if self.exit_code == HEALED { 0 } else { self.sum(&DAMAGE).saturating_sub(self.healed) }
    }

    /// All files that the run has looked at.
    fn all(&self) -> u64 {
        self.files.max(self.verdicts.values().sum())
    }
}

/// The verdict of a run: the gravest of what is there.
fn judge(draft: &mut Draft, command: &str, checked: &Checked, totals: &OutputTotals) {
    if !totals.verified.is_empty() {
        return ages::judge(draft, totals);
    }
    draft.key(count(totals.damaged()), format!("damaged of {}", count_files(totals.all())));
    let healed = totals.healed;
    let repaired = (healed > 0).then(|| (Grade::Good, format!("{} repaired", files_are(healed))));
    let reasons = wrong(totals).into_iter().chain(repaired);
    let mut reasons = reasons.chain(to_look_at(command, totals));
    match reasons.next() {
        Some((grade, sentence)) => draft.verdict(grade, sentence),
        None => draft.verdict(Grade::Good, good(command, totals)),
    }
    reasons.for_each(|(_, sentence)| draft.note(format!("{sentence}.")));
    notes(draft, command, checked, totals);
}

/// `2 of 1,204 files are`.
fn of_all(some: u64, totals: &OutputTotals) -> String {
    format!("{} of {} {}", count(some), count_files(totals.all()), is_or_are(some))
}

/// The differences: `1 modified, 3 new`.
fn each(totals: &OutputTotals) -> String {
    let parts = DIFFERENCES.iter().map(|verdict| (*verdict, totals.of(verdict)));
    let parts = parts.filter(|(_, files)| *files > 0);
    let parts: Vec<_> =
        parts.map(|(verdict, files)| format!("{} {verdict}", count(files))).collect();
    parts.join(", ")
}

/// A reason, and whether it is one.
type Reason = (bool, String);

fn graded(grade: Grade, reasons: impl IntoIterator<Item = Reason>) -> Vec<(Grade, String)> {
    let reasons = reasons.into_iter().filter(|(is_so, _)| *is_so);
    reasons.map(|(_, sentence)| (grade, sentence)).collect()
}

/// Faults of the data or its record, the gravest first.
fn wrong(totals: &OutputTotals) -> Vec<(Grade, String)> {
    let (damaged, known) = (totals.damaged(), totals.known_damage);
    let record_bad = totals.of("record-bad");
    let unreadable = if totals.exit_code == HEALED { 0 } else { totals.of("unreadable") };
    let untrusted = "The record cannot be trusted: nothing is said of the files";
    graded(
        Grade::Bad,
        [
            (totals.record_untrusted.is_some(), untrusted.to_owned()),
            (damaged > 0, format!("{} damaged", of_all(damaged, totals))),
            (damaged == 0 && known > 0, format!("{} known to be damaged", files_are(known))),
            (totals.unhealed > 0, format!("{} not repaired", files_are(totals.unhealed))),
            (unreadable > 0, format!("{} unreadable", of_all(unreadable, totals))),
            (record_bad > 0, format!("The record of {} bad", of_all(record_bad, totals))),
        ],
    )
}

/// Results that need a look, the gravest first.
fn to_look_at(command: &str, totals: &OutputTotals) -> Vec<(Grade, String)> {
    let differences = totals.sum(&DIFFERENCES);
    let (missing, unread) = (totals.of("missing"), totals.sum(&["denied", "busy"]));
    let (flaky, healable) = (totals.of("flaky"), totals.healable);
    let offline = "OFFLINE: the root is not there; nothing is said of its files";
    let stopped = "ENDED EARLY: nothing is said of what was not reached";
    let is_compared = command != "update";
    graded(
        Grade::Warn,
        [
            (totals.offline.is_some(), offline.to_owned()),
            (totals.stopped.is_some(), stopped.to_owned()),
            (is_compared && missing > 0, format!("{} missing", of_all(missing, totals))),
            (flaky > 0, format!("{} flaky: two reads differed", of_all(flaky, totals))),
            (unread > 0, format!("{} denied or in use", of_all(unread, totals))),
            (healable > 0, format!("{} damaged and can be repaired", files_are(healable))),
            (
                is_compared && differences > 0,
                format!("{} not as recorded: {}", of_all(differences, totals), each(totals)),
            ),
        ],
    )
}

fn count_files(all: u64) -> String {
    number(all, "file", "files")
}

/// The sentence of a run that found nothing wrong.
fn good(command: &str, totals: &OutputTotals) -> String {
    let all = totals.all();
    let every = if all == 1 { "The file".to_owned() } else { format!("All {}", count_files(all)) };
    let are = is_or_are(all);
    match command {
        _ if all == 0 => "There was no file to look at".to_owned(),
        "update" => format!("{every} {are} recorded"),
        "status" => format!("{every} {are} as recorded by name, size and date"),
        "scrub" => format!("{every} that {} read {are} as recorded", was_or_were(all)),
        _ => format!("{every} {are} as recorded"),
    }
}

fn was_or_were(amount: u64) -> &'static str {
    if amount == 1 { "was" } else { "were" }
}

/// Sentences on what the verdict does not say.
fn notes(draft: &mut Draft, command: &str, checked: &Checked, totals: &OutputTotals) {
    if command == "update" {
        let missing = totals.of("missing");
        let gone = (missing > 0).then(|| format!("{} missing", count(missing)));
        let parts: Vec<_> =
            Some(each(totals)).filter(|words| !words.is_empty()).into_iter().chain(gone).collect();
        if !parts.is_empty() {
            draft.note(format!("Recorded: {}.", parts.join(", ")));
        }
    }
    if totals.bytes_by_way.get("cached").is_some_and(|bytes| *bytes > 0) && command == "verify" {
        let bytes = units::size(totals.bytes_by_way["cached"]);
        draft.note(format!(
            "{bytes} came through the page cache: they prove nothing of the medium."
        ));
    }
    if checked.found_total == 0 && totals.known_damage > 0 {
        draft.note("The findings were not printed: run it again without '--quiet'.".to_owned());
    }
}

/// Adds the facts of a receipt: who, when, what.
fn facts(draft: &mut Draft, totals: &OutputTotals, has_start: bool) {
    if !has_start {
        draft.fact("Date", "not in the output: it was made by an older version of fsure");
    }
    if let Some(root) = totals.root.as_ref().filter(|_| !has_start) {
        draft.fact("Root", root);
    }
    let all = totals.all();
    if all > 0 {
        let bytes = match totals.bytes_judged {
            0 => String::new(),
            bytes => format!(", {} ({} bytes) judged", units::size(bytes), count(bytes)),
        };
        draft.fact("Files", format!("{}{bytes}", count(all)));
    }
    if totals.bytes_read > 0 {
        let rate = figure(units::mib_per_second(totals.bytes_read, totals.seconds));
        let (read, seconds) = (units::size(totals.bytes_read), figure(totals.seconds));
        draft.fact("Read", format!("{read} in {seconds} s = {rate} MiB/s"));
    }
    if let Some(signed) = &totals.signed {
        signature(draft, signed);
    }
    draft.exit_code(totals.exit_code);
}

/// The signature that was checked.
pub(super) fn signature(draft: &mut Draft, signed: &Signed) {
    let Signed { generation, time, root, head, key } = signed;
    draft.fact("Signed by", format!("key {key}, generation {generation}, {} UTC", date(time)));
    draft.fact("Digest of the record", root);
    draft.fact("Head of its history", head);
}

/// Reasons why a root was not judged, or not to its end.
fn troubles(draft: &mut Draft, checked: &Checked) {
    let all: Vec<_> = match checked.roots.as_slice() {
        [] => checked.summary.iter().collect(),
        roots => roots.iter().collect(),
    };
    for totals in all {
        let root = totals.root.as_deref().unwrap_or("all roots");
        for (what, reason) in [("OFFLINE", &totals.offline), ("ENDED EARLY", &totals.stopped)] {
            let Some(reason) = reason else { continue };
            let message = reason.message.as_deref().unwrap_or_default();
            let words = format!("{what}: {root}: {} {message}", reason.why.replace('-', " "));
            draft.0.pieces.push(Piece::Note(Grade::Warn, words.trim_end().to_owned()));
        }
        if let Some(why) = &totals.record_untrusted {
            let words = format!("RECORD CANNOT BE TRUSTED: {root}: {why}");
            draft.0.pieces.push(Piece::Note(Grade::Bad, words));
        }
    }
}

fn remedies(checked: &Checked) -> Option<Piece> {
    let mut table = Table::new("Repairs", &["Result", "Path", "Was", "Good bytes from", "Left"]);
    for remedy in &checked.remedies {
        let grade = match remedy.cure.as_str() {
            "healed" | "healable" => Grade::Good,
            _ => Grade::Bad,
        };
        table.push(vec![
            Cell::graded(&remedy.cure, grade),
            Cell::path(path(&remedy.path, remedy.path_bytes.as_ref())),
            Cell::text(&remedy.found),
            Cell::text(sources(remedy)),
            Cell::text(left(remedy)),
        ]);
    }
    table.unless_empty()
}

fn sources(remedy: &Remedy) -> String {
    let source = |taken: &crate::outputs::Taken| match (&taken.replica, taken.origin.as_str()) {
        (Some(replica), _) => replica.clone(),
        (None, "itself") => "the file itself".to_owned(),
        (None, "parity") => "recovery data".to_owned(),
        (None, "record") => "the record".to_owned(),
        (None, other) => other.to_owned(),
    };
    remedy.taken.iter().map(source).collect::<Vec<_>>().join(", ")
}

fn left(remedy: &Remedy) -> String {
    let bytes: u64 = remedy.lacking.iter().map(|[from, to]| to.saturating_sub(*from)).sum();
    let lacking = (bytes > 0).then(|| format!("{} are nowhere", units::size(bytes)));
    lacking.into_iter().chain(remedy.reason.clone()).collect::<Vec<_>>().join("; ")
}

/// Tells several roots apart, which the sums do not.
fn each_root(roots: &[OutputTotals]) -> Option<Piece> {
    if roots.len() < 2 {
        return None;
    }
    let mut table = Table::new("Each root", &["Root", "#Exit code", "Files"]);
    for root in roots {
        let verdicts = root.verdicts.iter().filter(|(_, files)| **files > 0);
        let verdicts: Vec<_> =
            verdicts.map(|(verdict, files)| format!("{} {verdict}", count(*files))).collect();
        let verdicts = if verdicts.is_empty() { "none".to_owned() } else { verdicts.join(", ") };
        table.push(vec![
            Cell::head(root.root.clone().unwrap_or_default()),
            Cell::number(root.exit_code.to_string()),
            Cell::text(verdicts),
        ]);
    }
    table.unless_empty()
}

/// The counts that are not zero: verdicts by kind, then the rest.
fn counts(totals: &OutputTotals) -> Vec<Piece> {
    let mut table = Table::new("Verdicts", &["Verdict", "#Files", "#Links", "#Folders"]);
    let names: std::collections::BTreeSet<_> =
        totals.verdicts.keys().chain(totals.links.keys()).chain(totals.folders.keys()).collect();
    for name in names {
        let of = |counts: &std::collections::BTreeMap<String, u64>| {
            counts.get(name).copied().unwrap_or_default()
        };
        let counts = [of(&totals.verdicts), of(&totals.links), of(&totals.folders)];
        if counts.iter().any(|count| *count > 0) {
            let mut row = vec![Cell::head(name)];
            let shown = |files: u64| if files > 0 { count(files) } else { String::new() };
            row.extend(counts.map(|files| Cell::number(shown(files))));
            table.push(row);
        }
    }
    let others = [
        ("With a record before", totals.with_record),
        ("Hashed", totals.hashed),
        ("Damaged blocks", totals.damaged_blocks),
        ("SUSPICIOUS files", totals.suspicious),
        ("Files differing", totals.differing),
        ("Changed size", totals.changed_size),
        ("Changed content and date, size unchanged", totals.changed_content_and_date),
        ("Changed metadata", totals.meta_changed),
        ("Accepted", totals.accepted),
        ("Repaired", totals.healed),
        ("Ignored folders", totals.ignored_folders),
        ("Ignored files", totals.ignored_files),
        ("Recorded and left out", totals.recorded_left_out),
        ("Neither file, folder nor link", totals.special),
    ];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    let others: Vec<_> = others.map(|(name, n)| (name.to_owned(), count(n))).collect();
    let others = (!others.is_empty()).then_some(Piece::Facts(others));
    table.unless_empty().into_iter().chain(others).collect()
}

fn ways(totals: &OutputTotals, charts: &mut Charts) -> Option<Piece> {
    let ways = [
        ("direct", "from the medium, past the page cache"),
        ("dontcache", "from the medium, not left in memory"),
        ("dropped", "from the medium, then dropped from memory"),
        ("remote", "from a server or a program"),
        ("cached", "through the page cache: proves nothing of the medium"),
    ];
    let ways = ways.into_iter().filter_map(|(way, meaning)| {
        let bytes = *totals.bytes_by_way.get(way).filter(|bytes| **bytes > 0)?;
        let words = format!("{}, {meaning}", units::size(bytes));
        Some(Amount { label: way.to_owned(), value: bytes, words })
    });
    let ways: Vec<_> = ways.collect();
    (!ways.is_empty()).then(|| charts.add(&amounts("How the data was read", &ways), ""))
}
