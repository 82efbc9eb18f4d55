//! Faults planted on purpose: `tidy.rs` must see each, and nothing in code
//! that only looks like one.

use std::collections::BTreeMap;

use super::{LINES_MAX, check, floors, page_faults, root_faults};

/// File, source, and a part of what must be said of it.
const PLANTED: &[(&str, &str, &str)] = &[
    ("words/a.rs", "use crate::plan::Step;", "crate::plan::Step is on floor 2"),
    ("words/a.rs", "fn f() { '\"'; crate::plan::go(); }", "floor 2"),
    ("words/a.rs", "use crate::{\n    words::{B, C},\n    plan::{self, D},\n};", "floor 2"),
    ("words/a.rs", "use super::super::plan;", "floor 2"),
    ("words/a.rs", "use super::{B, super::{words::C, tree}};", "floor 2"),
    ("words/mod.rs", "use super::plan;", "floor 2"),
    ("words.rs", "use super::plan;", "floor 2"),
    ("words/a.rs", "mod b { use super::super::super::plan; }", "floor 2"),
    ("words/a.rs", "#[cfg(test)]\nmod tests { use crate::plan; }", "floor 2"),
    ("plan/a.rs", "use crate::tree::Walk;", "floor 2"),
    ("plan/a.rs", "use crate::Walk;", "past the floors"),
    ("attic/a.rs", "use crate::words;", "without a floor"),
    ("plan/a.rs", "use crate::*;", "past the floors"),
    ("plan/a.rs", "use crate as house;", "past the floors"),
    ("plan/a.rs", "fn f() { std::println!(); }", "prints"),
    ("cli/verify.rs", "fn f() { eprintln!(); }", "prints"),
    ("plan/a.rs", "fn f() { dbg!(1); }", "prints"),
    ("plan/a.rs", "fn f() { std::io::stdout().lock(); }", "prints"),
    ("plan/a.rs", "fn f() { std::process::exit(1); }", "exits"),
    ("cli/verify.rs", "use std::process::{ExitCode, exit};", "exits"),
    ("plan/a.rs", "fn f() { abort(); }", "exits"),
    ("cli/mod.rs", "use std::{fs, io};", "asks"),
    ("lib.rs", "use std::net::TcpStream;", "asks"),
    ("plan/a.rs", "use std::os::unix::ffi::OsStrExt;", "asks"),
    ("plan/a.rs", "fn f() { std::process::Command::new(\"a\"); }", "asks"),
    ("plan/a.rs", "fn f() { libc::sync(); }", "asks"),
    ("plan/a.rs", "use rustix::fs::stat;", "asks"),
    ("plan/a.rs", "fn f() { /* ' */ File::open(\"a\"); }", "asks"),
    ("plan/a.rs", "#[cfg(unix)]\nfn f() {}", "asks"),
    ("plan/a.rs", "#[cfg(not(windows))]\nfn f() {}", "asks"),
    ("plan/a.rs", "fn f() { cfg!(target_os = \"linux\"); }", "asks"),
    ("plan/a.rs", "#[cfg(test)]\nmod tests {}\nfn f() { unsafe { g() } }", "asks"),
    ("plan/a.rs", "fn f() { std::env::args(); }", "environment"),
    ("plan/a.rs", "/// Whether it is so.\nfn f() {}", "question"),
    ("plan/a.rs", "mod a {\n    /// What: a thing.\n    fn f() {}\n}", "question"),
];

#[test]
fn every_planted_fault_is_caught() {
    let lib =
        "// Floor 1: words\npub mod words;\n\n// Floor 2: machines\npub mod plan;\nmod tree;\n";
    let floors = floors(lib);
    assert_eq!(floors, BTreeMap::from([("words", 1), ("plan", 2), ("tree", 2)]));
    let good = r##"//! Steps of a plan.
use crate::words::{self, Entry};
use super::{Step, step::Two};
pub(crate) fn exit() { "std::fs \" unsafe"; r#"" unsafe"#; b'"'; '\''; 'x'; '"'; self.exit(); }
/* std::fs */ // unsafe
fn f<'a>(x: &'a [u8]) { x.windows(2); super::super::words::Entry; println(); Vec::<u8>::new(); }
#[cfg(test)]
mod tests { use super::{super::super::words, *}; use std::fs; }
"##;
    assert_eq!(check(&floors, "plan/step.rs", good), [""; 0]);
    for (file, source, fault) in PLANTED {
        let faults = check(&floors, file, &format!("//! Steps of a plan.\n{source}\n"));
        assert!(
            !faults.is_empty() && faults.iter().all(|found| found.contains(fault)),
            "{source}: {faults:?}"
        );
    }
    let without = super::floors("mod words;\nmod plan;\n");
    assert!(without.is_empty());
    assert_eq!(check(&without, "words.rs", "//! Words.\nuse crate::plan;\n"), [""; 0]);
    assert!(!check(&without, "words.rs", "//! Words.\nuse std::fs;\n").is_empty());
    assert_eq!(root_faults("//! A crate.\n#![forbid(unsafe_code)]\n\nmod a;\n"), None);
    assert!(root_faults("//! A crate.\n\nmod a;\n").is_some());
    let first = |source: &str| check(&floors, "plan/a.rs", source).remove(0);
    assert!(first("use x;").contains("no `//!`"));
    let long = format!("//!{}", "\n".repeat(LINES_MAX + 1));
    assert!(first(&long).contains(&format!("{LINES_MAX} lines")));
    assert!(first(&format!("//!{}", "-".repeat(98))).contains("100 columns"));
}

#[test]
fn every_nameless_actor_is_caught() {
    let page = |path: &str, text: &str| BTreeMap::from([(path.to_owned(), text.to_owned())]);
    for (text, word, line) in [
        ("Nobody writes there.", "Nobody", 1),
        ("It is\nsomebody's file.", "somebody", 2),
        ("| told | `x`, by anybody |", "anybody", 1),
        ("*Someone* reads it.", "Someone", 1),
        ("- open to (anyone)", "anyone", 1),
        ("a\n\nWhoever asks", "Whoever", 3),
    ] {
        let expected = format!("docs/ram.md:{line}: '{word}' names no actor");
        assert_eq!(page_faults(&page("docs/ram.md", text)), [expected], "{text}");
        assert_eq!(page_faults(&page("CHANGELOG.md", text)).len(), 1, "{text}");
        assert_eq!(page_faults(&page("docs/adr/0001-a.md", text)), [""; 0], "{text}");
    }
    let named = "Another process, nobodyish, some one, the user's.";
    assert_eq!(page_faults(&page("docs/ram.md", named)), [""; 0]);
}
