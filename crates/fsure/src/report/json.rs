//! The report for a program: one JSON object per line. These lines are an
//! interface that outlives the types inside, so they have types of their own:
//! renaming a field or a variant there must not rename one on the wire. The words of
//! verdicts come from `Verdict::name`, which must not change.
//!
//! Names are exact: `path` holds the text. If the bytes are not valid UTF-8,
//! `path_bytes` holds them in base64 and `path` is only for the eye.

use fsure_os::machine::Machine;
use serde::Serialize;

use super::metadata_line::MetaLine;
use super::summary_totals::SummaryTotals;
use super::timestamp;
pub(super) use fsure_core::json_path_and_bytes;
use fsure_core::{Error, ExitCode};
use fsure_integrity::model::{
    Basis, ByteRange, Entry, Finding, KnownDamage, NameMismatch, Outcome, merge_ranges,
};

/// The line of one finding below `root`; no line end.
pub fn finding_line(root: &str, finding: &Finding) -> String {
    let there = finding.found.as_ref().or(finding.recorded.as_ref());
    let (path, path_bytes) = json_path_and_bytes(finding.path.as_bytes());
    let moved_from = finding.moved_from.as_ref().map(|path| json_path_and_bytes(path.as_bytes()));
    let (moved_from, moved_from_bytes) = moved_from.map_or((None, None), |(t, b)| (Some(t), b));
    line(&FindingLine {
        r#type: "finding",
        root,
        path,
        path_bytes,
        kind: finding.kind.name(),
        verdict: finding.verdict.name(),
        moved_from,
        moved_from_bytes,
        norm: finding.name_mismatch.map(NameMismatch::name),
        meta: finding.meta.iter().map(MetaLine::of).collect(),
        stat: there.map_or_else(JsonStat::default, JsonStat::of),
        recorded: finding.recorded.as_ref().map(Recorded::of),
        blocks: pairs(&finding.damaged),
        unreadable: pairs(&finding.unreadable),
        reason: finding.reason.as_deref(),
        recorded_now: finding.recorded_now && !finding.is_dry_run,
        known: finding.known_damage.map(|known| KnownLine::of(&known, finding.basis)),
    })
}

/// The line that ends one root of several; no line end.
pub fn root_summary(root: &str, command: &str, outcome: &Outcome) -> String {
    line(&SummaryLine {
        r#type: "root",
        command,
        root: Some(root),
        totals: SummaryTotals::of(outcome),
        exit_code: outcome.exit_code().number(),
    })
}

