//! Checks that a run makes before it writes anything or reports anything as
//! missing: that the record is what was written, and that the root is there.

use std::sync::Arc;

use fsure_os::Kind;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::is_gone;

use super::entry_builder::{EntryBuilder, granularity_ns, known};
use super::moves::pair_by_spelling;
use super::result_recorder::{PathResult, ResultRecorder};
use super::{AbortReason, Accept, Purpose};
use crate::catalog::{Audit, MoveCandidates, PageStart, SampledFile, StoredRow};
use crate::model::{Record, RecordState, Verdict, is_same_date};
use crate::tree::{Walk, WalkEvent};
use fsure_core::{RelPath, Result};

/// The state of a thousand evenly spread files.
#[derive(Default)]
struct Sample {
    files: usize,
    gone: usize,
    there: usize,
    /// Those of the recorded size and another date.
    redated: usize,
}

impl Sample {
    /// Returns true if so many of the sampled files are such that these might
    /// be half of all files: if they are half of all, fewer than 35 % of a
    /// thousand has a probability below 1e-20.
    fn may_be_half(such: usize, files: usize) -> bool {
        such * 100 > files * 35
    }

    fn may_be_deserted(&self) -> bool {
        Self::may_be_half(self.gone, self.files)
    }

    fn may_be_redated(&self) -> bool {
        Self::may_be_half(self.redated, self.there)
    }
}

