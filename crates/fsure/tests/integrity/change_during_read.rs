//! A file that changes once, at a chosen moment of being read: between listing
//! and opening, between opening and reading, in the middle of reading, between
//! reading and looking at it again. What is recorded is a content it really
//! had, or the record stays; what is reported is never `ok`.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{FaultyFs, Meanwhile, Moment, Recorded, Tree, content, is_campaign, or_skip};
use rusqlite::types::Value;

const MIB: usize = 1 << 20;

/// The moment of a change to a file during a run.
#[derive(Clone, Copy, Debug)]
enum Stage {
    BeforeOpening,
    BeforeReading,
    /// At the fifth request; a small file has no middle.
    InTheMiddle,
    BeforeLookingAgain,
}

const STAGES: [Stage; 4] =
    [Stage::BeforeOpening, Stage::BeforeReading, Stage::InTheMiddle, Stage::BeforeLookingAgain];

/// A change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Truncated,
    Emptied,
    Grown,
    Rewritten,
    Replaced,
    Deleted,
    BecameFolder,
}

const CHANGES: [Change; 7] = [
    Change::Truncated,
    Change::Emptied,
    Change::Grown,
    Change::Rewritten,
    Change::Replaced,
    Change::Deleted,
    Change::BecameFolder,
];

impl Change {
    fn apply(self, path: &Path) {
        let open = || OpenOptions::new().write(true).open(path).expect("open");
        let size = std::fs::metadata(path).expect("stat").len();
        match self {
            Self::Truncated => open().set_len(size / 2).expect("truncate"),
            Self::Emptied => open().set_len(0).expect("truncate"),
            Self::Grown => open().write_all_at(b"more", size).expect("grow"),
            // Its end: a reader in the middle has not been there.
            Self::Rewritten => open().write_all_at(b"new", size - 3).expect("rewrite"),
            Self::Replaced => {
                let beside = path.with_extension("beside");
                std::fs::copy(path, &beside).expect("copy");
                let other = OpenOptions::new().write(true).open(&beside).expect("open");
                other.write_all_at(b"new", size - 3).expect("rewrite");
                std::fs::rename(beside, path).expect("rename");
            }
            Self::Deleted => std::fs::remove_file(path).expect("delete"),
            Self::BecameFolder => {
                // Made first: with the file's inode number it would be a fault
                // of the view.
                let beside = path.with_extension("beside");
                std::fs::create_dir(&beside).expect("create");
                std::fs::remove_file(path).expect("delete");
                std::fs::rename(beside, path).expect("rename");
            }
        }
    }

    /// Returns the final verdict of a run that waits for the writer.
    fn verdict(self) -> &'static str {
        match self {
            Self::Deleted => "missing",
            Self::BecameFolder => "type-changed",
            _ => "modified",
        }
    }
}

struct Setting {
    tree: Tree,
    view: FaultyFs,
    recorded: Recorded,
    _beside: Tree,
}

impl Setting {
    fn new(test: &str) -> Option<Self> {
        let (tree, beside) = (Tree::new(), Tree::new());
        for name in ["one", "two", "three"] {
            tree.write(name, "left alone");
        }
        let view = or_skip(test, FaultyFs::new(tree.root()))?;
        let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
        Some(Self { tree, view, recorded, _beside: beside })
    }

    /// Lets the change happen once; says later whether it has.
    fn arm(&self, stage: Stage, change: Change) -> Arc<AtomicBool> {
        let path = self.tree.path("victim");
        let has_happened = Arc::new(AtomicBool::new(false));
        let (happens, mut reads, mut is_open) = (Arc::clone(&has_happened), 0, false);
        let meanwhile = Meanwhile::new(move |name, moment| {
            if name != Path::new("victim") || happens.load(Ordering::Relaxed) {
                return;
            }
            reads += u32::from(moment == Moment::Read);
            is_open |= moment == Moment::Open;
            let is_now = match stage {
                Stage::BeforeOpening => moment == Moment::Open,
                // It is looked at once when it is open.
                Stage::BeforeReading => moment == Moment::Read,
                Stage::InTheMiddle => reads == 5,
                Stage::BeforeLookingAgain => reads > 0 && moment == Moment::Stat,
            };
            if is_now && is_open {
                happens.store(true, Ordering::Relaxed);
                change.apply(&path);
            }
        });
        self.view.faults.lock().expect("lock").meanwhile = meanwhile;
        has_happened
    }

