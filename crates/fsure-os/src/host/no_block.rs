//! A disk of ours, on systems where that is not built yet.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::mounts::Namespace;
use crate::block::Block;

/// There is none.
#[derive(Debug)]
pub(crate) enum Served {}

pub(crate) fn serve(_: Arc<dyn Block>, _: &Namespace, _: &Path) -> io::Result<Served> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated disk needs Linux"))
}

pub(crate) fn publish(_: Arc<dyn Block>, _: &Path) -> io::Result<Served> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated disk needs Linux"))
}

impl Served {
    pub(crate) fn file(&self) -> &Path {
        match *self {}
    }
}
