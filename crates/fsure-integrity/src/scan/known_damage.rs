//! Damage that runs remember: noted when it is found, reported by runs that do
//! not read the file, and settled by the recorded content or by the user alone.

use std::collections::HashSet;

use super::path_result::PathResult;
use crate::catalog::{Catalog, RecheckPriority, StoredRow};
use crate::model::{Basis, EntryKind, KnownDamage, Verdict};
use fsure_core::{Clock, RelPath, Result};

/// Damage that an earlier run found in the file of a row.
pub(super) fn known_damage(stored: Option<&StoredRow>) -> Option<KnownDamage> {
    match stored {
        Some(StoredRow::Sound(row)) => row.known_damage(),
        _ => None,
    }
}

/// Notes what was found of a file that was checked, or forgets what was
/// found before.
pub(super) fn note_found(catalog: &mut Catalog, settled: &PathResult, clock: &Clock) -> Result<()> {
    let was_looked_at = settled.kind() == EntryKind::File && settled.basis != Basis::KnownDamage;
    // A file under another name than recorded goes with its row.
    let path = settled.row().map_or(&settled.path, |row| &row.record.path);
    match RecheckPriority::of(settled.verdict) {
        _ if !was_looked_at => Ok(()),
        Some(_) => {
            let at_s = clock.now_s();
            catalog.findings_mut().note(path, at_s, settled.verdict)
        }
        None if settled.was_read => catalog.findings_mut().forget(path),
        None => Ok(()),
    }
}

/// The files of known damage that a scrub has judged, so that it reports the others as well.
#[derive(Default)]
pub(super) struct JudgedDamage(HashSet<RelPath>);

impl JudgedDamage {
    pub(super) fn add(&mut self, settled: &PathResult) {
        if settled.verdict.is_damage() || known_damage(settled.stored.as_ref()).is_some() {
            self.0.insert(settled.path.clone());
        }
    }

    /// Returns the next of the files below a scope that are known to be damaged and were
    /// not judged, and the path to go on behind; `None` at the end.
    pub(super) fn next_unjudged(
        &self,
        catalog: &mut Catalog,
        scope: &RelPath,
        after: Option<&RelPath>,
    ) -> Result<Option<(RelPath, Vec<PathResult>)>> {
        let page = catalog.findings().damage_page(scope, after)?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        let (last, mut unjudged) = (last.clone(), Vec::new());
        for (path, _) in page {
            if self.0.contains(&path) {
                continue;
            }
            let stored = catalog.get(&path)?;
            let settled = PathResult::new(path, stored, None, Verdict::Ok).remember_damage();
            if settled.basis == Basis::KnownDamage {
                unjudged.push(settled);
            }
        }
        Ok(Some((last, unjudged)))
    }
}
