//! When to flush and whom to let go on, without threads or clocks, so that the
//! bound on what can be lost is tested as arithmetic.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::Lag;

/// When a commit is acknowledged, and when it is flushed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Policy {
    Each,
    Group { most: u64, wait: Duration },
    Defer { longest: Duration },
}

/// Commits and flushes so far. Commits are numbered from 1.
#[derive(Debug)]
pub(super) struct State {
    policy: Policy,
    /// Times of the commits that are not durable, oldest first.
    waiting: VecDeque<Duration>,
    committed: u64,
    durable: u64,
    is_flushing: bool,
    is_over: bool,
    failure: Option<(io::ErrorKind, String)>,
    lag: Lag,
}

impl State {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            waiting: VecDeque::new(),
            committed: 0,
            durable: 0,
            is_flushing: false,
            is_over: false,
            failure: None,
            lag: Lag::default(),
        }
    }

    /// Whether one more commit may be acknowledged now. Deferred ones may not
    /// when the oldest that is not durable is nearly as old as agreed: a
    /// tenth is left for who takes the time to hear of it.
    pub(super) fn may_acknowledge(&self, now: Duration) -> bool {
        match (self.policy, self.waiting.front()) {
            _ if self.failure.is_some() => true,
            (Policy::Defer { longest }, Some(oldest)) => now - *oldest < longest / 10 * 9,
            _ => true,
        }
    }

    /// Notes a commit and says its number.
    pub(super) fn commit(&mut self, now: Duration) -> u64 {
        self.waiting.push_back(now);
        self.committed += 1;
        self.committed
    }

    /// How long until a flush is due; `None` where nothing waits for one.
    pub(super) fn due_in(&self, now: Duration) -> Option<Duration> {
        let oldest =
            self.waiting.front().filter(|_| !self.is_flushing && self.failure.is_none())?;
        let due = match self.policy {
            _ if self.is_over => *oldest,
            Policy::Each => *oldest,
            Policy::Group { most, .. } if self.waiting.len() as u64 >= most => *oldest,
            Policy::Group { wait, .. } => oldest.saturating_add(wait),
            Policy::Defer { longest } => *oldest + longest / 2,
        };
        Some(due.saturating_sub(now))
    }

    /// A flush begins: the number of the last commit that it will make durable.
    pub(super) fn begin_flush(&mut self) -> u64 {
        self.is_flushing = true;
        match self.policy {
            // Its own flush each, as those who measure it expect.
            Policy::Each => self.durable + 1,
            Policy::Group { .. } | Policy::Defer { .. } => self.committed,
        }
    }

    /// A flush has ended.
    pub(super) fn end_flush(&mut self, until: u64, result: io::Result<()>, now: Duration) {
        self.is_flushing = false;
        if let Err(error) = result {
            self.failure = Some((error.kind(), error.to_string()));
            return;
        }
        let oldest = self.waiting.front().map_or(Duration::ZERO, |oldest| now - *oldest);
        self.lag.flushed(until - self.durable, oldest);
        while self.durable < until {
            self.waiting.pop_front();
            self.durable += 1;
        }
    }

    pub(super) fn is_durable(&self, number: u64) -> bool {
        number <= self.durable
    }

    /// What went wrong, if something did: from then on nothing is acknowledged.
    pub(super) fn failure(&self) -> io::Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((kind, words)) => Err(io::Error::new(*kind, format!("a flush failed: {words}"))),
        }
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn lag(&self, now: Duration) -> Lag {
        self.lag.with_waiting(self.waiting.front().map(|oldest| now - *oldest))
    }
}
