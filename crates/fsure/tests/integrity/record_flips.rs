//! Single bits of a small catalog, flipped: the catalog is refused, or it says what it said
//! before. No command may end with 0 if a file is lost, and none may call a damaged catalog
//! a fault of fsure.
//!
//! The first test reads the catalog as the commands do. The others run the commands, over a
//! signed catalog and one that is not; the last calls the functions behind the commands,
//! which is quick enough for every bit. They try some of the bits, with `FSURE_FLIPS=N` every
//! N-th one, and with `FSURE_FLIPS=FROM..TO` all from one to before another, so that a
//! campaign can be divided.
#![cfg(target_os = "linux")]

use std::fmt::{Debug, Write as _};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use crate::support::signable::Signable;
use crate::support::{Recorded, Tree, content, fsure, is_campaign};
use fsure_core::{ExitCode, Monitor, RelPath};
use fsure_integrity::catalog::{Audit, Catalog, PageStart, StoredRow, locate};
use fsure_integrity::manifest::ManifestFormat;
use fsure_integrity::model::{Duplicate, Finding, ScanMonitor};
use fsure_integrity::scan::{Budget, are_proven};
use fsure_integrity::trust::{RollbackCheck, SignedBy, Verifier};
use fsure_integrity::{
    ExportTarget, HealOptions, Options, ScrubOptions, UpdateOptions, dupes, export, heal, log,
    scrub, status, update, verify,
};

/// Bits between two that the commands are tried with, unless `FSURE_FLIPS` says otherwise. Each
/// bit takes some twenty processes.
const COMMAND_STEP_BITS: usize = 5_003;

/// Bits between two that the functions behind the commands are tried with, likewise.
const FUNCTION_STEP_BITS: usize = 1_009;

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
        let audit = Audit::of(&mut catalog)?;
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
            let blocks = catalog.block_values().of(row)?;
            let is_large = row.record.entry.size > 1 << 20;
            let proven = are_proven(&row.record, &blocks) || !is_large;
            writeln!(all, "{row:?} {}", proven || blocks.len() < 4).expect("a string");
        }
        let known = catalog.findings().damage_page(&RelPath::root(), None)?;
        let settings = (catalog.settings(), catalog.options(), catalog.nested_roots().all()?);
        let history = (catalog.history().generations()?, catalog.history().verifications()?);
        write!(all, "{settings:?} {history:?} {known:?}").expect("a string");
        Ok(Ok(all))
    };
    read().unwrap_or_else(|error| match error.exit_code().number() {
        6 => Err(error.to_string()),
        code => panic!("exit code {code}: {error}"),
    })
}

/// Bits from one that is read back to the next; a campaign reads all. Not a multiple of 8, so
/// that each bit of a byte has its turn.
const READ_STEP_BITS: usize = 35;

#[test]
fn a_flipped_bit_is_believed_only_if_it_changes_nothing() {
    let (_tree, recorded) = sample();
    let whole = recorded.catalog_bytes();
    let content = content_of(&recorded.catalog).expect("a sound catalog");
    let step = if is_campaign() { 1 } else { READ_STEP_BITS };
    let (middle, end) = (whole.len() * 8 / 2, whole.len() * 8);
    let halves = std::thread::scope(|scope| {
        let halves = [0..middle, middle..end];
        let threads = halves.map(|bits| scope.spawn(|| refused_bits(&whole, bits, step, &content)));
        threads.map(|thread| thread.join().expect("every bit"))
    });
    let refused: usize = halves.iter().sum();
    assert!(refused > 20_000 / step, "{refused} of {} bits mean anything", end / step);
}

/// Flips some bits of a catalog, one at a time, and counts those that are refused.
fn refused_bits(whole: &[u8], bits: Range<usize>, step: usize, content: &str) -> usize {
    let beside = Tree::new();
    let path = beside.write("catalog.db", whole);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    let mut refused = 0;
    for bit in bits.step_by(step) {
        let (byte, bit) = (bit / 8, bit % 8);
        file.write_at(&[whole[byte] ^ (1 << bit)], byte as u64).expect("flip");
        match content_of(&path) {
            Err(_) => refused += 1,
            Ok(now) => assert!(now == content, "byte {byte} bit {bit} is believed: {now}"),
        }
        file.write_at(&whole[byte..=byte], byte as u64).expect("put back");
    }
    refused
}

