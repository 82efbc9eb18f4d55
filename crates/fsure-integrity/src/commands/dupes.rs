//! `dupes`: files of equal content, as they are now. A current record is believed;
//! a file without one is read if any other file has its size; nothing is
//! written. Then equal files are one query.

use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use super::Options;
use super::open_root::{detect_offline, open_root, require_scope};
use super::snapshot::{TreeSnapshot, look};
use crate::catalog::{Catalog, RootLocation, StoredRow, each_equal};
use crate::model::{Duplicate, Duplicates, Entry, ScanMonitor};
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result};

/// Finds files of equal content in a folder, recorded or not, and passes each to
/// `report`, group by group.
pub fn dupes(
    place: &RootLocation,
    options: &Options,
    monitor: &dyn ScanMonitor,
    report: &mut dyn FnMut(&Duplicate),
) -> Result<Duplicates> {
    let open = open_root(place)?;
    let mut algorithm = Algorithm::Blake3;
    if place.is_recorded() {
        let mut catalog = Catalog::open(&place.catalog, None)?;
        if let offline @ Some(_) = detect_offline(place, &open, &catalog, options.allowed)? {
            return Ok(Duplicates { offline, ..Duplicates::default() });
        }
        require_scope(place, &open, &mut catalog)?;
        algorithm = catalog.settings().digests.iter().next().unwrap_or(algorithm);
    }
    let looked = look(place, &open, AlgorithmSet::of(&[algorithm]), true, options, monitor)?;
    for path in &looked.unread {
        monitor.warn(&format!("{}: it could not be read in full", path.display()));
    }
    let mut groups = Groups::new(report);
    groups.found.unread = looked.unread.len() as u64;
    groups.found.bad_records = looked.bad_records;
    groups.found.known_damage = looked.known_damage;
    groups.found.files_read = looked.files_read;
    groups.found.bytes_read = looked.bytes_read;
    each_equal(&looked.catalog, algorithm, &place.scope, &mut |stored| {
        if let StoredRow::Sound(row) = stored
            && !looked.unread.contains(&row.record.path)
        {
            let record = row.record;
            let digest = record.digests.get(algorithm).unwrap_or_default();
            match now(&open.root, &record.path, &record.entry) {
                Now::AsLookedAt(stat) => groups.take(record.path, &stat, digest),
                Now::Other(size) if was_read(&looked, size) => groups.found.changed += 1,
                Now::Other(_) => {}
            }
        }
        groups.found.was_stopped = monitor.stop_requested().is_some();
        Ok(!groups.found.was_stopped)
    })?;
    Ok(groups.found)
}

/// Returns true if files of that size without a current record were read. A file with a
/// unique size was not read: it is equal to no other.
fn was_read(looked: &TreeSnapshot, size: u64) -> bool {
    looked.sizes.as_ref().is_none_or(|sizes| sizes.may_be_shared(size))
}

/// The current state of a file that was scanned.
enum Now {
    AsLookedAt(Stat),
    /// A file that has changed since, with its size now in bytes.
    Other(u64),
}

fn now(root: &Root, path: &RelPath, then: &Entry) -> Now {
    let Ok(now) = root.stat(path.as_bytes()) else { return Now::Other(then.size) };
    let is_same = now.kind == Kind::File
        && now.size == then.size
        && now.mtime_ns == then.mtime_ns
        && Some(now.ctime_ns) == then.ctime_ns
        && then.inode.is_none_or(|inode| inode == now.inode);
    if is_same { Now::AsLookedAt(now) } else { Now::Other(now.size) }
}

/// The group under way. Only the names of its first file are held, until there
/// is a second one.
struct Groups<'a> {
    report: &'a mut dyn FnMut(&Duplicate),
    found: Duplicates,
    size: u64,
    digest: Box<[u8]>,
    /// Device and inode of the last file.
    last: Option<(u64, u64)>,
    waiting: Vec<RelPath>,
}

impl<'a> Groups<'a> {
    fn new(report: &'a mut dyn FnMut(&Duplicate)) -> Self {
        let (found, digest, waiting) = Default::default();
        Self { report, found, size: 0, digest, last: None, waiting }
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
                self.report(first, number > 0);
            }
            self.found.bytes_saved -= self.size;
        }
        self.report(path, is_link);
    }

    fn report(&mut self, path: RelPath, is_link: bool) {
        if is_link {
            self.found.links += 1;
        } else {
            self.found.files += 1;
            self.found.bytes_saved += self.size;
        }
        (self.report)(&Duplicate {
            group: self.found.groups,
            path,
            size: self.size,
            digest: self.digest.clone(),
            is_link,
        });
    }
}
