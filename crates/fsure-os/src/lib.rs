//! Floor 0 of `fsure`: the one package that asks the operating system, and
//! the only one with `unsafe`.
//!
//! | module | question |
//! |---|---|
//! | [`attribute`] | mode, owner, access lists and extended attributes of a name |
//! | [`block`] | a disk made of a program, for file systems to be mounted from |
//! | [`buffer`] | memory that direct reads can use at full speed |
//! | [`device`] | which disks a file system is on, and how they want to be read |
//! | [`folder`] | which names are below a root, and what they are |
//! | [`opener`] | how a file can be read, before it is |
//! | [`place`] | where files begin on the disk |
//! | [`read`] | what a file holds on its medium, and which way it was really read |
//! | [`ring`] | many reads with one call |
//! | [`volume`] | which file system this is |
//! | [`limit`] | how many files may be open at once |
//! | [`lock`] | whether another process is at work on the same record |
//! | [`plain`] | plain files that the user names: lists read and written |
//! | [`mod@write`] | repairs below a root: drafts, patches, lost links and folders |
//! | [`priority`] | whether others go first |
//! | [`path`] | bytes to paths and back, and the few plain questions about a path |
//!
//! A question that the system cannot answer is `None` or an error, never an
//! invented value. What is the same everywhere stands here; what only one
//! system knows stands in `host`, in a folder of its name.

mod absent;
pub mod attribute;
pub mod block;
pub mod buffer;
pub mod device;
pub mod folder;
mod host;
pub mod limit;
pub mod lock;
pub mod opener;
pub mod path;
pub mod place;
pub mod plain;
pub mod priority;
pub mod read;
pub mod ring;
mod stat;
pub mod volume;
#[cfg(any(windows, test))]
mod wide;
pub mod write;

pub use stat::{Kind, Stat};
