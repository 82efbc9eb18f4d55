//! Floor 1: plain data and pure functions, each word with one meaning.

mod age_histogram;
pub mod block_hash;
mod clock;
mod comparison;
mod device_readers;
pub mod digest;
mod duplicates;
mod entry;
mod error;
mod exit_code;
mod finding;
pub mod flush_verdict;
mod heal_result;
mod history;
mod known_damage;
mod metadata;
mod monitor;
mod normalization;
mod outcome;
mod parity_outcome;
mod path;
pub mod placement_advice;
mod random;
mod record;
mod scan_monitor;
mod scrub_summary;
mod shell;
mod sidecar;
mod stall;
mod text;
pub mod units;
pub mod verdict;

pub use age_histogram::{AgeBucket, AgeHistogram, FilesAndBytes};
pub use clock::{Clock, ElapsedTimer};
pub use comparison::{ComparedPath, Comparison, Difference};
pub use device_readers::DeviceReaders;
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use duplicates::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub use error::{Error, IoContext, Result, timeout_error};
pub use exit_code::ExitCode;
pub use finding::{Basis, ByteRange, Finding, merge_ranges, push_range};
pub use heal_result::{HealResult, HealSource, HealStatus, HealSummary};
pub use history::{Changes, Generation, SignatureInfo, SignedStatement, Verification};
pub use known_damage::KnownDamage;
pub use metadata::{
    Metadata, MetadataChange, MetadataField, MetadataFields, MetadataValue, RecordedValue,
};
pub use monitor::{Monitor, NullMonitor, Step, StepMonitor};
pub use normalization::{NameMismatch, folded, nfc};
pub use outcome::{
    BytesByReadMode, CountsByKind, ExcludedRecords, GRAVE_FINDINGS_MAX, Offline, Outcome,
    StopReason, ToAccept, VerdictCounts,
};
pub use parity_outcome::{ParityUpdate, ProtectOutcome};
pub use path::{DisplayPath, RelPath, escape, json_path, json_path_and_bytes};
pub use random::Random;
pub use record::{Record, is_in_the_future};
pub use scan_monitor::{Progress, ScanMonitor};
pub use scrub_summary::ScrubSummary;
pub use shell::{shell_command, shell_quoted};
pub use sidecar::{
    FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, SidecarCounts, SidecarKind, SidecarKinds,
    is_carrier,
};
pub use stall::StallDetector;
pub use text::{count, safe};
pub use verdict::{DateRules, Evidence, Observation, RecordState, Verdict, is_same_date, judge};
