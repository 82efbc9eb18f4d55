//! RAM folders: a folder whose programs see it in memory, and a disk side that is
//! always one whole generation, at most so much behind as was agreed on.
//!
//! This is the engine and nothing around it: two folders, reached in any way. Who
//! mounts them, and who sees which, is a matter of `job::ram`. The formats and the
//! promise are in `docs/ram.md`.

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
mod read;
mod recover;
mod restore;
mod rounds;
mod step;
mod turns;
mod verify;

pub use doing::Doing;
pub use engine::{Depth, Engine, Generation, Stillness, Tracker, Untracked};
pub use fill::Filling;
pub use look::Changes;
pub use own::OWN;
pub use pace::Pace;
pub use recover::{Recovered, recover};
pub use verify::{Ask, Comparison, How, Known, Unequal};
