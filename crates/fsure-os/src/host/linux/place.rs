//! Where a file begins on the disk: `FS_IOC_FIEMAP`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::OFlags;

use super::file::{resident_pages, tells_residency};

/// Looking at a file's place does not count as reading it.
pub(crate) const KEEPS_ACCESS_TIME: OFlags = OFlags::NOATIME;

/// Whether something of a file is in the page cache.
pub(crate) fn is_in_memory(file: &OwnedFd) -> bool {
    resident_pages(file, tells_residency(file)).is_some_and(|pages| pages > 0)
}

/// `struct fiemap` of `linux/fiemap.h` with room for one extent.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extent: FiemapExtent,
}

#[repr(C)]
#[derive(Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// The disk address of a file's first byte, without flushing what is not on the
/// disk yet and so has none. `None` where it means nothing, either.
pub(crate) fn first_extent(file: &OwnedFd) -> io::Result<Option<u64>> {
    /// `_IOWR('f', 11, struct fiemap)`; the size is that of the head alone.
    const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b;
    /// The address is not known or not real.
    const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;
    let mut map = Fiemap { length: u64::MAX, extent_count: 1, ..Fiemap::default() };
    // SAFETY: the request reads the head and writes at most `extent_count`
    // extents behind it; `map` has one.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_known = map.mapped_extents == 1 && map.extent.flags & FIEMAP_EXTENT_UNKNOWN == 0;
    Ok(is_known.then_some(map.extent.physical))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernel_s() {
        assert_eq!(size_of::<Fiemap>(), 32 + 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extent), 32);
    }

    #[test]
    fn two_files_do_not_begin_at_one_place() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let place = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, [1; 10_000]).unwrap();
            let file = std::fs::File::open(path).unwrap();
            file.sync_all().unwrap();
            first_extent(&file.into()).ok().flatten()
        };
        let (a, b) = (place("a"), place("b"));
        assert!(a.is_none() || a != b, "{a:?}");
    }
}
