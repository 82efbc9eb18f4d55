//! A disk made of a program: what is asked of it comes to a [`VirtualDisk`] of the caller.
//! It is the only file of a folder of FUSE's, from which a file system is
//! mounted by a loop device ([`crate::loop_mount`]): a flush of that arrives as a
//! flush, and a write when it is written and not later.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::host;
use crate::private_mounts::Namespace;

/// A disk. Requests come from one thread at a time.
pub trait VirtualDisk: Send + Sync + 'static {
    /// Its size in bytes; never changes.
    fn size(&self) -> u64;

    /// Fills the target from an offset.
    fn read(&self, offset: u64, target: &mut [u8]) -> io::Result<()>;

    /// Takes a write.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Takes a flush: what came before is to be durable when it answers.
    fn flush(&self) -> io::Result<()>;
}

/// A disk that is being served as the only file of a folder, until this is
/// dropped.
///
/// No thread of this process may touch that file: one that waits for an answer
/// of its own process could not be killed. Other processes may.
#[derive(Debug)]
pub struct ServedDisk(host::fuse_disk::ServedDisk);

/// Serves a disk as the file `disk` in a folder, over whatever is there, for
/// the processes of a namespace. Needs `/dev/fuse`.
pub fn serve(
    block: Arc<dyn VirtualDisk>,
    space: &Namespace,
    folder: &Path,
) -> io::Result<ServedDisk> {
    Ok(ServedDisk(host::fuse_disk::serve(block, space, folder)?))
}

/// Serves a disk as the file `disk` in a folder for all processes. Needs
/// `/dev/fuse`, and root or `fusermount3`. Fails with `ResourceBusy` where something
/// is mounted there, and with `DirectoryNotEmpty`.
pub fn publish(block: Arc<dyn VirtualDisk>, folder: &Path) -> io::Result<ServedDisk> {
    Ok(ServedDisk(host::fuse_disk::publish(block, folder)?))
}

impl ServedDisk {
    /// The file.
    pub fn file(&self) -> &Path {
        self.0.file()
    }
}
