//! Restores missing entries other than files: links and folders, made anew as they
//! are recorded.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use fsure_os::Stat;
use fsure_os::repair_write::{AttributesCopied, Model, make_folder, make_link, set_folder_date};
use fsure_os::root_dir::{Root, is_gone};

use super::replica::Replica;
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _};
use crate::catalog::{Catalog, StoredRow};
use crate::model::{Entry, EntryKind, ScanMonitor};
use fsure_core::RelPath;

/// Makes the missing links and folders of one root.
pub(super) struct EntryRestorer {
    root: Arc<Root>,
    replicas: Rc<Vec<Replica>>,
    /// Folders that were made, and the dates they are to have in the end.
    made_folders: Vec<(RelPath, i64)>,
}

/// An entry that was made.
pub(super) struct RestoredEntry {
    pub(super) stat: Stat,
    /// The reason if its owner, permissions or attributes are not all those of a copy.
    pub(super) reason: Option<String>,
}

/// Refuses a link whose target is not recorded.
pub(super) fn require_target(entry: &Entry) -> HealAttempt<()> {
    if entry.kind == EntryKind::Link && entry.target.is_none() {
        return Err(HealFailure::Unhealed("the target of the link is not recorded".to_owned()));
    }
    Ok(())
}

impl EntryRestorer {
    /// Replicas are the models of the folders that are made.
    pub(super) fn new(root: Arc<Root>, replicas: Rc<Vec<Replica>>) -> Self {
        Self { root, replicas, made_folders: Vec::new() }
    }

    /// Makes a link or a folder again, and the folders above it.
    pub(super) fn restore(
        &mut self,
        catalog: &mut Catalog,
        path: &RelPath,
        entry: &Entry,
    ) -> HealAttempt<RestoredEntry> {
        self.make_parents(catalog, &path.parent().unwrap_or_default())?;
        let mut reason = None;
        match entry.target.as_deref().filter(|_| entry.kind == EntryKind::Link) {
            Some(target) => {
                make_link(&self.root, path.as_bytes(), target, entry.exact_mtime_ns())
                    .or_unhealed("create it")?;
            }
            // With the folders above a file that came before it in order.
            None if self.is_folder(path) => {}
            None => reason = self.make_folder(catalog, path)?,
        }
        let stat = self.root.stat(path.as_bytes()).or_unhealed("examine it")?;
        Ok(RestoredEntry { stat, reason })
    }

    /// Makes the folders above something that is gone, as far as they are, too.
    pub(super) fn make_parents(
        &mut self,
        catalog: &mut Catalog,
        folder: &RelPath,
    ) -> HealAttempt<()> {
        if folder.is_root() || self.is_folder(folder) {
            return Ok(());
        }
        self.make_parents(catalog, &folder.parent().unwrap_or_default())?;
        self.make_folder(catalog, folder).map(drop)
    }

    fn is_folder(&self, path: &RelPath) -> bool {
        let stat = self.root.stat(path.as_bytes());
        stat.is_ok_and(|stat| stat.kind == fsure_os::Kind::Folder)
    }

    /// Makes a folder like that of the first replica that has one. Returns the reason
    /// if its owner, permissions or attributes are not all those of a copy.
    fn make_folder(
        &mut self,
        catalog: &mut Catalog,
        path: &RelPath,
    ) -> HealAttempt<Option<String>> {
        let model = self.replicas.iter().find_map(|replica| {
            let theirs = replica.path_of(path)?;
            Model::open(replica.root(), &theirs).ok()
        });
        let made = make_folder(&self.root, path.as_bytes(), model.as_ref());
        let resembles = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::other("another entry has its name"),
            _ => error,
        });
        let resembles = resembles.or_unhealed("create the folder")?;
        if let Some(StoredRow::Sound(row)) = catalog.get(path)?
            && let Some(mtime_ns) = row.record.entry.exact_mtime_ns()
        {
            self.made_folders.push((path.clone(), mtime_ns));
        }
        let reported =
            "not all of its owner, permissions and attributes could be taken from a copy";
        Ok((resembles == AttributesCopied::InPart).then(|| reported.to_owned()))
    }

    /// Gives folders that were made their dates, once all is in them.
    pub(super) fn date_folders(self, monitor: &dyn ScanMonitor) {
        for (path, mtime_ns) in self.made_folders.into_iter().rev() {
            if let Err(error) = set_folder_date(&self.root, path.as_bytes(), mtime_ns)
                && !is_gone(&error)
            {
                monitor.warn(&format!("the date of {}: {error}", path.display()));
            }
        }
    }
}
