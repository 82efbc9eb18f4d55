//! Comparison of both sides: both are read to their end, the disk side from the medium.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use super::disk_side::trash;
use super::engine::Engine;
use super::index::IndexEntry;
use super::journal::{forget, make_trash, path_of};
use super::side_reader::{Entries, SideReader, in_ram, on_disk};
use fsure_core::{Error, IoContext as _, RelPath, Result};

/// Maximum number of readings of what differs, if it changes meanwhile.
const READINGS: u32 = 5;

/// Kinds of differences between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It is on the RAM side alone.
    OnlyInRam,
    /// It is on the disk side alone.
    OnlyOnDisk,
    /// It holds something else, or is something else.
    Content,
    /// Only owner, mode, date or attributes differ.
    Metadata,
    /// It was changed whenever it was compared: the difference is not known.
    Changing,
}

/// A name that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideDifference {
    /// Path of the name.
    pub path: RelPath,
    /// Its difference.
    pub how: DifferenceKind,
}

impl Engine {
    /// Returns the names that differ between the sides, in the order of the paths. What
    /// has changed in RAM since the last generation differs.
    pub fn verify(&self) -> Result<Vec<SideDifference>> {
        let (ram, disk) = (in_ram(&self.ram)?, on_disk(&self.disk.side)?);
        let unequal = unequal(&self.disk.side, &ram, &disk);
        Ok(unequal.map(|(path, how)| SideDifference { path: path.clone(), how }).collect())
    }

    /// Both sides, by ways of its own, to be compared while this goes on. It ends when it is
    /// stopped; until it is dropped, both sides are in use.
    pub fn comparison(&self, ram: &Path, stop: &Arc<AtomicBool>) -> Result<SideComparison> {
        let ram = Side::open(ram).context("open", ram)?;
        let disk = Side::open(&self.disk.path).context("open", &self.disk.path)?;
        Ok(SideComparison { ram, disk, stop: stop.clone() })
    }

    /// Returns the entries that the last generation has for these names.
    pub fn known(&self, paths: &BTreeSet<RelPath>) -> LastGenerationEntries {
        let of = |path: &RelPath| Some((path.clone(), self.index.get(path)?.clone()));
        LastGenerationEntries(paths.iter().filter_map(of).collect())
    }

    /// Keeps what the disk side has by these names in the trash of the generation that is
    /// to come, which puts something else there; where that is. A folder is not kept.
    pub fn keep(&self, paths: &[RelPath]) -> Result<PathBuf> {
        let generation = self.generation + 1;
        for path in paths {
            self.keep_one(generation, path).context("keep", &self.disk.path.join(path_of(path)))?;
        }
        Ok(self.disk.path.join(trash(generation)))
    }

    fn keep_one(&self, generation: u64, path: &RelPath) -> io::Result<()> {
        let side = &self.disk.side;
        if side.facts(path.as_bytes())?.kind == NodeKind::Folder {
            return Ok(());
        }
        let target = make_trash(side, generation, path)?;
        // Of an attempt that failed.
        forget(side, target.as_bytes())?;
        side.link(path.as_bytes(), target.as_bytes())
    }

    /// Leaves names of the disk side alone that were never in RAM: to who has taken over
    /// they are what was deleted there.
    pub fn leave_alone(&mut self, strays: &BTreeSet<RelPath>) {
        strays.iter().for_each(|path| self.index.set(path.clone(), None));
    }
}

/// Entries that the last generation has for some names.
#[derive(Debug)]
pub struct LastGenerationEntries(Entries);

/// Both sides, while generations go on.
pub struct SideComparison {
    ram: Side,
    disk: Side,
    /// Dropped when the sides are closed: who takes the folder out of RAM waits for that.
    stop: Arc<AtomicBool>,
}

/// Says what the last generation has of names; of a new one, where that is asked for.
pub type LookupFn<'a> =
    &'a mut dyn FnMut(&BTreeSet<RelPath>, bool) -> Result<LastGenerationEntries>;

