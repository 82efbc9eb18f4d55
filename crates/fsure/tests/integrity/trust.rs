//! A forger who can write the data and the catalog, and has no key, must not
//! get `verify --signed-by` to say 0. Each of his ways is tried here, with all
//! seals and digests put right that any program can compute.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::forger::forge;
use crate::support::signable::{Signable, assert_clean, assert_refused, copy};
use crate::support::{Recorded, Report, content, fsure_of};
use fsure_core::{ExitCode, Monitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{Finding, Outcome, ScanMonitor, Verdict};
use fsure_integrity::trust::{RollbackCheck, SignedBy, Verifier};
use fsure_integrity::{Options, verify};
use rusqlite::Connection;

#[test]
fn only_a_record_that_is_as_signed_is_believed() {
    let sample = Signable::new();
    assert_refused(&sample.verify(), "not signed", "never signed");
    assert_clean(&sample.seal(&[]), "seal");
    let run = sample.verify();
    assert_clean(&run, "signed");
    assert!(run.stdout.contains("Signed with"), "{}", run.stdout);
    assert_clean(&sample.verify(), "verified before");
    assert_clean(&sample.run("update", &["--full"]), "update");
    assert_clean(&sample.verify(), "an update that found nothing new");
    assert_clean(&sample.run("verify", &[]), "nobody asked");
    sample.tree.write("new", "new");
    assert_eq!(sample.verify().code, 1, "a new file is a difference");
    assert_clean(&sample.run("update", &[]), "update");
    assert_refused(&sample.verify(), "(1 new, 3 B)", "changed since");
    assert_clean(&sample.seal(&[]), "seal again");
    assert_clean(&sample.verify(), "signed again");
    sample.tree.flip("b", 1 << 20);
    assert_eq!(sample.verify().code, 3, "damage is damage");
}

#[test]
fn a_part_is_believed_with_the_whole() {
    let sample = Signable::sealed();
    let verify = |part: &str| {
        let part = sample.tree.path(part).into_os_string();
        let key = sample.own.path("mine.pub").into_os_string();
        let args = ["verify".into(), part, "--signed-by".into(), key];
        fsure_of(&sample.own.path("home"), &args)
    };
    for part in ["sub", "a", "sub/c", "link"] {
        assert_clean(&verify(part), part);
    }
    // Outside of each part but for one.
    forge(&sample.catalog(), "UPDATE record SET mtime_ns = 1 WHERE path = x'62'");
    for part in ["sub", "a", "b", "sub/c"] {
        assert_refused(&verify(part), "not those that were signed", part);
    }
}

#[test]
fn a_forged_row_is_noticed_although_its_seals_are_right() {
    let sample = Signable::sealed();
    let whole = sample.recorded.catalog_bytes();
    let swap = |column: &str| {
        format!(
            "CREATE TEMP TABLE two AS SELECT path, {column} AS it FROM record \
             WHERE path IN (CAST('sub/c' AS BLOB), CAST('sub/d' AS BLOB)); \
             UPDATE record SET {column} = (SELECT it FROM two WHERE two.path <> record.path) \
             WHERE path IN (SELECT path FROM two); DROP TABLE two"
        )
    };
    let all = "path, kind, size, mtime_ns, ctime_ns, birth_ns, inode, file_system, target, \
               blake3, sha256, sha512, sha1, md5, xxh128, hashed_ns, verified_s, gone_s, blocks";
    let insert = format!(
        "INSERT INTO record SELECT CAST('zz' AS BLOB), {}, 0 FROM record WHERE path = x'61'",
        all.strip_prefix("path, ").unwrap()
    );
    let gone = format!("{insert}; UPDATE record SET gone_s = 1 WHERE path = CAST('zz' AS BLOB)");
    for sql in [
        "UPDATE record SET blake3 = zeroblob(32) WHERE path = x'61'",
        "UPDATE record SET blake3 = NULL, md5 = zeroblob(16) WHERE path = x'61'",
        "UPDATE record SET md5 = zeroblob(16) WHERE path = x'61'",
        "UPDATE record SET size = size + 1 WHERE path = x'61'",
        "UPDATE record SET mtime_ns = mtime_ns + 1 WHERE path = x'61'",
        "UPDATE record SET target = x'62' WHERE kind = 2",
        "UPDATE record SET kind = 1 WHERE path = x'61'",
        "UPDATE record SET path = x'6161' WHERE path = x'61'",
        "UPDATE record SET gone_s = 1 WHERE path = x'61'",
        "DELETE FROM record WHERE path = x'61'",
        "DELETE FROM record",
        "INSERT INTO nested VALUES (CAST('sub' AS BLOB))",
        &swap("blake3"),
        &insert,
        &gone,
    ] {
        forge(&sample.catalog(), sql);
        assert_ne!(sample.run("status", &[]).code, 6, "the seals show nothing: {sql}");
        assert_refused(&sample.verify(), "not those that were signed", sql);
        std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    }
    // What says nothing of the content may change: each verify and copy does.
    let sql = "UPDATE record SET verified_s = 1, hashed_ns = 2, ctime_ns = 3, inode = 4";
    forge(&sample.catalog(), sql);
    assert_clean(&sample.verify(), sql);
}

#[test]
fn forged_data_are_found_by_a_signed_record() {
    let sample = Signable::sealed();
    // The content, its record and all that can be computed: nothing shows it.
    let forged = content(100, 77);
    let time = support::mtime_ns(&sample.tree.path("a"));
    sample.tree.write("a", &forged);
    support::set_mtime_ns(&sample.tree.path("a"), time);
    let hex = blake3::hash(&forged).to_hex();
    let whole = sample.recorded.catalog_bytes();
    forge(&sample.catalog(), &format!("UPDATE record SET blake3 = x'{hex}' WHERE path = x'61'"));
    assert_clean(&sample.run("verify", &[]), "without signature");
    assert_refused(&sample.verify(), "not those that were signed", "with");
    std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    assert_eq!(sample.verify().code, 3, "by the signed record it is damage");
}

#[test]
fn a_truncated_catalog_is_no_record() {
    let sample = Signable::sealed();
    let whole = sample.recorded.catalog_bytes();
    for length in [0, 100, 4096, whole.len() / 2] {
        std::fs::write(&sample.recorded.catalog, &whole[..length]).expect("truncate");
        assert_refused(&sample.verify(), "cannot be used", &length.to_string());
    }
    std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    assert_clean(&sample.verify(), "put back");
}

#[test]
fn what_could_hide_names_is_signed_too() {
    let sample = Signable::sealed();
    sample.tree.write(".fsure/config.toml", "exclude = ['evil*']\n");
    sample.tree.write("evil", "evil");
    assert_refused(&sample.verify(), "config.toml", "a pattern of the forger's");
    assert_clean(&sample.seal(&[]), "signed with it");
    assert_clean(&sample.verify(), "and so it holds");
    std::fs::remove_file(sample.tree.path(".fsure/config.toml")).expect("take away");
    assert_refused(&sample.verify(), "config.toml", "gone");
    assert_clean(&sample.seal(&["--force"]), "seal");
    sample.tree.write(".fsureignore", "evil\n.fsureignore\n");
    assert_eq!(sample.verify().code, 1, "a pattern file is not hidden by itself");
    std::fs::remove_file(sample.tree.path(".fsureignore")).expect("take away");
    std::fs::remove_file(sample.tree.path("evil")).expect("take away");
    assert_clean(&sample.verify(), "as it was");
    forge(&sample.catalog(), "UPDATE root SET cross_file_systems = 1");
    assert_refused(&sample.verify(), "crosses into other file systems", "other file systems");
}

#[test]
fn a_root_below_has_to_be_known_and_signed() {
    let sample = Signable::new();
    let inner = Signable::new();
    inner.copy_to(&sample.tree.path("below"));
    let below = Recorded::inside(&sample.tree.path("below"));
    assert_clean(&sample.run("update", &[]), "the outer one");
    let run = sample.seal(&[]);
    assert_clean(&run, "seal");
    assert!(run.stderr.contains("a record of its own"), "{}", run.stderr);
    assert_eq!(sample.verify().code, 6, "the inner one is not signed");
    let key = sample.own.path("mine.key");
    let seal = below.arguments("seal", &[Path::new("--sign"), &key]);
    assert_clean(&fsure_of(&sample.own.path("home"), &seal), "seal the inner one");
    assert_clean(&sample.verify(), "both are signed");
    // A signed root of which the outer record knows nothing.
    std::fs::create_dir(sample.tree.path("empty")).expect("make");
    assert_clean(&sample.run("update", &[]), "a folder");
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.verify(), "signed");
    for name in ["a", "b", "sub", "link", ".fsure"] {
        copy(&sample.tree.path("below").join(name), &sample.tree.path("empty").join(name));
    }
    let run = sample.verify();
    assert_eq!(run.code, 6, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("was not there when it was signed"), "{}", run.stdout);
}

