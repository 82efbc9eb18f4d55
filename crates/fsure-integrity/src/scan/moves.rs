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

use fsure_os::Kind;
use fsure_os::root_dir::{is_denied, is_gone};

use super::Purpose;
use super::entry_builder::known;
use super::evaluator::Evaluator;
use super::result_recorder::PathResult;
use crate::catalog::{
    Ambiguity, AppearedName, Catalog, MissingName, MoveCandidates, PageStart, StoredRow,
    content_key, is_same_inode,
};
use crate::model::{
    Entry, EntryKind, Evidence, Finding, NameMismatch, Observation, RecordState, StopReason,
    Verdict,
};
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result};

/// The reason reported if a file that came or went does not count as moved.
const AMBIGUOUS: &str = "a moved file? Several names that came or went could be it";

/// The reason reported if a name does not count as a recorded one in another spelling.
const SPELLED_ALIKE: &str = "a recorded name in another spelling? Several names could be it";

fn reason_of(doubt: Ambiguity) -> String {
    match doubt {
        Ambiguity::Move => AMBIGUOUS.to_owned(),
        Ambiguity::Spelling => SPELLED_ALIKE.to_owned(),
    }
}

fn norm_of(doubt: Option<Ambiguity>) -> Option<NameMismatch> {
    doubt.filter(|doubt| *doubt == Ambiguity::Spelling).map(|_| NameMismatch::Ambiguous)
}

