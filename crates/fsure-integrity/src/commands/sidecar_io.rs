//! Code that writing carriers and reading a record from them share: reading a
//! carrier, reporting a problem with one, and iterating over the folders of a record.
//! See `docs/layouts.md`.

use std::collections::{BTreeSet, HashSet};
use std::io;

use fsure_os::root_dir::{Root, is_gone};

use crate::catalog::{Catalog, PageStart, StoredRow};
use crate::manifest::{ManifestEntry, carried};
use crate::model::{EntryKind, FOLDER_FILE, ScanMonitor};
use fsure_core::{RelPath, Result};

/// Number of problems that are reported one by one.
const PROBLEMS_REPORTED_MAX: u64 = 1_000;

/// The maximum length of a folder's file, in bytes: four million files. A tree may
/// come from an untrusted source.
pub(super) const FOLDER_FILE_MAX: usize = 1 << 30;

/// Room for a carrier that grows while it is read, in bytes.
const GROWTH: u64 = 1 << 16;

/// Reports problems with carriers.
pub(super) struct ProblemReporter<'a> {
    pub(super) monitor: &'a dyn ScanMonitor,
    reported: u64,
}

impl<'a> ProblemReporter<'a> {
    pub(super) fn new(monitor: &'a dyn ScanMonitor) -> Self {
        Self { monitor, reported: 0 }
    }

    pub(super) fn report(&mut self, path: &RelPath, what: &str) {
        self.reported += 1;
        match self.reported {
            ..=PROBLEMS_REPORTED_MAX => self.monitor.warn(&format!("{}: {what}", path.display())),
            n if n == PROBLEMS_REPORTED_MAX + 1 => {
                self.monitor.warn("... and more problems with the sidecars");
            }
            _ => {}
        }
    }
}

/// Reads a folder's file; `None` if there is none.
pub(super) fn read_folder_file(root: &Root, folder: &RelPath) -> io::Result<Option<Vec<u8>>> {
    read_carrier(root, &folder.join(FOLDER_FILE.as_bytes()))
}

/// Reads a file that is a carrier or is to become one; `None` if there is none.
pub(super) fn read_carrier(root: &Root, path: &RelPath) -> io::Result<Option<Vec<u8>>> {
    match root.stat(path.as_bytes()) {
        Ok(stat) => {
            let most = usize::try_from(stat.size.saturating_add(GROWTH)).unwrap_or(usize::MAX);
            root.read_small(path.as_bytes(), most.min(FOLDER_FILE_MAX))
        }
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A folder on the way down, with what is known of it so far.
struct Frame {
    folder: RelPath,
    files: Vec<ManifestEntry>,
    /// Recorded folders in it of which no record came by.
    unvisited: BTreeSet<RelPath>,
    /// True if the folder is a root of its own or below one.
    is_another_s: bool,
}

/// Takes a folder and its recorded files.
type Visit<'a> = dyn FnMut(&mut Catalog, &RelPath, Vec<ManifestEntry>) -> Result<()> + 'a;

/// Calls `visit` for every recorded folder, including the root, with its recorded files.
/// Folders come after those below them. Roots below this one are left out,
/// and so is what was recorded of them before they were roots.
pub(super) fn each_folder(catalog: &mut Catalog, visit: &mut Visit<'_>) -> Result<()> {
    let nested: HashSet<RelPath> = catalog.nested_roots().all()?.into_iter().collect();
    let frame = |folder, is_another_s| {
        let (files, unvisited) = Default::default();
        Frame { folder, files, unvisited, is_another_s }
    };
    let mut way = vec![frame(RelPath::root(), false)];
    let mut after: Option<Vec<u8>> = None;
    loop {
        let from = after.as_deref().map_or(PageStart::From(b""), PageStart::After);
        let page = catalog.page(&from, None)?;
        let Some(last) = page.last() else { break };
        after = Some(last.path().as_bytes().to_vec());
        for stored in page {
            let StoredRow::Sound(row) = stored else { continue };
            if row.is_gone() {
                continue;
            }
            let folder = row.record.path.parent().unwrap_or_default();
            while let Some(top) = way.pop_if(|top| !folder.is_within(&top.folder)) {
                leave(catalog, top, visit)?;
            }
            while let Some(top) = way.last_mut().filter(|top| top.folder != folder) {
                let next = child_towards(&top.folder, &folder);
                top.unvisited.remove(&next);
                let is_another_s = top.is_another_s || nested.contains(&next);
                way.push(frame(next, is_another_s));
            }
            let Some(top) = way.last_mut() else { break };
            match row.record.entry.kind {
                EntryKind::File => top.files.push(carried(&row.record)),
                EntryKind::Folder if !nested.contains(&row.record.path) => {
                    top.unvisited.insert(row.record.path);
                }
                _ => {}
            }
        }
    }
    while let Some(top) = way.pop() {
        leave(catalog, top, visit)?;
    }
    Ok(())
}

fn leave(catalog: &mut Catalog, frame: Frame, visit: &mut Visit<'_>) -> Result<()> {
    if frame.is_another_s {
        return Ok(());
    }
    for empty in frame.unvisited {
        visit(catalog, &empty, Vec::new())?;
    }
    visit(catalog, &frame.folder, frame.files)
}

/// The folder in `above` on the way to `below`.
fn child_towards(above: &RelPath, below: &RelPath) -> RelPath {
    let bytes = below.as_bytes();
    let start = if above.is_root() { 0 } else { above.as_bytes().len() + 1 };
    let end = bytes[start..].iter().position(|byte| *byte == b'/');
    RelPath::from_bytes(&bytes[..end.map_or(bytes.len(), |end| start + end)])
}
