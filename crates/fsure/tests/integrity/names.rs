//! Names: the 22 on which other tools fail (`shared/notes/integrity.md`,
//! 4.1), names of 255 bytes, and paths deeper than any system call takes.
//! Recorded, verified, damaged and reported exactly; shown without a control byte.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;

use crate::support::{AWKWARD, Recorded, Tree, bytes, path_of};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};

fn all_names() -> Vec<Vec<u8>> {
    let long = |byte: &[u8]| byte.repeat(255 / byte.len());
    let mut names: Vec<Vec<u8>> = AWKWARD.iter().map(|name| name.to_vec()).collect();
    names.extend([long(b"x"), long(b"\xff"), long(b"\n"), long("\u{e9}a".as_bytes())]);
    let folders: Vec<_> = AWKWARD.iter().map(|name| [name, &b".d/"[..], name].concat()).collect();
    names.extend(folders);
    names
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn verdicts(names: &[Vec<u8>], verdict: &str) -> BTreeMap<Vec<u8>, String> {
    names.iter().map(|name| (name.clone(), verdict.to_owned())).collect()
}

#[test]
fn awkward_names_are_recorded_judged_and_reported_exactly() {
    let (tree, names) = (Tree::new(), all_names());
    for name in &names {
        tree.write(os(name), [name, &b" content"[..]].concat());
    }
    let recorded = Recorded::inside(tree.root());
    let report = recorded.record();
    let reported: Vec<_> = report.findings().filter(|finding| finding["kind"] == "file").collect();
    assert_eq!(reported.len(), names.len());
    let rows = recorded.rows();
    for name in &names {
        let row = rows.get(name).unwrap_or_else(|| panic!("no row of {name:?}"));
        let digest = blake3::hash(&[name, &b" content"[..]].concat());
        assert_eq!(bytes(&row["blake3"]), digest.as_bytes(), "{name:?}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.verdicts()), (0, BTreeMap::new()), "{report:?}");
    assert_eq!(report.count("ok"), names.len() as u64);
    for name in &names {
        tree.flip(os(name), 0);
        let report = recorded.verify();
        let expected = verdicts(std::slice::from_ref(name), "altered");
        assert_eq!((report.code, report.verdicts()), (3, expected), "{name:?}: {report:?}");
        let finding = report.findings().next().expect("one");
        let is_text = std::str::from_utf8(name).is_ok();
        assert_eq!(finding["path_bytes"].is_null(), is_text, "{name:?}: {finding}");
        assert_eq!(path_of(finding), *name);
        tree.flip(os(name), 0);
    }
}

#[test]
fn a_report_for_people_has_no_control_byte_in_it() {
    let (tree, names) = (Tree::new(), all_names());
    for name in &names {
        tree.write(os(name), "content");
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for name in &names {
        tree.flip(os(name), 0);
    }
    for command in ["verify", "update", "status"] {
        let run = recorded.text(command, &["--all"]);
        for (stream, text) in [("output", &run.stdout), ("errors", &run.stderr)] {
            let bad = text.chars().find(|char| char.is_control() && *char != '\n');
            assert_eq!(bad, None, "{command}, standard {stream}: {text}");
            // Bidirectional overrides make a name look like another one.
            assert!(!text.contains('\u{202e}'), "{command}, standard {stream}: {text}");
        }
        // No line begins where a name had its line break.
        assert!(!run.stdout.contains("\nline"), "{command}: {}", run.stdout);
        assert!(run.stdout.contains("bad\\xff\\xfe"), "{command}: {}", run.stdout);
    }
}

#[test]
fn an_awkward_name_can_be_asked_for_and_accepted() {
    let tree = Tree::new();
    for name in AWKWARD {
        tree.write(os(name), "content");
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for name in AWKWARD {
        tree.flip(os(name), 0);
        let path = tree.path(os(name));
        let report = support::fsure_json(&[OsStr::new("verify"), path.as_os_str()]);
        let expected = verdicts(&[name.to_vec()], "altered");
        assert_eq!((report.code, report.verdicts()), (3, expected), "{name:?}: {report:?}");
        let report = recorded.run("update", &["--accept".as_ref(), path.as_os_str()]);
        assert_eq!(report.code, 0, "{name:?}: {report:?}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.verdicts()), (0, BTreeMap::new()), "{report:?}");
}

/// A folder of a name of 255 bytes in a folder of a name of 255 bytes, and so
/// on, and its descriptor.
fn deep(tree: &Tree, byte: u8, depth: usize) -> (OwnedFd, Vec<u8>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = rustix::fs::openat(CWD, tree.root(), flags, Mode::empty()).expect("open");
    let name = vec![byte; 255];
    let mut path = Vec::new();
    for _ in 0..depth {
        match rustix::fs::mkdirat(&at, &name[..], Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => panic!("make a folder: {error}"),
        }
        at = rustix::fs::openat(&at, &name[..], flags, Mode::empty()).expect("open");
        path.extend_from_slice(&name);
        path.push(b'/');
    }
    (at, path)
}

#[test]
fn paths_longer_than_a_system_call_takes_are_files_like_any_other() {
    let tree = Tree::new();
    let mut files = Vec::new();
    for (byte, depth) in [(b'a', 15), (b'b', 16), (b'c', 17), (b'd', 40)] {
        let (folder, mut path) = deep(&tree, byte, depth);
        let name = [byte; 254];
        let flags = OFlags::CREATE | OFlags::RDWR;
        let file = rustix::fs::openat(&folder, &name[..], flags, Mode::RWXU).expect("create");
        rustix::io::pwrite(&file, b"content", 0).expect("write");
        path.extend_from_slice(&name);
        files.push((path, file, folder, name));
    }
    assert!(files.iter().filter(|file| file.0.len() > 4096).count() >= 2);
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let rows = recorded.rows();
    for (path, ..) in &files {
        assert!(rows.contains_key(path), "no row of a path of {} bytes", path.len());
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, files.len() as u64), "{report:?}");
    for (path, file, folder, name) in &files {
        let stat = rustix::fs::fstat(file).expect("stat");
        rustix::io::pwrite(file, b"C", 0).expect("damage");
        let mtime = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: omit, last_modification: mtime };
        rustix::fs::utimensat(folder, &name[..], &times, AtFlags::empty()).expect("date");
        let report = recorded.verify();
        let expected = verdicts(std::slice::from_ref(path), "altered");
        assert_eq!((report.code, report.verdicts()), (3, expected), "{} bytes", path.len());
        rustix::io::pwrite(file, b"c", 0).expect("repair");
        rustix::fs::utimensat(folder, &name[..], &times, AtFlags::empty()).expect("date");
    }
    let report = recorded.update();
    assert_eq!((report.code, report.verdicts()), (0, BTreeMap::new()), "{report:?}");
}
