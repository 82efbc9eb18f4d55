//! Executes the sessions of the README, the tour, the tutorials and the how-to pages, because an
//! example that no longer works is worse than none.
//!
//! Each page runs in its own folder, which is its home folder, too. It holds the files of
//! `docs/examples/NAME`, if there are any for the page. Sessions make what else they need.
//! `$ command` is run by `sh`, with `> ` before further lines of the command. The lines below it
//! are what it prints on standard output: `...` stands for any lines and `[..]` for any text
//! within one. Dates, durations and rates may differ. `[3]` is the exit
//! code, 0 if none is given. A page shows its folder as `/home/me`.
//!
//! `FSURE_BLESS=1 cargo test -p fsure --test it sessions` writes what is printed into the pages
//! in place of outputs that do not fit. Read the difference before you commit it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::session_fit::{fits, renewed};
use crate::session_page::{Output, Page, Step};
use crate::support::{Tree, skip};

/// Defines a test for each page.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test] fn $name() { check($path) })*
    };
}

pages! {
    readme: "README.md",
    tour: "docs/tour.md",
    tutorial_bit_rot: "docs/tutorial/bit-rot.md",
    tutorial_choose_a_disk: "docs/tutorial/choose-a-disk.md",
    tutorial_crash_test: "docs/tutorial/crash-test.md",
    tutorial_first_record: "docs/tutorial/first-record.md",
    how_to_check_a_backup: "docs/how-to/check-a-backup.md",
    how_to_drive_under_load: "docs/how-to/drive-under-load.md",
    how_to_hand_over_a_list: "docs/how-to/hand-over-a-list.md",
    how_to_many_disks: "docs/how-to/many-disks.md",
    how_to_metrics: "docs/how-to/metrics.md",
    how_to_migrate: "docs/how-to/migrate.md",
    how_to_network_storage: "docs/how-to/network-storage.md",
    how_to_nightly: "docs/how-to/nightly.md",
    how_to_page_cache: "docs/how-to/page-cache.md",
    how_to_ram_folder: "docs/how-to/ram-folder.md",
    how_to_restore: "docs/how-to/restore.md",
    how_to_scripts: "docs/how-to/scripts.md",
    how_to_sign: "docs/how-to/sign.md",
    how_to_troubleshooting: "docs/how-to/troubleshooting.md",
}

/// Pages in the folders of sessions that have none.
const WITHOUT: &[&str] = &["docs/how-to/automate.md", "docs/how-to/hot-folders.md"];

/// Programs of others that a page calls. Without one, the rest of the page does not run.
const OTHERS: &[&str] = &["b3sum", "hashdeep", "jq", "minisign", "python3"];

/// The folder of a page, as the page shows it.
const SHOWN: &str = "/home/me";

/// Files recorded within two ticks of their last change are read again by the next `update`.
const TICKS: Duration = Duration::from_millis(50);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the sessions of a page, and fails with all steps that do not fit.
fn check(path: &str) {
    let file = repository().join(path);
    let page = Page::parse(&std::fs::read_to_string(&file).expect("read a page"));
    assert!(!page.steps.is_empty(), "{path} has no session");
    let outputs = run_all(path, &page);
    let pairs = || page.steps.iter().zip(&outputs);
    let bad: Vec<_> = pairs().filter(|(step, output)| !fits_step(step, output)).collect();
    if bad.is_empty() {
        return;
    }
    if std::env::var_os("FSURE_BLESS").is_some() {
        // What differs between two runs is not written as if it were fixed.
        let again = run_all(path, &page);
        let new: Vec<_> = pairs().zip(&again).map(renewed_step).collect();
        return std::fs::write(file, page.with(&new)).expect("write a page");
    }
    let bad: Vec<_> = bad.into_iter().map(|(step, output)| complaint(step, output)).collect();
    panic!("{path}: FSURE_BLESS=1 rewrites what does not fit:\n\n{}", bad.join("\n\n"));
}

