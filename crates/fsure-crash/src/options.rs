//! The options of a run, and the receiver of its progress and results.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::AccessMode;
use crate::CrashLine;
use fsure_core::{Clock, Monitor};
use fsure_simdrive::{Behavior, CutVariant, Latency};

/// Options of a run: the program, the drives, and the number of cuts.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// The drives, each tried by itself.
    pub drives: Vec<Behavior>,
    /// Time that their requests take.
    pub latency: Latency,
    /// Number of the program's write that fails, from 1 on; `None` if none does.
    pub failing_write: Option<u64>,
    /// Form in which the program sees the drives.
    pub front: AccessMode,
    /// Bytes of a drive.
    pub size: u64,
    /// Variants of the cuts, in turn: they decide which writes survive.
    pub variants: Vec<CutVariant>,
    /// Cuts for each drive.
    pub cuts: u64,
    /// Instead of cuts at random moments, check every flush that an honest drive is sent
    /// in this time.
    pub every_flush: Option<Duration>,
    /// The longest time between one check and the next cut.
    pub pause: Duration,
    /// Seed of all random choices.
    pub seed: u64,
    /// A program that is run to its end on the new file system; what it leaves
    /// is on the medium when the first cut comes. May be empty.
    pub prepare: Vec<OsString>,
    /// Name of the workload, if the program is a built-in one.
    pub workload: Option<String>,
    /// The program.
    pub command: Vec<OsString>,
    /// The program that checks what is left.
    pub check: Vec<OsString>,
    /// A folder for the images of cuts that have shown a loss.
    pub keep: Option<PathBuf>,
    /// This program's own file, for its hidden commands.
    pub program: PathBuf,
    /// Folder with space for mount points; nothing is stored there.
    pub folder: PathBuf,
    /// Folder with space for all writes of a run that is checked at every flush.
    pub history_folder: PathBuf,
    /// Source of the time.
    pub clock: Clock,
}

/// Receiver of the progress and the results of a run.
pub trait CrashMonitor: Monitor {
    /// Receives a line of the result, as soon as it is known.
    fn report(&self, _line: &CrashLine) {}

    /// Receives the current activity, and the share of the run that is done, 0 to 1.
    fn under_way(&self, _what: &str, _share: f64) {}
}
