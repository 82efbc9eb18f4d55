//! Both ways with the real `minisign`: keys that it makes sign here, and what
//! is signed here it verifies; what it signs is believed here.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::forger::forge;
use crate::support::{Recorded, Run, Tree, fsure_of, skip};

/// Runs minisign with lines on its standard input; `None`, and a loud skip,
/// where it is not there.
fn minisign(test: &str, folder: &Path, lines: &str, args: &[&str]) -> Option<Output> {
    let mut command = Command::new("minisign");
    command.args(args).current_dir(folder).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            skip(test, &format!("minisign: {error}"));
            return None;
        }
    };
    let mut input = child.stdin.take().expect("standard input");
    input.write_all(lines.as_bytes()).expect("answer");
    drop(input);
    Some(child.wait_with_output().expect("wait for minisign"))
}

fn run(own: &Tree, recorded: &Recorded, command: &str, more: &[&OsStr]) -> Run {
    fsure_of(own.root(), &recorded.arguments(command, more))
}

/// The statement as a file.
fn statement(recorded: &Recorded) -> PathBuf {
    let seal = recorded.root.join(".fsure/seal");
    let files = std::fs::read_dir(seal).expect("a folder").map(|file| file.expect("a file").path());
    let texts = files.filter(|file| file.extension().is_some_and(|tail| tail == "txt"));
    texts.max().expect("a statement")
}

fn sample() -> (Tree, Tree, Recorded) {
    let (tree, own) = (Tree::new(), Tree::new());
    tree.write("a", "a");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, own, recorded)
}

#[test]
fn minisign_verifies_what_its_keys_sign_here() {
    let test = "minisign_verifies_what_its_keys_sign_here";
    let (_tree, own, recorded) = sample();
    own.write("password", "open sesame\nand more\n");
    own.write("wrong", "open\n");
    let (password, wrong) = (own.path("password"), own.path("wrong"));
    for (name, answers, protects) in
        [("plain", "", "-W"), ("locked", "open sesame\nopen sesame\n", "-f")]
    {
        let (public, secret) = (format!("{name}.pub"), format!("{name}.key"));
        let args = ["-G", protects, "-p", &public, "-s", &secret];
        let Some(made) = minisign(test, own.root(), answers, &args) else { return };
        assert!(made.status.success(), "{made:?}");
        let (public, secret) = (own.path(&public), own.path(&secret));
        let sign = [OsStr::new("--sign"), secret.as_os_str(), "--password-file".as_ref()];
        if name == "locked" {
            let sign = [&sign[..], &[wrong.as_os_str()]].concat();
            let refused = run(&own, &recorded, "seal", &sign);
            assert_eq!(refused.code, 2, "{}{}", refused.stdout, refused.stderr);
            assert!(refused.stderr.contains("Wrong password"), "{}", refused.stderr);
        }
        let sealed = run(&own, &recorded, "seal", &[&sign[..], &[password.as_os_str()]].concat());
        assert_eq!(sealed.code, 0, "{name}: {}", sealed.stderr);
        let file = statement(&recorded);
        let (file, key) = (file.to_str().expect("text"), public.to_str().expect("text"));
        let verify = ["-V", "-m", file, "-p", key];
        let verified = minisign(test, own.root(), "", &verify).expect("it was there");
        assert!(verified.status.success(), "{name}: {verified:?}");
        let stdout = String::from_utf8_lossy(&verified.stdout);
        assert!(stdout.contains("generation:"), "{stdout}");
        let signed_by = [OsStr::new("--signed-by"), public.as_os_str()];
        assert_eq!(run(&own, &recorded, "verify", &signed_by).code, 0, "{name}");
    }
}

#[test]
fn what_minisign_signs_is_believed_here() {
    let test = "what_minisign_signs_is_believed_here";
    let (_tree, own, recorded) = sample();
    let args = ["-G", "-W", "-p", "a.pub", "-s", "a.key"];
    let Some(made) = minisign(test, own.root(), "", &args) else { return };
    assert!(made.status.success(), "{made:?}");
    let (public, secret) = (own.path("a.pub"), own.path("a.key"));
    let sealed = run(&own, &recorded, "seal", &["--sign".as_ref(), secret.as_os_str()]);
    assert_eq!(sealed.code, 0, "{}", sealed.stderr);
    let put = |text: &str| {
        let sql = "UPDATE generation SET signature = ?1 WHERE signature IS NOT NULL";
        let catalog = recorded.connect();
        catalog.execute(sql, [text]).expect("edit");
        forge(&catalog, "");
    };
    let verify = || {
        let signed_by = [OsStr::new("--signed-by"), public.as_os_str()];
        run(&own, &recorded, "verify", &signed_by).code
    };
    put("");
    assert_eq!(verify(), 6);
    let file = statement(&recorded);
    for (legacy, code) in [("", 0), ("-l", 6)] {
        let message = file.to_str().expect("text");
        let mut args = vec!["-S", "-m", message, "-x", "by-minisign", "-s", "a.key"];
        args.extend(Some(legacy).filter(|legacy| !legacy.is_empty()));
        let signed = minisign(test, own.root(), "", &args).expect("it was there");
        assert!(signed.status.success(), "{signed:?}");
        put(&std::fs::read_to_string(own.path("by-minisign")).expect("a signature"));
        assert_eq!(verify(), code, "the old way signs the text and not its hash: {legacy}");
    }
}
