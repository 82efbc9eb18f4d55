//! Reading of results: what was written comes back, and what is damaged, late
//! or foreign is told from what a kill leaves.

use std::io::{BufReader, Cursor, Read};

use fsure_measure::results::*;

use super::*;
use crate::outputs::{Checked, ResultContent};

fn rung() -> Rung {
    Rung {
        name: "disk read direct".to_owned(),
        target: "/srv/<b>&\"'".to_owned(),
        unit: "MiB/s".to_owned(),
        median: 1234.5,
        low: 1200.0,
        high: 1300.25,
        runs: 3,
        measured: "past the page cache".to_owned(),
        samples: vec![1200.0, 1234.5, 1300.25],
        warm_up: vec![900.0],
        outliers: vec![2],
        amount: 450 << 20,
        cpu_s_per_gib: Some(0.1),
        device_read_bytes: Some((3 * 450) << 20),
        device_written_bytes: None,
        device_flushes: Some(0),
    }
}

fn tree_way() -> TreeWay {
    TreeWay {
        name: "through the cache".to_owned(),
        wanted_bytes: 4 << 30,
        wanted_readers: None,
        measured: "words".to_owned(),
        median: 1180.0,
        low: 1100.0,
        high: 1200.0,
        samples: vec![1100.0, 1180.0, 1200.0],
        warm_up: Vec::new(),
        bytes: 4 << 30,
        user_s_per_gib: Some(0.2),
        system_s_per_gib: None,
        device_read_bytes: Some(12 << 30),
        volumes: vec![TreeVolume {
            target: "/srv".to_owned(),
            is_recorded: true,
            files: 7,
            bytes: 4 << 30,
            readers: 8,
            mib_per_s: 1180.0,
        }],
        points: vec![(0.5, 1200.0, Some(600 << 20)), (1.0, 1100.5, None)],
        memory_bytes: Some(24 << 30),
        full_at_s: Some(0.75),
        left_bytes: Some(4 << 30),
        purges: Some(3),
        purge_seconds: Some(0.5),
        bystander: Some(Bystander {
            hot_bytes: 32 << 20,
            evicted_bytes: None,
            reads: 1000,
            read_bytes: 64 << 10,
            median_us: 12.5,
            p99_us: 40.0,
            max_us: 900.0,
        }),
    }
}

fn cache_cost() -> CacheCost {
    CacheCost {
        wanted_bytes: 4 << 30,
        wanted_readers: Some(8),
        potential_mib_s: 2000.0,
        actual_mib_s: 1180.0,
        loss_percent: 41.0,
        low: -3.5,
        high: 44.0,
        runs: 3,
        run_seconds: 2.1,
        cpu_ratio: Some(1.9),
        verdict: CacheVerdict::NoDifference,
    }
}

fn method() -> MethodLine {
    MethodLine {
        name: "fsync".to_owned(),
        target: "/srv".to_owned(),
        ops: 46.0,
        p50_us: 21_700.0,
        p99_us: 30_000.0,
        max_us: 51_000.0,
        p10_us: 20_000.0,
        p90_us: 25_000.0,
        count: 500,
        device_kib_per_op: None,
        flushes_per_op: Some(1.0),
        reached: "data and a flush".to_owned(),
        histogram: vec![(21_000.5, 250), (30_000.0, 250)],
        turns_us: vec![21_700.0; 8],
    }
}

fn header() -> ResultHeader {
    ResultHeader {
        kind: Measurement::Speed,
        version: VERSION,
        program: "fsure 0.1.0".to_owned(),
        started: "2026-11-20T12:00:00Z".to_owned(),
        machine: Machine { host: "h".to_owned(), cores: 2, ..Machine::default() },
        targets: vec![ResultTarget {
            path: "/srv".to_owned(),
            path_bytes: Some("L3Nyd/8=".to_owned()),
        }],
        setup: vec![("size".to_owned(), "450 MiB".to_owned())],
    }
}

