//! Whether both sides hold the same: both are read to their end, the disk side from
//! the medium.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use fsure_os::mirror::Kind;

use super::engine::Engine;
use super::fill::{in_ram, on_disk};
use super::journal::{forget, make_trash, path_of};
use super::own::trash;
use crate::words::{IoContext as _, RelPath, Result};

/// How a name differs between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is on the RAM side alone.
    OnlyInRam,
    /// It is on the disk side alone.
    OnlyOnDisk,
    /// It holds something else, or is something else.
    Content,
    /// Only owner, mode, date or attributes differ.
    Metadata,
}

/// A name that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unequal {
    /// Which.
    pub path: RelPath,
    /// In what.
    pub how: How,
}

impl Engine {
    /// What differs between the sides, in the order of the paths. Whatever has
    /// changed in RAM since the last generation does.
    pub fn verify(&self) -> Result<Vec<Unequal>> {
        let (ram, disk) = (in_ram(&self.ram)?, on_disk(&self.disk.side)?);
        let paths: BTreeSet<_> = ram.keys().chain(disk.keys()).collect();
        let unequal = paths.into_iter().filter_map(|path| {
            let how = match (ram.get(path), disk.get(path)) {
                (Some(one), Some(other)) if one.is_same_as(other) => return None,
                (Some(one), Some(other)) if one.is_same_thing_as(other) => How::Metadata,
                (Some(_), Some(_)) => How::Content,
                (Some(_), None) => How::OnlyInRam,
                _ => How::OnlyOnDisk,
            };
            Some(Unequal { path: path.clone(), how })
        });
        Ok(unequal.collect())
    }

    /// Keeps what the disk side has by these names in the trash of the generation that is
    /// to come, which puts something else there; where that is. A folder is not kept.
    pub fn keep(&self, paths: &[RelPath]) -> Result<PathBuf> {
        let generation = self.generation + 1;
        for path in paths {
            self.keep_one(generation, path).doing("keep", &self.disk.path.join(path_of(path)))?;
        }
        Ok(self.disk.path.join(trash(generation)))
    }

    fn keep_one(&self, generation: u64, path: &RelPath) -> io::Result<()> {
        let side = &self.disk.side;
        if side.facts(path.as_bytes())?.kind == Kind::Folder {
            return Ok(());
        }
        let target = make_trash(side, generation, path)?;
        // Of an attempt that failed.
        forget(side, target.as_bytes())?;
        side.link(path.as_bytes(), target.as_bytes())
    }

    /// Leaves names of the disk side alone that were never in RAM: to who has taken over
    /// they are what was deleted there.
    pub fn leave_alone(&mut self, strays: &BTreeSet<RelPath>) {
        strays.iter().for_each(|path| self.index.set(path.clone(), None));
    }
}
