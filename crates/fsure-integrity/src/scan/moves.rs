//! Files under another name than the recorded one. Names come in the order of
//! paths, so that a name that is gone and the one it was changed for are met at
//! different times: what is new and what is gone waits until all names are
//! known. Then, in three steps:
//!
//! 1. What came and went with the same inode, size and date is one file, where
//!    there is one of each. From there on it is judged by the record of its old
//!    name as if it had kept it: `update` does not read it if all of its stat is
//!    as recorded, which it is where a folder above it was renamed.
//! 2. What is left of the new files is read where that is due. A content whose
//!    size is that of a file still missed waits once more.
//! 3. What came and went with the same content is one file, likewise. The rest
//!    is new here and missing there.
//!
//! A name that is recorded is judged by its own record and by no other: two
//! files that changed names are two changed files.

use super::path_result::PathResult;
use crate::catalog::{
    Ambiguity, AppearedName, Catalog, MissingName, MoveCandidates, PageStart, Row, StoredRow,
    content_key, is_same_inode,
};
use crate::model::{Entry, EntryKind, NameMismatch, Verdict};
use fsure_core::{Algorithm, AlgorithmSet, Digests, RelPath, Result};

/// The reason reported if a file that came or went does not count as moved.
const AMBIGUOUS: &str = "a moved file? Several names that came or went could be it";

/// The reason reported if a name mismatch has several possible recorded names.
const AMBIGUOUS_NAME: &str = "a recorded name in another spelling? Several names could be it";

/// Returns the reason, for the user, of a doubt about a name.
pub(super) fn reason_of(doubt: Ambiguity) -> String {
    match doubt {
        Ambiguity::Move => AMBIGUOUS.to_owned(),
        Ambiguity::NameMismatch => AMBIGUOUS_NAME.to_owned(),
    }
}

pub(super) fn name_mismatch_of(doubt: Option<Ambiguity>) -> Option<NameMismatch> {
    doubt.filter(|doubt| *doubt == Ambiguity::NameMismatch).map(|_| NameMismatch::Ambiguous)
}

/// Pairs names with a name mismatch, with the names that are there as
/// they are recorded to say against it.
pub(super) fn pair_name_mismatches(
    waiting: &mut MoveCandidates,
    catalog: &mut Catalog,
    scope: &RelPath,
) -> Result<()> {
    if !waiting.pair_name_mismatches()? {
        return Ok(());
    }
    let (first, end) = scope.below();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let from = after.as_deref().map_or(PageStart::From(&first), PageStart::After);
        let page = catalog.page(&from, end.as_deref())?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.path().as_bytes().to_vec());
        for stored in page {
            if !matches!(&stored, StoredRow::Sound(row) if row.is_gone()) {
                waiting.contest(stored.path())?;
            }
        }
    }
}

/// The progress of a run in learning all names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MovePhase {
    /// They come one by one.
    Names,
    /// All are known; what waits is judged.
    Contents,
}

/// The names that wait, and the pairs that are found among them.
pub(super) struct MoveTracker {
    /// `None` if nothing is recorded and so nothing can have moved, and if the
    /// run does not look for new names.
    waiting: Option<MoveCandidates>,
    phase: MovePhase,
    /// Algorithm by whose digests contents are compared.
    algorithm: Algorithm,
    /// The last name that was handed out.
    after: Option<RelPath>,
    page: std::vec::IntoIter<AppearedName>,
}

impl MoveTracker {
    /// `sees_all` is true if the run comes by every name there is.
    pub(super) fn new(catalog: &Catalog, sees_all: bool) -> Result<Self> {
        let algorithm = catalog.settings().digests.iter().next();
        Ok(Self {
            waiting: (sees_all && !catalog.is_empty()).then(MoveCandidates::new).transpose()?,
            phase: MovePhase::Names,
            algorithm: algorithm.unwrap_or(Algorithm::Blake3),
            after: None,
            page: Vec::new().into_iter(),
        })
    }

    fn gathering(&mut self) -> Option<&mut MoveCandidates> {
        self.waiting.as_mut().filter(|_| self.phase == MovePhase::Names)
    }

    /// Returns true while names that are not recorded wait until all names are known.
    pub(super) fn names_wait(&self) -> bool {
        self.waiting.is_some() && self.phase == MovePhase::Names
    }

    /// Lets a name wait that is there and not recorded.
    pub(super) fn defer_appeared(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        device: u64,
    ) -> Result<()> {
        self.gathering().map_or(Ok(()), |waiting| waiting.arrive(path, entry, device))
    }

    /// Lets a record wait whose name is gone. Returns true if it waits.
    pub(super) fn defer_missing(&mut self, row: &Row, granularity_ns: i64) -> Result<bool> {
        // In the tick in which a file was recorded and removed, another one may
        // have got its inode.
        let is_file = row.record.entry.kind == EntryKind::File;
        let has_identity = !is_file || !row.record.is_racy(granularity_ns);
        let content = self.content_key(&row.record.entry, &row.record.digests);
        let Some(waiting) = self.gathering() else { return Ok(false) };
        waiting.depart(&row.record, has_identity, content)?;
        Ok(true)
    }

