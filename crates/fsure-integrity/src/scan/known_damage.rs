//! Damage that runs remember: noted when it is found, reported by runs that do
//! not read the file, and settled by the recorded content or by the user alone.

use super::result_recorder::{PathResult, ResultRecorder};
use crate::catalog::{RecheckPriority, StoredRow};
use crate::model::{Basis, EntryKind, KnownDamage, Verdict};
use fsure_core::{RelPath, Result};

/// Damage that an earlier run found in the file of a row.
pub(super) fn known_damage(stored: Option<&StoredRow>) -> Option<KnownDamage> {
    match stored {
        Some(StoredRow::Sound(row)) => row.known_damage(),
        _ => None,
    }
}

impl PathResult {
    /// Gives a file that this run does not read the verdict of the run that did:
    /// an unchanged stat says nothing of a content that is known to be damaged.
    pub(super) fn remember_damage(mut self) -> Self {
        let is_well_by_stat =
            matches!(self.verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved);
        if let Some(known) = known_damage(self.stored.as_ref()).filter(|_| is_well_by_stat) {
            self.verdict = known.verdict;
            self.basis = Basis::KnownDamage;
        }
        self
    }

    /// Returns true if the user has to accept what was found before it is
    /// recorded: the verdict is suspicious, or explains no damage that was
    /// there before.
    pub(super) fn needs_acceptance(&self) -> bool {
        let is_edit = matches!(self.verdict, Verdict::Modified | Verdict::Reverted);
        !self.verdict.is_recordable() || (is_edit && self.open_damage().is_some())
    }
}

impl ResultRecorder<'_> {
    /// Notes what was found of a file that was checked, or forgets what was
    /// found before.
    pub(super) fn note_found(&mut self, settled: &PathResult) -> Result<()> {
        let was_looked_at =
            settled.kind() == EntryKind::File && settled.basis != Basis::KnownDamage;
        // A file under another name than recorded goes with its row.
        let path = settled.row().map_or(&settled.path, |row| &row.record.path);
        let noted = match RecheckPriority::of(settled.verdict) {
            _ if !was_looked_at => return Ok(()),
            Some(_) => {
                let at_s = self.plan.clock.now_s();
                self.catalog.note_finding(path, at_s, settled.verdict)
            }
            None if settled.was_read => self.catalog.forget_finding(path),
            None => return Ok(()),
        };
        self.stop_on_write_error(noted)
    }

    /// Reports the known damage below the scope that a scrub did not come to.
    pub(super) fn report_known_damage(&mut self) -> Result<()> {
        let scope = &self.plan.walk.scope;
        let mut after: Option<RelPath> = None;
        loop {
            let page = self.catalog.known_damage_page(scope, after.as_ref())?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for (path, _) in page {
                if self.judged_damage.contains(&path) {
                    continue;
                }
                let stored = self.catalog.get(&path)?;
                let settled = PathResult::new(path, stored, None, Verdict::Ok).remember_damage();
                if settled.basis == Basis::KnownDamage {
                    self.report(&settled, false);
                }
            }
        }
    }
}
