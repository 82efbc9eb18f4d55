//! RAM folders: a folder whose programs see it in memory, and a disk side that is
//! always one whole generation, at most so much behind as was agreed on.
//!
//! This is the engine and nothing around it: two folders, reached in any way. Who
//! mounts them, and who sees which, is a matter of `job::ram`. The formats and the
//! promise are in `docs/ram.md`.

mod changes;
mod content;
mod doing;
mod draft;
mod engine;
mod fill;
mod hold;
mod index;
mod journal;
mod look;
mod own;
mod pace;
mod plan;
mod read;
mod recover;
mod restore;
mod rounds;
mod stage;
mod step;
mod turns;
mod verify;

pub use changes::{Changes, NoTracker, Paths, Tracker};
pub use doing::Activity;
pub use engine::{CompareDepth, Engine, Freeze, Generation};
pub use fill::Filling;
pub use own::OWN;
pub use pace::SyncSchedule;
pub use recover::{Recovered, Recovery, recover};
pub use verify::{Comparison, DifferenceKind, LastGenerationEntries, LookupFn, SideDifference};
