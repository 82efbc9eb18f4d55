//! From the system's stat to an entry, with the catalog's number for the file
//! system it is on.

use std::collections::HashMap;

use fsure_os::folder::Root;
use fsure_os::{Kind, Stat, volume};

use crate::catalog::{Catalog, Stored};
use crate::words::{Entry, EntryKind, Error, FileSystemId, RelPath, Result};

/// Turns stats into entries.
#[derive(Default)]
pub(super) struct Entries {
    /// The catalog's numbers of the file systems met so far, by device.
    known: HashMap<u64, FileSystemId>,
}

impl Entries {
    /// The entry of a stat. `device` is that of the folder it is in, since on
    /// an overlay a file's own is not the file system's.
    pub(super) fn entry(
        &mut self,
        root: &Root,
        catalog: &mut Catalog,
        path: &RelPath,
        stat: &Stat,
        device: u64,
    ) -> Result<Entry> {
        let file_system = match self.known.get(&device) {
            Some(known) => *known,
            None => {
                let id = file_system(root, catalog, path, stat, device)?;
                self.known.insert(device, id);
                id
            }
        };
        let is_stable = catalog.file_system(file_system).volume.has_stable_inodes;
        let kind = words_kind(stat.kind);
        Ok(Entry {
            kind,
            size: if kind == EntryKind::Folder { 0 } else { stat.size },
            mtime_ns: stat.mtime_ns,
            ctime_ns: Some(stat.ctime_ns),
            birth_ns: stat.birth_ns,
            inode: is_stable.then_some(stat.inode),
            file_system,
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
) -> Result<FileSystemId> {
    let is_of_root = root.stat(b"").is_ok_and(|at_root| at_root.device == device);
    let folder = match stat.kind {
        _ if is_of_root => RelPath::root(),
        Kind::Folder => path.clone(),
        _ => path.parent().unwrap_or_default(),
    };
    let asked = volume::of(root, folder.as_bytes())
        .and_then(|volume| Ok((volume, root.stat(folder.as_bytes())?.inode)));
    let (volume, anchor) = asked.map_err(|source| Error::Io {
        doing: "ask for the file system of",
        path: fsure_os::path::from_bytes(folder.as_bytes()).to_owned(),
        source,
    })?;
    Ok(catalog.file_system_of(volume, anchor))
}

/// The coarser of the modification-time granularities of the file systems of
/// an entry and of its record, nanoseconds.
pub(super) fn granularity_ns(catalog: &Catalog, stored: Option<&Stored>, entry: &Entry) -> i64 {
    let now = catalog.granularity_ns(entry.file_system);
    match stored {
        Some(Stored::Sound(row)) => now.max(catalog.granularity_ns(row.record.entry.file_system)),
        _ => now,
    }
}

pub(super) fn words_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::File,
        Kind::Folder => EntryKind::Folder,
        Kind::Link => EntryKind::Link,
        Kind::Special => EntryKind::Special,
    }
}
