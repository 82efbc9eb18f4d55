//! The crates of the workspace and the dependencies between them, checked against what
//! cargo itself says.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Every crate, each behind those that it uses, with the crates of the workspace that it
/// depends on. `docs/architecture.md` draws this table.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("fsure-os", &[]),
    ("fsure-core", &["fsure-os"]),
    ("fsure-integrity", &["fsure-core", "fsure-os"]),
    ("fsure-ram", &["fsure-core", "fsure-os"]),
    ("fsure-simdrive", &["fsure-core", "fsure-os"]),
    ("fsure-crash", &["fsure-core", "fsure-os", "fsure-simdrive"]),
    ("fsure-powercut", &["fsure-core", "fsure-os"]),
    ("fsure-measure", &["fsure-core", "fsure-os", "fsure-powercut"]),
    ("fsure-hot", &["fsure-core", "fsure-os", "fsure-ram"]),
    ("fsure-defer", &["fsure-core", "fsure-os"]),
    ("fsure-report", &["fsure-core", "fsure-integrity", "fsure-measure"]),
    (
        "fsure",
        &[
            "fsure-core",
            "fsure-crash",
            "fsure-defer",
            "fsure-hot",
            "fsure-integrity",
            "fsure-measure",
            "fsure-os",
            "fsure-powercut",
            "fsure-ram",
            "fsure-report",
            "fsure-simdrive",
        ],
    ),
    ("xtask", &["fsure"]),
];

/// Packages that a build of one crate alone must not pull in.
const NOT_PULLED_IN: &[(&str, &[&str])] = &[
    ("fsure-integrity", &["fuser", "aya", "clap", "minijinja", "hdrhistogram"]),
    ("fsure-ram", &["fuser", "aya", "rusqlite", "libsqlite3-sys", "minisign", "clap"]),
    ("fsure-simdrive", &["aya", "rusqlite", "serde", "clap"]),
    ("fsure-crash", &["aya", "rusqlite", "clap"]),
    ("fsure-powercut", &["fuser", "aya", "rusqlite", "clap"]),
    ("fsure-measure", &["aya", "rusqlite", "clap"]),
    ("fsure-hot", &["fuser", "rusqlite", "clap"]),
    ("fsure-defer", &["fuser", "aya", "rusqlite", "serde", "clap"]),
    ("fsure", &["clap_complete", "clap_mangen"]),
];

/// The crates of a workspace by name, each with those that it depends on in a build.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Reads the dependencies out of what `cargo metadata` prints. Those of tests do not count.
fn edges(metadata: &Value) -> Edges {
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let depends = |package: &Value| {
        let all = package["dependencies"].as_array().expect("dependencies").iter();
        all.filter(|one| one["kind"] != "dev" && one.get("path").is_some()).map(name).collect()
    };
    packages.iter().map(|package| (name(package), depends(package))).collect()
}

/// Returns where the dependencies differ from a table, and where the table is out of order.
fn edge_faults(table: &[(&str, &[&str])], edges: &Edges) -> Vec<String> {
    let (mut faults, mut below) = (vec![], BTreeSet::new());
    for (name, allowed) in table {
        let allowed: BTreeSet<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        let above = allowed.difference(&below).map(|one| format!("{name} is listed above {one}"));
        faults.extend(above);
        below.insert((*name).to_owned());
        let Some(found) = edges.get(*name) else {
            faults.push(format!("{name} is not in the workspace"));
            continue;
        };
        faults.extend(found.difference(&allowed).map(|one| format!("{name} must not use {one}")));
        faults.extend(allowed.difference(found).map(|one| format!("{name} does not use {one}")));
    }
    let unlisted = edges.keys().filter(|name| !below.contains(*name));
    faults.extend(unlisted.map(|name| format!("{name} is not in the table")));
    faults
}

/// Runs cargo on this workspace and returns what it prints.
pub(crate) fn cargo(args: &[&str]) -> String {
    let run = Command::new(env!("CARGO"))
        .args(args)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("run cargo");
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8")
}

#[test]
fn crates_depend_only_on_those_below() {
    let metadata = cargo(&["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let edges = edges(&serde_json::from_str(&metadata).expect("JSON"));
    let faults = edge_faults(CRATES, &edges);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_crate_alone_pulls_in_only_what_it_needs() {
    for (name, unwanted) in NOT_PULLED_IN {
        let tree =
            cargo(&["tree", "--offline", "-p", name, "--edges", "normal", "--prefix", "none"]);
        let pulled: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(pulled.contains(name) && pulled.contains("fsure-os"), "{name}: {tree}");
        let faults: Vec<_> = unwanted.iter().filter(|one| pulled.contains(**one)).collect();
        assert!(faults.is_empty(), "{name} pulls in {faults:?}");
    }
}

#[test]
fn planted_edges_are_caught() {
    let package = |name: &str, uses: &[(&str, &str)]| {
        let uses = uses.iter().map(|(name, kind)| match *kind {
            "registry" => serde_json::json!({"name": name, "kind": null}),
            kind => {
                let kind = (kind != "normal").then_some(kind);
                serde_json::json!({"name": name, "kind": kind, "path": "somewhere"})
            }
        });
        serde_json::json!({"name": name, "dependencies": uses.collect::<Vec<_>>()})
    };
    let found = |packages: &[Value]| {
        let table: &[(&str, &[&str])] = &[("low", &[]), ("high", &["low"])];
        edge_faults(table, &edges(&serde_json::json!({"packages": packages})))
    };
    let low = package("low", &[("serde", "registry"), ("high", "dev")]);
    let high = package("high", &[("low", "normal")]);
    assert_eq!(found(&[low.clone(), high.clone()]), [""; 0]);
    let up = package("low", &[("high", "normal")]);
    assert_eq!(found(&[up, high.clone()]), ["low must not use high"]);
    let built = package("low", &[("high", "build")]);
    assert_eq!(found(&[built, high.clone()]), ["low must not use high"]);
    let alone = package("high", &[]);
    assert_eq!(found(&[low.clone(), alone]), ["high does not use low"]);
    assert_eq!(found(std::slice::from_ref(&low)), ["high is not in the workspace"]);
    let new = package("new", &[]);
    assert_eq!(found(&[low, high, new]), ["new is not in the table"]);
    let upside_down = edge_faults(&[("high", &["low"])], &Edges::new());
    assert_eq!(upside_down, ["high is listed above low", "high is not in the workspace"]);
}
