//! Checks that the programs that `export` writes for accept its lists and find damage
//! with them; those programs themselves are run. And `verify --against` accepts the
//! lists that they write.
#![cfg(target_os = "linux")]

use crate::support;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{AWKWARD, Recorded, Tree, fsure, fsure_json, skip};

/// Runs a program in a folder; `None`, and a loud skip, if it is not there.
fn tool(test: &str, folder: &Path, program: &str, args: &[&OsStr]) -> Option<Output> {
    let mut command = Command::new(program);
    let command = command.args(args).current_dir(folder).stdin(Stdio::null());
    match command.env("LC_ALL", "C.UTF-8").output() {
        Ok(output) => Some(output),
        Err(error) => {
            skip(test, &format!("{program}: {error}"));
            None
        }
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A tree of awkward names and a few plain ones, recorded elsewhere, so that
/// nothing but its files is in it.
struct Sample {
    tree: Tree,
    beside: Tree,
    recorded: Recorded,
}

impl Sample {
    fn new(takes: impl Fn(&[u8]) -> bool) -> Self {
        let (tree, beside) = (Tree::new(), Tree::new());
        tree.write("data/plain", "plain");
        tree.write("data/large", support::content(3 << 20, 7));
        tree.write("data/empty", "");
        // Programs without another option read standard input for it.
        tree.write("data/-", "dash");
        for name in AWKWARD.into_iter().filter(|name| takes(name)) {
            tree.write(os(&[b"data/", name].concat()), name);
            tree.write(os(&[b"data/in ", name, b"/x"].concat()), name);
        }
        let recorded = Recorded::outside(&tree.path("data"), &beside.path("catalog.db"));
        recorded.record();
        Self { tree, beside, recorded }
    }

    /// Exports to `to`, beside the tree.
    fn export(&self, format: &str, to: &str) -> std::path::PathBuf {
        let to = self.beside.path(to);
        let args = [OsStr::new("--format"), OsStr::new(format), OsStr::new("-o"), to.as_os_str()];
        let run = self.recorded.text("export", &args);
        assert_eq!(run.code, 0, "{format}: {}{}", run.stdout, run.stderr);
        to
    }

    fn root(&self) -> std::path::PathBuf {
        self.tree.path("data")
    }

    /// Checks with a program: well at first, not well after a flipped byte.
    fn check(&self, test: &str, folder: &Path, program: &str, args: &[&OsStr]) {
        let Some(output) = tool(test, folder, program, args) else { return };
        assert!(output.status.success(), "{program} refuses: {output:?}");
        self.tree.flip("data/plain", 0);
        let output = tool(test, folder, program, args).expect("it was there");
        assert!(!output.status.success(), "{program} finds no damage: {output:?}");
        self.tree.flip("data/plain", 0);
    }
}

fn is_text(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok()
}

#[test]
fn sha256sum_and_sha512sum_take_every_name() {
    let test = "sha256sum_and_sha512sum_take_every_name";
    let sample = Sample::new(|_| true);
    for (format, program) in [("sha256sums", "sha256sum"), ("sha512sums", "sha512sum")] {
        let list = sample.export(format, format);
        let args = ["-c".as_ref(), "--strict".as_ref(), list.as_os_str()];
        sample.check(test, &sample.root(), program, &args);
    }
}

#[test]
fn b3sum_takes_every_name_that_is_text() {
    // The one of Debian 12 (1.2) does not know how newer ones write a carriage
    // return.
    let sample = Sample::new(|name| is_text(name) && !name.ends_with(b"\r"));
    let list = sample.export("b3sum", "b3");
    let args = ["--check".as_ref(), list.as_os_str()];
    sample.check("b3sum_takes_every_name_that_is_text", &sample.root(), "b3sum", &args);
}

#[test]
fn hashdeep_audits_what_it_can_hold() {
    // It takes every name literally, and fails on these.
    let sample = Sample::new(|name| !name.contains(&b'\n') && !name.ends_with(b"\r"));
    let list = sample.export("hashdeep", "list");
    let args = ["-r", "-l", "-a", "-k"].map(OsStr::new);
    let args = [&args[..], &[list.as_os_str(), ".".as_ref()]].concat();
    sample.check("hashdeep_audits_what_it_can_hold", &sample.root(), "hashdeep", &args);
}

#[test]
fn bagit_python_takes_a_bag() {
    // It strips blanks at the end of a line, does not decode `%25`, and takes
    // U+0085 for the end of a line.
    let takes = |name: &[u8]| {
        let has_next_line = name.windows(2).any(|pair| pair == b"\xc2\x85");
        is_text(name) && !name.contains(&b'%') && !name.ends_with(b" ") && !has_next_line
    };
    let sample = Sample::new(takes);
    let list = sample.beside.path("bag");
    sample.export("bagit", "bag");
    for file in std::fs::read_dir(&list).expect("a folder") {
        let file = file.expect("a file").path();
        std::fs::copy(&file, sample.tree.path(file.file_name().unwrap())).expect("copy");
    }
    let args = ["--validate".as_ref(), sample.tree.root().as_os_str()];
    sample.check("bagit_python_takes_a_bag", sample.tree.root(), "bagit.py", &args);
    // And so does fsure, every file of it.
    let root = sample.tree.root().as_os_str();
    let report = fsure_json(&["verify".as_ref(), root, "--against".as_ref(), root]);
    assert_eq!((report.code, report.verdicts().len()), (0, 0), "{report:?}");
}

#[test]
fn ascmhl_takes_a_history() {
    let sample =
        Sample::new(|name| is_text(name) && !name.iter().any(|byte| *byte < b' ' || *byte == 0x7f));
    let history = sample.root().join("ascmhl");
    let args = ["--format", "ascmhl", "-o"].map(OsStr::new);
    let run = sample.recorded.text("export", &[&args[..], &[history.as_os_str()]].concat());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let root = sample.root();
    let args = ["verify".as_ref(), root.as_os_str()];
    sample.check("ascmhl_takes_a_history", &root, "ascmhl-debug", &args);
    let again = sample.recorded.text(
        "export",
        &["--format".as_ref(), "ascmhl".as_ref(), "-o".as_ref(), history.as_os_str()],
    );
    assert_eq!(again.code, 2, "{}", again.stderr);
}

#[test]
fn libarchive_reads_every_name_from_mtree() {
    let test = "libarchive_reads_every_name_from_mtree";
    let sample = Sample::new(|_| true);
    let list = sample.export("mtree", "mtree");
    let args = ["-cf", "-", "--format=mtree"].map(OsStr::new);
    let mut from = OsString::from("@");
    from.push(&list);
    // Written once more by libarchive, and read by this test.
    let Some(output) =
        tool(test, &sample.root(), "bsdtar", &[&args[..], &[from.as_os_str()]].concat())
    else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let names = |text: &[u8]| text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).count();
    let written = std::fs::read(&list).expect("the list");
    assert_eq!(names(&written), names(&output.stdout));
    let args = ["-tf".as_ref(), list.as_os_str()];
    let listed = tool(test, &sample.root(), "bsdtar", &args).expect("it was there");
    assert!(listed.status.success(), "{listed:?}");
}

#[test]
fn mtree_takes_what_it_does_not_take_for_a_pattern() {
    // A name with one of these matches itself as a pattern only, if at all.
    let sample = Sample::new(|name| !name.iter().any(|byte| b"*?[".contains(byte)));
    let list = sample.export("mtree", "mtree");
    let args = ["-f".as_ref(), list.as_os_str(), "-p".as_ref(), ".".as_ref()];
    sample.check("mtree_takes_what_it_does_not_take", &sample.root(), "mtree", &args);
}

/// Verifies the tree against lists that other programs write of it.
#[test]
fn lists_by_others_are_taken() {
    let test = "lists_by_others_are_taken";
    let sample = Sample::new(|_| true);
    let root = sample.root();
    let all = "find . -type f -print0 | xargs -0 ";
    let tar = "bsdtar -cf - --format=mtree --options='!all,type,size,time,sha256' .";
    for (name, format, line) in [
        ("gnu", None, format!("{all} sha256sum")),
        ("binary", None, format!("{all} sha256sum -b")),
        ("tagged", None, format!("{all} sha512sum --tag")),
        ("zero", None, format!("{all} sha256sum -z")),
        ("md5", None, format!("{all} md5sum")),
        ("mtree", None, tar.to_owned()),
        ("said", Some("sha256sums"), format!("{all} sha256sum")),
    ] {
        let args = ["-c".as_ref(), OsStr::new(&line)];
        let Some(output) = tool(test, &root, "sh", &args) else { return };
        if output.stdout.is_empty() {
            skip(test, &format!("{line}: {}", String::from_utf8_lossy(&output.stderr)));
            continue;
        }
        let list = sample.beside.write(name, &output.stdout);
        let mut args = vec!["verify".as_ref(), root.as_os_str(), "--against".as_ref()];
        args.push(list.as_os_str());
        args.extend(format.iter().flat_map(|format| ["--format".as_ref(), OsStr::new(format)]));
        let report = fsure_json(&args);
        assert_eq!((report.code, report.verdicts().len()), (0, 0), "{name}: {report:?}");
        assert_eq!(report.count("ok"), 4 + 2 * AWKWARD.len() as u64, "{name}");
        sample.tree.flip("data/plain", 0);
        let report = fsure_json(&args);
        assert_eq!(
            report.path_verdicts(),
            support::path_verdicts(&[("plain", "mismatch")]),
            "{name}: {report:?}"
        );
        assert_eq!(report.code, 3, "{name}");
        sample.tree.flip("data/plain", 0);
    }
}

/// fsure takes back every form that it writes, with every name that the form can
/// hold. Those that it cannot are reported.
#[test]
fn own_lists_are_read_back_and_omissions_are_reported() {
    let sample = Sample::new(|_| true);
    let root = sample.root();
    let all = 4 + 2 * AWKWARD.len() as u64;
    for (format, left_out) in [
        ("sha256sums", 0),
        ("sha512sums", 0),
        ("mtree", 0),
        ("json", 0),
        // bad\xff\xfe, as a file and as a folder.
        ("b3sum", 2),
        // A line feed in either, a carriage return at the end of the first.
        ("hashdeep", 3),
    ] {
        let list = sample.beside.path(format);
        let args = [OsStr::new("--format"), OsStr::new(format), OsStr::new("-o"), list.as_os_str()];
        let report = sample.recorded.run("export", &args);
        let expected = if left_out > 0 { 5 } else { 0 };
        assert_eq!(report.code, expected, "{format}: {report:?}");
        assert_eq!(report.summary()["not_expressed"], left_out, "{format}");
        assert_eq!(report.stderr.matches("left out").count() as u64, left_out, "{format}");
        let args = ["verify".as_ref(), root.as_os_str(), "--against".as_ref(), list.as_os_str()];
        let report = fsure_json(&args);
        assert_eq!(report.count("ok"), all - left_out, "{format}: {report:?}");
        assert_eq!(report.count("new"), left_out, "{format}: {report:?}");
        // Standard output has the same list, and nothing else.
        let run = sample.recorded.text("export", &["--format", format]);
        assert_eq!(run.code, expected, "{format}: {}", run.stderr);
        let file = std::fs::read(&list).expect("the list");
        assert_eq!(run.stdout, String::from_utf8_lossy(&file), "{format}");
    }
    let help = fsure(&["export", "--format", "rclone"]);
    assert_eq!(help.code, 2);
}
