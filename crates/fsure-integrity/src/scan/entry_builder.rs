//! From the system's stat to an entry, with the catalog's number for the file
//! system it is on, and what of the record can be held against it.

use fsure_os::filesystem_id::{self, Volume};
use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use crate::catalog::{Catalog, Row, StoredRow};
use crate::model::{Entry, EntryKind, FileSystemId, RecordState, is_same_date};
use fsure_core::{RelPath, Result};

/// A file system that was met.
struct KnownFileSystem {
    device: u64,
    /// The catalog's number for it.
    id: FileSystemId,
    has_stable_inodes: bool,
}

/// Turns stats into entries.
#[derive(Default)]
pub struct EntryBuilder {
    /// The file systems met so far. They are few, and looked up for every file.
    known: Vec<KnownFileSystem>,
}

impl EntryBuilder {
    /// Returns true if the run has come across anything on this file system.
    pub(super) fn have_met(&self, id: FileSystemId) -> bool {
        self.known.iter().any(|met| met.id == id)
    }

    /// The entry of a stat. `device` is that of the folder it is in, since on
    /// an overlay a file's own is not the file system's.
    pub fn entry(
        &mut self,
        root: &Root,
        catalog: &mut Catalog,
        path: &RelPath,
        stat: &Stat,
        device: u64,
    ) -> Result<Entry> {
        let place = self.known.iter().position(|met| met.device == device);
        let place = place.unwrap_or_else(|| {
            let id = file_system(root, catalog, path, stat, device);
            let has_stable_inodes = catalog.file_system(id).volume.has_stable_inodes;
            self.known.push(KnownFileSystem { device, id, has_stable_inodes });
            self.known.len() - 1
        });
        let met = &self.known[place];
        let kind = entry_kind(stat.kind);
        Ok(Entry {
            kind,
            size: if kind == EntryKind::Folder { 0 } else { stat.size },
            mtime_ns: stat.mtime_ns,
            ctime_ns: Some(stat.ctime_ns),
            birth_ns: stat.birth_ns,
            inode: met.has_stable_inodes.then_some(stat.inode),
            file_system: met.id,
            target: None,
        })
    }
}

fn file_system(
    root: &Root,
    catalog: &mut Catalog,
    path: &RelPath,
    stat: &Stat,
    device: u64,
) -> FileSystemId {
    let is_of_root = root.stat(b"").is_ok_and(|at_root| at_root.device == device);
    let folder = match stat.kind {
        _ if is_of_root => RelPath::root(),
        Kind::Folder => path.clone(),
        _ => path.parent().unwrap_or_default(),
    };
    // A file system that does not identify itself must not end the run: nothing
    // on it will be comparable, that is all.
    let mut volume =
        filesystem_id::of(root, folder.as_bytes()).unwrap_or_else(|_| Volume::unknown());
    let anchor = root.stat(folder.as_bytes()).map_or(0, |stat| stat.inode);
    if !catalog.has_file_system(&volume, anchor) {
        volume.mtime_granularity_ns =
            filesystem_id::measure_granularity_ns(root, folder.as_bytes(), false);
    }
    catalog.file_system_of(volume, anchor)
}

/// Returns what is recorded that an entry can be compared with. A tombstone
/// counts again if the file came back with its old size and date: otherwise
/// damage would be taken for a new file.
pub(super) fn known<'a>(
    stored: Option<&'a StoredRow>,
    entry: &Entry,
    granularity_ns: i64,
) -> RecordState<'a> {
    let came_back = |row: &Row| {
        let then = &row.record.entry;
        then.kind == entry.kind
            && then.size == entry.size
            && is_same_date(then.mtime_ns, entry.mtime_ns, granularity_ns)
    };
    match stored {
        Some(StoredRow::Bad(_)) => RecordState::Bad,
        Some(StoredRow::Sound(row)) if !row.is_gone() || came_back(row) => {
            RecordState::Sound(&row.record)
        }
        _ => RecordState::Nothing,
    }
}

/// The coarser of the modification-time granularities of the file systems of
/// an entry and of its record, nanoseconds.
pub(super) fn granularity_ns(catalog: &Catalog, stored: Option<&StoredRow>, entry: &Entry) -> i64 {
    let now = catalog.granularity_ns(entry.file_system);
    match stored {
        Some(StoredRow::Sound(row)) => {
            now.max(catalog.granularity_ns(row.record.entry.file_system))
        }
        _ => now,
    }
}

pub(super) fn entry_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::File,
        Kind::Folder => EntryKind::Folder,
        Kind::Link => EntryKind::Link,
        Kind::Special => EntryKind::Special,
    }
}
