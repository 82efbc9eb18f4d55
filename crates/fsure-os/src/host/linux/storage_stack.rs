//! The storage layers below a folder, from the mount table and sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};

use super::device::{block_devices, block_folder_of, whole};
use super::mountinfo::{self, MountInfo};
use super::write_cache;
use crate::device::StorageDevice;
use crate::host::root_dir::Root;
use crate::storage_stack::{HELD, JOURNAL, Medium, NO_JOURNAL, OPTIONS, Stack, StorageLayer};

/// File systems on images on volumes on arrays on partitions: deeper than
/// any user builds, and an end if a loop device lies on itself.
const DEPTH_MAX: u32 = 12;

pub(crate) fn of(folder: &Path) -> io::Result<Stack> {
    below(folder, DEPTH_MAX)
}

/// The kernel has a folder for each device by its number.
pub(crate) fn of_device(path: &Path) -> io::Result<Stack> {
    Ok(below_device(&block_folder_of(path)?, DEPTH_MAX))
}

/// See [`crate::storage_stack::life`]: the mount's number that is never used again (Linux
/// 6.8) in a life of the system.
pub(crate) fn life(folder: &Path) -> Option<String> {
    // STATX_MNT_ID_UNIQUE, which rustix has no name for.
    let unique = StatxFlags::from_bits_retain(0x4000);
    let root = Root::open(folder).ok()?;
    let answer = rustix::fs::statx(root.descriptor(), c"", AtFlags::EMPTY_PATH, unique).ok()?;
    let boot = word(Path::new("/proc/sys/kernel/random/boot_id"))?;
    let is_reported = answer.stx_mask & unique.bits() != 0;
    is_reported.then(|| format!("{boot} {}", answer.stx_mnt_id))
}

fn below(folder: &Path, depth: u32) -> io::Result<Stack> {
    let root = Root::open(folder)?;
    let mount = mountinfo::at(root.descriptor())?;
    let devices = block_devices(&root, b"");
    let upper = mount.option("upperdir").filter(|_| mount.kind == "overlay" && depth > 0);
    let lower = if ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"].contains(&&*mount.kind) {
        Stack::on(Medium::Memory, Vec::new())
    } else if let Some(upper) = upper {
        // Of another namespace's overlay, the name means nothing here.
        let unknown = |_| Stack::on(Medium::Unknown, Vec::new());
        below(Path::new(upper), depth - 1).unwrap_or_else(unknown)
    } else if StorageDevice::of(&root, b"").is_remote() {
        Stack::on(Medium::Remote, Vec::new())
    } else {
        Stack::beside(devices.iter().map(|device| below_device(device, depth)).collect())
    };
    let mut layers = vec![file_system(&mount, &devices)];
    layers.extend(lower.layers);
    Ok(Stack { layers, ..lower })
}

fn file_system(mount: &MountInfo, devices: &[PathBuf]) -> StorageLayer {
    let mut facts = vec![
        ("mounted from", mount.source.clone()),
        ("at", mount.point.clone()),
        (OPTIONS, mount.all_options()),
    ];
    if mount.root != "/" {
        facts.push(("folder of it", mount.root.clone()));
    }
    if let Some(option) = mount.no_barrier() {
        facts.push((HELD, format!("kept from the disk by {option}")));
    }
    if devices.iter().any(|device| is_without_journal(device)) {
        facts.push((JOURNAL, NO_JOURNAL.to_owned()));
    }
    StorageLayer { kind: "file system", name: mount.kind.clone(), facts }
}

/// Returns true for an ext4 without a journal: its flushes are cheaper than those of others, and a
/// power cut can leave names that only `fsck` puts right.
fn is_without_journal(device: &Path) -> bool {
    let Ok(device) = fs::canonicalize(device) else { return false };
    let task = Path::new("/sys/fs/ext4").join(name(&device)).join("journal_task");
    word(&task).as_deref() == Some("<none>")
}

