//! Commits about once a second, and handles a catalog that can no longer be
//! written or read: a full disk, a medium that fails.

use std::time::{Duration, Instant};

use super::result_recorder::ResultRecorder;
use crate::model::StopReason;
use fsure_core::{Error, Result};

/// Time between commits, which is the most work that a kill or a power failure can cost.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

impl ResultRecorder<'_> {
    pub(super) fn commit_if_due(&mut self) -> Result<()> {
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.catalog.release();
        if self.catalog.is_writing() && self.may_write {
            self.keep_redated()?;
            let noted = self.note_generation();
            self.stop_on_write_error(noted)?;
            let committed = self.catalog.commit();
            self.stop_on_write_error(committed)?;
        }
        self.committed = Instant::now();
        Ok(())
    }

    /// A record that cannot be written is as it was at the last commit. It ends a
    /// run that records, with a report of what was found until then; one that
    /// judges goes on and notes nothing more.
    pub(super) fn stop_on_write_error(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(error @ Error::RecordNotWritten { .. }) if !self.plan.must_write => {
                self.catalog.rollback();
                self.may_write = false;
                let hint = error.hint().unwrap_or_default();
                self.warn(&format!(
                    "{error}: all files are judged, but from here on it is not noted when they \
                     were verified; {hint}"
                ));
                Ok(())
            }
            other => self.survive_end(other),
        }
    }

    /// The same of what ends any run: a catalog that cannot be read any more.
    pub(super) fn survive_end(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(error @ Error::RecordNotWritten { .. }) => {
                self.catalog.rollback();
                self.may_write = false;
                let hint = error.hint().unwrap_or_default();
                self.stop(StopReason::RecordFailed(format!("{error}; {hint}")));
                Ok(())
            }
            other => other,
        }
    }
}
