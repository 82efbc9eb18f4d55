//! Lists that say nothing, too much, or two things at once, and lists that come through a
//! pipe: each is judged by `import` as by `verify --against`, and none passes for more than
//! it is.
#![cfg(unix)]

use crate::support;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Recorded, Report, Run, Tree, code, fsure, fsure_json, path_verdicts};

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sums(files: &[(&str, &str)]) -> String {
    let line = |(name, content): &(&str, &str)| format!("{}  {name}\n", sha256(content.as_bytes()));
    files.iter().map(line).collect()
}

const FILES: [(&str, &str); 2] = [("a", "one"), ("sub/b", "three")];

/// A tree of [`FILES`], and a place beside it for lists.
fn sample() -> (Tree, Tree) {
    let (tree, beside) = (Tree::new(), Tree::new());
    for (name, content) in FILES {
        tree.write(name, content);
    }
    (tree, beside)
}

fn against(tree: &Tree, list: &Path) -> Report {
    let args = ["verify".as_ref(), tree.root().as_os_str(), "--against".as_ref(), list.as_os_str()];
    fsure_json(&args)
}

fn import(list: &Path, root: &Path) -> Report {
    fsure_json(&["import".as_ref(), list.as_os_str(), "--root".as_ref(), root.as_os_str()])
}

