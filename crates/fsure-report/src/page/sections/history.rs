//! `log` and `seal`: when files were recorded, verified and signed.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, date, files_are, number, path, percent};
use super::ages::PERIODS_DAYS;
use super::{Draft, checked::signature};
use crate::chart::{Moment, timeline};
use crate::outputs::{CommonLines, History};
use fsure_core::{count, units};

/// Rows of a table, the latest.
const ROWS_MAX: usize = 500;

/// Exit codes with which a run has found damage, or could not read.
const BAD_CODES: [u8; 3] = [3, 4, 6];

/// The section of a history.
pub(super) fn section(history: &History, common: &CommonLines, charts: &mut Charts) -> Section {
    let (command, root) = history
        .summary
        .as_ref()
        .map_or(("log", ""), |totals| (totals.command.as_str(), totals.root.as_str()));
    let mut draft = Draft::new(format!("{command} {root}").trim().to_owned());
    judge(&mut draft, history);
    let coverage = coverage(history, common);
    if let Some((share, days)) = &coverage.key {
        draft.key(share.clone(), format!("of the files read in the last {days} days"));
    }
    draft.part("Known damage", damaged(history));
    draft.part("Coverage", coverage.pieces);
    draft.part("Over time", timeline_chart(history, charts));
    draft.part("Verifications", verifications(history));
    draft.part("Generations", generations(history));
    draft.done()
}

fn judge(draft: &mut Draft, history: &History) {
    let Some(totals) = &history.summary else { return };
    let runs = number(totals.verifications, "verification", "verifications");
    let generations = number(totals.generations, "generation", "generations");
    let words = format!("{generations} and {runs}");
    draft.key(count(totals.verifications), "verifications");
    if let Some(why) = &totals.record_untrusted {
        draft.verdict(Grade::Bad, format!("The record cannot be trusted: {why}"));
    } else if totals.known_damage > 0 {
        draft
            .verdict(Grade::Bad, format!("{} known to be damaged", files_are(totals.known_damage)));
        draft.note(format!("{words}."));
    } else if totals.command == "seal" {
        draft.verdict(Grade::Good, "The record is signed");
    } else {
        draft.verdict(Grade::Good, format!("{words}; no damage is known"));
    }
    if let (Some(files), Some(bytes)) = (totals.files, totals.bytes) {
        draft.fact(
            "Files",
            format!("{}, {} ({} bytes)", count(files), units::size(bytes), count(bytes)),
        );
    }
    if let Some(signed) = &totals.signed {
        signature(draft, signed);
    }
    draft.exit_code(totals.exit_code);
}

