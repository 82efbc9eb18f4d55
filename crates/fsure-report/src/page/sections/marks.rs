//! Marks that databases have published for the storage below them, and where they come from:
//! - etcd: 99 % of its flushes of the log take less than 10 ms (etcd.io, FAQ, of
//!   `wal_fsync_duration_seconds`).
//! - SQLite: no mark. Its FAQ (sqlite.org, question 19) names a figure to compare with: a disk
//!   of 7,200 rpm is limited to about 60 transactions a second.
//! - PostgreSQL: no mark. Its manual (pg_test_fsync) compares methods only, and says that a
//!   difference might not make one in the throughput of a database.

use crate::chart::Mark;

/// The 99th percentile of a flush that etcd asks for, in microseconds.
pub(super) fn etcd() -> Mark {
    Mark { label: "etcd: 99 % in less than 10 ms (its FAQ)".to_owned(), value: 10_000.0 }
}

/// Transactions a second that SQLite's FAQ expects of a disk of 7,200 rpm.
pub(super) fn sqlite() -> Mark {
    Mark { label: "60/s: a disk of 7,200 rpm (SQLite, FAQ 19)".to_owned(), value: 60.0 }
}
