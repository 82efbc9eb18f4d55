//! The report for a person: a line per finding and, per root, how much was seen with
//! which verdict, how it was read, and at the very end, where the eye is, what must not be
//! missed and what to do. On request the block of counts is the one of icj, fsure's predecessor:
//! people compare reports over the years.
//!
//! Names are always escaped, in a pipe too: a text report ends up on a
//! terminal sooner or later. Programs read the JSON.

use clap::ValueEnum;
use jiff::tz::TimeZone;

use super::byte_ranges::ranges;
use super::conclusion::{by_kind, closing, unfinished, untrusted};
use super::{RootPaths, date_and_time, number, timestamp};
use fsure_core::{count, safe};
use fsure_core::{escape, units};
use fsure_integrity::model::{
    Basis, BytesByReadMode, Entry, EntryKind, Finding, KnownDamage, MetadataChange, MetadataValue,
    NameMismatch, Outcome, RecordedValue, Verdict,
};

/// A finding in one line, and a second, indented one where there is evidence;
/// no line end. It begins with the verdict's name.
pub fn finding_line(paths: &RootPaths, finding: &Finding) -> String {
    finding_line_in(paths, finding, &TimeZone::system())
}

/// The form of the block of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SummaryForm {
    /// A line for each verdict that at least one file has.
    #[default]
    Short,
    /// A line for each count, zeros included, always in the same order.
    Full,
}

/// The whole report on one root, several lines. The gravest findings are repeated if
/// `repeats_findings`: their own lines may have left the terminal by then.
pub fn summary(
    paths: &RootPaths,
    command: &str,
    outcome: &Outcome,
    form: SummaryForm,
    repeats_findings: bool,
) -> String {
    summary_in(paths, command, outcome, form, repeats_findings, &TimeZone::system())
}

fn summary_in(
    paths: &RootPaths,
    command: &str,
    outcome: &Outcome,
    form: SummaryForm,
    repeats_findings: bool,
    zone: &TimeZone,
) -> String {
    let root = escape(&fsure_os::path::bytes(paths.root()));
    let mut text = match form {
        SummaryForm::Short => format!("{command} {}\n{}", paths.heading(), verdict_rows(outcome)),
        SummaryForm::Full => {
            format!("{command} {root}\n\n{}\nSeen: {}\n", block(outcome), seen(outcome))
        }
    };
    text += &how_it_was_read(outcome);
    text.push('\n');
    if repeats_findings {
        text += &gravest(paths, outcome, zone);
    }
    text.push('\n');
    for sentence in closing(paths, outcome) {
        text += &sentence;
        text.push('\n');
    }
    text
}

/// Returns the lines of the gravest findings once more, under a heading; nothing if there are
/// none.
fn gravest(paths: &RootPaths, outcome: &Outcome, zone: &TimeZone) -> String {
    if outcome.grave.is_empty() {
        return String::new();
    }
    let mut text = "\nTo look at:\n".to_owned();
    for finding in &outcome.grave {
        text += &finding_line_in(paths, finding, zone);
        text.push('\n');
    }
    if outcome.grave_omitted > 0 {
        let omitted = count(outcome.grave_omitted);
        text += &format!("... and {omitted} more, listed above when they were found\n");
    }
    text
}

/// Explains the exit code of a run beyond its findings, a sentence each: for a user who
/// wants findings only.
pub fn beyond_findings(paths: &RootPaths, outcome: &Outcome) -> Vec<String> {
    let whole = outcome.record_untrusted.iter().flat_map(|_| untrusted(paths, outcome));
    whole.chain(unfinished(paths, outcome)).collect()
}

fn finding_line_in(paths: &RootPaths, finding: &Finding, zone: &TimeZone) -> String {
    let mut facts = vec![what(finding)];
    facts.extend(dates(finding, zone));
    let (verdict, path) = (finding.verdict.name(), paths.shown(&finding.path));
    let mut line = format!("{verdict:<12} {path}  {}", facts.join(", "));
    let evidence = evidence(paths, finding, zone);
    if !evidence.is_empty() {
        line += "\n    ";
        line += &evidence.join("; ");
    }
    line
}

