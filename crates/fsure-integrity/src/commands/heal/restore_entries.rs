//! Restores missing entries other than files: links and folders, made anew as they
//! are recorded.

use std::io;

use fsure_os::repair_write::{AttributesCopied, Model, make_folder, make_link, set_folder_date};
use fsure_os::root_dir::is_gone;

use super::healer::Healer;
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _};
use crate::catalog::{Row, StoredRow};
use crate::model::{EntryKind, Finding, HealResult, HealSource};
use fsure_core::{Clock, RelPath};

impl Healer<'_> {
    /// Makes a link or a folder again.
    pub(super) fn restore_name(
        &mut self,
        finding: &Finding,
        row: Row,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        remedy.taken = vec![(HealSource::Record, Vec::new())];
        let (path, entry) = (&finding.path, &row.record.entry);
        let target = entry.target.as_deref();
        if entry.kind == EntryKind::Link && target.is_none() {
            return Err(HealFailure::Unhealed("where it points is not recorded".to_owned()));
        }
        if !self.options.does {
            return Ok(());
        }
        self.make_parents(&path.parent().unwrap_or_default())?;
        match target.filter(|_| entry.kind == EntryKind::Link) {
            Some(target) => {
                make_link(&self.root, path.as_bytes(), target, entry.exact_mtime_ns())
                    .or_unhealed("make it")?;
            }
            // With the folders above a file that came before it in order.
            None if self.is_folder(path) => {}
            None => remedy.reason = self.make_folder(path)?,
        }
        let made = self.root.stat(path.as_bytes()).or_unhealed("look at it")?;
        self.record(&row, path, &made, Clock::default().now_ns())?;
        self.catalog.commit()?;
        Ok(())
    }

    /// Makes the folders above something that is gone, as far as they are, too.
    pub(super) fn make_parents(&mut self, folder: &RelPath) -> HealAttempt<()> {
        if folder.is_root() || self.is_folder(folder) {
            return Ok(());
        }
        self.make_parents(&folder.parent().unwrap_or_default())?;
        self.make_folder(folder).map(drop)
    }

    fn is_folder(&self, path: &RelPath) -> bool {
        let stat = self.root.stat(path.as_bytes());
        stat.is_ok_and(|stat| stat.kind == fsure_os::Kind::Folder)
    }

    /// Makes a folder like that of the first replica that has one. Returns the reason
    /// if its owner, permissions or attributes are not all those of a copy.
    fn make_folder(&mut self, path: &RelPath) -> HealAttempt<Option<String>> {
        let model = self.replicas.iter().find_map(|replica| {
            let theirs = replica.path_of(path)?;
            Model::open(replica.root(), &theirs).ok()
        });
        let made = make_folder(&self.root, path.as_bytes(), model.as_ref());
        let resembles = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::other("something else has its name"),
            _ => error,
        });
        let resembles = resembles.or_unhealed("make the folder")?;
        if let Some(StoredRow::Sound(row)) = self.catalog.get(path)?
            && let Some(mtime_ns) = row.record.entry.exact_mtime_ns()
        {
            self.made_folders.push((path.clone(), mtime_ns));
        }
        let told = "its owner, permissions or attributes are not all those of a copy";
        Ok((resembles == AttributesCopied::InPart).then(|| told.to_owned()))
    }

    /// Gives folders that were made their dates, once all is in them.
    pub(super) fn date_folders(&mut self) {
        for (path, mtime_ns) in std::mem::take(&mut self.made_folders).into_iter().rev() {
            if let Err(error) = set_folder_date(&self.root, path.as_bytes(), mtime_ns)
                && !is_gone(&error)
            {
                self.monitor.warn(&format!("the date of {}: {error}", path.display()));
            }
        }
    }
}