impl SideComparison {
    /// Fails once it is stopped. The caller that answers [`LookupFn`] checks this, too,
    /// while it waits.
    pub fn go_on(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            false => Ok(()),
            true => {
                let message = "not compared: the folder is being unbound".to_owned();
                Err(Error::FailedPrecondition { message, hint: None })
            }
        }
    }

    /// Returns the names that differ, in the order of the paths. Everything is read, and
    /// what differs then is read once more on both sides of a generation. It is a
    /// difference if it was not changed meanwhile. It is none if the disk has it as it
    /// was just before or just after, or, if it is changed all the time, as the last
    /// generation has it.
    pub fn run(&self, ask: LookupFn<'_>) -> Result<Vec<SideDifference>> {
        let go_on = || self.go_on();
        let (ram, disk) =
            (SideReader::of_ram(&self.ram, &go_on), SideReader::of_disk(&self.disk, &go_on));
        let (here, there) = (ram.all()?, disk.all()?);
        let mut doubtful: BTreeSet<_> =
            unequal(&self.disk, &here, &there).map(|(path, _)| path.clone()).collect();
        let mut different = Vec::new();
        for _ in 0..READINGS {
            if doubtful.is_empty() {
                break;
            }
            let before = ram.some(&doubtful)?;
            let LastGenerationEntries(old) = ask(&doubtful, true)?;
            let (there, after) = (disk.some(&doubtful)?, ram.some(&doubtful)?);
            let LastGenerationEntries(new) = ask(&doubtful, false)?;
            doubtful.retain(|path| {
                let [there, before, after, old, new] =
                    [&there, &before, &after, &old, &new].map(|entries| entries.get(path));
                let differs = |one| differs(&self.disk, one, there);
                let is_there = |one| differs(one).is_none();
                let Some(how) = differs(after).filter(|_| !is_there(before)) else {
                    return false;
                };
                if before != after {
                    return !(is_there(old) || is_there(new));
                }
                if old == new {
                    different.push(SideDifference { path: path.clone(), how });
                }
                old != new
            });
        }
        let changing = |path| SideDifference { path, how: DifferenceKind::Changing };
        different.extend(doubtful.into_iter().map(changing));
        different.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(different)
    }
}

