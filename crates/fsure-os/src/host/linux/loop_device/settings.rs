//! Settings of a loop device that decide which bytes are read and written through it.

use std::ffi::c_ulong;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use crate::loop_device::LoopError;

/// linux/loop.h.
const LOOP_GET_STATUS64: c_ulong = 0x4c05;
const LO_FLAGS_READ_ONLY: u32 = 1;
/// linux/fs.h.
const BLKROSET: c_ulong = 0x125d;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Information {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
}

impl Information {
    /// The settings of a new device.
    pub(super) fn with_flags(flags: u32) -> Self {
        Self {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags,
            names: [0; 160],
            init: [0; 2],
        }
    }
}

/// The settings, to be compared with those of a later moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopSettings {
    /// File system and inode of the file.
    file: (u64, u64),
    offset: u64,
    size_limit: u64,
    /// In sectors.
    size: String,
    is_read_only: bool,
}

impl LoopSettings {
    pub(super) fn of(number: u32, device: &File) -> io::Result<Self> {
        let info = ask(device)?;
        Ok(Self {
            file: (info.device, info.inode),
            offset: info.offset,
            size_limit: info.size_limit,
            size: word(number, "size")?,
            is_read_only: info.flags & LO_FLAGS_READ_ONLY != 0 || word(number, "ro")? != "0",
        })
    }

    /// Names the first setting that is another one `later`.
    pub(super) fn difference(&self, later: &Self) -> Option<String> {
        let number = |name: &str, was: u64, is: u64| {
            (was != is).then(|| format!("{name} was {was} and is {is}"))
        };
        let file = (self.file != later.file).then(|| "it is attached to another file".to_owned());
        file.or_else(|| number("the offset", self.offset, later.offset))
            .or_else(|| number("the size limit", self.size_limit, later.size_limit))
            .or_else(|| {
                let (was, is) = (&self.size, &later.size);
                (was != is).then(|| format!("the size was {was} sectors and is {is}"))
            })
            .or_else(|| match (self.is_read_only, later.is_read_only) {
                (false, true) => Some("it is read-only".to_owned()),
                (true, false) => Some("it is not read-only any more".to_owned()),
                _ => None,
            })
    }
}

fn ask(device: &File) -> io::Result<Information> {
    let mut information = Information::with_flags(0);
    // SAFETY: it has the size and the layout of what is written to it.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut information) } {
        0 => Ok(information),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a device writable that another process has made read-only (`blockdev --setro`).
pub(super) fn make_writable(number: u32, device: &File) -> Result<(), LoopError> {
    if word(number, "ro")? == "0" {
        return Ok(());
    }
    let is_read_only: libc::c_int = 0;
    // SAFETY: it reads one such number.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKROSET as _, &raw const is_read_only) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    match word(number, "ro")?.as_str() {
        "0" => Ok(()),
        _ => Err(LoopError::Disturbed(format!("/dev/loop{number} stays read-only"))),
    }
}

fn word(number: u32, name: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(format!("/sys/block/loop{number}/{name}"))?;
    Ok(text.trim_end().to_owned())
}

/// The file that a device is attached to: the number of its file system as the kernel
/// encodes it there, and the inode.
pub(in super::super) fn file_of(device: &File) -> io::Result<(u64, u64)> {
    let info = ask(device)?;
    Ok((info.device, info.inode))
}

/// The file that sets in the kernel whether there is a cache to be flushed.
pub(super) fn write_cache(number: u32) -> PathBuf {
    format!("/sys/block/loop{number}/queue/write_cache").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_changed_is_named() {
        let is = LoopSettings {
            file: (1, 2),
            offset: 0,
            size_limit: 0,
            size: "8192".to_owned(),
            is_read_only: false,
        };
        assert_eq!(is.difference(&is.clone()), None);
        for (later, words) in [
            (LoopSettings { file: (1, 3), ..is.clone() }, "it is attached to another file"),
            (LoopSettings { offset: 512, ..is.clone() }, "the offset was 0 and is 512"),
            (LoopSettings { size_limit: 9, ..is.clone() }, "the size limit was 0 and is 9"),
            (
                LoopSettings { size: "8".to_owned(), ..is.clone() },
                "the size was 8192 sectors and is 8",
            ),
            (LoopSettings { is_read_only: true, ..is.clone() }, "it is read-only"),
        ] {
            assert_eq!(is.difference(&later).as_deref(), Some(words));
        }
        let locked = LoopSettings { is_read_only: true, ..is.clone() };
        assert_eq!(locked.difference(&is).as_deref(), Some("it is not read-only any more"));
    }

    #[test]
    fn the_structure_has_the_size_that_the_kernel_writes() {
        assert_eq!(size_of::<Information>(), 232);
    }
}
