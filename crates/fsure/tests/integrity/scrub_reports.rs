//! Tests the reports on verifications over the years: `status --age`, metrics as
//! Prometheus reads them, and the units that let systemd run a scrub. They are checked
//! with the programs that they are for, if these are installed.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::scrub::{DAY_S, update_at};
use crate::support::{Recorded, Tree, content, fsure, or_skip};
use serde_json::{Value, json};

/// Now, in days since 1970.
fn today() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().expect("a clock");
    (since.as_secs() / DAY_S.unsigned_abs()).cast_signed()
}

#[test]
fn ages_are_those_of_the_record() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let recorded = Recorded::inside(tree.root());
    let catalog = |name: &str| beside.path(format!("{name}.db"));
    for (name, days_ago) in [("future", -9), ("new", 0)] {
        tree.write(format!("{name}/a"), content(1000, 1));
        let day = today() - days_ago;
        update_at(&tree.path(name), Some(&catalog(name)), day * DAY_S);
    }
    let ages = |name: &str| {
        let path = tree.path(name).display().to_string();
        let catalog = catalog(name).display().to_string();
        let run = fsure(&["status", &path, "--catalog", &catalog, "--age", "--json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let lines = run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.filter(|line: &Value| line["type"] != "start").collect::<Vec<_>>()
    };
    let bar = |line: &Value, when: &str| {
        let bars = line["verified"].as_array().expect("bars");
        let bar = bars.iter().find(|bar| bar["when"] == when).expect("a bar");
        (bar["files"].as_u64(), bar["bytes"].as_u64())
    };
    let new = ages("new");
    let types: Vec<_> = new.iter().map(|line| &line["type"]).collect();
    assert_eq!(types, ["age-folder", "age", "summary"], "{new:?}");
    for line in &new {
        assert_eq!(bar(line, "today"), (Some(1), Some(1000)), "{line}");
    }
    assert_eq!((&new[0]["path"], &new[1]["oldest"]["path"]), (&json!(""), &json!("a")));
    let future = ages("future");
    assert_eq!((bar(&future[1], "never").0, &future[1]["oldest"]), (Some(1), &Value::Null));
    // For a person, and without the tree.
    recorded.record();
    let text = recorded.text("status", &["--age"]);
    assert!(text.stdout.contains("Verified longest ago: "), "{}", text.stdout);
    assert!(text.stdout.contains("today            2"), "{}", text.stdout);
    recorded.edit("UPDATE record SET size = 7 WHERE path = CAST('new/a' AS BLOB)");
    let text = recorded.text("status", &["--age"]);
    assert!(text.code == 6 && text.stdout.contains("RECORD BAD: 1 record"), "{}", text.stdout);
}

/// Reads metrics as strictly as Prometheus does: a HELP and a TYPE before the
/// samples of each family, all of them in one place, none twice.
fn samples(text: &str) -> Vec<(String, f64)> {
    let (mut samples, mut families, mut family) = (Vec::new(), Vec::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            assert!(!help.is_empty() && !families.contains(&name.to_owned()), "{line}");
            family = name.to_owned();
            families.push(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest, format!("{family} gauge"));
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            assert!(name == family && series.ends_with('}'), "{line}");
            assert!(samples.iter().all(|(other, _)| other != series), "twice: {line}");
            samples.push((series.to_owned(), value.parse().expect("a number")));
        }
    }
    assert!(text.ends_with('\n') && !samples.is_empty(), "{text}");
    samples
}

fn promtool(text: &str) -> Result<(), String> {
    let mut command = Command::new("promtool");
    let command = command.args(["check", "metrics"]).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("promtool: {error}"))?;
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("write");
    let output = child.wait_with_output().expect("wait");
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && printed.is_empty(), "{}", String::from_utf8_lossy(&printed));
    Ok(())
}