/// A block device and what is below it, from its folder in sysfs.
fn below_device(folder: &Path, depth: u32) -> Stack {
    let Some(depth) = depth.checked_sub(1) else { return Stack::on(Medium::Unknown, Vec::new()) };
    let Ok(folder) = fs::canonicalize(folder) else {
        return Stack::on(Medium::Unknown, Vec::new());
    };
    let disk = whole(&folder);
    let mut layers = Vec::new();
    if disk != folder {
        layers.push(StorageLayer { kind: "partition", name: name(&folder), facts: size(&folder) });
    }
    let is_write_back = match word(&disk.join("queue/write_cache")).as_deref() {
        Some("write back") => Some(true),
        Some("write through") => Some(false),
        _ => None,
    };
    let (layer, lower) = if disk.join("loop/backing_file").exists() {
        of_loop(disk, depth)
    } else {
        match slaves(disk) {
            slaves if slaves.is_empty() => of_disk(disk),
            slaves => {
                let lower = slaves.iter().map(|slave| below_device(slave, depth)).collect();
                (of_array(disk), Stack::beside(lower))
            }
        }
    };
    layers.push(layer);
    layers.extend(lower.layers);
    // A layer that passes on no flush hides the layers below it.
    let is_write_back = match is_write_back {
        Some(true) => lower.is_write_back.or(is_write_back),
        own => own,
    };
    Stack { layers, is_write_back, ..lower }
}

fn slaves(folder: &Path) -> Vec<PathBuf> {
    let slaves = fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
    let mut slaves: Vec<_> = slaves.map(|slave| slave.path()).collect();
    slaves.sort();
    slaves
}

/// A loop device, and what its file lies on: memory, a network, or storage that
/// has to be judged by itself.
fn of_loop(folder: &Path, depth: u32) -> (StorageLayer, Stack) {
    let file = word(&folder.join("loop/backing_file")).unwrap_or_default();
    let is_direct = word(&folder.join("loop/dio")).as_deref() == Some("1");
    let mut facts =
        vec![("file", file.clone()), ("direct", if is_direct { "yes" } else { "no" }.to_owned())];
    facts.extend(size(folder));
    facts.extend(queue(folder));
    let setting = folder.join("queue/write_cache");
    // Its driver says `write back` of each that can be written to: that it says another
    // thing is the work of a program, and outlives the file it was done for.
    if word(&setting).as_deref() == Some("write through")
        && word(&folder.join("ro")).as_deref() != Some("1")
    {
        let name = name(folder);
        let held = format!(
            "kept from the file of {name} by 'write through' in /sys/block/{name}/queue/write_cache"
        );
        facts.push((HELD, held));
    }
    let layer = StorageLayer { kind: "loop", name: name(folder), facts };
    let home = Path::new(&file).parent().map(|home| below(home, depth));
    let mut lower = match home {
        Some(Ok(lower)) => lower,
        _ => Stack::on(Medium::Unknown, Vec::new()),
    };
    if ![Medium::Memory, Medium::Remote].contains(&lower.medium) {
        lower.medium = Medium::Loop;
    }
    (layer, Stack { is_write_back: None, drive_cache_on: None, ..lower })
}

/// Several devices as one, or one as another.
fn of_array(folder: &Path) -> StorageLayer {
    let mut facts = Vec::new();
    let mut ask = |name, file: &str| facts.extend(word(&folder.join(file)).map(|is| (name, is)));
    ask("name", "dm/name");
    ask("level", "md/level");
    ask("state", "md/array_state");
    if let Some(id) = word(&folder.join("dm/uuid")) {
        let kind = match id.split('-').next() {
            Some("CRYPT") => "encryption",
            Some("LVM") => "logical volume",
            _ => "device mapper",
        };
        facts.push(("what", kind.to_owned()));
    }
    facts.extend(size(folder));
    facts.extend(queue(folder));
    let kind = if folder.join("md").exists() { "md" } else { "dm" };
    StorageLayer { kind, name: name(folder), facts }
}

