//! `crash` for a person: one row for each drive, then what was lost in words,
//! and last what it means.

use std::collections::{BTreeMap, BTreeSet};

use super::{figure, number};
use fsure_core::ExitCode;
use fsure_core::units::{microseconds, span};
use fsure_core::{count, safe};
use fsure_crash::{
    Call, ContentSeen, CrashLine, CrashSummary, CutMade, CutState, DriveTried, FlushAfterError,
    MissingSync,
};

/// Losses that are reported one by one, and causes of one.
const ITEMS_SHOWN_MAX: usize = 5;
/// The folder that keeps what POSIX promises.
const STRICT: &str = "folder";
/// The reason why a real file system may have lost nothing.
const NAMES: &str = "  POSIX makes a name durable by an fsync of its folder only, and so does \
                     '--fs folder'. ext4 and\n  XFS make all names durable with the next fsync \
                     of any file: see '--fs ext4', or without root\n  '--fs folder-journal'.\n";

/// The report on all lines of a run.
pub fn text(lines: &[CrashLine]) -> String {
    let drives: Vec<_> = lines.iter().filter_map(drive).collect();
    let mut report = if drives.is_empty() { String::new() } else { table(&drives) };
    for drive in &drives {
        report += &describe(drive, lines);
    }
    for line in lines {
        match line {
            CrashLine::Summary(summary) => report += &closing(summary, &drives, lines),
            CrashLine::Warning { words } => report += &format!("warning: {}\n", safe(words)),
            CrashLine::FlushAfterError(line) => report += &after_error(line),
            CrashLine::Cut(_) | CrashLine::Drive(_) | CrashLine::Cell(_) => {}
        }
    }
    report
}

/// The line of a cut that has shown a loss, or nothing at all; `None` for one
/// that survived.
pub fn loss(cut: &CutMade) -> Option<String> {
    (cut.state != CutState::Survived)
        .then(|| format!("{} on {}, {}", safe(&cut.drive), safe(&cut.fs), words(cut)))
}

fn drive(line: &CrashLine) -> Option<&DriveTried> {
    if let CrashLine::Drive(drive) = line { Some(drive) } else { None }
}

