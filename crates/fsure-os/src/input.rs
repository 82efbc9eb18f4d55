//! Inputs that the user names and that can be read only once: standard input, a pipe, a
//! FIFO. They are copied first, so that a list can be looked at, recognised and read
//! again like a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::host::output as host;
use crate::output::Destination;
use crate::unnamed_file::{self, UnnamedContent, UnnamedFile};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 16;
/// Bytes copied between two looks at the space that is left: small lists need no look.
const FREE_SPACE_CHECK_BYTES: u64 = 8 << 20;
/// Bytes that a copy leaves to other programs.
const FREE_SPACE_MIN: u64 = 64 << 20;

/// Reads from streams that have begun and not ended, in the whole process.
static READS_UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Returns whether this process waits for the writer of one of its inputs to write.
pub fn is_waiting_for_writer() -> bool {
    READS_UNDER_WAY.load(Ordering::Relaxed) > 0
}

/// Returns whether a path stands for what can be read only once: `-`, an open descriptor
/// such as `/dev/stdin`, a FIFO or a character device.
pub fn is_stream(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
        || matches!(Destination::of(path), Ok(found) if !matches!(found, Destination::File(_)))
}

/// Reads a stream to its end, into a file without a name. `is_stopped` is asked between two
/// reads, and ends it with `Interrupted`.
pub fn copy_stream(path: &Path, is_stopped: &dyn Fn() -> bool) -> io::Result<UnnamedContent> {
    let folder = unnamed_file::folder();
    let mut copy =
        InputCopy { to: UnnamedFile::create(&folder)?, folder, is_stopped, checked_at: 0 };
    READS_UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    let length = open(path).and_then(|mut stream| copy.append(&mut stream));
    READS_UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    Ok(copy.to.content(length?))
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(match Destination::of(path)? {
        // By its number: opened anew, a file would be read from its beginning.
        Destination::Descriptor(number) => host::duplicate(number)?,
        Destination::File(path) | Destination::Fifo(path) => File::open(path)?,
        Destination::Device(path) => {
            let device = File::open(path)?;
            if !host::is_terminal(&device) {
                let why = "it is a character device: what is read from it may have no end";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            device
        }
    }))
}

/// A copy under way.
struct InputCopy<'a> {
    to: UnnamedFile,
    folder: PathBuf,
    is_stopped: &'a dyn Fn() -> bool,
    /// Bytes that were copied when the space was looked at last.
    checked_at: u64,
}

impl InputCopy<'_> {
    fn append(&mut self, stream: &mut dyn Read) -> io::Result<u64> {
        let mut buffer = vec![0; COPY_BYTES];
        let mut length = 0;
        loop {
            if (self.is_stopped)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(length),
                Ok(read) => {
                    self.to.append(&buffer[..read])?;
                    length += read as u64;
                    self.check_free_space(length)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a copy that would leave other programs no space.
    fn check_free_space(&mut self, length: u64) -> io::Result<()> {
        if length - self.checked_at < FREE_SPACE_CHECK_BYTES {
            return Ok(());
        }
        self.checked_at = length;
        // Where the system does not tell, the copy fails when the disk is full.
        let free = crate::machine::free_bytes(&self.folder).unwrap_or(u64::MAX);
        if free >= FREE_SPACE_MIN {
            return Ok(());
        }
        let why = format!(
            "after {} MiB the copy of it in {} leaves less than {} MiB free there; set TMPDIR to \
             a folder with more room",
            length >> 20,
            self.folder.display(),
            FREE_SPACE_MIN >> 20,
        );
        Err(io::Error::new(io::ErrorKind::StorageFull, why))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end_and_as_often_as_wanted() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let much = "0123456789".repeat(20_000);
        let text = much.clone();
        let writing = std::thread::spawn(move || {
            io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        });
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert!(is_stream(Path::new(&path)));
        assert!(
            copy_stream(Path::new(&path), &|| false).is_err(),
            "a descriptor that was opened here"
        );
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).unwrap();
        let content = copy_stream(Path::new(&path), &|| false).unwrap();
        writing.join().unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "all of it was read");
        for _ in 0..2 {
            let mut read = String::new();
            content.clone().read_to_string(&mut read).unwrap();
            assert_eq!(read, much);
        }
    }

    #[test]
    fn a_stream_without_an_end_is_refused_or_stopped() {
        let error = copy_stream(Path::new("/dev/zero"), &|| false).unwrap_err();
        assert!(error.to_string().contains("a character device"), "{error}");
        let (reader, mut writer) = io::pipe().unwrap();
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let writing = std::thread::spawn(move || {
            while io::Write::write_all(&mut writer, &[0; COPY_BYTES]).is_ok() {}
        });
        let asked = AtomicUsize::new(0);
        let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) > 100;
        let error = copy_stream(Path::new(&path), &is_stopped).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        drop(reader);
        writing.join().unwrap();
    }

    #[test]
    fn a_file_can_be_opened_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_stream(file.path()) && !is_stream(Path::new("nowhere")));
        assert!(is_stream(Path::new("-")) && !is_stream(Path::new("./-")));
        assert!(is_stream(Path::new("/dev/null")) && !is_stream(Path::new("/")));
    }
}
