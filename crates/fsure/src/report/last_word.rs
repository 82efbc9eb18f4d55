//! The last word of a command over one root or several: the worst first, so that
//! a root that is well and reported last hides no damage in one reported before, and
//! what the exit code means.

use super::{RootPaths, number};
use fsure_core::count;
use fsure_core::{Error, ExitCode};
use fsure_integrity::model::{AgeHistogram, Outcome, StopReason, Verdict};

/// Roots that are named; the worst come first.
const ROOTS_SHOWN_MAX: usize = 20;

/// The result of one root.
#[derive(Clone, Debug)]
pub struct RootEnd {
    root: String,
    /// By what it found; that the run was asked to end says less.
    code: ExitCode,
    found: String,
    /// It ended with an error, which says what it means.
    is_error: bool,
}

impl RootEnd {
    /// The end of a run over a root.
    pub fn of(paths: &RootPaths, outcome: &Outcome) -> Self {
        let code = outcome.findings_code();
        let found = Some(in_brief(outcome)).filter(|parts| !parts.is_empty());
        let found = found.map_or_else(|| meaning(code).to_owned(), |parts| parts.join(", "));
        Self { root: paths.shown_scope(), code, found, is_error: false }
    }

    /// The end of a run that looked only at what the record says.
    pub fn of_ages(paths: &RootPaths, ages: &AgeHistogram) -> Self {
        let damaged = ages.known_damage.total();
        let parts = [
            (damaged, "known to be damaged"),
            (ages.bad_records, "records bad"),
            (ages.total().files, "recorded"),
        ];
        let (code, found) = (ages.exit_code(), counts(&parts).join(", "));
        Self { root: paths.shown_scope(), code, found, is_error: false }
    }

    /// A root that could not be judged.
    pub fn failed(paths: &RootPaths, error: &Error) -> Self {
        let found = format!("NOT JUDGED: {}", fsure_core::safe(&error.to_string()));
        Self { root: paths.shown_scope(), code: error.exit_code(), found, is_error: true }
    }

    /// A root that the run did not come to.
    pub fn not_reached(paths: &RootPaths) -> Self {
        let found = "NOT LOOKED AT: the run ended before".to_owned();
        Self { root: paths.shown_scope(), code: ExitCode::Incomplete, found, is_error: false }
    }
}

/// The last lines of the report; nothing of a single root that is well or could
/// not be judged.
pub fn text(mut ends: Vec<RootEnd>, code: ExitCode) -> String {
    match &ends[..] {
        [] => return String::new(),
        [end] if end.is_error => return String::new(),
        [_] => return exit_code(code),
        _ => {}
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.code.rank()));
    let roots = count(ends.len() as u64);
    let mut text = format!("\n{roots} roots, the worst first:\n");
    for end in ends.iter().take(ROOTS_SHOWN_MAX) {
        text += &format!("    {}: {}\n", end.root, end.found);
    }
    if let Some(next) = ends.get(ROOTS_SHOWN_MAX) {
        let more = number((ends.len() - ROOTS_SHOWN_MAX) as u64, "root", "roots");
        text += &format!("    ... and {more} more, the worst of them: {}\n", meaning(next.code));
    }
    text + &format!("Exit code {}, the worst of all {roots}: {}.\n", code.number(), meaning(code))
}

/// Explains the exit code, in a sentence; nothing if all is well.
pub fn exit_code(code: ExitCode) -> String {
    match code {
        ExitCode::Clean => String::new(),
        _ => format!("Exit code {}: {}.\n", code.number(), meaning(code)),
    }
}

fn meaning(code: ExitCode) -> &'static str {
    match code {
        ExitCode::Clean | ExitCode::Program(0) => "nothing is wrong with what was looked at",
        ExitCode::Differences => "there are differences, none of them known as damage",
        ExitCode::Usage => "the command line cannot be used as it is",
        ExitCode::Damage => "content is damaged, or known to be and not put right",
        ExitCode::Unread => "something could not be read, and so was not judged",
        ExitCode::Incomplete => "the run is incomplete; the lines above say what is left and why",
        ExitCode::RecordUntrusted => "a record, or a list, cannot be trusted",
        ExitCode::Healed => "damage was found, and all of it was put right",
        ExitCode::Internal => "a fault of fsure itself; please report it",
        ExitCode::Program(_) => "the program ended with it",
        ExitCode::Interrupted => "ended by Ctrl-C before it was done; what was done is saved",
        ExitCode::Terminated => "ended by SIGTERM before it was done; what was done is saved",
    }
}

/// The gravest first: damage is reported before what was not read.
const ORDER: [Verdict; 15] = [
    Verdict::RecordBad,
    Verdict::Rotten,
    Verdict::Altered,
    Verdict::DamagedCopy,
    Verdict::Mismatch,
    Verdict::Flaky,
    Verdict::Unreadable,
    Verdict::Denied,
    Verdict::Busy,
    Verdict::TypeChanged,
    Verdict::Missing,
    Verdict::Modified,
    Verdict::Reverted,
    Verdict::Moved,
    Verdict::New,
];

