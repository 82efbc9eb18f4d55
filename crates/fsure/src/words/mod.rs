//! Floor 1: plain data and pure functions, each word with one meaning.

mod difference;
pub mod digest;
mod duplicate;
mod entry;
mod error;
mod exit;
mod finding;
mod monitor;
mod outcome;
mod path;
mod protected;
mod record;
mod remedy;
mod silence;
pub mod units;
pub mod verdict;

pub use difference::{Compared, Comparison, Difference};
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use duplicate::{Duplicate, Duplicates};
pub use entry::{Entry, EntryKind, FileSystemId, UNDATED};
pub(crate) use error::no_answer;
pub use error::{Error, IoContext, Result};
pub use exit::ExitCode;
pub use finding::{ByteRange, Finding, merge_ranges, push_range};
pub use monitor::{Monitor, Progress, Silent};
pub use outcome::{
    BytesByWay, GRAVE_FINDINGS_MAX, Offline, Outcome, RecordedLeftOut, Stop, Tallies, Tally,
};
pub use path::{RelPath, Shown, escape};
pub use protected::{Parity, Protected};
pub use record::Record;
pub use remedy::{Cure, Healing, Origin, Remedy};
pub(crate) use silence::Silence;
pub use verdict::{Evidence, Found, Known, Verdict, is_same_date, judge};
