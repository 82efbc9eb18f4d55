//! The alignment that a volume needs for direct reads.

use std::os::windows::io::BorrowedHandle;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ALIGNMENT_INFO, FILE_STORAGE_INFO, FileAlignmentInfo, FileStorageInfo,
};

use super::call::ask;
use crate::read_mode::GRAIN_MIN;

/// Returns the alignment that a volume needs for direct reads, in bytes; [`GRAIN_MIN`] if
/// it does not report one.
pub(super) fn grain_of(file: BorrowedHandle<'_>) -> u64 {
    // SAFETY: each class with its own structure, plain data.
    let (storage, memory) = unsafe {
        (
            ask::<FILE_STORAGE_INFO>(file, FileStorageInfo),
            ask::<FILE_ALIGNMENT_INFO>(file, FileAlignmentInfo),
        )
    };
    let sector = storage.map_or(0, |answer| answer.LogicalBytesPerSector);
    // A mask: one less than the alignment.
    let memory = memory.map_or(0, |answer| answer.AlignmentRequirement.saturating_add(1));
    u64::from(sector.max(memory)).next_power_of_two().max(GRAIN_MIN)
}
