//! The thread that flushes behind what was acknowledged, so closely that the
//! bound holds, and that measures whether it did.
//!
//! It is the owner of a robust futex in the shared page: the kernel itself marks
//! that when the thread ends, by `kill -9` too, so that no process acknowledges
//! anything that no thread will flush.

use std::collections::VecDeque;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::{Shared, now};
use super::shared_page::{FAILED, OPEN, REAL};
use super::storage::Storage;

/// Number of last flushes that predict the duration of the next one.
const REMEMBERED: usize = 8;

/// Statistics of the flushes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) flushes: u64,
    pub(super) longest_flush: Duration,
    pub(super) largest_lag: Duration,
    pub(super) failure: Option<String>,
}

/// The thread.
pub(super) struct Flusher {
    shared: Arc<Shared>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Tally>>,
}

impl Flusher {
    /// Begins to flush, and opens the page for calls. `first` is what a flush
    /// took so far.
    pub(super) fn begin(shared: &Arc<Shared>, storage: Vec<Storage>, first: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, page) = (Arc::clone(&is_over), Arc::clone(shared));
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            own(&page);
            let mut work = FlushWork::new(&page, &storage, first);
            page.become_(OPEN);
            let _ = ready.send(());
            work.follow(&over);
            work.tally
        });
        // Fails only where the thread is gone, and then nothing is acknowledged.
        let _ = is_ready.recv();
        Self { shared: Arc::clone(shared), is_over, thread: Some(thread) }
    }

    /// Calls are real from now on. Flushes what was acknowledged before.
    pub(super) fn end(mut self) -> Tally {
        self.stop()
    }

    fn stop(&mut self) -> Tally {
        self.shared.become_(REAL);
        self.is_over.store(true, SeqCst);
        self.shared.wake();
        let panicked = || Tally {
            failure: Some("the thread that flushes has panicked".to_owned()),
            ..Tally::default()
        };
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(panicked)
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// `struct robust_list_head` of `linux/futex.h`, and the only entry of the list.
#[repr(C)]
struct Robust {
    first: *mut RobustListNode,
    /// From the entry to its futex.
    offset: libc::c_long,
    pending: *mut RobustListNode,
    entry: RobustListNode,
}

#[repr(C)]
struct RobustListNode {
    next: *mut RobustListNode,
}

/// Makes this thread the owner of the page. It must not use robust mutexes of the
/// C library, which has a list of its own for that; nothing here does.
fn own(page: &Shared) {
    // Read by the kernel when the thread ends, so it stays for good.
    let robust: &'static mut Robust = Box::leak(Box::new(Robust {
        first: null_mut(),
        offset: 0,
        pending: null_mut(),
        entry: RobustListNode { next: null_mut() },
    }));
    // The list is a ring through its head, whose first field is such an entry.
    robust.entry.next = (&raw mut *robust).cast::<RobustListNode>();
    robust.first = &raw mut robust.entry;
    let distance = page.owner.as_ptr() as isize - (&raw const robust.entry) as isize;
    robust.offset = distance as libc::c_long;
    let size = size_of::<Robust>() - size_of::<RobustListNode>();
    // SAFETY: the head and its entry are the kernel's structures and stay where
    // they are; the futex lies in memory that stays mapped.
    unsafe {
        page.owner.store(libc::syscall(libc::SYS_gettid) as u32, SeqCst);
        libc::syscall(libc::SYS_set_robust_list, &raw const *robust, size);
    }
}

struct FlushWork<'a> {
    page: &'a Shared,
    storage: &'a [Storage],
    took: VecDeque<u64>,
    tally: Tally,
}

impl<'a> FlushWork<'a> {
    fn new(page: &'a Shared, storage: &'a [Storage], first: Duration) -> Self {
        let work = Self { page, storage, took: VecDeque::new(), tally: Tally::default() };
        // Under load a flush of a file system waits for the one before and empties
        // a journal: with 300 ms for each of the disk's, 0.6 s became 2.1 s. Until
        // the first of those, this is a guess.
        work.expect(super::shared::nanoseconds(first * 4));
        work
    }

