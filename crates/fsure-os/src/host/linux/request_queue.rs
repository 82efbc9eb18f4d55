//! Direct requests in a queue, on Linux.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::buffer::Buffer;
use crate::request_queue::{Access, DEPTH_MAX, Engine, QueueShape, Requests};

/// A file that is open for direct requests.
#[derive(Debug)]
pub(crate) struct DirectFile(File);

impl DirectFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).custom_flags(libc::O_DIRECT);
        Ok(Self(options.open(path)?))
    }

    pub(crate) fn open_own(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let flags = libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = options.read(true).write(true).custom_flags(flags).open(path)?;
        crate::user_file::regular(file).map(Self)
    }

    pub(crate) fn open_device(path: &Path) -> io::Result<Self> {
        let refuse = |kind: std::fs::FileType| match kind.is_block_device() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a block device")),
        };
        refuse(std::fs::metadata(path)?.file_type())?;
        let mut options = OpenOptions::new();
        let flags = libc::O_DIRECT | libc::O_NONBLOCK;
        let file = options.read(true).custom_flags(flags).open(path)?;
        // The name may lead elsewhere by now.
        refuse(file.metadata()?.file_type())?;
        Ok(Self(file))
    }

    pub(crate) fn bytes(&self) -> io::Result<u64> {
        (&self.0).seek(SeekFrom::End(0))
    }

    pub(crate) fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), from, to - from) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn run(
        &self,
        shape: &QueueShape,
        memory: &mut Buffer,
        requests: &dyn Requests,
    ) -> io::Result<()> {
        match shape.engine {
            Engine::Ring => RingQueue::new(&self.0, shape, memory)?.run(requests),
            Engine::Threads => by_threads(&self.0, shape, memory, requests),
        }
    }
}

/// Returns io_uring, unless the system forbids it (containers, `kernel.io_uring_disabled`).
pub(crate) fn best_engine() -> Engine {
    if new_ring().is_ok() { Engine::Ring } else { Engine::Threads }
}

fn new_ring() -> io::Result<IoUring> {
    let entries = DEPTH_MAX as u32;
    let mut builder = IoUring::builder();
    // One thread submits and reaps: completions need not interrupt it.
    builder.setup_single_issuer().setup_defer_taskrun();
    builder.build(entries).or_else(|_| IoUring::new(entries))
}

/// A queue to the kernel, whose requests read to and write from `memory`.
struct RingQueue<'a> {
    ring: IoUring,
    file: &'a File,
    shape: QueueShape,
    memory: &'a mut Buffer,
    /// For each place in the queue, the time at which its request was sent.
    sent: Vec<Instant>,
    /// Places without a request.
    free: Vec<usize>,
    /// Requests so far, which says where in memory the next one to be written begins.
    count: usize,
    failed: Option<io::Error>,
}

impl<'a> RingQueue<'a> {
    fn new(file: &'a File, shape: &QueueShape, memory: &'a mut Buffer) -> io::Result<Self> {
        Ok(Self {
            ring: new_ring()?,
            file,
            shape: *shape,
            memory,
            sent: vec![Instant::now(); shape.depth],
            free: (0..shape.depth).rev().collect(),
            count: 0,
            failed: None,
        })
    }

    fn run(mut self, requests: &dyn Requests) -> io::Result<()> {
        let mut has_more = true;
        loop {
            while has_more && self.failed.is_none() {
                let Some(place) = self.free.pop() else { break };
                match requests.next() {
                    Some(at) => self.send(place, at),
                    None => {
                        self.free.push(place);
                        has_more = false;
                    }
                }
            }
            // There is no way out before all are complete: the kernel uses the memory.
            if self.free.len() == self.shape.depth {
                return self.failed.map_or(Ok(()), Err);
            }
            // Interrupted or short of memory: what is under way goes on.
            let _ = self.ring.submit_and_wait(1);
            self.reap(requests);
        }
    }

    fn send(&mut self, place: usize, at: u64) {
        let entry = self.entry(place, at).user_data(place as u64);
        self.count += 1;
        self.sent[place] = Instant::now();
        // SAFETY: the memory is borrowed for writing by this queue, which is dropped by `run`
        // only, after all completions; the block lies within it (see `entry`), and no two
        // requests to read have the same one.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has as many entries as places");
    }

    fn entry(&mut self, place: usize, at: u64) -> squeue::Entry {
        let QueueShape { access, block, .. } = self.shape;
        let file = types::Fd(self.file.as_raw_fd());
        let start = match access {
            Access::Read => place * block,
            Access::Write => source(self.count, block, self.memory.len()),
        };
        let memory = &mut self.memory[start..start + block];
        match access {
            Access::Read => {
                opcode::Read::new(file, memory.as_mut_ptr(), block as u32).offset(at).build()
            }
            Access::Write => {
                opcode::Write::new(file, memory.as_ptr(), block as u32).offset(at).build()
            }
        }
    }

    fn reap(&mut self, requests: &dyn Requests) {
        let now = Instant::now();
        for completion in self.ring.completion() {
            let place = completion.user_data() as usize;
            self.free.push(place);
            match usize::try_from(completion.result()) {
                Ok(bytes) if bytes == self.shape.block => {
                    requests.complete(now.duration_since(self.sent[place]));
                }
                Ok(_) => self.failed = Some(short(self.shape.access)),
                Err(_) => {
                    self.failed = Some(Errno::from_raw_os_error(-completion.result()).into());
                }
            }
        }
    }
}

/// Returns where in so much memory the block of the nth request to be written begins.
fn source(count: usize, block: usize, memory: usize) -> usize {
    count % (memory / block) * block
}

fn short(access: Access) -> io::Error {
    match access {
        Access::Read => io::ErrorKind::UnexpectedEof.into(),
        Access::Write => io::ErrorKind::WriteZero.into(),
    }
}

fn by_threads(
    file: &File,
    shape: &QueueShape,
    memory: &mut Buffer,
    requests: &dyn Requests,
) -> io::Result<()> {
    let (count, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let each = |request: &mut dyn FnMut(u64) -> io::Result<()>| {
        while !has_failed.load(Ordering::Relaxed) {
            let Some(at) = requests.next() else { return Ok(()) };
            let sent = Instant::now();
            if let Err(error) = request(at) {
                has_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            requests.complete(sent.elapsed());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = match shape.access {
            Access::Read => {
                let blocks = memory.chunks_exact_mut(shape.block).take(shape.depth);
                blocks
                    .map(|block| scope.spawn(move || each(&mut |at| file.read_exact_at(block, at))))
                    .collect()
            }
            Access::Write => {
                let (memory, count) = (&**memory, &count);
                let write = move |at| {
                    let count = count.fetch_add(1, Ordering::Relaxed);
                    let start = source(count, shape.block, memory.len());
                    file.write_all_at(&memory[start..start + shape.block], at)
                };
                (0..shape.depth).map(|_| scope.spawn(move || each(&mut { write }))).collect()
            }
        };
        // All are waited for, whichever failed.
        let ended = threads.into_iter().map(|thread| thread.join().expect("a request"));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}
