//! Checks that `heal` keeps every file that it replaces, whatever the verdict: byte for
//! byte, under a name that fsure never removes, or the file is left alone.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use crate::support::{Mounted, Recorded, Report, Tree, content, fsure, or_skip, traced, typed};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;
const SIZE: usize = 2 * MIB + 9;

/// A tree with a record and a copy beside it.
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
        Self { tree, beside, recorded }
    }

    fn recorded(paths: &[&str]) -> Self {
        let set = Self::new(paths);
        set.recorded.record();
        set
    }

    fn heal(&self, more: &[&str]) -> Report {
        let copy = self.beside.path("copy");
        self.recorded.run("heal", &[&["--from", copy.to_str().unwrap()], more].concat())
    }

    fn inode(&self, path: &str) -> u64 {
        std::fs::symlink_metadata(self.tree.path(path)).unwrap().ino()
    }

    fn assert_clean(&self) {
        for report in [self.recorded.verify(), self.recorded.update()] {
            assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
            assert!(report.stderr.is_empty(), "{report:?}");
        }
    }
}

fn remedy<'a>(report: &'a Report, path: &str) -> &'a Value {
    let mut all = report.lines.iter().filter(|l| l["type"] == "remedy" && l["path"] == path);
    all.next().unwrap_or_else(|| panic!("no remedy for {path}: {report:?}"))
}

fn assert_left_alone(report: &Report, path: &str, why: &str) {
    let remedy = remedy(report, path);
    assert_eq!((report.code, &remedy["cure"]), (3, &json!("unhealed")), "{report:?}");
    let reason = remedy["reason"].as_str().unwrap();
    assert!(reason.contains(why) && reason.contains("--no-keep"), "{reason}");
}