/// The size of a file, the kind of anything else; before and after where the
/// two differ.
fn what(finding: &Finding) -> String {
    match (&finding.recorded, &finding.found) {
        (Some(then), Some(now)) if then.kind != now.kind => {
            format!("{} -> {}", then.kind.name(), now.kind.name())
        }
        _ if finding.kind != EntryKind::File => finding.kind.name().to_owned(),
        // A list without sizes says nothing of that of the same content.
        (Some(_), Some(now)) if finding.verdict == Verdict::Ok => units::size(now.size),
        (Some(then), Some(now)) if then.size != now.size => {
            let (before, after) = (units::size(then.size), units::size(now.size));
            if before == after {
                format!("{} -> {} bytes", count(then.size), count(now.size))
            } else {
                format!("{before} -> {after}")
            }
        }
        // An entry of a list without sizes has none.
        (Some(then), None) if then.size == 0 => finding.kind.name().to_owned(),
        (None, None) => finding.kind.name().to_owned(),
        _ => units::size(finding.size()),
    }
}

fn dates(finding: &Finding, zone: &TimeZone) -> Option<String> {
    let shown = |entry: &Entry, format| {
        timestamp(entry.mtime_ns).to_zoned(zone.clone()).strftime(format).to_string()
    };
    // The offset comes before the nanoseconds: two dates an hour apart look
    // alike in the night when the clocks go back, and on FAT all year.
    const FORMATS: [&str; 3] = ["%F %T", "%F %T %:z", "%F %T.%9f"];
    let (then, now) = (finding.recorded.as_ref(), finding.found.as_ref());
    if let (Some(then), Some(now)) = (then, now)
        && then.mtime_ns != now.mtime_ns
        && !then.is_undated()
        && finding.kind != EntryKind::Folder
    {
        let pairs = FORMATS.map(|format| (shown(then, format), shown(now, format)));
        let (before, after) = pairs.into_iter().find(|(before, after)| before != after)?;
        return Some(format!("{before} -> {after}"));
    }
    now.or(then).filter(|entry| !entry.is_undated()).map(|entry| shown(entry, FORMATS[0]))
}

fn evidence(paths: &RootPaths, finding: &Finding, zone: &TimeZone) -> Vec<String> {
    let mut evidence = Vec::new();
    if let (Some(then), Some(now)) = (&finding.recorded, &finding.found)
        && let (Some(before), Some(after)) = (&then.target, &now.target)
        && before != after
    {
        evidence.push(format!("target {} -> {}", escape(before), escape(after)));
    }
    let moved_from = finding.moved_from.as_ref();
    evidence.extend(moved_from.map(|path| paths.shown(path)).map(
        |path| match finding.name_mismatch {
            Some(NameMismatch::Nfc) => format!("recorded as {path}, in another Unicode form"),
            Some(NameMismatch::Case) => format!("recorded as {path}, in other capitals"),
            _ => format!("recorded as {path}"),
        },
    ));
    evidence.extend(finding.meta.iter().map(beside));
    let size = finding.size();
    evidence.extend(ranges("damaged", &finding.damaged, size));
    evidence.extend(ranges("unreadable", &finding.unreadable, size));
    evidence.extend(finding.reason.as_deref().map(safe));
    evidence.extend(finding.known_damage.map(|known| known_damage(finding, known, zone)));
    if finding.recorded_now && !finding.verdict.is_recordable() {
        evidence.push(match finding.is_dry_run {
            true => "would be accepted".to_owned(),
            false => "accepted: the record now holds what is there".to_owned(),
        });
    }
    evidence
}

/// Says when the damage was found, and what this run adds to that.
fn known_damage(finding: &Finding, known: KnownDamage, zone: &TimeZone) -> String {
    let date = |time_s| date_and_time(time_s, zone);
    let (found, seen) = (date(known.found_s), date(known.seen_s));
    let name = known.verdict.name();
    match finding.basis {
        Basis::KnownDamage if found == seen => format!("found on {found}, not read in this run"),
        Basis::KnownDamage => format!("found on {found}, last on {seen}, not read in this run"),
        _ if finding.verdict.is_damage() => format!("known since {found}"),
        _ => format!("it was {name} when it was last read, on {seen}"),
    }
}

/// `mode '0644' -> '0600'`.
fn beside(change: &MetadataChange) -> String {
    let now = || change.now.as_ref().map_or("none".to_owned(), MetadataValue::shown);
    let what = change.what();
    match &change.was {
        RecordedValue::Absent => format!("{what} none -> {}", now()),
        RecordedValue::Value(was) => format!("{what} {} -> {}", was.shown(), now()),
        RecordedValue::Unrecorded if change.is_unread() => format!("{what} {}", now()),
        RecordedValue::Unrecorded => format!("{what} is not recorded"),
        RecordedValue::Bad => format!("the record of {what} fails its own seal"),
    }
}

