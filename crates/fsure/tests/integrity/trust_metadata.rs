//! Tests the parts of a signed record beside its rows: metadata, choices,
//! names that fsure leaves out as its own, and the commands that judge by it.
#![cfg(target_os = "linux")]

use crate::support;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::forger::forge;
use crate::support::signable::{Signable, assert_clean, assert_refused};
use crate::support::{Report, fsure_of};
use fsure_core::{ExitCode, Monitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{Finding, ScanMonitor};
use fsure_integrity::trust::{RollbackCheck, SignedBy, Verifier};
use fsure_integrity::{Options, verify};

/// A signed root that keeps modes, and has its record in its folders, too.
fn beside() -> Signable {
    let sample = Signable::new();
    mode(&sample, "b", 0o600);
    mode(&sample, "a", 0o644);
    assert_clean(&sample.run("update", &["--meta", "mode", "--layout", "folder"]), "update");
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.verify(), "signed");
    sample
}

fn mode(sample: &Signable, path: &str, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(sample.tree.path(path), permissions).expect("set the mode");
}

#[test]
fn forged_metadata_and_choices_are_noticed() {
    let sample = beside();
    mode(&sample, "a", 0o600);
    assert_eq!(sample.verify().code, 1, "another mode");
    let whole = sample.recorded.catalog_bytes();
    for sql in [
        // The new mode of a, by the row of b.
        "UPDATE metadata SET value = (SELECT value FROM metadata WHERE path = x'62') \
         WHERE path = x'61'",
        "DELETE FROM metadata WHERE path = x'61'",
        "DELETE FROM metadata",
        "DELETE FROM choice",
        "DELETE FROM choice WHERE name = 'meta'",
        "DELETE FROM choice WHERE name = 'layout'",
        "UPDATE choice SET value = 'owner' WHERE name = 'meta'",
    ] {
        forge(&sample.catalog(), sql);
        assert_ne!(sample.run("status", &[]).code, 6, "the seals show nothing: {sql}");
        assert_refused(&sample.verify(), "not those that were signed", sql);
        std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    }
    mode(&sample, "a", 0o644);
    assert_clean(&sample.verify(), "as it was");
}

#[test]
fn recorded_metadata_are_a_generation_of_their_own() {
    let sample = beside();
    let generations =
        || Report::new(sample.run("log", &["--json"])).summary()["generations"].clone();
    assert_eq!(generations(), 3);
    assert_clean(&sample.run("update", &[]), "as recorded");
    assert_eq!(generations(), 3, "nothing new");
    mode(&sample, "a", 0o600);
    assert_clean(&sample.run("update", &[]), "another mode");
    assert_eq!(generations(), 4);
    assert_refused(&sample.verify(), "was changed after generation 3", "a mode");
}

#[test]
fn no_name_is_hidden_as_one_of_fsures_own() {
    let sample = Signable::sealed();
    forge(
        &sample.catalog(),
        "CREATE TABLE healing (path BLOB PRIMARY KEY, draft BLOB NOT NULL) WITHOUT ROWID; \
         INSERT INTO healing VALUES (x'61', CAST('evil' AS BLOB))",
    );
    sample.tree.write("evil", "evil");
    assert_eq!(sample.verify().code, 1, "a draft of no heal");
    std::fs::remove_file(sample.tree.path("evil")).expect("take away");
    let draft = format!(".fsure-heal-{}", "0".repeat(32));
    forge(&sample.catalog(), &format!("UPDATE healing SET draft = CAST('{draft}' AS BLOB)"));
    sample.tree.write(&draft, "evil");
    assert_eq!(sample.verify().code, 1, "the name of a draft");
    std::fs::remove_file(sample.tree.path(&draft)).expect("take away");
    assert_clean(&sample.verify(), "as it was");
    sample.tree.write("sub/.fsure-folder.jsonl/evil", "evil");
    assert_eq!(sample.verify().code, 1, "a folder carries no record");
}

