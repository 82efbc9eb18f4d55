//! Options that all commands over a root have in common.

use std::path::PathBuf;

use crate::catalog::{OWN_CATALOG, RootLocation};
use crate::model::Allowed;
use crate::scan::{ContentSource, IoOptions};
use crate::trust::SignedBy;
use fsure_core::{Clock, RelPath};

/// The manner in which a run takes the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordAccess {
    /// Work on a copy of the record that is gone with the process, and write nothing else.
    pub is_dry_run: bool,
    /// End at once, rather than wait, if another process works with it.
    pub is_impatient: bool,
}

/// Options that all commands over a root have in common.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The manner in which the run takes the record.
    pub access: RecordAccess,
    /// Patterns to leave out, in the manner of `.gitignore`.
    pub exclude: Vec<String>,
    /// Patterns that this user leaves out in every run.
    pub exclude_always: Vec<String>,
    /// True if other file systems below the root are part of it; `None` for the
    /// setting of the last `update`.
    pub cross_file_systems: Option<bool>,
    /// Source that content is read from; `None` for the default of the command: `verify`
    /// reads from the medium, `update` reads from memory what is there.
    pub reads_from: Option<ContentSource>,
    /// Parallelism, rate limit and timeout of reading.
    pub effort: IoOptions,
    /// Key that must have signed the record for it to be believed.
    pub signed_by: Option<SignedBy>,
    /// Folders in which a copy of the backup of each record is kept.
    pub backup_folders: Vec<PathBuf>,
    /// States in which the run goes on although the root seems to be offline.
    pub allowed: Allowed,
    /// Report paths that are ok to the monitor, too.
    pub report_ok: bool,
    /// Clock by which times are read.
    pub clock: Clock,
}

/// Returns the place of a root that was found below another.
pub fn nested_place(outer: &RootLocation, nested: &RelPath) -> RootLocation {
    let root = outer.root.join(fsure_os::path::from_bytes(nested.as_bytes()));
    RootLocation { catalog: root.join(OWN_CATALOG), root, scope: RelPath::root(), parts: None }
}
