//! What this kernel can do of that which RAM folders need: each is tried, where
//! that changes nothing, since a version number says little of how a kernel was
//! built and of what a container lets through.

use crate::host;

/// What can be had; `None` where it cannot be tried, as without root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A mount that is made before it has a place.
    pub detached_mount: Option<bool>,
    /// A folder in memory that is never swapped out.
    pub no_swap: Option<bool>,
    /// A folder in memory in huge pages.
    pub huge_pages: Option<bool>,
    /// Changes told for a whole file system, by folder and name.
    pub file_system_marks: Option<bool>,
    /// User namespaces for those who are not root; `Err` says what forbids them.
    pub user_namespaces: Option<Result<(), String>>,
    /// Compressed disks in memory.
    pub zram: Option<bool>,
    /// XFS, and what makes one.
    pub xfs: Option<bool>,
    /// What programs in the kernel need to be loaded (BTF).
    pub type_format: Option<bool>,
}

/// Asks for them all.
pub fn features() -> Features {
    host::kernel::features()
}