    /// Flushes when it is time to, until there is an end; and then what is left.
    fn follow(&mut self, is_over: &AtomicBool) {
        let (page, longest) = (self.page, self.page.longest.load(SeqCst));
        let (mut waited, mut looked) = (0, now());
        while self.tally.failure.is_none() {
            let seen = page.wake.load(SeqCst);
            if is_over.load(SeqCst) {
                self.flush();
                return;
            }
            let (oldest, now) = (page.oldest.load(SeqCst), now());
            if oldest != 0 {
                let due = oldest.saturating_add(page.delay.load(SeqCst));
                // A process that is ahead of this one has another clock (a time namespace).
                if due <= now || oldest > now {
                    self.flush();
                } else {
                    page.wait(seen, Duration::from_nanos(due - now));
                }
            } else if looked + longest <= now {
                looked = now;
                let before = std::mem::replace(&mut waited, page.waited.load(SeqCst));
                if waited != before {
                    // Flushes were too slow to defer for, and might not be any more.
                    self.flush();
                }
            } else {
                // A process that was killed or stopped before it could wake this thread is
                // seen in time.
                let most = page.delay.load(SeqCst).max(longest / 10);
                page.wait(seen, Duration::from_nanos(most));
            }
        }
    }

    fn flush(&mut self) {
        let (page, began) = (self.page, now());
        page.began.store(began.max(1), SeqCst);
        let oldest = page.take_oldest();
        let result = self.storage.iter().try_for_each(Storage::flush);
        if let Err(error) = result {
            self.page.state.store(FAILED, SeqCst);
            self.tally.failure = Some(error.to_string());
            return;
        }
        let ended = now();
        self.tally.flushes += 1;
        let took = Duration::from_nanos(ended - began);
        self.tally.longest_flush = self.tally.longest_flush.max(took);
        if oldest != 0 {
            let lag = Duration::from_nanos(ended.saturating_sub(oldest));
            self.tally.largest_lag = self.tally.largest_lag.max(lag);
        }
        self.remember(ended - began);
        page.began.store(0, SeqCst);
    }

    /// Records the duration of a flush, in nanoseconds. The next one is expected to take as
    /// long as the longest of the last ones.
    fn remember(&mut self, took: u64) {
        if self.took.len() == REMEMBERED {
            self.took.pop_front();
        }
        self.took.push_back(took);
        self.expect(self.took.iter().copied().max().unwrap_or(took));
    }