#[test]
fn log_calls_a_heal_a_heal_and_an_adoption_that() {
    let sample = beside();
    let copied = support::Tree::new();
    let copy = copied.path("copy");
    sample.copy_to(&copy);
    sample.tree.flip("b", 1 << 20);
    let from = copy.to_str().expect("a name");
    let log = || Report::new(sample.run("log", &["--json"])).lines;
    let before = log();
    sample.run("heal", &["--from", from, "--altered"]);
    assert_eq!(log(), before, "a dry run leaves nothing");
    assert_eq!(sample.run("heal", &["--from", from, "--yes", "--altered"]).code, 7);
    let heal = log().iter().rev().nth(1).expect("a line").clone();
    assert_eq!((&heal["command"], &heal["exit_code"]), (&"heal".into(), &7.into()), "{heal}");
    // Nothing is there to be read.
    std::fs::remove_file(sample.tree.path("sub/c")).expect("remove");
    let c = sample.tree.path("sub/c").into_os_string();
    let copied = copy.join("sub/c").into_os_string();
    let args = ["heal".into(), c, "--from".into(), copied, "--yes".into()];
    assert_eq!(fsure_of(&sample.own.path("home"), &args).code, 7);
    assert_eq!(log().len(), before.len() + 2, "each has its line");
    assert_clean(&sample.verify(), "healed: it claims what it did");
    std::fs::remove_dir_all(sample.tree.path("sub")).expect("remove");
    assert_eq!(sample.run("heal", &["--from", from, "--yes"]).code, 7);
    assert_clean(&sample.run("update", &[]), "what travels with the folder comes again");
    assert_clean(&sample.verify(), "a folder that was made again has its date");

    std::fs::remove_dir_all(sample.tree.path(".fsure")).expect("lose the record");
    assert_clean(&sample.run("update", &[]), "of what travelled with it");
    let report = Report::new(sample.run("log", &["--json"]));
    let adopted = &report.lines[0];
    assert_eq!((&adopted["command"], &adopted["changes"]["new"]), (&"adopt".into(), &4.into()));
}

/// Every command that judges requires the signature that the user has configured.
#[test]
fn every_judging_command_checks_the_signer() {
    let sample = beside();
    let copied = support::Tree::new();
    let copy = copied.path("copy");
    sample.copy_to(&copy);
    let from = copy.to_str().expect("a name");
    let key = std::fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    sample.own.write("home/config/fsure/mine.pub", key);
    sample.own.write("home/config/fsure/config.toml", "signed_by = \"mine.pub\"\n");
    let judges = [
        ("verify", &[][..]),
        ("status", &[]),
        ("scrub", &[]),
        ("scrub", &["--budget", "1h"]),
        ("heal", &["--from", from]),
        ("heal", &["--from", from, "--yes"]),
    ];
    for (command, more) in judges {
        let run = sample.run(command, more);
        assert_clean(&run, command);
        assert!(run.stdout.contains("Signed with"), "{command}: {}", run.stdout);
    }
    let whole = sample.recorded.catalog_bytes();
    for (path, why) in [("x'61'", "a file"), ("CAST('sub' AS BLOB)", "a folder")] {
        for (command, more) in judges {
            let sql = format!("UPDATE record SET mtime_ns = 1 WHERE path = {path}");
            forge(&sample.catalog(), &sql);
            assert_refused(&sample.run(command, more), "not those that were signed", why);
            let none = [more, &["--signed-by", "none"]].concat();
            assert_ne!(sample.run(command, &none).code, 6, "{command}: nobody asked");
            std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
        }
    }
    let run = sample.run("compare", &[from]);
    assert!(run.stderr.contains("checks no signature"), "{}", run.stderr);
    std::fs::remove_dir_all(sample.tree.path(".fsure")).expect("lose the record");
    for (command, more) in judges {
        assert_refused(&sample.run(command, more), "cannot be signed", command);
    }
    assert_clean(&sample.run("verify", &["--signed-by", "none"]), "by what travelled with it");
}

/// Takes a file away when the first verdict is reported.
struct TakesAway(PathBuf);

impl Monitor for TakesAway {}

impl ScanMonitor for TakesAway {
    fn finding(&self, _: &Finding) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_pattern_file_for_a_moment_hides_nothing() {
    let sample = Signable::sealed();
    sample.tree.write("evil", "evil");
    let patterns = sample.tree.write(".fsureignore", "evil\n");
    let key = std::fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    let key = Verifier::read(&key).expect("a key");
    let signed_by =
        Some(SignedBy { key, not_before: RollbackCheck::AtLeast(1), is_dry_run: false });
    let options = Options { signed_by, report_ok: true, ..Options::default() };
    let place = locate(sample.tree.root(), None).expect("a place");
    let outcome = verify(&place, &options, &TakesAway(patterns)).expect("an outcome");
    assert_eq!(outcome.exit_code(), ExitCode::RecordUntrusted, "{outcome:?}");
    assert!(outcome.signed.is_none());
}

/// The pattern file is as recorded by its stat, and only the walk reads it.
#[test]
fn status_keeps_to_no_patterns_but_the_signed_ones() {
    let sample = Signable::new();
    let patterns = sample.tree.write(".fsureignore", "none\n");
    assert_clean(&sample.run("update", &[]), "update");
    assert_clean(&sample.seal(&[]), "seal");
    let status = || sample.run("status", &["--signed-by", "@mine.pub"]);
    assert_clean(&status(), "as signed");
    assert_clean(&sample.verify(), "as signed");
    let time = support::mtime_ns(&patterns);
    sample.tree.write("evil", "evil");
    sample.tree.write(".fsureignore", "evil\n");
    support::set_mtime_ns(&patterns, time);
    let run = status();
    assert_eq!(run.code, 6, "{}", run.stdout);
    assert!(run.stdout.contains(".fsureignore that was not signed"), "{}", run.stdout);
}