/// A line of every type but the first and the last.
fn every_line() -> Vec<ResultLine> {
    let (name, target, words) = ("n".to_owned(), "/srv".to_owned(), "w".to_owned());
    let eviction = Eviction { before_bytes: 3, after_bytes: 2, left_bytes: 1 };
    let point = Point { x: 1.0, y: 2.0, low: 1.5, high: 2.5, flushes_per_op: None };
    vec![
        ResultLine::Rung(rung()),
        ResultLine::NotRun(NotRun {
            name: name.clone(),
            target: target.clone(),
            why: words.clone(),
        }),
        ResultLine::Series(Series {
            name: name.clone(),
            target: target.clone(),
            measured: words.clone(),
            points: vec![(0.5, 100.0), (1.0, 90.5)],
            bytes: 1 << 40,
            cache_bytes: 1 << 30,
            mib_per_s: 95.0,
            cpu_s_per_gib: 0.2,
            eviction: Some(eviction),
        }),
        ResultLine::Limit(Limit {
            target: target.clone(),
            verify_mib_s: 97.0,
            device_mib_s: 100.0,
            percent: 97.0,
            limit: "the device".to_owned(),
        }),
        ResultLine::TreeWay(tree_way()),
        ResultLine::CacheCost(cache_cost()),
        ResultLine::Layer(LayerLine {
            target: target.clone(),
            layer: "disk".to_owned(),
            name: "vda".to_owned(),
            facts: vec![("write cache".to_owned(), "write back".to_owned())],
        }),
        ResultLine::Method(method()),
        ResultLine::Curve(Curve {
            name: name.clone(),
            target: target.clone(),
            x: "threads".to_owned(),
            y: "commits/s".to_owned(),
            points: vec![point],
            measured: words.clone(),
        }),
        ResultLine::Profile(Profile {
            name,
            target: target.clone(),
            passed: None,
            words: words.clone(),
            figures: vec![("p99".to_owned(), 9.5)],
        }),
        ResultLine::Verdict(Claim {
            target,
            id: "FREE_FLUSH".to_owned(),
            grade: "suspicious".to_owned(),
            words: words.clone(),
        }),
        ResultLine::Warning { words },
    ]
}

fn summary() -> ResultSummary {
    let noise = Noise { load_before: Some(0.5), ..Noise::default() };
    ResultSummary { seconds: 60.5, noise, measured: 9, not_run: 1, exit_code: 0 }
}

/// A whole result, as it is stored.
fn stored() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut saved = ResultWriter::new(&mut bytes);
    saved.line(&ResultLine::Result(header())).unwrap();
    every_line().iter().for_each(|line| saved.line(line).unwrap());
    saved.line(&ResultLine::Summary(summary())).unwrap();
    bytes
}

fn measured(bytes: &[u8]) -> StoredResult {
    match read_any(bytes).unwrap().content {
        ResultContent::Measured(stored) => *stored,
        other => panic!("no measurement: {other:?}"),
    }
}

fn checked(text: &str) -> Checked {
    match read_any(text.as_bytes()).unwrap().content {
        ResultContent::Checked(checked) => *checked,
        other => panic!("no findings: {other:?}"),
    }
}

fn why(bytes: &[u8]) -> String {
    read_any(bytes).unwrap_err().to_string()
}

#[test]
fn every_line_comes_back() {
    let expected = StoredResult { header: header(), lines: every_line(), summary: Some(summary()) };
    assert_eq!(measured(&stored()), expected);
    assert_eq!(read(&stored()[..]).unwrap(), expected);
}

const NOT_OURS: &str = "line 1: fsure did not write this line";

/// A result that a kill cuts anywhere after its first line is read, and is not a
/// whole one.
#[test]
fn a_result_cut_anywhere_is_read() {
    let whole = stored();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for end in first..whole.len() - 2 {
        let cut = measured(&whole[..end]);
        assert!(cut.summary.is_none() && every_line().starts_with(&cut.lines), "{end}");
    }
    // Only the line end is gone.
    assert!(measured(&whole[..whole.len() - 1]).summary.is_some());
    for end in 1..first {
        assert!(why(&whole[..end]).starts_with(NOT_OURS), "{end}: {}", why(&whole[..end]));
    }
}

