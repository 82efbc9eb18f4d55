//! Memory from the system, in huge pages where it can be asked for them.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

/// Maps `capacity` zeroed bytes aligned to `alignment`, both multiples of a
/// page.
pub(crate) fn map(capacity: usize, alignment: usize) -> io::Result<NonNull<u8>> {
    let mapped = capacity + alignment;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice.
    let base = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            mapped,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    let lead = base.align_offset(alignment);
    let start = base.wrapping_byte_add(lead);
    // SAFETY: both pieces lie in the mapping made above, before and behind
    // the part that is kept, and nothing points into them.
    unsafe {
        if lead > 0 {
            rustix::mm::munmap(base, lead)?;
        }
        if mapped > lead + capacity {
            rustix::mm::munmap(start.wrapping_byte_add(capacity), mapped - lead - capacity)?;
        }
        // A hint: without huge pages reading is slower, not wrong. Elsewhere
        // the system uses them as it sees fit.
        #[cfg(target_os = "linux")]
        let _ = rustix::mm::madvise(start, capacity, rustix::mm::Advice::LinuxHugepage);
    }
    Ok(NonNull::new(start.cast()).expect("mmap never returns null"))
}

/// Gives back what [`map`] gave.
///
/// # Safety
///
/// `start` and `capacity` are those of one [`map`], and no thread uses it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, capacity: usize) {
    // SAFETY: as promised by the caller.
    let unmapped = unsafe { rustix::mm::munmap(start.as_ptr().cast(), capacity) };
    debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
}
