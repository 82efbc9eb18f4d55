//! A copy that kept no dates (`cp -r`, drag and drop, clouds) makes every file look
//! edited. Where most files have their recorded content under another date, one
//! of another content and the same size is a damaged copy, and is not recorded
//! unasked; where most are edited, or few have another date, an edit stays an edit.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{EXT4, Image, Recorded, Tree, content, mtime_ns, or_skip, set_mtime_ns};
use fsure_core::{ExitCode, Monitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{Allowed, CurrentFile, Finding, Progress, ScanMonitor, Verdict};
use fsure_integrity::{Options, UpdateOptions, update, verify};
use proptest::prelude::*;

const NONE: [&str; 0] = [];
const HOUR_NS: i64 = 3_600_000_000_000;

/// Twenty recorded files.
fn shoot() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..20 {
        tree.write(format!("{number:02}"), content(3000 + number, number as u64));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// A copy without dates, `.fsure` included, in which the 07 is another one.
fn damaged_copy(of: &Path) -> (Tree, Recorded) {
    let copy = Tree::new();
    let status = std::process::Command::new("cp").arg("-r").arg(of).arg(copy.path("to")).status();
    assert!(status.expect("run cp").success());
    let recorded = Recorded::inside(&copy.path("to"));
    copy.flip("to/07", 100);
    (copy, recorded)
}

#[test]
fn damage_in_a_copy_without_dates_is_no_edit() {
    let (tree, _) = shoot();
    let (copy, recorded) = damaged_copy(tree.root());
    let row = recorded.row("07");
    let damaged = Some("damaged-copy".to_owned());
    for command in ["verify", "update", "status", "update", "verify", "scrub"] {
        let report = recorded.run(command, &NONE);
        assert_eq!(
            (report.code, report.verdict("07")),
            (3, damaged.clone()),
            "{command}: {report:?}"
        );
        assert_eq!(recorded.row("07"), row, "{command} recorded it");
    }
    let text = recorded.text("verify", &NONE).stdout;
    assert!(text.contains("SUSPICIOUS"), "{text}");
    // Put right from the original, or accepted.
    let from = ["--from".as_ref(), tree.root().as_os_str(), "--yes".as_ref()];
    let heal = recorded.run("heal", &from);
    assert_eq!(heal.code, 7, "{heal:?}");
    assert_eq!((recorded.verify().code, recorded.status().code), (0, 0));
    drop(copy);
    let (copy, recorded) = damaged_copy(tree.root());
    let path = copy.path("to/07");
    let accept = recorded.run("update", &["--accept".as_ref(), path.as_os_str()]);
    assert_eq!(accept.code, 0, "{accept:?}");
    assert_eq!((recorded.verify().code, recorded.status().code), (0, 0));
}

/// An update of such a tree that is stopped half-way has given half of the files
/// new dates; the one that goes on must still know what they were.
#[test]
fn an_update_that_was_stopped_forgets_nothing_of_it() {
    for after in [1, 5, 6, 12, 19] {
        let (tree, recorded) = shoot();
        let mut deeds = [Deed::Redate(true); 20];
        deeds[7] = Deed::Edit(true);
        carry_out(&tree, &deeds);
        let place = locate(tree.root(), None).expect("a place");
        let stopper = Ear { stop_after: Some(after), ..Ear::default() };
        let outcome = update(&place, &one_reader(), &stopper).expect("update");
        assert_eq!(outcome.exit_code(), ExitCode::Interrupted, "{outcome:?}");
        let report = recorded.update();
        assert_eq!(report.code, 3, "after {after}: {report:?}");
        let verdict = report.verdict("07");
        assert_eq!(verdict.as_deref(), Some("damaged-copy"), "after {after}: {report:?}");
        assert_eq!(recorded.verify().code, 3, "after {after}");
    }
}

/// Ten recorded files in `sub`, 20 beside it.
fn shoot_with_sub() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..20 {
        tree.write(format!("{number:02}"), content(3000 + number, number as u64));
    }
    for number in 0..10 {
        tree.write(format!("sub/{number:02}"), content(3000 + number, 100 + number as u64));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

fn redate(tree: &Tree, names: impl IntoIterator<Item = String>) {
    for name in names {
        let path = tree.path(&name);
        set_mtime_ns(&path, mtime_ns(&path) + HOUR_NS);
    }
}

/// Another content of the same size under another date.
fn edit(tree: &Tree, name: &str) {
    let before = mtime_ns(&tree.path(name));
    tree.flip(name, 5);
    set_mtime_ns(&tree.path(name), before + HOUR_NS);
}

fn in_sub() -> impl Iterator<Item = String> {
    (0..10).map(|number| format!("sub/{number:02}"))
}

fn beside_sub() -> impl Iterator<Item = String> {
    (0..20).map(|number| format!("{number:02}"))
}

fn stopped_update(path: &Path, after: u64) {
    let place = locate(path, None).expect("a place");
    let stopper = Ear { stop_after: Some(after), ..Ear::default() };
    let outcome = update(&place, &one_reader(), &stopper).expect("update");
    assert_eq!(outcome.exit_code(), ExitCode::Interrupted, "{outcome:?}");
}

/// Exit code and verdicts of a whole update.
fn updated(path: &Path) -> (ExitCode, BTreeMap<String, Verdict>) {
    let place = locate(path, None).expect("a place");
    let ear = Ear::default();
    let outcome = update(&place, &one_reader(), &ear).expect("update");
    (outcome.exit_code(), ear.findings.into_inner().expect("no panic"))
}

/// Notes that an interrupted update of a part has left are not a reason to judge an edit
/// as damage once an update of the whole has come to its end.
#[test]
fn a_whole_update_ends_what_one_of_a_part_left_behind() {
    let (tree, recorded) = shoot_with_sub();
    redate(&tree, in_sub());
    stopped_update(&tree.path("sub"), 7);
    assert_eq!(updated(tree.root()).0, ExitCode::Clean);
    assert_eq!(recorded.verify().code, 0);
    edit(&tree, "sub/03");
    assert_eq!(recorded.verify().verdict("sub/03").as_deref(), Some("modified"));
    let (code, verdicts) = updated(&tree.path("sub"));
    assert_eq!((code, verdicts.get("sub/03")), (ExitCode::Clean, Some(&Verdict::Modified)));
}

/// Notes that an update of a part has left count for an update of the whole.
#[test]
fn a_whole_update_counts_what_one_of_a_part_left_behind() {
    let (tree, _recorded) = shoot_with_sub();
    redate(&tree, in_sub().chain(beside_sub().take(8)));
    edit(&tree, "15");
    stopped_update(&tree.path("sub"), 10);
    let (code, verdicts) = updated(tree.root());
    assert_eq!((code, verdicts.get("15")), (ExitCode::Damage, Some(&Verdict::DamagedCopy)));
}

/// Notes that an update of the whole has left count for a part of it, until an update of
/// that part has come to its end; the findings of that one count for the whole.
#[test]
fn a_part_of_an_update_that_was_cut_off_is_in_doubt_until_it_is_updated() {
    let (tree, recorded) = shoot_with_sub();
    redate(&tree, beside_sub().take(19).chain(in_sub().take(9)));
    edit(&tree, "19");
    edit(&tree, "sub/09");
    stopped_update(tree.root(), 27);
    let (code, verdicts) = updated(&tree.path("sub"));
    assert_eq!((code, verdicts.get("sub/09")), (ExitCode::Damage, Some(&Verdict::DamagedCopy)));
    edit(&tree, "sub/03");
    let (_, verdicts) = updated(&tree.path("sub"));
    assert_eq!(verdicts.get("sub/03"), Some(&Verdict::Modified), "{verdicts:?}");
    let (code, verdicts) = updated(tree.root());
    assert_eq!((code, verdicts.get("19")), (ExitCode::Damage, Some(&Verdict::DamagedCopy)));
    let left: i64 = recorded
        .connect()
        .query_row("SELECT count(*) FROM redated", [], |row| row.get(0))
        .expect("count");
    assert_eq!(left, 0);
    edit(&tree, "sub/04");
    let (_, verdicts) = updated(&tree.path("sub"));
    assert_eq!(verdicts.get("sub/04"), Some(&Verdict::Modified), "{verdicts:?}");
}

/// On another file system than recorded every file is a copy, whatever its date.
#[test]
fn on_another_file_system_a_new_date_explains_nothing() {
    let test = "on_another_file_system_a_new_date_explains_nothing";
    let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    let (tree, _) = shoot();
    let to = image.root().join("to");
    let status = std::process::Command::new("cp").arg("-a").arg(tree.root()).arg(&to).status();
    assert!(status.expect("run cp").success());
    for (name, size) in [("03", 3003), ("04", 3100)] {
        fs::write(to.join(name), content(size, 99)).expect("edit");
    }
    let recorded = Recorded::inside(&to);
    let report = recorded.update();
    assert_eq!(report.code, 3, "{report:?}");
    assert_eq!(report.verdict("03").as_deref(), Some("damaged-copy"), "{report:?}");
    assert_eq!(report.verdict("04").as_deref(), Some("modified"), "another size: {report:?}");
    // From then on this is where it is recorded.
    fs::write(to.join("05"), content(3005, 98)).expect("edit");
    let report = recorded.update();
    assert_eq!(report.verdict("05").as_deref(), Some("modified"), "{report:?}");
}

/// A change to a file between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// The same content under another date, later or earlier.
    Redate(bool),
    /// Another content of the same size.
    Edit(bool),
    /// Another content of another size.
    Resize,
    Remove,
}

fn deed(redating: u32) -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => Just(Deed::Nothing),
        redating => any::<bool>().prop_map(Deed::Redate),
        2 => any::<bool>().prop_map(Deed::Edit),
        1 => Just(Deed::Resize),
        1 => Just(Deed::Remove),
    ]
}

