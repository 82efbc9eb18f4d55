//! `ram`: folders whose content is in memory while they are used, and the daemon
//! that brings their disk side up to date. `docs/ram.md` has the whole.

mod asked;
mod backend;
mod client;
mod ending;
mod events;
mod keeper;
mod kin;
mod left;
mod memory;
mod others;
mod place;
mod preflight;
mod registry;
pub mod run;
mod runs;
mod session;
mod size;
mod told;
mod tracker;
mod ways;
mod worker;

pub use backend::Backend;
pub use client::{
    Bind, BindPlan, FolderStatus, RecoverOutcome, left_over, prepare, recover_folder, request,
    status,
};
pub use events::Event;
pub use keeper::{CallerContext, SelfExec, SupervisorConfig, keep};
pub use others::Others;
pub use place::unsuitable;
pub use preflight::{Facts, Plan, Refusal, gather, judge};
pub use registry::{Entry, LASTING, Process, RUNTIME, Registry, Role};
pub use told::{
    DaemonEvent, Difference, Failed, FolderState, Name, Request, Response, SyncReport, UnbindReport,
};
pub use worker::{WorkerConfig, work};
