//! The context of a run that all its drives have in common.

use std::sync::Arc;

use fsure_os::loop_mount::MountArea;

use super::backend::OfflineDrive;
use super::{CrashMonitor, CrashOptions};

/// Context that all drives have in common.
pub(super) struct CrashRun<'a> {
    pub(super) options: &'a CrashOptions,
    pub(super) site: &'a Arc<MountArea>,
    /// Content of a new drive.
    pub(super) base: &'a OfflineDrive,
    pub(super) listener: &'a dyn CrashMonitor,
    /// Share of the whole run that is done when this part begins, 0 to 1.
    pub(super) from: f64,
}
