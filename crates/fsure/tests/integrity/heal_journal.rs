//! The journal of a heal in place, where things go wrong one after the other: what
//! it holds is neither lost nor put where it does not belong, and what others
//! write meanwhile stays.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{Recorded, Report, Tree, content, or_skip, skip, traced};
use fsure_core::{ExitCode, Monitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{HealResult, ScanMonitor};
use fsure_integrity::{HealOptions, heal};
use serde_json::json;

const MIB: usize = 1 << 20;
const SIZE: usize = 3 * MIB + 7;
const DO: [&str; 3] = ["--no-keep", "--in-place", "--yes"];

/// Recorded files and a copy of them.
struct Setting {
    tree: Tree,
    beside: Tree,
    recorded: Recorded,
}

impl Setting {
    fn new(paths: &[&str]) -> Self {
        let (tree, beside) = (Tree::new(), Tree::new());
        for path in paths {
            tree.write(path, content(SIZE, 1));
            tree.age(path);
            beside.write(Path::new("copy").join(path), content(SIZE, 1));
        }
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        Self { tree, beside, recorded }
    }

    fn arguments(&self, more: &[&str]) -> Vec<std::ffi::OsString> {
        let copy = self.beside.path("copy");
        let all = [&["--from", copy.to_str().unwrap()], more].concat();
        self.recorded.arguments("heal", &all)
    }

    fn heal(&self, more: &[&str]) -> Report {
        let copy = self.beside.path("copy");
        self.recorded.run("heal", &[&["--from", copy.to_str().unwrap()], more].concat())
    }

    fn journal(&self) -> PathBuf {
        self.beside.path("catalog.db.healing")
    }

    /// A heal of one block of `f` was killed when the first sector was written.
    fn cut_off(&self) -> (Vec<u8>, Vec<u8>) {
        let (whole, path) = (content(SIZE, 1), self.tree.path("f"));
        let mut old = whole.clone();
        old[MIB + 5..2 * MIB - 5].iter_mut().for_each(|byte| *byte ^= 1);
        let stat = std::fs::metadata(&path).unwrap();
        let date = self.tree.mtime("f");
        let journal = journal("f", stat.ino(), date, &whole, &old);
        std::fs::write(self.journal(), &journal).unwrap();
        old[MIB..MIB + 512].copy_from_slice(&whole[MIB..MIB + 512]);
        self.tree.write("f", &old);
        (old, journal)
    }
}

/// As `docs/heal.md` describes it, of the second block.
fn journal(path: &str, inode: u64, date: i64, whole: &[u8], old: &[u8]) -> Vec<u8> {
    let mut bytes = b"fsure heal 1\n".to_vec();
    bytes.extend((path.len() as u32).to_le_bytes());
    bytes.extend(path.as_bytes());
    for number in [inode, SIZE as u64, SIZE as u64] {
        bytes.extend(number.to_le_bytes());
    }
    [date; 2].iter().for_each(|date| bytes.extend(date.to_le_bytes()));
    bytes.extend(blake3::hash(whole).as_bytes());
    for number in [1, MIB as u64, MIB as u64, MIB as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0xff; 32]);
    bytes.extend(&old[MIB..2 * MIB]);
    bytes.extend(&whole[MIB..2 * MIB]);
    bytes.extend(*blake3::hash(&bytes).as_bytes());
    bytes
}

#[test]
fn a_journal_that_is_still_needed_is_not_replaced_by_the_next() {
    let set = Setting::new(&["a", "b"]);
    for path in ["a", "b"] {
        set.tree.flip(path, 5);
    }
    let before = set.tree.read("b");
    // Neither what is new nor what was before can be written to the first one.
    let path = set.tree.path("a");
    let options = ["-P", path.to_str().unwrap(), "-e", "inject=pwrite64:error=EIO"];
    let mut arguments = set.arguments(&DO);
    arguments.push("--json".into());
    let run = or_skip("a_journal_that_is_still_needed", traced(&options, &arguments));
    let Some(traced) = run else { return };
    assert!(traced.run.stdout.contains("could not be put back"), "{:?}", traced.run);
    assert!(traced.run.stdout.contains("the journal of another file"), "{:?}", traced.run);
    assert_eq!(traced.run.code, 3);
    let journal = std::fs::read(set.journal()).unwrap();
    assert_eq!(&journal[13..18], b"\x01\0\0\0a");
    assert!(set.tree.read("b") == before);
    let report = set.heal(&DO);
    assert_eq!(report.code, 7, "{report:?}");
    assert!(report.stderr.contains("is now finished"), "{report:?}");
    assert_eq!(set.recorded.verify().code, 0);
}

#[test]
fn a_file_that_may_not_be_written_to_keeps_its_journal() {
    let set = Setting::new(&["f"]);
    let (half, journal) = set.cut_off();
    let path = set.tree.path("f");
    let chattr = |how: &str| Command::new("chattr").arg(how).arg(&path).status();
    if !chattr("+i").is_ok_and(|status| status.success()) {
        return skip("a_file_that_may_not_be_written_to", "no immutable files here");
    }
    let dry = set.heal(&[]);
    let report = set.heal(&DO);
    chattr("-i").unwrap();
    // The half that is written looks like an edit.
    assert_eq!((dry.code, report.code), (5, 5), "{report:?}");
    assert!(set.tree.read("f") == half, "{report:?}");
    assert_eq!(std::fs::read(set.journal()).unwrap(), journal, "{report:?}");
    let report = set.heal(&DO);
    assert!(report.stderr.contains("is now finished"), "{report:?}");
    assert!(set.tree.read("f") == content(SIZE, 1));
}

