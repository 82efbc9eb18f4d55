//! The commands over recorded folders, on a root in which everything that they report has
//! happened.
#![cfg(target_os = "linux")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode};

use crate::json_schema::Printed;
use crate::support::signable::{Signable, copy};
use crate::support::{Tree, content};

/// A signed root, the files of its user, and a copy of it from before.
struct Place {
    sample: Signable,
    beside: Tree,
}

impl Place {
    fn new() -> Self {
        Self { sample: Signable::new(), beside: Tree::new() }
    }

    fn home(&self) -> PathBuf {
        self.sample.own.path("home")
    }

    fn root(&self) -> &Path {
        self.sample.tree.root()
    }

    fn copy(&self) -> PathBuf {
        self.beside.path(OsStr::from_bytes(b"copy\xff"))
    }

    /// Runs a command on the root.
    fn run(&self, printed: &mut Printed, command: &str, more: &[&OsStr]) {
        let args = self.sample.recorded.arguments(command, more);
        printed.run(&self.home(), &args);
    }

    /// The same with arguments that are text.
    fn say(&self, printed: &mut Printed, command: &str, more: &[&str]) {
        self.run(printed, command, &more.iter().map(OsStr::new).collect::<Vec<_>>());
    }
}

/// Runs the commands.
pub(crate) fn print() -> Printed {
    let mut printed = Printed::default();
    let place = Place::new();
    print_whole(&mut printed, &place);
    change(&place);
    print_changed(&mut printed, &place);
    print_lists(&mut printed, &place);
    print_damaged_record(&mut printed, &place);
    print_offline(&mut printed, &place);
    printed.run(&place.home(), &["verify", "/nonexistent/folder"]);
    printed.run(&place.home(), &["--version", "--verbose"]);
    printed
}

/// A root as it should be: recorded with metadata, signed, protected.
fn print_whole(printed: &mut Printed, place: &Place) {
    for (name, seed) in [(&b"old\xff"[..], 5), ("caf\u{e9}".as_bytes(), 6)] {
        place.sample.tree.write(OsStr::from_bytes(name), content(100, seed));
    }
    place.say(printed, "update", &["--meta", "mode"]);
    let key = |name: &str| place.sample.own.path(name);
    place.run(printed, "seal", &["--sign".as_ref(), key("mine.key").as_os_str()]);
    place.run(printed, "verify", &["--signed-by".as_ref(), key("mine.pub").as_os_str()]);
    place.run(printed, "log", &["--signed-by".as_ref(), key("mine.pub").as_os_str()]);
    place.say(printed, "protect", &["--redundancy", "10"]);
    place.say(printed, "scrub", &["--max-age", "1h"]);
    copy(place.root(), &place.copy());
}

/// Damage, an edit, and names and kinds of all sorts.
fn change(place: &Place) {
    let tree = &place.sample.tree;
    tree.flip("b", 1 << 20);
    fs::remove_file(tree.path("sub/c")).expect("remove a file");
    let rename = |from: &[u8], to: &[u8]| {
        let path = |name| tree.path(OsStr::from_bytes(name));
        fs::rename(path(from), path(to)).expect("rename a file");
    };
    rename(b"old\xff", b"sub/moved");
    rename("caf\u{e9}".as_bytes(), "cafe\u{301}".as_bytes());
    fs::set_permissions(tree.path("a"), fs::Permissions::from_mode(0o600)).expect("chmod");
    fs::remove_file(tree.path("link")).expect("remove a link");
    let target = OsStr::from_bytes(b"to\xff");
    std::os::unix::fs::symlink(target, tree.path("link")).expect("make a link");
    tree.write(OsStr::from_bytes(b"new\xff"), "new");
    let twin = tree.write(OsStr::from_bytes(b"twin\xff"), content(100, 1));
    fs::hard_link(twin, tree.path("twin-link")).expect("make a hard link");
    let pipe = tree.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, pipe, FileType::Fifo, Mode::RWXU, 0).expect("make a FIFO");
}

fn print_changed(printed: &mut Printed, place: &Place) {
    place.say(printed, "verify", &["--all"]);
    for command in ["status", "scrub", "log", "dupes"] {
        place.say(printed, command, &[]);
    }
    place.say(printed, "status", &["--age"]);
    let (root, copy) = (place.root().as_os_str(), place.copy());
    let copy = copy.as_os_str();
    printed.run(&place.home(), &["compare".as_ref(), root, copy]);
    place.run(printed, "heal", &["--from".as_ref(), copy]);
    place.run(printed, "heal", &["--from".as_ref(), copy, "--yes".as_ref()]);
    place.say(printed, "update", &["--accept-all"]);
}

fn print_lists(printed: &mut Printed, place: &Place) {
    let list = place.beside.path("list").into_os_string();
    place.run(printed, "export", &["--format=sha256sums".as_ref(), "-o".as_ref(), &list]);
    place.say(printed, "export", &["--format", "json"]);
    let catalog = place.beside.path("catalog.db").into_os_string();
    let args = |more: &[&str]| more.iter().map(OsString::from).collect::<Vec<_>>();
    let mut import = args(&["import"]);
    import.extend([
        list.clone(),
        "--root".into(),
        place.root().into(),
        "--catalog".into(),
        catalog,
    ]);
    printed.run(&place.home(), &import);
    place.run(printed, "verify", &["--against".as_ref(), &list]);
}

/// A record that has lost a part of itself.
fn print_damaged_record(printed: &mut Printed, place: &Place) {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(&place.sample.recorded.catalog)
        .expect("open the catalog");
    file.seek(SeekFrom::Start(4096)).expect("seek");
    file.write_all(&[0x55; 8192]).expect("damage the catalog");
    drop(file);
    place.say(printed, "verify", &[]);
    place.say(printed, "recover", &["--dry-run"]);
    place.say(printed, "recover", &[]);
}

/// The record of a root that is not mounted.
fn print_offline(printed: &mut Printed, place: &Place) {
    let empty = place.beside.path("empty");
    fs::create_dir(&empty).expect("make a folder");
    fs::rename(place.copy().join(".fsure"), empty.join(".fsure")).expect("move the record");
    printed.run(&place.home(), &["verify".as_ref(), empty.as_os_str()]);
}

/// Progress and a warning as lines: a run of more than a second, and a comparison by a user who
/// asks for signatures.
pub(crate) fn print_progress() -> Printed {
    let mut printed = Printed::default();
    let tree = Tree::new();
    tree.write("root/a", content(9 << 20, 1));
    tree.write("config/fsure/config.toml", "signed_by = \"key.pub\"\n");
    let root = tree.path("root");
    let root = root.to_str().expect("UTF-8");
    let json = ["--progress", "json"];
    let compare = [&json[..], &["compare", root, root]].concat();
    printed.run(tree.root(), &compare);
    let update = [&json[..], &["update", root, "--rate", "2MiB/s"]].concat();
    printed.run(Path::new("/nonexistent"), &update);
    printed
}
