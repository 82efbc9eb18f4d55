//! The location of a file's bytes on the disk, as the file system reports it:
//! `FS_IOC_FIEMAP`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Extents asked for at once: what a direct read of 4 MiB covers where the
/// file system packs 128 KiB at a time.
const EXTENTS: usize = 32;

/// `struct fiemap` of `linux/fiemap.h` with space for some extents.
#[repr(C)]
struct Fiemap<const N: usize> {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; N],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

impl Extent {
    const LAST: u32 = 0x1;
    /// The address is not known or not real.
    const UNKNOWN: u32 = 0x2;
    /// Not as plain bytes in blocks of their own: not on the disk yet, packed,
    /// encrypted, unaligned, among the metadata, together with other tails.
    const NOT_PLAIN: u32 = Self::UNKNOWN | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
}

/// `None` where the file has no address yet, or none that means anything.
/// Does not wait for what is not on the disk yet.
pub(crate) fn first_byte(file: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let map = ask::<1>(file, &(0..u64::MAX), 0)?;
    let is_known = map.mapped_extents == 1 && map.extents[0].flags & Extent::UNKNOWN == 0;
    Ok(is_known.then_some(map.extents[0].physical))
}

/// Returns true if all data in a range lie on the disk as plain bytes, so that a direct
/// read can fetch them; also true if the range has no data. Data that are not on the disk
/// yet are written first, as a direct read would do.
pub(crate) fn is_plain(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<bool> {
    const FIEMAP_FLAG_SYNC: u32 = 0x1;
    let mut left = range;
    while !left.is_empty() {
        let map = ask::<EXTENTS>(file, &left, FIEMAP_FLAG_SYNC)?;
        let extents = &map.extents[..EXTENTS.min(map.mapped_extents as usize)];
        if extents.iter().any(|extent| extent.flags & Extent::NOT_PLAIN != 0) {
            return Ok(false);
        }
        left.start = match extents.last() {
            // An extent that ends where it begins would be asked for for ever.
            Some(last) if last.flags & Extent::LAST == 0 && last.length > 0 => {
                last.logical.saturating_add(last.length)
            }
            _ => left.end,
        };
    }
    Ok(true)
}

fn ask<const N: usize>(
    file: BorrowedFd<'_>,
    range: &Range<u64>,
    flags: u32,
) -> io::Result<Fiemap<N>> {
    /// `_IOWR('f', 11, struct fiemap)`; the size is that of the head alone.
    const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
    let mut map = Fiemap {
        start: range.start,
        length: range.end - range.start,
        flags,
        mapped_extents: 0,
        extent_count: N as u32,
        reserved: 0,
        extents: [Extent::default(); N],
    };
    // SAFETY: the request reads the head and writes at most `extent_count`
    // extents behind it; `map` has that many.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
    if done == 0 { Ok(map) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn the_layout_is_the_kernel_s() {
        assert_eq!(size_of::<Fiemap<3>>(), 32 + 3 * 56);
        assert_eq!(std::mem::offset_of!(Fiemap<3>, extents), 32);
    }

    #[test]
    fn two_files_do_not_begin_at_one_place() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let place = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, [1; 10_000]).unwrap();
            let file = std::fs::File::open(path).unwrap();
            file.sync_all().unwrap();
            first_byte(file.as_fd()).ok().flatten()
        };
        let (a, b) = (place("a"), place("b"));
        assert!(a.is_none() || a != b, "{a:?}");
    }
}
