//! A root to be signed, and the one who signs it: keys and memory outside of it.

use std::path::Path;

use minisign::KeyPair;
use rusqlite::Connection;

use super::record::{Recorded, content};
use super::run::{Run, fsure_of};
use super::tree::Tree;

const MIB: usize = 1 << 20;

/// A recorded root, a pair of keys outside of it, and a user's home.
pub struct Signable {
    pub tree: Tree,
    pub own: Tree,
    pub recorded: Recorded,
}

/// A pair of keys as files, `NAME.pub` and `NAME.key`.
pub fn make_keys(folder: &Tree, name: &str) {
    let KeyPair { pk: public, sk: secret } =
        KeyPair::generate_unencrypted_keypair().expect("a pair of keys");
    let public = public.to_box().expect("a key").into_string();
    let secret = secret.to_box(None).expect("a key").into_string();
    folder.write(format!("{name}.pub"), public);
    folder.write(format!("{name}.key"), secret);
}

impl Signable {
    pub fn new() -> Self {
        let (tree, own) = (Tree::new(), Tree::new());
        tree.write("a", content(100, 1));
        tree.write("b", content(2 * MIB + 5, 2));
        tree.write("sub/c", content(100, 3));
        tree.write("sub/d", content(100, 4));
        std::os::unix::fs::symlink("a", tree.path("link")).expect("make a link");
        make_keys(&own, "mine");
        make_keys(&own, "other");
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        Self { tree, own, recorded }
    }

    pub fn sealed() -> Self {
        let sample = Self::new();
        assert_eq!(sample.seal(&[]).code, 0);
        sample
    }

    /// Runs a command with more arguments, which name keys by their files.
    pub fn run_of(&self, home: &str, command: &str, more: &[&str]) -> Run {
        let more = more.iter().map(|more| match more.split_once('@') {
            Some(("", key)) => self.own.path(key).into_os_string(),
            _ => more.into(),
        });
        let more: Vec<_> = more.collect();
        fsure_of(&self.own.path(home), &self.recorded.arguments(command, &more))
    }

    pub fn run(&self, command: &str, more: &[&str]) -> Run {
        self.run_of("home", command, more)
    }

    pub fn seal(&self, more: &[&str]) -> Run {
        self.run("seal", &[&["--sign", "@mine.key"], more].concat())
    }

    /// `verify --signed-by` on this machine.
    pub fn verify(&self) -> Run {
        self.run("verify", &["--signed-by", "@mine.pub"])
    }

    /// The same on a machine that has seen nothing.
    pub fn verify_elsewhere(&self, more: &[&str]) -> Run {
        self.run_of("elsewhere", "verify", &[&["--signed-by", "@mine.pub"], more].concat())
    }

    pub fn catalog(&self) -> Connection {
        self.recorded.connect()
    }

    /// The head of the newest signed generation, as the last `seal` printed it.
    pub fn head(&self) -> String {
        let sql = "SELECT statement FROM generation WHERE statement IS NOT NULL \
                   ORDER BY number DESC LIMIT 1";
        let text: String = self.catalog().query_row(sql, [], |row| row.get(0)).expect("a seal");
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Another copy of the whole root, catalog included.
    pub fn copy_to(&self, to: &Path) {
        copy(self.tree.root(), to);
    }
}

pub fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("run cp").success());
}

pub fn assert_refused(run: &Run, why: &str, case: &str) {
    assert_eq!(run.code, 6, "{case}: {}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains(why), "{case}: not '{why}' but {}", run.stderr);
    assert!(!run.stdout.contains("as recorded"), "{case}: {}", run.stdout);
}

pub fn assert_clean(run: &Run, case: &str) {
    assert_eq!(run.code, 0, "{case}: {}{}", run.stdout, run.stderr);
}
