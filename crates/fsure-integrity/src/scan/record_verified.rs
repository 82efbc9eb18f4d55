//! Writes the results of a run that judges: the time at which a content was
//! last seen to be as recorded, and the files that were checked and were not.

use super::Purpose;
use super::result_recorder::{PathResult, ResultRecorder, seconds};
use crate::catalog::{UnfinishedBlocks, VerifiedRange};
use crate::model::{Entry, Record, Verdict};
use fsure_core::{RelPath, Result};

impl ResultRecorder<'_> {
    /// Notes a verdict of `verify` or of a scrub for the next run.
    pub(super) fn write_verified(&mut self, settled: &PathResult) -> Result<()> {
        let Some(row) = settled.row().filter(|row| !row.is_gone()) else { return Ok(()) };
        if !self.precheck_once()? {
            return Ok(());
        }
        self.note_found(settled)?;
        if !self.may_write {
            return Ok(());
        }
        let is_seen_well =
            matches!(settled.verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved);
        let Some(content) = settled.content.as_ref().filter(|_| is_seen_well) else {
            return Ok(());
        };
        let verified_s = settled.verified_s.unwrap_or(seconds(content.hashed_ns));
        let record = Record { verified_s, ..row.record.clone() };
        let written = self.catalog.put_same_content(row, record);
        self.stop_on_write_error(written)?;
        if row.has_blocks() && self.has_parts && self.may_write {
            let forgotten = self.catalog.set_parts(&row.record.path, &row.record.entry, &[], &[]);
            self.stop_on_write_error(forgotten)?;
        }
        Ok(())
    }

    /// Keeps the values of a part of a large file.
    pub(super) fn keep(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        let is_update = matches!(self.plan.purpose, Purpose::Update(_));
        if !is_update || !self.may_write || !self.precheck_once()? {
            return Ok(());
        }
        let kept = self.catalog.put_unfinished(path, entry, blocks);
        self.stop_on_write_error(kept)
    }

    /// Keeps which parts of a large file are verified.
    pub(super) fn keep_parts(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blake3: &[u8],
        parts: &[VerifiedRange],
    ) -> Result<()> {
        if !self.may_write || !self.precheck_once()? {
            return Ok(());
        }
        self.has_parts = true;
        let kept = self.catalog.set_parts(path, entry, blake3, parts);
        self.stop_on_write_error(kept)
    }

    /// Notes that a file differed at a first reading, so that it comes first
    /// the next time.
    pub(super) fn keep_undecided(&mut self, path: &RelPath) -> Result<()> {
        if !self.may_write {
            return Ok(());
        }
        let noted = self.catalog.note_undecided(path, self.plan.clock.now_s());
        self.stop_on_write_error(noted)
    }

    /// Notes that the time was over before a file was read to its end.
    pub(super) fn keep_cut_off(&mut self, path: &RelPath) -> Result<()> {
        self.cut_off.insert(path.clone());
        if !self.may_write {
            return Ok(());
        }
        let at_s = self.plan.clock.now_s();
        let noted = self.catalog.note_cut_off(path, at_s);
        self.stop_on_write_error(noted)
    }
}
