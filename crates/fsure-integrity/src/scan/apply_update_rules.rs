//! The rules of `update` for one finding that may be recorded: what the
//! catalog is to hold afterwards.

use super::file_read::ReadContent;
use super::result_recorder::{PathResult, ResultRecorder, seconds};
use crate::catalog::{Row, StoredRow};
use crate::model::{Entry, EntryKind, Record, Verdict};
use fsure_core::block_hash::BlockValue;

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
}

fn is_same_content(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved | Verdict::Flaky)
}

/// Returns true if a folder is the recorded one, whatever its dates are.
fn is_same_folder(then: &Entry, now: &Entry) -> bool {
    (then.file_system, then.inode) == (now.file_system, now.inode)
}

impl ResultRecorder<'_> {
    /// Returns the change to write for a finding that may be recorded; `None`
    /// if there is nothing to write, or nothing that can be written.
    pub(super) fn decide(&mut self, settled: &PathResult) -> Option<CatalogChange> {
        let is_bad = matches!(settled.stored, Some(StoredRow::Bad(_)));
        let entry = match &settled.entry {
            Some(entry) if entry.kind != EntryKind::Special => entry,
            // It might be there: it could not be checked.
            None if !settled.may_be_forgotten => return None,
            // Gone, or no longer anything that is recorded.
            _ if is_bad => return Some(CatalogChange::Delete),
            _ => return settled.row().map(|row| self.tombstone(row)),
        };
        let content = settled.content.as_deref().filter(|_| settled.unreadable.is_empty());
        match (entry.kind, content, settled.row()) {
            // Known by its inode and stat, or by its name in another spelling:
            // nothing that is recorded changes.
            (EntryKind::File, None, Some(row))
                if settled.moved_row().is_some() && is_same_content(settled.verdict) =>
            {
                let (path, entry) = (settled.path.clone(), entry.clone());
                Some(CatalogChange::Same(Record { path, entry, ..row.record.clone() }))
            }
            (EntryKind::File, None, _) => None,
            (EntryKind::File, Some(content), Some(row)) if is_same_content(settled.verdict) => {
                Some(self.same_content(settled, row, entry, content))
            }
            (EntryKind::File, Some(content), _) => {
                let blocks = content.values();
                Some(CatalogChange::Other(self.record(settled, entry, Some(content)), blocks))
            }
            // A folder's dates say nothing that its names do not say; its inode, in
            // whose place another one may be mounted.
            (kind, _, Some(row))
                if settled.verdict == Verdict::Ok
                    && settled.norm.is_none()
                    && !row.is_gone()
                    && (kind == EntryKind::Folder && is_same_folder(&row.record.entry, entry)
                        || row.record.entry == *entry) =>
            {
                None
            }
            _ => Some(CatalogChange::Other(self.record(settled, entry, None), Vec::new())),
        }
    }

    fn tombstone(&self, row: &Row) -> CatalogChange {
        CatalogChange::Same(Record { gone_s: Some(self.now_s), ..row.record.clone() })
    }

    /// The record of a content that is the recorded one: with digests it did
    /// not have before, and with the stat of now.
    fn same_content(
        &mut self,
        settled: &PathResult,
        row: &Row,
        entry: &Entry,
        content: &ReadContent,
    ) -> CatalogChange {
        let values = content.values();
        // A list that was damaged is written anew.
        let is_intact = self.catalog.blocks(row).is_ok_and(|kept| kept == values);
        let mut digests = row.record.digests.clone();
        for algorithm in content.digests.algorithms().iter() {
            let value = content.digests.get(algorithm).expect("it is in the set");
            digests.insert(algorithm, value);
        }
        let record = Record {
            path: settled.path.clone(),
            entry: entry.clone(),
            digests,
            hashed_ns: content.hashed_ns,
            verified_s: seconds(content.hashed_ns),
            gone_s: None,
        };
        if is_intact { CatalogChange::Same(record) } else { CatalogChange::Other(record, values) }
    }

    fn record(&self, settled: &PathResult, entry: &Entry, content: Option<&ReadContent>) -> Record {
        Record {
            path: settled.path.clone(),
            entry: entry.clone(),
            digests: content.map(|content| content.digests.clone()).unwrap_or_default(),
            hashed_ns: content.map_or(self.started_ns, |content| content.hashed_ns),
            verified_s: self.now_s,
            gone_s: None,
        }
    }
}
