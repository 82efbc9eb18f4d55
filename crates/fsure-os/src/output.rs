//! Outputs to a path that the user names. A regular file is replaced as a whole. What
//! other programs read from, and a character device, is written to as it is. Anything
//! else is refused, and nothing is ever put in the place of a link, a FIFO or a device.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::host::output as host;
pub use crate::output_destination::Destination;
use crate::path::FileKind;
use crate::user_file::AtomicFile;

/// The name that stands for standard output.
pub const STANDARD_OUTPUT: &str = "-";

/// The pause before a FIFO that no program reads is tried again.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time that a FIFO may be without a reader before an output to it fails.
const READER_TIMEOUT: Duration = Duration::from_secs(120);

/// Writes to streams that have begun and not ended, in the whole process.
static WRITES_UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Returns whether this process waits for the reader of one of its outputs to read.
pub fn is_waiting_for_reader() -> bool {
    WRITES_UNDER_WAY.load(Ordering::Relaxed) > 0
}

impl Destination {
    /// Follows a path, and refuses what no output goes to: a folder, a socket, a block
    /// device, which is a whole disk.
    pub fn of(path: &Path) -> io::Result<Self> {
        host::destination(path)
    }

    /// Returns whether a path stands for standard output: `-`, or a name for the open
    /// descriptor, which must not be opened anew or replaced.
    pub fn is_standard_output(path: &Path) -> bool {
        path == Path::new(STANDARD_OUTPUT) || matches!(Self::of(path), Ok(Self::Descriptor(1)))
    }
}

/// An output under way.
#[derive(Debug)]
pub enum Output {
    /// A regular file that comes to its name when it is whole.
    File(AtomicFile),
    /// A stream, which has each write at once.
    Stream(Stream<File>),
}

impl Output {
    /// Begins an output. Where a FIFO has no reader yet, `waiting` is called with the
    /// time waited so far, about ten times a second, and ends the wait by an error.
    pub fn create(
        path: &Path,
        waiting: &mut dyn FnMut(Duration) -> io::Result<()>,
    ) -> io::Result<Self> {
        let stream = |file| Self::Stream(Stream::new(file));
        Ok(match Destination::of(path)? {
            Destination::File(name) => Self::File(AtomicFile::create(&name)?),
            Destination::Descriptor(number) => stream(host::duplicate(number)?),
            Destination::Device(name) => {
                stream(host::open_stream(&name, FileKind::CharacterDevice)?)
            }
            Destination::Fifo(name) => stream(open_fifo(&name, waiting)?),
        })
    }

