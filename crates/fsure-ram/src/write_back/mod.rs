//! RAM folders: a folder whose programs see it in memory, and a disk side that is
//! always one whole generation, at most so much behind as was agreed on.
//!
//! This is the engine and nothing around it: two folders, reached in any way. Who
//! mounts them, and who sees which, is a matter of [`service`](crate::service). The formats and the
//! promise are in `docs/ram.md`.

mod activity;
mod changes;
mod content_digest;
mod disk_capability;
mod disk_side;
mod engine;
mod generation_builder;
mod index;
mod journal;
mod journal_step;
mod missed_names;
mod plan;
mod ram_scan;
mod recover;
mod rehash_rotation;
mod scan_rounds;
mod side_reader;
mod stage;
mod staging;
mod sync_schedule;
mod verify;

pub use activity::Activity;
pub use changes::{NoTracker, Paths, ReportedChanges, Tracker};
pub use disk_side::OWN;
pub use engine::{Engine, Filling, Generation};
pub use recover::{Recovered, RecoveryOutcome, recover};
pub use scan_rounds::{CompareDepth, Freeze};
pub use sync_schedule::SyncSchedule;
pub use verify::{DifferenceKind, LastGenerationEntries, LookupFn, SideComparison, SideDifference};