#[test]
fn metrics_are_as_prometheus_reads_them() {
    let (one, other, beside) = (Tree::new(), Tree::new(), Tree::new());
    one.write("a", content(1000, 1));
    one.write("b", content(500, 2));
    let odd = other.write("back\\slash \"quote\"\nline/x", "x");
    let odd = odd.parent().expect("a folder");
    let roots = [one.root(), odd].map(Recorded::inside);
    roots.iter().for_each(|root| drop(root.record()));
    one.flip("b", 3);
    let file = beside.path("fsure.prom");
    let run = |command: &str| {
        let mut args = vec![command.into(), one.root().as_os_str().to_owned(), odd.into()];
        args.extend(["--metrics".into(), file.clone().into_os_string()]);
        fsure(&args).code
    };
    for command in ["scrub", "verify", "update"] {
        assert_eq!(run(command), 3, "{command}");
        let text = std::fs::read_to_string(&file).expect("metrics");
        let samples = samples(&text);
        let value = |name: &str, root: &str, more: &str| {
            let series = format!("fsure_{name}{{root=\"{root}\",command=\"{command}\"{more}}}");
            let found = samples.iter().find(|(other, _)| *other == series);
            found.unwrap_or_else(|| panic!("{series} is not in\n{text}")).1
        };
        let root = one.root().display().to_string();
        assert_eq!(value("last_run_exit_code", &root, ""), 3.0);
        assert_eq!(value("files", &root, ",verdict=\"altered\""), 1.0);
        assert_eq!(value("file_bytes", &root, ",verdict=\"altered\""), 500.0);
        assert_eq!(value("recorded_bytes", &root, ""), 1500.0);
        assert!(value("oldest_verification_timestamp_seconds", &root, "") > 1.7e9);
        let escaped = odd.display().to_string();
        let escaped = escaped.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        assert_eq!(value("last_run_exit_code", &escaped, ""), 0.0);
        or_skip("metrics_are_as_prometheus_reads_them", promtool(&text));
    }
    let left: Vec<_> = std::fs::read_dir(beside.root()).expect("list").collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
}

#[test]
fn metrics_report_a_failed_root_and_their_own_age() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("a", "x");
    let file = beside.path("fsure.prom");
    let run = |file: &Path| {
        let args = ["scrub".as_ref(), tree.root(), "--metrics".as_ref(), file];
        fsure(&args.map(Path::as_os_str))
    };
    assert_eq!(run(&file).code, 5, "no record");
    let text = std::fs::read_to_string(&file).expect("metrics");
    assert!(samples(&text).iter().any(|(name, value)| name.contains("exit_code") && *value == 5.0));
    assert!(!text.contains("fsure_files"), "nothing is invented: {text}");
    Recorded::inside(tree.root()).record();
    assert_eq!(run(&file).code, 0);
    let failed = run(&beside.path("none/fsure.prom"));
    assert!(failed.code == 5 && failed.stderr.contains("none/fsure.prom"), "{failed:?}");
}

/// The units with the command that was built in the place of the installed one.
#[test]
fn the_units_are_as_systemd_wants_them() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/systemd");
    let folder = Tree::new();
    for kind in ["service", "timer"] {
        let unit = std::fs::read_to_string(units.join(format!("fsure-scrub@.{kind}")));
        let unit = unit.expect("a unit").replace("/usr/bin/fsure", env!("CARGO_BIN_EXE_fsure"));
        folder.write(format!("fsure-scrub@srv-my\\x20photos.{kind}"), unit);
    }
    let mut command = Command::new("systemd-analyze");
    command.arg("verify").args(
        std::fs::read_dir(folder.root()).expect("list").map(|entry| entry.expect("a name").path()),
    );
    let output = command.output().map_err(|error| format!("systemd-analyze: {error}"));
    let Some(output) = or_skip("the_units_are_as_systemd_wants_them", output) else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

/// A call that fails before it runs must not leave what an earlier one wrote.
#[test]
fn metrics_of_a_call_that_ran_nothing_are_not_those_before() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("a", "x");
    Recorded::inside(tree.root()).record();
    let file = beside.path("fsure.prom");
    let root = tree.root().display().to_string();
    let run = |paths: &[&str]| {
        let metrics = file.display().to_string();
        fsure(&[&["scrub", "--metrics", &metrics], paths].concat()).code
    };
    assert_eq!(run(&[&root]), 0);
    let gone = beside.path("gone").display().to_string();
    let code = run(&[&root, &gone]);
    assert_ne!(code, 0);
    let text = std::fs::read_to_string(&file).expect("metrics");
    for root in [root, gone] {
        let series = format!("fsure_last_run_exit_code{{root=\"{root}\",command=\"scrub\"}}");
        assert!(samples(&text).contains(&(series, f64::from(code))), "{root}: {text}");
    }
    assert!(!text.contains("recorded_files"), "{text}");
}
