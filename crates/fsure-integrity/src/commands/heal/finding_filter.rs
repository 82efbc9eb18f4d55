//! Collects from a run the findings that may have to be healed.

use std::sync::{Mutex, PoisonError};

use crate::model::{CurrentFile, Finding, HealResult, Progress, ScanMonitor, Verdict};
use fsure_core::{ExitCode, Monitor};

/// A monitor that passes on everything, and keeps the findings that may be healed.
pub(super) struct FindingFilter<'a> {
    monitor: &'a dyn ScanMonitor,
    findings: Mutex<Vec<Finding>>,
}

impl<'a> FindingFilter<'a> {
    pub(super) fn new(monitor: &'a dyn ScanMonitor) -> Self {
        Self { monitor, findings: Mutex::default() }
    }

    /// Returns the findings that were kept, in the order of paths: a folder comes
    /// before what is in it.
    pub(super) fn findings(self) -> Vec<Finding> {
        let mut findings = self.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
        findings.sort_by(|one, other| one.path.cmp(&other.path));
        findings
    }
}

fn is_kept(verdict: Verdict) -> bool {
    verdict.is_suspicious()
        || matches!(verdict, Verdict::Unreadable | Verdict::Missing | Verdict::Flaky)
}

impl Monitor for FindingFilter<'_> {
    fn warn(&self, message: &str) {
        self.monitor.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.monitor.stop_requested()
    }
}

impl ScanMonitor for FindingFilter<'_> {
    fn progress(&self, progress: &Progress, current: Option<CurrentFile<'_>>) {
        self.monitor.progress(progress, current);
    }

    fn finding(&self, finding: &Finding) {
        if is_kept(finding.verdict) {
            let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
            findings.push(finding.clone());
        }
        self.monitor.finding(finding);
    }

    fn remedy(&self, remedy: &HealResult) {
        self.monitor.remedy(remedy);
    }
}
