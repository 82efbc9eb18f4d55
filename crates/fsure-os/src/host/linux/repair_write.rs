//! Copies what a file has besides its bytes, on Linux: ACLs, capabilities and labels are
//! extended attributes.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

use crate::attributes_copied::AttributesCopied;
use crate::host::unix::repair_write::copy_owner_and_mode;

/// Given by the system to every file, and to this one already.
const LABEL: &CStr = c"security.selinux";

/// Owner, mode and extended attributes of a model.
pub(crate) fn copy_attributes(
    model: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    must: bool,
) -> io::Result<AttributesCopied> {
    copy_owner_and_mode(model, file, must, || {
        let mut resembles = AttributesCopied::Fully;
        let (wanted, now) = (list(model)?, list(file)?);
        for name in attribute_names(&wanted) {
            let value = fill(|buffer| fgetxattr(model, name, &mut buffer[..]))?;
            let known = fill(|buffer| fgetxattr(file, name, &mut buffer[..]));
            if known.is_ok_and(|known| known == value) {
                continue;
            }
            match fsetxattr(file, name, &value, XattrFlags::empty()) {
                Err(error) if must => return Err(error.into()),
                Err(_) => resembles = AttributesCopied::InPart,
                Ok(()) => {}
            }
        }
        // What a folder gives to all that is made in it: default ACLs.
        let is_wanted = |name: &CStr| attribute_names(&wanted).any(|wanted| wanted == name);
        for name in attribute_names(&now).filter(|name| *name != LABEL && !is_wanted(name)) {
            fremovexattr(file, name)?;
        }
        Ok(resembles)
    })
}

fn list(file: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    match fill(|buffer| flistxattr(file, &mut buffer[..])) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTSUP) => Ok(Vec::new()),
        other => other,
    }
}

/// The names in a list of extended attributes, each ended by a NUL.
fn attribute_names(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// Calls something that fills a buffer with ever larger ones until it fits.
fn fill(ask: impl Fn(&mut Vec<u8>) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    /// The kernel limits both a list and a value to 64 KiB (`XATTR_SIZE_MAX`).
    const XATTR_BYTES_MAX: usize = 1 << 20;
    let mut buffer = vec![0; 1024];
    loop {
        match ask(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < XATTR_BYTES_MAX => {
                buffer = vec![0; buffer.len() * 8]
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Lets go of what is in the page cache of a file.
pub(crate) fn drop_cached(file: BorrowedFd<'_>) {
    // Advice: where it is not taken, the way of reading will tell.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::linux::file::did_not_run;
    use std::os::fd::AsFd as _;

    #[test]
    fn attributes_are_the_model_s_and_no_others() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = |name| std::fs::File::create(folder.path().join(name)).unwrap();
        let (model, copy) = (file("model"), file("copy"));
        let long = vec![7; 3000];
        let set = |file: &std::fs::File, name: &CStr, value: &[u8]| {
            fsetxattr(file, name, value, XattrFlags::empty())
        };
        if set(&model, c"user.long", &long).is_err() {
            return did_not_run("attributes_are_the_model_s", "no extended attributes here");
        }
        set(&model, c"user.short", b"").unwrap();
        set(&copy, c"user.extra", b"x").unwrap();
        copy_attributes(model.as_fd(), copy.as_fd(), true).unwrap();
        let get = |name: &CStr| fill(|buffer| fgetxattr(&copy, name, &mut buffer[..])).ok();
        assert_eq!(get(c"user.long"), Some(long));
        assert_eq!(get(c"user.short"), Some(vec![]));
        assert_eq!(get(c"user.extra"), None);
    }
}
