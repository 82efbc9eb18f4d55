//! Memory of a virtual machine. Its host takes back what is not used for some seconds, and has
//! to be asked for it again, page by page: a measurement that needs free memory would measure
//! that.

use std::io;

use fsure_os::buffer::Buffer;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Takes so many bytes of memory and gives them back, so that what comes next finds memory that was
/// used a moment before. Without, a cached write had half of its rate, and a read that filled the
/// page cache three quarters.
pub(crate) fn touch_memory(bytes: u64) -> io::Result<()> {
    let mut memory = Buffer::new(bytes as usize)?;
    memory.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1);
    std::hint::black_box(&memory);
    Ok(())
}
