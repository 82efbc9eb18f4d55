//! Checks that a run makes before it writes anything or reports anything as
//! missing: that the record is what was written, and that the root is there.

use std::sync::Arc;

use fsure_os::Kind;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::is_gone;

use super::entry_builder::{EntryBuilder, granularity_ns, known};
use super::missing_files::MissingFiles;
use super::moves::pair_name_mismatches;
use super::{Accept, Purpose, ScanPlan};
use crate::catalog::{Audit, Catalog, MoveCandidates, PageStart, SampledFile, StoredRow};
use crate::model::{Record, RecordState, ScanMonitor, is_same_date};
use crate::tree::{Walk, WalkEvent};
use fsure_core::{RelPath, Result};

/// The state of a thousand evenly spread files.
#[derive(Default)]
pub(super) struct Sample {
    files: usize,
    gone: usize,
    there: usize,
    /// Those of the recorded size and another date.
    redated: usize,
}

impl Sample {
    /// Stats the sampled files of the scopes.
    pub(super) fn look(plan: &ScanPlan, catalog: &Catalog, files: &[SampledFile]) -> Self {
        let mut sample = Self { files: files.len(), ..Self::default() };
        for SampledFile { path, entry } in
            files.iter().filter(|file| plan.scopes.contains(&file.path))
        {
            match plan.root.stat(path.as_bytes()) {
                Err(error) => sample.gone += usize::from(is_gone(&error)),
                Ok(stat) => {
                    sample.there += 1;
                    let granularity_ns = catalog.granularity_ns(entry.file_system);
                    let is_same_date = entry.is_undated()
                        || is_same_date(entry.mtime_ns, stat.mtime_ns, granularity_ns);
                    sample.redated += usize::from(!is_same_date && stat.size == entry.size);
                }
            }
        }
        sample
    }

    /// Returns true if so many of the sampled files are such that these might
    /// be half of all files: if they are half of all, fewer than 35 % of a
    /// thousand has a probability below 1e-20.
    fn may_be_half(such: usize, files: usize) -> bool {
        such * 100 > files * 35
    }

    pub(super) fn may_be_deserted(&self) -> bool {
        Self::may_be_half(self.gone, self.files)
    }

    pub(super) fn may_be_redated(&self) -> bool {
        Self::may_be_half(self.redated, self.there)
    }
}

/// Returns true if the user accepts everything that is wrong with the
/// record. A lost row has no path by which it could be named.
pub(super) fn is_accepted(purpose: &Purpose, audit: &Audit) -> bool {
    let Purpose::Update(rules) = purpose else {
        return false;
    };
    match &rules.accept {
        Accept::All => true,
        accept => !has_lost_rows(audit) && audit.bad_rows.iter().all(|path| accept.covers(path)),
    }
}

/// Returns true if rows are wrong or lost that leave no path by which they could be named.
pub(super) fn has_lost_rows(audit: &Audit) -> bool {
    audit.bad_rows.is_empty() || audit.rows_are_lost
}

/// Returns the reason not to trust a record that fails its audit.
pub(super) fn objection(audit: &Audit) -> String {
    let count = audit.bad_rows.len();
    audit.objection.clone().unwrap_or_else(|| {
        format!(
            "{count} of its rows {} own seal",
            if count == 1 { "fails its" } else { "fail their" }
        )
    })
}

/// The files that are gone, as they are counted before the run.
pub(super) struct GoneFiles {
    pub(super) gone: u64,
    /// Those not counted because they are there under another name.
    pub(super) elsewhere: u64,
}

/// Counts the files that are gone. If these are too many, it subtracts
/// those that are there under another name by their inode or by a name
/// mismatch: a renamed folder is not an unplugged disk, nor is a copy made
/// on macOS. That takes a walk, which is made only if it matters.
pub(super) fn count_gone(
    plan: &ScanPlan,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
    files: &MissingFiles,
) -> Result<GoneFiles> {
    let missing = count_missing(plan, catalog, &mut |_| Ok(()))?;
    if !files.is_most(missing) {
        return Ok(GoneFiles { gone: missing, elsewhere: 0 });
    }
    let mut waiting = MoveCandidates::new()?;
    count_missing(plan, catalog, &mut |record| waiting.depart(record, true, None))?;
    let mut entries = EntryBuilder::default();
    for mut options in plan.walks() {
        options.borders.places = LocateFiles::No;
        options.listers = 1;
        for step in Walk::start(Arc::clone(&plan.root), options)? {
            if monitor.stop_requested().is_some() {
                break;
            }
            let WalkEvent::Entry(path, stat, device) = step? else { continue };
            if stat.kind != Kind::File {
                continue;
            }
            let entry = entries.entry(&plan.root, catalog, &path, &stat, device)?;
            let stored = catalog.get(&path)?;
            let granularity_ns = granularity_ns(catalog, stored.as_ref(), &entry);
            if matches!(known(stored.as_ref(), &entry, granularity_ns), RecordState::Nothing) {
                waiting.arrive(&path, &entry, device)?;
            }
        }
    }
    pair_name_mismatches(&mut waiting, catalog, &plan.scopes.around())?;
    waiting.pair_by_identity()?;
    let gone = waiting.files_gone()?;
    Ok(GoneFiles { gone, elsewhere: missing.saturating_sub(gone) })
}

fn count_missing(
    plan: &ScanPlan,
    catalog: &mut Catalog,
    each: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<u64> {
    let mut after = Vec::new();
    let mut missing = 0;
    loop {
        let page = catalog.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else {
            return Ok(missing);
        };
        after = last.path().as_bytes().to_vec();
        let files = page.iter().filter_map(|stored| match stored {
            StoredRow::Sound(row)
                if row.is_live_file() && plan.scopes.contains(&row.record.path) =>
            {
                Some(&row.record)
            }
            _ => None,
        });
        for record in files.filter(|record| is_path_gone(plan, &record.path)) {
            missing += 1;
            each(record)?;
        }
    }
}

fn is_path_gone(plan: &ScanPlan, path: &RelPath) -> bool {
    matches!(plan.root.stat(path.as_bytes()), Err(error) if is_gone(&error))
}