/// A command with its arguments; `@` begins the name of a key.
type CommandLine = (&'static str, &'static [&'static str]);

const COMMANDS: &[CommandLine] = &[
    ("status", &[]),
    ("verify", &[]),
    ("scrub", &["--all"]),
    ("update", &[]),
    ("heal", &["--from", "/nonexistent-replica"]),
    ("export", &["--format", "b3sum"]),
    ("log", &[]),
    ("dupes", &[]),
];

/// The commands that ask for a signature, beside those above.
const SIGNED_COMMANDS: &[CommandLine] = &[
    ("verify", &["--signed-by", "@mine.pub"]),
    ("log", &["--signed-by", "@mine.pub"]),
    ("heal", &["--signed-by", "@mine.pub", "--from", "/nonexistent-replica"]),
];

/// Runs a command and returns its exit code and the lines that name a file.
fn run(sample: &Signable, (command, more): &CommandLine) -> CommandOutput {
    let run = sample.run(command, more);
    let names = |line: &&str| [" a ", " b ", "sub/"].iter().any(|name| line.contains(name));
    (run.code, run.stdout.lines().filter(names).map(str::to_owned).collect())
}

/// Numbers of bits in a catalog's file.
type Bits = Box<dyn Iterator<Item = usize>>;

/// Returns the bits that the environment asks for, by default those that are `step` apart.
fn bits(whole: &[u8], step: usize) -> Bits {
    let count = whole.len() * 8;
    let number = |text: &str| text.parse::<usize>().expect("FSURE_FLIPS=N or FSURE_FLIPS=FROM..TO");
    match std::env::var("FSURE_FLIPS") {
        Err(_) => Box::new((0..count).step_by(step)),
        Ok(asked) => match asked.split_once("..") {
            Some((from, to)) => {
                assert!(number(from) < count, "there are {count} bits");
                Box::new(number(from)..number(to).min(count))
            }
            None => Box::new((0..count).step_by(number(&asked))),
        },
    }
}

/// Bytes of a row in the list of tables before the statement and the table's names: the types
/// of its columns, the word `table`, and the number of a page.
const BEFORE_NAMES_BYTES: usize = 16;

/// Returns the lowest bit of each byte in the list of tables but for the statements that
/// SQLite builds the tables from: of names, and of their types. The lowest bit of a type makes
/// bytes of a text, which no text equals.
fn bits_of_table_list(whole: &[u8]) -> Bits {
    const STATEMENT: &[u8] = b"CREATE TABLE ";
    let statements = whole.windows(STATEMENT.len()).enumerate();
    let statements = statements.filter(|(_, bytes)| *bytes == STATEMENT).map(|(at, _)| at);
    let of_one = |at: usize| {
        let name = &whole[at + STATEMENT.len()..];
        let length = name.iter().position(|byte| b" (".contains(byte)).expect("a name's end");
        (at - 2 * length - BEFORE_NAMES_BYTES..at).map(|byte| byte * 8)
    };
    let bits: Vec<_> = statements.flat_map(of_one).collect();
    assert!(bits.len() > 200, "{bits:?}");
    // A third of them, and all in a campaign.
    Box::new(bits.into_iter().step_by(if is_campaign() { 1 } else { 3 }))
}

/// The words of a command: its exit code, and the lines that name a file.
type CommandOutput = (i32, Vec<String>);

/// Loses a file, flips bits of the catalog, and compares what the commands say with what
/// they say of the catalog as it was.
fn no_command_is_wrong<C: Debug>(
    sample: &Signable,
    commands: &[C],
    bits: impl FnOnce(&[u8]) -> Bits,
    run: &dyn Fn(&C) -> CommandOutput,
) {
    let catalog = &sample.recorded.catalog;
    sample.tree.flip("sub/d", 3);
    assert_eq!(sample.run("verify", &[]).code, 3);
    fs::remove_file(sample.tree.path("sub/c")).expect("remove");
    sample.recorded.edit("PRAGMA page_size = 512; VACUUM;");
    let whole = sample.recorded.catalog_bytes();
    let run_on = |bytes: &[u8], command: &C| {
        fs::write(catalog, bytes).expect("write");
        let _ = fs::remove_file(catalog.with_extension("db-journal"));
        run(command)
    };
    let sound: Vec<_> = commands.iter().map(|command| run_on(&whole, command)).collect();
    assert!(sound.iter().all(|(code, _)| ![6, 70].contains(code)), "{sound:?}");
    for bit in bits(&whole) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        for (command, sound) in commands.iter().zip(&sound) {
            let found = run_on(&damaged, command);
            let (byte, of_byte) = (bit / 8, bit % 8);
            assert!(
                found.0 == 6 || found == *sound,
                "byte {byte} bit {of_byte}, {command:?}: {found:?} instead of {sound:?}"
            );
        }
    }
}

#[test]
fn no_command_is_wrong_about_a_tree_with_a_lost_file() {
    let sample = Signable::new();
    let bits = |whole: &[u8]| bits(whole, COMMAND_STEP_BITS);
    no_command_is_wrong(&sample, COMMANDS, bits, &|command| run(&sample, command));
}

#[test]
fn no_command_is_wrong_about_a_signed_tree_with_a_lost_file() {
    let sample = Signable::sealed();
    let commands = [COMMANDS, SIGNED_COMMANDS].concat();
    let bits = |whole: &[u8]| bits(whole, COMMAND_STEP_BITS);
    no_command_is_wrong(&sample, &commands, bits, &|command| run(&sample, command));
}

/// Collects the findings of a run as text.
#[derive(Default)]
struct Findings(Mutex<Vec<String>>);

impl Monitor for Findings {}

impl ScanMonitor for Findings {
    fn finding(&self, finding: &Finding) {
        let line = format!("{:?} {:?}", finding.path, finding.verdict);
        self.0.lock().expect("lock").push(line);
    }
}

/// The function behind a command, and true if it asks for a signature.
type Function = (&'static str, bool);

const FUNCTIONS: &[Function] = &[
    ("status", false),
    ("verify", false),
    ("scrub", false),
    ("update", false),
    ("heal", false),
    ("export", false),
    ("log", false),
    ("dupes", false),
    ("verify", true),
    ("log", true),
    ("heal", true),
];

/// Calls the function behind a command; a panic is exit code 70, as in the command.
fn call(sample: &Signable, (name, is_signed): &Function) -> CommandOutput {
    let place = locate(sample.tree.root(), None).expect("a root");
    let findings = Findings::default();
    let key = fs::read_to_string(sample.own.path("mine.pub")).expect("a key");
    let key = Verifier::read(&key).filter(|_| *is_signed);
    let not_before = RollbackCheck::Remembered(sample.own.path("seen.db"));
    let signed_by = key.clone().map(|key| SignedBy { key, not_before, is_dry_run: false });
    let common = Options { signed_by, ..Options::default() };
    let mut text = Vec::new();
    let ended = catch_unwind(AssertUnwindSafe(|| match *name {
        "status" => status(&place, &common, &findings).map(|outcome| outcome.exit_code()),
        "verify" => verify(&place, &common, &findings).map(|outcome| outcome.exit_code()),
        "scrub" => {
            let options = ScrubOptions {
                common: common.clone(),
                budget: Budget::All,
                roots: 1,
                max_age: None,
                must_be_complete: false,
            };
            scrub(&place, &options, &findings).map(|outcome| outcome.exit_code())
        }
        "update" => {
            let options = UpdateOptions { common: common.clone(), ..UpdateOptions::default() };
            update(&place, &options, &findings).map(|outcome| outcome.exit_code())
        }
        "heal" => {
            let replicas = vec!["/nonexistent-replica".into()];
            let options =
                HealOptions { common: common.clone(), replicas, does: true, ..Default::default() };
            heal(&place, &options, &findings).map(|outcome| outcome.exit_code())
        }
        "export" => {
            let target = ExportTarget::Stream(&mut text);
            export(&place, ManifestFormat::B3sum, &common, target, &findings)
                .map(|exported| exported.exit_code())
        }
        "log" => log(&place, key.as_ref()).map(|history| history.exit_code()),
        "dupes" => {
            let ignore = &mut |_: &Duplicate| {};
            dupes(&place, &common, &findings, ignore).map(|found| found.exit_code())
        }
        name => unreachable!("{name}"),
    }));
    let code = match ended {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => error.exit_code(),
        Err(_) => ExitCode::Internal,
    };
    let mut lines = findings.0.into_inner().expect("lock");
    lines.sort();
    lines.push(String::from_utf8_lossy(&text).into_owned());
    (code.number().into(), lines)
}

#[test]
fn no_function_is_wrong_about_a_signed_tree_with_a_lost_file() {
    let sample = Signable::sealed();
    let bits = |whole: &[u8]| bits(whole, FUNCTION_STEP_BITS);
    no_command_is_wrong(&sample, FUNCTIONS, bits, &|function| call(&sample, function));
}

/// A table was asked for by a name whose type was flipped: it was not there, and `dupes` ended
/// with 0 where a finding was known.
#[test]
fn no_function_is_wrong_about_a_tree_if_the_list_of_tables_is_damaged() {
    let sample = Signable::sealed();
    let call = |function: &Function| call(&sample, function);
    no_command_is_wrong(&sample, FUNCTIONS, bits_of_table_list, &call);
}
