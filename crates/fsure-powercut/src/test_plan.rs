//! The plan of a run: the ways to make a write durable, with the numbers by which blocks
//! and the witness name them, and the patterns of writing.

use fsure_os::durable_write::Method;
use fsure_os::storage_stack::Stack;

/// A way to make a write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its number, which never changes.
    pub number: u32,
    /// Its name on the command line and in results.
    pub name: &'static str,
    pub(super) method: Method,
}

/// All ways of all systems. Ways that promise nothing after a power cut are left out: a
/// loss would prove nothing about a drive.
const WAYS: [Way; 13] = [
    way(1, "fsync", Method::Fsync),
    way(2, "fdatasync", Method::Fdatasync),
    way(3, "dsync", Method::Dsync),
    way(4, "sync", Method::Sync),
    way(5, "rwf-dsync", Method::RwfDsync),
    way(6, "direct-dsync", Method::DirectDsync),
    way(7, "direct-fdatasync", Method::DirectFdatasync),
    way(8, "syncfs", Method::Syncfs),
    way(9, "io-uring", Method::Ring),
    way(10, "full-fsync", Method::FullFsync),
    way(11, "flush-file-buffers", Method::FlushFileBuffers),
    way(12, "write-through", Method::WriteThrough),
    way(13, "write-through-unbuffered", Method::WriteThroughUnbuffered),
];

const fn way(number: u32, name: &'static str, method: Method) -> Way {
    Way { number, name, method }
}

impl Way {
    /// Returns the ways of this system.
    pub fn all() -> Vec<Self> {
        // On macOS, all but one leave the drive's cache alone.
        let is_weak = |way: &Self| {
            Method::weaker() == Some(Method::Fsync) && way.method != Method::strongest()
        };
        let is_here = |way: &Self| Method::all().contains(&way.method) && !is_weak(way);
        WAYS.into_iter().filter(is_here).collect()
    }

    /// Returns the ways that programs use most.
    pub fn usual() -> Vec<Self> {
        let rare = ["sync", "rwf-dsync", "direct-fdatasync", "syncfs", "io-uring"];
        Self::all().into_iter().filter(|way| !rare.contains(&way.name)).collect()
    }

    /// Returns true if a file system keeps the promise of this way on an honest drive:
    /// otherwise the drive would be blamed. XFS loses overwrites despite `syncfs`.
    pub(super) fn is_kept_on(self, stack: &Stack) -> bool {
        let systems = stack.layers.iter().take_while(|layer| layer.kind == "file system");
        self.method != Method::Syncfs || systems.into_iter().all(|layer| layer.name != "xfs")
    }

    /// Returns the name of the way with a number.
    pub fn name_of(number: u32) -> String {
        let way = WAYS.iter().find(|way| way.number == number);
        way.map_or_else(|| format!("method {number}"), |way| way.name.to_owned())
    }
}

/// A pattern of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A block at random in a file that was there before.
    Overwrite,
    /// A block at the end of a file.
    Append,
    /// A new file, then its folder.
    Create,
    /// A new file in the place of another, then their folder.
    Rename,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Overwrite, Self::Append, Self::Create, Self::Rename];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::Create => "create",
            Self::Rename => "rename",
        }
    }

    /// Returns true if it needs names to be durable.
    pub(super) fn needs_names(self) -> bool {
        matches!(self, Self::Create | Self::Rename)
    }
}

#[cfg(test)]
mod tests {
    use fsure_os::storage_stack::{Medium, StorageLayer};

    use super::*;

    #[test]
    fn no_drive_is_blamed_for_what_xfs_loses() {
        let layer = |(kind, name): &(&'static str, &str)| StorageLayer {
            kind,
            name: (*name).to_owned(),
            facts: Vec::new(),
        };
        let left_out = |layers: &[(&'static str, &str)]| {
            let layers = layers.iter().map(layer).collect();
            let medium = Medium::Unknown;
            let stack = Stack { layers, medium, is_write_back: None, drive_cache_on: None };
            let left_out = WAYS.into_iter().filter(|way| !way.is_kept_on(&stack));
            left_out.map(|way| way.name).collect::<Vec<_>>()
        };
        let (xfs, disk) = (("file system", "xfs"), ("disk", "sda"));
        assert_eq!(left_out(&[xfs, disk]), ["syncfs"]);
        assert_eq!(left_out(&[("file system", "overlay"), xfs]), ["syncfs"]);
        assert_eq!(left_out(&[("file system", "ext4"), disk]), [""; 0]);
        // Below an image, XFS gets a flush of one file.
        assert_eq!(left_out(&[("file system", "ext4"), ("loop", "loop0"), xfs]), [""; 0]);
    }
}
