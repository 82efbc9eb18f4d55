//! What a list expects of a folder, as a catalog that is gone afterwards: so a
//! list is judged like a record.

use std::path::Path;

use fsure_os::volume::Volume;

use super::listing::{self, Named, Refusal, Troubles, named, record};
use super::opening::OpenRoot;
use crate::catalog::{Catalog, Place, Settings, Stored};
use crate::exchange::{Format, Listed, Source, Trouble};
use crate::words::{AlgorithmSet, Monitor, Record, Result};

/// Set for `verified_s` in the record of a file that has the name in another
/// spelling than the list.
const RESPELLED: i64 = 1;

/// A list as a catalog.
pub(super) struct Expected {
    pub(super) catalog: Catalog,
    /// How many entries it has.
    pub(super) entries: u64,
    pub(super) troubles: Troubles,
}

/// Reads a list for the files below `place`; `digests` are what is to be
/// computed of them.
pub(super) fn expected(
    place: &Place,
    open: &OpenRoot,
    source: &Source,
    digests: AlgorithmSet,
    monitor: &dyn Monitor,
) -> Result<Expected> {
    let root = (open.volume.clone(), open.inode);
    let mut find = |listed: &Listed| Ok(named(&open.root, &place.scope, listed));
    expected_where(&place.catalog, root, source, digests, &mut find, monitor)
}

/// Reads a list for files of which `find` knows; `file` is what errors name.
pub(super) fn expected_where(
    file: &Path,
    root: (Volume, u64),
    source: &Source,
    digests: AlgorithmSet,
    find: &mut dyn FnMut(&Listed) -> Result<Named>,
    monitor: &dyn Monitor,
) -> Result<Expected> {
    let settings = Settings { digests, cross_file_systems: false };
    let mut catalog = Catalog::temporary(file, settings, root)?;
    let file_system = catalog.root_identity().0.id;
    // A list is of one moment, whatever became of its files; attributes are
    // kept by a program that, like us, takes an edit for an edit.
    let keeps_date = source.format == Format::Cshatag;
    let (mut entries, mut respelled) = (0, 0_u64);
    let mut troubles = listing::read(source, monitor, true, &mut |listed| {
        entries += 1;
        let named = find(&listed)?;
        if named.written.is_none() {
            put(&mut catalog, source, record(named, listed, file_system, keeps_date))
        } else {
            respelled += 1;
            Ok(Ok(()))
        }
    })?;
    // Last, when every name that the list has as it is written is known: a file
    // that is lost must not pass for another one that has its name in another
    // spelling and is listed, too.
    if respelled > 0 {
        let more = listing::read(source, monitor, false, &mut |listed| {
            let found = find(&listed)?;
            if found.written.is_none() {
                return Ok(Ok(()));
            }
            // In a bag, names that differ by their Unicode form are one.
            let is_taken = source.bag.is_none()
                && matches!(catalog.get(&found.path)?, Some(Stored::Sound(row))
                    if row.record.verified_s != RESPELLED);
            let named = match is_taken {
                true => found.into_written(),
                false => found,
            };
            let record = record(named, listed, file_system, keeps_date);
            let verified_s = if is_taken { 0 } else { RESPELLED };
            put(&mut catalog, source, Record { verified_s, ..record })
        })?;
        troubles.malformed += more.malformed;
        troubles.unusable += more.unusable;
    }
    troubles.malformed += listing::require_all_manifests(source, &mut catalog, monitor)?;
    catalog.commit()?;
    Ok(Expected { catalog, entries, troubles })
}

fn put(
    catalog: &mut Catalog,
    source: &Source,
    record: Record,
) -> Result<std::result::Result<(), Refusal>> {
    let Some(Stored::Sound(row)) = catalog.get(&record.path)? else {
        return catalog.put(None, record, &[]).map(Ok);
    };
    let has = row.record.digests.algorithms();
    let is_twice = has.covers(record.digests.algorithms());
    let joined = listing::join(catalog, &row, &record)?;
    Ok(match &source.bag {
        // A manifest has one kind of digest.
        Some(bag) if is_twice && joined.is_ok() => Err(Refusal {
            trouble: if bag.is_strict { Trouble::Malformed } else { Trouble::Note },
            reason: format!("{} is listed twice", record.path.shown()),
        }),
        _ => joined,
    })
}
