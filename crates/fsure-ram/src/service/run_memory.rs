//! Notes of the memory that each `ram run` takes, so that all RAM folders of a user count
//! each other. No registry has these folders and no other process sees their mounts, so
//! their keepers say how much it is.

use std::path::{Path, PathBuf};

use fsure_os::{detached_process, path as os_path, user_file};
use serde::{Deserialize, Serialize};

use super::runtime_files::{KeeperProcess, load, store};

/// The folder of the notes, in the runtime folder.
const RUNS: &str = "runs";

/// A number of RAM folders, and the memory that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RamFolders {
    /// Number of folders.
    pub folders: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl RamFolders {
    /// Adds so many more.
    #[must_use]
    pub fn and(self, folders: u64, bytes: u64) -> Self {
        Self {
            folders: self.folders.saturating_add(folders),
            bytes: self.bytes.saturating_add(bytes),
        }
    }
}

/// The notes of one user's runs; none if there is no runtime folder.
#[derive(Clone, Debug)]
pub(super) struct Runs(Option<PathBuf>);

/// A note, as it is stored.
#[derive(Serialize, Deserialize)]
struct Note {
    keeper: KeeperProcess,
    bytes: u64,
    /// A version that does not note them has one in most runs.
    #[serde(default = "one")]
    folders: u64,
}

fn one() -> u64 {
    1
}

impl Runs {
    /// The notes in a runtime folder.
    pub(super) fn new(runtime: Option<&Path>) -> Self {
        Self(runtime.map(|folder| folder.join(RUNS)))
    }

    /// Notes the folders and bytes that this process keeps. If it cannot, other processes do
    /// not count them.
    pub(super) fn put(&self, kept: RamFolders) {
        let Some(folder) = &self.0 else { return };
        let number = std::process::id();
        let keeper =
            KeeperProcess { number, began: detached_process::begun(number).unwrap_or_default() };
        if let Some(runtime) = folder.parent() {
            let _ = os_path::make_private_folder(runtime);
        }
        let _ = os_path::make_private_folder(folder);
        let _ = store(&own(folder), &Note { keeper, bytes: kept.bytes, folders: kept.folders });
    }

    /// Takes the note of this process away.
    pub(super) fn remove(&self) {
        if let Some(folder) = &self.0 {
            os_path::remove(&own(folder), false);
        }
    }

    /// Adds up all other runs. The note of a keeper that was killed is removed.
    pub(super) fn others(&self) -> RamFolders {
        let Some(folder) = &self.0 else { return RamFolders::default() };
        let names = user_file::names(folder).unwrap_or_default();
        let notes = names.iter().map(|name| folder.join(os_path::from_bytes(name)));
        notes
            .filter(|path| *path != own(folder))
            .filter_map(|path| match load::<Note>(&path)? {
                note if note.keeper.is_running() => Some(note),
                _ => {
                    os_path::remove(&path, false);
                    None
                }
            })
            .fold(RamFolders::default(), |sum, note| sum.and(note.folders, note.bytes))
    }
}

fn own(folder: &Path) -> PathBuf {
    folder.join(format!("{}.json", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_count_the_others_that_still_run() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::new(Some(folder.path()));
        assert_eq!([runs.others(), Runs::new(None).others()], [RamFolders::default(); 2]);
        let kept = RamFolders { folders: 2, bytes: 5 };
        runs.put(kept);
        assert_eq!(runs.others(), RamFolders::default(), "its own");
        let own = own(&folder.path().join(RUNS));
        let other = own.with_file_name("1.json");
        std::fs::rename(&own, &other).unwrap();
        // Where a process can be told from one before it.
        if detached_process::begun(std::process::id()).is_some_and(|began| began > 0) {
            assert_eq!(runs.others(), kept);
        }
        let number = std::process::id();
        store(
            &other,
            &Note { keeper: KeeperProcess { number, began: u64::MAX }, bytes: 7, folders: 1 },
        )
        .unwrap();
        assert_eq!(runs.others(), RamFolders::default(), "it was killed");
        assert!(!other.exists());
        runs.put(kept);
        runs.remove();
        assert!(!own.exists());
    }
}
