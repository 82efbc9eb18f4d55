//! A device's counters, from sysfs (the kernel's `Documentation/block/stat.rst`).

use std::io;
use std::path::{Path, PathBuf};

use super::device::{block_devices, block_folder_of, whole};
use crate::block_stats::Counters;
use crate::host::root_dir::Root;

/// The files to read.
#[derive(Debug)]
pub(crate) struct DeviceCounters {
    /// The devices that the file system is on: all their bytes and requests are of the file
    /// system.
    devices: Vec<PathBuf>,
    /// The devices that count the flushes sent to them; empty if none does.
    flushed: Vec<PathBuf>,
    takes_forced: bool,
}

/// Volumes on RAID on partitions: deeper than any user builds.
const DEPTH_MAX: u32 = 8;

impl DeviceCounters {
    pub(crate) fn of(folder: &Path) -> io::Result<Option<Self>> {
        Self::of_folders(block_devices(&Root::open(folder)?, b""))
    }

    pub(crate) fn of_device(path: &Path) -> io::Result<Option<Self>> {
        Self::of_folders(vec![block_folder_of(path)?])
    }

    /// Returns the counters of devices, by their folders in sysfs; `None` if one counts nothing.
    fn of_folders(folders: Vec<PathBuf>) -> io::Result<Option<Self>> {
        let folders = folders.into_iter().map(std::fs::canonicalize);
        let folders: Vec<_> = folders.collect::<io::Result<_>>()?;
        let (mut flushed, mut takes_forced) = (Some(Vec::new()), false);
        for folder in &folders {
            let asked =
                |file: &str| std::fs::read_to_string(whole(folder).join("queue").join(file));
            // Where counting is turned off, nothing moves, whatever happens.
            if asked("iostats").is_ok_and(|word| word.trim() == "0") {
                return Ok(None);
            }
            takes_forced |= asked("fua").is_ok_and(|word| word.trim() == "1");
            let own = flush_counters(folder, DEPTH_MAX);
            flushed = flushed.zip(own).map(|(all, own)| [all, own].concat());
        }
        let devices: Vec<_> = folders.iter().map(|folder| folder.join("stat")).collect();
        let mut flushed = flushed.unwrap_or_default();
        flushed.sort();
        flushed.dedup();
        Ok((!devices.is_empty()).then_some(Self { devices, flushed, takes_forced }))
    }

    pub(crate) fn takes_forced(&self) -> bool {
        self.takes_forced
    }

    pub(crate) fn read(&self) -> io::Result<Counters> {
        let mut all = Counters { flushes: Some(0), ..Counters::default() };
        for device in &self.devices {
            all = all.plus(&Counters { flushes: Some(0), ..read(device)? });
        }
        let mut flushes = (!self.flushed.is_empty()).then_some(0);
        for device in &self.flushed {
            flushes = flushes.zip(read(device)?.flushes).map(|(all, own)| all + own);
        }
        Ok(Counters { flushes, ..all })
    }
}

/// Returns the `stat` files that count the flushes of a device. The device that queues
/// requests (`mq`) counts them, for the whole disk. A device that only passes requests
/// on, such as md and dm, does not count them, but the disks below it do. `None` if no
/// device does: memory.
fn flush_counters(folder: &Path, depth: u32) -> Option<Vec<PathBuf>> {
    let folder = whole(folder);
    if folder.join("mq").exists() {
        return Some(vec![folder.join("stat")]);
    }
    let slaves = std::fs::read_dir(folder.join("slaves")).ok()?;
    let below = slaves.map(|slave| {
        let folder = std::fs::canonicalize(slave.ok()?.path()).ok()?;
        flush_counters(&folder, depth.checked_sub(1)?)
    });
    let below: Option<Vec<_>> = below.collect();
    below.map(|below| below.concat()).filter(|below| !below.is_empty())
}

fn read(stat: &Path) -> io::Result<Counters> {
    let text = std::fs::read_to_string(stat)?;
    parse(&text).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {text:?}", stat.display()))
    })
}

/// One line of numbers. Before Linux 5.5 there are no flushes in it.
fn parse(stat: &str) -> Option<Counters> {
    /// Of these counters, whatever the device's own sector is.
    const SECTOR: u64 = 512;
    let fields = stat.split_whitespace().map(|field| field.parse::<u64>().ok());
    let fields: Vec<_> = fields.collect::<Option<_>>()?;
    Some(Counters {
        reads: *fields.first()?,
        read_bytes: fields.get(2)? * SECTOR,
        writes: *fields.get(4)?,
        written_bytes: fields.get(6)? * SECTOR,
        flushes: fields.get(15).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_kernel() {
        let now = "10 1 16 3 4 2 24 7 0 9 10 11 12 13 14 15 16\n";
        let counters = Counters {
            read_bytes: 8192,
            written_bytes: 12288,
            reads: 10,
            writes: 4,
            flushes: Some(15),
        };
        assert_eq!(parse(now), Some(counters));
        let of_old = "10 1 16 3 4 2 24 7 0 9 10 11 12 13 14";
        assert_eq!(parse(of_old), Some(Counters { flushes: None, ..counters }));
        assert_eq!(parse("10 1 16"), None);
        assert_eq!(parse("10 1 x 3 4 2 24"), None);
    }

    #[test]
    fn flushes_are_counted_on_the_whole_disk_below() {
        let sysfs = tempfile::tempdir().unwrap();
        let at = |name: &str| sysfs.path().canonicalize().unwrap().join(name);
        for folder in ["disk/mq", "disk/disk1", "md/slaves", "memory/slaves"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("disk/disk1/partition"), "1").unwrap();
        std::os::unix::fs::symlink(at("disk/disk1"), at("md/slaves/disk1")).unwrap();
        for folder in ["disk", "disk/disk1", "md"] {
            assert_eq!(flush_counters(&at(folder), 8), Some(vec![at("disk/stat")]), "{folder}");
        }
        assert_eq!(flush_counters(&at("memory"), 8), None);
        std::os::unix::fs::symlink(at("memory"), at("md/slaves/memory")).unwrap();
        assert_eq!(flush_counters(&at("md"), 8), None, "some of them are not counted");
    }

    #[test]
    fn memory_has_no_counters() {
        assert!(DeviceCounters::of(Path::new("/proc")).unwrap().is_none());
    }
}
