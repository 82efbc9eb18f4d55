//! Floor 1: plain data and pure functions, each word with one meaning.

pub mod advice;
mod ages;
mod clock;
mod difference;
pub mod digest;
mod duplicate;
pub mod durability;
mod entry;
mod error;
mod exit;
mod finding;
mod generation;
mod known_damage;
mod layout;
mod metadata;
mod monitor;
mod outcome;
mod path;
mod protected;
mod record;
mod remedy;
mod scrubbed;
mod shell;
mod silence;
mod spelling;
pub mod units;
pub mod verdict;

pub use ages::{AgeBucket, AgeHistogram, FilesAndBytes};
pub use clock::Clock;
pub(crate) use clock::ElapsedTimer;
pub use difference::{ComparedPath, Comparison, Difference};
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use duplicate::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub(crate) use error::timeout_error;
pub use error::{Error, IoContext, Result};
pub use exit::ExitCode;
pub use finding::{Basis, ByteRange, Finding, merge_ranges, push_range};
pub use generation::{Changes, Generation, SignatureInfo, SignedStatement, Verification};
pub use known_damage::KnownDamage;
pub use layout::{
    FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, SidecarCounts, SidecarKind, SidecarKinds,
    is_carrier,
};
pub use metadata::{
    Metadata, MetadataChange, MetadataField, MetadataFields, MetadataValue, RecordedValue,
};
pub use monitor::{Monitor, NullMonitor, Progress};
pub use outcome::{
    BytesByReadMode, CountsByKind, ExcludedRecords, GRAVE_FINDINGS_MAX, Offline, Outcome,
    StopReason, ToAccept, VerdictCounts,
};
pub use path::{DisplayPath, RelPath, escape, json_path, json_path_and_bytes};
pub use protected::{ParityUpdate, ProtectOutcome};
pub use record::{Record, is_in_the_future};
pub use remedy::{HealResult, HealSource, HealStatus, HealSummary};
pub use scrubbed::ScrubSummary;
pub use shell::{shell_command, shell_quoted};
pub(crate) use silence::StallDetector;
pub use spelling::{NameMismatch, folded, nfc};
pub use verdict::{DateRules, Evidence, Observation, RecordState, Verdict, is_same_date, judge};
