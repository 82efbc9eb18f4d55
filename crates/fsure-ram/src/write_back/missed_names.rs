//! Names that were not found and are kept all the same. What is moved during a look is
//! seen by neither name, if it comes to a place that was already looked at. It must not be
//! taken from the disk side for that, which has its only copy that survives a crash.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Instant;

use super::generation_builder::GenerationBuilder;
use super::index::IndexEntry;
use fsure_core::RelPath;

/// A name that is kept although it was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miss {
    /// So many looks in a row have missed it.
    looks: u32,
    /// It was there after this moment.
    pub(super) since: Instant,
}

/// Names that are kept.
pub(super) type MissedNames = BTreeMap<RelPath, Miss>;

/// Keeps what was found nowhere, as it is on the disk side: unless `gone_after` looks
/// in a row have missed it; or something else has its name, which was there
/// in two looks. What only the last look found was made after the first began. What is
/// kept for the first time was there after `since`.
pub(super) fn keep_missed(
    draft: &mut GenerationBuilder<'_>,
    before: &MissedNames,
    gone_after: u32,
    since: Instant,
) -> MissedNames {
    let mut missed = MissedNames::new();
    let mut tried = BTreeSet::new();
    loop {
        let mut lost = lost(draft);
        lost.retain(|path| {
            let is_doubtful = match draft.changed.get(path) {
                Some(None) => looks(draft, path, before) < gone_after,
                _ => is_fresh(draft, path),
            };
            is_doubtful && tried.insert(path.clone())
        });
        if lost.is_empty() {
            return missed;
        }
        for path in lost {
            let looks = looks(draft, &path, before);
            for path in restore(draft, &path) {
                // What was kept before is of before that, whatever has the name by now.
                let since = before.get(&path).map_or(since, |one| one.since);
                missed.entry(path).or_insert(Miss { looks, since });
            }
        }
    }
}

/// Names of what the draft has under no name.
fn lost(draft: &GenerationBuilder<'_>) -> Vec<RelPath> {
    let found: HashSet<_> =
        draft.changed.values().flatten().map(|entry| entry.facts.inode).collect();
    let is_lost = |path: &&RelPath| {
        let Some(old) = draft.index.get(path) else { return false };
        let names = draft.index.names(old.facts.inode);
        !found.contains(&old.facts.inode)
            && names.iter().all(|name| draft.changed.contains_key(name))
    };
    draft.changed.keys().filter(is_lost).cloned().collect()
}

/// Returns true if only the last round found it changed.
fn is_fresh(draft: &GenerationBuilder<'_>, path: &RelPath) -> bool {
    draft.since.get(path) == Some(&draft.round)
}

/// Returns the number of scans in a row that have not found it.
fn looks(draft: &GenerationBuilder<'_>, path: &RelPath, before: &MissedNames) -> u32 {
    let is_sighted =
        draft.index.get(path).is_some_and(|old| draft.sighted.contains(&old.facts.inode));
    match draft.missing_since.get(path) {
        Some(0) if !is_sighted => before.get(path).map_or(0, |one| one.looks) + draft.round + 1,
        Some(first) if !is_sighted => draft.round - first + 1,
        _ => 0,
    }
}

/// Takes a name as it was, with the folders that it is in; which those are. None
/// where one of these is something else by now.
fn restore(draft: &mut GenerationBuilder<'_>, path: &RelPath) -> Vec<RelPath> {
    let mut way = vec![path.clone()];
    let mut folder = path.parent();
    while let Some(one) = folder {
        match draft.changed.get(&one) {
            Some(Some(entry)) if !entry.is_folder() && !is_fresh(draft, &one) => return vec![],
            Some(Some(entry)) if entry.is_folder() => break,
            None => break,
            Some(_) => {}
        }
        folder = one.parent();
        way.push(one);
    }
    for one in &way {
        // What is below a folder that took the place of a file goes with it.
        let is_folder = draft.known(one).is_some_and(IndexEntry::is_folder);
        if is_folder && !draft.index.get(one).is_some_and(IndexEntry::is_folder) {
            draft.changed.retain(|path, _| path == one || !path.is_within(one));
        }
        draft.changed.remove(one);
        draft.missing_since.remove(one);
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_back::engine::Engine;
    use std::ops::ControlFlow;
    use std::time::Duration;

    #[test]
    fn what_is_kept_again_is_as_old_as_when_it_was_kept_first() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let [disk, ram] = ["disk", "ram"].map(|name| folder.path().join(name));
        for side in [&disk, &ram] {
            std::fs::create_dir(side).unwrap();
        }
        std::fs::write(disk.join("a"), "old").unwrap();
        let engine = Engine::fill(&disk, &ram, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let path = RelPath::from_bytes(*b"a");
        let old = engine.index.get(&path).unwrap();
        let first = Instant::now();
        let later = first + Duration::from_secs(1);
        let before = MissedNames::from([(path.clone(), Miss { looks: 1, since: first })]);
        let kept = |change: Option<IndexEntry>, before: &MissedNames| {
            let mut draft = GenerationBuilder::new(&engine.disk, &engine.ram, &engine.index, 1);
            draft.begin_round(3);
            draft.change(path.clone(), change);
            keep_missed(&mut draft, before, 10, later)[&path].since
        };
        // Another file has the name, by the last look.
        let mut other = old.clone();
        other.facts.inode += 1;
        assert_eq!(kept(Some(other.clone()), &before), first);
        assert_eq!(kept(None, &before), first);
        assert_eq!(kept(Some(other), &MissedNames::new()), later);
    }
}
