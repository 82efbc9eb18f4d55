//! Windows has none of this in a form that means the same elsewhere: what it
//! has instead (security descriptors, alternate streams) is not asked for, and
//! every question is refused rather than answered with less.

use std::io;

use super::root_dir::Root;
use crate::file_attributes::Ownership;

/// True if access lists (ACLs) can be read on this system.
pub const HAS_ACCESS_LISTS: bool = false;
/// True if extended attributes can be read on this system.
pub const HAS_ATTRIBUTES: bool = false;
/// True if modes and owners count on this system.
pub const HAS_OWNERS: bool = false;

/// A name below a root.
pub struct Node(());

impl Node {
    /// The name of a path below the root.
    pub fn at(_: &Root, _: &[u8]) -> io::Result<Self> {
        Err(refused())
    }

    /// Its mode and owner.
    pub fn ownership(&self) -> io::Result<Ownership> {
        Err(refused())
    }

    /// The names of its attributes.
    pub fn attribute_names(&self) -> io::Result<Vec<Vec<u8>>> {
        Err(refused())
    }

    /// The value of an attribute.
    pub fn attribute(&self, _: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Err(refused())
    }

    /// Gives an attribute this value.
    pub fn set_attribute(&self, _: &[u8], _: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    /// Takes an attribute away.
    pub fn remove_attribute(&self, _: &[u8]) -> io::Result<()> {
        Err(refused())
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "fsure does not read attributes on Windows")
}

/// There is nothing that only some are shown.
pub fn sees_trusted() -> bool {
    true
}
