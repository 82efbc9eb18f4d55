//! Probes the features of this kernel that fsure uses. Each is tried if
//! that changes nothing, since a version number reveals little of how a kernel
//! was built and of what a container permits.

use crate::host;

/// The available features; `None` if one cannot be tried, as without root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A mount that is made before it has a place.
    pub detached_mount: Option<bool>,
    /// A folder in memory that is never swapped out.
    pub no_swap: Option<bool>,
    /// A folder in memory in huge pages.
    pub huge_pages: Option<bool>,
    /// Changes reported for a whole file system, by folder and name.
    pub file_system_marks: Option<bool>,
    /// User namespaces for users other than root; `Err` names what forbids them.
    pub user_namespaces: Option<Result<(), String>>,
    /// Compressed disks in memory.
    pub zram: Option<bool>,
    /// XFS, and what makes one.
    pub xfs: Option<bool>,
    /// The type information that programs in the kernel need to be loaded (BTF).
    pub type_format: Option<bool>,
    /// File systems that a process serves (FUSE).
    pub fuse: Option<bool>,
}

/// Ways to read that this kernel has, tried on the file of this program; `None` if one cannot be
/// tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadFeatures {
    /// Many reads with one system call (io_uring).
    pub io_uring: Option<bool>,
    /// The alignment of direct reads (`statx` with `STATX_DIOALIGN`).
    pub direct_alignment: Option<bool>,
    /// Reads that leave nothing in the page cache (`RWF_DONTCACHE`).
    pub dont_cache: Option<bool>,
    /// Counts of the pages of a file in the page cache (`cachestat`).
    pub page_counts: Option<bool>,
}

/// Probes the ways to read; `None` on systems other than Linux.
pub fn read_features() -> Option<ReadFeatures> {
    host::kernel_features::read_features()
}

/// Probes all features that reading does not need.
pub fn features() -> Features {
    host::kernel_features::features()
}
