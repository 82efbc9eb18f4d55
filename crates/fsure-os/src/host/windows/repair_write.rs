//! Writing below a root is not there on Windows yet: names can be replaced
//! there, but what of a file's security a repair has to keep, and how to see
//! that it did, is untried. So all of it says that it cannot.

use std::io;

use super::root_dir::Root;
use crate::Stat;
use crate::attributes_copied::AttributesCopied;

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "repairs are not possible on Windows yet"))
}

/// A file open for writing; there is none.
#[derive(Debug)]
pub struct Writing(std::convert::Infallible);

impl Writing {
    /// Writes all of it there.
    pub fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        match self.0 {}
    }

    /// Cuts the file, or makes it longer by a hole.
    pub fn set_size(&self, _: u64) -> io::Result<()> {
        match self.0 {}
    }

    /// Sets the modification time; that of the last access stays.
    pub fn set_date(&self, _: i64) -> io::Result<()> {
        match self.0 {}
    }

    /// Waits until all of it is on the medium.
    pub fn flush(&self) -> io::Result<()> {
        match self.0 {}
    }

    /// Its stat.
    pub fn stat(&self) -> io::Result<Stat> {
        match self.0 {}
    }
}

/// The file or folder that another one is to resemble; there is none.
#[derive(Debug)]
pub struct Model(std::convert::Infallible);

impl Model {
    /// A file or folder below a root.
    pub fn open(_: &Root, _: &[u8]) -> io::Result<Self> {
        refused()
    }
}

/// A file that does not have a name of the user's yet; there is none.
#[derive(Debug)]
pub struct Draft(Writing);

impl Draft {
    /// Begins a draft; `path` is where it lies until it has its name.
    pub fn create(_: &Root, _: &[u8]) -> io::Result<Self> {
        refused()
    }

    /// The file, to be written.
    pub fn writing(&self) -> &Writing {
        &self.0
    }

    /// Gives it owner, mode, attributes and time of access of its model, and a
    /// date or else that of the model. `must` says that what the system refuses is
    /// an error.
    pub fn resemble(&self, model: &Model, _: Option<i64>, _: bool) -> io::Result<AttributesCopied> {
        match model.0 {}
    }

    /// Gives it the place of the file of that name in its folder, durably.
    pub fn replace(self, _: &[u8]) -> io::Result<()> {
        match self.0.0 {}
    }

    /// Gives it that name in its folder, durably, if nothing has it: otherwise
    /// fails with `AlreadyExists`.
    pub fn publish(self, _: &[u8]) -> io::Result<()> {
        match self.0.0 {}
    }
}

pub(crate) fn patch(_: &Root, _: &[u8]) -> io::Result<Writing> {
    refused()
}

pub(crate) fn make_folder(
    _: &Root,
    _: &[u8],
    model: Option<&Model>,
) -> io::Result<AttributesCopied> {
    model.map_or_else(refused, |model| match model.0 {})
}

pub(crate) fn make_link(_: &Root, _: &[u8], _: &[u8], _: Option<i64>) -> io::Result<()> {
    refused()
}

pub(crate) fn link_file(_: &Root, _: &[u8], _: &[u8]) -> io::Result<()> {
    refused()
}

pub(crate) fn move_file(_: &Root, _: &[u8], _: &[u8]) -> io::Result<()> {
    refused()
}

pub(crate) fn has_no_links(_: &io::Error) -> bool {
    false
}

pub(crate) fn flush_folder(_: &Root, _: &[u8]) -> io::Result<()> {
    refused()
}

pub(crate) fn set_folder_date(_: &Root, _: &[u8], _: i64) -> io::Result<()> {
    refused()
}

pub(crate) fn remove_file(_: &Root, _: &[u8]) -> io::Result<()> {
    refused()
}
