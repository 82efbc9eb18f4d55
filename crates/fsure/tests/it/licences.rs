//! Holds every package of the lock file against `deny.toml`: its licence, its registry, its
//! name, and that the workspace asks for no package of any version. cargo-deny reads the same
//! file and checks more (`cargo deny check`), but takes longer to build than fsure itself.

use std::collections::BTreeSet;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::tidy::crate_graph::cargo;

/// The rules of `deny.toml`, as far as they are checked here.
struct Policy {
    licences: BTreeSet<String>,
    banned: BTreeSet<String>,
}

impl Policy {
    fn parse(text: &str) -> Self {
        let table: toml::Table = text.parse().expect("deny.toml");
        let list = |section: &str, key: &str| {
            table[section][key].as_array().cloned().unwrap_or_else(|| panic!("{section}.{key}"))
        };
        let text = |value: &toml::Value| value.as_str().expect("a text").to_owned();
        Self {
            licences: list("licenses", "allow").iter().map(text).collect(),
            banned: list("bans", "deny").iter().map(|ban| text(&ban["crate"])).collect(),
        }
    }

    /// Returns what is wrong with a package; nothing if it may be used.
    fn faults(&self, package: &Value) -> Vec<String> {
        let name = package["name"].as_str().expect("a name");
        let mut faults = vec![];
        if self.banned.contains(name) {
            faults.push(format!("{name} is banned"));
        }
        if let Some(why) = self.licence_fault(package["license"].as_str()) {
            faults.push(format!("{name}: {why}"));
        }
        match package["source"].as_str() {
            None => faults.extend(any_version_faults(name, package)),
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => faults.push(format!("{name} comes from {source}, not the registry")),
        }
        faults
    }

    fn licence_fault(&self, licence: Option<&str>) -> Option<String> {
        let Some(licence) = licence else { return Some("it states no licence".to_owned()) };
        let expression = match Expression::parse_mode(licence, ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => return Some(format!("its licence is no SPDX expression: {error}")),
        };
        let is_allowed = expression.evaluate(|one| self.licences.contains(&one.to_string()));
        (!is_allowed).then(|| format!("{licence} is not among the licences of deny.toml"))
    }
}

/// Returns the dependencies of a package of the workspace that may have any version.
fn any_version_faults(name: &str, package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
    let is_any = |one: &&Value| one["req"] == "*" && one.get("path").is_none();
    dependencies
        .filter(is_any)
        .map(|one| format!("{name} asks for any version of {}", one["name"]))
        .collect()
}

/// Returns the packages of the lock file, those for other systems, too: cargo fetches what it
/// lacks of them.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--all-features", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn policy() -> Policy {
    Policy::parse(include_str!("../../../../deny.toml"))
}

#[test]
fn every_package_may_be_linked() {
    let (policy, packages) = (policy(), packages());
    assert!(packages.len() > 200, "{} packages", packages.len());
    let sources: BTreeSet<_> = packages.iter().filter_map(|it| it["source"].as_str()).collect();
    assert_eq!(sources.len(), 1, "one registry: {sources:?}");
    let faults: Vec<_> = packages.iter().flat_map(|package| policy.faults(package)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_package_that_breaks_a_rule_is_named() {
    let policy = policy();
    let package = |name: &str, licence: Option<&str>, source: Option<&str>, req: &str| {
        let dependencies = serde_json::json!([{ "name": "other", "req": req }]);
        serde_json::json!({
            "name": name, "license": licence, "source": source, "dependencies": dependencies,
        })
    };
    let (registry, git) = (Some("registry+x"), Some("git+x"));
    for (package, fault) in [
        (package("a", Some("MIT/Apache-2.0"), registry, "*"), None),
        (package("a", Some("MIT OR GPL-3.0-only"), registry, "*"), None),
        (package("a", Some("MIT AND GPL-3.0-only"), registry, "*"), Some("not among")),
        (package("a", Some("GPL-3.0-or-later"), registry, "*"), Some("not among")),
        (package("a", Some("Apache-2.0 WITH LLVM-exception"), registry, "*"), None),
        (package("a", Some("my own"), registry, "*"), Some("no SPDX expression")),
        (package("a", None, registry, "*"), Some("states no licence")),
        (package("a", Some("MIT"), git, "*"), Some("not the registry")),
        (package("tokio", Some("MIT"), registry, "*"), Some("is banned")),
        (package("a", Some("MIT"), None, "*"), Some("any version")),
        (package("a", Some("MIT"), None, "^1"), None),
    ] {
        let faults = policy.faults(&package).join("; ");
        assert_eq!(faults.is_empty(), fault.is_none(), "{package}: {faults}");
        assert!(faults.contains(fault.unwrap_or_default()), "{package}: {faults}");
    }
}