#[test]
fn weak_digests_are_not_signed() {
    let sample = Signable::new();
    let list = sample.own.write("list", "d41d8cd98f00b204e9800998ecf8427e  empty\n");
    sample.tree.write("empty", "");
    let args = ["import".into(), list.into_os_string(), "--root".into()];
    let args = [&args[..], &[sample.tree.root().as_os_str().to_owned()]].concat();
    assert_clean(&fsure_of(&sample.own.path("home"), &args), "import");
    assert_refused(&sample.seal(&[]), "1 file of it has no digest", "MD5");
    assert_clean(&sample.run("update", &["--full"]), "read");
    assert_clean(&sample.seal(&[]), "BLAKE3");
    assert_clean(&sample.verify(), "signed");
}

/// Forges the record when the first verdict is reported.
struct Forger<'a> {
    catalog: &'a Path,
    sql: String,
    has_forged: AtomicBool,
}

impl Monitor for Forger<'_> {}

impl ScanMonitor for Forger<'_> {
    fn finding(&self, _: &Finding) {
        if !self.has_forged.swap(true, Ordering::Relaxed) {
            let catalog = Connection::open(self.catalog).expect("open");
            forge(&catalog, &format!("BEGIN IMMEDIATE; {}", self.sql));
            catalog.execute_batch("COMMIT").expect("commit");
        }
    }
}

