//! Many small direct reads with one system call. Submitted together, reads of
//! neighbouring files reach the block layer together and are merged there:
//! 36 KB a request become about 900 KB (measured), which is what takes a tree
//! of small files beyond the device's random-read limit.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::PoisonError;

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use super::File;
use crate::buffer::Buffer;
use crate::host::Handle;
use crate::read::{OpenFile, ReadResult, check_aligned, touch};
use crate::read_mode::ReadMode;

/// Reads one call can carry.
pub const RING_READS_MAX: usize = 128;

/// A queue of reads to the kernel, for one thread.
pub struct Ring {
    ring: IoUring,
}

/// One read: `length` bytes of a file, from its start, to `at` in the buffer.
#[derive(Clone, Copy)]
struct RingRead<'a> {
    file: &'a File,
    at: usize,
    length: usize,
    grain: u64,
}

impl Ring {
    /// Sets up a queue; `None` where the system has none or forbids it
    /// (containers, `kernel.io_uring_disabled`).
    pub fn new() -> Option<Self> {
        let entries = RING_READS_MAX as u32;
        let mut builder = IoUring::builder();
        // One thread submits and reaps: completions need not interrupt it.
        builder.setup_single_issuer().setup_defer_taskrun();
        let ring = builder.build(entries).or_else(|_| IoUring::new(entries)).ok()?;
        Some(Self { ring })
    }

    /// Carries out all reads and waits for all of them. The answer has, in
    /// their order, the bytes read or what the system said.
    ///
    /// # Panics
    ///
    /// If a read does not lie within the buffer, or there are too many.
    fn read_all(&mut self, buffer: &mut Buffer, reads: &[RingRead<'_>]) -> Vec<io::Result<usize>> {
        assert!(reads.len() <= RING_READS_MAX, "{} reads at once", reads.len());
        let capacity = buffer.len();
        let start = buffer.as_mut_ptr();
        for (number, read) in reads.iter().enumerate() {
            assert!(read.at.checked_add(read.length).is_some_and(|end| end <= capacity));
            // SAFETY: the target lies within the buffer, as just checked.
            let target = unsafe { start.add(read.at) };
            check_aligned(target, read.length, 0, read.grain);
            let entry =
                opcode::Read::new(types::Fd(read.file.as_raw_fd()), target, read.length as u32)
                    .offset(0)
                    .build()
                    .user_data(number as u64);
            // SAFETY: the buffer is borrowed for writing, and the files stay
            // open in the caller, until this function returns, which it does
            // only after all completions (see `wait`).
            unsafe { self.ring.submission().push(&entry) }.expect("the queue is empty and larger");
        }
        self.wait(reads.len())
    }

    /// Waits until every read is complete. There is no way out before: the
    /// kernel writes to the buffer until then.
    fn wait(&mut self, count: usize) -> Vec<io::Result<usize>> {
        let mut answers: Vec<io::Result<usize>> = Vec::new();
        answers.resize_with(count, || Err(Errno::IO.into()));
        let mut left = count;
        while left > 0 {
            // Interrupted or short of memory: what is in flight goes on, and
            // the rest is submitted by the next call.
            let _ = self.ring.submit_and_wait(left);
            for completion in self.ring.completion() {
                let result = completion.result();
                answers[completion.user_data() as usize] =
                    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result).into());
                left -= 1;
            }
        }
        answers
    }
}

impl OpenFile {
    /// Reads whole files, each from its start to its own place in the buffer,
    /// in one go. Only for sources on the direct rung; the answer is `None`
    /// for the others and for what came short or by a way that failed, which
    /// is then to be read by itself. An error is what the medium said.
    ///
    /// `wanted` has the source, its place and its length; places lie at
    /// multiples of the grain and leave space up to the next one.
    pub fn read_whole(
        ring: &mut Ring,
        buffer: &mut Buffer,
        wanted: &[(&Self, usize, usize)],
    ) -> Vec<Option<io::Result<ReadResult>>> {
        for (source, at, length) in wanted.iter().filter(|(source, ..)| !source.is_vouched) {
            source.leave_false_rung(0..*length as u64);
            touch(&mut buffer[*at..at + length]);
        }
        let locked: Vec<_> = wanted
            .iter()
            .map(|(source, ..)| source.way.read().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let directs =
            wanted.iter().zip(&locked).map(|(wanted, way)| (wanted, **way == ReadMode::Direct));
        let reads: Vec<_> = directs
            .clone()
            .filter(|(_, is_direct)| *is_direct)
            .map(|((source, at, length), _)| RingRead {
                file: &source.file,
                at: *at,
                length: length.next_multiple_of(source.grain as usize),
                grain: source.grain,
            })
            .collect();
        let mut answers = ring.read_all(buffer, &reads).into_iter();
        directs
            .map(|((_, _, length), is_direct)| match is_direct.then(|| answers.next())?? {
                Ok(bytes) if bytes < *length => None,
                Ok(_) => Some(Ok(ReadResult { bytes: *length, way: ReadMode::Direct })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                Err(error) => (!File::refuses_way(&error)).then_some(Err(error)),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opener::Opener;
    use crate::root_dir::Root;
    use std::sync::Arc;

    #[test]
    fn reads_all_at_once_and_only_where_it_is_aligned() {
        let test = "reads_all_at_once_and_only_where_it_is_aligned";
        let Some(mut ring) = Ring::new() else {
            return super::super::file::did_not_run(test, "there is no io_uring");
        };
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for (name, length) in [("a", 10), ("b", 5000)] {
            std::fs::write(folder.path().join(name), vec![name.as_bytes()[0]; length]).unwrap();
        }
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let open = |name: &[u8]| {
            Opener::new(Arc::clone(&root), ReadMode::Direct).open(name, false).unwrap().0
        };
        let (a, b) = (open(b"a"), open(b"b"));
        if *a.way.read().unwrap() != ReadMode::Direct {
            return super::super::file::did_not_run(test, "there are no direct reads");
        }
        let mut buffer = Buffer::new(1 << 20).unwrap();
        let answers =
            OpenFile::read_whole(&mut ring, &mut buffer, &[(&a, 0, 10), (&b, 4096, 5000)]);
        let filled = answers.into_iter().map(|answer| answer.unwrap().unwrap());
        assert!(
            filled
                .map(|filled| (filled.bytes, filled.way))
                .eq([10, 5000].map(|bytes| (bytes, ReadMode::Direct)))
        );
        assert!(buffer[..10] == [b'a'; 10] && buffer[4096..9096] == [b'b'; 5000]);
        let unaligned = std::panic::AssertUnwindSafe(|| {
            OpenFile::read_whole(&mut ring, &mut buffer, &[(&a, 512, 10)])
        });
        assert!(std::panic::catch_unwind(unaligned).is_err());
    }
}
