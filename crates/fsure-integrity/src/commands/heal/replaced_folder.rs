//! Keeps the files that are replaced: no verdict proves that no program wrote what is
//! there, and it may be the better content. Before the healed file takes its name,
//! the damaged one gets a second name in a folder of fsure's, which costs no space and
//! no copy, and which fsure never removes. A file that can have only one name is
//! moved there; of a file that is healed in place, the journal is kept.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use fsure_os::path as os_path;
use fsure_os::physical_order::LocateFiles;
use fsure_os::repair_write::{flush_folder, has_no_links, link_file, make_folder, move_file};
use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use super::source_reader::{HealAttempt, HealFailure};
use crate::catalog::{Catalog, REPLACED, RootLocation};
use crate::model::{Finding, HealResult, ScanMonitor, Verdict};
use fsure_core::{RelPath, shell_quoted};

/// The reason that a dry run reports for a file that would be kept.
pub(super) fn dry_run_reason() -> String {
    format!("what is there would be kept below {REPLACED}")
}

/// The way in which a replaced file was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Under a second name: the first one is still there.
    Linked,
    /// Under another name, its own being free now.
    Moved,
}

/// The place of the kept journal of a heal in place.
pub(super) enum KeptJournal {
    /// Below the root, among what is kept.
    Below(RelPath),
    /// Beside a catalog that is not in the root.
    Beside(PathBuf),
}

/// The folder in which one run keeps what it replaces.
pub(super) struct ReplacedFolder<'a> {
    place: &'a RootLocation,
    root: Arc<Root>,
    monitor: &'a dyn ScanMonitor,
    /// Its path; `None` before the run has replaced anything.
    path: Option<RelPath>,
}

impl<'a> ReplacedFolder<'a> {
    /// A folder that is made when the first file is to be kept.
    pub(super) fn new(
        place: &'a RootLocation,
        root: Arc<Root>,
        monitor: &'a dyn ScanMonitor,
    ) -> Self {
        Self { place, root, monitor, path: None }
    }

    /// Returns the failure of a file that is left alone because it cannot be kept,
    /// with what helps.
    fn refused(
        &self,
        path: &RelPath,
        verdict: Verdict,
        why: impl std::fmt::Display,
    ) -> HealFailure {
        if verdict != Verdict::DamagedCopy {
            return HealFailure::Unhealed(format!(
                "what is there cannot be kept ({why}): '--no-keep' heals it and discards what is \
                 there"
            ));
        }
        let file = self.place.root.join(os_path::from_bytes(path.as_bytes()));
        let aside = os_path::with_suffix(&file, ".replaced");
        HealFailure::Unhealed(format!(
            "what is there may be an edit and cannot be kept ({why}): 'mv -n {} {}' keeps it, and \
             the next heal makes the file again",
            shell_quoted(&file),
            shell_quoted(&aside)
        ))
    }

    /// Refuses a file that cannot get a name in the root, as far as that can be known
    /// without trying.
    pub(super) fn require_room(&self, finding: &Finding, stat: &Stat) -> HealAttempt<()> {
        let refused =
            |why: &dyn std::fmt::Display| Err(self.refused(&finding.path, finding.verdict, why));
        match self.root.stat(b"") {
            Ok(root) if root.device == stat.device => Ok(()),
            Ok(_) => refused(&"it is on another file system than its root"),
            Err(error) => refused(&error),
        }
    }

    /// Gives a file a name among what is kept, unless a run that was cut off has.
    pub(super) fn keep(
        &mut self,
        path: &RelPath,
        stat: &Stat,
        remedy: &mut HealResult,
    ) -> HealAttempt<Kept> {
        let is_it = |now: &Stat| now.inode == stat.inode && now.device == stat.device;
        let (kept, way) = match self.kept_as(path, stat).into_iter().next() {
            Some(kept) => (kept, Kept::Linked),
            None => match self.link_or_move(path) {
                Ok(kept) => kept,
                Err(error) => return Err(self.refused(path, remedy.verdict, error)),
            },
        };
        let [there, here] = [&kept, path].map(|path| self.root.stat(path.as_bytes()));
        let left = if way == Kept::Moved { &there } else { &here };
        let is_as_it_was = there.as_ref().is_ok_and(is_it)
            && left.as_ref().is_ok_and(|left| {
                is_it(left) && left.size == stat.size && left.mtime_ns == stat.mtime_ns
            });
        if is_as_it_was {
            remedy.kept = Some(kept);
            return Ok(way);
        }
        if way == Kept::Moved {
            self.put_back(&kept, path);
        }
        Err(HealFailure::Unhealed("busy: it changed since it was judged".to_owned()))
    }