/// Verifies a signed record that is forged when the first verdict is reported.
fn verify_while_forged(sample: &Signable, sql: &str) -> Outcome {
    // Nothing is written for the run's own sake, so that the forger finds his turn.
    sample.tree.write(".fsure/catalog.db.lock", "no lock of fsure's");
    let key = std::fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    let not_before = RollbackCheck::Remembered(sample.own.path("home/state/fsure/trust.db"));
    let signed_by =
        SignedBy { key: Verifier::read(&key).expect("a key"), not_before, is_dry_run: false };
    let options = Options { signed_by: Some(signed_by), report_ok: true, ..Options::default() };
    let (catalog, sql) = (&sample.recorded.catalog, sql.to_owned());
    let forger = Forger { catalog, sql, has_forged: AtomicBool::new(false) };
    let place = locate(sample.tree.root(), None).expect("a place");
    verify(&place, &options, &forger).expect("an outcome")
}

/// The record is changed after it was checked and before it is used: a row
/// behind the 8,192 that can be under way.
#[test]
fn a_row_that_is_forged_meanwhile_takes_the_verdict_back() {
    const FILES: usize = 9_000;
    let sample = Signable::new();
    for number in 0..FILES {
        sample.tree.write(format!("many/{number:05}"), number.to_string());
    }
    assert_clean(&sample.run("update", &[]), "update");
    assert_clean(&sample.seal(&[]), "seal");
    let last = format!("many/{:05}", FILES - 1);
    let time = support::mtime_ns(&sample.tree.path(&last));
    sample.tree.write(&last, "evil");
    support::set_mtime_ns(&sample.tree.path(&last), time);
    let hex = blake3::hash(b"evil").to_hex();
    let sql = format!("UPDATE record SET blake3 = x'{hex}' WHERE path = CAST('{last}' AS BLOB)");
    let outcome = verify_while_forged(&sample, &sql);
    assert_eq!(outcome.files.of(Verdict::Ok), FILES as u64 + 4, "it was judged by the forged row");
    assert_eq!(outcome.exit_code(), ExitCode::RecordUntrusted);
    let why = outcome.record_untrusted.expect("a reason");
    assert!(why.contains("while they were judged") && outcome.signed.is_none(), "{why}");
}

