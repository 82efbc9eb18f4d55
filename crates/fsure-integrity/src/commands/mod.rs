//! One module per command, and what several of them share. A command takes a location, options
//! and a monitor, and returns an outcome; none prints.

mod age;
mod compare;
mod compare_side;
mod config;
mod cshatag_source;
mod damaged_catalogs;
mod dry_run;
mod dupes;
mod export;
mod heal;
mod import;
mod import_crc32;
mod list_catalog;
mod list_records;
mod log;
mod open_root;
mod options;
mod recover;
mod scrub;
mod sidecar_io;
mod sign;
mod snapshot;
mod status;
mod sync_sidecars;
mod update;
mod verify;
mod verify_against;
mod verify_sidecars;

pub use age::age;
pub use compare::compare;
pub use compare_side::CompareSide;
pub use config::UserConfig;
pub use dupes::dupes;
pub use export::{ExportTarget, Exported, export};
pub use heal::{HealOptions, ProtectOptions, heal, protect};
pub use import::{Imported, import};
pub use log::{History, SignedGeneration, last_generation, log};
pub use options::{Options, RecordAccess, nested_place};
pub use recover::{CatalogRepair, RecoverOptions, locate_backup, recover};
pub use scrub::{ScrubOptions, scrub};
pub use sign::{SealOptions, SignOutcome, seal};
pub use status::status;
pub use update::{UpdateOptions, update};
pub use verify::verify;
pub use verify_against::verify_against;