fn of_disk(folder: &Path) -> (StorageLayer, Stack) {
    let (disk, transport) = (name(folder), transport(folder));
    let mut facts = vec![("transport", transport.to_owned())];
    // virtio has numbers there.
    let text = |file: &str| word(&folder.join(file)).filter(|word| !word.starts_with("0x"));
    let model = text("device/model").or_else(|| text("device/name"));
    let vendor = text("device/vendor");
    let pages = Pages::of(&folder.join("device"));
    let firmware = text("device/firmware_rev").or(pages.firmware).or_else(|| text("device/rev"));
    let serial = text("serial").or_else(|| text("device/serial")).or(pages.serial);
    let maker = [vendor.as_deref(), model.as_deref()].map(Option::unwrap_or_default).join(" ");
    let named = [("vendor", vendor), ("model", model), ("serial", serial), ("firmware", firmware)];
    facts.extend(named.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.extend(size(folder));
    facts.extend(queue(folder));
    let has_heads = word(&folder.join("queue/rotational")).as_deref() == Some("1");
    let medium = medium(transport, &maker, has_heads);
    let kind = match medium {
        Medium::Memory => "memory",
        Medium::Remote => "network",
        _ => "disk",
    };
    let mut stack = Stack::on(medium, Vec::new());
    if medium == Medium::Virtual {
        facts.push(("virtual", "what is below it belongs to the host".to_owned()));
    } else if kind == "disk" {
        let is_on = write_cache::is_on(folder, transport);
        facts.push(("its own word on its cache", own_word(&is_on)));
        stack.drive_cache_on = is_on.ok();
    }
    (StorageLayer { kind, name: disk, facts }, stack)
}

/// Data that a SCSI or ATA drive has reported of itself, from pages that the kernel keeps.
#[derive(Debug, PartialEq, Eq)]
struct Pages {
    serial: Option<String>,
    firmware: Option<String>,
}

impl Pages {
    fn of(device: &Path) -> Self {
        let page = |name: &str| fs::read(device.join(name)).unwrap_or_default();
        Self::read(&page("vpd_pg80"), &page("vpd_pg89"))
    }

    /// Page 80h (SPC-4, 7.8.15) holds the serial number behind 4 bytes; page 89h
    /// (SAT-3, 12.4.2) what an ATA drive says of itself behind 60, in words of
    /// which each has its two letters swapped, and the firmware in 23 to 26. Of
    /// it the standard inquiry has half: `rev` is 4 letters long.
    fn read(serial: &[u8], ata: &[u8]) -> Self {
        let swapped = |bytes: &[u8]| -> Vec<u8> {
            bytes.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect()
        };
        let firmware = ata.get(60 + 2 * 23..60 + 2 * 27).map(swapped);
        Self {
            serial: serial.get(4..).and_then(trimmed),
            firmware: firmware.and_then(|firmware| trimmed(&firmware)),
        }
    }
}

/// Returns a drive's own report on its volatile cache, as text.
fn own_word(is_on: &io::Result<bool>) -> String {
    match is_on {
        Ok(true) => "on".to_owned(),
        Ok(false) => "off".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "not known: only root can ask the drive".to_owned()
        }
        Err(error) => format!("not known: {error}"),
    }
}

/// Returns the transport of a disk, from the path of its folder in sysfs.
fn transport(folder: &Path) -> &'static str {
    let disk = name(folder);
    let path = folder.to_string_lossy();
    let has = |part: &str| path.split('/').any(|name| name.starts_with(part));
    let begins = |with: &[&str]| with.iter().any(|start| disk.starts_with(start));
    match () {
        () if begins(&["zram", "ram", "pmem"]) => "memory",
        () if begins(&["nbd", "rbd", "drbd"]) => "network",
        () if begins(&["nvme"]) => "nvme",
        () if begins(&["mmcblk"]) => "mmc",
        () if begins(&["xvd"]) => "xen",
        () if has("virtio") => "virtio",
        () if has("usb") => "usb",
        () if has("ata") => "ata",
        () if has("host") => "scsi",
        () => "not known",
    }
}