/// Counts the findings, in a few words each.
fn in_brief(outcome: &Outcome) -> Vec<String> {
    let of = |verdict: Verdict| {
        let [files, links, folders] = outcome.troubles(|other| other == verdict);
        // A folder that could not be listed counts among the files, too.
        if verdict.is_unread() { files.max(folders) + links } else { files + links + folders }
    };
    let is_recorded = |verdict: Verdict| outcome.is_update && verdict.is_recordable();
    // What is known to be damaged is counted below.
    let settled = |verdict| of(verdict).saturating_sub(outcome.unsettled_edits.of(verdict));
    let (recorded, reported): (Vec<_>, Vec<_>) = ORDER.into_iter().partition(|v| is_recorded(*v));
    let mut parts: Vec<_> = whole(outcome).into_iter().map(str::to_owned).collect();
    let verdicts: Vec<_> =
        reported.into_iter().map(|verdict| (of(verdict), verdict.name())).collect();
    parts.extend(counts(&verdicts));
    let healing = outcome.healing.unwrap_or_default();
    let touched = if outcome.is_update { 0 } else { outcome.redated_unread };
    parts.extend(counts(&[
        (outcome.known_damage.total(), "known to be damaged"),
        (healing.healed.total(), "healed"),
        (healing.healable.total(), "that can be healed"),
        (touched, "with another date"),
        (recorded.into_iter().map(settled).sum(), "recorded"),
        (
            outcome.files.of(Verdict::Ok)
                + outcome.files.of(Verdict::Touched).saturating_sub(touched),
            "ok",
        ),
    ]));
    parts
}

/// Lists the faults of the root as a whole.
fn whole(outcome: &Outcome) -> Vec<&'static str> {
    let offline = outcome.offline.as_ref().map(|_| "OFFLINE");
    let untrusted = outcome.record_untrusted.as_ref().map(|_| "the record CANNOT BE TRUSTED");
    let stopped = outcome.stopped.as_ref().map(|stop| match stop {
        StopReason::Interrupted(_) => "INTERRUPTED",
        StopReason::StorageSilent(_) => "GIVEN UP",
        StopReason::RecordFailed(_) => "the record COULD NOT BE WRITTEN",
    });
    [untrusted, offline, stopped].into_iter().flatten().collect()
}

/// `1 altered`, `2 missing`: those that there are.
fn counts(of: &[(u64, &str)]) -> Vec<String> {
    let there = of.iter().filter(|(many, _)| *many > 0);
    there.map(|(many, what)| format!("{} {what}", count(*many))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::finding;
    use super::*;
    use fsure_integrity::model::{EntryKind, Finding};

    fn end(root: &str, verdicts: &[Verdict], change: fn(&mut Outcome)) -> RootEnd {
        let mut outcome = Outcome::default();
        for verdict in verdicts {
            outcome.add(finding(b"f", *verdict));
        }
        change(&mut outcome);
        RootEnd::of(&RootPaths::at(root.as_ref()), &outcome)
    }

    #[test]
    fn a_root_that_is_well_and_last_hides_no_damage() {
        let damaged = [Verdict::Altered, Verdict::Missing, Verdict::Missing, Verdict::Ok];
        let ends = vec![
            end("/differs", &[Verdict::New], |_| ()),
            end("/bad", &damaged, |_| ()),
            end("/good", &[Verdict::Ok], |_| ()),
        ];
        assert_eq!(
            text(ends, ExitCode::Damage),
            "\n3 roots, the worst first:\n    /bad: 1 altered, 2 missing, 1 ok\n    \
             /differs: 1 new\n    /good: 1 ok\n\
             Exit code 3, the worst of all 3: content is damaged, or known to be and not put \
             right.\n"
        );
    }

    #[test]
    fn damage_comes_before_a_run_that_was_asked_to_end() {
        let interrupted = |outcome: &mut Outcome| {
            outcome.stopped = Some(StopReason::Interrupted(ExitCode::Interrupted));
        };
        let paths = RootPaths::at("/c\x1b".as_ref());
        let ends = vec![
            end("/a", &[Verdict::Ok], interrupted),
            RootEnd::not_reached(&paths),
            RootEnd::failed(&paths, &Error::Internal("x\x1b".to_owned())),
            end("/b", &[Verdict::Rotten], interrupted),
        ];
        let text = text(ends, ExitCode::Interrupted);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines[2..6],
            [
                "/c\\x1b: NOT JUDGED: internal fault: x\\x1b",
                "/b: INTERRUPTED, 1 rotten",
                "/a: INTERRUPTED, 1 ok",
                "/c\\x1b: NOT LOOKED AT: the run ended before"
            ]
        );
        assert!(lines[6].starts_with("Exit code 130, the worst of all 4: ended by Ctrl-C"));
    }

    #[test]
    fn every_code_has_words_and_many_roots_stay_short() {
        let ends = |many| vec![end("/a", &[Verdict::New], |_| ()); many];
        assert_eq!(text(ends(1), ExitCode::Clean), "");
        assert!(text(ends(1), ExitCode::Differences).starts_with("Exit code 1: there are"));
        let many = text(ends(1_024), ExitCode::Differences);
        assert_eq!(many.lines().count(), ROOTS_SHOWN_MAX + 4, "{many}");
        assert!(many.contains("    ... and 1,004 roots more, the worst of them: there are"));
        // What has no count of its own is expressed by the code.
        let cut = end("/a", &[], |outcome| outcome.unusable_entries = 1);
        assert!(cut.found.starts_with("the run is incomplete"));
    }

    #[test]
    fn what_an_update_recorded_is_not_a_finding_any_more() {
        let update = end("/a", &[Verdict::New, Verdict::Modified, Verdict::Altered], |outcome| {
            outcome.is_update = true;
        });
        assert_eq!(update.found, "1 altered, 2 recorded");
        let mut outcome = Outcome::default();
        outcome.add(Finding { kind: EntryKind::Folder, ..finding(b"d", Verdict::Denied) });
        assert_eq!(in_brief(&outcome), ["1 denied"]);
    }
}
