//! Counts the requests that come to the server, so that statements about the kernel report
//! what was seen.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::passthrough::Served;

/// Numbers of the requests that were served.
#[derive(Default)]
pub(super) struct RequestCounters {
    pub(super) opened: AtomicU64,
    pub(super) backed: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) flushes: AtomicU64,
}

impl RequestCounters {
    pub(super) fn read(&self) -> Served {
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Served {
            opened: number(&self.opened),
            backed: number(&self.backed),
            reads: number(&self.reads),
            writes: number(&self.writes),
            flushes: number(&self.flushes),
        }
    }
}

/// One more.
pub(super) fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

/// As it goes over the line.
pub(super) fn to_line(served: &Served) -> String {
    let Served { opened, backed, reads, writes, flushes } = served;
    format!("{opened} {backed} {reads} {writes} {flushes}\n")
}

/// And back.
pub(super) fn of_line(line: &str) -> Option<Served> {
    let mut numbers = line.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Served {
        opened: next()?,
        backed: next()?,
        reads: next()?,
        writes: next()?,
        flushes: next()?,
    })
}