#[test]
fn a_journal_of_another_record_is_not_carried_out() {
    for is_recorded in [true, false] {
        let set = Setting::new(&["f", "g"]);
        let (half, journal) = set.cut_off();
        // The user makes the record anew, and this is what is right now.
        set.recorded.forget();
        std::fs::remove_file(set.journal()).unwrap();
        let hidden = set.beside.path("hidden");
        set.tree.write("g", "g");
        if !is_recorded {
            std::fs::rename(set.tree.path("f"), &hidden).unwrap();
        }
        set.recorded.record();
        if !is_recorded {
            std::fs::rename(&hidden, set.tree.path("f")).unwrap();
        }
        std::fs::write(set.journal(), &journal).unwrap();
        let report = set.heal(&["--yes"]);
        assert!(set.tree.read("f") == half, "{report:?}");
        assert!(report.stderr.contains("nothing of this content is recorded"), "{report:?}");
        assert_eq!(std::fs::read(set.beside.path("catalog.db.healing.1")).unwrap(), journal);
        assert!(set.recorded.update().code < 2);
    }
}

#[test]
fn a_journal_whose_file_was_renamed_is_carried_out() {
    let set = Setting::new(&["f", "g"]);
    let (_, journal) = set.cut_off();
    // Recorded under another name, and the journal has the one it has now.
    std::fs::rename(set.tree.path("f"), set.tree.path("n")).unwrap();
    let end = journal.len() - 32;
    let mut journal = journal[..end].to_vec();
    journal[17] = b'n';
    journal.extend(*blake3::hash(&journal).as_bytes());
    std::fs::write(set.journal(), &journal).unwrap();
    let report = set.heal(&DO);
    assert!(report.stderr.contains("n: an interrupted heal is now finished"), "{report:?}");
    assert!(set.tree.read("n") == content(SIZE, 1));
}

#[test]
fn a_journal_whose_file_is_gone_is_put_aside() {
    let set = Setting::new(&["f", "g"]);
    let (_, journal) = set.cut_off();
    std::fs::remove_file(set.tree.path("f")).unwrap();
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 7, "the file is made again: {report:?}");
    assert!(report.stderr.contains("not there any more"), "{report:?}");
    assert_eq!(std::fs::read(set.beside.path("catalog.db.healing.1")).unwrap(), journal);
    assert!(set.tree.read("f") == content(SIZE, 1));
    assert_eq!(set.recorded.update().code, 0);
}

/// Writes to the file once what is healed has been written to it.
struct Editor {
    file: std::fs::File,
    at: u64,
    is_done: Mutex<bool>,
    reported: Mutex<Vec<HealResult>>,
}

impl Monitor for Editor {
    fn stop_requested(&self) -> Option<ExitCode> {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, 5).unwrap();
        let mut is_done = self.is_done.lock().unwrap();
        if !*is_done && byte[0] == content(SIZE, 1)[5] {
            *is_done = true;
            // Another tick of the file system's clock.
            std::thread::sleep(Duration::from_millis(50));
            self.file.write_all_at(b"an edit", self.at).unwrap();
        }
        None
    }
}

impl ScanMonitor for Editor {
    fn remedy(&self, remedy: &HealResult) {
        self.reported.lock().unwrap().push(remedy.clone());
    }
}

#[test]
fn a_write_during_the_proof_is_kept() {
    // Where it was written to, elsewhere, and behind where the proof has come.
    for at in [100, 2 * MIB as u64, 10] {
        let set = Setting::new(&["f"]);
        set.tree.flip("f", 5);
        let path = set.tree.path("f");
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let editor = Editor { file, at, is_done: Mutex::default(), reported: Mutex::default() };
        let place = locate(set.tree.root(), Some(&set.recorded.catalog)).unwrap();
        let options = HealOptions {
            replicas: vec![set.beside.path("copy")],
            does: true,
            in_place: true,
            discards_replaced: true,
            ..Default::default()
        };
        let outcome = heal(&place, &options, &editor).unwrap();
        let reported = editor.reported.lock().unwrap();
        let reason = reported[0].reason.as_deref().unwrap_or_default();
        assert!(reason.contains("while it was being healed"), "at {at}: {reported:?}");
        assert_eq!(outcome.exit_code(), ExitCode::Damage, "at {at}");
        let now = set.tree.read("f");
        assert_eq!(&now[at as usize..at as usize + 7], b"an edit", "at {at}");
        assert!(set.beside.path("catalog.db.healing.1").exists());
        let report = set.recorded.verify();
        assert_eq!(report.verdict("f").as_deref(), Some("modified"), "at {at}: {report:?}");
    }
}

#[test]
fn a_write_before_recording_is_seen_by_the_next_run() {
    let set = Setting::new(&["f"]);
    set.tree.flip("f", 5);
    let whole = content(SIZE, 1);
    // The system is slow to tell that the file has its name.
    let slow = ["-e", "inject=renameat,renameat2:delay_exit=1500000"];
    let arguments = set.arguments(&["--yes"]);
    let done = std::thread::scope(|scope| {
        let healer = scope.spawn(|| traced(&slow, &arguments));
        while !healer.is_finished() {
            if set.tree.read("f") == whole {
                let file = std::fs::File::options().write(true).open(set.tree.path("f")).unwrap();
                file.write_all_at(b"an edit", 100).unwrap();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        healer.join().unwrap()
    });
    let Some(traced) = or_skip("a_write_before_recording_is_seen_by_the_next_run", done) else {
        return;
    };
    let report = set.recorded.verify();
    let verdict = report.verdict("f");
    assert_eq!(verdict.as_deref(), Some("modified"), "{report:?} {:?}", traced.run);
    let report = set.heal(&["--yes"]);
    assert!(report.lines.iter().all(|line| line["type"] != json!("remedy")), "{report:?}");
}
