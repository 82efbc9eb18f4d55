//! `import` of a list that has nothing but CRC-32 values. A record that rests on
//! 32 bits would call one damaged file in four billion sound, and every forged
//! one. So the files are read once: the CRC proves the content, and what is
//! recorded is the content's own digests. It is an `update` that only completes
//! records, of a catalog that is gone afterwards; from there, what was proven is
//! taken over.

use std::collections::HashMap;

use super::Options;
use super::import::{Import, command_at};
use super::list_catalog::{ListCatalog, expected};
use super::list_records::ListProblem;
use super::open_root::plan;
use crate::catalog::{Catalog, PageStart, Row, StoredRow};
use crate::manifest::ManifestSource;
use crate::model::{
    Allowed, CurrentFile, FileSystemId, Finding, Progress, Record, ScanMonitor, StopReason, Verdict,
};
use crate::scan::{Purpose, UpdateRules, scan};
use fsure_core::{Algorithm, Digests, Error, ExitCode, Monitor, RelPath, Result, timeout_error};

impl Import<'_> {
    /// Reads every file that the list names and records those that are as it
    /// says.
    pub(super) fn prove(
        &mut self,
        source: &ManifestSource,
        options: &Options,
        monitor: &dyn ScanMonitor,
    ) -> Result<()> {
        let digests = self.catalog.settings().digests;
        let ListCatalog { catalog: mut proven, troubles, .. } =
            expected(self.place, self.open, source, digests, monitor)?;
        troubles.warn_of_elsewhere(source, &command_at, monitor);
        let rules = UpdateRules { only_completes: true, ..UpdateRules::new(digests) };
        let mut plan = plan(self.place, self.open, &proven, options, Purpose::Update(rules), true)?;
        plan.is_list = true;
        plan.allowed = Allowed::ALL;
        let outcome = scan(&plan, &mut proven, &ListedFilesMonitor(monitor))?;
        if let Some(why) = outcome.record_untrusted {
            return Err(Error::Internal(format!("the list as a catalog: {why}")));
        }
        self.imported.malformed += troubles.malformed;
        self.imported.unusable += troubles.unusable;
        self.imported.is_proven = true;
        self.imported.mismatched = outcome.files.count(Verdict::is_suspicious);
        self.imported.unread = outcome.files.count(Verdict::is_unread);
        self.imported.missing = outcome.files.of(Verdict::Missing);
        // Also of a run that was cut off: what it has proven is proven.
        self.take_over(&mut proven, monitor)?;
        match outcome.stopped {
            None => Ok(()),
            Some(StopReason::Interrupted(code)) => {
                self.catalog.commit()?;
                Err(Error::Interrupted(code))
            }
            Some(StopReason::StorageSilent(timeout)) => {
                monitor.warn(&timeout_error(timeout).to_string());
                self.imported.unread += 1;
                Ok(())
            }
            Some(StopReason::RecordFailed(why)) => Err(Error::Internal(why)),
        }
    }

    /// Records what was proven.
    fn take_over(&mut self, proven: &mut Catalog, monitor: &dyn ScanMonitor) -> Result<()> {
        let mut file_systems = HashMap::new();
        let mut after: Option<RelPath> = None;
        loop {
            let from = after
                .as_ref()
                .map_or(PageStart::From(b""), |path| PageStart::After(path.as_bytes()));
            let page = proven.page(&from, None)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.path().clone());
            for stored in page {
                let StoredRow::Sound(row) = stored else { continue };
                if row.record.hashed_ns == 0 {
                    continue;
                }
                let then = row.record.entry.file_system;
                let now = *file_systems.entry(then).or_insert_with(|| {
                    let known = proven.file_system(then);
                    let anchor = known.anchor_inode.unwrap_or_default();
                    self.catalog.file_system_of(known.volume.clone(), anchor)
                });
                let blocks = proven.block_values().of(&row)?;
                if let Err(refusal) = self.take_proven(&row, now, &blocks)? {
                    monitor.warn(&refusal.reason);
                }
            }
        }
    }

    fn take_proven(
        &mut self,
        row: &Row,
        file_system: FileSystemId,
        blocks: &[[u8; 32]],
    ) -> Result<std::result::Result<(), ListProblem>> {
        let mut digests = Digests::default();
        for algorithm in Algorithm::RECORDED {
            if let Some(value) = row.record.digests.get(algorithm) {
                digests.insert(algorithm, value);
            }
        }
        let mut record = Record { digests, ..row.record.clone() };
        record.entry.file_system = file_system;
        match self.catalog.get(&record.path)? {
            None => {
                self.imported.recorded += 1;
                self.record_folders(&record.path)?;
                self.catalog.put(None, record, blocks).map(Ok)
            }
            Some(StoredRow::Sound(row)) => self.compare(&row, &record.digests),
            // The record was sound when it was looked through, before the scan.
            Some(StoredRow::Bad(path)) => Err(Error::Internal(format!(
                "the record of {} failed its seal during the import",
                path.display()
            ))),
        }
    }
}

/// Passes on findings about files in the list only: the user did not ask about others.
struct ListedFilesMonitor<'a>(&'a dyn ScanMonitor);

impl Monitor for ListedFilesMonitor<'_> {
    fn warn(&self, message: &str) {
        self.0.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.0.stop_requested()
    }
}

impl ScanMonitor for ListedFilesMonitor<'_> {
    fn progress(&self, progress: &Progress, current: Option<CurrentFile<'_>>) {
        self.0.progress(progress, current);
    }

    fn finding(&self, finding: &Finding) {
        if finding.verdict != Verdict::New {
            self.0.finding(finding);
        }
    }
}
