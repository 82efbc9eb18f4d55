//! Progress of a heal, or of the keeping of recovery data. Files are read more than
//! once, so the bytes that were read only count as progress within one file.

use std::time::{Duration, Instant};

use crate::model::{CurrentFile, OWN_PROGRESS_MIN, Progress, ScanMonitor, percent};
use fsure_core::RelPath;

const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Counts, and reports the progress at intervals.
pub(super) struct HealProgress<'a> {
    monitor: &'a dyn ScanMonitor,
    progress: Progress,
    current: RelPath,
    /// Bytes of the files that are done.
    done: u64,
    /// Size of the current one, and what was read for it.
    size: u64,
    read: u64,
    reported: Instant,
}

impl<'a> HealProgress<'a> {
    pub(super) fn new(monitor: &'a dyn ScanMonitor) -> Self {
        Self {
            monitor,
            progress: Progress { total_is_known: true, ..Progress::default() },
            current: RelPath::root(),
            done: 0,
            size: 0,
            read: 0,
            reported: Instant::now(),
        }
    }

    /// Sets how much there is to do, in bytes.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.progress.bytes_total = bytes;
    }

    /// Goes on to the next file.
    pub(super) fn begin(&mut self, path: &RelPath, size: u64) {
        self.done += std::mem::replace(&mut self.size, size);
        self.read = 0;
        self.current = path.clone();
        self.progress.files += 1;
        self.report();
    }

    /// Counts bytes that were read of the current file.
    pub(super) fn read(&mut self, bytes: u64) {
        self.read += bytes;
        self.progress.bytes_hashed += bytes;
        self.report();
    }

    fn report(&mut self) {
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.progress.bytes_judged = self.done + self.read.min(self.size);
            let share = percent(self.read, self.size);
            let percent = (self.size >= OWN_PROGRESS_MIN).then_some(share);
            let current = CurrentFile { path: &self.current, percent };
            self.monitor.progress(&self.progress, Some(current));
            self.reported = Instant::now();
        }
    }
}
