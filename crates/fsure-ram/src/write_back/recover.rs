//! After a crash: the generation that counted is completed, and what did not count
//! is gone. Doing it twice does no harm, nor does not doing it: every file is whole.

use std::path::Path;
use std::time::Duration;

use fsure_os::root_dir::is_gone;
use fsure_os::tree_copy::Side;

use super::disk_side::{DiskSide, JOURNAL_NEW, OWN};
use super::journal::Journal;
use fsure_core::{IoContext as _, Result};

/// The state of a disk side after recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryOutcome {
    /// The state that it was found in.
    pub found: Recovered,
    /// The generation that it is now; `None` if there is no trace of one.
    pub generation: Option<u64>,
    /// The most that the moments are apart of which that generation is; `None` for an
    /// instant.
    pub spread: Option<Duration>,
}

/// State in which a disk side was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing of fsure, or nothing under way.
    Nothing,
    /// A generation that never counted.
    Discarded,
    /// One that counted, with its number and how many changes it made.
    Completed {
        /// Its number.
        generation: u64,
        /// Changes.
        steps: usize,
        /// Names that another process had changed meanwhile: what was in the way is in
        /// the trash.
        changed_outside: Vec<fsure_core::RelPath>,
    },
}

/// Settles what a crash has left on a folder's disk side, and removes what is fsure's own
/// from it. Refuses while a process has it in RAM.
pub fn recover(folder: &Path) -> Result<RecoveryOutcome> {
    let side = Side::open(folder).context("open", folder)?;
    match side.facts(OWN.as_bytes()) {
        Err(error) if is_gone(&error) => {
            let found = Recovered::Nothing;
            return Ok(RecoveryOutcome { found, generation: None, spread: None });
        }
        other => other.context("access", &folder.join(OWN))?,
    };
    let disk = DiskSide::open(folder)?;
    let found = finish_interrupted(&disk)?;
    let last = Journal::last_applied(&disk)?;
    disk.leave()?;
    let generation = last.as_ref().map(|last| last.generation);
    Ok(RecoveryOutcome { found, generation, spread: last.and_then(|last| last.spread) })
}

