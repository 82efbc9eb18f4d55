//! Backends of the RAM side. A tmpfs is faster and grows; xfs on a zram device can be
//! frozen, so that every generation is one moment however much is written.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fsure_os::freeze::{FreezeGuard, thaw};
use fsure_os::overmount::{Detached, Ram};
use fsure_os::private_mounts::retry_while_busy;
use fsure_os::zram;
use serde::{Deserialize, Serialize};

use super::registry::{Registry, RegistryEntry};
use crate::write_back::Freeze;
use fsure_core::units::MIB;
use fsure_core::{Error, IoContext as _, Result};

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

    /// Returns the most memory that a size takes, in bytes. Data that cannot be
    /// compressed takes more than its size.
    pub(super) fn memory(self, bytes: u64) -> u64 {
        match self {
            Self::Tmpfs => bytes,
            Self::ZramXfs => bytes + bytes / 16,
        }
    }
}

/// Returns the label of its xfs, so that it is not mistaken for that of another entry.
pub(super) fn label(entry: &RegistryEntry) -> String {
    format!("fs{}", &entry.id[..10])
}

/// Makes an empty RAM side that no other process sees. What it takes is entered before it
/// is made.
pub(super) fn make(
    registry: &Registry,
    entry: &mut RegistryEntry,
    disk: &Path,
) -> Result<Detached> {
    let path = entry.path.clone();
    let doing = "make a folder in memory for";
    let RegistryEntry { bytes, inodes, .. } = *entry;
    if entry.backend == Backend::Tmpfs {
        let ram = Ram { source: entry.source(), bytes, inodes, huge: true };
        return Detached::ram(&ram, disk).context(doing, &path);
    }
    // Of an attempt before.
    remove(entry)?;
    let number = zram::add_zram().context(doing, &path)?;
    entry.device = Some(number);
    registry.put(entry)?;
    zram::make_xfs(number, bytes, &label(entry)).context(doing, &path)?;
    Detached::xfs(number, disk).context(doing, &path)
}

/// Removes the device of a RAM side that is not mounted any more.
pub(super) fn remove(entry: &RegistryEntry) -> Result<()> {
    let Some(number) = entry.device else { return Ok(()) };
    match retry_while_busy(|| zram::remove_zram(number, &label(entry))) {
        // The number is another's by now.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Error::FailedPrecondition {
            message: format!(
                "{} of {} is in use still, where it cannot be seen from here",
                zram::node(number).display(),
                entry.path.display()
            ),
            hint: Some("end who has mounts of its own, then 'fsure ram recover'".to_owned()),
        }),
        other => other.context("remove", &zram::node(number)),
    }
}

/// Thaws what was left frozen: its guard was killed, too.
pub(super) fn let_go(entry: &RegistryEntry) -> Result<()> {
    if entry.backend == Backend::ZramXfs {
        thaw(&entry.path).context("thaw", &entry.path)?;
    }
    Ok(())
}

/// Holds the RAM side still. A guard is there only meanwhile: it would be in the way of
/// the unmounting.
pub(super) struct FreezeControl {
    path: PathBuf,
    lock: PathBuf,
    still: RefCell<Option<FreezeGuard>>,
}

impl FreezeControl {
    /// Of an entry whose RAM side is mounted, and not covered; `None` where it cannot
    /// be held still.
    pub(super) fn of(entry: &RegistryEntry, registry: &Registry) -> Option<Self> {
        let can = entry.backend == Backend::ZramXfs;
        let (path, lock) = (entry.path.clone(), registry.still(&entry.id));
        can.then(|| Self { path, lock, still: RefCell::default() })
    }
}

impl Freeze for FreezeControl {
    fn freeze(&self) -> io::Result<()> {
        let still = FreezeGuard::of(&self.path, &self.lock)?;
        still.freeze()?;
        self.still.replace(Some(still));
        Ok(())
    }

    fn thaw(&self) -> io::Result<()> {
        // Its guard ends then, and would thaw where this fails.
        self.still.take().map_or(Ok(()), |still| still.thaw())
    }
}
