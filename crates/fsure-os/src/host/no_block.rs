//! A disk of ours, on systems where that is not built yet.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::block::Block;

/// There is none.
#[derive(Debug)]
pub(crate) enum Served {}

pub(crate) fn serve(_: Arc<dyn Block>, _: &Path) -> io::Result<Served> {
    Err(unsupported())
}

impl Served {
    pub(crate) fn file(&self) -> &Path {
        match *self {}
    }
}

/// There is none.
#[derive(Debug)]
pub(crate) enum Loop {}

impl Loop {
    pub(crate) fn attach(_: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn device(&self) -> &Path {
        match *self {}
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "a simulated disk needs Linux")
}
