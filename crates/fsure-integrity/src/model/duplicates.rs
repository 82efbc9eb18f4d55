//! Files of equal content.

use super::{Offline, VerdictCounts};
use fsure_core::{ExitCode, RelPath};

/// One of several files of equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of its group, from 1.
    pub group: u64,
    /// Its path.
    pub path: RelPath,
    /// Its size in bytes.
    pub size: u64,
    /// The digest they have in common.
    pub digest: Box<[u8]>,
    /// True if it is another name of the file reported before it, and not a copy.
    pub is_link: bool,
}

/// The result of a search for files of equal content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Groups of equal files.
    pub groups: u64,
    /// Files in them, further names of one file not counted.
    pub files: u64,
    /// Further names.
    pub links: u64,
    /// Bytes of all copies but one of each group.
    pub bytes_saved: u64,
    /// Files that were read for it because their records were not current.
    pub files_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Files and folders that could not be read, and are left out.
    pub unread: u64,
    /// Files left out because they changed during the search.
    pub changed: u64,
    /// Records that fail their seal, and were not used.
    pub bad_records: u64,
    /// Files that are known to be damaged, by the verdict of the run that last read them.
    pub known_damage: VerdictCounts,
    /// The reason why the root cannot be the recorded one; `None` if it can be.
    /// If it is set, nothing was searched.
    pub offline: Option<Offline>,
    /// True if the search was stopped before its end.
    pub was_stopped: bool,
}

impl Duplicates {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        let own = match self {
            Self { bad_records: 1.., .. } => ExitCode::RecordUntrusted,
            Self { unread, changed, .. } if unread + changed > 0 => ExitCode::Unread,
            Self { offline: Some(_), .. } => ExitCode::Incomplete,
            _ => ExitCode::Clean,
        };
        own.worse(self.known_damage.known_damage_code())
    }

    /// Adds what was found in another root.
    pub fn add(&mut self, other: &Self) {
        self.groups += other.groups;
        self.files += other.files;
        self.links += other.links;
        self.bytes_saved += other.bytes_saved;
        self.files_read += other.files_read;
        self.bytes_read += other.bytes_read;
        self.unread += other.unread;
        self.changed += other.changed;
        self.bad_records += other.bad_records;
        self.known_damage.join(&other.known_damage);
        if self.offline.is_none() {
            self.offline.clone_from(&other.offline);
        }
        self.was_stopped |= other.was_stopped;
    }
}
