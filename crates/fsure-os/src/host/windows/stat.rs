//! The stat of an open file, folder or link, as Windows reports it.

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_COMPRESSED, FILE_ATTRIBUTE_DIRECTORY,
    FILE_ATTRIBUTE_ENCRYPTED, FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TAG_INFO,
    FILE_BASIC_INFO, FILE_ID_INFO, FILE_STANDARD_INFO, FileAttributeTagInfo, FileBasicInfo,
    FileIdInfo, FileStandardInfo, GetFileInformationByHandle,
};

use super::call::{ask, last_error};
use crate::stat::date_ns;
use crate::{Kind, Stat};

/// From 1601, where Windows counts from, to 1970, in its units of 100 ns.
const TO_1970: i64 = 116_444_736_000_000_000;

/// A stat, and what only Windows knows.
pub(super) struct FileInfo {
    pub(super) stat: Stat,
    /// True if the content lies on the medium as it is read: not compressed, not encrypted
    /// by the file system, and not in the file table, where NTFS keeps content that is
    /// smaller than an entry of up to 4 KiB. A file that is not plain is served from the
    /// system's memory, whatever was requested.
    pub(super) is_plain: bool,
    /// True if another program supplies the content: deduplicated, in a cloud.
    pub(super) is_stand_in: bool,
}

/// Asks an open handle.
pub(super) fn of(file: BorrowedHandle<'_>) -> io::Result<FileInfo> {
    // SAFETY: each class with its own structure, all plain data.
    let (basic, standard) = unsafe {
        (
            ask::<FILE_BASIC_INFO>(file, FileBasicInfo)?,
            ask::<FILE_STANDARD_INFO>(file, FileStandardInfo)?,
        )
    };
    let (device, inode) = identity(file)?;
    let has = |attribute: u32| basic.FileAttributes & attribute != 0;
    let tag = if has(FILE_ATTRIBUTE_REPARSE_POINT) {
        // SAFETY: as above.
        Some(unsafe { ask::<FILE_ATTRIBUTE_TAG_INFO>(file, FileAttributeTagInfo) }?.ReparseTag)
    } else {
        None
    };
    let kind = kind(has(FILE_ATTRIBUTE_DIRECTORY), tag);
    let stat = Stat {
        kind,
        size: unsigned(standard.EndOfFile),
        mtime_ns: nanoseconds(basic.LastWriteTime),
        ctime_ns: nanoseconds(basic.ChangeTime),
        birth_ns: (basic.CreationTime != 0).then(|| nanoseconds(basic.CreationTime)),
        inode,
        device,
        links: standard.NumberOfLinks,
        allocated: unsigned(standard.AllocationSize),
        place: None,
    };
    let is_transformed = has(FILE_ATTRIBUTE_COMPRESSED) || has(FILE_ATTRIBUTE_ENCRYPTED);
    let is_plain = !is_transformed && stat.allocated >= 4096;
    Ok(FileInfo { stat, is_plain, is_stand_in: tag.is_some() && kind == Kind::File })
}

/// Returns the kind of a name with a reparse tag. Tags with the bit of a surrogate stand
/// for another name: symbolic links, junctions, mount points, WSL's links.
fn kind(is_folder: bool, tag: Option<u32>) -> Kind {
    const NAME_SURROGATE: u32 = 0x2000_0000;
    /// `IO_REPARSE_TAG_AF_UNIX`, and `..._LX_FIFO`, `_CHR` and `_BLK` of WSL.
    const SPECIAL: std::ops::RangeInclusive<u32> = 0x8000_0023..=0x8000_0026;
    match tag {
        Some(tag) if tag & NAME_SURROGATE != 0 => Kind::Link,
        Some(tag) if SPECIAL.contains(&tag) => Kind::Special,
        _ if is_folder => Kind::Folder,
        _ => Kind::File,
    }
}

/// The numbers of the volume and of the file on it.
pub(super) fn identity(file: BorrowedHandle<'_>) -> io::Result<(u64, u64)> {
    // SAFETY: the class with its own structure, plain data.
    if let Ok(answer) = unsafe { ask::<FILE_ID_INFO>(file, FileIdInfo) } {
        let id = u128::from_le_bytes(answer.FileId.Identifier);
        // Only ReFS uses the upper half, and rarely.
        return Ok((answer.VolumeSerialNumber, id as u64 ^ ((id >> 64) as u64).rotate_left(32)));
    }
    let mut answer = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the call writes one such structure.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut answer) } == 0 {
        return Err(last_error());
    }
    let id = u64::from(answer.nFileIndexHigh) << 32 | u64::from(answer.nFileIndexLow);
    Ok((answer.dwVolumeSerialNumber.into(), id))
}

fn nanoseconds(time: i64) -> i64 {
    const PER_SECOND: i64 = 10_000_000;
    let since = time.saturating_sub(TO_1970);
    date_ns(since.div_euclid(PER_SECOND), since.rem_euclid(PER_SECOND) * 100)
}

fn unsigned(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_give_the_kind_of_a_name() {
        for (is_folder, tag, expected) in [
            (false, None, Kind::File),
            (true, None, Kind::Folder),
            (false, Some(0xa000_000c), Kind::Link),
            (true, Some(0xa000_000c), Kind::Link),
            (true, Some(0xa000_0003), Kind::Link),
            (false, Some(0xa000_001d), Kind::Link),
            (false, Some(0x8000_0023), Kind::Special),
            // Deduplicated.
            (false, Some(0x8000_0013), Kind::File),
            // A folder in a cloud.
            (true, Some(0x9000_001a), Kind::Folder),
        ] {
            assert_eq!(kind(is_folder, tag), expected, "{tag:x?}");
        }
    }

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(nanoseconds(TO_1970), 0);
        assert_eq!(nanoseconds(TO_1970 + 10_000_001), 1_000_000_100);
        assert_eq!(nanoseconds(i64::MAX), i64::MAX);
    }
}
