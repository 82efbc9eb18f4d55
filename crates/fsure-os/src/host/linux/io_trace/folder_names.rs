//! The names of folders, which the kernel's programs report once, when a folder is first in use.

use std::collections::BTreeMap;

use aya::maps::{MapData, RingBuf};

use super::path_resolver::{Key, ResolvedName};

/// The names that were reported, and the ring in which others wait.
pub(super) struct FolderNames {
    ring: RingBuf<MapData>,
    names: BTreeMap<Key, ResolvedName>,
}

impl FolderNames {
    pub(super) fn new(ring: RingBuf<MapData>) -> Self {
        Self { ring, names: BTreeMap::new() }
    }

    /// Takes the names that wait.
    pub(super) fn take(&mut self) {
        while let Some(record) = self.ring.next() {
            if let Some((key, name)) = ResolvedName::parse(&record) {
                self.names.insert(key, name);
            }
        }
    }

    /// Returns the name of a folder, or of a file in a trace of flushes; `None` if it was not
    /// reported.
    pub(super) fn get(&self, key: &Key) -> Option<&ResolvedName> {
        self.names.get(key)
    }
}
