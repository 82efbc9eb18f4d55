//! Comparisons of made-up results: which ratio, which difference, which advice, and what has to
//! be said beside them.

use super::*;
use crate::results::{
    Claim, LEFT_OUT, LayerLine, Machine, MethodLine, Noise, Profile, ResultHeader, ResultLine,
    ResultSummary, ResultTarget, Rung, VERSION,
};
use crate::stats::Spread;

/// Eight runs around a value, by up to 4 %.
fn around(value: f64) -> Vec<f64> {
    (0..8).map(|run| value * (1.0 + f64::from(run * 5 % 8) / 200.0)).collect()
}

fn stored(kind: Measurement, target: &str, lines: Vec<ResultLine>) -> StoredResult {
    let header = ResultHeader {
        kind,
        version: VERSION,
        program: "fsure 0.1.0".to_owned(),
        started: "2026-11-20T12:00:00Z".to_owned(),
        machine: Machine { host: "here".to_owned(), cores: 2, ..Machine::default() },
        targets: vec![ResultTarget { path: target.to_owned(), path_bytes: None }],
        setup: vec![("size of a write".to_owned(), "4.0 KiB".to_owned())],
    };
    let noise = Noise::default();
    let summary = ResultSummary { seconds: 9.0, noise, measured: 1, not_run: 0, exit_code: 0 };
    StoredResult { header, lines, summary: Some(summary) }
}

fn method(name: &str, target: &str, turns_us: Vec<f64>, p99_us: f64) -> ResultLine {
    let p50_us = Spread::of(&turns_us).map_or(7_000.0, |spread| spread.median);
    ResultLine::Method(MethodLine {
        name: name.to_owned(),
        target: target.to_owned(),
        ops: 1e6 / p50_us,
        p50_us,
        p99_us,
        max_us: p99_us,
        p10_us: p50_us,
        p90_us: p50_us,
        count: 1000,
        device_kib_per_op: Some(4.0),
        flushes_per_op: Some(1.0),
        reached: "data and a flush".to_owned(),
        histogram: Vec::new(),
        turns_us,
    })
}

/// A result of `flush` of which a durable write takes so long.
fn flush(target: &str, us: f64) -> StoredResult {
    let lines = vec![method("fdatasync", target, around(us), us * 2.0)];
    stored(Measurement::Flush, target, lines)
}

fn rung(name: &str, target: &str, samples: Vec<f64>) -> ResultLine {
    let Spread { median, low, high, outliers } = Spread::of(&samples).expect("runs");
    ResultLine::Rung(Rung {
        name: name.to_owned(),
        target: target.to_owned(),
        unit: "MiB/s".to_owned(),
        median,
        low,
        high,
        runs: samples.len(),
        measured: "a fixture".to_owned(),
        samples,
        warm_up: Vec::new(),
        outliers,
        amount: 1 << 20,
        cpu_s_per_gib: None,
        device_read_bytes: None,
        device_written_bytes: None,
        device_flushes: None,
    })
}

fn speed(target: &str, runs: Vec<f64>) -> StoredResult {
    stored(Measurement::Speed, target, vec![rung("disk read direct", target, runs)])
}

fn with_disk(mut stored: StoredResult, serial: &str, firmware: &str) -> StoredResult {
    let facts = [("model", "Model"), ("serial", serial), ("firmware", firmware)];
    let facts = facts.iter().map(|(name, is)| ((*name).to_owned(), (*is).to_owned())).collect();
    let target = stored.header.targets[0].path.clone();
    let (layer, name) = ("disk".to_owned(), "sda".to_owned());
    stored.lines.insert(0, ResultLine::Layer(LayerLine { target, layer, name, facts }));
    stored
}

fn judged(mut stored: StoredResult, grade: &str, id: &str) -> StoredResult {
    let target = stored.header.targets[0].path.clone();
    let (grade, id, words) = (grade.to_owned(), id.to_owned(), String::new());
    stored.lines.push(ResultLine::Verdict(Claim { target, id, grade, words }));
    stored
}

