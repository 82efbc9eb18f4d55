//! After a crash: the generation that counted is completed, and what did not count
//! is gone. Doing it twice does no harm, nor does not doing it: every file is whole.

use std::path::Path;

use fsure_os::folder::is_gone;
use fsure_os::mirror::Side;

use super::journal::Journal;
use super::own::{Disk, JOURNAL_NEW, OWN};
use crate::words::{IoContext as _, Result};

/// What was found on a disk side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing of ours, or nothing under way.
    Nothing,
    /// A generation that never counted.
    Discarded,
    /// One that counted, with its number and how many changes it made.
    Completed {
        /// Its number.
        generation: u64,
        /// Changes.
        steps: usize,
        /// Names that somebody else had changed meanwhile: what was in the way is in
        /// the trash.
        changed_outside: Vec<crate::words::RelPath>,
    },
}

/// Settles what a crash has left on a folder's disk side, and removes what is ours
/// from it. Refuses while a process has it in RAM.
pub fn recover(folder: &Path) -> Result<Recovered> {
    let side = Side::open(folder).doing("open", folder)?;
    match side.facts(OWN.as_bytes()) {
        Err(error) if is_gone(&error) => return Ok(Recovered::Nothing),
        other => other.doing("look at", &folder.join(OWN))?,
    };
    let disk = Disk::open(folder)?;
    let recovered = settle(&disk)?;
    disk.leave()?;
    Ok(recovered)
}

/// Completes or discards what is under way.
pub(super) fn settle(disk: &Disk) -> Result<Recovered> {
    let found = match Journal::read(disk)? {
        Some(journal) => {
            journal.check_stage(disk)?;
            let changed_outside = journal.apply(disk)?.changed;
            let (generation, steps) = (journal.generation, journal.steps.len());
            Recovered::Completed { generation, steps, changed_outside }
        }
        None if disk.has_staged()? => Recovered::Discarded,
        None => Recovered::Nothing,
    };
    disk.clear_stage()?;
    disk.forget(JOURNAL_NEW)?;
    disk.forget(super::own::JOURNAL)?;
    Ok(found)
}