/// Pairs names that differ in spelling only, with the names that are there as
/// they are recorded to say against it.
pub(super) fn pair_by_spelling(
    waiting: &mut MoveCandidates,
    catalog: &mut Catalog,
    scope: &RelPath,
) -> Result<()> {
    if !waiting.pair_by_spelling()? {
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

/// The names that wait.
pub(super) struct Moves {
    /// `None` if nothing is recorded and so nothing can have moved, and if the
    /// run does not look for new names.
    waiting: Option<MoveCandidates>,
    step: MovePhase,
    /// Algorithm by whose digests contents are compared.
    algorithm: Algorithm,
    /// The last name that was handed out.
    after: Option<RelPath>,
    page: std::vec::IntoIter<AppearedName>,
}

impl Moves {
    /// `sees_all` is true if the run comes by every name there is.
    pub(super) fn new(catalog: &Catalog, sees_all: bool) -> Result<Self> {
        let algorithm = catalog.settings().digests.iter().next();
        Ok(Self {
            waiting: (sees_all && !catalog.is_empty()).then(MoveCandidates::new).transpose()?,
            step: MovePhase::Names,
            algorithm: algorithm.unwrap_or(Algorithm::Blake3),
            after: None,
            page: Vec::new().into_iter(),
        })
    }

    fn gathers(&mut self) -> Option<&mut MoveCandidates> {
        self.waiting.as_mut().filter(|_| self.step == MovePhase::Names)
    }

    /// Returns the digests to compute of a file that is not recorded, in a run
    /// that reads what is recorded: it might be one of those that are missed.
    /// `None` if it need not be read.
    pub(super) fn wants(&self, entry: &Entry) -> Result<Option<AlgorithmSet>> {
        let Some(waiting) = self.waiting.as_ref().filter(|_| self.step == MovePhase::Contents)
        else {
            return Ok(None);
        };
        let is_wanted = waiting.is_wanted(entry.size)?;
        Ok(is_wanted.then(|| AlgorithmSet::of(&[self.algorithm])))
    }

    fn next_arrival(&mut self, with_content: bool) -> Result<Option<AppearedName>> {
        let Some(waiting) = &self.waiting else { return Ok(None) };
        if self.page.len() == 0 {
            self.page = waiting.arrivals(self.after.as_ref(), with_content)?.into_iter();
        }
        let next = self.page.next();
        if let Some(arrival) = &next {
            self.after = Some(arrival.path.clone());
        }
        Ok(next)
    }
}

impl Evaluator<'_> {
    /// Lets a name wait that is there and not recorded. Returns true if it waits.
    pub(super) fn defer_as_move_candidate(
        &mut self,
        path: &RelPath,
        stored: Option<&StoredRow>,
        entry: &Entry,
        device: u64,
    ) -> Result<bool> {
        let granularity_ns =
            super::entry_builder::granularity_ns(self.recorder.catalog, stored, entry);
        if !matches!(known(stored, entry, granularity_ns), RecordState::Nothing) {
            return Ok(false);
        }
        let Some(waiting) = self.moves.gathers() else { return Ok(false) };
        waiting.arrive(path, entry, device)?;
        if let Some(remaining) = self.remaining.as_mut().filter(|_| entry.kind == EntryKind::File) {
            remaining.arrived = remaining.arrived.saturating_add(entry.size);
        }
        Ok(true)
    }

    /// Lets a record wait whose name is gone. Returns true if it waits.
    pub(super) fn defer_missing_as_move_candidate(
        &mut self,
        stored: Option<&StoredRow>,
    ) -> Result<bool> {
        let Some(StoredRow::Sound(row)) = stored else { return Ok(false) };
        // In the tick in which a file was recorded and removed, another one may
        // have got its inode.
        let granularity_ns = self.catalog().granularity_ns(row.record.entry.file_system);
        let is_file = row.record.entry.kind == EntryKind::File;
        let has_identity = !is_file || !row.record.is_racy(granularity_ns);
        let algorithm = self.moves.algorithm;
        let Some(waiting) = self.moves.gathers() else { return Ok(false) };
        let content = content_key(&row.record.entry, &row.record.digests, algorithm);
        waiting.depart(&row.record, has_identity, content)?;
        if let Some(remaining) = self.remaining.as_mut().filter(|_| row.is_live_file()) {
            remaining.departed = remaining.departed.saturating_add(row.record.entry.size);
        }
        Ok(true)
    }

    /// Notes that all names are known. Returns true if any of them might wait.
    pub(super) fn finish_walk(&mut self) -> Result<bool> {
        // Folders that were gone when the walk came to their names.
        for (path, (stored, _)) in std::mem::take(&mut self.folders) {
            self.process_missing(path, stored)?;
        }
        for path in self.folders.keys().cloned().collect::<Vec<_>>() {
            self.settle_folder(&path, None)?;
        }
        self.moves.step = MovePhase::Contents;
        let Some(waiting) = &mut self.moves.waiting else { return Ok(false) };
        pair_by_spelling(waiting, self.recorder.catalog, &self.plan.walk.scope)?;
        waiting.pair_by_identity()?;
        self.recorder.files_gone = Some(waiting.files_gone()?);
        if let Some(remaining) = &mut self.remaining {
            remaining.end_names(waiting.moved_bytes()?);
        }
        Ok(true)
    }

    /// Takes the next name that waits. Returns false if there was none.
    pub(super) fn process_deferred(&mut self) -> Result<bool> {
        let Some(arrival) = self.moves.next_arrival(false)? else { return Ok(false) };
        self.catalog().pin_snapshot()?;
        let AppearedName { path, device, moved_from, doubt, size, .. } = arrival;
        if let Some(remaining) = self.remaining.as_mut().filter(|_| moved_from.is_some()) {
            remaining.moved = remaining.moved.saturating_sub(size);
        }
        let stat = match self.plan.root.stat(path.as_bytes()) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return Ok(true),
            Err(error) => {
                let found =
                    if is_denied(&error) { Observation::Forbidden } else { Observation::Unlisted };
                self.finish_without_entry(path, None, found, Some(error.to_string()))?;
                return Ok(true);
            }
        };
        let is_folder = stat.kind == Kind::Folder;
        let device = if is_folder { stat.device } else { device };
        let entry = self.entry(&path, &stat, device)?;
        let moved = match moved_from {
            Some(from) => self.claim_moved_record(&from, &path, &entry)?,
            None => None,
        };
        let is_moved = moved.is_some();
        let stored = if is_moved { moved } else { self.catalog().get(&path)? };
        let granularity_ns =
            super::entry_builder::granularity_ns(self.recorder.catalog, stored.as_ref(), &entry);
        if !is_moved
            && !matches!(known(stored.as_ref(), &entry, granularity_ns), RecordState::Nothing)
        {
            self.recorder.distrust_change();
        }
        if let Some(doubt) = doubt.filter(|_| !is_moved && self.plan.purpose == Purpose::Status) {
            let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
            let mut settled = PathResult::new(path, stored, Some(entry), verdict);
            settled.reason = Some(reason_of(doubt));
            self.settle(settled)?;
            return Ok(true);
        }
        self.process_entry(path.clone(), stored, &stat, device)?;
        if is_folder {
            self.settle_folder(&path, None)?;
        }
        Ok(true)
    }

    /// The record that is gone under its own name, if the entry is still the
    /// one that it is the pair of.
    fn claim_moved_record(
        &mut self,
        from: &RelPath,
        path: &RelPath,
        entry: &Entry,
    ) -> Result<Option<StoredRow>> {
        let stored = self.catalog().get(from)?;
        let Some(StoredRow::Sound(row)) = &stored else { return Ok(None) };
        let then = &row.record.entry;
        let is_respelled = then.kind == entry.kind && NameMismatch::between(from, path).is_some();
        if row.is_gone() || !(is_respelled || is_same_inode(then, entry)) {
            return Ok(None);
        }
        if let Some(waiting) = &mut self.moves.waiting {
            waiting.claim(from)?;
        }
        Ok(stored)
    }

    /// Settles a path, and reports if its spelling leaves it in doubt.
    pub(super) fn settle(&mut self, mut settled: PathResult) -> Result<()> {
        let may_be_another = matches!(settled.verdict, Verdict::New | Verdict::Missing);
        if let Some(waiting) = self.moves.waiting.as_ref().filter(|_| may_be_another)
            && waiting.is_doubtfully_spelled(&settled.path)?
        {
            settled.norm = Some(NameMismatch::Ambiguous);
            settled.reason.get_or_insert_with(|| SPELLED_ALIKE.to_owned());
        }
        self.recorder.finish_path(settled)
    }

    /// Settles what was read: at once, or with those that may be found to have
    /// moved.
    pub(super) fn settle_read(&mut self, mut settled: PathResult) -> Result<()> {
        let content = settled.content.as_ref().filter(|_| settled.unreadable.is_empty());
        let (Verdict::New, Some(content), Some(entry)) = (settled.verdict, content, &settled.entry)
        else {
            return self.settle(settled);
        };
        let key = content_key(entry, &content.digests, self.moves.algorithm);
        let (Some(key), Some(_)) = (key, self.moves.wants(entry)?) else {
            return self.settle(settled);
        };
        let Some(is_recorded) = self.recorder.write_and_count(&mut settled)? else { return Ok(()) };
        match &mut self.moves.waiting {
            Some(waiting) => waiting.found(&settled.path, &key, is_recorded),
            None => Ok(()),
        }
    }

    /// Settles all that still waits.
    pub(super) fn finish_deferred(&mut self) -> Result<()> {
        let Some(waiting) = &mut self.moves.waiting else { return Ok(()) };
        waiting.pair_by_content()?;
        self.moves.after = None;
        while !self.is_to_stop()?
            && let Some(arrival) = self.moves.next_arrival(true)?
        {
            self.settle_found(arrival)?;
        }
        let mut after = None;
        while !self.is_to_stop()? {
            let Some(waiting) = &self.moves.waiting else { break };
            let page = waiting.departures(after.as_ref())?;
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            self.catalog().pin_snapshot()?;
            for MissingName { path, doubt, .. } in page {
                let stored = self.catalog().get(&path)?;
                if !matches!(&stored, Some(StoredRow::Sound(row)) if !row.is_gone()) {
                    self.recorder.distrust_change();
                }
                let reason = doubt.map(reason_of);
                self.finish_without_entry(path, stored, Observation::Absent, reason)?;
                if self.is_stopped() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_to_stop(&mut self) -> Result<bool> {
        self.commit_if_due()?;
        if let Some(code) = self.recorder.monitor.stop_requested() {
            self.stop(StopReason::Interrupted(code));
        }
        Ok(self.is_stopped())
    }

    /// Reports a file whose content was found, which might be that of a missed one.
    fn settle_found(&mut self, arrival: AppearedName) -> Result<()> {
        let AppearedName { path, device, moved_from, doubt, is_recorded, .. } = arrival;
        let found = match self.plan.root.stat(path.as_bytes()) {
            Ok(stat) => Some(self.entry(&path, &stat, device)?),
            Err(_) => None,
        };
        let mut finding = Finding::bare(path.clone(), EntryKind::File, Verdict::New, None);
        finding.found = found;
        finding.recorded_now = is_recorded;
        finding.reason = doubt.map(reason_of);
        finding.norm = norm_of(doubt);
        let stored = match &moved_from {
            Some(from) => self.catalog().get(from)?,
            None => None,
        };
        if let (Some(from), Some(StoredRow::Sound(row))) = (moved_from, stored) {
            if let Some(waiting) = &mut self.moves.waiting {
                waiting.claim(&from)?;
            }
            // Its old name's goes with its old record.
            finding.meta = self.recorder.moved_beside(&from, &path)?;
            if is_recorded {
                self.recorder.transfer_record(&row, &path)?;
            }
            finding.verdict = Verdict::Moved;
            finding.reason = None;
            finding.norm = NameMismatch::between(&from, &finding.path);
            finding.moved_from = Some(from);
            finding.recorded = Some(row.record.entry);
        }
        self.recorder.publish(finding);
        Ok(())
    }
}
