//! The steps that lead from the last generation to the one that was drafted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fsure_os::tree_copy::NodeKind;

use super::generation_builder::GenerationBuilder;
use super::index::IndexEntry;
use super::journal_step::JournalStep;
use super::staging::{Staged, StagedKind};
use fsure_core::{RelPath, Result};

/// A generation that removes more files than this is one that the user might regret.
const REMOVED_MAX: usize = 1000;
/// So is one that removes more than half of at least this many.
const REMOVED_SHARE_MIN_NAMES: usize = 10;

/// The steps that a draft comes to.
pub(super) struct PlannedGeneration {
    pub(super) steps: Vec<JournalStep>,
    pub(super) changed: BTreeMap<RelPath, Option<IndexEntry>>,
    /// Names made or changed, and names removed.
    pub(super) counts: (u64, u64),
    pub(super) has_trash: bool,
}

impl PlannedGeneration {
    /// The steps that make the generation of the last one. What is staged has its
    /// owner, dates and attributes from here on.
    pub(super) fn of(mut draft: GenerationBuilder<'_>) -> Result<Self> {
        let index = draft.index;
        draft.changed.retain(|path, entry| entry.as_ref() != index.get(path));
        let trashes = removes_much(&draft);
        let mut plan = StepPlanner::default();
        for (path, entry) in &draft.changed {
            let old = index.get(path);
            let (was, is) =
                (old.map(IndexEntry::is_folder), entry.as_ref().map(IndexEntry::is_folder));
            if let Some(was_folder) = was.filter(|_| was != is) {
                let to_trash = trashes && !was_folder && !is_kept_by_other_name(&draft, old);
                plan.remove(path, was_folder, to_trash);
            }
            if let Some(entry) = entry {
                plan_entry(&draft, path, entry, old, &mut plan)?;
            }
        }
        let folders = plan.touched.iter().filter_map(|folder| {
            let entry = draft.known(folder)?;
            entry.is_folder().then(|| (folder.clone(), entry.meta()))
        });
        let folders: Vec<_> = folders.collect();
        let counts = (plan.changed, plan.removes.len() as u64);
        let mut steps: Vec<_> = plan.removes.into_iter().rev().collect();
        steps.extend(plan.makes);
        steps.extend(plan.puts);
        // The deepest first: what is done in a folder is done by then.
        steps.extend(folders.into_iter().rev().map(|(path, meta)| JournalStep::Meta {
            path,
            kind: NodeKind::Folder,
            meta,
        }));
        Ok(Self { steps, changed: draft.changed, counts, has_trash: trashes })
    }
}

fn plan_entry(
    draft: &GenerationBuilder<'_>,
    path: &RelPath,
    entry: &IndexEntry,
    old: Option<&IndexEntry>,
    plan: &mut StepPlanner,
) -> Result<()> {
    let kind = entry.facts.kind;
    let is_same_thing = old.is_some_and(|old| old.is_same_thing_as(entry));
    let staged = draft.staging.of(path, entry);
    let needs_put = entry.is_file()
        && (!is_same_thing
            || staged.is_some() && old.is_none_or(|old| old.facts.inode != entry.facts.inode));
    if needs_put {
        let staged = staged.expect("what differs was staged");
        plan.put(path, staged, entry);
        if let StagedKind::Whole = staged.what {
            return draft.disk.set_attributes(&staged.name, entry);
        }
    } else if !is_same_thing {
        plan.make(path, entry);
    } else if old.is_some_and(|old| old.is_same_as(entry)) {
        return Ok(());
    } else {
        plan.changed += 1;
    }
    if kind == NodeKind::Folder {
        plan.touched.insert(path.clone());
    } else if entry.is_file() || is_same_thing {
        plan.puts.push(JournalStep::Meta { path: path.clone(), kind, meta: entry.meta() });
    }
    Ok(())
}

/// Returns true if the generation has the content of a removed name by another name of the same
/// file. The disk side has one file for both, which would have a hard link in the trash.
fn is_kept_by_other_name(draft: &GenerationBuilder<'_>, removed: Option<&IndexEntry>) -> bool {
    let Some(removed) = removed.filter(|removed| removed.is_file()) else { return false };
    let names = draft.names(removed.facts.inode);
    names.iter().filter_map(|name| draft.known(name)).any(|other| other.is_same_thing_as(removed))
}

fn removes_much(draft: &GenerationBuilder<'_>) -> bool {
    let gone: Vec<_> = draft
        .changed
        .iter()
        .filter(|(_, now)| now.is_none())
        .filter_map(|(path, _)| draft.index.get(path).filter(|old| old.is_file()))
        .map(|old| old.facts.inode)
        .collect();
    let files = draft.index.files();
    let is_much =
        |gone: usize| gone > REMOVED_MAX || files >= REMOVED_SHARE_MIN_NAMES && gone * 2 > files;
    // What was only renamed is not gone.
    is_much(gone.len()) && {
        let left: HashSet<_> = draft
            .changed
            .values()
            .flatten()
            .filter(|entry| entry.is_file())
            .map(|entry| entry.facts.inode)
            .collect();
        is_much(gone.iter().filter(|inode| !left.contains(inode)).count())
    }
}

/// Steps by kind, each in the order of the paths.
#[derive(Default)]
struct StepPlanner {
    removes: Vec<JournalStep>,
    makes: Vec<JournalStep>,
    puts: Vec<JournalStep>,
    /// Folders whose date fsure's own changes have moved, or that differ themselves.
    touched: BTreeSet<RelPath>,
    changed: u64,
}

impl StepPlanner {
    fn remove(&mut self, path: &RelPath, is_folder: bool, to_trash: bool) {
        self.removes.push(JournalStep::Remove { path: path.clone(), is_folder, to_trash });
        self.touch(path);
    }

    fn make(&mut self, path: &RelPath, entry: &IndexEntry) {
        let (kind, target) = (entry.facts.kind, entry.target.clone());
        let step = JournalStep::Make { path: path.clone(), kind, target, meta: entry.meta() };
        // Folders first: what is put into them comes after them.
        if kind == NodeKind::Folder { &mut self.makes } else { &mut self.puts }.push(step);
        self.changed += 1;
        self.touch(path);
    }

    fn put(&mut self, path: &RelPath, staged: &Staged, entry: &IndexEntry) {
        self.touch(path);
        let (path, stage, size) = (path.clone(), staged.name.clone(), entry.facts.size);
        self.puts.push(match staged.what {
            StagedKind::Tail { from, digest } => {
                JournalStep::Append { path, stage, from, size, digest }
            }
            _ => JournalStep::Put { path, stage, size, digest: entry.digest },
        });
        self.changed += 1;
    }

    fn touch(&mut self, path: &RelPath) {
        self.touched.extend(path.parent());
    }
}