    /// Ends the output; a regular file has its name, durably, when this returns.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Stream(mut stream) => stream.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

fn open_fifo(path: &Path, waiting: &mut dyn FnMut(Duration) -> io::Result<()>) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        match host::open_stream(path, FileKind::Fifo) {
            Err(error) if host::has_no_reader(&error) => {}
            other => return other,
        }
        let waited = begun.elapsed();
        if waited > READER_TIMEOUT {
            let why = format!("no program has opened it to read for {} s", waited.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        waiting(waited)?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A writer that counts for [`is_waiting_for_reader`] while it writes.
#[derive(Debug)]
pub struct Stream<W>(W);

impl<W: Write> Stream<W> {
    /// A stream to a writer.
    pub fn new(writer: W) -> Self {
        Self(writer)
    }

    fn counted<T>(&mut self, call: impl FnOnce(&mut W) -> T) -> T {
        WRITES_UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        let result = call(&mut self.0);
        WRITES_UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.counted(|writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.counted(W::flush)
    }
}

/// Opens standard output. If this process was started with none (`>&-`), each write fails:
/// the standard library would have it go to `/dev/null`.
pub fn standard_output() -> Box<dyn Write + Send> {
    if host::had_standard_output() { Box::new(Stream::new(io::stdout())) } else { Box::new(Closed) }
}

/// A standard output that was closed before this process was started.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("it was closed when fsure was started"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::host::path::make_fifo;

    fn never(_: Duration) -> io::Result<()> {
        panic!("nothing to wait for")
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| base.join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/list"), "old").unwrap();
        symlink("real", at("way")).unwrap();
        symlink("way/list", at("first")).unwrap();
        symlink(at("first"), at("second")).unwrap();
        symlink("real/none", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (name, leads_to) in [
            ("second", "real/list"),
            ("way/list", "real/list"),
            ("dangling", "real/none"),
            ("none", "none"),
        ] {
            assert_eq!(Destination::of(&at(name)).unwrap(), Destination::File(at(leads_to)));
        }
        for name in ["loop", "real", "nowhere/list"] {
            assert!(Destination::of(&at(name)).is_err(), "{name}");
        }
        let mut output = Output::create(&at("second"), &mut never).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(std::fs::read(at("real/list")).unwrap(), b"old");
        output.write_all(b" and half").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read(at("real/list")).unwrap(), b"half and half");
        assert_eq!(std::fs::read_link(at("second")).unwrap(), at("first"));
    }

    #[test]
    fn a_descriptor_is_written_to_and_never_replaced() {
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"] {
            if Path::new(name).parent().is_some_and(Path::exists) {
                assert!(Destination::is_standard_output(Path::new(name)), "{name}");
            }
        }
        assert!(Destination::is_standard_output(Path::new("-")));
        assert!(!Destination::is_standard_output(Path::new("./-")));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let mut open = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        open.write_all(b"one ").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let name = PathBuf::from(format!("/dev/fd/{number}"));
        let refused = Output::create(&name, &mut never).unwrap_err().to_string();
        assert!(refused.contains("started without an open descriptor"), "{refused}");
        rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
        let mut output = Output::create(&name, &mut never).unwrap();
        output.write_all(b"two ").unwrap();
        output.finish().unwrap();
        open.write_all(b"three").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one two three");
        assert!(Output::create(Path::new("/dev/fd/99999"), &mut never).is_err());
    }

    #[test]
    fn a_fifo_waits_for_its_reader_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        make_fifo(&path);
        let stopped = Output::create(&path, &mut |_| Err(io::ErrorKind::Interrupted.into()));
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
        let mut reader = None;
        let mut output = Output::create(&path, &mut |_| {
            let path = path.clone();
            let read = move || {
                let mut text = String::new();
                File::open(path).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
            };
            reader.get_or_insert_with(|| std::thread::spawn(read));
            Ok(())
        })
        .unwrap();
        // More than a pipe holds: the write waits for the reader.
        let much = vec![b'x'; 1 << 18];
        output.write_all(&much).unwrap();
        output.finish().unwrap();
        assert_eq!(reader.unwrap().join().unwrap().unwrap().len(), much.len());
        assert_eq!(crate::path::kind(&path).unwrap(), Some(FileKind::Fifo));
        // A reader that has gone away.
        let gone = std::thread::spawn({
            let path = path.clone();
            move || drop(File::open(path))
        });
        let mut output = Output::create(&path, &mut |_| Ok(())).unwrap();
        gone.join().unwrap();
        // A child that another test starts has a copy of the reader's end until its exec.
        let error = loop {
            match output.write_all(b"x") {
                Ok(()) => std::thread::sleep(std::time::Duration::from_millis(1)),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_socket_is_refused_and_a_character_device_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = Output::create(&path, &mut never).unwrap_err();
        assert_eq!(error.to_string(), "it is a socket, which cannot be opened to write");
        let null = Path::new("/dev/null");
        assert_eq!(Destination::of(null).unwrap(), Destination::Device(null.to_owned()));
        let mut output = Output::create(null, &mut never).unwrap();
        output.write_all(b"away").unwrap();
        output.finish().unwrap();
        assert_eq!(crate::path::kind(null).unwrap(), Some(FileKind::CharacterDevice));
    }
}