fn compared(kind: Measurement, results: &[StoredResult]) -> Comparison {
    let names: Vec<_> = (0..results.len()).map(|place| format!("{place}.jsonl")).collect();
    let files = results.iter().zip(&names).map(|(stored, file)| StoredFile { file, stored });
    compare(kind, &files.collect::<Vec<_>>()).expect("a comparison")
}

fn flushes(results: &[StoredResult]) -> Comparison {
    compared(Measurement::Flush, results)
}

fn suits(compared: &Comparison, name: &str) -> (String, String) {
    let purpose = compared.purposes.iter().find(|purpose| purpose.name == name).expect(name);
    (purpose.suits.join(" "), purpose.words.clone())
}

#[test]
fn less_time_is_faster_and_fewer_bytes_a_second_are_slower() {
    let flush = flushes(&[flush("/a", 21_000.0), flush("/b", 7_000.0)]);
    assert_eq!(
        flush.headline(),
        "Durable write (fdatasync): B is 3.0 times faster than A (2.9 to 3.1)."
    );
    let ratio = flush.figures[0].ratios[1].expect("a ratio");
    assert!((ratio.ratio.expect("a number") - 1.0 / 3.0).abs() < 1e-9);
    let (low, high) = ratio.interval.expect("an interval");
    // From the ends: 7,000 to 7,245 over 21,000 to 21,735.
    assert!((low - 7_000.0 / 21_735.0).abs() < 1e-9 && (high - 7_245.0 / 21_000.0).abs() < 1e-9);
    let speeds = [speed("/a", around(3_000.0)), speed("/b", around(1_000.0))];
    let speed = compared(Measurement::Speed, &speeds);
    assert_eq!(speed.headline(), "disk read direct: B is 3.0 times slower than A (2.9 to 3.1).");
    assert_eq!(
        (flush.exit_code(), speed.exit_code()),
        (ExitCode::Differences, ExitCode::Differences)
    );
}

#[test]
fn no_difference_is_seen_where_intervals_overlap_however_sure_the_ranks_are() {
    // Of 30 runs each, all but one of A are below all of B: ranks differ, ranges overlap.
    let wide = |from: f64, last: f64| {
        (0..7).map(|run| from + f64::from(run)).chain([last]).collect::<Vec<_>>()
    };
    let pair = [speed("/a", wide(100.0, 160.0)), speed("/b", wide(150.0, 157.5))];
    let overlapping = compared(Measurement::Speed, &pair);
    let ratio = overlapping.figures[0].ratios[1].expect("a ratio");
    assert!(ratio.p.expect("enough runs") < 0.05, "{ratio:?}");
    assert_eq!(ratio.seen, Seen::NoDifference, "{ratio:?}");
    assert_eq!(overlapping.exit_code(), ExitCode::Clean);
    // By 2 %: sure, and too little to name.
    let tight = |value: f64| (0..8).map(|run| value + f64::from(run) / 100.0).collect::<Vec<_>>();
    let close = [speed("/a", tight(100.0)), speed("/b", tight(102.0))];
    let ratio = compared(Measurement::Speed, &close).figures[0].ratios[1].expect("a ratio");
    assert_eq!((ratio.seen, ratio.p.map(|p| p < 0.05)), (Seen::NoDifference, Some(true)));
}

#[test]
fn few_runs_and_results_without_turns_have_no_ratio() {
    let few = [speed("/a", vec![100.0, 101.0]), speed("/b", vec![900.0, 901.0])];
    let few = compared(Measurement::Speed, &few);
    let ratio = few.figures[0].ratios[1].expect("a ratio");
    assert_eq!((ratio.seen, ratio.p), (Seen::TooFewRuns, None));
    assert!(few.headline().contains("B and A: too few runs to compare"), "{}", few.headline());
    assert_eq!(few.exit_code(), ExitCode::Clean);
    let mut old = flush("/a", 9_000.0);
    old.lines = vec![method("fdatasync", "/a", Vec::new(), 9_000.0)];
    let old = flushes(&[old, flush("/b", 3_000.0)]);
    assert_eq!(old.figures[0].ratios[1].expect("a ratio").seen, Seen::NoInterval);
    let (suited, words) = suits(&old, "PostgreSQL");
    assert_eq!(suited, "", "{words}");
    assert!(words.contains("The runs are too few to tell."), "{words}");
}

