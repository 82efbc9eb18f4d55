//! A folder seen through FUSE: a file system of our own that passes everything
//! on, and `bindfs` where that is installed.
//!
//! The server is a process of its own. A process that waits for an answer of its
//! own cannot be killed: the kernel waits for the answer, and the thread that
//! owes it is dead. So the program that mounts calls itself, with `pass-through`
//! and what [`serve`] takes, and talks to it by lines:
//!
//! ```text
//! ready            it is mounted
//! failed: …        it is not
//! served           asked; answered by the numbers of [`Served`] in their order
//! ```
//!
//! The server ends with its input, which is when its user ends, killed or not.
//! Linux only; elsewhere [`Passthrough::mount`] fails with `Unsupported`.

pub use crate::host::mounts::{Passthrough, serve};

/// What a server has answered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Files opened.
    pub opened: u64,
    /// Of them, those that the kernel took over.
    pub backed: u64,
    /// Requests to read that came to the server.
    pub reads: u64,
    /// Requests to write.
    pub writes: u64,
    /// Requests to flush a file or a folder.
    pub flushes: u64,
}

impl Served {
    /// Whether the kernel read and wrote by itself all that was opened.
    pub fn is_by_kernel(&self) -> bool {
        self.backed > 0 && self.backed == self.opened && self.reads == 0 && self.writes == 0
    }
}

/// Who passes a folder on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Our own; every read and write comes to it.
    Plain,
    /// Our own; the kernel reads and writes by itself, where it can.
    Kernel,
    /// `bindfs`.
    Bindfs,
}
