//! Copies of folders, on systems where that is not built yet.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::file_attributes::Ownership;
use crate::tree_copy::{Attributes, CopyStat, NodeKind};

/// Never made.
#[derive(Debug)]
pub struct Side(());

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "RAM folders need Linux"))
}

#[expect(missing_docs, reason = "never made; the Linux version has the documentation")]
impl Side {
    pub fn open(_: &Path) -> io::Result<Self> {
        unsupported()
    }

    pub fn list(&self, _: &[u8]) -> io::Result<Vec<(Vec<u8>, CopyStat)>> {
        unsupported()
    }

    pub fn facts(&self, _: &[u8]) -> io::Result<CopyStat> {
        unsupported()
    }

    pub fn facts_in(&self, _: &[u8], _: &[&[u8]]) -> io::Result<(CopyStat, Vec<Option<CopyStat>>)> {
        unsupported()
    }

    pub fn wait_for_names(&self, _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    pub fn target(&self, _: &[u8]) -> io::Result<Vec<u8>> {
        unsupported()
    }

    pub fn attributes(&self, _: &[u8]) -> io::Result<Attributes> {
        unsupported()
    }

    pub fn attributes_of(&self, _: &File) -> io::Result<Attributes> {
        unsupported()
    }

    pub fn read(&self, _: &[u8]) -> io::Result<File> {
        unsupported()
    }

    pub fn write(&self, _: &[u8]) -> io::Result<File> {
        unsupported()
    }

    pub fn create(&self, _: &[u8]) -> io::Result<File> {
        unsupported()
    }

    pub fn kept_date(&self, _: i64) -> io::Result<i64> {
        unsupported()
    }

    pub fn share(&self, _: &File, _: &File) -> io::Result<bool> {
        unsupported()
    }

    pub(crate) fn open_or_create(&self, _: &[u8]) -> io::Result<File> {
        unsupported()
    }

    pub fn make(&self, _: &[u8], _: NodeKind, _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    pub fn link(&self, _: &[u8], _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    pub fn rename(&self, _: &[u8], _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    pub fn remove(&self, _: &[u8], _: bool) -> io::Result<()> {
        unsupported()
    }

    pub fn set(
        &self,
        _: &[u8],
        _: NodeKind,
        _: Ownership,
        _: Option<i64>,
        _: &Attributes,
    ) -> io::Result<()> {
        unsupported()
    }

    pub fn flush(&self, _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    pub fn flush_all(&self) -> io::Result<()> {
        unsupported()
    }

    pub fn mapped(&self) -> io::Result<BTreeSet<u64>> {
        unsupported()
    }
}

pub(crate) fn data_from(_: &File, _: u64) -> io::Result<Option<Range<u64>>> {
    unsupported()
}

pub(crate) fn changed_ns(_: &File) -> io::Result<i64> {
    unsupported()
}

pub(crate) fn drop_cached(_: &File) -> io::Result<()> {
    unsupported()
}

pub(crate) fn read_once(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    unsupported()
}