/// The rule of `docs/promises.md`, as it is written there.
fn expected(deeds: &[Deed]) -> BTreeMap<String, Verdict> {
    let is_there = |deed: &&Deed| **deed != Deed::Remove;
    let there = deeds.iter().filter(is_there).count();
    let redated = deeds.iter().filter(|deed| matches!(deed, Deed::Redate(_))).count();
    let is_copy = redated * 2 > there;
    let verdict = |deed: &Deed| match deed {
        Deed::Nothing => None,
        Deed::Redate(_) => Some(Verdict::Touched),
        Deed::Edit(_) if is_copy => Some(Verdict::DamagedCopy),
        Deed::Edit(false) => Some(Verdict::Reverted),
        Deed::Edit(true) | Deed::Resize => Some(Verdict::Modified),
        Deed::Remove => Some(Verdict::Missing),
    };
    let named = deeds.iter().enumerate();
    named.filter_map(|(number, deed)| Some((format!("{number:02}"), verdict(deed)?))).collect()
}

fn carry_out(tree: &Tree, deeds: &[Deed]) {
    for (number, deed) in deeds.iter().enumerate() {
        let name = format!("{number:02}");
        let path = tree.path(&name);
        let before = mtime_ns(&path);
        let date = |is_later: bool| if is_later { before + HOUR_NS } else { before - HOUR_NS };
        match deed {
            Deed::Nothing => {}
            Deed::Redate(is_later) => set_mtime_ns(&path, date(*is_later)),
            Deed::Edit(is_later) => {
                tree.flip(&name, 5);
                set_mtime_ns(&path, date(*is_later));
            }
            Deed::Resize => {
                tree.write(&name, content(4000, number as u64));
                set_mtime_ns(&path, date(true));
            }
            Deed::Remove => fs::remove_file(path).expect("remove"),
        }
    }
}

