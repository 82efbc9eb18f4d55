//! The storage below a folder on systems other than Linux, where only the file system
//! reports something of itself.

use std::io;
use std::path::Path;

use crate::device::StorageDevice;
use crate::root_dir::Root;
use crate::storage_stack::{Medium, Stack, StorageLayer};

pub(crate) fn of(folder: &Path) -> io::Result<Stack> {
    let root = Root::open(folder)?;
    let name = crate::host::filesystem_id::of(&root, b"")?.kind;
    let is_remote = StorageDevice::of(&root, b"").is_remote();
    let medium = if is_remote { Medium::Remote } else { Medium::Unknown };
    let facts = vec![("below", "not known here".to_owned())];
    Ok(Stack::on(medium, vec![StorageLayer { kind: "file system", name, facts }]))
}

/// Only Linux has a folder for each device.
pub(crate) fn of_device(_: &Path) -> io::Result<Stack> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No system but Linux says which mount it is of all that there ever were.
pub(crate) fn life(_: &Path) -> Option<String> {
    None
}