/// The last line of the output: the sum over all roots. `root` is null where
/// there is not exactly one, and of several reasons to stop or to distrust it
/// holds the first; the line of each root holds its own. No line end.
pub fn summary(command: &str, roots: &[(String, Outcome)], exit_code: ExitCode) -> String {
    let mut totals = SummaryTotals::default();
    for (_, outcome) in roots {
        totals.add(SummaryTotals::of(outcome));
    }
    let root = match roots {
        [(root, _)] => Some(root.as_str()),
        _ => None,
    };
    let exit_code = exit_code.number();
    line(&SummaryLine { r#type: "summary", command, root, totals, exit_code })
}

/// The line of an error that ended the run; no line end.
pub fn error_line(error: &Error, hint: Option<String>) -> String {
    line(&ErrorLine {
        r#type: "error",
        message: error.to_string(),
        hint,
        exit_code: error.exit_code().number(),
    })
}

/// The catalog of a root, for the first line.
#[derive(Clone, Debug, Serialize)]
pub struct StartRoot {
    /// The root folder.
    pub root: String,
    /// The file of its record; `None` if the run uses no record.
    pub catalog: Option<String>,
    /// The newest generation of the record before the run; `None` without a record that can
    /// be read.
    pub generation: Option<u64>,
}

/// The first line of the output of a command on this machine; no line end.
pub fn start_line(command: &str, time_ns: i64, roots: &[StartRoot]) -> String {
    line(&StartLine {
        r#type: "start",
        format: FORMAT,
        fsure: env!("CARGO_PKG_VERSION"),
        command,
        time: rfc3339(time_ns),
        host: &fsure_os::user_file::host(),
        machine: MachineFacts::of(fsure_os::machine::machine()),
        roots,
    })
}

/// The line of a warning; no line end.
pub fn warning_line(message: &str) -> String {
    line(&WarningLine { r#type: "warning", message })
}

/// The progress of the run over a root.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgressLine {
    /// The root folder.
    pub root: String,
    /// Files judged.
    pub files: u64,
    /// Findings reported so far.
    pub findings: u64,
    /// Bytes of file content judged.
    pub bytes: u64,
    /// Bytes to be judged; `None` while they are counted.
    pub bytes_total: Option<u64>,
    /// Bytes hashed.
    pub bytes_hashed: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Seconds that are probably left.
    pub seconds_left: Option<f64>,
    /// The file that is being read.
    pub path: Option<String>,
    /// The share of it that is read, in percent, if it is large.
    pub path_percent: Option<u8>,
}

/// The line of the progress of a run; no line end.
pub fn progress_line(progress: &ProgressLine) -> String {
    line(&Tagged { r#type: "progress", rest: progress })
}

pub(super) fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("numbers and text under fixed names")
}

/// The version of the lines: a field that is renamed, removed or given another meaning makes
/// it the next number, a new field does not.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize)]
struct StartLine<'a> {
    r#type: &'static str,
    format: u32,
    fsure: &'static str,
    command: &'a str,
    time: String,
    host: &'a str,
    machine: MachineFacts,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    roots: &'a [StartRoot],
}

/// A description of the machine, as results of `speed` have it: figures of two machines are not to
/// be compared unawares. What the system does not report is null.
#[derive(Serialize)]
struct MachineFacts {
    system: Option<String>,
    processor: Option<String>,
    cores: Option<usize>,
    memory_bytes: Option<u64>,
    virtualization: Option<String>,
}

impl MachineFacts {
    fn of(machine: Machine) -> Self {
        let Machine { system, processor, cores, memory_bytes, virtualization } = machine;
        Self { system, processor, cores, memory_bytes, virtualization }
    }
}

#[derive(Serialize)]
struct WarningLine<'a> {
    r#type: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    rest: &'a T,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    r#type: &'static str,
    root: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    kind: &'static str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    norm: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meta: Vec<MetaLine>,
    #[serde(flatten)]
    stat: JsonStat,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Recorded>,
    blocks: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    recorded_now: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<KnownLine>,
}

/// Damage that an earlier run found. `read_now` is false if the verdict of the
/// line is that of the earlier run.
#[derive(Serialize)]
pub(super) struct KnownLine {
    verdict: &'static str,
    since: String,
    seen: String,
    read_now: bool,
}

impl KnownLine {
    pub(super) fn of(known: &KnownDamage, basis: Basis) -> Self {
        let date = |time_s: i64| rfc3339(time_s.saturating_mul(1_000_000_000));
        Self {
            verdict: known.verdict.name(),
            since: date(known.found_s),
            seen: date(known.seen_s),
            read_now: basis != Basis::KnownDamage,
        }
    }
}

#[derive(Serialize)]
struct Recorded {
    kind: &'static str,
    #[serde(flatten)]
    stat: JsonStat,
}

impl Recorded {
    fn of(entry: &Entry) -> Self {
        Self { kind: entry.kind.name(), stat: JsonStat::of(entry) }
    }
}

#[derive(Default, Serialize)]
struct JsonStat {
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ctime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bytes: Option<String>,
}

impl JsonStat {
    fn of(entry: &Entry) -> Self {
        let (target, target_bytes) = match &entry.target {
            Some(target) => {
                let (text, bytes) = json_path_and_bytes(target);
                (Some(text), bytes)
            }
            None => (None, None),
        };
        Self {
            size: entry.size,
            mtime: (!entry.is_undated()).then(|| rfc3339(entry.mtime_ns)),
            ctime: entry.ctime_ns.map(rfc3339),
            inode: entry.inode,
            target,
            target_bytes,
        }
    }
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    r#type: &'static str,
    command: &'a str,
    root: Option<&'a str>,
    #[serde(flatten)]
    totals: SummaryTotals,
    exit_code: u8,
}

#[derive(Serialize)]
struct ErrorLine {
    r#type: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    exit_code: u8,
}

pub(super) fn rfc3339(time_ns: i64) -> String {
    format!("{:.9}", timestamp(time_ns))
}

pub(super) fn pairs(ranges: &[ByteRange]) -> Vec<[u64; 2]> {
    merge_ranges(ranges).into_iter().map(|range| [range.start, range.end]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::finding;
    use super::*;
    use fsure_core::RelPath;
    use fsure_integrity::model::{
        BytesByReadMode, CountsByKind, EntryKind, ExcludedRecords, Offline, ScrubSummary,
        SidecarCounts, StopReason, Verdict,
    };
    use serde_json::{Value, json};

    const MIB: u64 = 1 << 20;

    fn parsed(line: &str) -> Value {
        assert!(!line.contains('\n'), "one line: {line}");
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_rotten_file() {
        let mut rotten = finding(b"a/b", Verdict::Rotten);
        rotten.damaged = vec![MIB..2 * MIB, 2 * MIB..3 * MIB, 5 * MIB..6 * MIB];
        let line = finding_line("/r", &rotten);
        let date = "2024-05-01T12:00:00.123456789Z";
        let stat = format!(r#""size":25165824,"mtime":"{date}","ctime":"{date}","inode":12"#);
        let head = r#"{"type":"finding","root":"/r","path":"a/b","kind":"file","verdict":"rotten""#;
        let blocks = r#""blocks":[[1048576,3145728],[5242880,6291456]]"#;
        let recorded = format!(r#""recorded":{{"kind":"file",{stat}}}"#);
        let expected = format!("{head},{stat},{recorded},{blocks}}}");
        assert_eq!(line, expected);
    }

    #[test]
    fn a_name_that_is_not_text_keeps_its_bytes() {
        for (name, text, bytes) in [
            (&b"a\n\x1b[31mb"[..], "a\n\u{1b}[31mb", Value::Null),
            (b"bad\xff", "bad\u{fffd}", json!("YmFk/w==")),
        ] {
            let line = parsed(&finding_line("/r", &finding(name, Verdict::New)));
            assert_eq!(line["path"], text);
            assert_eq!(line["path_bytes"], bytes);
        }
    }

    #[test]
    fn a_missing_link_is_reported_from_its_record() {
        let mut missing = finding(b"l", Verdict::Missing);
        missing.kind = EntryKind::Link;
        missing.found = None;
        missing.reason = Some("gone".to_owned());
        missing.recorded.as_mut().unwrap().target = Some(b"to\xff"[..].into());
        let line = parsed(&finding_line("/r", &missing));
        assert_eq!(line["target_bytes"], "dG//");
        assert_eq!(line["recorded"]["target_bytes"], "dG//");
        assert_eq!((&line["blocks"], &line["reason"]), (&json!([]), &json!("gone")));
        assert_eq!(line["unreadable"], Value::Null);
    }

    fn outcome(seed: u64) -> Outcome {
        let mut outcome = Outcome { hashed: seed, special: 1, seconds: 0.5, ..Outcome::default() };
        outcome.bytes =
            BytesByReadMode { direct: seed, remote: 4, dontcache: 1, dropped: 2, cached: 3 };
        outcome.add(finding(b"ok", Verdict::Ok));
        outcome.add(finding(b"rot", Verdict::Rotten));
        outcome.add(Finding { kind: EntryKind::Link, ..finding(b"l", Verdict::New) });
        outcome
    }

    #[test]
    fn the_last_line_sums_all_roots() {
        let mut second = outcome(7);
        second.add(finding(b"gone", Verdict::Missing));
        second.offline = Some(Offline::MostlyMissing { missing: 3, recorded: 4 });
        let roots = [("/a".to_owned(), outcome(10)), ("/b".to_owned(), second)];
        let total = parsed(&summary("verify", &roots, ExitCode::Damage));
        for (field, value) in [
            ("type", json!("summary")),
            ("command", json!("verify")),
            ("root", Value::Null),
            ("files", json!(5)),
            ("special", json!(2)),
            ("hashed", json!(17)),
            ("suspicious", json!(2)),
            ("with_record", json!(5)),
            ("bytes_read", json!(37)),
            (
                "bytes_by_way",
                json!({"direct": 17, "remote": 8, "dontcache": 2, "dropped": 4, "cached": 6}),
            ),
            ("seconds", json!(1.0)),
            ("offline", json!({"why": "mostly-missing", "missing": 3, "recorded": 4})),
            ("stopped", Value::Null),
            ("exit_code", json!(3)),
        ] {
            assert_eq!(total[field], value, "{field}");
        }
        let verdicts = total["verdicts"].as_object().unwrap();
        assert_eq!(verdicts.len(), Verdict::ALL.len());
        assert_eq!((&verdicts["ok"], &verdicts["missing"]), (&json!(2), &json!(1)));
        assert_eq!(total["links"]["new"], 2);
    }

    /// A field forgotten in `SummaryTotals::add` stays behind when a root is summed
    /// with itself.
    #[test]
    fn every_counter_is_summed() {
        let one = Outcome {
            with_record: 1,
            name_mismatches: 1,
            meta_changed: 1,
            meta_unread: 1,
            meta_bad: 1,
            carriers: SidecarCounts {
                used: 1,
                written: 1,
                removed: 1,
                behind: 1,
                conflicts: 1,
                damaged: 1,
                refused: 1,
            },
            hashed: 1,
            changed_size: 1,
            changed_content_and_date: 1,
            ignored_folders: 1,
            ignored_files: 1,
            recorded_left_out: ExcludedRecords { by_pattern: 1, ..Default::default() },
            absent_roots: vec![RelPath::root()],
            damaged_blocks: 1,
            accepted: CountsByKind { links: outcome(1).links, ..CountsByKind::default() },
            bytes_judged: 1,
            scrub: Some(ScrubSummary {
                due_files: 3,
                due_bytes: 9,
                done_files: 1,
                done_bytes: 1,
                again_files: 1,
                by_age_files: 1,
                partly_files: 1,
                partly_bytes: 1,
                too_large_files: 1,
                undecided_files: 1,
                ..ScrubSummary::default()
            }),
            ..outcome(1)
        };
        let mut folder = finding(b"f", Verdict::Denied);
        folder.kind = EntryKind::Folder;
        let mut one = one;
        one.add(folder);
        let single = parsed(&root_summary("/a", "verify", &one));
        let roots = [("/a".to_owned(), one.clone()), ("/b".to_owned(), one)];
        let double = parsed(&summary("verify", &roots, ExitCode::Damage));
        assert_doubled("", &single, &double);
    }

    fn assert_doubled(field: &str, single: &Value, double: &Value) {
        match (single, double) {
            (Value::Object(one), Value::Object(two)) => {
                for (name, value) in one.iter().filter(|(name, _)| *name != "exit_code") {
                    assert_doubled(name, value, &two[name]);
                }
            }
            (Value::Number(one), Value::Number(two)) => {
                assert_eq!(2.0 * one.as_f64().unwrap(), two.as_f64().unwrap(), "{field}");
            }
            _ => {}
        }
    }

    #[test]
    fn one_root_is_named_and_keeps_its_reasons() {
        let mut one = outcome(1);
        one.stopped = Some(StopReason::Interrupted(ExitCode::Interrupted));
        one.record_untrusted = Some("cut short".to_owned());
        let line = parsed(&root_summary("/a", "update", &one));
        assert_eq!((&line["type"], &line["root"]), (&json!("root"), &json!("/a")));
        assert_eq!(line["stopped"], json!({"why": "interrupted", "exit_code": 130}));
        assert_eq!(line["record_untrusted"], "cut short");
        assert_eq!(line["exit_code"], 130);
        let last = summary("update", &[("/a".to_owned(), one)], ExitCode::Interrupted);
        assert_eq!(parsed(&last)["root"], "/a");
    }

    #[test]
    fn an_error_has_advice() {
        let error = Error::NoRecord { path: "/x".into(), folder: "/x".into() };
        let line = parsed(&error_line(&error, error.hint()));
        assert_eq!((&line["type"], &line["exit_code"]), (&json!("error"), &json!(5)));
        assert!(line["hint"].as_str().unwrap().contains("fsure update"));
        assert_eq!(parsed(&error_line(&Error::Internal("x".into()), None))["exit_code"], 70);
    }
}