    /// Writes the file, and makes a record of it that is one hour older.
    fn record(&self, first: &[u8]) {
        let path = self.tree.path("victim");
        let _ = std::fs::remove_dir(&path);
        self.recorded.forget();
        self.tree.write("victim", first);
        self.tree.age("victim");
        self.recorded.record();
    }

    fn sum(&self) -> Option<Vec<u8>> {
        match self.recorded.row("victim")["blake3"].clone() {
            Value::Blob(sum) => Some(sum),
            _ => None,
        }
    }
}

fn sum(content: &[u8]) -> Option<Vec<u8>> {
    Some(blake3::hash(content).as_bytes().to_vec())
}

/// One change at one moment of one command. `update` finds the file already
/// changed since it was recorded, or it would not read it.
fn assert_sound(
    setting: &Setting,
    [first, second]: [&[u8]; 2],
    stage: Stage,
    change: Change,
    command: &str,
) {
    let case = format!("{change:?} {stage:?}, {} bytes, {command}", first.len());
    setting.record(first);
    if command == "update" {
        setting.tree.write("victim", second);
    }
    let has_happened = setting.arm(stage, change);
    let report = setting.recorded.run(command, &[""; 0]);
    assert!(has_happened.load(Ordering::Relaxed), "it happened: {case}: {report:?}");
    setting.view.faults.lock().expect("lock").meanwhile = Meanwhile::default();
    let verdict = report.verdict("victim");
    assert_eq!(verdict.as_deref(), Some(change.verdict()), "{case}: {report:?}");
    assert_eq!(report.findings().count(), 1, "{case}: {report:?}");
    let path = setting.tree.path("victim");
    let is_recorded = command == "update" && change.verdict() == "modified";
    let now = if is_recorded { std::fs::read(&path).expect("read") } else { Vec::new() };
    let expected = if is_recorded { &now } else { first };
    assert!(setting.sum() == sum(expected), "{case}: another content is recorded");
    if change != Change::BecameFolder {
        assert_eq!(setting.recorded.update().code, 0, "{case}");
        let report = setting.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
    }
}

fn assert_all_sound(test: &str, size: usize, commands: &[&str]) {
    let Some(setting) = Setting::new(test) else { return };
    let contents = [content(size, 1), content(size, 2)];
    let contents = contents.each_ref().map(Vec::as_slice);
    for stage in STAGES {
        if matches!(stage, Stage::InTheMiddle) && size < 5 * MIB {
            continue;
        }
        for change in CHANGES {
            for command in commands {
                assert_sound(&setting, contents, stage, change, command);
            }
        }
    }
}

#[test]
fn a_small_file_that_changes_at_any_moment_is_recorded_as_it_was() {
    assert_all_sound("a_small_file_that_changes", 3000, &["update", "verify"]);
}

#[test]
fn a_file_of_one_segment_that_changes_at_any_moment_is_recorded_as_it_was() {
    // A campaign has it verified, too.
    let commands = if is_campaign() { &["update", "verify"][..] } else { &["update"] };
    assert_all_sound("a_file_of_one_segment", 9 * MIB + 5, commands);
}

#[test]
fn a_file_of_two_segments_that_changes_at_any_moment_is_recorded_as_it_was() {
    assert_all_sound("a_file_of_two_segments", 65 * MIB + 5, &["update"]);
}
