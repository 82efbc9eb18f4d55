//! Attributes of a name beside its content: mode, owner, access lists and
//! extended attributes. They are read from the name itself, never from the target
//! of a link, and without opening anything if the system allows that: reading
//! attributes must not need the right to read the content, nor touch a FIFO.

pub use crate::host::file_attributes::{
    HAS_ACCESS_LISTS, HAS_ATTRIBUTES, HAS_OWNERS, Node, sees_trusted,
};

/// The owner, group and permission bits of a name, as the system numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Permission bits, with those for set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    /// Number of the owner.
    pub user: u32,
    /// Number of the group.
    pub group: u32,
}

/// Returns true if an attribute's name is that of an access list, which the
/// system keeps among the attributes: of POSIX, or of NFSv4.
pub fn is_access_list(name: &[u8]) -> bool {
    matches!(
        name,
        b"system.posix_acl_access"
            | b"system.posix_acl_default"
            | b"system.nfs4_acl"
            | b"system.nfs4_dacl"
            | b"system.nfs4_sacl"
            | b"system.richacl"
    )
}
