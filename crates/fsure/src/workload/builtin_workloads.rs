//! The workloads, and the result that is expected of each: the claims that `fsure crash
//! --matrix` compares with what it sees.

use std::time::Duration;

use fsure_os::durable_write::Method;

use super::RunningWorkload;
use super::catalog::Acknowledges;
use super::ram;
use super::rename::Steps;
use super::sqlite::Pragmas;
use fsure_crash::{CrashWorkload, Expect};
use fsure_simdrive::Behavior;

/// A program whose power is cut.
#[derive(Debug)]
pub struct Workload {
    /// Its name: protocol, colon, variant.
    pub name: &'static str,
    /// Description of its steps before an acknowledgement.
    pub does: &'static str,
    /// Expected result on an honest drive.
    honest: Expect,
    pub(super) work: RunningWorkload,
}

impl Workload {
    /// Returns the first part of its name.
    pub fn protocol(&self) -> &'static str {
        self.name.split(':').next().unwrap_or(self.name)
    }
}

impl CrashWorkload for Workload {
    fn name(&self) -> &str {
        self.name
    }

    /// Returns the expected result on a drive with a file system of this kind.
    ///
    /// A drive with a protected cache owes what an honest one does: what the system has
    /// not sent yet is lost on both. On a drive that lies or defers, the right protocols
    /// fail as well as the wrong ones; only because they are seen to fail there does
    /// "nothing lost" on the other drives mean something.
    fn expect(&self, drive: Behavior, file_system: &str) -> Expect {
        if matches!(drive, Behavior::Lying { .. } | Behavior::Defer { .. }) {
            return Expect::Fails;
        }
        match (self.name, file_system) {
            // Its commit of the log sends a flush only where there is something
            // in the log, which an overwrite in place need not leave there: 18
            // of 40 cuts lost (kernel 6.18).
            ("overwrite:syncfs", "xfs") => Expect::MayLose,
            // The kernel does not pass it on to a FUSE file system.
            ("append:syncfs" | "overwrite:syncfs", "folder" | "folder-journal") => Expect::Fails,
            ("ram:synced" | "ram:told", "folder" | "folder-journal") => Expect::Fails,
            // Nothing but a flush of the folder makes a name durable there, and
            // that is all that POSIX promises.
            ("rename:file", "folder") => Expect::MayLose,
            _ => self.honest,
        }
    }
}

/// Finds a workload by its name; a protocol alone stands for its first workload.
pub fn workload(name: &str) -> Option<&'static Workload> {
    let exact = WORKLOADS.iter().find(|workload| workload.name == name);
    exact.or_else(|| WORKLOADS.iter().find(|workload| workload.protocol() == name))
}

const fn append(name: &'static str, does: &'static str, honest: Expect, by: Method) -> Workload {
    Workload { name, does, honest, work: RunningWorkload::Append(by) }
}

const fn overwrite(name: &'static str, does: &'static str, by: Method) -> Workload {
    Workload { name, does, honest: Expect::NeverLoses, work: RunningWorkload::Overwrite(by) }
}

const fn rename(
    name: &'static str,
    does: &'static str,
    honest: Expect,
    flushes: (bool, bool),
    names: u64,
) -> Workload {
    let steps = Steps { flushes_file: flushes.0, flushes_folder: flushes.1, names };
    Workload { name, does, honest, work: RunningWorkload::Rename(steps) }
}

const fn sqlite(
    name: &'static str,
    does: &'static str,
    honest: Expect,
    (journal_mode, synchronous): (&'static str, &'static str),
) -> Workload {
    let pragmas = Pragmas { journal_mode, synchronous };
    Workload { name, does, honest, work: RunningWorkload::Sqlite(pragmas) }
}

const fn catalog(
    name: &'static str,
    does: &'static str,
    honest: Expect,
    acknowledges: Acknowledges,
) -> Workload {
    Workload { name, does, honest, work: RunningWorkload::Catalog(acknowledges) }
}