/// The kernel's word for heads is worth something for ATA only: what does not
/// say of itself is taken to have some, and that is so of USB sticks, of RAID
/// controllers and of what hypervisors make.
fn medium(transport: &str, maker: &str, has_heads: bool) -> Medium {
    // As hypervisors and clouds name what they make.
    const MADE_UP: [&str; 8] =
        ["QEMU", "VBOX", "VMware", "Virtual", "Amazon Elastic", "nvme_card", "Google", "Xen"];
    match transport {
        "memory" => Medium::Memory,
        "network" => Medium::Remote,
        "virtio" | "xen" => Medium::Virtual,
        _ if MADE_UP.iter().any(|name| maker.contains(name)) => Medium::Virtual,
        "nvme" => Medium::Nvme,
        "ata" if has_heads => Medium::Heads,
        "ata" | "scsi" | "usb" | "mmc" if !has_heads => Medium::Solid,
        _ => Medium::Unknown,
    }
}

/// Returns the properties that the kernel assumes of a device's queue, as label and value.
fn queue(folder: &Path) -> Vec<(&'static str, String)> {
    let word = |file: &str| word(&folder.join("queue").join(file));
    let yes_no = |word: String| match &*word {
        "0" => "no".to_owned(),
        "1" => "yes".to_owned(),
        _ => word,
    };
    let not_known = || "not known".to_owned();
    let scheduler = word("scheduler").and_then(|all| chosen(&all));
    let mut facts = vec![
        ("write cache", word("write_cache").unwrap_or_else(not_known)),
        ("FUA", word("fua").map_or_else(not_known, yes_no)),
        ("rotational", word("rotational").map_or_else(not_known, yes_no)),
    ];
    facts.extend(scheduler.map(|scheduler| ("scheduler", scheduler)));
    facts
}

/// The choices stand in one line, the one that is made in brackets.
fn chosen(all: &str) -> Option<String> {
    let (_, chosen) = all.split_once('[').unwrap_or(("", all));
    let chosen = chosen.split(']').next()?.trim();
    (!chosen.is_empty()).then(|| chosen.to_owned())
}

/// Always in sectors of 512 bytes.
fn size(folder: &Path) -> Vec<(&'static str, String)> {
    let sectors = word(&folder.join("size")).and_then(|word| word.parse::<u64>().ok());
    let gib = |sectors: u64| format!("{:.1} GiB", sectors as f64 / f64::from(1 << 21));
    sectors.map(|sectors| ("size", gib(sectors))).into_iter().collect()
}

/// sysfs has `!` for the `/` in a name.
fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

/// Reads a file of sysfs as trimmed text; `None` if it is empty or cannot be read.
fn word(file: &Path) -> Option<String> {
    trimmed(&fs::read(file).ok()?)
}

