//! Old records with valid signatures, signatures of others, and a history that
//! was edited: none of them gets `verify --signed-by` to say 0.
#![cfg(target_os = "linux")]

use crate::support::forger::forge;
use crate::support::signable::{Signable, assert_clean, assert_refused, copy};
use crate::support::{Mounted, fsure_of, or_skip};
use minisign::KeyPair;
use rustix::mount::MountFlags;

#[test]
fn a_rollback_is_detected_here_and_shown_elsewhere() {
    let sample = Signable::sealed();
    let old = sample.own.path("old");
    sample.copy_to(&old);
    let old_head = sample.head();
    sample.tree.write("late", "late");
    assert_clean(&sample.run("update", &[]), "update");
    let unsigned = sample.recorded.catalog_bytes();
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.verify(), "the new one");
    let signed = sample.recorded.catalog_bytes();
    let head = sample.head();
    // An older catalog without a signature of its own state, beside newer data.
    std::fs::write(&sample.recorded.catalog, &unsigned).expect("put back");
    assert_refused(&sample.verify(), "changed after generation 2", "the unsigned one");
    // All of it as it was, with its valid signature.
    std::fs::remove_dir_all(sample.tree.root()).expect("take away");
    copy(&old, sample.tree.root());
    assert_refused(&sample.verify(), "rolled back", "the old one");
    assert_refused(&sample.seal(&[]), "rolled back", "and it is not signed again");
    assert_refused(&sample.run("verify", &["--signed-by", "@mine.pub", "--at-least", "3"]), "", "");
    let on_purpose = ["--signed-by", "@mine.pub", "--at-least", "2"];
    assert_clean(&sample.run("verify", &on_purpose), "an old copy on purpose");
    // Elsewhere fsure does not know, unless the user names it.
    assert_refused(&sample.verify_elsewhere(&["--at-least", "4"]), "at least 4 was requested", "");
    assert_refused(&sample.verify_elsewhere(&["--head", &head]), "not the requested one", "");
    assert_clean(&sample.verify_elsewhere(&["--head", &old_head]), "the one that was meant");
    assert_clean(&sample.verify_elsewhere(&[]), "first contact");
    // From there on it is remembered, at whatever place the new one is seen.
    sample.tree.write("late", "late");
    std::fs::write(&sample.recorded.catalog, &signed).expect("put back");
    assert_clean(&sample.verify_elsewhere(&[]), "the newer one");
    let args = ["verify".into(), old.into_os_string(), "--signed-by".into()];
    let args = [&args[..], &[sample.own.path("mine.pub").into_os_string()]].concat();
    let run = fsure_of(&sample.own.path("elsewhere"), &args);
    assert_refused(&run, "rolled back", "an old copy at another place");
}

#[test]
fn a_memory_that_does_not_work_is_no_memory_of_nothing() {
    let sample = Signable::sealed();
    let memory = sample.own.path("home/state/fsure/trust.db");
    for damage in [&b""[..], b"x", b"SQLite format 3\0"] {
        std::fs::write(&memory, damage).expect("damage");
        assert_refused(&sample.verify(), "is not known", "damaged");
        assert_refused(&sample.seal(&[]), "is not known", "damaged");
    }
    let named = ["--signed-by", "@mine.pub", "--head", &sample.head()];
    assert_clean(&sample.run("verify", &named), "without memory");
}

/// A verify of many hours is not to end in this.
#[test]
fn a_memory_that_cannot_be_written_is_refused_before_anything_is_judged() {
    let sample = Signable::sealed();
    let old = sample.recorded.catalog_bytes();
    assert_clean(&sample.seal(&[]), "signed once more");
    let home = sample.own.path("home");
    let test = "a_memory_that_cannot_be_written";
    let Some(_mounted) = or_skip(test, Mounted::bind(&home, &home)) else { return };
    rustix::mount::mount_remount(&home, MountFlags::BIND | MountFlags::RDONLY, "")
        .expect("remount");
    let generations = || sample.catalog().query_row("SELECT count(*) FROM generation", [], one);
    let before = generations().expect("count");
    let why = "could not be remembered there (it is read-only)";
    assert_refused(&sample.verify(), why, "verify");
    assert_refused(&sample.seal(&[]), why, "seal");
    assert_eq!(generations(), Ok(before), "nothing was signed");
    std::fs::write(&sample.recorded.catalog, old).expect("put back");
    assert_refused(&sample.verify(), "rolled back", "the graver reason");
    assert_refused(&sample.seal(&[]), "rolled back", "the graver reason");
}

fn one(row: &rusqlite::Row<'_>) -> rusqlite::Result<i64> {
    row.get(0)
}

#[test]
fn only_the_right_key_counts() {
    let sample = Signable::new();
    let by_other = sample.run("seal", &["--sign", "@other.key"]);
    assert_clean(&by_other, "somebody else signs");
    assert_refused(&sample.verify(), "signed with the key", "another key");
    assert_clean(&sample.seal(&[]), "signed on top of it");
    assert_clean(&sample.verify(), "now by the right one");
    let run = sample.run("verify", &["--signed-by", "@other.pub"]);
    assert_refused(&run, "signed with the key", "each asks for his own");
    // A signature with the right number and made by another key.
    let sql = "SELECT statement FROM generation ORDER BY number DESC LIMIT 1";
    let text: String = sample.catalog().query_row(sql, [], |row| row.get(0)).expect("a seal");
    let forged = KeyPair::generate_unencrypted_keypair().expect("a pair");
    let signature =
        minisign::sign(None, &forged.sk, text.as_bytes(), None, None).expect("sign").into_string();
    let mine = std::fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    let signature = with_key_number(&signature, mine.lines().nth(1).expect("a key"));
    let sql = "UPDATE generation SET signature = ?1 WHERE number = \
               (SELECT max(number) FROM generation)";
    sample.catalog().execute(sql, [signature]).expect("edit");
    forge(&sample.catalog(), "");
    assert_refused(&sample.verify(), "forged", "the number of the right key");
}

