//! Processes of fsure that go on when the one that started them ends, and what
//! they say to those that look after them.
//!
//! A process is known by its number and the time it began: its number alone is
//! another process's some day.
//!
//! Linux only; elsewhere all fails with `Unsupported`.

pub use crate::host::detached_process::{
    DetachedProcess, begun, is_running, log, notify, terminate,
};
