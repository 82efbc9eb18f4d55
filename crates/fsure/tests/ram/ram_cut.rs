//! A RAM folder on a drive whose power is cut: what was synced is there, exactly one
//! generation, and what was only in memory is lost for no longer than agreed on.
#![cfg(target_os = "linux")]

use crate::support;
use crate::support::campaign;
use std::path::Path;
use std::time::Duration;

use crate::support::slowness::slowest;
use crate::support::{is_torn_superblock, skip};
use serde_json::Value;

/// The loss that the workload agrees to.
const AGREED: Duration = Duration::from_millis(300);
/// Shortest duration of a flush of a simulated drive, with its loop device.
const SLOW: Duration = Duration::from_millis(150);

/// Runs the cuts of a workload on a drive that keeps its promise, and of its twin that
/// lies; `None`, with a report, if this machine cannot.
fn cuts(workload: &str, fs: &str, count: u32, folder: &Path) -> Option<Vec<Value>> {
    let count = count.to_string();
    let test = format!("cuts of {workload} on {fs}");
    let args = ["--workload", workload, "--fs", fs, "--cuts", &count];
    let run = support::crash(&test, folder, &args)?;
    if run.stderr.contains("mount a copy") {
        skip(&test, run.stderr.trim());
        return None;
    }
    let (twin, own): (Vec<_>, Vec<_>) = run
        .lines
        .into_iter()
        .filter(|line| line["type"] == "cut")
        .partition(|cut| cut["twin"] == true);
    assert_eq!(own.len().to_string(), count, "{}", run.stderr);
    // The same check on a drive that lies.
    let is_seen = twin.last().is_some_and(|cut| cut["state"] != "survived");
    assert!(is_seen, "{workload} on {fs}: {twin:?}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "left behind");
    Some(own)
}

#[test]
fn what_was_synced_survives_cuts() {
    for (fs, count) in [("ext4", 10), ("xfs", 2), ("btrfs", 2)] {
        let folder = tempfile::tempdir().unwrap();
        for cut in cuts("ram:synced", fs, campaign(count), folder.path()).into_iter().flatten() {
            if is_torn_superblock(fs, &cut) {
                continue;
            }
            assert_eq!((&cut["state"], &cut["lost"]), (&"survived".into(), &0.into()), "{cut}");
            assert!(cut["acked"].as_u64() > Some(0), "{cut}");
        }
    }
}

#[test]
fn what_was_in_memory_is_lost_for_no_longer_than_agreed_on() {
    let folder = tempfile::tempdir().unwrap();
    let (cuts, slowest) = slowest(|| cuts("ram:told", "ext4", campaign(6), folder.path()));
    // A generation waits for the disk four times; the drive is a program, too, and the
    // disk that is watched is another one.
    let bound = AGREED + 8 * slowest.max(SLOW);
    for cut in cuts.into_iter().flatten() {
        let state = cut["state"].as_str().unwrap();
        assert!(["survived", "lost"].contains(&state), "{cut}");
        let oldest = cut["oldest_lost_ms"].as_u64();
        assert!(oldest.is_some() || state != "lost", "{cut}");
        let lost = Duration::from_millis(oldest.unwrap_or(0));
        assert!(lost <= bound, "{lost:?} of {AGREED:?}, with {bound:?}: {cut}");
    }
}
