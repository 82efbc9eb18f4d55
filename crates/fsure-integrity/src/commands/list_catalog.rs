//! Turns a list into a temporary catalog of the files that it expects in a folder, so
//! that a list is judged like a record.

use fsure_os::filesystem_id::Volume;

use super::list_folder::ListFolder;
use super::list_records::{self, ListProblem, ListProblems, ResolvedEntry, named, record};
use super::open_root::OpenRoot;
use crate::catalog::{Catalog, RootLocation, RootSettings, StoredRow};
use crate::manifest::{ManifestEntry, ManifestFormat, ManifestSource, ProblemKind};
use crate::model::{FileSystemId, Record, ScanMonitor};
use crate::scan::LISTED_SIZE;
use fsure_core::{AlgorithmSet, RelPath, Result};

/// Set in `verified_s` of the record of a file that has a name mismatch with the list; with
/// it, [`LISTED_SIZE`].
const NAME_MISMATCH: i64 = 1;

/// A list as a catalog.
pub(super) struct ListCatalog {
    pub(super) catalog: Catalog,
    /// Number of its entries.
    pub(super) entries: u64,
    /// The folder that all its names begin with.
    pub(super) folder: ListFolder,
    pub(super) troubles: ListProblems,
}

/// Reads a list for the files below `place`; `digests` are to be computed of them.
pub(super) fn expected(
    place: &RootLocation,
    open: &OpenRoot,
    source: &ManifestSource,
    digests: AlgorithmSet,
    monitor: &dyn ScanMonitor,
) -> Result<ListCatalog> {
    let root = (open.volume.clone(), open.inode);
    let mut find = |listed: &ManifestEntry| Ok(named(&open.root, &place.scope, listed));
    expected_where(root, source, digests, &mut find, monitor)
}

/// Reads a list for files of which `find` knows.
pub(super) fn expected_where(
    root: (Volume, u64),
    source: &ManifestSource,
    digests: AlgorithmSet,
    find: &mut dyn FnMut(&ManifestEntry) -> Result<ResolvedEntry>,
    monitor: &dyn ScanMonitor,
) -> Result<ListCatalog> {
    let settings = RootSettings { digests, cross_file_systems: false };
    let mut catalog = Catalog::temporary(source.label(), settings, root)?;
    let file_system = catalog.root_identity().0.id;
    // A list is of one moment, whatever happens to its files later; attributes are
    // kept by a program that, like fsure, takes an edit for an edit.
    let keeps_date = source.format == ManifestFormat::Cshatag;
    let (mut entries, mut name_mismatches) = (0, 0_u64);
    let mut folder = ListFolder::default();
    let mut troubles = list_records::read(source, monitor, true, &mut |listed| {
        entries += 1;
        folder.add(&listed.path);
        let named = find(&listed)?;
        if named.written.is_none() {
            put(&mut catalog, source, marked(0, named, listed, file_system, keeps_date))
        } else {
            name_mismatches += 1;
            Ok(Ok(()))
        }
    })?;
    // Last, when every name that the list has as it is written is known: a file
    // that is lost must not pass for another one that has its name in another
    // spelling and is listed, too.
    if name_mismatches > 0 {
        let more = list_records::read(source, monitor, false, &mut |listed| {
            let found = find(&listed)?;
            if found.written.is_none() {
                return Ok(Ok(()));
            }
            // In a bag, names that differ by their Unicode form are one.
            let is_taken = source.bag.is_none()
                && matches!(catalog.get(&found.path)?, Some(StoredRow::Sound(row))
                    if row.record.verified_s & NAME_MISMATCH == 0);
            let (marks, named) = match is_taken {
                true => (0, found.into_written()),
                false => (NAME_MISMATCH, found),
            };
            put(&mut catalog, source, marked(marks, named, listed, file_system, keeps_date))
        })?;
        troubles.malformed += more.malformed;
        troubles.unusable += more.unusable;
    }
    let scope = RelPath::root();
    troubles.malformed +=
        list_records::require_all_manifests(source, &scope, &mut catalog, monitor)?;
    catalog.commit()?;
    Ok(ListCatalog { catalog, entries, folder, troubles })
}

/// The record of an entry, with what else is known of it in `verified_s`.
fn marked(
    marks: i64,
    named: ResolvedEntry,
    listed: ManifestEntry,
    file_system: FileSystemId,
    keeps_date: bool,
) -> Record {
    let size = if listed.size.is_some() { LISTED_SIZE } else { 0 };
    let record = record(named, listed, file_system, keeps_date);
    Record { verified_s: marks | size, ..record }
}

/// Reports each breach of a bag's rules in a list that was taken entry by entry, and
/// returns their number.
pub(super) fn broken_rules(
    place: &RootLocation,
    open: &OpenRoot,
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
) -> Result<u64> {
    if source.bag.is_none() {
        return Ok(0);
    }
    let settings = RootSettings { digests: AlgorithmSet::default(), cross_file_systems: false };
    let root = (open.volume.clone(), open.inode);
    let mut catalog = Catalog::temporary(source.label(), settings, root)?;
    let file_system = catalog.root_identity().0.id;
    let mut troubles = list_records::read(source, monitor, false, &mut |listed| {
        let named = named(&open.root, &place.scope, &listed);
        let record = marked(0, named, listed, file_system, false);
        Ok(put(&mut catalog, source, record)?.or_else(|refusal| match refusal.is_contradiction {
            // It was reported when the entry was taken.
            true => Ok(()),
            false => Err(refusal),
        }))
    })?;
    troubles.malformed +=
        list_records::require_all_manifests(source, &place.scope, &mut catalog, monitor)?;
    Ok(troubles.malformed)
}

fn put(
    catalog: &mut Catalog,
    source: &ManifestSource,
    record: Record,
) -> Result<std::result::Result<(), ListProblem>> {
    let Some(StoredRow::Sound(row)) = catalog.get(&record.path)? else {
        return catalog.put(None, record, &[]).map(Ok);
    };
    let has_size = |record: &Record| record.verified_s & LISTED_SIZE != 0;
    if has_size(&row.record) && has_size(&record) && row.record.entry.size != record.entry.size {
        let reason = format!("{} is listed twice, with different sizes", record.path.display());
        return Ok(Err(ListProblem::contradiction(reason)));
    }
    let has = row.record.digests.algorithms();
    let is_twice = has.covers(record.digests.algorithms());
    let joined = list_records::join(catalog, &row, &record)?;
    Ok(match &source.bag {
        // A manifest has one kind of digest.
        Some(bag) if is_twice && joined.is_ok() => Err(ListProblem {
            trouble: if bag.is_strict { ProblemKind::Malformed } else { ProblemKind::Note },
            reason: format!("{} is listed twice", record.path.display()),
            is_contradiction: false,
        }),
        _ => joined,
    })
}
