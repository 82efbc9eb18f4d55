//! Programs whose power is cut, and the checks of what a cut leaves of them: the ways of
//! making data durable that are considered right, those that are known to be wrong,
//! SQLite, and the record of fsure itself.
//!
//! They follow the contract of `docs/crash.md` as any program of a user does. A workload
//! that knew of the drive below it would prove nothing.

mod append;
mod builtin_workloads;
mod catalog;
mod overwrite;
mod payload;
mod ram;
mod rename;
mod sqlite;

use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use fsure_os::durable_write::Method;
use fsure_os::user_file;

pub use builtin_workloads::{WORKLOADS, Workload, workload};
use fsure_core::{Error, Result};
pub use ram::write_generation;

/// Work that a workload does.
#[derive(Clone, Copy, Debug)]
enum RunningWorkload {
    Append(Method),
    Overwrite(Method),
    Rename(rename::Steps),
    Sqlite(sqlite::Pragmas),
    Catalog(catalog::Acknowledges),
    Ram(ram::Acknowledges),
}

/// Callback that receives each acknowledgement and decides whether to go on.
pub type Listen<'a> = &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send);

/// Reason for the end of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped, or has done enough.
    Stopped,
    /// There is no space left.
    Full,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Everything up to this number is there; `None` if that cannot be said.
    pub last: Option<u64>,
    /// Description of the damage, if there is any.
    pub corrupt: Option<String>,
}

/// The number up to which everything is there, or a description of the damage.
type LastIntact = std::result::Result<u64, String>;

/// Maximum number of acknowledgements per second. A workload that never flushes would
/// fill a small volume in seconds, and a run would measure the reader of the lines.
const RATE: u32 = 4000;

/// Reports what is safe, no faster than [`RATE`].
struct AckWriter<'a> {
    listen: Listen<'a>,
    next: Instant,
}

impl AckWriter<'_> {
    fn acknowledge(&mut self, number: u64) -> ControlFlow<()> {
        let now = Instant::now();
        if let Some(early) = self.next.checked_duration_since(now) {
            std::thread::sleep(early);
        }
        self.next = self.next.max(now) + Duration::from_secs(1) / RATE;
        (self.listen)(number)
    }
}

/// Runs a workload in an empty folder until `listen` ends it or the disk is
/// full.
pub fn run(workload: &Workload, folder: &Path, listen: Listen<'_>) -> Result<Ended> {
    let acks = &mut AckWriter { listen, next: Instant::now() };
    let ended = match workload.work {
        RunningWorkload::Append(method) => append::run(method, folder, acks),
        RunningWorkload::Overwrite(method) => overwrite::run(method, folder, acks),
        RunningWorkload::Rename(steps) => rename::run(steps, folder, acks),
        RunningWorkload::Sqlite(pragmas) => sqlite::run(pragmas, folder, acks),
        RunningWorkload::Catalog(acknowledges) => catalog::run(acknowledges, folder, acks),
        RunningWorkload::Ram(acknowledges) => ram::run(acknowledges, folder, acks),
    };
    match ended {
        Ok(()) => Ok(Ended::Stopped),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {
            Ok(Ended::Full)
        }
        Err(error) => Err(error),
    }
}

/// Checks what a cut left in the folder. A file that cannot be read is as corrupt as one
/// with other content; a missing file is lost.
pub fn check(workload: &Workload, folder: &Path) -> Checked {
    let last = match workload.work {
        RunningWorkload::Append(_) => append::check(folder),
        RunningWorkload::Overwrite(_) => overwrite::check(folder),
        RunningWorkload::Rename(steps) => rename::check(steps, folder),
        RunningWorkload::Sqlite(_) => sqlite::check(folder),
        RunningWorkload::Catalog(_) => catalog::check(folder),
        RunningWorkload::Ram(_) => ram::check(folder),
    };
    match last {
        Ok(last) => Checked { last: Some(last), corrupt: None },
        Err(why) => Checked { last: None, corrupt: Some(why) },
    }
}

/// Reads a whole file; `None` if there is none.
fn read(path: &Path) -> std::result::Result<Option<Vec<u8>>, String> {
    let mut data = Vec::new();
    let read = user_file::open(path).and_then(|mut file| file.read_to_end(&mut data));
    match read {
        Ok(_) => Ok(Some(data)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}
