//! A record is made on request only, and a refused command leaves nothing behind: no
//! record of another folder, no lock beside a file that was named by mistake. Each
//! hint is a command that works as it is printed.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Recorded, Tree, fsure};

struct CommandResult {
    code: i32,
    text: String,
}

/// Runs a command line in a folder, as a user types it.
fn typed(folder: &Path, line: &str) -> CommandResult {
    let programs = Path::new(env!("CARGO_BIN_EXE_fsure")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .expect("start sh");
    let text = [output.stdout, output.stderr].concat();
    CommandResult {
        code: support::code(output.status),
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

impl CommandResult {
    /// The command that a hint ends with.
    fn command(&self) -> &str {
        let mut commands = self.text.lines().filter_map(|line| line.split_once(": fsure "));
        let command = commands.next().unwrap_or_else(|| panic!("no command: {}", self.text)).1;
        assert!(commands.next().is_none(), "one command: {}", self.text);
        command
    }
}

/// All names below a folder, with what shows a change of each.
fn all_below(folder: &Path) -> BTreeMap<PathBuf, (u64, (i64, i64))> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("list") {
            let path = entry.expect("list").path();
            let stat = fs::symlink_metadata(&path).expect("stat");
            if stat.is_dir() {
                folders.push(path.clone());
            }
            // Each holder of a lock writes its name into the file that is there.
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            let date = if is_lock { (0, 0) } else { (stat.mtime(), stat.mtime_nsec()) };
            all.insert(path, (if is_lock { 0 } else { stat.size() }, date));
        }
    }
    all
}

fn photos() -> Tree {
    let tree = Tree::new();
    tree.write("photos/2026/a.raw", "a");
    tree.write("photos/it's one/b.raw", "b");
    tree.write("list.sha256", format!("{}  2026/a.raw\n", "ab".repeat(32)));
    tree.write("notes.txt", "not a record, and longer than nothing: ".repeat(9));
    tree
}

#[test]
fn no_record_is_made_unasked() {
    let tree = photos();
    let before = all_below(tree.root());
    for line in [
        "fsure update",
        "fsure update --accept photos/2026/a.raw",
        "fsure update --accept photos",
        "fsure update --accept-all",
        "fsure update --full --digest sha256",
    ] {
        let result = typed(tree.root(), line);
        assert_eq!(result.code, 5, "{line}: {}", result.text);
        assert!(result.text.contains("no record of"), "{line}: {}", result.text);
        assert!(all_below(tree.root()) == before, "{line} has left something");
    }
    let result = typed(&tree.root().join("photos/it's one"), "fsure update --new");
    assert_eq!(result.code, 0, "{}", result.text);
    assert!(tree.root().join("photos/it's one/.fsure/catalog.db").exists());
}

#[test]
fn a_path_that_is_accepted_selects_its_root() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos").code, 0);
    let recorded = Recorded::inside(&tree.root().join("photos"));
    recorded.age_records();
    tree.flip("photos/2026/a.raw", 0);
    assert_eq!(typed(tree.root(), "fsure verify photos").code, 3);
    let result = typed(tree.root(), "fsure update --accept photos/2026/a.raw");
    assert_eq!(result.code, 0, "{}", result.text);
    assert!(!tree.root().join(".fsure").exists(), "no record of the current folder");
    assert_eq!(typed(tree.root(), "fsure verify photos").code, 0);
    let held = typed(tree.root(), "fsure update photos --accept notes.txt");
    assert_eq!(held.code, 2, "{}", held.text);
}

#[test]
fn a_refused_command_leaves_nothing() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos").code, 0);
    let before = all_below(tree.root());
    let by_mistake = ["verify", "update", "scrub", "heal", "recover", "import list.sha256 --root"];
    let by_mistake = by_mistake.map(|command| {
        (format!("fsure {command} photos --catalog notes.txt"), "notes.txt cannot be used", 6)
    });
    let others = [
        ("fsure verify gone", "if it is on a disk that is not mounted, mount it", 5),
        ("fsure scrub photos/gone", "does not exist", 5),
        ("fsure update photos --exclude '[' --accept gone", "below none of the roots", 2),
        ("fsure recover photos --from gone.backup", "", 0),
        ("fsure recover . --catalog gone.db", "there is no catalog", 5),
        ("fsure import gone.sha256 --root photos", "gone.sha256", 5),
        ("fsure verify . --catalog gone.db", "there is no catalog", 5),
        ("fsure verify 'photos/*.raw'", "the shell puts the names in place of the pattern", 5),
        (
            "ln -s notes.txt /tmp/x.$$ && fsure verify /tmp/x.$$; c=$?; rm /tmp/x.$$; exit $c",
            "it leads to /tmp/notes.txt, which does not exist",
            5,
        ),
    ];
    let others = others.map(|(line, why, code)| (line.to_owned(), why, code));
    for (line, why, code) in by_mistake.into_iter().chain(others) {
        let result = typed(tree.root(), &line);
        assert!(result.text.contains(why), "{line}: {}", result.text);
        assert_eq!(result.code, code, "{line}: {}", result.text);
        let after = all_below(tree.root());
        assert!(after == before, "{line} has left something: {after:?}");
    }
}

