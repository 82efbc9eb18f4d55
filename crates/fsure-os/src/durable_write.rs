//! The ways of making a write durable, each by exactly the call that it is
//! named after: `sync_all` of the standard library is another call on each
//! system, and which one it was is what a measurement is about.
//!
//! Files are made anew and never opened if something has the name: a measurement
//! writes over no data of the user or of another program.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::host::durable_write as host;

/// A way of making an overwrite durable, or of not doing so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A write to memory that the system carries on when it likes.
    WriteOnly,
    /// `fsync`; on macOS it asks for no flush of the drive.
    Fsync,
    /// `fdatasync`: dates need not follow.
    Fdatasync,
    /// A descriptor opened with `O_DSYNC`.
    Dsync,
    /// A descriptor opened with `O_SYNC`.
    Sync,
    /// `pwritev2` with `RWF_DSYNC`.
    RwfDsync,
    /// `O_DIRECT`: past the page cache, and no further than the drive's cache.
    Direct,
    /// `O_DIRECT` and `O_DSYNC`.
    DirectDsync,
    /// `O_DIRECT`, then `fdatasync`.
    DirectFdatasync,
    /// `sync_file_range`, all three flags: waits for the drive to have it, and
    /// asks for no flush.
    SyncFileRange,
    /// `syncfs`: the whole file system.
    Syncfs,
    /// io_uring: a write with an `fdatasync` linked to it.
    Ring,
    /// `F_BARRIERFSYNC` (macOS): in order, but not yet on the medium.
    BarrierFsync,
    /// `F_FULLFSYNC` (macOS).
    FullFsync,
    /// `FlushFileBuffers` (Windows).
    FlushFileBuffers,
    /// `NtFlushBuffersFileEx` with `FLUSH_FLAGS_NO_SYNC` (Windows): to the
    /// drive, which is asked for no flush.
    FlushNoSync,
    /// A handle opened with `FILE_FLAG_WRITE_THROUGH` (Windows).
    WriteThrough,
    /// The same with `FILE_FLAG_NO_BUFFERING`.
    WriteThroughUnbuffered,
}

impl Method {
    /// Those of this system, from the weakest promise to what says the same in
    /// other ways.
    pub fn all() -> &'static [Self] {
        host::METHODS
    }

    /// The strongest promise for data that this system gives: `fdatasync`,
    /// `F_FULLFSYNC`, `FlushFileBuffers`.
    pub fn strongest() -> Self {
        host::STRONGEST
    }

    /// The same where a file has grown or is new.
    pub fn thorough() -> Self {
        host::THOROUGH
    }

    /// A flush that stops short of the drive's own cache, where this system has
    /// one that looks as if it did not.
    pub fn weaker() -> Option<Self> {
        host::WEAKER
    }

    /// A write past the page cache with a flush of its own behind it, where
    /// there is one.
    pub fn past_cache() -> Option<Self> {
        host::PAST_CACHE
    }

    /// As it is called by those who call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteOnly => "write only",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Dsync => "O_DSYNC",
            Self::Sync => "O_SYNC",
            Self::RwfDsync => "RWF_DSYNC",
            Self::Direct => "O_DIRECT",
            Self::DirectDsync => "O_DIRECT + O_DSYNC",
            Self::DirectFdatasync => "O_DIRECT + fdatasync",
            Self::SyncFileRange => "sync_file_range",
            Self::Syncfs => "syncfs",
            Self::Ring => "io_uring fdatasync",
            Self::BarrierFsync => "F_BARRIERFSYNC",
            Self::FullFsync => "F_FULLFSYNC",
            Self::FlushFileBuffers => "FlushFileBuffers",
            Self::FlushNoSync => "NtFlushBuffersFileEx NO_SYNC",
            Self::WriteThrough => "WRITE_THROUGH",
            Self::WriteThroughUnbuffered => "WRITE_THROUGH + NO_BUFFERING",
        }
    }

    /// Returns true if the write itself is to be durable, with no call after it.
    /// The drive can then be told to force it through its cache (FUA) instead of
    /// being sent a flush.
    pub fn is_forced(self) -> bool {
        use Method::{DirectDsync, Dsync, RwfDsync, Sync, WriteThrough, WriteThroughUnbuffered};
        matches!(
            self,
            Dsync | Sync | RwfDsync | DirectDsync | WriteThrough | WriteThroughUnbuffered
        )
    }
}