fn one_reader() -> UpdateOptions {
    UpdateOptions { common: options(), ..UpdateOptions::default() }
}

fn options() -> Options {
    Options { allowed: Allowed::ALL, ..support::scrub::at(2_000_000_000) }
}

#[derive(Default)]
struct Ear {
    findings: Mutex<BTreeMap<String, Verdict>>,
    findings_count: AtomicU64,
    stop_after: Option<u64>,
}

impl Monitor for Ear {
    fn warn(&self, _: &str) {}

    fn stop_requested(&self) -> Option<ExitCode> {
        let count = self.findings_count.load(Ordering::Relaxed);
        self.stop_after.is_some_and(|most| count >= most).then_some(ExitCode::Interrupted)
    }
}

impl ScanMonitor for Ear {
    fn progress(&self, _: &Progress, _: Option<CurrentFile<'_>>) {}

    fn finding(&self, finding: &Finding) {
        self.findings_count.fetch_add(1, Ordering::Relaxed);
        let path = finding.path.as_text().expect("text").to_owned();
        self.findings.lock().expect("no panic").insert(path, finding.verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn edits_and_restores_are_judged_by_the_rule(
        deeds in (0_u32..30).prop_flat_map(|redating| {
            proptest::collection::vec(deed(redating), 1..24)
        }),
        is_update in any::<bool>(),
    ) {
        let tree = Tree::new();
        for number in 0..deeds.len() {
            tree.write(format!("{number:02}"), content(3000, number as u64));
        }
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        carry_out(&tree, &deeds);
        let place = locate(tree.root(), None).expect("a place");
        let ear = Ear::default();
        match is_update {
            true => drop(update(&place, &one_reader(), &ear).expect("update")),
            false => drop(verify(&place, &options(), &ear).expect("verify")),
        }
        let found = ear.findings.into_inner().expect("no panic");
        prop_assert_eq!(found, expected(&deeds), "{:?}", deeds);
    }
}
