//! Trees whose records travel with them, and what is asked of both.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Recorded, Report, Tree, content};

pub const FILE: &str = ".fsure-folder.jsonl";
pub const ATTRIBUTE: &str = "user.fsure.record";
pub const FOLDER: [&str; 2] = ["--layout", "folder"];
pub const XATTR: [&str; 2] = ["--layout", "xattr"];
pub const TREE: [&str; 2] = ["--layout", "tree"];
pub const PLAIN: [&str; 0] = [];

pub fn fill(tree: &Tree) {
    tree.write("a", content(1000, 1));
    tree.write("sub/b", content(2_000_000, 2));
    tree.write("sub/deep/c", content(10, 3));
    tree.write(OsStr::from_bytes(b"sub/bad\xff"), content(300, 4));
    tree.write("sub-2/d", content(20, 5));
    fs::create_dir(tree.path("empty")).expect("make a folder");
    for path in [&b"a"[..], b"sub/b", b"sub/deep/c", b"sub/bad\xff", b"sub-2/d"] {
        tree.age(OsStr::from_bytes(path));
    }
}

pub fn recorded() -> (Tree, Recorded) {
    let tree = Tree::new();
    fill(&tree);
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// Returns the counts of carriers in the summary, without zeros.
pub fn carriers(report: &Report) -> BTreeMap<String, u64> {
    let all = report.summary()["carriers"].as_object().expect("an object");
    let numbers = all.iter().map(|(name, n)| (name.clone(), n.as_u64().expect("a number")));
    numbers.filter(|(_, n)| *n > 0).collect()
}

pub fn seen(report: &Report) -> (i32, u64, Vec<(String, u64)>) {
    let read = report.summary()["bytes_read"].as_u64().expect("a number");
    (report.code, read, carriers(report).into_iter().collect())
}

pub fn counts(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

pub fn files_of_folders(tree: &Tree) -> Vec<PathBuf> {
    let folders = ["", "empty", "sub", "sub-2", "sub/deep"];
    let paths = folders.map(|folder| Path::new(folder).join(FILE));
    paths.into_iter().filter(|path| tree.path(path).exists()).collect()
}

/// Copies with dates and attributes.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("run cp");
    assert!(done.success());
}

/// By the document alone: the lines of files, if the digest fits.
pub fn parse(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let (body, end) = text.trim_end().rsplit_once('\n').expect("lines");
    let end: Value = serde_json::from_str(end).expect("JSON");
    let digest = blake3::hash(format!("{body}\n").as_bytes()).to_hex().to_string();
    assert_eq!((&end["type"], &end["blake3"]), (&json!("end"), &json!(digest)));
    let lines: Vec<Value> =
        body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0], json!({"type": "fsure-folder", "version": 1}));
    lines[1..].to_vec()
}

/// A folder's file with one byte of one digest changed and its own put right.
pub fn forge(path: &Path, name: &str) {
    let text = fs::read_to_string(path).expect("read");
    let (body, _) = text.trim_end().rsplit_once('\n').expect("lines");
    let lines: Vec<String> = body
        .lines()
        .map(|line| match line.contains(&format!("\"path\":\"{name}\"")) {
            true => {
                let at = line.find("\"blake3\":\"").expect("a digest") + 10;
                let other = if &line[at..=at] == "0" { "1" } else { "0" };
                format!("{}{other}{}", &line[..at], &line[at + 1..])
            }
            false => line.to_owned(),
        })
        .collect();
    let body = format!("{}\n", lines.join("\n"));
    let end = json!({"type": "end", "files": lines.len() - 1,
        "blake3": blake3::hash(body.as_bytes()).to_hex().to_string()});
    fs::write(path, format!("{body}{end}\n")).expect("write");
}
