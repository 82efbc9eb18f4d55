//! Notes of the memory that each `ram run` takes, so that all RAM folders of a user count
//! each other. No registry has these folders and no other process sees their mounts, so
//! their keepers say how much it is.

use std::path::{Path, PathBuf};

use fsure_os::{daemon, path as os_path, plain};
use serde::{Deserialize, Serialize};

use super::registry::{Process, load, store};

/// The folder of the notes, in the runtime folder.
const RUNS: &str = "runs";

/// The notes of one user's runs; none where there is no runtime folder.
#[derive(Clone, Debug)]
pub(super) struct Runs(Option<PathBuf>);

/// A note, as it is stored.
#[derive(Serialize, Deserialize)]
struct Note {
    keeper: Process,
    bytes: u64,
}

impl Runs {
    /// The notes in a runtime folder.
    pub(super) fn new(runtime: Option<&Path>) -> Self {
        Self(runtime.map(|folder| folder.join(RUNS)))
    }

    /// Notes the bytes that this process keeps. Where it cannot, others do not count them.
    pub(super) fn put(&self, bytes: u64) {
        let Some(folder) = &self.0 else { return };
        let number = std::process::id();
        let keeper = Process { number, began: daemon::begun(number).unwrap_or_default() };
        if let Some(runtime) = folder.parent() {
            let _ = os_path::make_private_folder(runtime);
        }
        let _ = os_path::make_private_folder(folder);
        let _ = store(&own(folder), &Note { keeper, bytes });
    }

    /// Takes the note of this process away.
    pub(super) fn remove(&self) {
        if let Some(folder) = &self.0 {
            os_path::remove(&own(folder), false);
        }
    }

    /// Adds up the bytes of all other runs. The note of a keeper that was killed goes.
    pub(super) fn taken(&self) -> u64 {
        let Some(folder) = &self.0 else { return 0 };
        let names = plain::names(folder).unwrap_or_default();
        let notes = names.iter().map(|name| folder.join(os_path::from_bytes(name)));
        notes
            .filter(|path| *path != own(folder))
            .filter_map(|path| match load::<Note>(&path)? {
                note if note.keeper.is_running() => Some(note.bytes),
                _ => {
                    os_path::remove(&path, false);
                    None
                }
            })
            .fold(0, u64::saturating_add)
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
        assert_eq!((runs.taken(), Runs::new(None).taken()), (0, 0));
        runs.put(5);
        assert_eq!(runs.taken(), 0, "its own");
        let own = own(&folder.path().join(RUNS));
        let other = own.with_file_name("1.json");
        std::fs::rename(&own, &other).unwrap();
        // Where a process can be told from one before it.
        if daemon::begun(std::process::id()).is_some_and(|began| began > 0) {
            assert_eq!(runs.taken(), 5);
        }
        let number = std::process::id();
        store(&other, &Note { keeper: Process { number, began: u64::MAX }, bytes: 7 }).unwrap();
        assert_eq!(runs.taken(), 0, "it was killed");
        assert!(!other.exists());
        runs.put(5);
        runs.remove();
        assert!(!own.exists());
    }
}