/// Names that differ.
fn unequal<'a>(
    side: &'a Side,
    ram: &'a Entries,
    disk: &'a Entries,
) -> impl Iterator<Item = (&'a RelPath, DifferenceKind)> + use<'a> {
    let paths: BTreeSet<_> = ram.keys().chain(disk.keys()).collect();
    paths.into_iter().filter_map(|path| Some((path, differs(side, ram.get(path), disk.get(path))?)))
}

/// Returns the difference between the entry in RAM and that on the disk side, which is
/// `side`; `None` if they are equal.
fn differs(
    side: &Side,
    ram: Option<&IndexEntry>,
    disk: Option<&IndexEntry>,
) -> Option<DifferenceKind> {
    match (ram, disk) {
        (Some(one), Some(other)) if one.is_same_as(other) => None,
        (Some(one), Some(other)) if is_but_for_a_date(side, one, other) => None,
        (Some(one), Some(other)) if one.is_same_thing_as(other) => Some(DifferenceKind::Metadata),
        (Some(_), Some(_)) => Some(DifferenceKind::Content),
        (Some(_), None) => Some(DifferenceKind::OnlyInRam),
        (None, Some(_)) => Some(DifferenceKind::OnlyOnDisk),
        (None, None) => None,
    }
}

/// Returns true if they differ in a date alone, and the disk side has it as that file
/// system keeps it.
fn is_but_for_a_date(side: &Side, ram: &IndexEntry, disk: &IndexEntry) -> bool {
    let (now, there) = (ram.facts.mtime_ns, disk.facts.mtime_ns);
    if now == there || !ram.is_same_thing_as(disk) {
        return false;
    }
    let facts = CopyStat { mtime_ns: there, ..ram.facts.clone() };
    let dated = IndexEntry { facts, ..ram.clone() };
    dated.is_same_as(disk) && side.kept_date(now).is_ok_and(|kept| kept == there)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::ControlFlow;

    use super::*;
    use crate::write_back::{CompareDepth, NoTracker};

    /// Returns the names that differ, and the number of generations that the comparison
    /// requested. Calls `meanwhile` before and after each generation, with the number of
    /// earlier calls.
    fn compared(
        before: impl Fn(&Path, &Path),
        meanwhile: impl Fn(&Path, &Path, usize),
    ) -> (Vec<(String, DifferenceKind)>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let [disk, ram] = ["disk", "ram"].map(|side| folder.path().join(side));
        fs::create_dir(&ram).and_then(|()| fs::create_dir_all(disk.join("d"))).unwrap();
        for name in ["a", "b", "d/c"] {
            fs::write(disk.join(name), name).unwrap();
        }
        let go_on = &mut |_: &_, _| ControlFlow::Continue(());
        let mut engine = Engine::fill(&disk, &ram, go_on).unwrap();
        let comparison = engine.comparison(&ram, &Arc::default()).unwrap();
        before(&disk, &ram);
        let mut asked = 0;
        let different = comparison.run(&mut |paths, is_new| {
            if is_new {
                meanwhile(&disk, &ram, 2 * asked);
                engine.sync(&mut NoTracker, CompareDepth::Dates, None)?;
                meanwhile(&disk, &ram, 2 * asked + 1);
                asked += 1;
            }
            Ok(engine.known(paths))
        });
        let shown = |one: SideDifference| (one.path.display().to_string(), one.how);
        (different.unwrap().into_iter().map(shown).collect(), asked)
    }

    fn number(side: &Path, name: &str, number: usize) {
        fs::write(side.join(name), format!("{name} {number}")).unwrap();
    }

    #[test]
    fn sides_are_compared_while_generations_go_on() {
        if cfg!(not(target_os = "linux")) {
            return;
        }
        let still = |_: &Path, _: &Path, _: usize| {};
        assert_eq!(compared(|_, _| {}, still), (vec![], 0));
        // A change that is not on the disk yet.
        let new = |_: &Path, ram: &Path| {
            fs::write(ram.join("a"), "new").unwrap();
            fs::rename(ram.join("d"), ram.join("e")).unwrap();
        };
        assert_eq!(compared(new, still), (vec![], 1));
        // A file that is never the same twice.
        let all_the_time = |_: &Path, ram: &Path, at: usize| number(ram, "a", at);
        assert_eq!(compared(new, all_the_time), (vec![], 1));
        let made_and_removed = |_: &Path, ram: &Path, at: usize| match at % 2 {
            0 => number(ram, "d/x", at),
            _ => fs::remove_file(ram.join("d/x")).unwrap(),
        };
        let only_c = |_: &Path, ram: &Path| number(ram, "d/c", 0);
        assert_eq!(compared(only_c, made_and_removed).0, []);
        // Changes by another process on the disk side.
        let stray = |disk: &Path, _: &Path| {
            fs::write(disk.join("b"), "B").unwrap();
            fs::write(disk.join("stray"), "").unwrap();
            fs::remove_file(disk.join("d/c")).unwrap();
        };
        let named = |names: &[(&str, DifferenceKind)]| -> Vec<_> {
            names.iter().map(|(name, how)| ((*name).to_owned(), *how)).collect()
        };
        let (different, asked) = compared(stray, all_the_time);
        let files = different
            .into_iter()
            .filter(|one| one.1 != DifferenceKind::Metadata)
            .collect::<Vec<_>>();
        let all = [
            ("b", DifferenceKind::Content),
            ("d/c", DifferenceKind::OnlyInRam),
            ("stray", DifferenceKind::OnlyOnDisk),
        ];
        assert_eq!((files, asked), (named(&all), 1));
        // Changes on both sides all the time.
        let both = |disk: &Path, ram: &Path, at: usize| {
            number(ram, "a", at);
            fs::write(disk.join("a"), "of somebody else").unwrap();
        };
        let (different, asked) = compared(|_, ram| number(ram, "a", 9), both);
        assert_eq!(different, named(&[("a", DifferenceKind::Changing)]));
        assert_eq!(asked, READINGS as usize);
    }

    #[test]
    fn a_comparison_ends_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let [disk, ram] = ["disk", "ram"].map(|side| folder.path().join(side));
        fs::create_dir(&ram).and_then(|()| fs::create_dir(&disk)).unwrap();
        let go_on = &mut |_: &_, _| ControlFlow::Continue(());
        let Ok(engine) = Engine::fill(&disk, &ram, go_on) else { return };
        let stop = Arc::default();
        let comparison = engine.comparison(&ram, &stop).unwrap();
        stop.store(true, Ordering::Relaxed);
        let error = comparison.run(&mut |paths, _| Ok(engine.known(paths))).unwrap_err();
        assert!(error.to_string().contains("is being unbound"), "{error}");
    }
}
