//! The names of one directory, asked for together.

use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, OFlags, RawDir};
use rustix::io::Errno;

use super::{MASK, Side, covered, each_name, facts, stat_at};
use crate::host::root_dir::{c_string, is_denied};
use crate::tree_copy::CopyStat;

/// A directory of up to this size is listed to learn which of several names are in it. To
/// look a name up that is not there takes a lock for which a program that changes the
/// directory all the time has the kernel wait for 4 ms, and listing it takes that once. An
/// entry counts 20 bytes on a tmpfs.
const LISTED_SIZE_MAX: u64 = 20 * 4096;

impl Side {
    /// Returns what the names in a directory are, each `None` that is not there, and the
    /// directory itself. Fails if something is mounted on one.
    pub fn facts_in(
        &self,
        path: &[u8],
        names: &[&[u8]],
    ) -> io::Result<(CopyStat, Vec<Option<CopyStat>>)> {
        let folder = self.open_at(path, OFlags::PATH | OFlags::DIRECTORY)?;
        let own = facts(&rustix::fs::statx(&folder, c"", AtFlags::EMPTY_PATH, MASK)?);
        let there = match names.len() > 1 && own.size <= LISTED_SIZE_MAX {
            true => self.names_in(path)?,
            false => None,
        };
        let of = |name: &&[u8]| {
            if there.as_ref().is_some_and(|there| !there.contains(*name)) && *name != b"." {
                return Ok(None);
            }
            match stat_at(folder.as_fd(), &c_string(name)?) {
                Ok(stat) if self.has(&stat) => Ok(Some(facts(&stat))),
                Ok(_) => Err(covered(&[path, name])),
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(errno.into()),
            }
        };
        Ok((own, names.iter().map(of).collect::<io::Result<_>>()?))
    }

    /// All names in a directory; `None` if it must not be listed.
    fn names_in(&self, path: &[u8]) -> io::Result<Option<HashSet<Vec<u8>>>> {
        let folder = match self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(error) if is_denied(&error) => return Ok(None),
            other => other?,
        };
        let mut names = HashSet::new();
        each_name(&folder, &mut |_, name| names.insert(name.to_bytes().to_vec()))?;
        Ok(Some(names))
    }

    /// Waits until every change of a name in a directory that is visible now has been
    /// reported ([`crate::change_watch`]): listing takes the lock under which that is done.
    pub fn wait_for_names(&self, path: &[u8]) -> io::Result<()> {
        let folder = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        // Some names are enough.
        let mut buffer = [MaybeUninit::uninit(); 512];
        match RawDir::new(&folder, &mut buffer).next() {
            Some(Err(Errno::NOENT)) | None => Ok(()),
            Some(name) => name.map(drop).map_err(io::Error::from),
        }
    }
}
