//! Writing below a root, for repairs and nothing else: a draft that gets its
//! name only when it is whole and on its medium, a patch to a file that stays
//! what it is, and the links and folders that were lost. As for reading, no link
//! leads anywhere, and nothing is written through one.
//!
//! Nothing here decides what to write; nothing is overwritten but by
//! [`Draft::replace`] and by [`Writing::write_at`] of a [`patch`].

use std::io;

pub use crate::attributes_copied::AttributesCopied;
use crate::host::repair_write as host;
pub use crate::host::repair_write::{Draft, Model, Writing};
use crate::root_dir::Root;

/// Opens a file below a root to write into it as it is.
pub fn patch(root: &Root, path: &[u8]) -> io::Result<Writing> {
    host::patch(root, path)
}

/// Makes a folder like another one, or one that only its owner may use. Fails
/// with `AlreadyExists` where there is anything of that name.
pub fn make_folder(
    root: &Root,
    path: &[u8],
    model: Option<&Model>,
) -> io::Result<AttributesCopied> {
    host::make_folder(root, path, model)
}

/// Makes a link, with a modification time where one is known. Fails with
/// `AlreadyExists` where there is anything of that name.
pub fn make_link(root: &Root, path: &[u8], target: &[u8], mtime_ns: Option<i64>) -> io::Result<()> {
    host::make_link(root, path, target, mtime_ns)
}

/// Gives a file of one file system a second name, durably; no link is followed.
/// Fails with `AlreadyExists` where there is anything of that name.
pub fn link_file(root: &Root, path: &[u8], second: &[u8]) -> io::Result<()> {
    host::link_file(root, path, second)
}

/// Gives a file of one file system another name in the place of its own, durably;
/// no link is followed. Fails with `AlreadyExists` where there is anything of that
/// name, as far as the file system can tell in one step.
pub fn move_file(root: &Root, path: &[u8], to: &[u8]) -> io::Result<()> {
    host::move_file(root, path, to)
}

/// Tells whether an error says that a file cannot have a second name on this file
/// system, as on FAT and on some network file systems.
pub fn has_no_links(error: &io::Error) -> bool {
    host::has_no_links(error)
}

/// Waits until the names in a folder are on the medium.
pub fn flush_folder(root: &Root, path: &[u8]) -> io::Result<()> {
    host::flush_folder(root, path)
}

/// Sets the modification time of a folder.
pub fn set_folder_date(root: &Root, path: &[u8], mtime_ns: i64) -> io::Result<()> {
    host::set_folder_date(root, path, mtime_ns)
}

/// Removes a regular file below a root, durably. What is not there is not an error;
/// anything but a regular file is.
pub fn remove_file(root: &Root, path: &[u8]) -> io::Result<()> {
    host::remove_file(root, path)
}