impl ResultRecorder<'_> {
    /// Checks once, before anything is written or reported as missing, the
    /// record as a whole and that the root is there at all. Returns true if the
    /// run may go on.
    pub(super) fn precheck_once(&mut self) -> Result<bool> {
        if self.is_gate_open {
            return Ok(!self.is_halted);
        }
        self.is_gate_open = true;
        let mut audit = self.catalog.audit()?;
        let damaged_pages = if self.may_write { self.catalog.check_pages()? } else { None };
        if damaged_pages.is_some() {
            audit.objection = damaged_pages;
            self.reject_record(&audit);
        } else if !audit.is_clean() && !self.is_accepted(&audit) {
            self.reject_record(&audit);
        } else if audit.objection.is_some() {
            self.accept_losses(&audit)?;
        }
        self.has_parts = self.catalog.has_parts()?;
        let sample = self.look_at_sample(&audit.sample);
        if !self.is_halted && !self.plan.force {
            let missing = match self.files_gone {
                Some(gone) => gone,
                None if sample.may_be_deserted() => self.count_gone()?,
                None => 0,
            };
            self.halt_if_mostly_missing(missing);
        }
        self.begin_redated(sample.may_be_redated())?;
        self.bad_rows = audit.bad_rows;
        Ok(!self.is_halted)
    }

    /// Returns true if the user accepts everything that is wrong with the
    /// record. A lost row has no path by which it could be named.
    fn is_accepted(&self, audit: &Audit) -> bool {
        let Purpose::Update(rules) = &self.plan.purpose else {
            return false;
        };
        let rows_are_lost = audit.bad_rows.is_empty() || audit.rows_are_lost;
        match &rules.accept {
            Accept::All => true,
            accept => !rows_are_lost && audit.bad_rows.iter().all(|path| accept.covers(path)),
        }
    }

    /// The record is not what was written. A run that judges goes on and
    /// writes nothing; one that records has nothing left to do.
    fn reject_record(&mut self, audit: &Audit) {
        let count = audit.bad_rows.len();
        let why = audit.objection.clone().unwrap_or_else(|| {
            format!(
                "{count} of its rows {} own seal",
                if count == 1 { "fails its" } else { "fail their" }
            )
        });
        self.may_write = false;
        if !matches!(self.plan.purpose, Purpose::Update(_)) {
            self.outcome.record_untrusted = Some(why);
            return;
        }
        self.halt(AbortReason::Untrusted(why));
        for path in &audit.bad_rows {
            if !self.told_bad.contains(path) {
                let stored = Some(StoredRow::Bad(path.clone()));
                self.report(
                    &PathResult::new(path.clone(), stored, None, Verdict::RecordBad),
                    false,
                );
            }
        }
    }

    /// Takes the rows there are for the whole record, and leaves a note of it
    /// if rows were lost without a trace.
    fn accept_losses(&mut self, audit: &Audit) -> Result<()> {
        self.catalog.recount_at_commit();
        if audit.rows_are_lost || audit.bad_rows.is_empty() {
            let (none, name) = (RelPath::root(), Verdict::RecordBad.name());
            self.catalog.note_accepted(self.now_s, &none, name, None, None)?;
        }
        Ok(())
    }

    /// Stats the sampled files of the scope.
    fn look_at_sample(&self, files: &[SampledFile]) -> Sample {
        let scope = &self.plan.walk.scope;
        let mut sample = Sample { files: files.len(), ..Sample::default() };
        for SampledFile { path, entry } in files.iter().filter(|file| file.path.is_within(scope)) {
            match self.plan.root.stat(path.as_bytes()) {
                Err(error) => sample.gone += usize::from(is_gone(&error)),
                Ok(stat) => {
                    sample.there += 1;
                    let granularity_ns = self.catalog.granularity_ns(entry.file_system);
                    let is_same_date = entry.is_undated()
                        || is_same_date(entry.mtime_ns, stat.mtime_ns, granularity_ns);
                    sample.redated += usize::from(!is_same_date && stat.size == entry.size);
                }
            }
        }
        sample
    }

    fn is_gone(&self, path: &RelPath) -> bool {
        matches!(self.plan.root.stat(path.as_bytes()), Err(error) if is_gone(&error))
    }

    /// Counts the files that are gone. If these are too many, it subtracts
    /// those that are there under another name by their inode or in another
    /// spelling: a renamed folder is not an unplugged disk, nor is a copy made
    /// on macOS. That takes a walk, which is made only if it matters.
    fn count_gone(&mut self) -> Result<u64> {
        let missing = self.count_missing(&mut |_| Ok(()))?;
        if !self.is_mostly_missing(missing) {
            return Ok(missing);
        }
        let mut waiting = MoveCandidates::new()?;
        self.count_missing(&mut |record| waiting.depart(record, true, None))?;
        let mut options = self.plan.walk.clone();
        options.borders.places = LocateFiles::No;
        options.listers = 1;
        let mut entries = EntryBuilder::default();
        for step in Walk::start(Arc::clone(&self.plan.root), options)? {
            if self.monitor.stop_requested().is_some() {
                break;
            }
            let WalkEvent::Entry(path, stat, device) = step? else { continue };
            if stat.kind != Kind::File {
                continue;
            }
            let entry = entries.entry(&self.plan.root, self.catalog, &path, &stat, device)?;
            let stored = self.catalog.get(&path)?;
            let granularity_ns = granularity_ns(self.catalog, stored.as_ref(), &entry);
            if matches!(known(stored.as_ref(), &entry, granularity_ns), RecordState::Nothing) {
                waiting.arrive(&path, &entry, device)?;
            }
        }
        pair_by_spelling(&mut waiting, self.catalog, &self.plan.walk.scope)?;
        waiting.pair_by_identity()?;
        let gone = waiting.files_gone()?;
        self.files_elsewhere = missing.saturating_sub(gone);
        Ok(gone)
    }

    fn count_missing(&mut self, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<u64> {
        let mut after = Vec::new();
        let mut missing = 0;
        loop {
            let page = self.catalog.page(&PageStart::After(&after), None)?;
            let Some(last) = page.last() else {
                return Ok(missing);
            };
            after = last.path().as_bytes().to_vec();
            let files = page.iter().filter_map(|stored| match stored {
                StoredRow::Sound(row)
                    if row.is_live_file() && row.record.path.is_within(&self.plan.walk.scope) =>
                {
                    Some(&row.record)
                }
                _ => None,
            });
            for record in files.filter(|record| self.is_gone(&record.path)) {
                missing += 1;
                each(record)?;
            }
        }
    }
}