/// Text without what fills it up; `None` where nothing else is there.
fn trimmed(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(['\n', ' ', '\0']);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_disks() {
        for (transport, maker, has_heads, expected) in [
            ("nvme", " Samsung SSD 990 PRO 2TB", false, Medium::Nvme),
            ("nvme", " Amazon Elastic Block Store", false, Medium::Virtual),
            ("virtio", " ", true, Medium::Virtual),
            ("ata", "ATA QEMU HARDDISK", true, Medium::Virtual),
            ("ata", "ATA ST4000DM004-2CV1", true, Medium::Heads),
            ("ata", "ATA Crucial_CT500MX5", false, Medium::Solid),
            ("usb", "SanDisk Ultra", true, Medium::Unknown),
            ("scsi", "DELL PERC H730", true, Medium::Unknown),
            ("mmc", " SD32G", false, Medium::Solid),
            ("memory", " ", false, Medium::Memory),
            ("not known", " ", false, Medium::Unknown),
        ] {
            assert_eq!(medium(transport, maker, has_heads), expected, "{transport} {maker}");
        }
    }

    #[test]
    fn ways_to_disks() {
        for (path, expected) in [
            ("/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda", "virtio"),
            (
                "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                "ata",
            ),
            (
                "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0/block/sdb",
                "usb",
            ),
            ("/sys/devices/pci0000:00/0000:02:00.0/host0/target0:2:0/0:2:0:0/block/sda", "scsi"),
            ("/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", "nvme"),
            ("/sys/devices/virtual/block/zram0", "memory"),
            ("/sys/devices/virtual/block/nbd0", "network"),
        ] {
            assert_eq!(transport(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_missing_answer_of_a_drive_is_not_known() {
        let errno = |errno| Err(io::Error::from_raw_os_error(errno));
        for (is_on, expected) in [
            (Ok(true), "on"),
            (Ok(false), "off"),
            (errno(libc::EACCES), "not known: only root can ask the drive"),
            (errno(libc::ENOTTY), "not known: Inappropriate ioctl for device (os error 25)"),
        ] {
            assert_eq!(own_word(&is_on), expected);
        }
    }

    #[test]
    fn serial_number_and_firmware_are_read_from_pages() {
        let mut ata = vec![0; 60 + 512];
        ata[60 + 46..60 + 54].copy_from_slice(b"3MCR20 1");
        let pages = Pages::read(b"\0\x80\0\x08 S3Z9NB0", &ata);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(pages, Pages { serial: text("S3Z9NB0"), firmware: text("M3RC021 ".trim()) });
        assert_eq!(Pages::read(b"", b""), Pages { serial: None, firmware: None });
        assert_eq!(Pages::read(b"\0\x80\0\x04    ", &ata[..70]), Pages::read(b"", b""));
    }

    #[test]
    fn a_scheduler_is_what_stands_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq").as_deref(), Some("mq-deadline"));
        assert_eq!(chosen("none").as_deref(), Some("none"));
        assert_eq!(chosen(""), None);
    }

    /// An encrypted array of two disks, of which one says nothing of its cache,
    /// as sysfs shows it.
    #[test]
    fn what_lies_on_what() {
        let sysfs = tempfile::tempdir().unwrap();
        let at = |name: &str| sysfs.path().canonicalize().unwrap().join(name);
        let write = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let link = |from: &str, to: &str| {
            fs::create_dir_all(at(from).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(at(to), at(from)).unwrap();
        };
        write("dm-0/dm/uuid", "CRYPT-LUKS2-1\n");
        write("dm-0/dm/name", "a home \n");
        write("dm-0/queue/write_cache", "write back\n");
        link("dm-0/slaves/md0", "md0");
        write("md0/md/level", "raid1\n");
        write("md0/queue/write_cache", "write back\n");
        for disk in ["nvme0n1", "nvme1n1"] {
            link(&format!("md0/slaves/{disk}p1"), &format!("{disk}/{disk}p1"));
            write(&format!("{disk}/{disk}p1/partition"), "1\n");
            write(&format!("{disk}/device/model"), "SSD \u{e9}\n");
        }
        write("nvme0n1/queue/write_cache", "write through\n");
        write("nvme0n1/size", "2097152\n");
        let stack = below_device(&at("dm-0"), 8);
        let layers = stack.layers.iter().map(|layer| format!("{} {}", layer.kind, layer.name));
        let expected = [
            "dm dm-0",
            "md md0",
            "partition nvme0n1p1",
            "disk nvme0n1",
            "partition nvme1n1p1",
            "disk nvme1n1",
        ];
        assert_eq!(layers.collect::<Vec<_>>(), expected);
        assert_eq!(
            stack.layers[0].facts[..2],
            [("name", "a home".to_owned()), ("what", "encryption".to_owned())]
        );
        assert!(stack.layers[3].facts.contains(&("size", "1.0 GiB".to_owned())));
        assert!(stack.layers[5].facts.contains(&("write cache", "not known".to_owned())));
        assert_eq!((stack.medium, stack.is_write_back), (Medium::Nvme, Some(true)));
        write("nvme1n1/queue/write_cache", "write through\n");
        assert_eq!(below_device(&at("dm-0"), 8).is_write_back, Some(false));
        write("dm-0/queue/write_cache", "write through\n");
        write("nvme1n1/queue/write_cache", "write back\n");
        assert_eq!(below_device(&at("md0"), 8).is_write_back, Some(true));
        assert_eq!(below_device(&at("dm-0"), 8).is_write_back, Some(false), "none is passed on");
        assert_eq!(below_device(&at("dm-0"), 1).medium, Medium::Unknown, "an end");
    }

    #[test]
    fn memory_is_memory() {
        assert_eq!(of(Path::new("/dev/shm")).unwrap().medium, Medium::Memory);
    }
}
