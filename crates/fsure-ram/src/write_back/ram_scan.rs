//! The present state of the RAM side: all of it, or the names by which something changed.

use std::collections::{BTreeMap, BTreeSet};

use fsure_os::root_dir::{is_denied, is_gone, is_other_kind};
use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use super::changes::Paths;
use super::disk_side::{OWN, is_own};
use super::journal::path_of;
use fsure_core::{IoContext as _, RelPath, Result};

/// Names, and how they were found.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Directories that were listed.
    pub(super) folders: BTreeSet<RelPath>,
    pub(super) names: BTreeMap<RelPath, CopyStat>,
    /// Names that were asked for, whether they are there or not.
    pub(super) asked: BTreeSet<RelPath>,
    /// Folders that fsure has no permission to list: what is in them is as it was.
    pub(super) denied: BTreeSet<RelPath>,
    /// True if the side has a `.fsure-ram`.
    pub(super) has_own: bool,
}

/// Returns everything on a side, without what is fsure's own.
pub(super) fn everything(side: &Side) -> Result<ScanResult> {
    let mut seen = ScanResult::default();
    let root = RelPath::root();
    let facts = side.facts(b"").context("access", path_of(&root).as_ref())?;
    seen.names.insert(root.clone(), facts);
    seen.list(side, root, &|_, _| true)?;
    Ok(seen)
}

/// Looks at names, and at all names in folders. `inode_of` knows the folders of the last
/// time: one that is new is looked at with all that is below it.
pub(super) fn look(
    side: &Side,
    folders: &BTreeSet<RelPath>,
    names: &BTreeSet<RelPath>,
    inode_of: &dyn Fn(&RelPath) -> Option<u64>,
) -> Result<ScanResult> {
    let mut seen = ScanResult::default();
    let is_new = |path: &RelPath, facts: &CopyStat| inode_of(path) != Some(facts.inode);
    for folder in folders {
        // fsure's own folder is not a part of the side, and the top folder has its name or
        // not.
        let mut folder = if is_own(folder) { RelPath::root() } else { folder.clone() };
        // One that is gone is a change of the folder it was in.
        let facts = loop {
            match side.facts(folder.as_bytes()) {
                Err(error) if is_gone(&error) && !folder.is_root() => {
                    folder = folder.parent().unwrap_or_default();
                }
                other => break other.context("access", path_of(&folder).as_ref())?,
            }
        };
        if facts.kind == NodeKind::Folder {
            seen.names.insert(folder.clone(), facts);
            seen.list(side, folder, &is_new)?;
        }
    }
    let mut by_folder: BTreeMap<RelPath, Vec<&RelPath>> = BTreeMap::new();
    for name in names {
        let is_root_or_own = name.is_root() || is_own(name);
        let folder = if is_root_or_own { None } else { name.parent() };
        by_folder.entry(folder.unwrap_or_default()).or_default().push(name);
    }
    for (folder, names) in by_folder {
        seen.ask(side, &folder, names, &is_new)?;
    }
    Ok(seen)
}