/// A line for each verdict that something has, in the order of their gravity, and for what else
/// was counted.
fn verdict_rows(outcome: &Outcome) -> String {
    let of_kinds = |[files, links, folders]: [u64; 3]| {
        let kinds =
            [(files, "file", "files"), (folders, "folder", "folders"), (links, "link", "links")];
        let kinds = kinds.into_iter().filter(|(number, ..)| *number > 0);
        let kinds: Vec<_> = kinds.map(|(n, one, many)| number(n, one, many)).collect();
        kinds.join(", ")
    };
    let by_verdict = Verdict::ALL.into_iter().map(|verdict| {
        let counts = match verdict {
            Verdict::Ignored => [outcome.ignored_files, 0, outcome.ignored_folders],
            _ => by_kind(outcome, |other| other == verdict),
        };
        (verdict.name(), of_kinds(counts))
    });
    let others = [
        ("damaged", outcome.damaged_blocks, "block", "blocks"),
        ("accepted", outcome.accepted.total(), "finding", "findings"),
        ("special", outcome.special, "FIFO, socket or device", "FIFOs, sockets and devices"),
    ];
    let others = others.into_iter().filter(|(_, number, ..)| *number > 0);
    let others = others.map(|(name, n, one, many)| (name, number(n, one, many)));
    let rows = by_verdict.chain(others).filter(|(_, what)| !what.is_empty());
    rows.map(|(name, what)| format!("    {name:<12} {what}\n")).collect()
}

/// icj's twelve lines under icj's names and in its order, then those of fsure.
fn block(outcome: &Outcome) -> String {
    let files = &outcome.files;
    let always = [
        ("With hash", outcome.with_record),
        ("Without hash", files.of(Verdict::New)),
        ("Hashed", outcome.hashed),
        ("Missing Files", files.of(Verdict::Missing)),
        ("Missing Folders", outcome.folders.of(Verdict::Missing)),
        ("Changed size", outcome.changed_size),
        ("Changed date", files.of(Verdict::Touched)),
        ("Changed content + date, size unchanged", outcome.changed_content_and_date),
        ("Total files differing", outcome.differing()),
        ("Num ignored folders", outcome.ignored_folders),
        ("Num ignored files", outcome.ignored_files),
        ("SUSPICIOUS files", files.count(Verdict::is_suspicious)),
        ("Unreadable", files.of(Verdict::Unreadable)),
        ("Denied", files.of(Verdict::Denied)),
        ("Busy", files.of(Verdict::Busy)),
        ("Moved", files.of(Verdict::Moved)),
        ("Flaky", files.of(Verdict::Flaky)),
        ("Damaged blocks", outcome.damaged_blocks),
    ];
    let where_useful = [
        ("Reverted", files.of(Verdict::Reverted)),
        ("Type changed", files.of(Verdict::TypeChanged)),
        ("Record bad", files.of(Verdict::RecordBad)),
        ("Accepted", outcome.accepted.total()),
    ];
    let rows: Vec<_> =
        always.into_iter().chain(where_useful.into_iter().filter(|row| row.1 > 0)).collect();
    let width = rows.iter().map(|row| count(row.1).len()).max().unwrap_or(0);
    rows.iter().map(|(name, number)| format!("{name:<38}  {:>width$}\n", count(*number))).collect()
}

fn seen(outcome: &Outcome) -> String {
    let is_there = |verdict| !matches!(verdict, Verdict::Missing | Verdict::Ignored);
    let [files, links, folders] = by_kind(outcome, is_there);
    let special = count(outcome.special);
    format!(
        "{}, {}, {}, {special} special",
        number(files, "file", "files"),
        number(folders, "folder", "folders"),
        number(links, "link", "links"),
    )
}

