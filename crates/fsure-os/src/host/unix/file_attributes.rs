//! Mode, owner and extended attributes of a name below a root. How the calls
//! reach the name itself, link or not, is each system's own.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, XattrFlags};
use rustix::io::Errno;

use super::root_dir::{Root, c_string};
use crate::file_attributes::Ownership;
pub use crate::host::system::file_attributes::{HAS_ACCESS_LISTS, sees_trusted};
pub(crate) use crate::host::system::file_attributes::{Reach, is_absent, mode_of};

/// True if this system has extended attributes.
pub const HAS_ATTRIBUTES: bool = true;
/// True if modes and owners count on this system.
pub const HAS_OWNERS: bool = true;

/// A name below a root.
pub struct Node {
    reach: Reach,
    ownership: Ownership,
}

impl Node {
    /// The name of a path below the root.
    pub fn at(root: &Root, path: &[u8]) -> io::Result<Self> {
        let (parent, name) = root.parent(path)?;
        let folder = parent.as_ref().map_or(root.descriptor(), |parent| parent.as_fd());
        let name = c_string(if name.is_empty() { b"." } else { name })?;
        let stat = rustix::fs::statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
        let ownership =
            Ownership { mode: mode_of(&stat) & 0o7777, user: stat.st_uid, group: stat.st_gid };
        Ok(Self { reach: Reach::to(root.descriptor(), parent, name)?, ownership })
    }

    /// Its mode and owner.
    pub fn ownership(&self) -> io::Result<Ownership> {
        Ok(self.ownership)
    }

    /// The names of its attributes, in no order. None where the file system
    /// keeps none.
    pub fn attribute_names(&self) -> io::Result<Vec<Vec<u8>>> {
        let Some(list) = whole(|buffer| self.reach.list(buffer))? else { return Ok(Vec::new()) };
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// The value of an attribute; `None` where it has none of that name.
    pub fn attribute(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let name = c_string(name)?;
        whole(|buffer| self.reach.get(&name, buffer))
    }

    /// Gives an attribute this value.
    pub fn set_attribute(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        Ok(self.reach.set(&c_string(name)?, value, XattrFlags::empty())?)
    }

    /// Takes an attribute away. It is not an error if the attribute is not there.
    pub fn remove_attribute(&self, name: &[u8]) -> io::Result<()> {
        let name: CString = c_string(name)?;
        match self.reach.remove(&name) {
            Err(error) if is_absent(error) => Ok(()),
            other => Ok(other?),
        }
    }
}

/// An answer of a length that the caller does not know before, and that may change
/// between two questions; `None` if there is nothing to be asked for.
pub(crate) fn whole(
    ask: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; 256];
    loop {
        match ask(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(Some(buffer));
            }
            Err(Errno::RANGE) => {
                let length = ask(&mut [])?;
                buffer.resize(length.max(2 * buffer.len()), 0);
            }
            Err(error) if is_absent(error) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
