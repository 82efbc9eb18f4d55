//! `ram`: folders whose content is in memory while they are used, and the daemon
//! that brings their disk side up to date. `docs/ram.md` has the whole.

mod allowed_paths;
mod alternate_paths;
mod auto_size;
mod backend;
mod bind_refusal;
mod change_tracker;
mod cleanup;
mod client;
mod events;
mod facts;
mod memory_pressure;
mod other_ram_folders;
mod overlapping;
mod preflight;
mod protocol;
mod ram_device;
mod registry;
mod request_handler;
pub mod run;
mod run_memory;
mod runtime_files;
mod session;
mod supervisor;
mod unbind;
mod worker;

pub use allowed_paths::check_file_system;
pub use backend::Backend;
pub use bind_refusal::BindRefusal;
pub use client::{
    Bind, BindPlan, FolderStatus, RecoverOutcome, left_over, prepare, recover_folder,
    refuse_nested, request, status, withdraw,
};
pub use events::LoggedEvent;
pub use facts::Facts;
pub use preflight::{PlacementPlan, gather, judge};
pub use protocol::{
    DaemonEvent, DifferenceLine, Failed, FolderState, PathName, Request, Response, SyncReport,
    UnbindReport,
};
pub use registry::{LASTING, RUNTIME, Registry, RegistryEntry, Role};
pub use run_memory::RamFolders;
pub use runtime_files::KeeperProcess;
pub use supervisor::{CallerContext, SelfExec, SupervisorConfig, keep};
pub use worker::{WorkerConfig, work};
