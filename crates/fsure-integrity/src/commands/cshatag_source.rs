//! The attributes that cshatag writes, as a list: each file has its own
//! SHA-256 and the date at which it was taken with it. So the tree is walked,
//! and the attributes of its files are passed on like the lines of a list.

use std::path::Path;
use std::sync::Arc;

use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use super::Options;
use crate::catalog::OWN_FOLDER;
use crate::manifest::{ManifestItem, ManifestSource, Problem, ProblemKind, cshatag};
use crate::model::ScanMonitor;
use crate::tree::{Walk, WalkBounds, WalkEvent, WalkOptions};
use fsure_core::{Error, IoContext as _, RelPath, Result};

/// More than either attribute has in it.
const VALUE_MAX: usize = 256;

/// Passes the items that the attributes of the files below a folder give to `each`.
pub(super) fn read(
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
    each: &mut dyn FnMut(&Path, ManifestItem) -> Result<()>,
) -> Result<()> {
    let folder = &source.folder;
    let root = Arc::new(Root::open(folder).context("open", folder)?);
    let options = WalkOptions {
        borders: WalkBounds {
            own: vec![RelPath::from_bytes(OWN_FOLDER.as_bytes())],
            ..WalkBounds::default()
        },
        ..WalkOptions::whole(Options::default().effort.timeout)
    };
    for step in Walk::start(Arc::clone(&root), options)? {
        if let Some(code) = monitor.stop_requested() {
            return Err(Error::Interrupted(code));
        }
        let item = match step? {
            WalkEvent::Entry(path, stat, _) => of_file(&root, folder, path, &stat)?,
            WalkEvent::Unseen(path, error) | WalkEvent::Unlisted(path, error) => {
                Some(unread(&path, &error.to_string()))
            }
            WalkEvent::LeftOut(..)
            | WalkEvent::Listed(_)
            | WalkEvent::PatternsRead(..)
            | WalkEvent::PatternsUnread(..) => None,
        };
        if let Some(item) = item {
            each(folder, item)?;
        }
    }
    Ok(())
}

/// Reads the attributes of a file as an item of the list; `None` if it is not a
/// regular file or has no attribute with a digest. A file whose attributes cannot be
/// read is a problem; a file system without attributes is an error.
fn of_file(root: &Root, folder: &Path, path: RelPath, stat: &Stat) -> Result<Option<ManifestItem>> {
    if stat.kind != Kind::File {
        return Ok(None);
    }
    let value = |name| root.attribute(path.as_bytes(), name, VALUE_MAX);
    let values = value(cshatag::SHA256).and_then(|sha256| Ok((sha256, value(cshatag::TIME)?)));
    match values {
        Ok((Some(sha256), time)) => Ok(Some(cshatag::item(path, &sha256, time.as_deref()))),
        Ok((None, _)) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
            Err(error).context("read attributes in", folder)
        }
        Err(error) => Ok(Some(unread(&path, &error.to_string()))),
    }
}

fn unread(path: &RelPath, why: &str) -> ManifestItem {
    let reason = format!("{}: its attributes cannot be read: {why}", path.display());
    ManifestItem::Problem(Problem { line: 0, reason, trouble: ProblemKind::Unsupported })
}
