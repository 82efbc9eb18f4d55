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
pub(super) fn note_found(catalog: &mut Catalog, result: &PathResult, clock: &Clock) -> Result<()> {
    let was_looked_at = result.kind() == EntryKind::File && result.basis != Basis::KnownDamage;
    // A file under another name than recorded goes with its row.
    let path = result.row().map_or(&result.path, |row| &row.record.path);
    match RecheckPriority::of(result.verdict) {
        _ if !was_looked_at => Ok(()),
        Some(_) => {
            let at_s = clock.now_s();
            catalog.findings_mut().note(path, at_s, result.verdict)
        }
        None if result.was_read => catalog.findings_mut().forget(path),
        None => Ok(()),
    }
}

/// The files of known damage that a scrub has judged, so that it reports the others as well.
#[derive(Default)]
pub(super) struct JudgedDamage(HashSet<RelPath>);

impl JudgedDamage {
    pub(super) fn add(&mut self, result: &PathResult) {
        if result.verdict.is_damage() || known_damage(result.stored.as_ref()).is_some() {
            self.0.insert(result.path.clone());
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
            let result = PathResult::new(path, stored, None, Verdict::Ok).remember_damage();
            if result.basis == Basis::KnownDamage {
                unjudged.push(result);
            }
        }
        Ok(Some((last, unjudged)))
    }
}