    /// A flush is taken to take an eighth more than it did, and never less than a
    /// fifth of the bound: so much is left behind half of it, anyway. It begins so
    /// much earlier where that is too late, since the oldest may have to wait for
    /// two.
    fn expect(&self, took: u64) {
        let longest = self.page.longest.load(SeqCst);
        let takes = took.saturating_add(took / 8).max(longest / 5);
        let delay = (longest / 2).min((longest / 10 * 9).saturating_sub(2 * takes));
        self.page.takes.store(takes, SeqCst);
        self.page.delay.store(delay, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::host::linux::defer::shared_page::{DeferPage, FlushAnswer};

    const MS: u64 = 1_000_000;
    const DEVICE: u64 = 7;

    fn page(longest_ms: u64) -> Shared {
        let shared = Shared::new(Duration::from_millis(longest_ms), &[DEVICE]).unwrap();
        shared.become_(OPEN);
        shared
    }

    /// Calls every `gap` ms, in milliseconds of its own, while flushes take what
    /// they say. Returns the largest lag, and the number of calls acknowledged.
    fn simulated(longest_ms: u64, gap: u64, first: u64, flushes: &[u64]) -> (u64, u64) {
        let shared = page(longest_ms);
        let mut work = FlushWork::new(&shared, &[], Duration::from_millis(first));
        let page: &DeferPage = &shared;
        let (mut flushes, mut ends, mut covers, mut lag) = (flushes.iter(), None, 0, 0);
        let mut probed = 0;
        for now in (1..30_000).map(|ms| ms * MS) {
            if ends.is_some_and(|(end, _)| end <= now) {
                let (_, began) = ends.take().unwrap();
                work.remember(now - began);
                page.began.store(0, SeqCst);
                lag = lag.max(now.saturating_sub(if covers == 0 { now } else { covers }));
            }
            let oldest = page.oldest.load(SeqCst);
            let is_due = oldest != 0 && oldest + page.delay.load(SeqCst) <= now;
            let is_probe = oldest == 0 && probed + longest_ms * MS <= now;
            if ends.is_none() && (is_due || is_probe) {
                probed = now;
                let Some(takes) = flushes.next() else { break };
                (ends, covers) = (Some((now + takes * MS, now)), oldest);
                page.began.store(now, SeqCst);
                page.oldest.store(0, SeqCst);
            }
            if (now / MS).is_multiple_of(gap) {
                page.call(DEVICE, now);
            }
        }
        (lag / MS, page.deferred.load(SeqCst))
    }

    /// However long flushes take, as long as they take about as long as before.
    #[test]
    fn nothing_acknowledged_is_older_than_agreed() {
        for longest in [20, 100, 1_000] {
            for percent in [0, 5, 20, 40, 60, 79, 85, 200] {
                let takes = longest * percent / 100;
                for (gap, wobble) in [(1, 0), (1, 8), (7, 8), (longest / 2, 4)] {
                    let flushes: Vec<_> =
                        (0..200).map(|n| takes - takes * (n * 7 % 5) * wobble / 400).collect();
                    let (lag, calls) = simulated(longest, gap, takes, &flushes);
                    let case = format!("T {longest}, {percent} %, gap {gap}, wobble {wobble}");
                    assert!(lag <= longest, "{case}: {lag}");
                    assert!(calls > 0 || percent > 60, "{case}: none was deferred");
                    assert!(calls == 0 || percent < 80, "{case}: {calls} were deferred");
                }
            }
        }
    }

    /// The first that is slow is not foreseen. What comes behind it is.
    #[test]
    fn a_device_that_becomes_slow_is_waited_for() {
        let (lag, calls) = simulated(1_000, 1, 10, &[10, 10, 700, 10, 10]);
        assert!((700..=1_250).contains(&lag) && calls > 0, "{lag} {calls}");
    }

    #[test]
    fn flushes_that_must_not_be_acknowledged() {
        let shared = page(1_000);
        FlushWork::new(&shared, &[], Duration::ZERO);
        let now = 10 * MS;
        assert_eq!(shared.call(DEVICE, now), FlushAnswer::Acknowledged { first: true });
        assert_eq!(shared.call(DEVICE, now), FlushAnswer::Acknowledged { first: false });
        assert_eq!(shared.call(DEVICE + 1, now), FlushAnswer::Real, "another file system");
        assert_eq!(shared.passed.load(SeqCst), 1);
        shared.owner.store(super::super::shared_page::OWNER_DIED, SeqCst);
        assert_eq!(shared.call(DEVICE, now), FlushAnswer::Real, "nobody would flush");
        shared.owner.store(1, SeqCst);
        shared.become_(REAL);
        assert_eq!(shared.call(DEVICE, now), FlushAnswer::Real, "over");
        shared.state.store(FAILED, SeqCst);
        shared.become_(REAL);
        assert_eq!(shared.call(DEVICE, now), FlushAnswer::Failed, "and that for good");
        assert_eq!(shared.deferred.load(SeqCst), 2);
    }

    /// Each note is of the flush that takes it away: one that came while it was taken
    /// would be flushed, and its lag would not count.
    #[test]
    fn no_note_is_lost_while_it_is_taken() {
        let shared = Arc::new(page(3_600_000));
        FlushWork::new(&shared, &[], Duration::ZERO);
        let (is_over, caller) = (Arc::new(AtomicBool::new(false)), Arc::clone(&shared));
        let over = Arc::clone(&is_over);
        let calls = std::thread::spawn(move || {
            let mut first = 0;
            while !over.load(SeqCst) {
                let answer = caller.call(DEVICE, now());
                first += u64::from(answer == FlushAnswer::Acknowledged { first: true });
            }
            first
        });
        let mut taken = 0;
        while taken < 20_000 {
            taken += u64::from(shared.take_oldest() != 0);
        }
        is_over.store(true, SeqCst);
        let first = calls.join().unwrap();
        taken += u64::from(shared.take_oldest() != 0);
        assert_eq!(taken, first);
    }

    /// A flush that begins between a caller's look and its note does not take that note
    /// away: then it is not durable before the end of two, which may be too late.
    #[test]
    fn nothing_is_acknowledged_behind_a_flush_that_has_just_begun() {
        let shared = Arc::new(page(1_000));
        shared.takes.store(600 * MS, SeqCst);
        shared.delay.store(0, SeqCst);
        let (is_over, caller) = (Arc::new(AtomicBool::new(false)), Arc::clone(&shared));
        let (over, acknowledged) = (Arc::clone(&is_over), Arc::new(AtomicU64::new(0)));
        let noted = Arc::clone(&acknowledged);
        let calls = std::thread::spawn(move || {
            let mut now = 1;
            while !over.load(SeqCst) {
                now += 1;
                if caller.call(DEVICE, now) == (FlushAnswer::Acknowledged { first: true }) {
                    noted.store(now, SeqCst);
                }
            }
        });
        let pause = || (0..200).for_each(|_| std::hint::spin_loop());
        let mut late = 0;
        for _ in 0..300_000 {
            shared.began.store(1, SeqCst);
            shared.take_oldest();
            // A caller that was about to answer has, unless it does not run just now.
            pause();
            let oldest = shared.oldest.load(SeqCst);
            late += u64::from(oldest != 0 && acknowledged.load(SeqCst) == oldest);
            shared.began.store(0, SeqCst);
            shared.take_oldest();
            pause();
        }
        is_over.store(true, SeqCst);
        calls.join().unwrap();
        assert_eq!(late, 0);
    }

    fn follow(longest: Duration, while_it_does: impl FnOnce(&DeferPage)) -> Tally {
        let shared = Arc::new(Shared::new(longest, &[DEVICE]).unwrap());
        let flusher = Flusher::begin(&shared, Vec::new(), Duration::ZERO);
        while_it_does(&shared);
        flusher.end()
    }

    /// A call noted by a process that was killed before it could wake the flusher.
    #[test]
    fn an_unnoticed_write_is_flushed_in_time() {
        let (longest, pause) = (Duration::from_secs(8), Duration::from_millis(5));
        // How much later than asked for a sleep ended here, too.
        let mut late = Duration::ZERO;
        let tally = follow(longest, |page| {
            // It sleeps by now, or looks at the page anyway.
            std::thread::sleep(Duration::from_millis(200));
            page.oldest.store(now(), SeqCst);
            while page.oldest.load(SeqCst) != 0 {
                let began = std::time::Instant::now();
                std::thread::sleep(pause);
                late = late.max(began.elapsed().saturating_sub(pause));
            }
        });
        assert!(tally.largest_lag < longest / 4 * 3 + late, "{tally:?}, {late:?}");
    }

    /// A note of who has another clock does not keep it from flushing.
    #[test]
    fn a_clock_that_is_ahead_puts_nothing_off() {
        let tally = follow(Duration::from_secs(1), |page| {
            page.call(DEVICE, now() + 3_600_000 * MS);
            while page.oldest.load(SeqCst) != 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(tally.flushes, 2, "{tally:?}");
    }

    /// The kernel's part: a thread that ends leaves the page marked.
    #[test]
    fn a_process_that_dies_leaves_a_mark() {
        let shared = Arc::new(page(1_000));
        let own_page = Arc::clone(&shared);
        std::thread::spawn(move || own(&own_page)).join().unwrap();
        assert_ne!(shared.owner.load(SeqCst) & super::super::shared_page::OWNER_DIED, 0);
        assert_eq!(shared.call(DEVICE, 1), FlushAnswer::Real);
    }
}
