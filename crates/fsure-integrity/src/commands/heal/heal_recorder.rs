//! Updates the record of what was healed.

use std::sync::Arc;

use fsure_os::Stat;
use fsure_os::root_dir::Root;

use super::HEAL;
use super::source_reader::{HealAttempt, OrUnhealed as _};
use crate::catalog::{Catalog, Row};
use crate::model::{Changes, Entry, EntryKind, Record};
use crate::scan::EntryBuilder;
use fsure_core::{Clock, RelPath};

/// Records what one run heals.
pub(super) struct HealRecorder {
    root: Arc<Root>,
    entries: EntryBuilder,
    /// The number of the generation that the run makes, once it makes one.
    generation: Option<u64>,
}

impl HealRecorder {
    pub(super) fn new(root: Arc<Root>) -> Self {
        Self { root, entries: EntryBuilder::default(), generation: None }
    }

    /// Records what is there now under the digests that are recorded, and the time at
    /// which they were verified, if it still is what was `proved`. Durable with the
    /// next commit.
    pub(super) fn record(
        &mut self,
        catalog: &mut Catalog,
        row: &Row,
        path: &RelPath,
        proved: &Stat,
        hashed_ns: i64,
    ) -> HealAttempt<()> {
        let stat = self.root.stat(path.as_bytes()).or_unhealed("examine what was healed")?;
        let looks = |stat: &Stat| (stat.inode, stat.size, stat.mtime_ns);
        if looks(&stat) != looks(proved) {
            // Healed, but changed by another process since: the next run reports what
            // it is now.
            return Ok(());
        }
        let parent = path.parent().unwrap_or_default();
        let device = self.root.stat(parent.as_bytes()).map_or(stat.device, |stat| stat.device);
        let found = self.entries.entry(&self.root, catalog, path, &stat, device)?;
        let was = &row.record;
        let (entry, hashed_ns) = match was.entry.is_undated() {
            // Still only what a list says.
            true => (was.entry.clone(), was.hashed_ns),
            false => {
                // A folder gets its date when all is in it.
                let is_folder = was.entry.kind == EntryKind::Folder;
                let mtime_ns = if is_folder { was.entry.mtime_ns } else { found.mtime_ns };
                (Entry { target: was.entry.target.clone(), mtime_ns, ..found }, hashed_ns)
            }
        };
        let verified_s = Clock::default().now_s();
        let record = Record { entry, hashed_ns, verified_s, gone_s: None, ..was.clone() };
        catalog.put_same_content(row, record)?;
        catalog.findings_mut().forget(path)?;
        // If dates are coarser than the recorded ones, a healed file has
        // another one, and the record claims something new.
        let (number, changes) = (&mut self.generation, Changes::default());
        Ok(catalog.history_mut().note_changes(number, verified_s, HEAL, changes)?)
    }
}
