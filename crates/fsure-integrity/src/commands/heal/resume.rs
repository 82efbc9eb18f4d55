//! Clears up after a heal that was cut off: a journal is carried out, and drafts are
//! removed.

use std::path::Path;

use fsure_os::path as os_path;
use fsure_os::{repair_write, user_file};

use super::healer::Healer;
use super::replacement::is_draft_name;
use super::source_reader::HealFailure;
use crate::catalog::{Catalog, RootLocation};
use fsure_core::{Error, Result};

/// Returns true if there is anything to be cleared up.
pub(super) fn is_any(place: &RootLocation, catalog: &Catalog) -> Result<bool> {
    Ok(os_path::exists(&Catalog::journal_file(&place.catalog)) || !catalog.drafts()?.is_empty())
}

impl Healer<'_> {
    /// Ends what a run before this one has begun; a dry run only reports it.
    pub(super) fn clear_up(&mut self) -> Result<()> {
        if !self.options.does {
            if is_any(self.place, self.catalog)? {
                self.monitor.warn("a heal was cut off; with '--yes' its rest is cleared up first");
            }
            return Ok(());
        }
        self.remove_drafts()?;
        self.remove_halves();
        if !os_path::exists(&self.journal()) {
            return Ok(());
        }
        match self.finish_patch() {
            Ok(path) => {
                self.monitor.warn(&format!("{path}: a heal that was cut off is finished"));
                Ok(())
            }
            Err(HealFailure::Unhealed(why)) => {
                self.monitor.warn(&format!("a heal that was cut off: {why}"));
                Ok(())
            }
            Err(HealFailure::Stopped(code)) => Err(Error::Interrupted(code)),
            Err(HealFailure::Fatal(error)) => Err(error),
        }
    }

    fn remove_drafts(&mut self) -> Result<()> {
        for (path, draft) in self.catalog.drafts()? {
            let is_one = is_draft_name(draft.name()) && draft.parent() == path.parent();
            let removed = match is_one {
                true => repair_write::remove_file(&self.root, draft.as_bytes()),
                // The note is damaged: nothing is removed by it.
                false => Ok(()),
            };
            match removed {
                Ok(()) => self.catalog.forget_draft(&path)?,
                Err(error) => self.monitor.warn(&format!("{}: {error}", draft.display())),
            }
        }
        if self.catalog.is_writing() { self.catalog.commit() } else { Ok(()) }
    }

    /// Removes journals that never got their name: nothing was done by them.
    fn remove_halves(&self) {
        let journal = self.journal();
        let (Some(folder), Some(name)) = (journal.parent(), journal.file_name()) else { return };
        let head = [&*os_path::bytes(Path::new(name)), b".making-"].concat();
        let names = user_file::names(folder).unwrap_or_default();
        for half in names.iter().filter(|name| name.starts_with(&head)) {
            os_path::remove(&folder.join(os_path::from_bytes(half)), false);
        }
    }
}