    /// Gives a file that was moved its own name again, unless there is another
    /// one of that name by now.
    pub(super) fn put_back(&self, kept: &RelPath, path: &RelPath) {
        if let Err(error) = move_file(&self.root, kept.as_bytes(), path.as_bytes()) {
            let (kept, path) = (kept.display(), path.display());
            self.monitor.warn(&format!(
                "{path}: it was moved to {kept} and could not be moved back: {error}"
            ));
        }
    }

    fn link_or_move(&mut self, path: &RelPath) -> io::Result<(RelPath, Kept)> {
        let kept = self.place_for(path)?;
        match link_file(&self.root, path.as_bytes(), kept.as_bytes()) {
            Err(error) if has_no_links(&error) => {
                move_file(&self.root, path.as_bytes(), kept.as_bytes())?;
                Ok((kept, Kept::Moved))
            }
            linked => linked.map(|()| (kept, Kept::Linked)),
        }
    }

    /// The name among what is kept that corresponds to a path, its folders made.
    fn place_for(&mut self, path: &RelPath) -> io::Result<RelPath> {
        let folder = match &self.path {
            Some(folder) => folder.clone(),
            None => self.path.insert(self.make()?).clone(),
        };
        let kept = RelPath::from_bytes([folder.as_bytes(), b"/", path.as_bytes()].concat());
        self.make_own(&kept.parent().unwrap_or_default(), &folder)?;
        Ok(kept)
    }

    /// Keeps the journal of a file that was healed in place: it has the bytes that
    /// were replaced. Beside a catalog that is kept elsewhere it stays there.
    pub(super) fn keep_journal(&mut self, path: &RelPath) -> HealAttempt<KeptJournal> {
        self.move_journal(path).map_err(|error| {
            HealFailure::Unhealed(format!(
                "it is healed, but the journal with the replaced bytes could not be moved to its \
                 final place ({error}): it stays for the next heal"
            ))
        })
    }

    fn move_journal(&mut self, path: &RelPath) -> io::Result<KeptJournal> {
        let journal = Catalog::journal_file(&self.place.catalog);
        if !self.place.is_inside() {
            let free = os_path::free_numbered(&journal, ".");
            os_path::rename(&journal, &free)?;
            return Ok(KeptJournal::Beside(free));
        }
        let name = [path.as_bytes(), b".healing"].concat();
        let kept = self.place_for(&RelPath::from_bytes(name))?;
        let to = self.place.root.join(os_path::from_bytes(kept.as_bytes()));
        os_path::rename(&journal, &to)?;
        Ok(KeptJournal::Below(kept))
    }

    /// Makes the folder: the first free number.
    fn make(&self) -> io::Result<RelPath> {
        let replaced = RelPath::from_bytes(REPLACED.as_bytes());
        self.make_own(&replaced, &RelPath::root())?;
        // Whichever process made them, they are to be there for as long as what is in
        // them.
        flush_folder(&self.root, b"")?;
        flush_folder(&self.root, replaced.parent().unwrap_or_default().as_bytes())?;
        let mut number = 1_u64;
        loop {
            let folder = replaced.join(number.to_string().as_bytes());
            match make_folder(&self.root, folder.as_bytes(), None) {
                Ok(_) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes fsure's own folders below `top`, for their owner alone.
    fn make_own(&self, folder: &RelPath, top: &RelPath) -> io::Result<()> {
        let is_there = |stat: &Stat| stat.kind == Kind::Folder;
        if folder == top || self.root.stat(folder.as_bytes()).is_ok_and(|stat| is_there(&stat)) {
            return Ok(());
        }
        self.make_own(&folder.parent().unwrap_or_default(), top)?;
        make_folder(&self.root, folder.as_bytes(), None).map(drop)
    }

    /// The names that runs before this one have given to this very file.
    pub(super) fn kept_as(&self, path: &RelPath, stat: &Stat) -> Vec<RelPath> {
        if stat.links < 2 {
            return Vec::new();
        }
        let Ok(folders) = self.root.list(REPLACED.as_bytes(), LocateFiles::No, &|| ()) else {
            return Vec::new();
        };
        let kept = folders.entries.iter().map(|(at, _)| {
            let folder = [REPLACED.as_bytes(), folders.names.get(*at)].join(&b'/');
            RelPath::from_bytes([&*folder, path.as_bytes()].join(&b'/'))
        });
        kept.filter(|kept| {
            let there = self.root.stat(kept.as_bytes());
            there.is_ok_and(|there| there.inode == stat.inode && there.device == stat.device)
        })
        .collect()
    }
}
