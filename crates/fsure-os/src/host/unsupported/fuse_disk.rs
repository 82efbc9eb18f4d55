//! A disk of fsure, on systems where that is not built yet.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::private_mounts::Namespace;
use crate::fuse_disk::VirtualDisk;

/// There is none.
#[derive(Debug)]
pub(crate) enum ServedDisk {}

pub(crate) fn serve(_: Arc<dyn VirtualDisk>, _: &Namespace, _: &Path) -> io::Result<ServedDisk> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated disk needs Linux"))
}

pub(crate) fn publish(_: Arc<dyn VirtualDisk>, _: &Path) -> io::Result<ServedDisk> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated disk needs Linux"))
}

impl ServedDisk {
    pub(crate) fn file(&self) -> &Path {
        match *self {}
    }
}