/// Returns true if an error means that a method is not available here, and not
/// that something went wrong with it.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// A file that is written by one method. It may be shared by threads.
#[derive(Debug)]
pub struct Writer(host::Writer);

impl Writer {
    /// Makes a file, opened as the method requires. Fails if the name exists
    /// already, or if the method is not available ([`is_refusal`]), which some
    /// systems report only at the first write.
    pub fn create(path: &Path, method: Method) -> io::Result<Self> {
        host::Writer::create(path, method).map(Self)
    }

    /// Writes all of it, by a direct method only from memory and to places that
    /// are aligned. Where the method makes the write itself durable, it is; where
    /// a flush is to follow, that is [`Writer::flush`].
    pub fn write(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.0.write(data, at)
    }

    /// The flush behind the write; nothing where the method has none.
    pub fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }

    /// A write and its flush, as the method has it.
    pub fn commit(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.0.commit(data, at)
    }

    /// Brings it all to the medium by the system's strongest flush, whatever the
    /// method.
    pub fn flush_to_medium(&self) -> io::Result<()> {
        self.0.flush_to_medium()
    }
}

/// A second descriptor of an existing file: what a flush reports may depend on
/// the descriptor.
#[derive(Debug)]
pub struct Reopened(File);

impl Reopened {
    /// Opens it to be read and written.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).open(path)?))
    }

    /// Writes all of it at the beginning.
    pub fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(data)
    }

    /// Reads from the beginning.
    pub fn read(&mut self, target: &mut [u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_exact(target)
    }

    /// `fsync`, `F_FULLFSYNC` on macOS, `FlushFileBuffers` on Windows.
    pub fn flush(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// An open folder, whose names are to be durable, too.
#[derive(Debug)]
pub struct Names(host::Names);

impl Names {
    /// Opens it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        host::Names::open(folder).map(Self)
    }

    /// Waits until its names are on the medium. Refused on Windows, which has no
    /// such call.
    pub fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A folder of this process, whose names can be made durable, too. It is removed
/// with its content when this is dropped.
#[derive(Debug)]
pub struct DurableFolder {
    path: PathBuf,
    names: Names,
}

impl DurableFolder {
    /// Makes it. Fails where something has the name.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::create_dir(path)?;
        Ok(Self { path: path.to_owned(), names: Names::open(path)? })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until its names are on the medium. Refused on Windows, which has no
    /// such call.
    pub fn flush(&self) -> io::Result<()> {
        self.names.flush()
    }

    /// Removes all files in it.
    pub fn clear(&self) -> io::Result<()> {
        std::fs::read_dir(&self.path)?.try_for_each(|entry| std::fs::remove_file(entry?.path()))
    }
}

impl Drop for DurableFolder {
    fn drop(&mut self) {
        // If that fails, there is no caller left to tell.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Puts a file in the place of another of the same folder. If the system allows
/// that, it does not wait for the change to be durable.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    host::rename(from, to)
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;

    #[test]
    fn every_method_writes_what_it_is_given_or_returns_an_error() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut data = Buffer::new(1).unwrap();
        data[..8192].fill(7);
        for method in Method::all() {
            let path = folder.path().join(method.name());
            let made = Writer::create(&path, *method).and_then(|writer| {
                writer.commit(&data[..4096], 0)?;
                writer.write(&data[..4096], 4096)?;
                writer.flush()?;
                writer.flush_to_medium()
            });
            match made {
                Ok(()) => assert_eq!(std::fs::read(&path).unwrap(), &data[..8192], "{method:?}"),
                Err(error) => assert!(is_refusal(&error), "{method:?}: {error}"),
            }
        }
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "precious").unwrap();
        for method in Method::all() {
            let error = Writer::create(&path, *method).unwrap_err();
            let kind = error.kind();
            assert!(kind == io::ErrorKind::AlreadyExists || is_refusal(&error), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_folder_of_fsure_is_removed_with_its_content() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("own");
        let folder = DurableFolder::create(&path).unwrap();
        assert_eq!(DurableFolder::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        Writer::create(&path.join("file"), Method::WriteOnly).unwrap();
        folder.clear().unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        Writer::create(&path.join("file"), Method::WriteOnly).unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_chosen_ones_are_among_all() {
        let chosen = [Method::strongest(), Method::thorough()].into_iter();
        for method in chosen.chain(Method::weaker()).chain(Method::past_cache()) {
            assert!(Method::all().contains(&method), "{method:?}");
        }
    }
}