/// Completes or discards what is under way.
pub(super) fn finish_interrupted(disk: &DiskSide) -> Result<Recovered> {
    let found = match Journal::read(disk)? {
        Some(journal) => {
            journal.check_stage(disk)?;
            let changed_outside = journal.apply(disk)?.changed;
            let (generation, steps) = (journal.generation, journal.steps.len());
            Recovered::Completed { generation, steps, changed_outside }
        }
        None if disk.has_staged()? => Recovered::Discarded,
        None => Recovered::Nothing,
    };
    disk.clear_stage()?;
    disk.forget(JOURNAL_NEW)?;
    disk.forget(super::disk_side::JOURNAL)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::PathBuf;

    use super::*;
    use crate::write_back::CompareDepth;
    use crate::write_back::changes::NoTracker;
    use crate::write_back::engine::Engine;
    use crate::write_back::generation_builder::GenerationBuilder;
    use crate::write_back::index::IndexEntry;
    use crate::write_back::journal_step::JournalStep;
    use crate::write_back::plan::PlannedGeneration;
    use crate::write_back::ram_scan::everything;
    use crate::write_back::side_reader::in_ram;
    use fsure_core::RelPath;

    /// Two sides, filled; `None` on a system without RAM folders.
    fn filled(folder: &Path) -> Option<(Engine, PathBuf, PathBuf)> {
        let [disk, ram] = ["disk", "ram"].map(|side| folder.join(side));
        for path in [&ram, &disk.join("d/e"), &disk.join("d/nothing")] {
            std::fs::create_dir_all(path).unwrap();
        }
        for (name, content) in [("a", "one"), ("d/b", "two"), ("d/e/c", "three"), ("empty", "")] {
            std::fs::write(disk.join(name), content).unwrap();
        }
        std::fs::hard_link(disk.join("d/b"), disk.join("d/also-b")).unwrap();
        let go_on = &mut |_: &_, _| ControlFlow::Continue(());
        let engine = cfg!(target_os = "linux").then(|| Engine::fill(&disk, &ram, go_on).unwrap());
        Some((engine?, disk, ram))
    }

    /// Returns the contents of a folder as a user sees them.
    fn view(folder: &Path) -> Vec<String> {
        let entries = in_ram(&Side::open(folder).unwrap()).unwrap();
        let line = |(path, one): (&RelPath, &crate::write_back::index::IndexEntry)| {
            let kind = one.facts.kind;
            format!("{path:?} {kind:?} {:?} {:?} {:?}", one.digest, one.target, one.meta())
        };
        entries.iter().map(line).collect()
    }

    /// Returns a journal of the present state of the RAM side, which is staged. The
    /// journal is not written yet.
    fn staged(engine: &Engine) -> Journal {
        let mut draft = GenerationBuilder::new(&engine.disk, &engine.ram, &engine.index, 1);
        let seen = everything(&engine.ram).unwrap();
        for path in draft.gone(&seen) {
            draft.remove(&path);
        }
        for (path, facts) in &seen.names {
            if draft.known(path).is_none_or(|known| known.facts != *facts) {
                draft.stage_if_changed(path, facts).unwrap();
            }
        }
        draft.stage_held().unwrap();
        Journal { generation: 1, spread: None, steps: PlannedGeneration::of(draft).unwrap().steps }
    }

    #[test]
    fn a_generation_is_old_or_new_after_a_crash_at_every_step() {
        let folder = tempfile::tempdir().unwrap();
        let Some((engine, disk, ram)) = filled(folder.path()) else { return };
        let old = view(&disk);
        std::fs::write(ram.join("a"), "ONE").unwrap();
        std::fs::remove_file(ram.join("d/b")).unwrap();
        std::fs::rename(ram.join("d/e"), ram.join("e")).unwrap();
        std::fs::remove_file(ram.join("empty")).unwrap();
        std::fs::create_dir(ram.join("empty")).unwrap();
        std::fs::write(ram.join("empty/now"), "a folder").unwrap();
        let new = view(&ram);
        let journal = staged(&engine);
        let copy_of = |name: &str| {
            let copy = folder.path().join(name);
            let copied = std::process::Command::new("cp").arg("-a").arg(&disk).arg(&copy).status();
            assert!(copied.unwrap().success());
            copy
        };
        let copy = copy_of("staged");
        assert_eq!(recover(&copy).unwrap().found, Recovered::Discarded);
        assert_eq!(view(&copy), old, "what is only staged does not count");
        journal.write(&engine.disk).unwrap();
        journal.publish(&engine.disk).unwrap();
        let steps = journal.steps.len();
        for done in 0..=steps {
            let copy = copy_of(&format!("{done}"));
            let first = journal.steps[..done].to_vec();
            let half = Journal { generation: 1, spread: None, steps: first };
            half.do_all(&DiskSide::open(&copy).unwrap()).unwrap();
            let expected =
                Recovered::Completed { generation: 1, steps, changed_outside: Vec::new() };
            assert_eq!(recover(&copy).unwrap().found, expected, "after {done} steps");
            assert_eq!(view(&copy), new, "after {done} steps");
            assert!(!copy.join(OWN).exists());
        }
    }

    /// Makes changes in RAM, and others on the disk side, as a process does that sees it.
    fn both_change(inside: &dyn Fn(&Path), outside: &dyn Fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        inside(&ram);
        let journal = staged(&engine);
        outside(&disk);
        journal.write(&engine.disk).unwrap();
        journal.publish(&engine.disk).unwrap();
        let copy = folder.path().join("copy");
        let copied = std::process::Command::new("cp").arg("-a").arg(&disk).arg(&copy).status();
        assert!(copied.unwrap().success());
        let recovered = recover(&copy).unwrap();
        let is_reported = matches!(&recovered.found, Recovered::Completed { changed_outside, .. }
            if !changed_outside.is_empty());
        assert!(is_reported, "{recovered:?}");
        engine.disk.forget(super::super::disk_side::JOURNAL).unwrap();
        let done = engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap();
        assert!(!done.changed_outside.is_empty());
        assert_eq!(engine.verify().unwrap(), []);
    }

    #[test]
    fn changes_by_others_on_the_disk_side_delay_no_generation() {
        use std::fs;
        let protect = |ram: &Path| {
            let mut permissions = fs::metadata(ram.join("a")).unwrap().permissions();
            permissions.set_readonly(true);
            fs::set_permissions(ram.join("a"), permissions).unwrap();
        };
        both_change(&protect, &|disk| {
            fs::remove_file(disk.join("a")).unwrap();
        });
        let to_file = |ram: &Path| {
            fs::remove_dir(ram.join("d/nothing")).unwrap();
            fs::write(ram.join("d/nothing"), "a file").unwrap();
        };
        both_change(&to_file, &|disk| fs::write(disk.join("d/nothing/x"), "theirs").unwrap());
        let below = |ram: &Path| {
            fs::write(ram.join("d/e/c"), "changed").unwrap();
            fs::create_dir_all(ram.join("d/e/new/deep")).unwrap();
        };
        both_change(&below, &|disk| fs::remove_dir_all(disk.join("d/e")).unwrap());
        both_change(&below, &|disk| {
            fs::remove_dir_all(disk.join("d")).unwrap();
            fs::write(disk.join("d"), "theirs").unwrap();
        });
        both_change(&below, &|disk| fs::write(disk.join("d/e/new"), "theirs").unwrap());
    }

    #[test]
    fn two_names_of_one_file_that_are_two_files_by_now_do_not_change_together() {
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        let [one, other] = ["d/b", "d/also-b"].map(|name| ram.join(name));
        fs::write(&one, vec![7; 400_000]).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Everything, None).unwrap();
        drop(engine);
        // Equal in all, and another file.
        let date = fs::metadata(&one).unwrap().modified().unwrap();
        fs::copy(&one, ram.join("t")).unwrap();
        fs::File::options().write(true).open(ram.join("t")).unwrap().set_modified(date).unwrap();
        fs::rename(ram.join("t"), &other).unwrap();
        let mut engine = Engine::adopt(&disk, &ram).unwrap();
        fs::write(&one, vec![7; 400_009]).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap();
        assert_eq!(engine.verify().unwrap(), []);
        assert_eq!(fs::metadata(disk.join("d/also-b")).unwrap().len(), 400_000);
    }

    #[test]
    fn nothing_is_appended_to_a_file_that_another_process_changed() {
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        fs::write(ram.join("a"), vec![7; 400_000]).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap();
        fs::write(disk.join("a"), vec![8; 400_000]).unwrap();
        fs::write(ram.join("a"), vec![7; 400_009]).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap();
        assert_eq!(engine.verify().unwrap(), []);
    }

    /// Shows something only if it is run by a user other than root.
    #[test]
    fn what_is_appended_and_then_protected_can_be_done_again() {
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        fs::write(ram.join("a"), vec![7; 400_000]).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap();
        fs::write(ram.join("a"), vec![7; 400_009]).unwrap();
        let mut permissions = fs::metadata(ram.join("a")).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(ram.join("a"), permissions).unwrap();
        let journal = staged(&engine);
        assert!(journal.steps.iter().any(|step| matches!(step, JournalStep::Append { .. })));
        journal.write(&engine.disk).unwrap();
        journal.publish(&engine.disk).unwrap();
        journal.do_all(&engine.disk).unwrap();
        drop(engine);
        recover(&disk).unwrap();
        assert_eq!(view(&disk), view(&ram));
    }

    #[test]
    fn what_is_young_is_looked_at_again_also_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        std::fs::write(ram.join("a"), "ONE").unwrap();
        // Young for as long as this takes.
        let date = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
        let file = std::fs::File::options().write(true).open(ram.join("a")).unwrap();
        file.set_modified(date).unwrap();
        // It counts, and cannot be applied to its end.
        std::fs::create_dir_all(disk.join(".fsure-ram/last/x")).unwrap();
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap_err();
        assert!(engine.pending.is_some());
        assert!(engine.again.contains(&RelPath::from_bytes(*b"a")));
    }

    #[test]
    fn what_could_not_be_read_is_equal_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let Some((engine, ..)) = filled(folder.path()) else { return };
        let known = engine.index.get(&RelPath::from_bytes(*b"a")).unwrap();
        assert!(known.is_same_as(known));
        let unread = IndexEntry { digest: crate::write_back::index::UNREAD, ..known.clone() };
        assert!(!unread.is_same_thing_as(&unread));
    }

    #[test]
    fn what_a_drive_has_lied_about_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let Some((engine, disk, ram)) = filled(folder.path()) else { return };
        std::fs::write(ram.join("a"), "ONE").unwrap();
        let journal = staged(&engine);
        journal.write(&engine.disk).unwrap();
        journal.publish(&engine.disk).unwrap();
        drop(engine);
        let stage = disk.join(".fsure-ram/stage").read_dir().unwrap().next().unwrap().unwrap();
        std::fs::write(stage.path(), "O\0E").unwrap();
        let error = recover(&disk).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(std::fs::read(disk.join("a")).unwrap(), b"one");
        assert!(stage.path().exists(), "nothing is thrown away");
    }

    #[test]
    fn a_stage_that_is_gone_is_no_file_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let Some((engine, disk, ram)) = filled(folder.path()) else { return };
        std::fs::write(ram.join("a"), "ONE").unwrap();
        std::fs::remove_dir(disk.join(".fsure-ram/stage")).unwrap();
        let mut draft = GenerationBuilder::new(&engine.disk, &engine.ram, &engine.index, 1);
        let path = RelPath::from_bytes(*b"a");
        let facts = engine.ram.facts(b"a").unwrap();
        let taken = draft.stage_if_changed(&path, &facts).and_then(|_| draft.stage_held());
        assert!(taken.is_err(), "it would be removed from the disk");
        assert!(draft.known(&path).is_some());
    }

    #[test]
    fn a_change_that_moves_no_date_is_found_by_hashing() {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut engine, disk, ram)) = filled(folder.path()) else { return };
        let sync = |engine: &mut Engine| {
            // A recent change is scanned in any case.
            std::thread::sleep(std::time::Duration::from_millis(50));
            engine.sync(&mut NoTracker, CompareDepth::Dates, None).unwrap().changed
        };
        sync(&mut engine);
        std::fs::write(ram.join("a"), "eno").unwrap();
        // As if the date had been the same before.
        let path = RelPath::from_bytes(*b"a");
        let mut entry = engine.index.get(&path).unwrap().clone();
        entry.facts = engine.ram.facts(b"a").unwrap();
        engine.index.set(path, Some(entry));
        let found = (0..100).any(|_| sync(&mut engine) == 1);
        assert!(found, "it never had its turn");
        assert_eq!(std::fs::read(disk.join("a")).unwrap(), b"eno");
    }
}
