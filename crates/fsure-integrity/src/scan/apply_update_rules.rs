//! The rules of `update` for one finding that may be recorded: what the
//! catalog is to hold afterwards.

use super::path_result::PathResult;
use super::read_request::{KEEP_PARTS_MIN, ReadContent};
use super::run_time::{RunTime, seconds};
use crate::catalog::{Catalog, Row, StoredRow, VerificationDates};
use crate::model::{Entry, EntryKind, Record, Verdict};
use fsure_core::block_hash::BlockValue;
use fsure_core::{AlgorithmSet, Error, Result};

/// A change to the catalog.
pub(super) enum CatalogChange {
    /// The same content as the row there is.
    Same(Record),
    /// Another content, with its block values.
    Other(Record, Vec<BlockValue>),
    /// Nothing.
    Delete,
}

impl CatalogChange {
    pub(super) fn record(&self) -> Option<&Record> {
        match self {
            Self::Same(record) | Self::Other(record, _) => Some(record),
            Self::Delete => None,
        }
    }

    /// Returns the dates of reading if these are all that differs from the row of the path.
    pub(super) fn seen_again(&self, row: Option<&Row>) -> Option<VerificationDates> {
        match (self, row) {
            (Self::Same(record), Some(row)) if row.is_seen_again(record) => {
                let (hashed_ns, verified_s) = (Some(record.hashed_ns), record.verified_s);
                Some(VerificationDates { hashed_ns, verified_s })
            }
            _ => None,
        }
    }

    /// Returns the digests that the record of an unchanged content gets in addition.
    pub(super) fn added_digests(&self, result: &PathResult) -> AlgorithmSet {
        match (self.record(), result.row()) {
            (Some(record), Some(row)) if is_same_content(result.verdict) => {
                record.digests.algorithms().without(row.record.digests.algorithms())
            }
            _ => AlgorithmSet::default(),
        }
    }

    /// Writes the change for a finding to the catalog.
    pub(super) fn write(self, catalog: &mut Catalog, result: &PathResult) -> Result<()> {
        let is_bad = matches!(result.stored, Some(StoredRow::Bad(_)));
        match (self, result.row()) {
            (Self::Same(record), Some(row)) if result.moved_row().is_some() => {
                catalog.put_moved(row, record, None)?;
            }
            (Self::Other(record, blocks), Some(row)) if result.moved_row().is_some() => {
                catalog.put_moved(row, record, Some(&blocks))?;
            }
            (Self::Delete, _) => return catalog.delete(&result.path),
            (Self::Same(record), Some(row)) => catalog.put_same_content(row, record)?,
            (Self::Other(record, blocks), _) if is_bad => {
                catalog.put_over_bad(record, &blocks)?;
            }
            (Self::Other(record, blocks), row) => catalog.put(row, record, &blocks)?,
            (Self::Same(_), None) => {
                return Err(Error::Internal("the same content as no record".to_owned()));
            }
        }
        if result.size() >= KEEP_PARTS_MIN {
            catalog.unfinished_files_mut().forget(&result.path)?;
        }
        Ok(())
    }
}

fn is_same_content(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved | Verdict::Flaky)
}

/// Returns true if a folder is the recorded one, whatever its dates are.
fn is_same_folder(then: &Entry, now: &Entry) -> bool {
    (then.file_system, then.inode) == (now.file_system, now.inode)
}

/// Returns the change to write for a finding that may be recorded; `None`
/// if there is nothing to write, or nothing that can be written.
pub(super) fn decide(
    catalog: &mut Catalog,
    result: &PathResult,
    time: RunTime,
) -> Option<CatalogChange> {
    let is_bad = matches!(result.stored, Some(StoredRow::Bad(_)));
    let entry = match &result.entry {
        Some(entry) if entry.kind != EntryKind::Special => entry,
        // It might be there: it could not be checked.
        None if !result.may_be_forgotten => return None,
        // Gone, or no longer anything that is recorded.
        _ if is_bad => return Some(CatalogChange::Delete),
        _ => return result.row().map(|row| tombstone(row, time)),
    };
    let content = result.content.as_deref().filter(|_| result.unreadable.is_empty());
    match (entry.kind, content, result.row()) {
        // Known by its inode and stat, or by a name mismatch:
        // nothing that is recorded changes.
        (EntryKind::File, None, Some(row))
            if result.moved_row().is_some() && is_same_content(result.verdict) =>
        {
            let (path, entry) = (result.path.clone(), entry.clone());
            Some(CatalogChange::Same(Record { path, entry, ..row.record.clone() }))
        }
        (EntryKind::File, None, _) => None,
        (EntryKind::File, Some(content), Some(row)) if is_same_content(result.verdict) => {
            Some(same_content(catalog, result, row, entry, content))
        }
        (EntryKind::File, Some(content), _) => {
            let blocks = content.values();
            Some(CatalogChange::Other(record(result, entry, Some(content), time), blocks))
        }
        // A folder's dates say nothing that its names do not say; its inode, in
        // whose place another one may be mounted.
        (kind, _, Some(row))
            if result.verdict == Verdict::Ok
                && result.name_mismatch.is_none()
                && !row.is_gone()
                && (kind == EntryKind::Folder && is_same_folder(&row.record.entry, entry)
                    || row.record.entry == *entry) =>
        {
            None
        }
        _ => Some(CatalogChange::Other(record(result, entry, None, time), Vec::new())),
    }
}

fn tombstone(row: &Row, time: RunTime) -> CatalogChange {
    CatalogChange::Same(Record { gone_s: Some(time.now_s()), ..row.record.clone() })
}

/// The record of a content that is the recorded one: with digests it did
/// not have before, and with the stat of now.
fn same_content(
    catalog: &mut Catalog,
    result: &PathResult,
    row: &Row,
    entry: &Entry,
    content: &ReadContent,
) -> CatalogChange {
    let values = content.values();
    // A list that was damaged is written anew.
    let is_intact = catalog.block_values().of(row).is_ok_and(|kept| kept == values);
    let mut digests = row.record.digests.clone();
    for algorithm in content.digests.algorithms().iter() {
        let value = content.digests.get(algorithm).expect("it is in the set");
        digests.insert(algorithm, value);
    }
    let record = Record {
        path: result.path.clone(),
        entry: entry.clone(),
        digests,
        hashed_ns: content.hashed_ns,
        verified_s: seconds(content.hashed_ns),
        gone_s: None,
    };
    if is_intact { CatalogChange::Same(record) } else { CatalogChange::Other(record, values) }
}

fn record(
    result: &PathResult,
    entry: &Entry,
    content: Option<&ReadContent>,
    time: RunTime,
) -> Record {
    Record {
        path: result.path.clone(),
        entry: entry.clone(),
        digests: content.map(|content| content.digests.clone()).unwrap_or_default(),
        hashed_ns: content.map_or(time.started_ns(), |content| content.hashed_ns),
        verified_s: time.now_s(),
        gone_s: None,
    }
}
