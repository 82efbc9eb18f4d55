//! Code that the integration tests share: the command as a child process, trees
//! to damage, and file systems that misbehave on purpose.
//!
//! Damage has to come from below the program, or the test proves nothing. So
//! the file systems here are real mounts: an image that is edited while it is not
//! mounted (`Image`), and a FUSE view of a folder that refuses or
//! falsifies reads (`FaultyFs`). Both need root and a kernel that supports them;
//! if they are not available, the test reports that through [`skip`] and passes. A
//! test that did not run must never look like one that did.
// Every test program uses its own part of this small library.
#![allow(dead_code, unused_imports, unreachable_pub)]

#[cfg(target_os = "linux")]
pub mod cache;
#[cfg(target_os = "linux")]
pub mod committer;
#[cfg(target_os = "linux")]
mod concurrent_edit;
#[cfg(target_os = "linux")]
mod faulty;
#[cfg(target_os = "linux")]
pub mod forger;
#[cfg(target_os = "linux")]
pub mod history;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
pub mod layout;
#[cfg(target_os = "linux")]
mod mounted;
#[cfg(target_os = "linux")]
pub mod noise;
pub mod powercut;
#[cfg(target_os = "linux")]
pub mod ram_machine;
#[cfg(target_os = "linux")]
pub mod ram_run_folders;
mod record;
mod run;
pub mod scrub;
pub mod serial;
#[cfg(target_os = "linux")]
pub mod settled;
#[cfg(all(target_os = "linux", feature = "storage"))]
pub mod sides;
#[cfg(target_os = "linux")]
pub mod signable;
#[cfg(target_os = "linux")]
pub mod slowness;
#[cfg(target_os = "linux")]
mod traced;
mod tree;

#[cfg(target_os = "linux")]
pub use concurrent_edit::{Meanwhile, Moment};
#[cfg(target_os = "linux")]
pub use faulty::{Fault, Faults, FaultyFs, How, Request};
#[cfg(target_os = "linux")]
pub use image::{
    BTRFS, BTRFS_PACKED, EXFAT, EXT3, EXT4, EXT4_JOURNALED, EXT4_SMALL_INODES, Format, Image, VFAT,
    XFS,
};
#[cfg(target_os = "linux")]
pub use mounted::Mounted;
pub use record::{Recorded, Row, bytes, content};
pub use run::{
    Report, Run, cannot_crash, code, crash, ended, fsure, fsure_in, fsure_json, fsure_of,
    fsure_with, is_torn_superblock, path_of, path_verdicts, typed,
};
#[cfg(target_os = "linux")]
pub use traced::{Traced, traced};
pub use tree::{AWKWARD, Tree, flip_byte, mtime_ns, set_mtime_ns};

use std::fs::OpenOptions;
use std::io::Write as _;

/// Says that a test did not run, and why: on standard error, where libtest
/// does not capture it, and in the file `$FSURE_SKIPPED`, which `.ci/run`
/// prints at its end.
pub fn skip(test: &str, why: &str) {
    let line = format!("DID NOT RUN: {test}: {}\n", why.trim().replace('\n', "; "));
    print_uncaptured(&line);
    if let Some(list) = std::env::var_os("FSURE_SKIPPED") {
        let mut list = OpenOptions::new().create(true).append(true).open(list).expect("open list");
        list.write_all(line.as_bytes()).expect("append to FSURE_SKIPPED");
    }
}

/// Says that a test is run once more, since another process has disturbed it.
pub fn report_retry(test: &str, why: &str) {
    print_uncaptured(&format!("ONCE MORE: {test}: {}\n", why.trim().replace('\n', "; ")));
}

fn print_uncaptured(line: &str) {
    // Not eprintln!: that is captured, and shown only when the test fails.
    std::io::stderr().write_all(line.as_bytes()).expect("write to standard error");
}

/// Returns the resource that a test needs; `None`, after a loud skip, if there is an error:
/// `let Some(image) = or_skip("rot", Ext4Image::new(64)) else { return };`
pub fn or_skip<T>(test: &str, needed: Result<T, String>) -> Option<T> {
    needed.inspect_err(|why| skip(test, why)).ok()
}

/// Returns how often a campaign (kills, cuts, random cases) tries something: `few` times, and
/// so many times more if `FSURE_CAMPAIGN` is a number. `make campaign` sets it.
///
/// # Panics
/// If it is set to something else.
pub fn campaign(few: u32) -> u32 {
    let factor = std::env::var("FSURE_CAMPAIGN").ok();
    few * factor.map_or(1, |factor| factor.parse().expect("FSURE_CAMPAIGN is a number"))
}

/// Returns true if all cases are asked for, and not only some of them.
pub fn is_campaign() -> bool {
    std::env::var_os("FSURE_CAMPAIGN").is_some()
}

/// Returns the name that a test program knows a test by: `module` is `module_path!()`.
///
/// # Panics
/// If the test is in the root of its program.
pub fn full_test_name(module: &str, test: &str) -> String {
    let (_, module) = module.split_once("::").expect("a module of a test program");
    format!("{module}::{test}")
}
