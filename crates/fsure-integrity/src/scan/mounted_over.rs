//! Recorded folders that are hidden by a mount of the same file system (a bind
//! mount). Their device tells nothing; but what is there has another inode than
//! the folder that was recorded, and nothing recorded below is missing, nor is
//! anything there new. A mount that was there when the folder was recorded, and
//! one where nothing is recorded, are part of the tree like any folder.

use fsure_os::{Kind, filesystem_id};

use super::ScanPlan;
use super::entry_builder::EntryBuilder;
use crate::catalog::{Catalog, StoredRow};
use crate::model::EntryKind;
use fsure_core::{RelPath, Result};

/// The recorded folders over which another one is mounted.
pub(super) fn folders(plan: &ScanPlan, catalog: &mut Catalog) -> Result<Vec<RelPath>> {
    let mut all = Vec::new();
    let mut entries = EntryBuilder::default();
    for point in filesystem_id::mount_points(&plan.root) {
        let path = RelPath::from_bytes(point);
        if is_other(plan, catalog, &mut entries, &path)? {
            all.push(path);
        }
    }
    Ok(all)
}

/// Returns true if a folder is provably not the recorded one: it is on the file
/// system that it was recorded on, which is that of the folder it is in, and
/// has another inode.
fn is_other(
    plan: &ScanPlan,
    catalog: &mut Catalog,
    entries: &mut EntryBuilder,
    path: &RelPath,
) -> Result<bool> {
    let Some(StoredRow::Sound(row)) = catalog.get(path)?.filter(|_| !plan.is_list) else {
        return Ok(false);
    };
    let then = &row.record.entry;
    let parent = path.parent().unwrap_or_default();
    let stat = |path: &RelPath| plan.root.stat(path.as_bytes());
    let (Ok(now), Ok(above)) = (stat(path), stat(&parent)) else { return Ok(false) };
    let is_folder = now.kind == Kind::Folder && then.kind == EntryKind::Folder && !row.is_gone();
    if !is_folder || now.device != above.device {
        return Ok(false);
    }
    let here = entries.entry(&plan.root, catalog, &parent, &above, above.device)?;
    let is_recorded_here = then.file_system == here.file_system && here.inode.is_some();
    Ok(is_recorded_here && then.inode.is_some_and(|inode| inode != now.inode))
}
