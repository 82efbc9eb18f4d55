//! Checks whether the disk side can hold what the RAM side has. In memory, links can be
//! longer, attributes more numerous and files larger than many file systems on a disk
//! allow. This is found out before a generation counts, because one that counts must be
//! one that can be applied.

use std::io;

use fsure_os::root_dir::{is_denied, is_gone};
use fsure_os::tree_copy::{File, NodeKind, Side, data_from};

use super::disk_side::{DiskSide, staged};
use super::index::IndexEntry;
use super::journal::path_of;
use super::journal_step::Meta;
use fsure_core::{IoContext as _, RelPath, Result};

/// Staged name under which an object is made to test whether the disk side can hold it.
const PROBE: &str = "probe";
/// Every file system takes links of so many bytes; xfs takes 1,024.
const LINK_BYTES_SAFE: usize = 255;

impl DiskSide {
    /// Returns true if this side can hold the entry under this name. All that is not known to
    /// fit is tested; `known` is what it holds under that name.
    pub(super) fn can_store(
        &self,
        path: &RelPath,
        entry: &IndexEntry,
        known: Option<&IndexEntry>,
    ) -> Result<bool> {
        let is_known = known.is_some_and(|known| {
            known.facts.kind == entry.facts.kind && known.attributes == entry.attributes
        });
        let is_plain = entry.attributes.is_empty() || is_known;
        if is_plain && entry.target.len() <= LINK_BYTES_SAFE {
            return Ok(true);
        }
        self.probe(entry)
            .context("test what the disk's file system can store for", path_of(path).as_ref())
    }

    /// Gives what is staged all that it is to have before it has its name.
    pub(super) fn set_attributes(&self, stage: &str, entry: &IndexEntry) -> Result<()> {
        let (name, meta) = (staged(stage), entry.meta());
        let (mtime, attributes) = (Some(meta.mtime_ns), &meta.attributes);
        let set = self.side.set(name.as_bytes(), NodeKind::File, meta.ownership, mtime, attributes);
        set.context("prepare", &self.path.join(name))
    }

    /// Fails if what is staged to be appended does not fit once more behind the file: then the
    /// generation would count already, and could not be done. Adds the bytes of the tail to
    /// those that are appended.
    pub(super) fn check_space_for_append(&self, tail: &File, appended: &mut u64) -> io::Result<()> {
        let mut at = 0;
        while let Some(data) = data_from(tail, at)? {
            *appended += data.end - data.start;
            at = data.end;
        }
        // If that is not known, it is as it was.
        let Ok(space) = fsure_os::overmount::space(&self.path) else { return Ok(()) };
        match space.bytes.saturating_sub(space.used) < *appended {
            true => {
                let why = "No space left on device: what is staged would not fit when it is \
                           appended";
                Err(io::Error::new(io::ErrorKind::StorageFull, why))
            }
            false => Ok(()),
        }
    }

    fn probe(&self, entry: &IndexEntry) -> io::Result<bool> {
        let (kind, name) = (entry.facts.kind, staged(PROBE));
        let (side, name) = (&self.side, name.as_bytes());
        remove(side, name)?;
        let made = match kind {
            NodeKind::File => side.create(name).map(drop),
            kind => side.make(name, kind, &entry.target),
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return Ok(false),
            other => other?,
        }
        let Meta { ownership, attributes, .. } = entry.meta();
        let set = side.set(name, kind, ownership, None, &attributes);
        remove(side, name)?;
        match set {
            Err(error) if is_too_much(&error) || is_denied(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

fn remove(side: &Side, name: &[u8]) -> io::Result<()> {
    match side.facts(name) {
        Err(error) if is_gone(&error) => Ok(()),
        other => side.remove(name, other?.kind == NodeKind::Folder),
    }
}

/// Returns true if the attributes are more than the file system has space for in any file.
fn is_too_much(error: &io::Error) -> bool {
    use io::ErrorKind::{ArgumentListTooLong, StorageFull, Unsupported};
    [ArgumentListTooLong, StorageFull, Unsupported].contains(&error.kind())
}

/// Returns true if a file is larger than the file system allows.
pub(super) fn is_too_large(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// Returns the entry of a folder that cannot be as it is, and yet must be there for what is
/// in it: no user but its owner sees that until it can.
pub(super) fn private(entry: IndexEntry) -> IndexEntry {
    let mut facts = entry.facts;
    facts.ownership.mode &= 0o700;
    IndexEntry { facts, attributes: Vec::new(), ..entry }
}
