//! A block device made of a program: what a file system does to its disk goes
//! to a [`Block`] of ours. A file behind FUSE is the disk, and a loop device
//! over it is what file systems are mounted from: a flush of theirs arrives as
//! a flush, and a write when it is written and not later.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::host;

/// A disk. Requests come from one thread at a time.
pub trait Block: Send + Sync + 'static {
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
/// dropped. Needs `/dev/fuse`, and root or a mount name space of one's own.
#[derive(Debug)]
pub struct Served(host::block::Served);

/// Serves a disk as the file `disk` in a folder, over whatever is there.
pub fn serve(block: Arc<dyn Block>, folder: &Path) -> io::Result<Served> {
    Ok(Served(host::block::serve(block, folder)?))
}

impl Served {
    /// The file.
    pub fn file(&self) -> &Path {
        self.0.file()
    }
}

/// A loop device over a file, until this is dropped and nobody has it mounted.
/// It goes by itself, too, when the process ends. Needs root.
#[derive(Debug)]
pub struct Loop(host::block::Loop);

impl Loop {
    /// Makes one.
    pub fn attach(file: &Path) -> io::Result<Self> {
        Ok(Self(host::block::Loop::attach(file)?))
    }

    /// The device, such as `/dev/loop0`.
    pub fn device(&self) -> &Path {
        self.0.device()
    }
}