/// Runs fsure in a folder, with something on standard input.
fn fed(input: &[u8], args: &[&OsStr], folder: &Path) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    command.args(args).current_dir(folder).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start fsure");
    let mut stdin = child.stdin.take().expect("a pipe");
    // If it is refused before it is read, there is no one to write to.
    drop(stdin.write_all(input));
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    Run {
        code: support::code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A list of the files by their absolute paths below `folder`.
fn absolute_sums(folder: &Path) -> String {
    let line = |(name, content): &(&str, &str)| {
        format!("{}  {}\n", sha256(content.as_bytes()), folder.join(name).display())
    };
    FILES.iter().map(line).collect()
}

#[test]
fn absolute_paths_below_the_root_are_names_in_it() {
    let (tree, beside) = sample();
    let link = beside.path("link");
    std::os::unix::fs::symlink(tree.root(), &link).expect("link");
    for folder in [tree.root(), &link] {
        let list = beside.write("list", absolute_sums(folder));
        for root in [tree.root(), &link] {
            let report = against(&tree, &list);
            assert_eq!((report.code, report.count("ok")), (0, 2), "{root:?}: {report:?}");
            let report = import(&list, root);
            assert_eq!(report.code, 0, "{report:?}");
            assert_eq!(report.summary()["recorded"], 2, "{report:?}");
            std::fs::remove_dir_all(tree.path(".fsure")).expect("remove");
            let run = fsure(&["compare".as_ref(), list.as_os_str(), root.as_ref()]);
            assert_eq!(run.code, 0, "{run:?}");
        }
    }
    // Damage is found by such a name as by another.
    tree.write("sub/b", "other");
    assert_eq!(against(&tree, &beside.path("list")).code, 3);
}

#[test]
fn absolute_paths_elsewhere_are_named_with_the_folder_that_holds_them() {
    let (tree, beside) = sample();
    let other = Tree::new();
    for (name, content) in FILES {
        other.write(name, content);
    }
    let list = beside.write("list", absolute_sums(other.root()));
    let advised = |root: &str| {
        let list = list.display();
        [
            format!("'fsure verify {root} --against {list}'"),
            format!("'fsure import {list} --root {root}'"),
        ]
    };
    let at = format!("{}:1: {} is not below", list.display(), other.path("a").display());
    let runs = [against(&tree, &list), import(&list, tree.root())];
    for (run, command) in runs.iter().zip(advised(&other.root().display().to_string())) {
        assert_eq!(run.code, 5, "{run:?}");
        assert!(run.stderr.contains(&at) && run.stderr.contains(&command), "{run:?}");
        assert!(!run.stderr.contains("can be understood"), "{run:?}");
    }
    assert!(!tree.path(".fsure").exists());
    assert_eq!(against(&other, &list).code, 0, "the command that was advised");
    // A list of both is one of the folder that holds both.
    let both = absolute_sums(tree.root()) + &absolute_sums(other.root());
    let list = beside.write("list", both);
    let report = against(&tree, &list);
    assert_eq!((report.code, report.count("ok")), (5, 2), "{report:?}");
    assert_eq!(tree.root().parent(), other.root().parent());
    let above = tree.root().parent().expect("a folder").display();
    assert!(report.stderr.contains(&format!("'fsure verify {above} --against")), "{report:?}");
    // Of a folder that is gone, there is no command.
    let list = beside.write("list", absolute_sums(Path::new("/nonexistent/photos")));
    let report = against(&tree, &list);
    assert_eq!(report.code, 5, "{report:?}");
    assert!(report.stderr.contains("remove '/nonexistent/photos/'"), "{report:?}");
}

#[test]
fn a_list_that_names_no_file_is_not_believed_and_leaves_nothing() {
    let (tree, beside) = sample();
    let hashdeep = "%%%% HASHDEEP-1.0\n%%%% size,sha256,filename\n";
    for text in [
        "\0".repeat(100_000),
        String::new(),
        "\n\n\n".to_owned(),
        "# nothing\n; nothing\n".to_owned(),
        hashdeep.to_owned(),
        "#mtree\n. type=dir\n".to_owned(),
        "{\"type\":\"fsure-list\",\"version\":1}\n{\"type\":\"end\",\"files\":0}\n".to_owned(),
        "nonsense\n".to_owned(),
    ] {
        let list = beside.write("list", &text);
        let head = text.chars().take(20).collect::<String>();
        let report = import(&list, tree.root());
        assert_eq!((report.code, &report.summary()["recorded"]), (6, &0.into()), "{head:?}");
        assert!(report.stderr.contains("names no file"), "{head:?} {report:?}");
        assert!(!tree.path(".fsure").exists(), "{head:?}");
        assert_eq!(against(&tree, &list).code, 6, "{head:?}");
        // Not without a word, however little is asked for.
        for call in [["import", "--root"], ["verify", "--against"]] {
            let (first, second) = match call[0] {
                "import" => (list.as_os_str(), tree.root().as_os_str()),
                _ => (tree.root().as_os_str(), list.as_os_str()),
            };
            let quiet = "--quiet".as_ref();
            let run = fsure(&[call[0].as_ref(), first, call[1].as_ref(), second, quiet]);
            assert_eq!(run.code, 6, "{head:?} {run:?}");
            let is_explained =
                run.stderr.contains("no file") || run.stderr.contains("can be understood");
            assert!(is_explained, "{call:?} {head:?}: {run:?}");
        }
    }
    // A record that is there stays as it is.
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let before = recorded.catalog_bytes();
    assert_eq!(import(&beside.write("list", ""), tree.root()).code, 6);
    assert_eq!(recorded.catalog_bytes(), before);
    // Digests that fsure does not compute are another matter: there are entries.
    let list = beside.write("list", format!("{}  a\n", "0".repeat(96)));
    let report = import(&list, beside.root());
    assert_eq!((report.code, report.stderr.contains("names no file")), (5, false), "{report:?}");
}

#[test]
fn the_reason_of_an_exit_code_is_printed_under_quiet() {
    let (tree, beside) = sample();
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    recorded.edit("DELETE FROM record WHERE path = CAST('a' AS BLOB)");
    let run = recorded.text("verify", &["--quiet"]);
    assert!(run.code == 6 && run.stderr.contains("CANNOT BE TRUSTED"), "{run:?}");
    recorded.edit("DELETE FROM record");
    let second = Recorded::outside(tree.root(), &beside.path("second.db"));
    second.record();
    for (name, _) in FILES {
        std::fs::remove_file(tree.path(name)).expect("remove");
    }
    let run = second.text("verify", &["--quiet"]);
    assert!(run.code == 5 && run.stderr.contains("OFFLINE"), "{run:?}");
}

#[test]
fn import_holds_a_bag_to_the_rules_of_its_version() {
    let payload = [("data/a", "one"), ("data/b", "two")];
    let manifests = |algorithms: &[&str], twice: &str| {
        let tree = Tree::new();
        for (name, content) in payload {
            tree.write(name, content);
        }
        tree.write("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
        for algorithm in algorithms {
            let digest = |content: &str| match *algorithm {
                "sha256" => sha256(content.as_bytes()),
                _ => {
                    use sha2::Digest as _;
                    let digest = sha2::Sha512::digest(content);
                    digest.iter().map(|byte| format!("{byte:02x}")).collect()
                }
            };
            let line = |(name, content): &(&str, &str)| format!("{}  {name}\n", digest(content));
            let text: String = payload.iter().map(line).collect();
            tree.write(format!("manifest-{algorithm}.txt"), text);
        }
        let manifest = String::from_utf8(tree.read("manifest-sha512.txt")).expect("text");
        let lines: Vec<_> = manifest.lines().collect();
        let text = match twice {
            "twice" => format!("{manifest}{}\n", lines[0]),
            "lacking" => format!("{}\n", lines[0]),
            _ => manifest,
        };
        tree.write("manifest-sha512.txt", text);
        tree
    };
    for (algorithms, fault, word) in [
        (&["sha512"][..], "", ""),
        (&["sha256", "sha512"], "", ""),
        (&["sha512"], "twice", "data/a is listed twice"),
        (&["sha256", "sha512"], "lacking", "data/b is not in its manifest of sha512"),
    ] {
        let bag = manifests(algorithms, fault);
        let code = if word.is_empty() { 0 } else { 6 };
        let report = against(&bag, bag.root());
        assert_eq!((report.code, report.stderr.contains(word)), (code, true), "{report:?}");
        // A second time there is nothing new, and the bag is what it is.
        for recorded in [2, 0] {
            let report = fsure_json(&["import".as_ref(), bag.root().as_os_str()]);
            assert_eq!(report.summary()["recorded"], recorded, "{fault}: {report:?}");
            assert_eq!(report.code, code, "{fault}: {report:?}");
            let reported = if word.is_empty() {
                report.stderr.len()
            } else {
                report.stderr.matches(word).count()
            };
            assert_eq!(reported, usize::from(!word.is_empty()), "{fault}: {report:?}");
        }
    }
    // A bag in a tree that has a record already: its rules are those of its own folder.
    let tree = Tree::new();
    tree.write("other", "x");
    Recorded::inside(tree.root()).record();
    let bag = manifests(&["sha256", "sha512"], "lacking");
    std::fs::rename(bag.root(), tree.path("bag")).expect("move");
    let report = fsure_json(&["import".as_ref(), tree.path("bag").as_os_str()]);
    assert_eq!(report.code, 6, "{report:?}");
    assert!(report.stderr.contains("bag/data/b is not in its manifest"), "{report:?}");
}

#[test]
fn tag_files_that_md5sum_has_listed_are_found() {
    let bag = Tree::new();
    bag.write("data/a", "one");
    let declaration = "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n";
    bag.write("bagit.txt", declaration);
    bag.write("bag-info.txt", "Bagging-Date: 2020-01-01\n");
    let line = |mark: &str, name: &str| format!("{} {mark}{name}\n", sha256(&bag.read(name)));
    bag.write("manifest-sha256.txt", line("*", "data/a"));
    let names = ["bagit.txt", "bag-info.txt", "manifest-sha256.txt"];
    let tags: String = names.iter().map(|name| line("*", name)).collect();
    bag.write("tagmanifest-sha256.txt", tags);
    let report = against(&bag, bag.root());
    assert_eq!((report.code, report.count("ok")), (0, 4), "{report:?}");
    let report = fsure_json(&["import".as_ref(), bag.root().as_os_str()]);
    assert_eq!((report.code, &report.summary()["absent"]), (0, &0.into()), "{report:?}");
    assert_eq!(Recorded::inside(bag.root()).verify().count("missing"), 0);
    // A name that does begin with a star.
    bag.write("*star", "star");
    let tags = line("*", "bagit.txt") + &line(" ", "*star");
    bag.write("tagmanifest-sha256.txt", tags);
    let bare = Tree::new();
    for name in ["data/a", "bagit.txt", "bag-info.txt", "*star"] {
        bare.write(name, bag.read(name));
    }
    for name in ["manifest-sha256.txt", "tagmanifest-sha256.txt"] {
        bare.write(name, bag.read(name));
    }
    let report = against(&bare, bare.root());
    assert_eq!(report.count("ok"), 3, "{report:?}");
    assert_eq!(report.count("missing"), 0, "{report:?}");
}

#[test]
fn a_size_that_the_list_has_counts_beside_its_digest() {
    let (tree, beside) = sample();
    let (a, b) = (sha256(b"one"), sha256(b"three"));
    let hashdeep = |sizes: [u64; 2]| {
        let [one, two] = sizes;
        format!("%%%% HASHDEEP-1.0\n%%%% size,sha256,filename\n{one},{a},a\n{two},{b},sub/b\n")
    };
    let mtree = |sizes: [u64; 2]| {
        let [one, two] = sizes;
        format!("#mtree\n./a size={one} sha256={a}\n./sub/b size={two} sha256={b}\n")
    };
    for form in [&hashdeep as &dyn Fn([u64; 2]) -> String, &mtree] {
        let list = beside.write("list", form([3, 5]));
        let report = against(&tree, &list);
        assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
        for wrong in [0, 2, 4, u64::MAX / 2] {
            let list = beside.write("list", form([wrong, 5]));
            let report = against(&tree, &list);
            assert_eq!(
                (report.code, report.path_verdicts()),
                (3, path_verdicts(&[("a", "mismatch")])),
                "{report:?}"
            );
            let finding = report.finding("a").expect("a finding");
            let why = "its digest is the listed one, and its size is not";
            assert_eq!(finding["reason"], why, "{report:?}");
        }
    }
    // Twice, with two sizes: the list contradicts itself.
    let twice = hashdeep([3, 5]) + &format!("4,{a},a\n");
    let report = against(&tree, &beside.write("list", twice));
    assert_eq!(report.code, 6, "{report:?}");
    assert!(report.stderr.contains("a is listed twice, with different sizes"), "{report:?}");
    // A list without sizes has none that could be wrong, whatever the file has meanwhile.
    let report = against(&tree, &beside.write("list", sums(&FILES)));
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
}

#[test]
fn a_list_may_come_through_a_pipe() {
    let (tree, beside) = sample();
    let list = sums(&FILES);
    let root = tree.root().as_os_str();
    // More than a pipe holds, and than is looked at to see what it is; and a name in another
    // spelling, for which a list is read twice.
    let many: String = (0..2000).map(|number| format!("# {number:060}\n")).collect();
    tree.write("f\u{fc}r", "x");
    let long = many + &list + &sums(&[("fu\u{308}r", "x")]);
    for name in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let args: [&OsStr; 6] = [
            "verify".as_ref(),
            root,
            "--against".as_ref(),
            name.as_ref(),
            "--json".as_ref(),
            "--all".as_ref(),
        ];
        let report = Report::new(fed(long.as_bytes(), &args, tree.root()));
        assert_eq!((report.code, report.count("ok")), (0, 3), "{name}: {report:?}");
        let bad = format!("{long}nonsense\n");
        let report = Report::new(fed(bad.as_bytes(), &args, tree.root()));
        assert_eq!(report.code, 6, "{name}: {report:?}");
        let label = if name == "-" { "standard input" } else { name };
        assert!(report.stderr.contains(&format!("{label}:2004: neither")), "{name}: {report:?}");
    }
    let run = fed(list.as_bytes(), &["compare".as_ref(), "-".as_ref(), root], beside.root());
    assert!(run.code == 1 && run.stdout.contains("Same                   2"), "{run:?}");
    // Relative to the working folder, unless another one is named. This is the wrong one.
    let run = fed(list.as_bytes(), &["import".as_ref(), "-".as_ref()], &tree.path("sub"));
    assert!(run.code == 2 && !tree.path("sub/.fsure").exists(), "{run:?}");
    assert!(run.stderr.contains("not one file of standard input is in"), "{run:?}");
    let args: Vec<&OsStr> = vec!["import".as_ref(), "-".as_ref(), "--root".as_ref(), root];
    let run = fed(list.as_bytes(), &args, beside.root());
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(Recorded::inside(tree.root()).verify().count("ok"), 2);
    // Nothing comes: that is not a list.
    let run = fed(b"", &args, beside.root());
    assert!(run.code == 6 && run.stderr.contains("standard input names no file"), "{run:?}");
    // A file of that name can be named, too.
    std::fs::write(beside.path("-"), &list).expect("write");
    let args = ["verify".as_ref(), root, "--against".as_ref(), "./-".as_ref(), "-q".as_ref()];
    assert_eq!(fed(b"", &args, beside.root()).code, 1);
}

#[test]
fn a_file_called_dash_is_listed_so_that_others_find_it() {
    let tree = Tree::new();
    tree.write("-", "dash");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for (format, program) in [("sha256sums", "sha256sum"), ("b3sum", "b3sum")] {
        let run = recorded.text("export", &["--format", format]);
        assert!(run.stdout.ends_with("  ./-\n"), "{run:?}");
        let list = Tree::new();
        let file = list.write(format, run.stdout);
        let report = against(&tree, &file);
        assert_eq!(report.count("ok"), 1, "{report:?}");
        let mut check = Command::new(program);
        let check = check.arg("-c").arg(&file).current_dir(tree.root()).stdin(Stdio::null());
        match check.output() {
            Ok(output) => assert!(output.status.success(), "{program}: {output:?}"),
            Err(error) => support::skip("a_file_called_dash", &format!("{program}: {error}")),
        }
    }
}

/// Returns the processor time of a run of `fsure`: others on a busy machine do not count.
fn processor_time(args: &[&OsStr]) -> Duration {
    let script = r#"TIMEFORMAT='%U %S'; time { "$@" --quiet 2>&3; } 3>/dev/null"#;
    let mut shell = Command::new("bash");
    shell.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    shell.args(["-c", script, "bash", env!("CARGO_BIN_EXE_fsure")]).args(args);
    let output = shell.stdin(Stdio::null()).output().expect("start bash");
    let times = String::from_utf8(output.stderr).expect("text");
    assert!([0, 1].contains(&code(output.status)), "{times}");
    times.split_whitespace().map(|s| Duration::from_secs_f64(s.parse().expect("seconds"))).sum()
}

#[test]
fn a_deep_name_costs_by_its_length() {
    let (tree, beside) = sample();
    let time = |components: usize, command: &[&str]| {
        let name = format!("{}b", "a/".repeat(components));
        let list = beside.write("list", sums(&[("a", "one"), (&name, "x")]));
        let once = || {
            let (root, list) = (tree.root().as_os_str(), list.as_os_str());
            let args: [&OsStr; 4] = match command {
                ["import"] => ["import".as_ref(), list, "--root".as_ref(), root],
                _ => ["verify".as_ref(), root, "--against".as_ref(), list],
            };
            let took = processor_time(&args);
            drop(std::fs::remove_dir_all(tree.path(".fsure")));
            took
        };
        (0..3).map(|_| once()).min().expect("three times")
    };
    for command in [["import"], ["verify"]] {
        let (short, long) = (time(6_000, &command), time(48_000, &command));
        let most = short.max(Duration::from_millis(20)) * 20;
        assert!(long < most, "{command:?}: {short:?}, and {long:?} for 8 times the length");
    }
}

/// The names of a list that was made in the folder above.
#[test]
fn a_list_of_the_folder_above_is_recognised_and_the_advice_works() {
    let (tree, beside) = sample();
    let name = tree.root().file_name().expect("a name").to_str().expect("text").to_owned();
    let files = FILES.map(|(file, content)| (format!("{name}/{file}"), content));
    let list = beside.write("sums", sums(&files.each_ref().map(|(name, text)| (&**name, *text))));
    let report = against(&tree, &list);
    assert_eq!(report.code, 1, "{report:?}");
    let advice = format!("fsure verify {}", tree.root().parent().expect("a folder").display());
    let advice = format!("{advice} --against {}", list.display());
    assert!(report.stderr.contains(&advice), "{report:?}");
    // A list of another folder, and one whose folder is there.
    let other = beside.write("other", sums(&[("gone/a", "one"), ("gone/b", "two")]));
    assert!(against(&tree, &other).stderr.contains("there is no such folder"));
    let sub = beside.write("sub", sums(&[("sub/b", "three")]));
    assert!(!against(&tree, &sub).stderr.contains("every name"));

    let imported = import(&other, tree.root());
    assert_eq!(imported.code, 2, "nothing of it is here: {imported:?}");
    assert!(imported.stderr.contains("there is no such folder"), "{imported:?}");
    assert!(!tree.path(".fsure").exists());
    // Into a record of other files neither.
    Recorded::inside(tree.root()).record();
    let imported = import(&other, tree.root());
    assert_eq!(imported.code, 2, "{imported:?}");
    assert!(Recorded::inside(tree.root()).verify().count("missing") == 0);
}

#[test]
fn a_file_that_is_no_list_has_few_warnings_and_a_list_with_faults_has_all() {
    let (tree, beside) = sample();
    let garbage = beside.write("photo", "no digest\n".repeat(500));
    let report = against(&tree, &garbage);
    assert_eq!(report.code, 6, "{report:?}");
    assert_eq!(report.stderr.matches("warning: ").count(), 4, "{report:?}");
    assert!(report.stderr.contains("... and 497 more problems"), "{report:?}");
    let faulty = beside.write("faulty", sums(&FILES) + &"no digest\n".repeat(500));
    let report = against(&tree, &faulty);
    assert_eq!(report.stderr.matches("warning: ").count(), 500, "{report:?}");
}
