//! Checks the promise of `defer` with power cuts: a database whose flushes are deferred
//! in order loses no more than was agreed, and is never damaged. This is a small form of
//! the runs in `docs/defer.md`; the twin on a drive that lies shows that the check would
//! notice damage.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support;
use crate::support::{is_torn_superblock, or_skip};
use fsure_core::Random;
use fsure_os::loop_mount::{FileSystem, LoopMount, MountArea, format};
use fsure_os::process_tree::Task;
use fsure_simdrive::{Behavior, CutVariant, Image, LiveDrive, Traits};
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

const SIZE: u64 = 64 << 20;
const DEFER: &str = "\"$FSURE\" defer --max-loss 60s --";

/// Runs a line of `sh` on a new ext4 with `data=journal`, until it prints a line, and
/// returns the superblocks that torn cuts leave then.
fn superblocks_while(site: &Arc<MountArea>, line: &str) -> Result<BTreeSet<Vec<u8>>, String> {
    let new = |behavior, image| Arc::new(LiveDrive::new(Traits::new(behavior), image));
    let empty = new(Behavior::Protected, Image::new(SIZE));
    format(site, empty.clone(), FileSystem::Ext4).map_err(|error| error.to_string())?;
    let drive = new(Behavior::Honest, empty.cut(CutVariant::None, &mut Random::new(1)));
    let stand = LoopMount::mount(site, drive.clone(), FileSystem::Ext4, "data=journal");
    let stand = stand.map_err(|error| error.to_string())?;
    let task = Task {
        command: ["sh", "-c", line].map(Into::into).to_vec(),
        environment: vec![("FSURE".into(), env!("CARGO_BIN_EXE_fsure").into())],
        folder: stand.place().to_owned(),
    };
    let has_begun = Arc::new(AtomicBool::new(false));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let (begun, kept) = (Arc::clone(&has_begun), Arc::clone(&errors));
    let mut family = stand
        .spawn(
            &task,
            Box::new(move |_: &[u8]| begun.store(true, Ordering::SeqCst)),
            Box::new(move |line: &[u8]| kept.lock().unwrap().extend_from_slice(line)),
        )
        .map_err(|error| error.to_string())?;
    while !has_begun.load(Ordering::SeqCst) {
        if let Some(ended) = family.try_wait().map_err(|error| error.to_string())? {
            let errors = errors.lock().unwrap();
            return Err(format!("{ended:?}: {}", String::from_utf8_lossy(&errors)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let superblock = |seed| {
        let mut bytes = vec![0; 1024];
        drive.cut(CutVariant::Torn, &mut Random::new(seed)).read(1024, &mut bytes).unwrap();
        bytes
    };
    Ok((0..50).map(superblock).collect())
}

/// The first file that is opened after a mount changes the superblock of ext4. As long as
/// that is in the drive's cache, a cut can tear it, and then nothing mounts.
#[test]
fn a_deferred_command_begins_with_the_superblock_on_the_medium() {
    let folder = tempfile::tempdir().unwrap();
    let site = MountArea::create(folder.path(), Path::new(env!("CARGO_BIN_EXE_fsure"))).unwrap();
    let test = "a deferred command begins with the superblock on the medium";
    let once = superblocks_while(&site, ": > file; sync -f .; echo begun; sleep 60");
    let Some(once) = or_skip(test, once) else { return };
    if once.len() == 1 {
        support::skip(test, "this kernel leaves no superblock in the drive's cache");
        return;
    }
    let deferred = superblocks_while(&site, &format!("{DEFER} sh -c 'echo begun; sleep 60'"));
    assert_eq!(deferred.map(|found| found.len()), Ok(1));
}