#[test]
fn what_is_not_known_is_passed_over() {
    let text = String::from_utf8(stored()).unwrap();
    let more =
        text.replace(r#"{"type":"rung","#, r#"{"type":"rung","later":[1,{"a":null}],"#).replace(
            r#"{"type":"warning","#,
            "{\"type\":\"later\",\"words\":7}\n{\"type\":\"warning\",",
        );
    assert!(more.contains("later\":[1") && more.contains("\"type\":\"later"));
    assert_eq!(measured(more.as_bytes()), measured(text.as_bytes()));
}

#[test]
fn a_parse_error_has_reason_and_place() {
    let text = String::from_utf8(stored()).unwrap();
    let damaged = text.replacen(r#""median":1234.5"#, r#""median":null"#, 1);
    assert!(why(damaged.as_bytes()).starts_with("line 2: invalid type: null"));
    let text_in_it = text.replacen("{\"type\":\"not-run\"", "oops\n{\"type\":\"not-run\"", 1);
    assert!(why(text_in_it.as_bytes()).starts_with("line 3: "), "{}", why(text_in_it.as_bytes()));
    let mut not_text = stored();
    let place = text.find("past the page").unwrap();
    not_text[place] = 0xff;
    assert!(why(&not_text).starts_with("line 2: invalid unicode"), "{}", why(&not_text));
    let later = text.replacen(r#""version":1"#, r#""version":2"#, 1);
    assert!(why(later.as_bytes()).contains("in version 2 of the format"));
    for (foreign, expected) in [
        (&b""[..], "it is empty"),
        (b"\n", "it is empty"),
        (b"hello\n", NOT_OURS),
        (b"\xff\xfe\n", NOT_OURS),
        (b"[]\n", NOT_OURS),
        (b"{}\n", NOT_OURS),
        (b"\n\n{}\n", "line 3: fsure did not write this line"),
        (b"{\"type\":\"result\",\"version\":0}\n", "line 1 does not begin a result"),
        (b"{\"type\":\"compared\"}\noops\n", "line 2: fsure did not write this line"),
        (b"{\"type\":\"photographs\"}\n", "line 1: the page does not show lines of type"),
        (
            b"{\"type\":\"summary\",\"command\":\"export\"}\n",
            "it is a report of 'fsure export', which the page does not show",
        ),
        (
            b"{\"type\":\"start\",\"command\":\"import\"}\n{\"type\":\"summary\"}\n",
            "it is a report of 'fsure import'",
        ),
        (
            b"{\"type\":\"start\"}\n{\"type\":\"summary\"}\n{\"type\":\"start\"}\n",
            "line 3: a second result begins here",
        ),
    ] {
        assert!(why(foreign).starts_with(expected), "{foreign:?}: {}", why(foreign));
    }
}

/// Counts what is taken from an endless line.
struct Endless(u64);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b' ');
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }
}

#[test]
fn a_line_without_an_end_is_left_early() {
    let mut endless = Endless(0);
    let mut input = BufReader::new(&mut endless);
    assert!(read_any(&mut input).unwrap_err().to_string().starts_with("line 1: longer than"));
    assert!(endless.0 < 2 * LINE_BYTES_MAX, "{} bytes", endless.0);
    let mut later = BufReader::new(Cursor::new(b"{\"type\":\"summary\"}\n").chain(Endless(0)));
    assert!(read_any(&mut later).unwrap_err().to_string().starts_with("line 2: longer than"));
}

