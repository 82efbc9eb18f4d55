//! A folder seen through FUSE: a file system of fsure that passes everything
//! on, and `bindfs` if that is installed.
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

pub use crate::host::passthrough::{Passthrough, serve};

/// The requests that a server has answered so far.
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
    /// Returns true if files were opened and the kernel did all reads and writes
    /// of them by itself.
    pub fn is_by_kernel(&self) -> bool {
        self.backed > 0 && self.backed == self.opened && self.reads == 0 && self.writes == 0
    }
}

/// The server that passes a folder on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The server of fsure; it receives every read and write.
    Plain,
    /// The server of fsure; the kernel reads and writes by itself if it can.
    Kernel,
    /// `bindfs`.
    Bindfs,
}