/// A signature that names another key than the one it was made with.
fn with_key_number(signature: &str, public: &str) -> String {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD;
    let public = base64.decode(public).expect("a key");
    let mut lines: Vec<_> = signature.lines().map(str::to_owned).collect();
    let mut bytes = base64.decode(&lines[1]).expect("a signature");
    bytes[2..10].copy_from_slice(&public[2..10]);
    lines[1] = base64.encode(bytes);
    lines.join("\n")
}

#[test]
fn a_signature_is_for_one_root() {
    let (sample, other) = (Signable::sealed(), Signable::new());
    // Signed with the same key, of another tree.
    for name in ["mine.pub", "mine.key"] {
        std::fs::copy(sample.own.path(name), other.own.path(name)).expect("copy");
    }
    other.tree.write("more", "more");
    assert_clean(&other.run("update", &[]), "update");
    assert_clean(&other.seal(&[]), "seal");
    let theirs = other.recorded.catalog.to_str().expect("text").to_owned();
    let whole = sample.recorded.catalog_bytes();
    let sql = format!(
        "ATTACH '{theirs}' AS other; DELETE FROM main.generation; \
         INSERT INTO main.generation SELECT * FROM other.generation"
    );
    forge(&sample.catalog(), &sql);
    assert_refused(&sample.verify(), "another record was signed here", "its signature alone");
    let head = other.head();
    let elsewhere = sample.verify_elsewhere(&["--head", &head]);
    assert_refused(&elsewhere, "not those that were signed", "its signature alone, elsewhere");
    // All of the other root in the place of this one.
    std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    let head = sample.head();
    std::fs::remove_dir_all(sample.tree.root()).expect("take away");
    copy(other.tree.root(), sample.tree.root());
    assert_refused(&sample.verify(), "another record was signed here", "the whole root");
    assert_refused(
        &sample.verify_elsewhere(&["--head", &head]),
        "not the requested one",
        "elsewhere",
    );
    assert_clean(&sample.seal(&["--force"]), "on purpose");
    assert_clean(&sample.verify(), "a new chain");
}

#[test]
fn the_history_is_bound_by_the_signature() {
    let sample = Signable::sealed();
    for name in ["two", "three", "four"] {
        sample.tree.write(name, name);
        assert_clean(&sample.run("update", &[]), "update");
    }
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.verify(), "six generations");
    let whole = sample.recorded.catalog_bytes();
    for (sql, why) in [
        ("DELETE FROM generation WHERE number = 1", ""),
        ("DELETE FROM generation WHERE number = 2", ""),
        ("DELETE FROM generation WHERE number = 4", ""),
        ("DELETE FROM generation WHERE number < 6", ""),
        ("DELETE FROM generation WHERE number < 3", ""),
        (
            "UPDATE generation SET statement = replace(statement, 'files: 4', 'files: 5') \
             WHERE number = 2",
            "generation 2 is not the signed one",
        ),
        ("DELETE FROM generation WHERE number = 6", "changed after generation 2"),
        ("DELETE FROM generation WHERE number > 2", "rolled back"),
        ("DELETE FROM generation", "not signed"),
        ("UPDATE generation SET at_s = at_s - 1 WHERE number = 4", ""),
        ("UPDATE generation SET command = 'import' WHERE number = 1", ""),
        ("UPDATE generation SET new = 0 WHERE number = 3", ""),
        ("UPDATE generation SET statement = NULL WHERE number = 2", ""),
        ("UPDATE generation SET number = 0 WHERE number = 1", ""),
        ("UPDATE generation SET number = 7 WHERE number = 6", ""),
        ("UPDATE generation SET statement = statement || ' ' WHERE number = 6", "forged"),
        ("UPDATE generation SET signature = '' WHERE number = 6", "forged"),
        (
            "INSERT INTO generation SELECT 7, at_s, command, made_by, new, modified, touched, \
          missing, moved, accepted, bytes, NULL, NULL FROM generation WHERE number = 3",
            "(1 new",
        ),
        (
            "INSERT INTO generation SELECT 0, at_s, command, made_by, new, modified, touched, \
          missing, moved, accepted, bytes, NULL, NULL FROM generation WHERE number = 3",
            "",
        ),
    ] {
        forge(&sample.catalog(), sql);
        assert_refused(&sample.verify(), why, sql);
        let log = sample.run("log", &["--signed-by", "@mine.pub"]);
        assert!(log.code == 6 || why == "rolled back", "{sql}: {}", log.stdout);
        std::fs::write(&sample.recorded.catalog, &whole).expect("put back");
    }
    assert_clean(&sample.run("log", &["--signed-by", "@mine.pub"]), "put back");
}
