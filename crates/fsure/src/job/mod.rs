//! Floor 4: one module per command. Each takes a place, options and a
//! monitor, and returns an outcome; none of them prints or depends on a
//! command line.

mod age;
mod compare;
mod compare_side;
mod config;
pub mod crash;
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
mod options;
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
    AccessMode, CrashMonitor, CrashOptions, CrashWorkload, Crashed, Expect, MatrixOptions,
    ask_again_and_again, crash, fail_a_write, matrix,
};
pub use defer::{DeferOptions, defer};
pub use dupes::dupes;
pub use export::{ExportTarget, Exported, export};
pub use flush::{FlushOptions, Measured, Pattern, flush};
pub use heal::{HealOptions, ProtectOptions, heal, protect};
pub use hot::{Advised, Hot, HotOptions, Node, durable_ns, hot, waited_ns};
pub use import::{Imported, import};
pub use log::{History, SignedGeneration, log};
pub use options::{Options, nested_place};
pub use output::{open_output, unless_reader_left, write_output};
pub use pin::{Pinned, ReleaseReason, pin, pinned, unpin, word};
pub use ram_disk::{DestroyOutcome, create_disk, destroy_disk, disks};
pub use recover::{RecoverOptions, Recovery, locate_backup, recover};
pub use scrub::{ScrubOptions, scrub};
pub use serve::{ServeFront, ServeOptions, serve};
pub use sign::{SealOptions, SignOutcome, seal};
pub use speed::{Change, Changes, Data, SpeedOptions, Verified, Verifier, compare_speed, speed};
pub use status::status;
pub use update::{UpdateOptions, update};
pub use verify::verify;
pub use verify_against::verify_against;