#[test]
fn the_gravest_findings_are_kept_and_all_are_counted() {
    let finding = |path: usize, verdict: &str| {
        format!(
            "{{\"type\":\"finding\",\"path\":\"{path}\",\"verdict\":\"{verdict}\",\"size\":5}}\n"
        )
    };
    let mut text = String::new();
    for path in 0..30_000 {
        text += &finding(path, "new");
    }
    text += &finding(30_000, "rotten");
    text += &finding(30_001, "made up later");
    text +=
        "{\"type\":\"summary\",\"command\":\"verify\",\"exit_code\":3,\"verdicts\":{\"new\":9}}\n";
    let checked = checked(&text);
    assert_eq!((checked.found.len(), checked.found_total), (10_000, 30_002));
    let paths: Vec<_> = checked.found[..4].iter().map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["30000", "30001", "0", "1"]);
    assert_eq!(checked.found[0].stat.size, 5);
    let summary = checked.summary.unwrap();
    assert_eq!((summary.verdicts["new"], summary.exit_code), (9, 3));
}

#[test]
fn long_names_and_many_ranges_are_bounded() {
    let long = "x".repeat(1 << 20);
    let text: String = (0..100)
        .map(|_| format!("{{\"type\":\"finding\",\"path\":\"{long}\",\"verdict\":\"new\"}}\n"))
        .collect();
    let kept = checked(&text);
    assert_eq!((kept.found.len(), kept.found_total), (64, 100));
    let ranges = vec!["[0,1]"; 1000].join(",");
    let kept = checked(&format!("{{\"type\":\"finding\",\"blocks\":[{ranges}],\"meta\":[1,2]}}\n"));
    let found = &kept.found[0];
    assert_eq!((found.blocks.len(), found.blocks_left_out, found.meta), (64, 936, 2));
}

#[test]
fn a_report_that_was_cut_off_has_no_summary() {
    let text = "{\"type\":\"finding\",\"verdict\":\"new\"}\n{\"type\":\"summ";
    let cut = checked(text);
    assert_eq!((cut.found_total, cut.summary), (1, None));
    let age = "{\"type\":\"age\",\"root\":\"/r\",\"verified\":[{\"when\":\"today\",\"files\":7,\
               \"bytes\":1}],\"oldest\":{\"path\":\"a\",\"verified\":\"2026\"}}\n";
    assert_eq!(checked(age).ages[0].verified[0].files, 7);
}

/// Content, and the command that it was taken for.
fn kind(text: &str) -> &'static str {
    match read_any(text.as_bytes()).unwrap().content {
        ResultContent::Measured(_) => "measured",
        ResultContent::Checked(_) => "checked",
        ResultContent::Compared(_) => "compared",
        ResultContent::Duplicates(_) => "duplicates",
        ResultContent::Crash(_) => "crash",
        ResultContent::FlushTrace(_) => "flush trace",
        ResultContent::Hot(_) => "hot",
        ResultContent::Ram(_) => "ram",
        ResultContent::Trial(_) => "trial",
        ResultContent::Deferred(_) => "deferred",
        ResultContent::CacheTrial(_) => "uncached trial",
        ResultContent::History(_) => "history",
        ResultContent::PowerCut(_) => "power cut",
        ResultContent::Recovered(_) => "recovered",
        ResultContent::Protected(_) => "protected",
    }
}

