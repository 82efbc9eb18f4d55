//! What a list expects of a folder, as a catalog that is gone afterwards: so a
//! list is judged like a record.

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
    let settings = Settings { digests, cross_file_systems: false };
    let root = (open.volume.clone(), open.inode);
    let mut catalog = Catalog::temporary(&place.catalog, settings, root)?;
    let file_system = catalog.root_identity().0.id;
    // A list is of one moment, whatever became of its files; attributes are
    // kept by a program that, like us, takes an edit for an edit.
    let keeps_date = source.format == Format::Cshatag;
    let (mut entries, mut respelled) = (0, 0_u64);
    let named = |listed: &Listed| named(&open.root, &place.scope, listed);
    let mut troubles = listing::read(source, monitor, true, &mut |listed| {
        entries += 1;
        let named = named(&listed);
        if named.is_as_written {
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
            let found = named(&listed);
            if found.is_as_written {
                return Ok(Ok(()));
            }
            // In a bag, names that differ by their Unicode form are one.
            let is_taken = source.bag.is_none()
                && matches!(catalog.get(&found.path)?, Some(Stored::Sound(row))
                    if row.record.verified_s != RESPELLED);
            let named = match is_taken {
                true => Named {
                    path: place.scope.join(listed.path.as_bytes()),
                    there: None,
                    is_as_written: true,
                },
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
