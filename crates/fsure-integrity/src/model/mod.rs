//! Plain data and pure functions of integrity: entries, records, verdicts, outcomes.

mod age_histogram;
mod comparison;
mod duplicates;
mod entry;
mod finding;
mod folder_ages;
mod heal_result;
mod history;
mod known_damage;
mod metadata;
mod name_mismatch;
mod outcome;
mod parity_outcome;
mod record;
mod scan_monitor;
mod scopes;
mod scrub_summary;
mod sidecar;
pub mod verdict;
mod verdict_counts;

pub use age_histogram::{AgeBucket, AgeHistogram, FilesAndBytes};
pub use comparison::{ComparedPath, Comparison, Difference};
pub use duplicates::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub use finding::{Basis, ByteRange, Finding, merge_ranges, push_range};
pub use folder_ages::{AmountsByAge, FolderAges};
pub use heal_result::{HealResult, HealSource, HealStatus, HealSummary};
pub use history::{Changes, Generation, SignatureInfo, SignedStatement, Verification};
pub use known_damage::KnownDamage;
pub use metadata::{
    Metadata, MetadataChange, MetadataField, MetadataFields, MetadataValue, RecordedValue,
};
pub use name_mismatch::{NameMismatch, folded, nfc};
pub use outcome::{
    AddedDigests, Allowed, BytesByReadMode, ExcludedRecords, GRAVE_FINDINGS_MAX, Offline, Outcome,
    StopReason, ToAccept,
};
pub use parity_outcome::{ParityUpdate, ProtectOutcome};
pub use record::{Record, is_in_the_future};
pub use scan_monitor::{CurrentFile, OWN_PROGRESS_MIN, Progress, ScanMonitor, percent};
pub use scopes::Scopes;
pub use scrub_summary::ScrubSummary;
pub use sidecar::{
    FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, SidecarCounts, SidecarKind, SidecarKinds,
    is_carrier,
};
pub use verdict::{DateRules, Evidence, Observation, RecordState, Verdict, is_same_date, judge};
pub use verdict_counts::{CountsByKind, VerdictCounts};
