//! The record of fsure itself under power cuts: what is committed is there, and what an
//! update was about is lost for about a second of its work and no more. In small
//! here; `docs/crash.md` has what hundreds of cuts have shown.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;

use crate::support::{campaign, fsure, fsure_with, is_torn_superblock, skip};
use serde_json::Value;

/// The lines of `fsure crash --json`; `None`, and said so, where this machine
/// cannot.
fn crash(test: &str, folder: &Path, args: &[&str]) -> Option<(i32, Vec<Value>)> {
    let run = support::crash(test, folder, args)?;
    if run.stderr.contains("mount a copy") {
        skip(test, run.stderr.trim());
        return None;
    }
    Some((run.code, run.lines))
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn what_is_committed_survives_every_kind_of_cut_on_each_file_system() {
    let cuts = campaign(5).to_string();
    for fs in ["ext4", "xfs", "btrfs"] {
        let folder = tempfile::tempdir().expect("a folder");
        let args = ["--workload", "catalog", "--fs", fs, "--cuts", &cuts];
        let name = format!("our record on {fs}");
        let Some((code, lines)) = crash(&name, folder.path(), &args) else { continue };
        let (twin, own): (Vec<_>, Vec<_>) =
            of_type(&lines, "cut").into_iter().partition(|cut| cut["twin"] == true);
        assert_eq!(own.len().to_string(), cuts);
        let (torn, own): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|cut| is_torn_superblock(fs, cut));
        assert!(code == 0 || !torn.is_empty(), "{fs}: {lines:?}");
        for cut in own {
            assert_eq!((&cut["state"], &cut["lost"]), (&"survived".into(), &0.into()), "{cut}");
            assert_eq!(cut["workload"], "catalog:committed");
            assert!(cut["acked"].as_u64() > Some(0), "{cut}");
        }
        // The same check on a drive that lies.
        assert!(twin.last().is_some_and(|cut| cut["state"] != "survived"), "{fs}: {twin:?}");
    }
}

/// The strictest reading of what POSIX promises, in a folder without a file system
/// that would be kinder: the name of the record's own folder counts, too.
#[test]
fn a_record_exists_as_soon_as_its_first_update_reports_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let fsure = env!("CARGO_BIN_EXE_fsure");
    let program = format!(
        "mkdir tree; echo data > tree/file; sync tree/file tree .; \
         {fsure} update tree >&2 && echo ACK 1; sleep 1000"
    );
    let check = format!("{fsure} verify --quiet tree >&2 && echo LAST 1");
    let args = ["--fs", "folder", "--cuts", "3", "--variant", "none", "--check", &check, "--"];
    let args = [&args[..], &["sh", "-c", &program]].concat();
    let Some((code, lines)) = crash("a record's first cut", folder.path(), &args) else { return };
    assert_eq!(code, 0, "{lines:?}");
    assert!(of_type(&lines, "cut").iter().all(|cut| cut["acked"] == 1), "{lines:?}");
}

/// Cuts an update. The amount that is lost depends on time, which no test can promise on
/// a busy machine; that what is left is sound does not.
#[test]
fn what_an_update_was_about_may_be_lost_and_harms_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["--workload", "catalog:told", "--fs", "ext4", "--cuts", "6"];
    let name = "an update that is cut";
    let Some((code, lines)) = crash(name, folder.path(), &args) else { return };
    assert!([0, 3].contains(&code), "{lines:?}");
    for cut in of_type(&lines, "cut").into_iter().filter(|cut| cut["twin"] != true) {
        assert!(["survived", "lost"].iter().any(|state| cut["state"] == *state), "{cut}");
    }
}

/// Every workload of the table is listed with what is owed; a few are tried.
#[test]
fn the_matrix_holds_each_cell_against_what_is_owed() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = "append:fdatasync,append:range,rename:file,sqlite:wal-normal";
    let args = ["--matrix", "--workload", names, "--fs", "ext4", "--drive", "honest,lying"];
    let Some((code, lines)) =
        crash("the matrix", folder.path(), &[&args[..], &["--cuts", "6"]].concat())
    else {
        return;
    };
    assert_eq!(code, 0, "{lines:?}");
    let cells = of_type(&lines, "cell");
    assert_eq!(cells.len(), 8);
    for (cell, workload) in cells.chunks(2).zip(names.split(',')) {
        for (cell, drive) in cell.iter().zip(["honest", "lying"]) {
            assert_eq!((&cell["workload"], &cell["drive"]), (&workload.into(), &drive.into()));
            assert_eq!((&cell["as_expected"], &cell["cuts"]), (&true.into(), &6.into()), "{cell}");
        }
        assert_eq!(cell[1]["expected"], "loses or corrupts");
    }
    let honest = |place: usize| (&cells[place]["expected"], &cells[place]["lost"]);
    assert_eq!(honest(0), (&"loses nothing".into(), &0.into()));
    assert!(honest(2).1.as_u64() > Some(0), "sync_file_range promises nothing");
    let last = lines.last().expect("a summary");
    assert_eq!((&last["cells"], &last["unexpected"]), (&8.into(), &0.into()), "{last}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 0, "left behind");
}

/// A drive that loses what others keep is a cell that is not as expected, as is
/// one that keeps what others lose.
#[test]
fn an_unexpected_cell_is_reported_and_sets_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    // Everything survives, for once: so nothing is lost on the drive that lies.
    let args = ["--matrix", "--workload", "overwrite:fdatasync", "--fs", "ext4", "--cuts", "1"];
    let drives = ["--drive", "lying", "--variant", "all"];
    let args = [&args[..], &drives[..]].concat();
    let Some((code, lines)) = crash("a cell that is not as expected", folder.path(), &args) else {
        return;
    };
    assert_eq!(code, 3, "{lines:?}");
    let cell = of_type(&lines, "cell")[0];
    assert_eq!((&cell["as_expected"], &cell["survived"]), (&false.into(), &1.into()), "{cell}");
    let all: Vec<_> = ["crash"].iter().chain(&args).copied().collect();
    let run = fsure_with(("TMPDIR", folder.path().as_os_str()), &all);
    assert!(run.stdout.contains("1 of 1 cell not as expected"), "{run:?}");
    assert!(run.stdout.contains("! lying: not as expected"), "{run:?}");
}

#[test]
fn a_cell_that_the_matrix_cannot_run_is_reported() {
    for (args, part) in [
        (&["--matrix", "--workload", "none"][..], "possible values: append:fsync"),
        (&["--matrix", "--", "true"], "cannot be used with"),
        (&["--workload", "append,sqlite", "--fs", "ext4"], "'--matrix' takes several"),
        (&["--workload", "append", "--fs", "ext4,xfs"], "'--matrix' takes several"),
    ] {
        let run = fsure(&[&["crash"], args].concat());
        assert!(run.code == 2 && run.stderr.contains(part), "{args:?}: {}", run.stderr);
    }
}
