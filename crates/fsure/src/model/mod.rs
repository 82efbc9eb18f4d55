//! Floor 1: plain data and pure functions, each word with one meaning.

mod age_histogram;
mod clock;
mod comparison;
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
mod record;
mod scrub_summary;
mod shell;
mod sidecar;
mod stall;
pub mod units;
pub mod verdict;

pub use age_histogram::{AgeBucket, AgeHistogram, FilesAndBytes};
pub use clock::Clock;
pub(crate) use clock::ElapsedTimer;
pub use comparison::{ComparedPath, Comparison, Difference};
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use duplicates::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub(crate) use error::timeout_error;
pub use error::{Error, IoContext, Result};
pub use exit_code::ExitCode;
pub use finding::{Basis, ByteRange, Finding, merge_ranges, push_range};
pub use heal_result::{HealResult, HealSource, HealStatus, HealSummary};
pub use history::{Changes, Generation, SignatureInfo, SignedStatement, Verification};
pub use known_damage::KnownDamage;
pub use metadata::{
    Metadata, MetadataChange, MetadataField, MetadataFields, MetadataValue, RecordedValue,
};
pub use monitor::{Monitor, NullMonitor, Progress};
pub use normalization::{NameMismatch, folded, nfc};
pub use outcome::{
    BytesByReadMode, CountsByKind, ExcludedRecords, GRAVE_FINDINGS_MAX, Offline, Outcome,
    StopReason, ToAccept, VerdictCounts,
};
pub use parity_outcome::{ParityUpdate, ProtectOutcome};
pub use path::{DisplayPath, RelPath, escape, json_path, json_path_and_bytes};
pub use record::{Record, is_in_the_future};
pub use scrub_summary::ScrubSummary;
pub use shell::{shell_command, shell_quoted};
pub use sidecar::{
    FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, SidecarCounts, SidecarKind, SidecarKinds,
    is_carrier,
};
pub(crate) use stall::StallDetector;
pub use verdict::{DateRules, Evidence, Observation, RecordState, Verdict, is_same_date, judge};
