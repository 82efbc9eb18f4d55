//! Every engine, on a real file.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Each of these positions once.
struct Positions {
    left: Mutex<Vec<u64>>,
    complete: AtomicUsize,
}

impl Positions {
    fn new(blocks: impl Iterator<Item = u64>) -> Self {
        let left = blocks.map(|block| block * DIRECT_GRAIN as u64).collect();
        Self { left: Mutex::new(left), complete: AtomicUsize::new(0) }
    }
}

impl Requests for Positions {
    fn next(&self) -> Option<u64> {
        self.left.lock().unwrap().pop()
    }

    fn complete(&self, latency: Duration) {
        assert!(latency > Duration::ZERO);
        self.complete.fetch_add(1, Ordering::Relaxed);
    }
}

fn shape(access: Access, engine: Engine) -> QueueShape {
    QueueShape { access, depth: 8, block: DIRECT_GRAIN, engine }
}

/// Engines that this system allows.
fn engines() -> Vec<Engine> {
    let best = Engine::best();
    if best == Engine::Threads {
        crate::host::did_not_run("request_queue by io_uring", "there is no io_uring");
    }
    if best == Engine::Ring { vec![Engine::Ring, Engine::Threads] } else { vec![best] }
}

/// A folder with direct requests: those in memory might not have them.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[test]
fn what_is_written_is_read_and_each_request_is_complete_once() {
    for engine in engines() {
        let folder = folder();
        let path = folder.path().join("file");
        let file = match DirectFile::create(&path) {
            Err(error) => {
                return crate::host::did_not_run("request_queue", &error.to_string());
            }
            Ok(file) => file,
        };
        let mut memory = Buffer::new(1).unwrap();
        for (place, block) in memory.chunks_mut(DIRECT_GRAIN).enumerate() {
            block.fill(place as u8);
        }
        file.reserve(0, 100 * DIRECT_GRAIN as u64).unwrap();
        let writes = Positions::new(0..100);
        file.run(&shape(Access::Write, engine), &mut memory, &writes).unwrap();
        assert_eq!(writes.complete.into_inner(), 100, "{engine:?}");
        let written = std::fs::read(&path).unwrap();
        let blocks: BTreeSet<_> = written.chunks(DIRECT_GRAIN).map(|block| block[0]).collect();
        assert_eq!((written.len(), blocks.len()), (100 * DIRECT_GRAIN, 100), "{engine:?}");
        assert!(written.chunks(DIRECT_GRAIN).all(|block| block.iter().all(|b| *b == block[0])));
        assert_eq!(file.bytes().unwrap(), written.len() as u64);

        // No block that was written looks like this: each has one value.
        memory.iter_mut().enumerate().for_each(|(place, byte)| *byte = place as u8);
        let reads = Positions::new(0..8);
        DirectFile::open_own(&path)
            .unwrap()
            .run(&shape(Access::Read, engine), &mut memory, &reads)
            .unwrap();
        assert_eq!(reads.complete.into_inner(), 8, "{engine:?}");
        // Which of the eight places in memory is read into is for the threads to race for: one that
        // begins late finds nothing to do.
        let is_read = |block: &&[u8]| block.iter().all(|byte| *byte == block[0]);
        let read: BTreeSet<_> = memory.chunks(DIRECT_GRAIN).filter(is_read).map(|b| b[0]).collect();
        let wanted = written[..8 * DIRECT_GRAIN].chunks(DIRECT_GRAIN).map(|block| block[0]);
        assert!(!read.is_empty() && read.is_subset(&wanted.collect()), "{engine:?}: {read:?}");
    }
}

#[test]
fn the_end_of_a_file_is_an_error_and_ends_it() {
    for engine in engines() {
        let folder = folder();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 4 * DIRECT_GRAIN]).unwrap();
        let Ok(file) = DirectFile::open_own(&path) else {
            return crate::host::did_not_run("the end of a file", "no direct requests");
        };
        let mut memory = Buffer::new(1).unwrap();
        let requests = Positions::new((0..2000).rev());
        let error = file.run(&shape(Access::Read, engine), &mut memory, &requests).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{engine:?}");
        assert!(requests.left.into_inner().unwrap().len() > 1900, "{engine:?} goes on");
    }
}

#[test]
fn only_a_block_device_is_opened_as_one() {
    let folder = folder();
    let path = folder.path().join("file");
    std::fs::write(&path, "precious").unwrap();
    for path in [&*path, folder.path(), Path::new("/dev/null"), Path::new("/proc/self/mem")] {
        let refused = DirectFile::open_device(path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
    }
    assert!(DirectFile::create(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}
