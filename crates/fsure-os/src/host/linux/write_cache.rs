//! A drive's own word on its volatile write cache, which the kernel's
//! `queue/write_cache` may contradict: any process with root may write there. Only
//! questions are sent, and only root may send them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Length of the response to the identify commands of NVMe and ATA, in bytes.
const NVME_IDENTIFY: usize = 4096;
const ATA_IDENTIFY: usize = 512;

/// Returns true if the drive behind a folder in sysfs reports that its volatile cache is
/// on. An error if the drive does not report it.
pub(super) fn is_on(folder: &Path, transport: &str) -> io::Result<bool> {
    match transport {
        "nvme" => nvme(&open(folder)?),
        "ata" => ata(&open(folder)?),
        other => {
            let why = format!("fsure cannot ask drives over this transport ({other})");
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

/// The node of a disk. It is looked at before it is opened, as another program can have
/// made the name in `/dev`.
fn open(folder: &Path) -> io::Result<File> {
    let number = std::fs::read_to_string(folder.join("dev"))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    let node = Path::new("/dev").join(name);
    let meta = std::fs::metadata(&node)?;
    let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if !meta.file_type().is_block_device() || format!("{major}:{minor}") != number.trim() {
        return Err(io::Error::other(format!("{} is not that block device", node.display())));
    }
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(node)
}

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct NvmeCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = libc::_IOWR::<NvmeCommand>(b'N' as u32, 0x41);

/// NVMe base specification: identify (06h) with the controller's data (CNS 1),
/// and get features (0Ah) of the volatile write cache (06h), its current value.
fn nvme(device: &File) -> io::Result<bool> {
    let mut data = [0; NVME_IDENTIFY];
    let identify = NvmeCommand {
        opcode: 0x06,
        address: (&raw mut data).expose_provenance() as u64,
        data_length: NVME_IDENTIFY as u32,
        words_10_15: [1, 0, 0, 0, 0, 0],
        ..NvmeCommand::default()
    };
    // SAFETY: the drive writes `NVME_IDENTIFY` bytes to `data`, which has as many
    // and lives until the command has ended.
    unsafe { admin(device, identify) }?;
    if !nvme_has_cache(&data)? {
        return Ok(false);
    }
    let feature =
        NvmeCommand { opcode: 0x0a, words_10_15: [6, 0, 0, 0, 0, 0], ..NvmeCommand::default() };
    // SAFETY: the answer is in the command itself, and it names no other memory.
    Ok(nvme_is_on(unsafe { admin(device, feature) }?))
}

/// Sends an admin command; the answer is its result.
///
/// # Safety
///
/// The memory that the command names must belong to this process, and be as long as the
/// command says.
unsafe fn admin(device: &File, mut command: NvmeCommand) -> io::Result<u32> {
    // SAFETY: the request reads and writes one `NvmeCommand`; the rest is the
    // caller's word.
    match unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) } {
        0 => Ok(command.result),
        status if status > 0 => Err(io::Error::other(format!("NVMe status {status:#x}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Byte 525 (VWC), bit 0: a volatile write cache is present. Bytes 0 and 1, the
/// maker's number at PCI, are never 0: then nothing was written there.
fn nvme_has_cache(identify: &[u8; NVME_IDENTIFY]) -> io::Result<bool> {
    if identify[..2] == [0, 0] {
        return Err(nonsense());
    }
    Ok(identify[525] & 1 != 0)
}

/// Feature 06h, bit 0 (WCE).
fn nvme_is_on(result: u32) -> bool {
    result & 1 != 0
}

/// The kernel's copy of the answer to ATA's identify, which it asks for anew
/// when the cache was switched.
fn ata(device: &File) -> io::Result<bool> {
    /// `linux/hdreg.h`.
    const HDIO_GET_IDENTITY: libc::Ioctl = 0x030d;
    let mut data = [0_u8; ATA_IDENTIFY];
    // SAFETY: the request writes `struct hd_driveid`, which has 512 bytes.
    match unsafe { libc::ioctl(device.as_raw_fd(), HDIO_GET_IDENTITY, &raw mut data) } {
        0 => ata_is_on(&data),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Word 85, bit 5: the volatile write cache is on. Words 85 to 87 mean something
/// where word 87 has 01b in its two highest bits (ACS, IDENTIFY DEVICE).
fn ata_is_on(identify: &[u8; ATA_IDENTIFY]) -> io::Result<bool> {
    let word = |place: usize| u16::from_le_bytes([identify[2 * place], identify[2 * place + 1]]);
    if word(87) >> 14 != 0b01 {
        return Err(nonsense());
    }
    Ok(word(85) & 1 << 5 != 0)
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its answer does not contain it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_kernel() {
        assert_eq!(size_of::<NvmeCommand>(), 72);
        assert_eq!(NVME_IOCTL_ADMIN_CMD, 0xc048_4e41);
        assert_eq!(std::mem::offset_of!(NvmeCommand, address), 24);
        assert_eq!(std::mem::offset_of!(NvmeCommand, words_10_15), 40);
        assert_eq!(std::mem::offset_of!(NvmeCommand, result), 68);
    }

    #[test]
    fn nvme_has_one_bit_for_there_and_one_for_on() {
        let mut identify = [0; NVME_IDENTIFY];
        assert!(nvme_has_cache(&identify).is_err(), "nothing was written");
        // Made up after the standard: the bits above say how far a flush reaches.
        identify[..2].copy_from_slice(&[0x4d, 0x14]);
        for (vwc, expected) in [(0x07, true), (0x01, true), (0x06, false), (0x00, false)] {
            identify[525] = vwc;
            assert_eq!(nvme_has_cache(&identify).unwrap(), expected, "{vwc}");
        }
        assert!(nvme_is_on(1) && !nvme_is_on(0) && !nvme_is_on(0xffff_fffe));
    }

    #[test]
    fn ata_has_a_bit_that_means_something_only_beside_another() {
        for (word_85, word_87, expected) in [
            // Made up after the standard, with other bits set around them.
            (0x746b, 0x61e3, Some(true)),
            (0x744b, 0x61e3, Some(false)),
            (0xffff, 0xffff, None),
            (0x0020, 0x0000, None),
            (0x0020, 0x8000, None),
        ] {
            let mut identify = [0; ATA_IDENTIFY];
            identify[170..172].copy_from_slice(&u16::to_le_bytes(word_85));
            identify[174..176].copy_from_slice(&u16::to_le_bytes(word_87));
            assert_eq!(ata_is_on(&identify).ok(), expected, "{word_85:x} {word_87:x}");
        }
    }

    /// A device that is not such a drive must not get a result, as any user.
    #[test]
    fn what_cannot_answer_is_an_error() {
        let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        for disk in disks.map(|disk| disk.path()) {
            let name = disk.file_name().unwrap().to_string_lossy().into_owned();
            if !["nvme", "sd"].iter().any(|real| name.starts_with(real)) {
                for transport in ["nvme", "ata", "usb"] {
                    assert!(is_on(&disk, transport).is_err(), "{name} as {transport}");
                }
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("null");
        std::fs::create_dir(&disk).unwrap();
        std::fs::write(disk.join("dev"), "1:3\n").unwrap();
        let error = is_on(&disk, "nvme").unwrap_err().to_string();
        assert!(error.contains("/dev/null is not that block device"), "{error}");
    }
}
