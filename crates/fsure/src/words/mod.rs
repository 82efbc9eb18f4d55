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

pub use ages::{Ages, Amount, When};
pub use clock::Clock;
pub(crate) use clock::Watch;
pub use difference::{Compared, Comparison, Difference};
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use duplicate::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub(crate) use error::no_answer;
pub use error::{Error, IoContext, Result};
pub use exit::ExitCode;
pub use finding::{Basis, ByteRange, Finding, merge_ranges, push_range};
pub use generation::{Changes, Generation, SealText, Signed, Verification};
pub use known_damage::KnownDamage;
pub use layout::{
    Carriers, FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, Layout, Layouts, is_carrier,
};
pub use metadata::{Aspect, AspectSet, MetaChange, MetaValue, Metadata, Was};
pub use monitor::{Monitor, Progress, Silent};
pub use outcome::{
    BytesByWay, GRAVE_FINDINGS_MAX, Offline, Outcome, RecordedLeftOut, Stop, Tallies, Tally,
    ToAccept,
};
pub use path::{RelPath, Shown, escape, exact, text_and_bytes};
pub use protected::{Parity, Protected};
pub use record::{Record, is_in_the_future};
pub use remedy::{Cure, Healing, Origin, Remedy};
pub use scrubbed::Scrubbed;
pub use shell::{shell_command, shell_quoted};
pub(crate) use silence::Silence;
pub use spelling::{Spelling, folded, nfc};
pub use verdict::{DateRules, Evidence, Found, Known, Verdict, is_same_date, judge};