#[test]
fn more_ratios_need_more_certainty() {
    let runs = |from: f64| (0..5).map(|run| from + f64::from(run)).collect::<Vec<_>>();
    let of = |count: usize| {
        let results: Vec<_> =
            (0..count).map(|n| speed(&format!("/{n}"), runs(100.0 * (n + 1) as f64))).collect();
        compared(Measurement::Speed, &results)
    };
    // 2 of 252 arrangements: enough for one ratio, and not for seven.
    assert_eq!(of(2).figures[0].ratios[1].expect("a ratio").seen, Seen::Faster);
    let seven = of(8);
    assert_eq!(seven.ratios().count(), 7);
    assert!(seven.ratios().all(|ratio| ratio.seen == Seen::TooFewRuns));
    assert_eq!(seven.contenders[7].name, "H");
}

#[test]
fn what_is_not_alike_is_said() {
    let mut other = flush("/b", 7_000.0);
    other.header.setup[0].1 = "16.0 KiB".to_owned();
    other.header.machine.host = "there".to_owned();
    other.summary = None;
    let compared = flushes(&[flush("/a", 21_000.0), other]);
    let expected = [
        "machine: here in A, there in B",
        "size of a write: 4.0 KiB in A, 16.0 KiB in B",
        "B is incomplete: it was cut off before its end",
    ];
    assert_eq!(compared.unlike, expected);
    assert!(compared.contenders[1].has_other_settings);
    assert!(!compared.contenders[0].has_other_settings);
    let mut stopped = flush("/b", 7_000.0);
    stopped.summary.as_mut().expect("a last line").exit_code = 130;
    let mut failed = flush("/c", 7_000.0);
    let words = "the run ended early: no space".to_owned();
    failed.lines.push(ResultLine::Warning { words });
    let early = flushes(&[flush("/a", 21_000.0), stopped, failed]);
    let expected = ["B is incomplete: its run ended early", "C is incomplete: its run ended early"];
    assert_eq!(early.unlike, expected);
    let alike = flushes(&[flush("/a", 21_000.0), flush("/b", 7_000.0)]);
    assert_eq!(alike.unlike, [""; 0], "another folder is no other setting");
    assert!(!alike.contenders[1].has_other_settings);
}

#[test]
fn a_rate_that_was_not_reached_is_said() {
    let at = |target: &str, us: f64, rate: &str| {
        let mut stored = flush(target, us);
        stored.header.setup.push(("rate".to_owned(), rate.to_owned()));
        stored
    };
    let slow = flushes(&[at("/a", 25_000.0, "30/s"), at("/b", 50_000.0, "30/s")]);
    assert_eq!(slow.unlike, ["B did not reach the rate of 30/s: fdatasync had 19.7/s"]);
    let free =
        [at("/a", 25_000.0, "as many as possible"), at("/b", 50_000.0, "as many as possible")];
    assert_eq!(flushes(&free).unlike, [""; 0]);
}

#[test]
fn the_same_drive_is_known_by_its_serial_number() {
    let mut later = with_disk(flush("/a", 7_000.0), "S1", "2.0");
    later.header.started = "2026-11-21T12:00:00Z".to_owned();
    let earlier = with_disk(flush("/a", 21_000.0), "S1", "1.0");
    let compared = flushes(&[later.clone(), earlier.clone()]);
    let expected =
        "B and A lie on the same drive (serial S1): firmware 1.0 before (B), 2.0 after (A)";
    assert_eq!(compared.same_drives, [expected], "the earlier one comes first");
    let twins =
        [with_disk(flush("/a", 9.0), "S1", "1.0"), with_disk(flush("/b", 8.0), "S2", "1.0")];
    assert_eq!(flushes(&twins).same_drives, [""; 0]);
    let hidden = [
        with_disk(flush("/a", 9.0), LEFT_OUT, "1.0"),
        with_disk(flush("/b", 8.0), LEFT_OUT, "1.0"),
    ];
    assert_eq!(flushes(&hidden).same_drives, [""; 0], "a name that was left out is no name");
}

