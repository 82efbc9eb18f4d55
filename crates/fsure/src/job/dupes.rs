//! `dupes`: files of equal content, by the record alone. Nothing is read and
//! nothing is written. A file that is not as recorded any more, by its stat, is
//! left out and counted: its digest is that of another content.

use fsure_os::folder::Root;
use fsure_os::{Kind, Stat};

use super::opening::{open_root, require_record, require_scope};
use crate::catalog::{Catalog, Place, Stored};
use crate::words::{Algorithm, Duplicate, Duplicates, Entry, Monitor, RelPath, Result};

/// Finds files of equal content in a root and hands each to `tell`, group by
/// group, as they are found. Progress is not told: it is one query.
pub fn dupes(
    place: &Place,
    monitor: &dyn Monitor,
    tell: &mut dyn FnMut(&Duplicate),
) -> Result<Duplicates> {
    require_record(place)?;
    let open = open_root(place)?;
    let mut catalog = Catalog::open(&place.catalog, None)?;
    require_scope(place, &open, &mut catalog)?;
    let algorithm = catalog.settings().digests.iter().next().unwrap_or(Algorithm::Blake3);
    let mut groups = Groups::new(tell);
    catalog.each_equal(algorithm, &place.scope, &mut |stored| {
        let Stored::Sound(row) = stored else {
            groups.found.bad_records += 1;
            return Ok(true);
        };
        let record = row.record;
        let granularity_ns = catalog.granularity_ns(record.entry.file_system);
        match stat_if_as_recorded(&open.root, &record.path, &record.entry) {
            Some(stat) if !record.is_racy(granularity_ns) => {
                let digest = record.digests.get(algorithm).unwrap_or_default();
                groups.take(record.path, &stat, digest);
            }
            _ => groups.found.stale += 1,
        }
        groups.found.was_stopped = monitor.stop_requested().is_some();
        Ok(!groups.found.was_stopped)
    })?;
    Ok(groups.found)
}

fn stat_if_as_recorded(root: &Root, path: &RelPath, then: &Entry) -> Option<Stat> {
    let now = root.stat(path.as_bytes()).ok()?;
    let is_same = now.kind == Kind::File
        && now.size == then.size
        && now.mtime_ns == then.mtime_ns
        && Some(now.ctime_ns) == then.ctime_ns
        && then.inode.is_none_or(|inode| inode == now.inode);
    is_same.then_some(now)
}

/// The group under way. Only the names of its first file are held, until there
/// is a second one.
struct Groups<'a> {
    tell: &'a mut dyn FnMut(&Duplicate),
    found: Duplicates,
    size: u64,
    digest: Box<[u8]>,
    /// Device and inode of the last file.
    last: Option<(u64, u64)>,
    waiting: Vec<RelPath>,
}

impl<'a> Groups<'a> {
    fn new(tell: &'a mut dyn FnMut(&Duplicate)) -> Self {
        let (found, digest, waiting) = Default::default();
        Self { tell, found, size: 0, digest, last: None, waiting }
    }

    fn take(&mut self, path: RelPath, stat: &Stat, digest: &[u8]) {
        let file = (stat.device, stat.inode);
        if (self.size, &*self.digest) != (stat.size, digest) {
            (self.size, self.digest) = (stat.size, digest.into());
            self.last = Some(file);
            self.waiting = vec![path];
            return;
        }
        let is_link = self.last == Some(file);
        self.last = Some(file);
        if is_link && !self.waiting.is_empty() {
            self.waiting.push(path);
            return;
        }
        if !self.waiting.is_empty() {
            self.found.groups += 1;
            for (number, first) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
                self.tell(first, number > 0);
            }
            self.found.bytes_saved -= self.size;
        }
        self.tell(path, is_link);
    }

    fn tell(&mut self, path: RelPath, is_link: bool) {
        if is_link {
            self.found.links += 1;
        } else {
            self.found.files += 1;
            self.found.bytes_saved += self.size;
        }
        (self.tell)(&Duplicate {
            group: self.found.groups,
            path,
            size: self.size,
            digest: self.digest.clone(),
            is_link,
        });
    }
}
