//! Clears up after a heal that was cut off: a journal is carried out, and drafts are
//! removed.

use std::path::Path;

use fsure_os::path as os_path;
use fsure_os::root_dir::Root;
use fsure_os::{repair_write, user_file};

use super::heal_recorder::HealRecorder;
use super::journal::JournalHeader;
use super::patcher::Patcher;
use super::proof::RecordProof;
use super::replaced_folder::ReplacedFolder;
use super::replacement::is_draft_name;
use super::source_reader::{HealAttempt, HealFailure, SourceReader};
use crate::catalog::{Catalog, PageStart, RootLocation, Row, StoredRow};
use crate::model::ScanMonitor;
use fsure_core::Result;

/// Returns true if there is anything to be cleared up.
pub(super) fn is_any(place: &RootLocation, catalog: &Catalog) -> Result<bool> {
    Ok(os_path::exists(&Catalog::journal_file(&place.catalog))
        || !catalog.heal_drafts().all()?.is_empty())
}

/// Removes the drafts that are noted, and forgets those that are gone.
pub(super) fn remove_drafts(
    root: &Root,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    for (path, draft) in catalog.heal_drafts().all()? {
        let is_one = is_draft_name(draft.name()) && draft.parent() == path.parent();
        let removed = match is_one {
            true => repair_write::remove_file(root, draft.as_bytes()),
            // The note is damaged: nothing is removed by it.
            false => Ok(()),
        };
        match removed {
            Ok(()) => catalog.heal_drafts_mut().forget(&path)?,
            Err(error) => monitor.warn(&format!("{}: {error}", draft.display())),
        }
    }
    if catalog.is_writing() { catalog.commit() } else { Ok(()) }
}

/// Removes journals beside a catalog that never got their name: nothing was done by
/// them.
pub(super) fn remove_halves(catalog: &Path) {
    let journal = Catalog::journal_file(catalog);
    let (Some(folder), Some(name)) = (journal.parent(), journal.file_name()) else { return };
    let head = [&*os_path::bytes(Path::new(name)), b".making-"].concat();
    let names = user_file::names(folder).unwrap_or_default();
    for half in names.iter().filter(|name| name.starts_with(&head)) {
        os_path::remove(&folder.join(os_path::from_bytes(half)), false);
    }
}

/// Goes on where a run was killed. Returns the path of the file, for a person.
pub(super) fn finish_patch(
    patcher: &Patcher<'_>,
    reader: &mut SourceReader<'_>,
    recorder: &mut HealRecorder,
    replaced: &mut ReplacedFolder<'_>,
    catalog: &mut Catalog,
    discards_replaced: bool,
) -> HealAttempt<String> {
    let header = patcher.read_journal()?;
    // It may be of another record that was kept here, and prove nothing now.
    let Some(row) = row_of(&header, catalog)? else {
        return Err(patcher.set_aside("nothing of this content is recorded"));
    };
    let recorded = RecordProof::of(row, catalog)?;
    let (healed, proved_ns) = patcher.carry_out(reader, &header, &recorded)?;
    recorder.record(catalog, &recorded.row, &header.path, &healed, proved_ns)?;
    catalog.commit()?;
    // Under another date than recorded it may have been an edit.
    let may_be_edit = header.mtime_before_ns != header.mtime_after_ns;
    match discards_replaced && !may_be_edit {
        true => patcher.remove_journal(),
        false => drop(replaced.keep_journal(&header.path)?),
    }
    Ok(header.path.display().to_string())
}

/// Returns the row of the record for the content that a journal is to bring
/// about: under the file's name, or under another one if the file was renamed.
fn row_of(header: &JournalHeader, catalog: &mut Catalog) -> HealAttempt<Option<Row>> {
    let is_it = |row: &Row| row.record.digests.blake3.unwrap_or_default() == header.blake3;
    match catalog.get(&header.path)? {
        Some(StoredRow::Sound(row)) => return Ok(Some(row).filter(is_it)),
        Some(StoredRow::Bad(_)) => {
            return Err(HealFailure::Unhealed("its row of the record is bad".to_owned()));
        }
        None if header.blake3 == [0; 32] => return Ok(None),
        None => {}
    }
    let mut after = Vec::new();
    loop {
        let page = catalog.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else { return Ok(None) };
        after = last.path().as_bytes().to_vec();
        for stored in page {
            match stored {
                StoredRow::Sound(row) if is_it(&row) => return Ok(Some(row)),
                _ => {}
            }
        }
    }
}