/// Old outputs have no first line that names the command.
#[test]
fn a_command_is_known_by_its_lines_alone() {
    for (line, expected) in [
        (r#"{"type":"finding","verdict":"new"}"#, "checked"),
        (r#"{"type":"summary","command":"heal"}"#, "checked"),
        (r#"{"type":"compared","result":"moved"}"#, "compared"),
        (r#"{"type":"summary","command":"compare","same":5}"#, "compared"),
        (r#"{"type":"duplicate","group":1}"#, "duplicates"),
        (r#"{"type":"root","command":"dupes","root":"/r"}"#, "duplicates"),
        (r#"{"type":"cut","state":"lost"}"#, "crash"),
        (r#"{"type":"summary","seed":1,"cuts_per_minute":2.0}"#, "crash"),
        (r#"{"type":"flushes","kind":"fsync","count":1}"#, "flush trace"),
        (r#"{"type":"summary","command":"flush trace"}"#, "flush trace"),
        (r#"{"type":"folder","path":"/a","is_visible":true}"#, "hot"),
        (r#"{"type":"folder","path":"/a","kept":true}"#, "ram"),
        (r#"{"type":"summary","folders":0,"exit_code":0}"#, "ram"),
        (r#"{"type":"synced","path":"/a"}"#, "ram"),
        (r#"{"type":"trial","way":"ram"}"#, "trial"),
        (r#"{"type":"summary","command":"ram try"}"#, "trial"),
        (r#"{"type":"summary","command":"defer"}"#, "deferred"),
        (r#"{"type":"cache-trial","program":"tar","way":"plain"}"#, "uncached trial"),
        (r#"{"type":"generation","command":"update"}"#, "history"),
        (r#"{"type":"verification","command":"verify"}"#, "history"),
        (r#"{"type":"summary","command":"seal","files":3}"#, "history"),
        (r#"{"type":"method","method":"fsync","acked":3}"#, "power cut"),
        (r#"{"type":"summary","state":"passed","heard_ms":3}"#, "power cut"),
        (r#"{"type":"summary","command":"recover","rows":1}"#, "recovered"),
        (r#"{"type":"summary","command":"protect","files":1}"#, "protected"),
    ] {
        assert_eq!(kind(line), expected, "{line}");
    }
}

#[test]
fn a_first_line_names_the_command_and_progress_is_passed_over() {
    let text = "{\"type\":\"start\",\"command\":\"scrub\",\"host\":\"nas\",\"time\":\"2026\"}\n\
                {\"type\":\"progress\",\"done\":5}\n{\"type\":\"warning\",\"message\":\"w\"}\n\
                {\"type\":\"later\"}\n{\"type\":\"error\",\"message\":\"e\",\"hint\":null}\n";
    let read = read_any(text.as_bytes()).unwrap();
    let common = &read.common;
    let start = common.start.as_ref().unwrap();
    assert_eq!((start.command.as_str(), start.host.as_deref()), ("scrub", Some("nas")));
    assert_eq!(common.warnings, ["w"]);
    assert_eq!((common.failures[0].message.as_str(), common.unknown), ("e", 1));
    assert!(matches!(read.content, ResultContent::Checked(_)));
}

/// The first line names `ram` and `powercut` only, of which the page shows a part.
#[test]
fn a_command_that_is_not_shown_is_named() {
    for (command, line, expected) in [
        ("ram", r#"{"type":"finding","about":"swap"}"#, "ram doctor"),
        ("ram", r#"{"type":"disk","name":"fast"}"#, "ram disk"),
        ("ram", r#"{"type":"summary","command":"ram disk list"}"#, "ram disk list"),
        ("ram", r#"{"type":"pinned","path":"/a"}"#, "ram pin"),
        ("powercut", r#"{"type":"run","run":"r"}"#, "powercut write"),
        ("powercut", r#"{"type":"listening","address":"a"}"#, "powercut witness"),
    ] {
        let text = format!("{{\"type\":\"start\",\"command\":\"{command}\"}}\n{line}\n");
        let expected = format!("it is a report of 'fsure {expected}'");
        assert!(why(text.as_bytes()).starts_with(&expected), "{}", why(text.as_bytes()));
    }
}

#[test]
fn a_program_that_defer_ran_may_print_between_the_lines() {
    let text = "{\"type\":\"start\",\"command\":\"defer\"}\nhello\n{\"a\":1}\n\n\
                {\"type\":\"summary\",\"command\":\"defer\",\"deferred\":7}\n";
    let ResultContent::Deferred(run) = read_any(text.as_bytes()).unwrap().content else {
        panic!("not deferred")
    };
    assert_eq!(run.summary.unwrap().deferred, 7);
}

#[test]
fn a_measurement_behind_a_first_line_is_one() {
    let mut text = b"{\"type\":\"start\",\"command\":\"speed\"}\n".to_vec();
    text.extend(stored());
    assert_eq!(measured(&text), measured(&stored()));
    let cut = b"{\"type\":\"start\",\"command\":\"speed\"}\n";
    assert_eq!(why(cut), "line 1 does not begin a result of speed or flush");
}