#[test]
fn a_disk_that_is_not_mounted_is_not_a_mistake_of_usage() {
    let tree = Tree::new();
    let run = fsure(&["verify".as_ref(), tree.root().join("mnt/photos").as_os_str()]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("mount it"), "{run:?}");
}

#[test]
fn a_copy_on_the_same_disk_is_distinguished_from_another_disk() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos --catalog elsewhere.db").code, 0);
    assert_eq!(typed(tree.root(), "cp -a photos moved").code, 0);
    let result = typed(tree.root(), "fsure verify moved --catalog elsewhere.db");
    assert_eq!(result.code, 5, "{}", result.text);
    assert!(result.text.contains("this is not the folder that was recorded"), "{}", result.text);
    assert!(!result.text.contains("another file system"), "{}", result.text);
    let result = typed(tree.root(), "fsure verify moved --catalog elsewhere.db --force");
    assert_eq!(result.code, 0, "{}", result.text);
    assert!(result.text.contains("warning: this is not the folder"), "{}", result.text);
}

#[test]
fn a_hint_is_a_command_that_works_as_printed() {
    let tree = photos();
    let result = typed(tree.root(), "fsure verify \"photos/it's one\"");
    assert_eq!(result.code, 5, "{}", result.text);
    let makes_one = format!("fsure {}", result.command());
    let made = typed(tree.root(), &makes_one);
    assert_eq!(made.code, 0, "{makes_one}: {}", made.text);
    let recorded = Recorded::inside(&tree.root().join("photos/it's one"));
    let mut bytes = recorded.catalog_bytes();
    bytes[..4096].fill(0);
    fs::write(&recorded.catalog, bytes).expect("damage");
    let result = typed(tree.root(), "fsure status \"photos/it's one\"");
    assert_eq!(result.code, 6, "{}", result.text);
    let recovers = format!("fsure {}", result.command());
    let recovered = typed(tree.root(), &recovers);
    assert_eq!(recovered.code, 7, "{recovers}: {}", recovered.text);
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn an_accepted_path_that_is_nowhere_is_named() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos").code, 0);
    let result = typed(tree.root(), "fsure update photos --accept photos/2026/b.raw");
    assert_eq!(result.code, 5, "{}", result.text);
    assert!(result.text.contains("warning: --accept: "), "{}", result.text);
    fs::remove_file(tree.root().join("photos/2026/a.raw")).expect("remove");
    // It is recorded, if not there.
    let result = typed(tree.root(), "fsure update photos --accept photos/2026/a.raw");
    assert!(!result.text.contains("warning: --accept"), "{}", result.text);
}

#[test]
fn a_pattern_that_the_shell_replaced_is_refused() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos").code, 0);
    for name in ["x.tmp", "y.tmp"] {
        tree.write(format!("photos/{name}"), "leave me out");
    }
    let before = all_below(tree.root());
    for (folder, line) in [
        ("", "fsure update photos --exclude photos/*.tmp"),
        ("photos", "fsure update --exclude *.tmp"),
        ("photos", "fsure verify --exclude *"),
    ] {
        let result = typed(&tree.root().join(folder), line);
        assert_eq!(result.code, 2, "{line}: {}", result.text);
        assert!(result.text.contains("put the pattern in quotes: --exclude '*"), "{}", result.text);
    }
    assert!(all_below(tree.root()) == before, "something was written");
    let quoted = "fsure update photos --exclude '*.tmp'";
    assert_eq!(typed(tree.root(), quoted).code, 0);
    // One file that is not beside the pattern is no expansion.
    fs::create_dir(tree.root().join("w")).expect("make a folder");
    let one = "cd w && touch '*.tmp' && fsure update ../photos/2026/a.raw --exclude '*.tmp'";
    assert_eq!(typed(tree.root(), one).code, 0);
}

#[test]
fn a_folder_for_a_catalog_is_refused_and_stays_where_it_is() {
    let tree = photos();
    assert_eq!(typed(tree.root(), "fsure update photos").code, 0);
    let result = typed(tree.root(), "fsure verify photos --catalog photos");
    assert_eq!(result.code, 2, "{}", result.text);
    assert!(result.text.contains("'--catalog' takes the name of a file"), "{}", result.text);
    assert!(!result.text.contains("mv "), "no advice to move the data: {}", result.text);
    let result = typed(tree.root(), "fsure verify photos --catalog /dev/null");
    assert_eq!(result.code, 2, "{}", result.text);
    assert!(!result.text.contains("mv "), "no advice to move a device: {}", result.text);
    let result = typed(tree.root(), "fsure update photos --catalog none/c.db");
    assert!(
        result.text.contains("For the first record, make the folder: 'mkdir -p "),
        "{}",
        result.text
    );
    tree.write("r.json", "{\"type\":\"start\"}\n");
    let result = typed(tree.root(), "fsure compare photos r.json");
    assert_eq!(result.code, 2, "{}", result.text);
    assert!(result.text.contains("fsure report FILE"), "{}", result.text);
}
