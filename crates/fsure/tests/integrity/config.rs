//! The configuration of a root and of its user: what counts where, and that
//! no mistake in either passes unseen.
#![cfg(target_os = "linux")]

use crate::support;
use crate::support::signable::{Signable, assert_clean};

fn of_user(sample: &Signable, text: &str) {
    sample.own.write("home/config/fsure/config.toml", text);
}

fn of_root(sample: &Signable, text: &str) {
    sample.tree.write(".fsure/config.toml", text);
}

#[test]
fn a_mistake_is_named_with_its_file_and_line_and_nothing_is_done() {
    let sample = Signable::new();
    let before = sample.recorded.catalog_bytes();
    sample.tree.write("new", "new");
    for (root, user, why) in [
        ("exclud = []", "", ".fsure/config.toml:1: there is no key 'exclud'; the nearest is"),
        (
            "exclude = []\nrate = '1B/s'\n",
            "",
            ".fsure/config.toml:2: 'rate' is allowed only in your own",
        ),
        ("signed_by = 'none'\n", "", "'signed_by' is allowed only in your own"),
        ("", "\ntreads = 4\n", "home/config/fsure/config.toml:2: there is no key 'treads'"),
        ("", "threads = 0\n", "threads must be a number from 1 to"),
        ("", "exclude = ['[']\n", "in your config.toml"),
    ] {
        of_root(&sample, root);
        of_user(&sample, user);
        for command in ["update", "verify", "status"] {
            let run = sample.run(command, &[]);
            assert_eq!(run.code, 2, "{root}{user}: {}", run.stderr);
            assert!(run.stderr.contains(why), "not '{why}' but {}", run.stderr);
        }
    }
    assert!(sample.recorded.catalog_bytes() == before);
}

#[test]
fn patterns_add_up_and_the_nearest_counts_first() {
    let sample = Signable::new();
    of_user(&sample, "exclude = ['*.tmp', '*.bak']\n");
    of_root(&sample, "exclude = ['!keep.tmp', '*.log']\n");
    for name in ["x.tmp", "keep.tmp", "x.bak", "x.log", "x.txt"] {
        sample.tree.write(name, name);
    }
    let new = |more: &[&str]| {
        let report = support::Report::new(sample.run("status", &[&["--json"], more].concat()));
        let reported = report.path_verdicts().into_iter().filter(|(_, verdict)| verdict == "new");
        reported.map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(new(&[]), ["keep.tmp", "x.txt"]);
    assert_eq!(new(&["--exclude", "keep.*"]), ["x.txt"]);
    // What a pattern of one's own keeps from being judged costs the exit code.
    of_root(&sample, "");
    of_user(&sample, "exclude = ['a']\n");
    std::fs::remove_file(sample.tree.path("x.txt")).expect("take away");
    assert_eq!(sample.run("status", &[]).code, 1);
}

#[test]
fn the_user_s_defaults_give_way_to_the_command_line() {
    let sample = Signable::new();
    std::fs::create_dir_all(sample.own.path("home/config/fsure")).expect("make");
    std::fs::copy(sample.own.path("mine.pub"), sample.own.path("home/config/fsure/me.pub"))
        .expect("copy");
    of_user(&sample, "signed_by = 'me.pub'\ncolor = 'always'\n");
    assert_eq!(sample.run("verify", &[]).code, 6, "nobody has signed it");
    assert_clean(&sample.run("verify", &["--signed-by", "none"]), "asked for without");
    let run = sample.run("verify", &["--signed-by", "none", "--at-least", "1"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_clean(&sample.seal(&[]), "seal");
    assert_clean(&sample.run("verify", &[]), "signed");
    assert_eq!(sample.run("verify", &["--signed-by", "@other.pub"]).code, 6);
    sample.tree.flip("a", 0);
    assert!(sample.run("verify", &[]).stdout.contains("\x1b["), "colours");
    assert!(!sample.run("verify", &["--color", "never"]).stdout.contains("\x1b["));
}

#[test]
fn digests_are_those_of_a_record_that_is_made() {
    let sample = Signable::new();
    of_user(&sample, "digests = ['sha256']\n");
    assert_clean(&sample.run("update", &["--full"]), "a record that exists");
    assert_eq!(sample.recorded.row("a")["sha256"], rusqlite::types::Value::Null);
    std::fs::remove_dir_all(sample.tree.path(".fsure")).expect("take away");
    assert_clean(&sample.run("update", &[]), "one that is made");
    assert_ne!(sample.recorded.row("a")["sha256"], rusqlite::types::Value::Null);
    assert_eq!(sample.recorded.row("a")["blake3"], rusqlite::types::Value::Null);
}
