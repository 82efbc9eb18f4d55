//! Every single bit of a small catalog, flipped: the catalog is refused, or it
//! says what it said before. No command may end with 0 where a file is lost, and
//! none may call a damaged catalog a fault of fsure.
//!
//! The first test takes all bits and reads the catalog as the commands do. The
//! second runs the commands themselves over some of the bits, and with
//! `FSURE_FLIPS=N` over every N-th one.
#![cfg(target_os = "linux")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fsure_core::RelPath;
use fsure_integrity::catalog::{Catalog, PageStart, StoredRow};
use fsure_integrity::scan::are_proven;
use support::{Recorded, Tree, content, fsure};

/// Bits between two that the commands are tried with, unless `FSURE_FLIPS` says otherwise.
const COMMAND_STEP_BITS: usize = 1_009;

/// A record with something in every table, of 512-byte pages: few of its bits
/// are in no use.
fn sample() -> (Tree, Recorded) {
    let tree = Tree::new();
    for (number, name) in ["a", "sub/b", "sub/c", "d"].into_iter().enumerate() {
        tree.write(name, content(400, number as u64));
    }
    tree.write("large", content(3 << 20, 9));
    std::os::unix::fs::symlink("a", tree.path("link")).expect("make a link");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    assert_eq!(recorded.run("update", &["--meta", "mode"]).code, 0);
    let inner = Recorded::inside(&tree.path("inner"));
    tree.write("inner/x", "x");
    assert_eq!(
        fsure(&[
            "update".as_ref(),
            "--catalog".as_ref(),
            inner.catalog.as_os_str(),
            inner.root.as_os_str()
        ])
        .code,
        0
    );
    tree.flip("d", 3);
    assert_eq!(recorded.verify().code, 3);
    recorded.edit("PRAGMA page_size = 512; VACUUM;");
    assert_eq!(recorded.status().code, 3);
    (tree, recorded)
}

/// All that a catalog says, or why it says nothing.
fn content_of(file: &Path) -> Result<String, String> {
    let read = || -> fsure_core::Result<Result<String, String>> {
        let mut catalog = Catalog::open(file, None)?;
        let audit = catalog.audit()?;
        if !audit.is_clean() {
            return Ok(Err(format!("{audit:?}")));
        }
        let mut all = String::new();
        let mut rows = Vec::new();
        let mut page = catalog.page(&PageStart::From(b""), None)?;
        while let Some(last) = page.last() {
            let last = last.path().clone();
            rows.append(&mut page);
            page = catalog.page(&PageStart::After(last.as_bytes()), None)?;
        }
        for stored in rows {
            let looked_up = catalog.get(stored.path())?;
            let StoredRow::Sound(row) = &stored else { return Ok(Err("a bad row".to_owned())) };
            if looked_up.as_ref() != Some(&stored) {
                return Ok(Err("a row that no look-up finds".to_owned()));
            }
            // A list of block values proves itself, and is not used otherwise.
            let blocks = catalog.blocks(row)?;
            let is_large = row.record.entry.size > 1 << 20;
            let proven = are_proven(&row.record, &blocks) || !is_large;
            writeln!(all, "{row:?} {}", proven || blocks.len() < 4).expect("a string");
        }
        let known = catalog.known_damage_page(&RelPath::root(), None)?;
        let settings = (catalog.settings(), catalog.choices(), catalog.nested_roots()?);
        let history = (catalog.generations()?, catalog.verifications()?);
        write!(all, "{settings:?} {history:?} {known:?}").expect("a string");
        Ok(Ok(all))
    };
    read().unwrap_or_else(|error| match error.exit_code().number() {
        6 => Err(error.to_string()),
        code => panic!("exit code {code}: {error}"),
    })
}

#[test]
fn every_bit_is_believed_only_if_it_changes_nothing() {
    let (_tree, recorded) = sample();
    let whole = recorded.catalog_bytes();
    let said = content_of(&recorded.catalog).expect("a sound catalog");
    let (middle, end) = (whole.len() / 2, whole.len());
    let halves = std::thread::scope(|scope| {
        let halves = [0..middle, middle..end];
        let threads = halves.map(|bytes| scope.spawn(|| refused_bits(&whole, bytes, &said)));
        threads.map(|thread| thread.join().expect("every bit"))
    });
    let refused: usize = halves.iter().sum();
    assert!(refused > 20_000, "{refused} bits of {} mean anything", end * 8);
}

/// Flips each bit of some bytes of a catalog, and counts those that are refused.
fn refused_bits(whole: &[u8], bytes: Range<usize>, said: &str) -> usize {
    let beside = Tree::new();
    let path = beside.write("catalog.db", whole);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    let mut refused = 0;
    for byte in bytes {
        for bit in 0..8 {
            file.write_at(&[whole[byte] ^ (1 << bit)], byte as u64).expect("flip");
            match content_of(&path) {
                Err(_) => refused += 1,
                Ok(now) => assert!(now == said, "byte {byte} bit {bit} is believed: {now}"),
            }
        }
        file.write_at(&whole[byte..=byte], byte as u64).expect("put back");
    }
    refused
}

/// Runs a command and returns its exit code and the lines that name a file.
fn run(recorded: &Recorded, command: &str, more: &[&str]) -> (i32, Vec<String>) {
    let run = recorded.text(command, more);
    let names =
        |line: &&str| ["sub/", " a ", " d ", "large"].iter().any(|name| line.contains(name));
    (run.code, run.stdout.lines().filter(names).map(str::to_owned).collect())
}

#[test]
fn no_command_is_wrong_about_a_tree_with_a_lost_file() {
    const COMMANDS: [(&str, &[&str]); 8] = [
        ("status", &[]),
        ("verify", &[]),
        ("scrub", &["--all"]),
        ("update", &[]),
        ("heal", &["--from", "/nonexistent-replica"]),
        ("export", &["--format", "b3sum"]),
        ("log", &[]),
        ("dupes", &[]),
    ];
    let (tree, recorded) = sample();
    fs::remove_file(tree.path("sub/b")).expect("remove");
    let whole = recorded.catalog_bytes();
    let put = |bytes: &[u8]| {
        fs::write(&recorded.catalog, bytes).expect("write");
        let _ = fs::remove_file(recorded.catalog.with_extension("db-journal"));
    };
    let sound: Vec<_> = COMMANDS
        .iter()
        .map(|(command, more)| {
            put(&whole);
            run(&recorded, command, more)
        })
        .collect();
    assert!(sound.iter().all(|(code, _)| ![6, 70].contains(code)), "{sound:?}");
    let step = std::env::var("FSURE_FLIPS").map_or(COMMAND_STEP_BITS, |n| n.parse().expect("N"));
    for bit in (0..whole.len() * 8).step_by(step) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        for ((command, more), sound) in COMMANDS.iter().zip(&sound) {
            put(&damaged);
            let found = run(&recorded, command, more);
            assert!(
                found.0 == 6 || found == *sound,
                "byte {} bit {}, {command}: {found:?} instead of {sound:?}",
                bit / 8,
                bit % 8
            );
        }
    }
}