fn how_it_was_read(outcome: &Outcome) -> String {
    let BytesByReadMode { direct, remote, dontcache, dropped, cached } = outcome.bytes;
    let total = outcome.bytes.total();
    let seconds = outcome.seconds;
    let time = if seconds < 60.0 { format!("{seconds:.2} s") } else { units::span(seconds) };
    if total == 0 {
        return format!("Read: nothing, in {time}");
    }
    let ways = [
        (direct, "direct"),
        (remote, "remote"),
        (dontcache, "dontcache"),
        (dropped, "dropped"),
        (cached, "cached"),
    ];
    let ways = ways.into_iter().filter(|(bytes, _)| *bytes > 0);
    let ways: Vec<_> = ways.map(|(bytes, way)| format!("{} {way}", units::size(bytes))).collect();
    let rate = units::mib_per_second(total, seconds);
    format!("Read: {}, in {time} = {rate:.0} MiB/s", ways.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{NOON_NS, finding};
    use super::*;
    use fsure_core::RelPath;

    const MIB: u64 = 1 << 20;

    type Change = fn(&mut Finding);

    /// A finding whose two entries are changed by hand, in one line, UTC.
    fn shown(verdict: Verdict, change: impl FnOnce(&mut Finding)) -> String {
        let mut finding = finding(b"a b", verdict);
        change(&mut finding);
        finding_line_in(&RootPaths::in_root(), &finding, &TimeZone::UTC)
    }

    fn now(finding: &mut Finding) -> &mut Entry {
        finding.found.as_mut().unwrap()
    }

    #[test]
    fn a_line_shows_what_differs_and_nothing_twice() {
        let same = "24.0 MiB, 2024-05-01 12:00:00";
        let rows: [(Verdict, Change, String); 8] = [
            (Verdict::Ok, |_| (), format!("ok           a b  {same}")),
            (Verdict::DamagedCopy, |_| (), format!("damaged-copy a b  {same}")),
            (Verdict::Missing, |f| f.found = None, format!("missing      a b  {same}")),
            (
                Verdict::Modified,
                |f| (now(f).size, now(f).mtime_ns) = (3, NOON_NS + 61_000_000_000),
                "modified     a b  24.0 MiB -> 3 B, \
                 2024-05-01 12:00:00 -> 2024-05-01 12:01:01"
                    .to_owned(),
            ),
            (
                Verdict::Rotten,
                |f| now(f).size += 1,
                "rotten       a b  25,165,824 -> 25,165,825 bytes, 2024-05-01 12:00:00".to_owned(),
            ),
            (
                Verdict::Touched,
                |f| now(f).mtime_ns += 1,
                "touched      a b  24.0 MiB, \
                 2024-05-01 12:00:00.123456789 -> 2024-05-01 12:00:00.123456790"
                    .to_owned(),
            ),
            (
                Verdict::TypeChanged,
                |f| now(f).kind = EntryKind::Link,
                "type-changed a b  file -> link, 2024-05-01 12:00:00".to_owned(),
            ),
            (
                Verdict::Denied,
                |f| (f.kind, f.found, f.recorded) = (EntryKind::Folder, None, None),
                "denied       a b  folder".to_owned(),
            ),
        ];
        for (verdict, change, line) in rows {
            assert_eq!(shown(verdict, change), line);
        }
    }

    #[test]
    fn an_hour_apart_in_the_night_when_the_clocks_go_back() {
        let mut finding = finding(b"a", Verdict::Touched);
        // 2024-10-27 02:30 in Berlin, in summer time and an hour later.
        finding.recorded.as_mut().unwrap().mtime_ns = 1_729_989_000_000_000_000;
        now(&mut finding).mtime_ns = 1_729_992_600_000_000_000;
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let line = finding_line_in(&RootPaths::in_root(), &finding, &zone);
        let dates = "2024-10-27 02:30:00 +02:00 -> 2024-10-27 02:30:00 +01:00";
        assert_eq!(line, format!("touched      a  24.0 MiB, {dates}"));
    }

    #[test]
    fn evidence_goes_into_a_second_line() {
        let evidence = |change: fn(&mut Finding)| {
            let line = shown(Verdict::Rotten, change);
            line.split_once("\n    ").unwrap().1.to_owned()
        };
        let rows: [(Change, &str); 4] = [
            (
                |f| f.damaged = vec![MIB..2 * MIB, 2 * MIB..3 * MIB],
                "damaged bytes 1048576-3145728 (2.0 MiB of 24.0 MiB)",
            ),
            (
                |f| (f.damaged, f.unreadable) = (vec![0..4, 4..10], vec![20..24, 30..31]),
                "damaged bytes 0-10 (10 B of 24.0 MiB); \
                 unreadable bytes 20-24, 30-31 (5 B of 24.0 MiB)",
            ),
            (
                |f| f.unreadable = (0..10).map(|n| n * 4..n * 4 + 1).collect(),
                "unreadable bytes 0-1, 4-5, 8-9, 12-13, 16-17, 20-21, 24-25, 28-29 \
                 ... and 2 more ranges (10 B of 24.0 MiB)",
            ),
            (
                |f| (f.reason, f.recorded_now) = (Some("evil\n\x1b[2J \\n".into()), true),
                "evil\\n\\x1b[2J \\n; accepted: the record now holds what is there",
            ),
        ];
        for (change, text) in rows {
            assert_eq!(evidence(change), text);
        }
        let link = |f: &mut Finding| {
            f.kind = EntryKind::Link;
            f.recorded.as_mut().unwrap().target = Some(b"x"[..].into());
            now(f).target = Some(b"y\n"[..].into());
        };
        assert!(
            shown(Verdict::Modified, link)
                .ends_with("  link, 2024-05-01 12:00:00\n    target x -> y\\n")
        );
    }

    #[test]
    fn a_name_cannot_break_out() {
        let line = shown(Verdict::New, |f| {
            f.path = RelPath::from_bytes(*b"a\n\x1b[31mb");
        });
        assert_eq!(line, "new          a\\n\\x1b[31mb  24.0 MiB, 2024-05-01 12:00:00");
        let paths = RootPaths::at("/r\x1b]0;x\x07".as_ref());
        let report = summary(&paths, "verify", &Outcome::default(), SummaryForm::Short, false);
        assert!(report.starts_with("verify /r\\x1b]0;x\\x07\n"), "{report}");
    }

    #[test]
    fn a_summary_is_exactly_so() {
        let mut outcome = Outcome {
            hashed: 1_002,
            special: 1,
            ignored_files: 12,
            damaged_blocks: 1,
            seconds: 225.0,
            ..Outcome::default()
        };
        outcome.bytes = BytesByReadMode { direct: 904 << 30, dropped: 3 << 20, ..outcome.bytes };
        for _ in 0..1_000 {
            outcome.add(finding(b"ok", Verdict::Ok));
        }
        let mut rotten = finding(b"rot", Verdict::Rotten);
        rotten.damaged.push(0..MIB);
        outcome.add(rotten);
        let mut denied = finding(b"shut", Verdict::Denied);
        (denied.kind, denied.found, denied.recorded) = (EntryKind::Folder, None, None);
        outcome.add(denied);
        outcome.grave_omitted = 2_000;
        check_exact_summary(&outcome);
    }

    fn check_exact_summary(outcome: &Outcome) {
        let grave = "
To look at:
rotten       rot  24.0 MiB, 2024-05-01 12:00:00
    damaged bytes 0-1048576 (1.0 MiB of 24.0 MiB)
denied       shut  folder
... and 2,000 more, listed above when they were found
";
        let who_may_read = fsure_core::who_may_read();
        let end = format!(
            "
1 file is SUSPICIOUS: other content than recorded, and no date that explains it. \
Put back what is good, from the folder of a copy:
    fsure heal . --from COPY
Only if the content is known to be right, record it:
    fsure update . --accept rot
1 folder could NOT BE READ in full (1 denied: run again {who_may_read}).
"
        );
        let read = "Read: 904.0 GiB direct, 3.0 MiB dropped, in 03:45 = 4114 MiB/s\n";
        let short = "\
verify /r
    ok           1,000 files
    rotten       1 file
    denied       1 folder
    ignored      12 files
    damaged      1 block
    special      1 FIFO, socket or device
";
        let shown = |form, repeats| {
            summary_in(&RootPaths::in_root(), "verify", outcome, form, repeats, &TimeZone::UTC)
        };
        assert_eq!(shown(SummaryForm::Short, false), format!("{short}{read}{end}"));
        let full = "\
verify /r

With hash                               1,001
Without hash                                0
Hashed                                  1,002
Missing Files                               0
Missing Folders                             0
Changed size                                0
Changed date                                0
Changed content + date, size unchanged      0
Total files differing                       1
Num ignored folders                         0
Num ignored files                          12
SUSPICIOUS files                            1
Unreadable                                  0
Denied                                      1
Busy                                        0
Moved                                       0
Flaky                                       0
Damaged blocks                              1

Seen: 1,001 files, 1 folder, 0 links, 1 special
";
        assert_eq!(shown(SummaryForm::Full, true), format!("{full}{read}{grave}{end}"));
    }

    #[test]
    fn rare_counts_are_shown_where_there_are_any() {
        let mut outcome = Outcome { seconds: 0.25, ..Outcome::default() };
        for _ in 0..3 {
            outcome.accepted.files.add(Verdict::Altered);
            outcome.files.add(Verdict::Altered);
        }
        outcome.add(finding(b"old", Verdict::Reverted));
        outcome.bytes.cached = 10 << 20;
        let report = summary(&RootPaths::in_root(), "verify", &outcome, SummaryForm::Full, false);
        for line in [
            "\nReverted                                1\n",
            "\nAccepted                                3\n",
            "\nRead: 10.0 MiB cached, in 0.25 s = 40 MiB/s\n",
        ] {
            assert!(report.contains(line), "{line} in {report}");
        }
        assert!(!report.contains("Record bad") && !report.contains("To look at"), "{report}");
    }
}
