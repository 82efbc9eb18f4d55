//! Marks that databases have published for the storage below them, as lines in a chart.

use crate::chart::Mark;
use fsure_measure::flush_verdict::thresholds::{ETCD_P99_US, SQLITE_DISK_COMMITS};

/// The 99th percentile of a flush that etcd asks for, in microseconds.
pub(super) fn etcd() -> Mark {
    Mark { label: "etcd: 99 % in less than 10 ms (its FAQ)".to_owned(), value: ETCD_P99_US }
}

/// Time of one of the transactions that SQLite's FAQ expects of a disk of 7,200 rpm.
pub(super) fn sqlite() -> Mark {
    let value = 1e6 / SQLITE_DISK_COMMITS;
    Mark { label: "60 a second: a disk of 7,200 rpm (SQLite, FAQ 19)".to_owned(), value }
}
