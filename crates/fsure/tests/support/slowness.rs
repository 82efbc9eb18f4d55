//! Measures the slowness of this machine while something runs: promises on time are
//! checked against that, and never against a clock alone.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Pause between two measurements.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `during` and returns, with its result, the longest time that a small file took
/// meanwhile to reach the disk, plus the delay with which a sleep ended.
pub fn slowest<T>(during: impl FnOnce() -> T) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let disk = scope.spawn(|| watch(&is_over));
        // However it ends: the other one is waited for.
        let over = Over(&is_over);
        let done = during();
        drop(over);
        (done, disk.join().expect("watch"))
    })
}

fn watch(is_over: &AtomicBool) -> Duration {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (mut flush, mut late) = (Duration::ZERO, Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let file = std::fs::File::create(folder.path().join("file")).expect("make");
        (&file).write_all(&[1; 4096]).expect("write");
        file.sync_all().expect("flush");
        let flushed = Instant::now();
        std::thread::sleep(PAUSE);
        flush = flush.max(flushed - began);
        late = late.max(flushed.elapsed().saturating_sub(PAUSE));
    }
    flush + late
}

/// Says so when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
