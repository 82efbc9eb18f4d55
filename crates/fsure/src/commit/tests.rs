//! The bound as arithmetic, and the threads around it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use proptest::prelude::*;

use super::*;

/// Commits as fast as they are allowed, every `gap`, while each flush takes
/// as long as it says; the oldest that was ever acknowledged and not durable.
fn longest_lag(longest: Duration, gap: Duration, flushes: &[Duration]) -> (Duration, u64) {
    let mut state = State::new(Policy::Defer { longest });
    let (mut now, mut flushing, mut worst) =
        (Duration::ZERO, None::<(Duration, u64)>, Duration::ZERO);
    let (mut flushes, mut next_commit) = (flushes.iter().copied(), Duration::ZERO);
    let step = Duration::from_millis(1);
    let mut refused = 0;
    while now < Duration::from_secs(20) {
        if let Some((end, until)) = flushing.filter(|(end, _)| *end <= now) {
            let _ = end;
            state.end_flush(until, Ok(()), now);
            flushing = None;
        }
        if flushing.is_none() && state.due_in(now) == Some(Duration::ZERO) {
            let Some(takes) = flushes.next() else { break };
            flushing = Some((now + takes, state.begin_flush()));
        }
        if next_commit <= now {
            if state.may_acknowledge(now) {
                state.commit(now);
                next_commit = now + gap;
            } else {
                refused += 1;
            }
        }
        worst = worst.max(state.lag(now).longest);
        now += step;
    }
    (worst, refused)
}

proptest! {
    /// Where a flush takes less than half of what was agreed, nothing that was
    /// acknowledged is ever older than agreed.
    #[test]
    fn nothing_acknowledged_is_older_than_agreed(
        longest in 20..2_000_u64,
        gap in 0..50_u64,
        shares in prop::collection::vec(0.0..0.45_f64, 1..200),
    ) {
        let longest = Duration::from_millis(longest);
        let flushes: Vec<_> = shares.iter().map(|share| longest.mul_f64(*share)).collect();
        let (worst, _) = longest_lag(longest, Duration::from_millis(gap), &flushes);
        prop_assert!(worst <= longest, "{worst:?} of {longest:?}");
    }
}

#[test]
fn who_is_too_slow_is_waited_for() {
    let second = Duration::from_secs(1);
    let (_, refused) = longest_lag(second, Duration::from_millis(1), &[4 * second, 4 * second]);
    assert!(refused > 2_000, "{refused}: commits wait while the drive is behind");
    let (_, refused) = longest_lag(second, Duration::from_millis(1), &[second / 10; 100]);
    assert_eq!(refused, 0, "and do not where it keeps up");
}

/// A group without a limit of time: its first commit waits for the others.
#[test]
fn no_wait_is_too_long() {
    let mut state = State::new(Policy::Group { most: 2, wait: Duration::MAX });
    let now = Duration::from_secs(1);
    state.commit(now);
    assert!(state.due_in(now) > Some(Duration::from_secs(1 << 40)));
    state.commit(now);
    assert_eq!(state.due_in(now), Some(Duration::ZERO));
}

fn counting(flushes: &Arc<AtomicU64>) -> Box<Flush> {
    let flushes = Arc::clone(flushes);
    Box::new(move || {
        flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
}

#[test]
fn each_has_its_own_flush_and_a_group_shares_one() {
    let flushes = Arc::new(AtomicU64::new(0));
    let each = Committer::each(counting(&flushes));
    let tickets: Vec<_> = (0..5).map(|_| each.commit().unwrap()).collect();
    tickets.iter().for_each(|ticket| ticket.wait().unwrap());
    assert_eq!(flushes.swap(0, Ordering::SeqCst), 5);
    assert_eq!((each.lag().flushes, each.lag().commits), (5, 5));
    let group = Committer::group(5, Duration::from_secs(3_600), counting(&flushes));
    let tickets: Vec<_> = (0..5).map(|_| group.commit().unwrap()).collect();
    tickets.iter().for_each(|ticket| ticket.wait().unwrap());
    assert_eq!(flushes.load(Ordering::SeqCst), 1);
}

#[test]
fn a_deferred_commit_does_not_wait_and_is_flushed_at_the_end() {
    let flushes = Arc::new(AtomicU64::new(0));
    let defer = Committer::defer(Duration::from_secs(3_600), counting(&flushes));
    let ticket = defer.commit().unwrap();
    assert!(!ticket.is_durable());
    drop(defer);
    assert!(ticket.is_durable());
    assert_eq!(flushes.load(Ordering::SeqCst), 1);
}

/// Who waits for a flush must not be told that one which had begun before was
/// his.
#[test]
fn a_flush_that_had_begun_counts_for_nobody_who_came_later() {
    let (began, is_begun) = channel();
    let (go_on, may_go_on) = channel();
    let flush = Box::new(move || {
        began.send(()).unwrap();
        may_go_on.recv().map_err(io::Error::other)
    });
    let group = Committer::group(1, Duration::ZERO, flush);
    let first = group.commit().unwrap();
    is_begun.recv().unwrap();
    let second = group.commit().unwrap();
    go_on.send(()).unwrap();
    first.wait().unwrap();
    assert!(!second.is_durable());
    is_begun.recv().unwrap();
    go_on.send(()).unwrap();
    second.wait().unwrap();
}

#[test]
fn after_a_failed_flush_nothing_is_acknowledged() {
    let mut left = 1;
    let flush = Box::new(move || {
        left -= 1;
        if left == 0 { Err(io::Error::other("medium error")) } else { Ok(()) }
    });
    let group = Committer::group(1, Duration::ZERO, flush);
    let error = group.commit().unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("medium error"), "{error}");
    assert!(group.commit().is_err(), "not even though the next flush would succeed");
}

#[test]
fn a_flush_that_panics_has_failed() {
    let group = Committer::group(1, Duration::ZERO, Box::new(|| panic!("planted")));
    let error = group.commit().unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}