/// Runs the steps of a page in a new folder. Of one that cannot run here, the expected output is
/// returned: it is told, and not held against the page.
fn run_all(path: &str, page: &Page) -> Vec<Output> {
    let tree = Tree::new();
    copy_examples(path, tree.root());
    let (mut outputs, mut was_fsure) = (vec![], true);
    for step in &page.steps {
        let is_fsure = step.command.contains("fsure ");
        if is_fsure && !was_fsure {
            std::thread::sleep(TICKS);
        }
        was_fsure = is_fsure;
        let output = run(tree.root(), &step.command);
        let errors = &output.errors;
        let is_unknown = |program: &&str| errors.contains(*program) && errors.contains("not found");
        if output.code == 127 && OTHERS.iter().any(is_unknown) {
            skip(path, &format!("the page ends at '{}': {errors}", step.command));
            break;
        }
        if output.code == 5 && errors.contains("/dev/fuse") {
            skip(path, &format!("{}: {errors}", step.command));
            outputs.push(step.as_expected());
            continue;
        }
        outputs.push(output);
    }
    let rest = page.steps[outputs.len()..].iter().map(Step::as_expected);
    outputs.into_iter().chain(rest).collect()
}

/// Copies the files that a page says it has from the sources: those of `docs/examples` in the
/// folder of its name.
fn copy_examples(path: &str, folder: &Path) {
    let name = Path::new(path).file_stem().expect("a name");
    let Ok(examples) = std::fs::read_dir(repository().join("docs/examples").join(name)) else {
        return;
    };
    for file in examples {
        let file = file.expect("list the examples");
        std::fs::copy(file.path(), folder.join(file.file_name())).expect("copy an example");
    }
}

fn run(folder: &Path, command: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_fsure"));
    let path = std::env::var("PATH").expect("PATH");
    let path = format!("{}:{path}", binary.parent().expect("a folder").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path).env("HOME", folder);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let is_ours = name.starts_with("FSURE_");
        if is_ours || ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "COLUMNS"].contains(&&*name) {
            shell.env_remove(&*name);
        }
    }
    let output = shell.stdin(std::process::Stdio::null()).output().expect("run a shell");
    let here = folder.to_str().expect("UTF-8");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(here, SHOWN);
    let lines = text(output.stdout).lines().map(str::to_owned).collect();
    // Only a shell that was killed has no code.
    Output { lines, code: output.status.code().unwrap_or(-1), errors: text(output.stderr) }
}

fn fits_step(step: &Step, output: &Output) -> bool {
    step.code == output.code && fits(&step.expected, &output.lines)
}

fn renewed_step(((step, output), again): ((&Step, &Output), &Output)) -> Output {
    let lines = match fits(&step.expected, &output.lines) {
        true => step.expected.clone(),
        false => renewed(&step.expected, &output.lines, &again.lines),
    };
    Output { lines, code: output.code, errors: String::new() }
}

fn complaint(step: &Step, output: &Output) -> String {
    format!(
        "$ {}\n{}\n[{}]\n{}-- and not\n{}\n[{}]",
        step.command,
        output.lines.join("\n"),
        output.code,
        output.errors,
        step.expected.join("\n"),
        step.code
    )
}

#[test]
fn every_page_with_sessions_is_in_the_list() {
    let mut found = BTreeSet::new();
    for folder in ["docs/tutorial", "docs/how-to"] {
        for entry in std::fs::read_dir(repository().join(folder)).expect("list a folder") {
            let name = entry.expect("list a folder").file_name();
            found.insert(format!("{folder}/{}", name.to_str().expect("UTF-8")));
        }
    }
    let listed: BTreeSet<_> = PAGES.iter().chain(WITHOUT).map(|path| (*path).to_owned()).collect();
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the list of pages: {missing:?}");
    for path in WITHOUT {
        let text = std::fs::read_to_string(repository().join(path)).expect("read a page");
        assert!(Page::parse(&text).steps.is_empty(), "{path} has sessions: list it as a page");
    }
}
