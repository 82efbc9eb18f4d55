//! Inputs that the user names and that can be read only once: standard input, a pipe, a
//! FIFO. They are copied first, so that a list can be looked at, recognised and read
//! again like a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::host::output as host;
use crate::output::Destination;
use crate::spill::{self, Content, Spill};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 16;

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

/// Reads a stream to its end, into a file without a name.
pub fn copy_stream(path: &Path) -> io::Result<Content> {
    let copy = Spill::create(&spill::folder())?;
    READS_UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    let length = open(path).and_then(|mut stream| append(&copy, &mut stream));
    READS_UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    Ok(copy.content(length?))
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(match Destination::of(path)? {
        // By its number: opened anew, a file would be read from its beginning.
        Destination::Descriptor(number) => host::duplicate(number)?,
        Destination::File(path) | Destination::Fifo(path) | Destination::Device(path) => {
            File::open(path)?
        }
    }))
}

fn append(copy: &Spill, stream: &mut dyn Read) -> io::Result<u64> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut length = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(length),
            Ok(read) => {
                copy.append(&buffer[..read])?;
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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
        let content = copy_stream(Path::new(&path)).unwrap();
        writing.join().unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "all of it was read");
        for _ in 0..2 {
            let mut read = String::new();
            content.clone().read_to_string(&mut read).unwrap();
            assert_eq!(read, much);
        }
    }

    #[test]
    fn a_file_can_be_opened_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_stream(file.path()) && !is_stream(Path::new("nowhere")));
        assert!(is_stream(Path::new("-")) && !is_stream(Path::new("./-")));
        assert!(is_stream(Path::new("/dev/null")) && !is_stream(Path::new("/")));
    }
}
