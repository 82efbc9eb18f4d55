//! A side as it is, with the content of every file read to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use fsure_os::root_dir::{is_denied, is_gone, is_out_of_means};
use fsure_os::tree_copy::{CopyStat, NodeKind, Side, drop_cached};

use super::content_digest;
use super::index::{IndexEntry, UNREAD};
use super::journal::path_of;
use super::ram_scan::everything;
use fsure_core::{IoContext as _, RelPath, Result};

/// Names, and what they are.
pub(super) type Entries = BTreeMap<RelPath, IndexEntry>;

/// Reads a side.
pub(super) struct SideReader<'a> {
    side: &'a Side,
    is_medium: bool,
    may_fail: fn(&io::Error) -> bool,
    /// Fails where it is to end.
    go_on: &'a dyn Fn() -> Result<()>,
}

/// Everything on the disk side.
pub(super) fn on_disk(side: &Side) -> Result<Entries> {
    SideReader::of_disk(side, &|| Ok(())).all()
}

/// Everything on the RAM side.
pub(super) fn in_ram(side: &Side) -> Result<Entries> {
    SideReader::of_ram(side, &|| Ok(())).all()
}

impl<'a> SideReader<'a> {
    /// The disk side, with its content read from the medium. What cannot be read is equal
    /// to nothing: its good copy is in RAM.
    pub(super) fn of_disk(side: &'a Side, go_on: &'a dyn Fn() -> Result<()>) -> Self {
        Self { side, is_medium: true, may_fail: |error| !is_out_of_means(error), go_on }
    }

    /// The RAM side; what fsure has no permission to read is equal to nothing.
    pub(super) fn of_ram(side: &'a Side, go_on: &'a dyn Fn() -> Result<()>) -> Self {
        Self { side, is_medium: false, may_fail: is_denied, go_on }
    }

    /// Everything.
    pub(super) fn all(&self) -> Result<Entries> {
        let mut entries = Entries::new();
        for (path, facts) in everything(self.side)?.names {
            self.add(&mut entries, path, facts)?;
        }
        Ok(entries)
    }

    /// Those of these that are there.
    pub(super) fn some(&self, paths: &BTreeSet<RelPath>) -> Result<Entries> {
        let mut entries = Entries::new();
        for path in paths {
            match self.side.facts(path.as_bytes()) {
                Err(error) if is_gone(&error) => {}
                other => {
                    let facts = other.context("access", path_of(path).as_ref())?;
                    self.add(&mut entries, path.clone(), facts)?;
                }
            }
        }
        Ok(entries)
    }

    fn add(&self, entries: &mut Entries, path: RelPath, facts: CopyStat) -> Result<()> {
        (self.go_on)()?;
        let entry = match self.entry(&path, facts.clone()) {
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) if (self.may_fail)(&error) => IndexEntry {
                // No name has this date.
                facts: CopyStat { mtime_ns: i64::MIN, ..facts },
                digest: UNREAD,
                target: Vec::new(),
                attributes: Vec::new(),
            },
            other => other.context("read", path_of(&path).as_ref())?,
        };
        // A read that was stopped does not count.
        (self.go_on)()?;
        entries.insert(path, entry);
        Ok(())
    }

    fn entry(&self, path: &RelPath, facts: CopyStat) -> io::Result<IndexEntry> {
        let at = path.as_bytes();
        let target = if facts.kind == NodeKind::Link { self.side.target(at)? } else { Vec::new() };
        let digest = match facts.kind {
            NodeKind::File => {
                let file = self.side.read(at)?;
                if self.is_medium {
                    drop_cached(&file)?;
                }
                let go_on = || (self.go_on)().map_err(io::Error::other);
                content_digest::digest_while(&file, facts.size, &go_on)?.unwrap_or(UNREAD)
            }
            _ => UNREAD,
        };
        Ok(IndexEntry { facts, digest, target, attributes: self.side.attributes(at)? })
    }
}
