//! zram by its files in sysfs. See [`crate::zram`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::private_mounts::{Mount, Namespace};
use super::scratch_dir::release;
use crate::private_mounts::MountKind;
use crate::scratch_dir::{Resource, Scratch};

/// Reading it adds a device.
const ADD: &str = "/sys/class/zram-control/hot_add";
/// Time for which a process that checks the content of a device, as udev does, can keep it
/// open.
const LOOKED_AT: Duration = Duration::from_secs(2);
/// The fastest compression algorithm; if the kernel does not have it, its own choice is
/// used.
const ALGORITHM: &str = "lz4";

/// A zram device with ext4 on it, mounted. Dropping it removes it.
#[derive(Debug)]
pub struct Zram {
    /// Gone before the device is.
    mount: Option<Mount>,
    device: ZramDevice,
}

#[derive(Debug)]
struct ZramDevice {
    resource: Resource,
    scratch: Arc<Scratch>,
}

impl Zram {
    /// Adds a device of `bytes`, which takes no more than `limit` bytes of
    /// memory, and mounts it over a folder.
    pub fn create(
        scratch: &Arc<Scratch>,
        space: &Namespace,
        (bytes, limit): (u64, u64),
        at: &Path,
    ) -> io::Result<Self> {
        let number = add()?;
        let device = ZramDevice { resource: Resource::Zram(number), scratch: Arc::clone(scratch) };
        scratch.register(&device.resource)?;
        size(number, bytes)?;
        set(number, "mem_limit", &limit.to_string())?;
        let node = PathBuf::from(format!("/dev/zram{number}"));
        make_file_system(&node)?;
        let mount = space.mount(&MountKind::Device { node, kind: "ext4" }, at)?;
        Ok(Self { mount: Some(mount), device })
    }

    /// A path that leads to the file system from everywhere.
    pub fn path(&self) -> PathBuf {
        self.mount.as_ref().map(Mount::path).unwrap_or_default()
    }

    /// Returns the name of the compression algorithm, such as `lz4`; `None` if it cannot be
    /// read.
    pub fn algorithm(&self) -> Option<String> {
        let algorithms = self.device.read("comp_algorithm")?;
        let (_, chosen) = algorithms.split_once('[')?;
        Some(chosen.split_once(']')?.0.to_owned())
    }

    /// Bytes of memory that it takes now, the allocator's own included.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.device.read("mm_stat")?.split_whitespace().nth(2)?.parse().ok()
    }
}

impl ZramDevice {
    fn read(&self, name: &str) -> Option<String> {
        let Resource::Zram(number) = self.resource else { return None };
        std::fs::read_to_string(format!("/sys/block/zram{number}/{name}")).ok()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // Before the device, which is busy until then.
        drop(self.mount.take());
    }
}

impl Drop for ZramDevice {
    fn drop(&mut self) {
        let begun = Instant::now();
        let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        let mut released = release(&self.resource);
        while begun.elapsed() < LOOKED_AT && released.as_ref().is_err_and(is_busy) {
            std::thread::sleep(Duration::from_millis(10));
            released = release(&self.resource);
        }
        // A device in use is left to the process that removes the scratch folder.
        if released.is_ok() {
            let _ = self.scratch.released(&self.resource);
        }
    }
}

/// Adds a device; its number.
pub(super) fn add() -> io::Result<u32> {
    let number = std::fs::read_to_string(ADD).map_err(because)?;
    number.trim().parse().map_err(io::Error::other)
}

/// Gives a device that was added its size in bytes.
pub(super) fn size(number: u32, bytes: u64) -> io::Result<()> {
    // Only before the size is set.
    let _ = set(number, "comp_algorithm", ALGORITHM);
    set(number, "disksize", &bytes.to_string())
}

fn set(number: u32, name: &str, value: &str) -> io::Result<()> {
    let file = format!("/sys/block/zram{number}/{name}");
    std::fs::write(&file, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
}

fn because(error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => {
            "the kernel has no zram, or its module is not loaded: 'modprobe zram'".to_owned()
        }
        io::ErrorKind::PermissionDenied => "needs root to add a zram device".to_owned(),
        _ => format!("no zram device can be added: {error}"),
    };
    io::Error::new(error.kind(), why)
}

fn make_file_system(node: &Path) -> io::Result<()> {
    let mut make = Command::new("mkfs.ext4");
    make.args(["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]).arg(node);
    let made = make.stdin(Stdio::null()).output().map_err(|error| {
        io::Error::new(error.kind(), format!("needs mkfs.ext4 (e2fsprogs): {error}"))
    })?;
    if made.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("mkfs.ext4: {}", String::from_utf8_lossy(&made.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::did_not_run;

    #[test]
    fn a_device_comes_and_goes() {
        let _turn = crate::zram::tests::turn();
        let folder = tempfile::tempdir().unwrap();
        let scratch = Arc::new(Scratch::create(folder.path(), None).unwrap());
        let at = scratch.path().join("zram");
        std::fs::create_dir(&at).unwrap();
        let made = Namespace::new()
            .and_then(|space| Zram::create(&scratch, &space, (64 << 20, 96 << 20), &at));
        let zram = match made {
            Ok(zram) => zram,
            Err(error) => return did_not_run("a_device_comes_and_goes", &error.to_string()),
        };
        let before = zram.memory_bytes().unwrap();
        let file = zram.path().join("file");
        // Not one page is all the same byte: those would take no memory at all.
        let content: Vec<u8> = (0_u32..1 << 22).map(|at| (at / 3) as u8).collect();
        std::fs::write(&file, content).unwrap();
        std::fs::File::open(&file).unwrap().sync_all().unwrap();
        assert!(zram.memory_bytes().unwrap() > before);
        assert!(zram.algorithm().is_some());
        let Resource::Zram(number) = zram.device.resource else { unreachable!() };
        drop(zram);
        assert!(!Path::new(&format!("/sys/block/zram{number}")).exists());
        drop(scratch);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
