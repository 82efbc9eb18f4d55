//! Backends of the RAM side. A tmpfs is faster and grows; xfs on a zram device can be
//! frozen, so that every generation is one moment however much is written.

use fsure_os::zram;
use serde::{Deserialize, Serialize};

use fsure_core::units::MIB;

/// File system that the RAM side is made of.
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

    /// Its name for display, with what it cannot do.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::ZramXfs => "zram-xfs, which does not grow",
        }
    }

    /// Returns true if it can be enlarged while it is mounted.
    pub(super) fn grows(self) -> bool {
        self == Self::Tmpfs
    }

    /// Returns the reason why it is not available here; `None` if it is available.
    pub(super) fn hindrance(self) -> Option<String> {
        match self {
            Self::Tmpfs => None,
            Self::ZramXfs => zram::can_make_xfs().err().map(|error| error.to_string()),
        }
    }

    /// Returns the size that content of so many bytes needs.
    pub(super) fn size_for(self, content: u64) -> u64 {
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

    /// Returns the most memory that a size takes, in bytes. Data that cannot be
    /// compressed takes more than its size.
    pub(super) fn memory(self, bytes: u64) -> u64 {
        match self {
            Self::Tmpfs => bytes,
            Self::ZramXfs => bytes + bytes / 16,
        }
    }
}