/// A commit comes a second after the last one, and takes as long as the drive and
/// the machine take: with seven processes to a core, 2.3 s were seen, and 0.8 s in
/// the middle of all cuts.
const ABOUT_A_SECOND: Duration = Duration::from_secs(3);

/// All workloads.
///
/// SQLite's promises are from `sqlite.org/pragma.html#pragma_synchronous` (WAL with
/// NORMAL may roll back, DELETE with FULL may lose the last commit and EXTRA does not).
/// Those of the calls are from their manual pages: a name is durable when its folder was
/// flushed, `sync_file_range` promises nothing.
pub const WORKLOADS: &[Workload] = &[
    append("append:fsync", "100-byte records, fsync", Expect::NeverLoses, Method::Fsync),
    append("append:fdatasync", "the same, fdatasync", Expect::NeverLoses, Method::Fdatasync),
    append("append:dsync", "the same, O_DSYNC", Expect::NeverLoses, Method::Dsync),
    append("append:syncfs", "the same, syncfs", Expect::NeverLoses, Method::Syncfs),
    append("append:range", "the same, sync_file_range", Expect::Fails, Method::SyncFileRange),
    append("append:none", "the same, no flush", Expect::Fails, Method::WriteOnly),
    overwrite("overwrite:fsync", "4 KiB in place, fsync", Method::Fsync),
    overwrite("overwrite:fdatasync", "the same, fdatasync", Method::Fdatasync),
    overwrite("overwrite:syncfs", "the same, syncfs", Method::Syncfs),
    rename(
        "rename:full",
        "new file, fsync, rename over one name, fsync of the folder",
        Expect::NeverLoses,
        (true, true),
        1,
    ),
    rename("rename:file", "the same, folder not flushed", Expect::MayLoseLast, (true, false), 1),
    rename("rename:bare", "the same, nothing flushed", Expect::Fails, (false, false), 1),
    rename(
        "rename:file-new",
        "as rename:file, 1024 names in turn",
        Expect::MayLose,
        (true, false),
        1024,
    ),
    rename(
        "rename:bare-new",
        "as rename:bare, 1024 names in turn",
        Expect::Fails,
        (false, false),
        1024,
    ),
    sqlite(
        "sqlite:wal-full",
        "SQLite, journal_mode=WAL, synchronous=FULL",
        Expect::NeverLoses,
        ("WAL", "FULL"),
    ),
    sqlite("sqlite:wal-normal", "the same, NORMAL", Expect::MayLose, ("WAL", "NORMAL")),
    sqlite(
        "sqlite:delete-full",
        "SQLite, journal_mode=DELETE, synchronous=FULL",
        Expect::MayLoseLast,
        ("DELETE", "FULL"),
    ),
    sqlite("sqlite:delete-extra", "the same, EXTRA", Expect::NeverLoses, ("DELETE", "EXTRA")),
    sqlite("sqlite:off", "the same, OFF", Expect::Fails, ("DELETE", "OFF")),
    catalog(
        "catalog:committed",
        "fsure update, what another connection sees committed",
        Expect::NeverLoses,
        Acknowledges::Committed,
    ),
    catalog(
        "catalog:told",
        "fsure update, each file when it is reported",
        Expect::MayLoseUpTo(ABOUT_A_SECOND),
        Acknowledges::Reported,
    ),
    Workload {
        name: "ram:synced",
        does: "a RAM folder, each generation as it is on the disk side",
        honest: Expect::NeverLoses,
        work: RunningWorkload::Ram(ram::Acknowledges::Synced),
    },
    Workload {
        name: "ram:told",
        does: "the same, each as it is in memory, max-loss 300 ms",
        honest: Expect::MayLoseUpTo(ABOUT_A_SECOND),
        work: RunningWorkload::Ram(ram::Acknowledges::InMemory),
    },
];
