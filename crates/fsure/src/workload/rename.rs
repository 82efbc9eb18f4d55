//! Files replaced as a whole: a new one is written under another name and
//! renamed over the old one. After a cut there must be the old one or the new
//! one, whole; how much of that a file system keeps without being asked is what
//! the variants show.
//!
//! Over one name, file systems have taken to guessing what is meant (ext4's
//! `auto_da_alloc`); a name that was not there before gets no such help. So some
//! variants take 1024 names in turn.

use std::path::Path;

use fsure_os::durable_write::{self, Method, Names, Writer};

use super::payload::{self, PayloadCheck};
use super::{AckWriter, LastIntact, read};
use fsure_core::{IoContext as _, Result};

/// Not a whole number of sectors, as hardly any file is.
const FILE_SIZE: usize = 4012;
const NEW: &str = "new";

/// Steps of a replacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// `fsync` of the file before the rename.
    pub(super) flushes_file: bool,
    /// `fsync` of the folder behind it.
    pub(super) flushes_folder: bool,
    /// Number of names that are used in turn.
    pub(super) names: u64,
}

fn name(slot: u64) -> String {
    format!("file-{slot:04}")
}

pub(super) fn run(steps: Steps, folder: &Path, acks: &mut AckWriter<'_>) -> Result<()> {
    let method = if steps.flushes_file { Method::Fsync } else { Method::WriteOnly };
    let names = Names::open(folder).context("open", folder)?;
    let new = folder.join(NEW);
    let mut data = [0; FILE_SIZE];
    for number in 1.. {
        payload::fill(&mut data, number);
        let written = Writer::create(&new, method).and_then(|writer| writer.commit(&data, 0));
        written.context("write", &new)?;
        let path = folder.join(name((number - 1) % steps.names));
        durable_write::rename(&new, &path).context("put a new file in the place of", &path)?;
        if steps.flushes_folder {
            names.flush().context("flush the folder", folder)?;
        }
        if acks.acknowledge(number).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn check(steps: Steps, folder: &Path) -> LastIntact {
    let mut next = u64::MAX;
    for slot in 0..steps.names {
        let name = name(slot);
        let Some(data) = read(&folder.join(&name))? else {
            next = next.min(slot + 1);
            continue;
        };
        let what = match payload::look(&data, FILE_SIZE) {
            PayloadCheck::Whole(found) if found > 0 && (found - 1) % steps.names == slot => {
                next = next.min(found + steps.names);
                continue;
            }
            PayloadCheck::Whole(found) => &format!("is write {found}, which has another name"),
            PayloadCheck::Empty => "is empty",
            PayloadCheck::Zero => &format!("is {} zeros", data.len()),
            PayloadCheck::Broken => "is neither the old file nor the new one",
        };
        return Err(format!("{name} {what}"));
    }
    Ok(next - 1)
}
