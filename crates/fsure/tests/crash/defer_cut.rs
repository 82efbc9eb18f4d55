//! Checks the promise of `defer` with power cuts: a database whose flushes are deferred
//! in order loses no more than was agreed, and is never damaged. This is a small form of
//! the runs in `docs/defer.md`; the twin on a drive that lies shows that the check would
//! notice damage.
#![cfg(target_os = "linux")]

use crate::support;
use crate::support::is_torn_superblock;
use serde_json::Value;

/// The loss that was agreed, in seconds. Long, so that a busy machine keeps to it, too.
const LONGEST_S: u64 = 2;
const WORKLOAD: &str = "sqlite:wal-full";

/// Runs the cuts of a deferred SQLite; `None`, with a report, if this machine cannot.
fn cuts(test: &str, fs: &str, options: &str) -> Option<Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let own = env!("CARGO_BIN_EXE_fsure");
    let check = format!("'{own}' workload check {WORKLOAD} .");
    let longest = format!("{LONGEST_S}s");
    // Its first cuts come before the making of the database is durable: then there is none,
    // which is a loss within what was agreed, and no damage.
    let program = format!("'{own}' workload run {WORKLOAD} .");
    let run = support::crash(
        test,
        folder.path(),
        &[
            &["--fs", fs, "--mount-options", options, "--latency", "apple"][..],
            &["--cuts", "6", "--variant", "none,prefix,epoch,random,torn", "--check", &check],
            &["--", own, "defer", "--max-loss", &longest, "--", "sh", "-c", &program],
        ]
        .concat(),
    )?;
    assert_ne!(run.code, 2, "{}", run.stderr);
    let lines = run.lines;
    let drive = lines.iter().find(|line| line["type"] == "drive").unwrap();
    assert_eq!((&drive["cuts"], &drive["twin_lost"]), (&6.into(), &true.into()), "{lines:?}");
    Some(lines.into_iter().filter(|line| line["type"] == "cut" && line["twin"] != true).collect())
}

#[test]
fn a_deferred_database_loses_what_was_agreed_and_no_more() {
    for (fs, options) in [("ext4", "data=journal"), ("btrfs", "flushoncommit,notreelog")] {
        let name = format!("a deferred database on {fs}");
        let Some(cuts) = cuts(&name, fs, options) else { continue };
        for cut in cuts.iter().filter(|cut| !is_torn_superblock(fs, cut)) {
            assert!(["survived", "lost"].iter().any(|state| cut["state"] == *state), "{cut}");
            let oldest = cut["oldest_lost_ms"].as_u64().unwrap_or(0);
            assert!(oldest <= LONGEST_S * 1_000, "{cut}");
        }
        // Or nothing was deferred, and nothing shown.
        assert!(cuts.iter().any(|cut| cut["state"] == "lost"), "{cuts:?}");
    }
}
