//! Floor 4: one module per command. Each takes a place, options and a
//! monitor, and returns an outcome; none of them prints or depends on a
//! command line.

mod age;
mod compare;
mod compare_side;
mod config;
mod crash;
mod cshatag_source;
mod defer;
pub mod doctor;
mod dupes;
mod environment;
mod export;
mod flush;
mod heal;
mod hot;
mod import;
mod import_crc32;
mod list_catalog;
mod list_records;
mod log;
mod open_root;
mod output;
mod pin;
pub mod ram;
mod ram_disk;
mod recover;
mod scrub;
mod serve;
mod sidecar_io;
mod sign;
mod snapshot;
mod speed;
mod status;
mod sync_sidecars;
mod update;
mod verify;
mod verify_against;
mod verify_sidecars;
pub mod workload;

pub use age::age;
pub use compare::{CompareSide, compare};
pub use config::UserConfig;
pub use crash::{
    AccessMode, CrashListener, CrashOptions, Crashed, MatrixOptions, ask_again_and_again, crash,
    fail_a_write, matrix,
};
pub use defer::{DeferOptions, defer};
pub use dupes::dupes;
pub use export::{ExportTarget, Exported, export};
pub use flush::{FlushOptions, Measured, Pattern, flush};
pub use heal::{HealOptions, ProtectOptions, heal, protect};
pub use hot::{Advised, Hot, HotOptions, Node, durable_ns, hot, waited_ns};
pub use import::{Imported, import};
pub use log::{History, SignedGeneration, log};
pub use output::{open_output, unless_reader_left, write_output};
pub use pin::{Pinned, ReleaseReason, pin, pinned, unpin, word};
pub use ram_disk::{DestroyOutcome, create_disk, destroy_disk, disks};
pub use recover::{RecoverOptions, Recovery, locate_backup, recover};
pub use scrub::{ScrubOptions, scrub};
pub use serve::{ServeFront, ServeOptions, serve};
pub use sign::{SealOptions, SignOutcome, seal};
pub use speed::{Change, Changes, Data, SpeedOptions, compare_speed, speed};
pub use status::status;
pub use update::{UpdateOptions, update};
pub use verify::verify;
pub use verify_against::verify_against;

use std::path::PathBuf;

use crate::catalog::{OWN_CATALOG, RootLocation};
use crate::model::{Clock, RelPath};
use crate::scan::{ContentSource, IoOptions};
use crate::trust::SignedBy;

/// Options that all jobs over a root have in common.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Patterns to leave out, in the manner of `.gitignore`.
    pub exclude: Vec<String>,
    /// Patterns that this user leaves out in every run.
    pub exclude_always: Vec<String>,
    /// True if other file systems below the root are part of it; `None` for the
    /// setting of the last `update`.
    pub cross_file_systems: Option<bool>,
    /// Source that content is read from; `None` for the default of the job: `verify`
    /// reads from the medium, `update` reads from memory what is there.
    pub reads_from: Option<ContentSource>,
    /// Parallelism, rate limit and timeout of reading.
    pub effort: IoOptions,
    /// Key that must have signed the record for it to be believed.
    pub signed_by: Option<SignedBy>,
    /// Folders in which a copy of the backup of each record is kept.
    pub backup_folders: Vec<PathBuf>,
    /// Go on even if the root seems to be offline.
    pub force: bool,
    /// Report paths that are ok to the monitor, too.
    pub tell_ok: bool,
    /// Clock by which times are read.
    pub clock: Clock,
}

/// Returns the place of a root that was found below another.
pub fn nested_place(outer: &RootLocation, nested: &RelPath) -> RootLocation {
    let root = outer.root.join(fsure_os::path::from_bytes(nested.as_bytes()));
    RootLocation { catalog: root.join(OWN_CATALOG), root, scope: RelPath::root() }
}
