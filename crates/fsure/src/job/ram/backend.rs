//! What the RAM side is made of. A tmpfs is faster and grows; xfs on a zram device can
//! be frozen, so that every generation is one moment however much is written.

use fsure_os::zram;
use serde::{Deserialize, Serialize};

use super::registry::Entry;
use crate::words::units::MIB;

/// What the RAM side is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// A file system in memory, of its own kind.
    #[default]
    Tmpfs,
    /// xfs on a compressed disk in memory.
    ZramXfs,
}

/// xfs's own journal, and what else it needs before there is a file.
const JOURNAL: u64 = 72 * MIB;

impl Backend {
    /// The backend that has a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Tmpfs, Self::ZramXfs].into_iter().find(|backend| backend.name() == name)
    }

    /// Its name, as it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::ZramXfs => "zram-xfs",
        }
    }

    /// The same for a person, with what it does not do.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::ZramXfs => "zram-xfs, which does not grow",
        }
    }

    /// Whether it can be larger while it is mounted.
    pub(super) fn grows(self) -> bool {
        self == Self::Tmpfs
    }

    /// Why it cannot be had here.
    pub(super) fn hindrance(self) -> Option<String> {
        match self {
            Self::Tmpfs => None,
            Self::ZramXfs => zram::can_make_xfs().err().map(|error| error.to_string()),
        }
    }

    /// The size that content of so many bytes needs.
    pub(super) fn holding(self, content: u64) -> u64 {
        match self {
            Self::Tmpfs => content,
            Self::ZramXfs => content + content / 16 + JOURNAL,
        }
    }

    /// The least size.
    pub(super) fn least(self) -> u64 {
        match self {
            Self::Tmpfs => 0,
            Self::ZramXfs => zram::XFS_LEAST,
        }
    }

    /// What a size takes of memory at most: what cannot be compressed takes more.
    pub(super) fn memory(self, bytes: u64) -> u64 {
        match self {
            Self::Tmpfs => bytes,
            Self::ZramXfs => bytes + bytes / 16,
        }
    }
}

/// What its xfs is labelled with, so that it is not taken for another's.
pub(super) fn label(entry: &Entry) -> String {
    format!("fs{}", &entry.id[..10])
}