#[test]
fn wrong_results_are_refused() {
    let (one, two) = (flush("/a", 9.0), speed("/a", around(9.0)));
    let refused = |kind, all: &[&StoredResult]| {
        let files: Vec<_> = all.iter().map(|stored| StoredFile { file: "f", stored }).collect();
        compare(kind, &files).expect_err("refused").to_string()
    };
    let words = refused(Measurement::Flush, &[&one, &two]);
    assert!(words.contains("f: it is not a result of 'fsure flush'"), "{words}");
    let words = refused(Measurement::Flush, &[&one, &one.clone()]);
    assert!(words.contains("f and f are the same result"), "{words}");
    let words = refused(Measurement::Speed, &[&two]);
    assert!(words.contains("nothing to be compared with"), "{words}");
}

#[test]
fn the_folders_of_one_result_are_compared_and_those_of_several_are_paired() {
    let mut both = speed("/a", around(3_000.0));
    both.header.targets.push(ResultTarget { path: "/b".to_owned(), path_bytes: None });
    both.lines.push(rung("disk read direct", "/b", around(1_000.0)));
    both.lines.push(rung("void", "memory", around(9.0)));
    let one = compared(Measurement::Speed, std::slice::from_ref(&both));
    let targets: Vec<_> = one.contenders.iter().map(|one| one.targets.join(" ")).collect();
    assert_eq!(targets, ["/a", "/b"]);
    assert_eq!(one.figures.len(), 1, "memory is the same for both");
    assert_eq!(one.figures[0].ratios[1].expect("a ratio").seen, Seen::Slower);
    let mut later = both.clone();
    later.header.started = "2026-11-21T12:00:00Z".to_owned();
    let two = compared(Measurement::Speed, &[both, later]);
    let names: Vec<_> = two.figures.iter().map(|one| one.target.as_str()).collect();
    assert_eq!(names, ["/a", "/b", "memory"]);
    assert_eq!(two.exit_code(), ExitCode::Clean);
}

#[test]
fn figures_of_some_results_only_are_named_and_without_any_nothing_is_compared() {
    let mut more = flush("/b", 7_000.0);
    more.lines.push(method("fsync", "/b", around(5.0), 9.0));
    let compared = flushes(&[flush("/a", 21_000.0), more]);
    assert_eq!(compared.only_in_some, ["fsync, /b: B"]);
    let mut other = flush("/b", 7_000.0);
    other.lines = vec![method("fsync", "/b", around(5.0), 9.0)];
    let nothing = flushes(&[flush("/a", 21_000.0), other]);
    assert_eq!(nothing.exit_code(), ExitCode::Incomplete);
    assert_eq!(nothing.headline(), "These results have no figure in common.");
}

#[test]
fn each_purpose_has_its_drives_and_a_bad_flush_has_none() {
    let three = |third: &str| {
        flushes(&[
            judged(flush("/a", 21_000.0), "ok", "SLOW_FLUSH"),
            judged(flush("/b", 2_000.0), "suspicious", "FREE_FLUSH"),
            judged(flush("/c", 100.0), third, "NO_FLUSH_SENT"),
        ])
    };
    let compared = three("bad");
    for name in ["PostgreSQL", "SQLite"] {
        let (suited, words) = suits(&compared, name);
        assert_eq!(suited, "A", "{name}: {words}");
        assert!(words.contains("C is ruled out: its flush is bad (NO_FLUSH_SENT)."), "{words}");
        assert!(words.contains("B is left out: it is not proved"), "{words}");
    }
    assert!(compared.headline().ends_with("Acknowledged data get lost on C."));
    let (suited, words) = suits(&compared, "etcd");
    assert!(suited.is_empty(), "42 ms are too slow, and the others are no choice: {words}");
    assert_eq!(suits(&compared, "photo archive").0, "A");
    assert_eq!(suits(&compared, "build cache").0, "");
    let unproved = compared.unproved().expect("B");
    assert!(unproved.contains("B (suspicious: FREE_FLUSH)"), "{unproved}");
    assert_eq!(suits(&three("ok"), "PostgreSQL").0, "C");
    assert!(!three("ok").headline().contains("lost"));
    let unproved = flushes(&[
        judged(flush("/a", 21_000.0), "not measured", "NOT_MEASURED"),
        judged(flush("/b", 2_000.0), "suspicious", "FREE_FLUSH"),
        judged(flush("/c", 100.0), "bad", "NO_FLUSH_SENT"),
    ]);
    assert_eq!(suits(&unproved, "etcd").0, "B", "the best that there is, if none is proved");
    let sentence = unproved.unproved().expect("A and B");
    assert!(sentence.contains("of A (not measured), B (suspicious: FREE_FLUSH):"), "{sentence}");
    let alike = flushes(&[flush("/a", 7_000.0), flush("/b", 7_001.0)]);
    let (suited, words) = suits(&alike, "SQLite");
    assert_eq!(suited, "A B", "{words}");
    assert!(words.contains("No difference was seen."), "{words}");
    let slow = flushes(&[flush("/a", 21_000.0), flush("/b", 22_000.0)]);
    let (suited, words) = suits(&slow, "etcd");
    assert!(suited.is_empty() && words.contains("None of these suits."), "{words}");
}

