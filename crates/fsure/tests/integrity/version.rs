//! `fsure --version` is one line, and with `--verbose` what a report of a fault needs.

use serde_json::Value;

use crate::support::{fsure, fsure_with};

#[test]
fn the_version_alone_is_one_line() {
    for option in ["--version", "-V"] {
        let run = fsure(&[option]);
        let expected = format!("fsure {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!((run.code, run.stdout), (0, expected), "{option}");
    }
}

#[test]
fn text_and_json_have_the_same_facts() {
    let text = fsure(&["--version", "--verbose"]);
    let json = fsure(&["-vV", "--json"]);
    assert_eq!((text.code, json.code), (0, 0), "{text:?} {json:?}");
    assert_eq!(fsure_with(("FSURE_JSON", "1".as_ref()), &["-V", "-v"]).stdout, json.stdout);
    let facts: Value = serde_json::from_str(&json.stdout).expect("one object");
    let line = |name: &str| {
        let lines = text.stdout.lines();
        let value = lines.filter_map(|line| line.strip_prefix(name)).next();
        value.unwrap_or_else(|| panic!("no {name}: {text:?}")).trim().to_owned()
    };
    assert_eq!(line("fsure"), facts["fsure"].as_str().expect("text"));
    assert_eq!(line("commit"), facts["commit"].as_str().unwrap_or("unknown"));
    for name in ["target", "profile", "compiler"] {
        assert_eq!(line(name), facts[name].as_str().expect("text"), "{name}");
    }
    let features: &[_] = match cfg!(feature = "storage") {
        true => &["integrity", "storage"],
        false => &["integrity"],
    };
    assert_eq!(facts["features"], Value::from(features));
    assert_eq!(line("features"), features.join(", "));
    for feature in facts["kernel"].as_array().into_iter().flatten() {
        let expected = match feature["is_available"].as_bool() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not probed",
        };
        let name = feature["name"].as_str().expect("a name");
        assert!(line(name).starts_with(expected), "{name}: {text:?}");
    }
}
