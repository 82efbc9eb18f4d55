//! The folder that fsure makes on the disk side, `.fsure-ram`. It is there while the
//! folder is in RAM, and after a crash until `recover` has run.

use std::io;
use std::path::Path;

use fsure_os::lock::{self, Attempt, Lock};
use fsure_os::root_dir::is_gone;
use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use fsure_core::{Error, IoContext as _, RelPath, Result};

/// fsure's own folder on the disk side, and a name that the RAM side cannot have.
pub const OWN: &str = ".fsure-ram";
const LOCK: &str = ".fsure-ram/lock";
const STAGE: &str = ".fsure-ram/stage";
const TRASH: &str = ".fsure-ram/trash";
/// Of so many generations what they deleted is kept.
const TRASHES_MAX: usize = 4;
pub(super) const JOURNAL: &str = ".fsure-ram/journal";
pub(super) const JOURNAL_NEW: &str = ".fsure-ram/journal.new";
pub(super) const LAST: &str = ".fsure-ram/last";

/// The disk side, and the lock that keeps it for this process alone.
pub(super) struct DiskSide {
    pub(super) side: Side,
    /// For messages.
    pub(super) path: std::path::PathBuf,
    _lock: Lock,
}

impl DiskSide {
    /// Opens it, makes fsure's own folder in it and takes the lock.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let side = Side::open(path).context("open", path)?;
        let own = path.join(OWN);
        let root = side.facts(b"").context("access", path)?;
        let make = |folder: &str| match side.make(folder.as_bytes(), NodeKind::Folder, b"") {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other.context("make", &own),
        };
        make(OWN)?;
        // A user who can write there decides what becomes of the folder.
        let facts = side.facts(OWN.as_bytes()).context("access", &own)?;
        let user = facts.ownership.user;
        if facts.kind == NodeKind::Folder && user != side_user() {
            // The steps of a journal are carried out: as root, that could be anything.
            return Err(Error::FailedPrecondition {
                message: format!("{} was left by user {user}", own.display()),
                hint: Some("run 'fsure ram recover' as that user".to_owned()),
            });
        }
        if facts.kind != NodeKind::Folder || facts.ownership.mode & 0o022 != 0 {
            return Err(Error::FailedPrecondition {
                message: format!("{} was not made by fsure", own.display()),
                hint: Some("check what it is, and move it away".to_owned()),
            });
        }
        make(STAGE)?;
        let lock = match lock::attempt_in(&side, LOCK).context("lock", &own)? {
            Attempt::Locked(lock) => lock,
            Attempt::HeldBy(holder) => {
                return Err(Error::FailedPrecondition {
                    message: format!("{} is already in RAM ({holder})", path.display()),
                    hint: Some("'fsure ram status' shows it; 'fsure ram unbind' ends it".into()),
                });
            }
        };
        redate(&side, &root).context("set the date of", path)?;
        Ok(Self { side, path: path.to_owned(), _lock: lock })
    }

    /// Removes all that is staged.
    pub(super) fn clear_stage(&self) -> Result<()> {
        let stage = self.path.join(STAGE);
        for (name, facts) in self.side.list(STAGE.as_bytes()).context("list", &stage)? {
            let path = RelPath::from_bytes(STAGE.as_bytes()).join(&name);
            let is_folder = facts.kind == NodeKind::Folder;
            self.side.remove(path.as_bytes(), is_folder).context("empty", &stage)?;
        }
        Ok(())
    }

    /// Returns true if anything is staged.
    pub(super) fn has_staged(&self) -> Result<bool> {
        let listed = self.side.list(STAGE.as_bytes());
        Ok(!listed.context("list", &self.path.join(STAGE))?.is_empty())
    }

    /// Removes a file of fsure; one that is not there is not an error.
    pub(super) fn forget(&self, name: &str) -> Result<()> {
        match self.side.remove(name.as_bytes(), false) {
            Err(error) if is_gone(&error) => Ok(()),
            other => other.context("remove", &self.path.join(name)),
        }
    }

    /// The generations of which something is in the trash, the oldest first.
    pub(super) fn trashes(&self) -> Result<Vec<u64>> {
        let mut numbers: Vec<u64> = match self.side.list(TRASH.as_bytes()) {
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            other => {
                let names = other.context("list", &self.path.join(TRASH))?;
                let number =
                    |(name, _): &(Vec<u8>, _)| std::str::from_utf8(name).ok()?.parse().ok();
                names.iter().filter_map(number).collect()
            }
        };
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Lets go of the oldest in the trash: what is cleaned again and again must not
    /// fill the disk.
    pub(super) fn trim_trash(&self) -> Result<()> {
        let numbers = self.trashes()?;
        let old = numbers.len().saturating_sub(TRASHES_MAX);
        for number in &numbers[..old] {
            let name = trash(*number);
            let path = RelPath::from_bytes(name.as_bytes());
            remove_all(&self.side, &path).context("empty", &self.path.join(name))?;
        }
        Ok(())
    }

    /// Removes fsure's own folder, durably, but for the trash. Nothing is under way then.
    pub(super) fn leave(self) -> Result<()> {
        let root = self.side.facts(b"").context("access", &self.path)?;
        self.clear_stage()?;
        for name in [JOURNAL_NEW, JOURNAL, LAST] {
            self.forget(name)?;
        }
        let own = self.path.join(OWN);
        let has_trash = !self.trashes()?.is_empty();
        if !has_trash {
            // Gone, or kept by something that is not a number and not fsure's.
            let _ = self.side.remove(TRASH.as_bytes(), true);
        }
        self.side.remove(STAGE.as_bytes(), true).context("remove", &own)?;
        self.forget(LOCK)?;
        match self.side.remove(OWN.as_bytes(), true) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            other => other.context("remove", &own)?,
        }
        redate(&self.side, &root).context("set the date of", &self.path)?;
        self.side.flush(b"").context("flush", &self.path)
    }
}

/// Removes what is in a folder of fsure, and the folder.
fn remove_all(side: &Side, folder: &RelPath) -> io::Result<()> {
    for (name, facts) in side.list(folder.as_bytes())? {
        let path = folder.join(&name);
        match facts.kind {
            NodeKind::Folder => remove_all(side, &path)?,
            _ => side.remove(path.as_bytes(), false)?,
        }
    }
    side.remove(folder.as_bytes(), true)
}

/// Gives the folder back the date that it had before fsure's own came into it or went.
fn redate(side: &Side, root: &CopyStat) -> io::Result<()> {
    let attributes = side.attributes(b"")?;
    side.set(b"", NodeKind::Folder, root.ownership, Some(root.mtime_ns), &attributes)
}

/// Returns the user id of this process, which owns the files that it makes.
fn side_user() -> u32 {
    fsure_os::user::user_and_group().0
}

/// Returns the path of something staged.
pub(super) fn staged(stage: &str) -> String {
    format!("{STAGE}/{stage}")
}

/// Returns the path of the folder that keeps what a generation deleted.
pub(super) fn trash(generation: u64) -> String {
    format!("{TRASH}/{generation}")
}

/// Returns true if a path is that of `.fsure-ram` or below it.
pub(super) fn is_own(path: &RelPath) -> bool {
    path.is_within(&RelPath::from_bytes(OWN.as_bytes()))
}