#[test]
fn memory_is_no_place_for_a_database_however_quick() {
    let mut memory = judged(flush("/dev/shm", 0.3), "not measured", "NOT_MEASURED");
    let (layer, name) = ("file system".to_owned(), "tmpfs".to_owned());
    let (target, facts) = ("/dev/shm".to_owned(), Vec::new().into_iter().collect());
    memory.lines.insert(0, ResultLine::Layer(LayerLine { target, layer, name, facts }));
    for grade in ["ok", "not measured"] {
        let compared = flushes(&[judged(flush("/a", 21_000.0), grade, "ID"), memory.clone()]);
        let says = " A power cut loses everything on B.";
        assert!(compared.headline().ends_with(says), "{}", compared.headline());
        for name in ["PostgreSQL", "SQLite"] {
            let (suited, words) = suits(&compared, name);
            assert_eq!(suited, "A", "{name}: {words}");
            assert!(words.contains("B is ruled out: it is in memory"), "{words}");
        }
        assert!(suits(&compared, "etcd").0.is_empty());
        assert!(suits(&compared, "photo archive").1.contains("get lost on B"));
    }
}

#[test]
fn the_patterns_of_databases_count_if_all_have_them() {
    let with = |mut stored: StoredResult, name: &str, figure: &str, value: f64| {
        let (name, target) = (name.to_owned(), stored.header.targets[0].path.clone());
        let figures = vec![(figure.to_owned(), value)];
        let (passed, words) = (None, String::new());
        stored.lines.push(ResultLine::Profile(Profile { name, target, passed, words, figures }));
        stored
    };
    let quick = || with(flush("/a", 2_000.0), "etcd", "p99 us", 12_000.0);
    let slow = || with(flush("/b", 21_000.0), "etcd", "p99 us", 9_000.0);
    let (suited, words) = suits(&flushes(&[quick(), slow()]), "etcd");
    assert_eq!(suited, "B", "{words}");
    let (suited, words) = suits(&flushes(&[quick(), flush("/b", 21_000.0)]), "etcd");
    assert_eq!(suited, "A", "42 ms of the plain flush, since one lacks the pattern: {words}");
    let one = with(flush("/a", 2_000.0), "postgres", "commits/s", 187.4);
    let (_, words) = suits(&flushes(&[one, flush("/b", 9.0)]), "PostgreSQL");
    assert!(words.contains("Its own pattern gave 187 (A) commits a second."), "{words}");
}

#[test]
fn speed_says_what_an_archive_takes_and_leaves_databases_to_flush() {
    let pair = [speed("/a", around(100.0)), speed("/b", around(300.0))];
    let compared = compared(Measurement::Speed, &pair);
    let (suited, words) = suits(&compared, "photo archive");
    assert_eq!(suited, "B");
    assert!(words.contains("1 TiB takes 2.9 h (A), 57 min (B)"), "{words}");
    let (suited, words) = suits(&compared, "etcd");
    assert!(suited.is_empty() && words.contains("'fsure flush compare'"), "{words}");
}
