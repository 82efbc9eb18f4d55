//! Memory from the system. Large pages would need a privilege, and are not
//! asked for.

use std::io;
use std::ptr::NonNull;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_NOACCESS, PAGE_READWRITE,
    VirtualAlloc, VirtualFree, VirtualQuery,
};

use super::call::last_error;

/// Maps `capacity` zeroed bytes aligned to `alignment`, both multiples of a
/// page. Only addresses are taken for what lies before and behind.
pub(crate) fn map(capacity: usize, alignment: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: new addresses, of the system's choice.
    let base =
        unsafe { VirtualAlloc(std::ptr::null(), capacity + alignment, MEM_RESERVE, PAGE_NOACCESS) };
    if base.is_null() {
        return Err(last_error());
    }
    let start = base.wrapping_byte_add(base.align_offset(alignment));
    // SAFETY: a part of what was reserved above.
    let start = unsafe { VirtualAlloc(start, capacity, MEM_COMMIT, PAGE_READWRITE) };
    if let Some(start) = NonNull::new(start.cast()) {
        return Ok(start);
    }
    let error = last_error();
    // SAFETY: what was reserved above, and no caller has it.
    unsafe { VirtualFree(base, 0, MEM_RELEASE) };
    Err(error)
}

/// Gives back what [`map`] gave.
///
/// # Safety
///
/// `start` is that of one [`map`], and no thread uses it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, _capacity: usize) {
    let mut about = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the address is mapped, as promised by the caller; where it was
    // reserved from is all that is freed.
    let freed = unsafe {
        VirtualQuery(start.as_ptr().cast(), &raw mut about, size_of_val(&about));
        VirtualFree(about.AllocationBase, 0, MEM_RELEASE)
    };
    debug_assert!(freed != 0, "what was reserved can always be released");
}