    /// Pairs the names by inode and by name mismatch, now that all are known. Returns the number
    /// of files that are gone nevertheless; `None` if no name can wait.
    pub(super) fn pair_names(
        &mut self,
        catalog: &mut Catalog,
        scope: &RelPath,
    ) -> Result<Option<u64>> {
        self.phase = MovePhase::Contents;
        let Some(waiting) = &mut self.waiting else { return Ok(None) };
        pair_name_mismatches(waiting, catalog, scope)?;
        waiting.pair_by_identity()?;
        Ok(Some(waiting.files_gone()?))
    }

    /// Returns the bytes of the files that are known to have moved.
    pub(super) fn moved_bytes(&self) -> Result<u64> {
        self.waiting.as_ref().map_or(Ok(0), MoveCandidates::moved_bytes)
    }

    /// Pairs by content what is left, and begins anew with the first name. Returns false if
    /// no name can wait.
    pub(super) fn pair_contents(&mut self) -> Result<bool> {
        let Some(waiting) = &mut self.waiting else { return Ok(false) };
        waiting.pair_by_content()?;
        self.after = None;
        Ok(true)
    }

    /// Returns the digests to compute of a file that is not recorded, in a run
    /// that reads what is recorded: it might be one of those that are missed.
    /// `None` if it need not be read.
    pub(super) fn wants(&self, entry: &Entry) -> Result<Option<AlgorithmSet>> {
        let Some(waiting) = self.waiting.as_ref().filter(|_| self.phase == MovePhase::Contents)
        else {
            return Ok(None);
        };
        let is_wanted = waiting.is_wanted(entry.size)?;
        Ok(is_wanted.then(|| AlgorithmSet::of(&[self.algorithm])))
    }

    /// Returns the key of a content that a missed file may be found by, if it has one.
    pub(super) fn content_key(&self, entry: &Entry, digests: &Digests) -> Option<Vec<u8>> {
        content_key(entry, digests, self.algorithm)
    }

    /// Lets a name wait whose content was read, and may be that of a missed file.
    pub(super) fn defer_content(
        &mut self,
        path: &RelPath,
        content: &[u8],
        is_recorded: bool,
    ) -> Result<()> {
        match &mut self.waiting {
            Some(waiting) => waiting.found(path, content, is_recorded),
            None => Ok(()),
        }
    }

    /// Returns the next name that waits; with its content, if that was read.
    pub(super) fn next_appeared(&mut self, with_content: bool) -> Result<Option<AppearedName>> {
        let Some(waiting) = &self.waiting else { return Ok(None) };
        if self.page.len() == 0 {
            self.page = waiting.arrivals(self.after.as_ref(), with_content)?.into_iter();
        }
        let next = self.page.next();
        if let Some(appeared) = &next {
            self.after = Some(appeared.path.clone());
        }
        Ok(next)
    }

    /// Returns the next of the names that are gone and that nothing was found for.
    pub(super) fn missing_page(&self, after: Option<&RelPath>) -> Result<Vec<MissingName>> {
        self.waiting.as_ref().map_or(Ok(Vec::new()), |waiting| waiting.departures(after))
    }

    /// Notes that the file of a name that is gone was found.
    pub(super) fn claim(&mut self, from: &RelPath) -> Result<()> {
        self.waiting.as_mut().map_or(Ok(()), |waiting| waiting.claim(from))
    }

    /// Takes the record that is gone under its own name, if the entry is still the
    /// one that it is the pair of.
    pub(super) fn claim_record(
        &mut self,
        catalog: &mut Catalog,
        from: &RelPath,
        path: &RelPath,
        entry: &Entry,
    ) -> Result<Option<StoredRow>> {
        let stored = catalog.get(from)?;
        let Some(StoredRow::Sound(row)) = &stored else { return Ok(None) };
        let then = &row.record.entry;
        let has_name_mismatch =
            then.kind == entry.kind && NameMismatch::between(from, path).is_some();
        if row.is_gone() || !(has_name_mismatch || is_same_inode(then, entry)) {
            return Ok(None);
        }
        self.claim(from)?;
        Ok(stored)
    }

    /// Flags a result if its path has a name mismatch with several others.
    pub(super) fn flag_ambiguous_name(&self, result: &mut PathResult) -> Result<()> {
        let may_be_another = matches!(result.verdict, Verdict::New | Verdict::Missing);
        if let Some(waiting) = self.waiting.as_ref().filter(|_| may_be_another)
            && waiting.is_ambiguous_name(&result.path)?
        {
            result.name_mismatch = Some(NameMismatch::Ambiguous);
            result.reason.get_or_insert_with(|| AMBIGUOUS_NAME.to_owned());
        }
        Ok(())
    }
}
