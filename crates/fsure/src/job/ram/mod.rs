//! `ram`: folders whose content is in memory while they are used, and the daemon
//! that brings their disk side up to date. `docs/ram.md` has the whole.

mod backend;
mod events;
mod left;
mod preflight;
mod registry;
mod session;
mod told;
mod tracker;
mod ways;

pub use backend::Backend;
pub use events::Event;
pub use preflight::{Facts, Plan, Refusal, gather, judge};
pub use registry::{Entry, LASTING, Process, RUNTIME, Registry, Role};
pub use told::{Answer, Difference, Ended, Failed, Name, Request, State, Synced, Told};