/// Names that came or went wait until all names are known, and their rows are
/// asked for once more then.
#[test]
fn a_name_that_waits_is_not_forged_meanwhile() {
    for (name, sql) in [
        // A file that is gone: `verify` would not miss it.
        ("", "DELETE FROM record WHERE path = x'61'"),
        ("", "UPDATE record SET gone_s = 1 WHERE path = x'61'"),
        // A file that came: it would be as recorded.
        (
            "evil",
            "INSERT INTO record SELECT CAST('evil' AS BLOB), kind, size, mtime_ns, ctime_ns, \
             birth_ns, inode, file_system, target, blake3, sha256, sha512, sha1, md5, xxh128, \
             hashed_ns, verified_s, gone_s, blocks, seal FROM record WHERE path = x'61'",
        ),
    ] {
        let sample = Signable::sealed();
        if name.is_empty() {
            std::fs::remove_file(sample.tree.path("a")).expect("take away");
        } else {
            let time = support::mtime_ns(&sample.tree.path("a"));
            sample.tree.write(name, content(100, 1));
            support::set_mtime_ns(&sample.tree.path(name), time);
        }
        let outcome = verify_while_forged(&sample, sql);
        assert_eq!(outcome.exit_code(), ExitCode::RecordUntrusted, "{sql}: {outcome:?}");
        assert_eq!(outcome.files.of(Verdict::Missing) + outcome.files.of(Verdict::New), 0, "{sql}");
    }
}

#[test]
fn a_bad_call_is_a_bad_call() {
    let sample = Signable::sealed();
    for (command, more) in [
        ("verify", &["--at-least", "3"][..]),
        ("verify", &["--signed-by", "@mine.key"]),
        ("verify", &["--signed-by", "@mine.pub", "--head", "12"]),
        ("verify", &["--signed-by", "@mine.pub", "--at-least", "1", "--head", "12"]),
        ("seal", &[]),
        ("seal", &["--sign", "@mine.pub"]),
    ] {
        let run = sample.run(command, more);
        assert_eq!(run.code, 2, "{command} {more:?}: {}", run.stderr);
    }
    let text = std::fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    let text = text.lines().nth(1).expect("a key");
    assert_clean(&sample.run("verify", &["--signed-by", text]), "a key as text");
}

#[test]
fn log_shows_runs_and_signers() {
    let sample = Signable::new();
    sample.tree.write("new", "12345");
    std::fs::remove_file(sample.tree.path("a")).expect("take away");
    std::fs::rename(sample.tree.path("sub/c"), sample.tree.path("e")).expect("rename");
    assert_clean(&sample.run("update", &[]), "update");
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.verify(), "verify");
    let report = Report::new(sample.run("log", &["--json"]));
    let changes = &report.lines[1]["changes"];
    for (what, count) in [("new", 1), ("missing", 1), ("moved", 1), ("modified", 0), ("bytes", 5)] {
        assert_eq!(changes[what], count, "{what}: {report:?}");
    }
    assert_eq!(report.lines[2]["command"], "seal");
    assert_eq!(report.lines[2]["head"], sample.head().as_str());
    let verification = &report.lines[3];
    assert_eq!(verification["type"], "verification");
    assert_eq!((&verification["files"], &verification["exit_code"]), (&4.into(), &0.into()));
    assert_eq!(report.summary()["generations"], 3);
    let text = sample.run("log", &["--signed-by", "@mine.pub"]).stdout;
    for part in ["1 new, 1 missing, 1 moved, 5 B", "4 files read", "Signed with"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
