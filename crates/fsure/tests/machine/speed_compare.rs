//! Two results side by side: what has changed, what only chance has, and what
//! makes them hard to compare.

use std::path::{Path, PathBuf};

use crate::support::{Run, fsure};
use fsure_measure::results::{
    Machine, Measurement, Noise, ResultHeader, ResultLine, ResultSummary, ResultTarget, Rung,
    VERSION,
};

/// Twelve runs around a rate, none like another, by up to 4 %.
fn runs(rate: f64) -> Vec<f64> {
    (0..12).map(|run| rate * (1.0 + f64::from(run * 7 % 12) / 300.0)).collect()
}

fn rung(name: &str, target: &str, samples: Vec<f64>) -> ResultLine {
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    ResultLine::Rung(Rung {
        name: name.to_owned(),
        target: target.to_owned(),
        unit: "MiB/s".to_owned(),
        median: sorted[sorted.len() / 2],
        low: sorted[0],
        high: sorted[sorted.len() - 1],
        runs: samples.len(),
        measured: "a fixture".to_owned(),
        samples,
        warm_up: Vec::new(),
        outliers: Vec::new(),
        amount: 1 << 20,
        cpu_s_per_gib: None,
        device_read_bytes: None,
        device_written_bytes: None,
        device_flushes: None,
    })
}

/// Saves a result of one disk.
fn save(folder: &Path, name: &str, host: &str, disk: &str, rungs: Vec<ResultLine>) -> PathBuf {
    let machine = Machine { host: host.to_owned(), cores: 2, ..Machine::default() };
    let header = ResultLine::Result(ResultHeader {
        kind: Measurement::Speed,
        version: VERSION,
        program: "fsure 0.1.0".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        machine,
        targets: vec![ResultTarget { path: disk.to_owned(), path_bytes: None }],
        setup: vec![
            ("size".to_owned(), "450.0 MiB".to_owned()),
            (format!("file system of {disk}"), "ext4".to_owned()),
        ],
    });
    let (measured, exit_code) = (rungs.len() as u64, 0);
    let noise = Noise::default();
    let summary =
        ResultLine::Summary(ResultSummary { seconds: 9.0, noise, measured, not_run: 0, exit_code });
    let lines = [header].into_iter().chain(rungs).chain([summary]);
    let text: String = lines.map(|line| line.to_json() + "\n").collect();
    let path = folder.join(name);
    std::fs::write(&path, text).expect("write a fixture");
    path
}

fn compare(before: &Path, after: &Path, json: bool) -> Run {
    let mut args =
        vec!["speed".as_ref(), "compare".as_ref(), before.as_os_str(), after.as_os_str()];
    if json {
        args.push("--json".as_ref());
    }
    fsure(&args)
}

#[test]
fn changes_are_reported_and_chance_is_not() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let before = vec![
        rung("void", "memory", runs(9000.0)),
        rung("disk read direct", "/a", runs(1000.0)),
        rung("disk write durable", "/a", runs(500.0)),
        rung("gone", "/a", runs(1.0)),
    ];
    let after = vec![
        // By 2 %: for sure, and too little to name.
        rung("void", "memory", runs(9000.0).iter().map(|rate| rate * 1.02).collect()),
        rung("disk read direct", "/b", runs(700.0)),
        rung("disk write durable", "/b", runs(500.0)),
    ];
    let before = save(folder.path(), "a", "here", "/a", before);
    let after = save(folder.path(), "b", "here", "/b", after);
    let run = compare(&before, &after, false);
    assert_eq!(run.code, 1, "{run:?}");
    // The line of the second result, below the name.
    let line = |name: &str| {
        let mut lines = run.stdout.lines().skip_while(|line| *line != name);
        lines.nth(2).unwrap_or_else(|| panic!("{name}: {run:?}"))
    };
    assert!(line("disk read direct").contains("1.43 times slower ("), "{run:?}");
    for same in ["void", "disk write durable"] {
        assert!(line(same).contains("no difference seen ("), "{run:?}");
    }
    let first = run.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("disk read direct: B is 1.43 times slower than A ("), "{run:?}");
    assert!(run.stdout.contains("not in all: gone, /a: A"), "{run:?}");
    assert!(run.stdout.contains("1 of 3 ratios are a difference"), "{run:?}");
    assert!(!run.stdout.contains("not alike"), "{run:?}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run:?}");

    let run = compare(&before, &after, true);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let changes: Vec<_> = lines.iter().filter(|line| line["type"] == "change").collect();
    assert_eq!((changes.len(), &changes[1]["seen"]), (3, &"slower".into()));
    let (low, high) = (changes[1]["low"].as_f64(), changes[1]["high"].as_f64());
    assert!(low < changes[1]["ratio"].as_f64() && changes[1]["ratio"].as_f64() < high);
    let last = lines.last().expect("a line");
    assert_eq!((&last["changed"], &last["exit_code"]), (&1.into(), &1.into()));

    let run = compare(&before, &before, false);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("are the same result"), "{run:?}");
}

#[test]
fn few_runs_decide_nothing_and_another_machine_is_reported_first() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let few = |rate: f64| vec![rung("void", "memory", vec![rate, rate + 1.0, rate + 2.0])];
    let before = save(folder.path(), "a", "here", "/a", few(100.0));
    let after = save(folder.path(), "b", "there", "/a", few(900.0));
    let run = compare(&before, &after, false);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("\nnot alike: machine: here in A, there in B\n"), "{run:?}");
    assert!(run.stdout.contains("too few runs to compare"), "{run:?}");
    assert!(run.stdout.contains("'fsure speed --runs 10"), "{run:?}");
}

#[test]
fn nothing_in_common_is_no_proof_of_sameness() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let one = |name: &str| vec![rung(name, "memory", runs(9.0))];
    let before = save(folder.path(), "a", "here", "/a", one("void"));
    let after = save(folder.path(), "b", "here", "/a", one("bind"));
    let text = std::fs::read_to_string(&after).expect("read");
    let larger = text
        .replace(r#""memory_bytes":null"#, r#""memory_bytes":1073741824"#)
        .replace(r#"["size","#, r#"["rungs","bind"],["size","#);
    std::fs::write(&after, larger).expect("write");
    let run = compare(&before, &after, false);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stdout.contains("not alike: memory: not known in A, 1.0 GiB in B"), "{run:?}");
    assert!(run.stdout.contains("not alike: rungs: not recorded in A, bind in B"), "{run:?}");
}

#[test]
fn what_is_no_result_is_a_wrong_command_line() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("text");
    std::fs::write(&file, "text\n").expect("write");
    let run = compare(&file, &file, false);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("does not begin a result of speed"), "{run:?}");
}