impl ScanResult {
    /// Asks for names in a folder. The folder's own date is a part of each change.
    fn ask(
        &mut self,
        side: &Side,
        folder: &RelPath,
        names: Vec<&RelPath>,
        enters: &dyn Fn(&RelPath, &CopyStat) -> bool,
    ) -> Result<()> {
        let last = |name: &'_ RelPath| match () {
            () if name.is_root() => b"."[..].to_owned(),
            () if is_own(name) => OWN.as_bytes().to_owned(),
            () => name.name().to_owned(),
        };
        let plain: Vec<_> = names.iter().map(|name| last(name)).collect();
        let plain: Vec<_> = plain.iter().map(Vec::as_slice).collect();
        let found = match side.facts_in(folder.as_bytes(), &plain) {
            // The folder is gone, or a link: so are the names in it.
            Err(error) if is_gone(&error) || is_other_kind(&error) => {
                self.asked.extend(names.into_iter().cloned());
                return Ok(());
            }
            Err(error) if is_denied(&error) && !folder.is_root() => {
                self.denied.insert(folder.clone());
                return Ok(());
            }
            other => other.context("access", path_of(folder).as_ref())?,
        };
        let (own, found) = found;
        // One that took the place of another: of names that went with that one, only its own
        // is reported.
        if enters(folder, &own) {
            self.list(side, folder.clone(), enters)?;
        }
        self.names.insert(folder.clone(), own);
        for (name, facts) in names.into_iter().zip(found) {
            if is_own(name) {
                self.has_own |= facts.is_some();
                continue;
            }
            self.asked.insert(name.clone());
            let Some(facts) = facts else { continue };
            if facts.kind == NodeKind::Folder && enters(name, &facts) {
                self.list(side, name.clone(), enters)?;
            }
            self.names.insert(name.clone(), facts);
        }
        Ok(())
    }

    /// Lists a folder, and those in it that `enters` is true of.
    fn list(
        &mut self,
        side: &Side,
        folder: RelPath,
        enters: &dyn Fn(&RelPath, &CopyStat) -> bool,
    ) -> Result<()> {
        let mut waiting = vec![folder];
        while let Some(folder) = waiting.pop() {
            if self.folders.contains(&folder) {
                continue;
            }
            let names = match side.list(folder.as_bytes()) {
                // Its own folder is looked at again: it changed.
                Err(error) if is_gone(&error) && !folder.is_root() => continue,
                Err(error) if is_denied(&error) && !folder.is_root() => {
                    self.denied.insert(folder);
                    continue;
                }
                other => other.context("list", path_of(&folder).as_ref())?,
            };
            for (name, facts) in names {
                let path = folder.join(&name);
                if is_own(&path) {
                    self.has_own = true;
                    continue;
                }
                if facts.kind == NodeKind::Folder && enters(&path, &facts) {
                    waiting.push(path.clone());
                }
                self.names.insert(path, facts);
            }
            self.folders.insert(folder);
        }
        Ok(())
    }

    /// Waits until every change of a name that may be in here has been reported.
    pub(super) fn wait_for_reports(&self, side: &Side) -> Result<()> {
        for folder in self.ways() {
            match side.wait_for_names(folder.as_bytes()) {
                Err(error) if is_gone(&error) || is_other_kind(&error) || is_denied(&error) => {}
                other => other.context("list", path_of(&folder).as_ref())?,
            }
        }
        Ok(())
    }

    /// The folders that were listed, and those through which the others were reached: one of
    /// these that was moved leads elsewhere before that is reported.
    fn ways(&self) -> BTreeSet<RelPath> {
        let mut ways = self.folders.clone();
        for path in self.asked.iter().chain(&self.folders) {
            let mut above = path.parent();
            while let Some(folder) = above.filter(|folder| !ways.contains(folder)) {
                above = folder.parent();
                ways.insert(folder);
            }
        }
        ways
    }

    /// Tells whether something that was looked at has changed by then: what was found is then of
    /// before or after that. That the date of a folder changes with each name in it does not
    /// count.
    pub(super) fn is_touched_by(&self, later: &Paths) -> bool {
        let has_below = |path: &RelPath, set: &BTreeSet<RelPath>| {
            let (from, to) = path.below();
            let mut behind = set.range(RelPath::from_bytes(from)..);
            let first = behind.next();
            first.is_some_and(|one| to.is_none_or(|to| one.as_bytes() < &*to))
        };
        let is_name_touched = |name: &RelPath| {
            let above = name.parent();
            self.asked.contains(name)
                || self.folders.contains(name)
                || above.is_some_and(|above| self.folders.contains(&above))
                || has_below(name, &self.asked)
                || has_below(name, &self.folders)
        };
        let is_folder_touched = |folder: &RelPath| {
            self.folders.contains(folder)
                || self.asked.contains(folder)
                || self.asked.iter().any(|name| name.parent().as_ref() == Some(folder))
        };
        later.names.iter().any(is_name_touched)
            || later.folders.iter().any(is_folder_touched)
            || !later.inodes.is_empty()
                && self.names.values().any(|facts| later.inodes.contains(&facts.inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_awaited_of_every_folder_on_the_way() {
        let path = |text: &str| RelPath::from_bytes(text.as_bytes());
        let all = |texts: &[&str]| texts.iter().map(|text| path(text)).collect::<BTreeSet<_>>();
        let (folders, asked) = (all(&["d/e/f"]), all(&["a/b/c", "a/x", "y"]));
        let seen = ScanResult { folders, asked, ..ScanResult::default() };
        assert_eq!(seen.ways(), all(&["", "a", "a/b", "d", "d/e", "d/e/f"]));
        assert_eq!(ScanResult { asked: all(&[""]), ..ScanResult::default() }.ways(), all(&[]));
    }
}