/// Seconds since 1970 of RFC 3339.
fn seconds(rfc3339: &str) -> Option<i64> {
    rfc3339.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Amount that was verified in each period.
#[derive(Default)]
struct Coverage {
    pieces: Vec<Piece>,
    key: Option<(String, i64)>,
}

/// The coverage as far as the lines say it: files and bytes that were read. A file that was
/// read twice counts twice, so a share is at most the true one's upper bound.
fn coverage(history: &History, common: &CommonLines) -> Coverage {
    let runs = history.verifications.iter();
    let runs: Vec<_> = runs.filter_map(|run| Some((seconds(&run.time)?, run))).collect();
    let of_start = common.start.as_ref().and_then(|start| seconds(&start.time));
    let Some(now) = of_start.or_else(|| runs.iter().map(|(at, _)| *at).max()) else {
        return Coverage::default();
    };
    let known = history.generations.iter().rev().find_map(|one| one.files);
    let mut table =
        Table::new("Coverage", &["Last", "#Runs", "#Files read", "#Bytes read", "#Of all files"]);
    let mut key = None;
    for days in PERIODS_DAYS {
        let since = now.saturating_sub(days * 86_400);
        let own: Vec<_> = runs.iter().filter(|(at, _)| (since..=now).contains(at)).collect();
        let files = own.iter().map(|(_, run)| run.files).sum::<u64>();
        let bytes = own.iter().map(|(_, run)| run.bytes).sum::<u64>();
        let share = known.map(|known| percent(files.min(known), known));
        key = key.or_else(|| Some((share.clone()?, days)));
        table.push(vec![
            Cell::head(format!("{days} days")),
            Cell::number(count(own.len() as u64)),
            Cell::number(count(files)),
            Cell::number(units::size(bytes)),
            Cell::number(
                share.map_or_else(|| NO_FIGURE.to_owned(), |share| format!("at most {share}")),
            ),
        ]);
    }
    let as_of = match of_start {
        Some(_) => "Counted back from the time of this output.",
        None => "Counted back from the last verification.",
    };
    let text = format!(
        "{as_of} A file that was read twice counts twice: 'fsure status --age' says how long ago \
         each file was verified."
    );
    Coverage { pieces: vec![Piece::Table(table), Piece::Text(text)], key }
}

fn timeline_chart(history: &History, charts: &mut Charts) -> Option<Piece> {
    const LANES: [&str; 3] = ["recorded", "verified", "signed"];
    let mut moments = Vec::new();
    let mut add = |time: &str, lane: usize, is_bad: bool| {
        moments.extend(seconds(time).map(|at_s| Moment { at_s, lane, is_bad }));
    };
    for one in &history.generations {
        add(&one.time, 0, false);
        if one.signed_with.is_some() {
            add(&one.time, 2, false);
        }
    }
    for run in &history.verifications {
        add(&run.time, 1, BAD_CODES.contains(&run.exit_code));
    }
    let day = |second: i64| {
        let time = jiff::Timestamp::from_second(second).unwrap_or_default().to_string();
        time.chars().take(10).collect()
    };
    let caption = "A diamond is a run that found damage or could not read something.";
    let chart = || timeline("What was done when", &LANES, &moments, &day);
    (!moments.is_empty()).then(|| charts.add(&chart(), caption))
}

fn damaged(history: &History) -> Option<Piece> {
    let mut table = Table::new("Known damage", &["Verdict", "Path", "Since", "Last seen"]);
    for row in &history.damaged {
        table.push(vec![
            Cell::graded(&row.known.verdict, Grade::Bad),
            Cell::path(path(&row.path, row.path_bytes.as_ref())),
            Cell::date(date(&row.known.since)),
            Cell::date(date(&row.known.seen)),
        ]);
    }
    table.unless_empty()
}

fn verifications(history: &History) -> Option<Piece> {
    let columns =
        ["Time (UTC)", "Command", "#Generation", "#Files read", "#Bytes read", "Exit code"];
    let mut table = Table::new("Verifications", &columns);
    for run in history.verifications.iter().rev().take(ROWS_MAX) {
        let grade = match run.exit_code {
            0 => Grade::Good,
            code if BAD_CODES.contains(&code) => Grade::Bad,
            _ => Grade::Warn,
        };
        table.push(vec![
            Cell::date(date(&run.time)),
            Cell::text(&run.command),
            Cell::number(count(run.generation)),
            Cell::number(count(run.files)).with_key(run.files),
            Cell::number(units::size(run.bytes)).with_key(run.bytes),
            Cell::graded(run.exit_code.to_string(), grade),
        ]);
    }
    table.unless_empty()
}

fn generations(history: &History) -> Option<Piece> {
    let columns = ["#Generation", "Time (UTC)", "Command", "Changes", "Signed with"];
    let mut table = Table::new("Generations", &columns);
    for one in history.generations.iter().rev().take(ROWS_MAX) {
        let changes = &one.changes;
        let parts = [
            (changes.new, "new"),
            (changes.modified, "modified"),
            (changes.touched, "touched"),
            (changes.missing, "missing"),
            (changes.moved, "moved"),
            (changes.accepted, "accepted"),
        ];
        let parts = parts.iter().filter(|(files, _)| *files > 0);
        let parts: Vec<_> =
            parts.map(|(files, what)| format!("{} {what}", count(*files))).collect();
        let size = one.files.zip(one.bytes).map_or(String::new(), |(files, bytes)| {
            format!("{}, {}", number(files, "file", "files"), units::size(bytes))
        });
        table.push(vec![
            Cell::number(count(one.generation)).with_key(one.generation),
            Cell::date(date(&one.time)),
            Cell::text(&one.command),
            Cell::text(parts.join(", ")).with_small(size),
            Cell::text(one.signed_with.clone().unwrap_or_default()),
        ]);
    }
    table.unless_empty()
}
