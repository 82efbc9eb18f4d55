//! The files of a tree as a measurement takes them: one after the other in the order of paths,
//! up to a number of bytes, so that each run over them takes the same ones. None of them is
//! kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use crate::catalog::{Catalog, PageStart, StoredRow};
use crate::tree::{Walk, WalkEvent, WalkOptions};
use fsure_core::{RelPath, Result};

/// A file that was taken.
pub struct SourceFile {
    /// Its path below the root.
    pub path: RelPath,
    /// Its stat a moment ago.
    pub stat: Stat,
    /// Bytes that are wanted of it, from its beginning on.
    pub bytes: u64,
}

/// The files of a tree, up to a number of bytes.
pub struct FileSource {
    walk: Walk,
    /// The paths that are recorded; `None` if all files are taken.
    recorded: Option<RecordedPaths>,
    bytes_left: u64,
}

/// The paths of the recorded files, in their order.
struct RecordedPaths {
    catalog: Catalog,
    /// Paths that were fetched and not passed yet.
    page: VecDeque<RelPath>,
    /// The last path that was fetched.
    after: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl FileSource {
    /// Files that a walk comes to, up to `bytes` of them: those that `catalog` has, or all of
    /// them without one.
    pub fn start(
        root: Arc<Root>,
        options: WalkOptions,
        catalog: Option<Catalog>,
        bytes: u64,
    ) -> Result<Self> {
        let (after, end) = options.scope.below();
        let recorded =
            catalog.map(|catalog| RecordedPaths { catalog, page: VecDeque::new(), after, end });
        Ok(Self { walk: Walk::start(root, options)?, recorded, bytes_left: bytes })
    }

    /// The next file; `None` at the end. A file of several names is left out: by its second
    /// name it would be in memory.
    pub fn next_file(&mut self) -> Result<Option<SourceFile>> {
        while self.bytes_left > 0 {
            let Some(step) = self.walk.next() else { return Ok(None) };
            let WalkEvent::Entry(path, stat, _) = step? else { continue };
            let is_wanted = stat.kind == Kind::File && stat.size > 0 && stat.links <= 1;
            if !is_wanted || !self.is_recorded(&path)? {
                continue;
            }
            let bytes = stat.size.min(self.bytes_left);
            self.bytes_left -= bytes;
            return Ok(Some(SourceFile { path, stat, bytes }));
        }
        Ok(None)
    }

    fn is_recorded(&mut self, path: &RelPath) -> Result<bool> {
        self.recorded.as_mut().map_or(Ok(true), |recorded| recorded.has(path))
    }
}

impl RecordedPaths {
    /// Returns true if the path is recorded. It comes behind all that were asked for before.
    fn has(&mut self, path: &RelPath) -> Result<bool> {
        loop {
            while self.page.front().is_some_and(|first| first < path) {
                self.page.pop_front();
            }
            if let Some(first) = self.page.front() {
                return Ok(first == path);
            }
            if !self.fetch()? {
                return Ok(false);
            }
        }
    }

    /// Fetches the next paths; false if there are none.
    fn fetch(&mut self) -> Result<bool> {
        let page = self.catalog.page(&PageStart::After(&self.after), self.end.as_deref())?;
        let Some(last) = page.last() else { return Ok(false) };
        self.after = last.path().as_bytes().to_vec();
        self.page.extend(page.into_iter().filter_map(|stored| match stored {
            StoredRow::Sound(row) if row.is_live_file() => Some(row.record.path),
            _ => None,
        }));
        Ok(true)
    }
}