fn table(drives: &[&DriveTried]) -> String {
    let head = ["drive", "on", "cuts", "survived", "lost", "corrupt", "no mount", "unknown"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows[0].extend(["most lost", "oldest lost", "acknowledged/s"].map(str::to_owned));
    for one in drives {
        let counts = [one.cuts, one.survived, one.lost, one.corrupt, one.unmountable];
        let mut row = vec![safe(&one.drive), safe(&one.fs)];
        row.extend(counts.iter().map(|number| count(*number)));
        row.push(count(one.harness_broken));
        row.push(if one.losses() > 0 { count(one.most_lost) } else { "-".to_owned() });
        row.push(one.oldest_lost_ms.map_or_else(|| "-".to_owned(), age));
        row.push(one.acked_per_second.map_or_else(|| "-".to_owned(), figure));
        rows.push(row);
    }
    let widths: Vec<_> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let cell = |column: usize, text: &str| {
        let width = widths[column];
        if column < 2 { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().enumerate().map(|(at, text)| cell(at, text)).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// The cuts of a drive that have not survived.
fn cuts<'a>(
    drive: &'a DriveTried,
    lines: &'a [CrashLine],
) -> impl Iterator<Item = &'a CutMade> + use<'a> {
    let cuts = lines.iter().filter_map(|line| match line {
        CrashLine::Cut(cut) if !cut.twin && cut.state != CutState::Survived => Some(cut),
        _ => None,
    });
    cuts.filter(|cut| cut.drive == drive.drive && cut.fs == drive.fs)
}

/// Lists the losses on a drive, one by one, as far as that helps.
fn describe(drive: &DriveTried, lines: &[CrashLine]) -> String {
    let own: Vec<_> = cuts(drive, lines).collect();
    if own.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{} on {}\n", safe(&drive.drive), safe(&drive.fs));
    for cut in own.iter().take(ITEMS_SHOWN_MAX) {
        text += &format!("  {}\n", words(cut));
        if let Some(missing) = &cut.missing_syncs {
            text += &format!("    {}\n", cause(missing));
        }
        if let Some(image) = &cut.image {
            text += &format!("    image: {}\n", safe(image));
        }
    }
    if own.len() > ITEMS_SHOWN_MAX {
        text += &format!("  and {} more\n", own.len() - ITEMS_SHOWN_MAX);
    }
    text
}

fn words(cut: &CutMade) -> String {
    let mut words = format!("cut {} ({}): {}", cut.n, cut.variant, cut.state.name());
    if let Some(lost) = cut.lost.filter(|lost| *lost > 0) {
        words += &format!(", {} of {} acknowledged lost", count(lost), count(cut.acked));
    }
    if let Some(oldest) = cut.oldest_lost_ms {
        words += &format!(", the oldest {} old", age(oldest));
    }
    match &cut.detail {
        Some(detail) => format!("{words}: {}", safe(detail)),
        None => words,
    }
}

/// Names the syncs that were missing.
fn cause(missing: &[MissingSync]) -> String {
    if missing.is_empty() {
        return "no fsync just before the cut would have prevented it".to_owned();
    }
    let names = |one: &MissingSync| match &one.names[..] {
        [] => String::new(),
        [name] => format!(" (the name {})", safe(name)),
        names => format!(" (the names {})", safe(&names.join(", "))),
    };
    let all = missing.iter().map(|one| format!("{}{}", place(one), names(one)));
    let all: Vec<_> = all.take(ITEMS_SHOWN_MAX).collect();
    let more = match missing.len().saturating_sub(ITEMS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the missing sync is an fsync of {}{more}", all.join(" and of "))
}

fn place(missing: &MissingSync) -> String {
    format!("the {} {}", safe(&missing.of), safe(&missing.path))
}

/// Counts the syncs that were missing in all cuts of a drive, the most frequent first, and why
/// file systems differ here.
fn causes(drive: &DriveTried, lines: &[CrashLine]) -> String {
    let mut counts = BTreeMap::<_, u64>::new();
    for cut in cuts(drive, lines) {
        let places: BTreeSet<_> = cut.missing_syncs.iter().flatten().map(place).collect();
        for place in places {
            *counts.entry(place).or_default() += 1;
        }
    }
    let has_names = cuts(drive, lines)
        .flat_map(|cut| cut.missing_syncs.iter().flatten())
        .any(|one| !one.names.is_empty());
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let reported = counts.iter().take(ITEMS_SHOWN_MAX);
    let reported = reported.map(|(place, times)| {
        format!("  {} because of a missing fsync of {place}\n", number(*times, "cut", "cuts"))
    });
    let mut text: String = reported.collect();
    if has_names && drive.fs == STRICT {
        text += NAMES;
    }
    text
}

pub(super) fn age(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => microseconds(milliseconds as f64 * 1000.0),
    }
}

/// Reports the result of each flush after a write that failed, call by call, and what
/// follows for a program.
fn after_error(line: &FlushAfterError) -> String {
    let mut text = format!("{}: one write fails, and none after it\n", safe(&line.fs));
    for Call { call, by, result } in &line.calls {
        text += &format!("  {:<6} by {:<24} {}\n", safe(call), safe(by), safe(result));
    }
    let content = |memory| match memory {
        ContentSeen::Old => "the old content",
        ContentSeen::New => "the new content",
        ContentSeen::Neither => "neither content",
    };
    let (seen, left) = (content(line.in_memory), content(line.after_cut));
    text += &format!("  the program reads {seen}; a cut leaves {left}\n\n");
    text + match (line.reported, line.forgets) {
        (_, true) => {
            "A flush succeeds after the failure although the data are not on the medium: a\n\
             program must not call it again and trust the result, but stop and start over from\n\
             what it knows to be durable.\n"
        }
        (true, false) => "No flush succeeds after the failure: a program sees the error.\n",
        (false, false) => "No flush failed: the test shows nothing.\n",
    }
}

fn closing(summary: &CrashSummary, drives: &[&DriveTried], lines: &[CrashLine]) -> String {
    if drives.is_empty() && summary.cuts == 0 {
        return String::new();
    }
    let mut text = String::from("\n");
    for drive in drives {
        text += &verdict(drive);
        text += &causes(drive, lines);
    }
    text + &pace(summary)
}

/// Reports whether the run came to its end, how fast it was, and how to repeat it.
pub(super) fn pace(summary: &CrashSummary) -> String {
    let signals = [ExitCode::Interrupted, ExitCode::Terminated];
    let is_early = signals.iter().any(|code| code.number() == summary.exit_code);
    let early = match is_early {
        true => "The run was ended early: the results above are all that it saw.\n",
        false => "",
    };
    let (cuts, pace) = (number(summary.cuts, "cut", "cuts"), summary.cuts_per_minute);
    format!(
        "{early}{cuts} in {}, {pace:.0} a minute with their checks; seed {}\n",
        span(summary.seconds),
        summary.seed
    )
}

/// Returns the results of a drive in a sentence.
fn verdict(drive: &DriveTried) -> String {
    let (name, cuts) = (safe(&drive.drive), number(drive.cuts, "cut", "cuts"));
    let broken =
        drive.disturbed.as_ref().map(|why| format!("{name}: harness broken: {}\n", safe(why)));
    let broken = broken.unwrap_or_default();
    if drive.losses() > 0 {
        let (lost, of) = (count(drive.losses()), drive.cuts);
        return format!("{name}: {lost} of {of} cuts lost or damaged acknowledged data\n{broken}");
    }
    if !broken.is_empty() {
        return broken;
    }
    if drive.cuts == 0 {
        return format!("{name}: not cut\n");
    }
    if drive.survived < drive.cuts {
        let broken = count(drive.harness_broken);
        let mut text = format!("{name}: {broken} of {cuts} show nothing");
        if drive.twin_lost == Some(false) {
            text += ": the check noticed no loss on a lying drive either, so it proves nothing";
        }
        return format!("{text}\n");
    }
    if drive.owed_nothing() {
        return format!(
            "{name}: the test shows nothing: the program acknowledged nothing before any of \
             {cuts}\n"
        );
    }
    let mut text = format!("{name}: {cuts} survived");
    if drive.acked == 0 {
        text += ", and nothing was acknowledged: the check could notice damage, but no loss";
    }
    if drive.twin_lost == Some(true) {
        text += "; on a lying drive the check noticed the loss";
    }
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(state: CutState) -> CutMade {
        CutMade {
            workload: None,
            n: 3,
            drive: "lying".into(),
            fs: "ext4".into(),
            variant: "none".into(),
            acked: 5000,
            acked_per_second: Some(812.6),
            lost: Some(1234),
            oldest_lost_ms: Some(4567),
            state,
            twin: false,
            detail: None,
            image: None,
            missing_syncs: None,
        }
    }

    #[test]
    fn a_loss_is_reported_with_its_age() {
        let one = cut(CutState::Lost);
        let mut drive =
            DriveTried { drive: "lying".into(), fs: "ext4".into(), ..DriveTried::default() };
        drive.add(&one);
        let summary = CrashSummary { seed: 9, cuts: 1, losses: 1, ..CrashSummary::default() };
        let lines = [CrashLine::Cut(one), CrashLine::Drive(drive), CrashLine::Summary(summary)];
        let text = text(&lines);
        for part in [
            "cut 3 (none): lost, 1,234 of 5,000 acknowledged lost, the oldest 4.6 s old",
            "lying: 1 of 1 cuts lost or damaged acknowledged data",
            "1,234        4.6 s             813\n",
            "seed 9",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_run_that_proves_nothing_is_reported_as_such() {
        let mut drive = DriveTried { twin_lost: Some(false), ..DriveTried::default() };
        drive.add(&cut(CutState::HarnessBroken));
        assert!(verdict(&drive).contains("proves nothing"), "{}", verdict(&drive));
        let mut silent = DriveTried::default();
        silent.add(&CutMade { acked: 0, lost: Some(0), ..cut(CutState::Survived) });
        assert!(verdict(&silent).contains("nothing was acknowledged"));
    }
}