#[test]
fn what_was_there_is_kept_byte_for_byte() {
    let set = Setting::recorded(&["dir/sub/f", "dir/g"]);
    for (number, at) in [(1, 5), (2, SIZE as u64 - 1)] {
        let mut before = Vec::new();
        for path in ["dir/sub/f", "dir/g"] {
            set.tree.flip(path, at);
            before.push((path, set.tree.read(path), set.inode(path), set.tree.mtime(path)));
        }
        let dry = set.heal(&[]);
        assert_eq!(dry.code, 3, "{dry:?}");
        let reason = remedy(&dry, "dir/g")["reason"].as_str().unwrap();
        assert!(reason.contains("would be kept below .fsure/replaced"), "{reason}");
        assert!(!set.tree.path(format!(".fsure/replaced/{number}")).exists());
        let report = set.heal(&["--yes"]);
        assert_eq!(report.code, 7, "{report:?}");
        for (path, bytes, inode, date) in before {
            let kept = format!(".fsure/replaced/{number}/{path}");
            assert_eq!(remedy(&report, path)["kept"], json!(kept));
            assert!(set.tree.read(&kept) == bytes, "{kept}");
            assert_eq!((set.inode(&kept), set.tree.mtime(&kept)), (inode, date));
            assert!(set.tree.read(path) == content(SIZE, 1));
            assert_eq!(std::fs::metadata(set.tree.path(path)).unwrap().nlink(), 1);
        }
        set.assert_clean();
    }
    for folder in [".fsure", ".fsure/replaced", ".fsure/replaced/1", ".fsure/replaced/1/dir/sub"] {
        let mode = std::fs::metadata(set.tree.path(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{folder}");
    }
    // A folder of fsure is not a record.
    let root = set.tree.root().as_os_str();
    assert_eq!(fsure(&["verify".as_ref(), root]).code, 5);
    assert_eq!(fsure(&["update".as_ref(), root]).code, 0);
    let inside = Recorded::inside(set.tree.root());
    let report = inside.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
}

/// As editors of photo tags do that keep the date: a new file in its place.
#[test]
fn what_replaced_a_file_under_its_date_is_kept_too() {
    let set = Setting::recorded(&["f"]);
    set.tree.write("new", "better tags");
    set.tree.set_mtime("new", set.tree.mtime("f"));
    std::fs::rename(set.tree.path("new"), set.tree.path("f")).unwrap();
    let report = set.heal(&["--yes"]);
    assert_eq!((report.code, &remedy(&report, "f")["found"]), (7, &json!("damaged-copy")));
    assert_eq!(set.tree.read(".fsure/replaced/1/f"), b"better tags");
    assert!(set.tree.read("f") == content(SIZE, 1));
    set.assert_clean();
}

#[test]
fn what_could_not_be_read_for_once_is_kept() {
    for is_altered in [true, false] {
        let set = Setting::recorded(&["f"]);
        let date = set.tree.mtime("f");
        if is_altered {
            set.tree.write("f", content(SIZE, 2));
            set.tree.set_mtime("f", date);
        }
        let before = set.tree.read("f");
        // The first two times that a thread opens it, there or in the copy.
        let options = ["-P", "f", "-e", "inject=openat2:error=EIO:when=1..2"];
        let copy = set.beside.path("copy");
        let from = ["--from", copy.to_str().unwrap()];
        let more = [&from[..], &from, &["--yes", "--json"]].concat();
        let done = traced(&options, &set.recorded.arguments("heal", &more));
        let Some(traced) = or_skip("what_could_not_be_read", done) else { return };
        assert!(traced.run.stdout.contains("unreadable"), "{:?}", traced.run);
        assert_eq!(traced.run.code, 7, "{:?}", traced.run);
        let kept = std::fs::read(set.tree.path(".fsure/replaced/1/f")).ok();
        assert!(kept == Some(before), "{:?}", traced.run);
        assert!(set.tree.read("f") == content(SIZE, 1));
    }
}

#[test]
fn nothing_is_kept_where_that_is_asked_for() {
    let set = Setting::recorded(&["f", "g"]);
    let inode = set.inode("g");
    set.tree.flip("f", 3);
    let report = set.heal(&["--yes", "--no-keep"]);
    assert_eq!((report.code, &remedy(&report, "f")["kept"]), (7, &Value::Null), "{report:?}");
    set.tree.flip("g", 3);
    let report = set.heal(&["--yes", "--in-place", "--no-keep"]);
    assert_eq!((report.code, set.inode("g")), (7, inode), "{report:?}");
    assert!(!set.tree.path(".fsure").exists());
    set.assert_clean();
    // Its old name.
    set.tree.flip("f", 3);
    assert_eq!(set.heal(&["--yes", "--altered"]).code, 7);
    assert!(!set.tree.path(".fsure").exists());
}

/// Three copies without dates, and an edit of the same size among them.
fn copies_and_an_edit() -> (Setting, Vec<u8>) {
    let set = Setting::recorded(&["f", "g", "h"]);
    for path in ["f", "g", "h"] {
        set.tree.set_mtime(path, set.tree.mtime(path) + 3_600_000_000_000);
    }
    let date = set.tree.mtime("g");
    set.tree.flip("g", 3);
    set.tree.set_mtime("g", date);
    let edited = set.tree.read("g");
    (set, edited)
}

/// A file with the verdict damaged-copy might be an edit: it is kept, or left alone.
#[test]
fn a_damaged_copy_is_kept_or_left_alone() {
    for in_place in [&[][..], &["--in-place"]] {
        let (set, edited) = copies_and_an_edit();
        for more in [&["--no-keep"][..], &["--yes", "--no-keep"]] {
            let report = set.heal(&[in_place, more].concat());
            let found = remedy(&report, "g")["found"].as_str();
            assert_eq!(found, Some("damaged-copy"), "{report:?}");
            assert_left_alone(&report, "g", "may be an edit");
            assert_eq!(report.summary()["unkept"], 1, "{report:?}");
            assert!(set.tree.read("g") == edited);
        }
        // The command that the end gives works as it is printed.
        let copy = set.beside.path("copy");
        let more = ["--from", copy.to_str().unwrap(), "--yes", "--no-keep"];
        let reported = set.recorded.text("heal", &[in_place, &more].concat()).stdout;
        let line = reported.lines().find(|line| line.contains("LEFT ALONE")).expect("told");
        let command = line.split('\'').nth(1).expect("a command");
        assert!(!command.contains("--no-keep"), "{command}");
        let run = typed(Path::new("/"), command);
        assert_eq!(run.code, 7, "{command}: {run:?}");
        assert!(set.tree.read("g") == content(SIZE, 1));
        match in_place {
            [] => assert!(set.tree.read(".fsure/replaced/1/g") == edited),
            _ => assert!(set.beside.path("catalog.db.healing.1").exists()),
        }
    }
}

/// A heal in place that was cut off was to keep it, and another one must not drop it.
#[test]
fn the_journal_of_a_damaged_copy_is_kept_by_the_next_heal() {
    let (set, edited) = copies_and_an_edit();
    let copy = set.beside.path("copy");
    let more = ["--from", copy.to_str().unwrap(), "--yes", "--in-place"];
    let file = set.tree.path("g");
    let options = ["-P", file.to_str().unwrap(), "-e", "inject=pwrite64:signal=KILL:when=1"];
    let done = traced(&options, &set.recorded.arguments("heal", &more));
    let Some(_) = or_skip("the_journal_of_a_damaged_copy", done) else { return };
    assert!(set.beside.path("catalog.db.healing").exists(), "no write was cut off");
    let report = set.heal(&["--yes", "--no-keep"]);
    assert!(set.tree.read("g") == content(SIZE, 1), "{report:?}");
    let journal = std::fs::read(set.beside.path("catalog.db.healing.1")).expect("kept");
    assert!(journal.windows(64).any(|piece| piece == &edited[..64]), "the bytes of before");
}

/// A damaged copy that cannot be kept is left alone until it is moved aside with the
/// command that the report gives.
#[test]
fn a_damaged_copy_that_cannot_be_kept_is_left_alone() {
    let (set, edited) = copies_and_an_edit();
    let outside = Tree::new();
    std::fs::create_dir(set.tree.path(".fsure")).unwrap();
    symlink(outside.root(), set.tree.path(".fsure/replaced")).unwrap();
    let copy = set.beside.path("copy");
    let report = set.heal(&["--yes"]);
    let healed = remedy(&report, "g");
    assert_eq!((report.code, &healed["cure"]), (3, &json!("unhealed")), "{report:?}");
    assert!(set.tree.read("g") == edited);
    let reason = healed["reason"].as_str().unwrap();
    assert!(!reason.contains("--no-keep"), "{reason}");
    let command = reason.split('\'').find(|part| part.starts_with("mv ")).expect("a command");
    let moved = std::process::Command::new("sh").args(["-c", command]).status();
    assert!(moved.unwrap().success(), "{command}");
    assert!(set.tree.read("g.replaced") == edited);
    let more = ["--from", copy.to_str().unwrap(), "--yes"];
    let report = set.recorded.run("heal", &more);
    assert_eq!(report.code, 7, "{report:?}");
    assert!(set.tree.read("g") == content(SIZE, 1) && set.tree.read("g.replaced") == edited);
}

/// In place, the journal has the bytes that were replaced.
#[test]
fn of_a_file_that_is_healed_in_place_the_journal_is_kept() {
    let set = Setting::recorded(&["dir/f"]);
    let inode = set.inode("dir/f");
    set.tree.flip("dir/f", MIB as u64 + 3);
    let before = set.tree.read("dir/f");
    let report = set.heal(&["--yes", "--in-place"]);
    assert_eq!((report.code, set.inode("dir/f")), (7, inode), "{report:?}");
    // The catalog is elsewhere, and so is the journal.
    let journal = std::fs::read(set.beside.path("catalog.db.healing.1")).expect("a journal");
    let block = &before[MIB..2 * MIB];
    assert!(journal.windows(64).any(|piece| piece == &block[..64]), "the bytes of before");
    set.assert_clean();
    let inside = Recorded::inside(set.tree.root());
    inside.record();
    set.tree.flip("dir/f", 3);
    let copy = set.beside.path("copy");
    let from = ["--from", copy.to_str().unwrap(), "--yes", "--in-place"];
    let report = inside.run("heal", &from);
    let kept = ".fsure/replaced/1/dir/f.healing";
    assert_eq!((report.code, &remedy(&report, "dir/f")["kept"]), (7, &json!(kept)), "{report:?}");
    assert!(set.tree.read(kept).starts_with(b"fsure heal 1\n"));
    // Its end would be in no journal.
    let date = set.tree.mtime("dir/f");
    let mut longer = set.tree.read("dir/f");
    longer.push(0);
    set.tree.write("dir/f", &longer);
    set.tree.set_mtime("dir/f", date);
    assert_left_alone(&inside.run("heal", &from), "dir/f", "would lose its end");
    assert!(set.tree.read("dir/f") == longer);
}

/// As on FAT, which knows no links.
#[test]
fn where_there_are_no_links_it_is_moved() {
    let set = Setting::recorded(&["dir/f"]);
    set.tree.flip("dir/f", 7);
    let (before, inode) = (set.tree.read("dir/f"), set.inode("dir/f"));
    let copy = set.beside.path("copy");
    let arguments = |more: &[&str]| {
        let from = ["--from", copy.to_str().unwrap(), "--yes", "--json"];
        set.recorded.arguments("heal", &[&from[..], more].concat())
    };
    let no_links = ["-e", "inject=linkat:error=EPERM"];
    // What was moved comes back if the healed file does not get the name.
    let no_names = ["-e", "inject=renameat2:error=EIO:when=2"];
    let test = "where_there_are_no_links_it_is_moved";
    let done = traced(&[&no_links[..], &no_names].concat(), &arguments(&[]));
    let Some(done) = or_skip(test, done) else { return };
    assert_eq!(done.run.code, 3, "{:?}", done.run);
    assert!(set.tree.read("dir/f") == before && set.inode("dir/f") == inode, "{:?}", done.run);
    let done = traced(&no_links, &arguments(&[])).expect("it was there");
    assert_eq!(done.run.code, 7, "{:?}", done.run);
    let report = Report::new(done.run);
    let kept = remedy(&report, "dir/f")["kept"].as_str().expect("kept").to_owned();
    assert!(set.tree.read(&kept) == before && set.inode(&kept) == inode, "{report:?}");
    assert!(set.tree.read("dir/f") == content(SIZE, 1));
    set.assert_clean();
}

#[test]
fn what_cannot_be_kept_is_left_alone() {
    let set = Setting::new(&["f"]);
    for (name, is_bind) in [("tmpfs", false), ("bound", true)] {
        let at = set.tree.path(name);
        std::fs::create_dir(&at).unwrap();
        let other = set.beside.path("dir");
        std::fs::create_dir_all(&other).unwrap();
        let mounted = if is_bind { Mounted::bind(&other, &at) } else { Mounted::tmpfs(&at, 8192) };
        let Some(_mounted) = or_skip("what_cannot_be_kept", mounted) else { return };
        let path = format!("{name}/g");
        set.tree.write(&path, content(SIZE, 1));
        set.beside.write(Path::new("copy").join(&path), content(SIZE, 1));
        let report = set.recorded.run("update", &["--cross-file-systems"]);
        assert_eq!(report.code, 0, "{report:?}");
        set.tree.flip(&path, 9);
        let before = (set.tree.read(&path), set.inode(&path));
        let why = if is_bind { "Invalid cross-device link" } else { "another file system" };
        assert_left_alone(&set.heal(&["--yes"]), &path, why);
        if !is_bind {
            assert_left_alone(&set.heal(&[]), &path, why);
        }
        assert!((set.tree.read(&path), set.inode(&path)) == before, "{path}");
        let report = set.heal(&["--yes", "--no-keep"]);
        assert_eq!(report.code, 7, "{report:?}");
        set.assert_clean();
        std::fs::remove_file(set.tree.path(&path)).unwrap();
        set.recorded.update();
    }
}

#[test]
fn no_link_leads_what_is_kept_elsewhere() {
    for link in [".fsure/replaced", ".fsure/replaced/1"] {
        let set = Setting::recorded(&["f"]);
        let outside = Tree::new();
        let link = set.tree.path(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(outside.root(), &link).unwrap();
        set.tree.flip("f", 9);
        let before = set.tree.read("f");
        let report = set.heal(&["--yes"]);
        assert_eq!(std::fs::read_dir(outside.root()).unwrap().count(), 0, "{report:?}");
        if link.ends_with("1") {
            assert_eq!(report.code, 7, "{report:?}");
            assert!(set.tree.read(".fsure/replaced/2/f") == before);
        } else {
            assert_left_alone(&report, "f", "cannot be kept");
            assert!(set.tree.read("f") == before);
        }
    }
}

/// Between the link and the rename, the file has two names.
#[test]
fn a_run_that_was_cut_off_there_is_completed() {
    let set = Setting::recorded(&["dir/f"]);
    set.tree.flip("dir/f", 9);
    let before = set.tree.read("dir/f");
    std::fs::create_dir_all(set.tree.path(".fsure/replaced/3/dir")).unwrap();
    let kept = set.tree.path(".fsure/replaced/3/dir/f");
    std::fs::hard_link(set.tree.path("dir/f"), &kept).unwrap();
    let verdict = set.recorded.verify().verdict("dir/f");
    assert_eq!(verdict.as_deref(), Some("altered"));
    // A name that is not fsure's own is still one that would be split.
    let other = set.beside.path("other");
    if std::fs::hard_link(set.tree.path("dir/f"), &other).is_ok() {
        let report = set.heal(&["--yes"]);
        let reason = remedy(&report, "dir/f")["reason"].as_str().unwrap();
        assert!(reason.contains("it has 2 hard links"), "{reason}");
        std::fs::remove_file(other).unwrap();
    }
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(remedy(&report, "dir/f")["kept"], ".fsure/replaced/3/dir/f");
    assert!(std::fs::read(&kept).unwrap() == before);
    assert!(!set.tree.path(".fsure/replaced/1").exists());
    set.assert_clean();
}
