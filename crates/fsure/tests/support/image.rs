//! An image of a file system behind a loop device, for what only a real one of
//! one's own can show: damage from below (flip a byte of the image while it is
//! not mounted, and no stat can tell: that is `rotten`), and what a program has
//! its device read.
//!
//! Each image is a file in its own temporary folder, so any number of tests
//! may have one at the same time.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fsure_os::loop_device::LoopDevice;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount_remount, unmount};
use tempfile::TempDir;

/// Timeout for other processes to close files: a child of another test holds all
/// files of this process open between its fork and its exec.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of file system, and how to make one.
#[derive(Debug)]
pub struct Format {
    /// As `mount -t` and `mkfs.*` call it.
    pub name: &'static str,
    /// The arguments of `mkfs`.
    pub make: &'static [&'static str],
    /// Options of `mount`.
    pub options: &'static str,
    /// The smallest size it can have, in MiB.
    pub mebibytes_min: u64,
    /// Files up to this size lie among the metadata.
    pub inline_max: u64,
}

/// Large inodes for dates in nanoseconds, whatever the image's size; everything
/// initialised now, not by the kernel in the background.
pub const EXT4: Format = Format {
    name: "ext4",
    make: &["-q", "-F", "-I", "256", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    options: "defaults",
    mebibytes_min: 4,
    inline_max: 0,
};

/// ext4 that writes data to its journal first, and lets no process read directly.
pub const EXT4_JOURNALED: Format = Format { options: "data=journal", ..EXT4 };

/// ext4 as `mke2fs` makes small ones, and made them all once: inodes of 128 bytes,
/// which keep dates by the second.
pub const EXT4_SMALL_INODES: Format = Format {
    name: "ext4",
    make: &["-q", "-F", "-I", "128", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    ..EXT4
};

/// ext3, by the driver of ext4.
pub const EXT3: Format = Format {
    name: "ext3",
    make: &["-q", "-F", "-I", "128"],
    options: "defaults",
    mebibytes_min: 16,
    inline_max: 0,
};

/// FAT as sticks and cards have it.
pub const VFAT: Format =
    Format { name: "vfat", make: &[], options: "defaults", mebibytes_min: 64, inline_max: 0 };

/// exFAT as larger cards have it.
pub const EXFAT: Format =
    Format { name: "exfat", make: &[], options: "defaults", mebibytes_min: 64, inline_max: 0 };

/// XFS as it comes.
pub const XFS: Format = Format {
    name: "xfs",
    make: &["-q", "-f"],
    options: "defaults",
    mebibytes_min: 300,
    inline_max: 0,
};

/// btrfs as it comes.
pub const BTRFS: Format = Format {
    name: "btrfs",
    make: &["-q", "-f"],
    options: "defaults",
    mebibytes_min: 128,
    inline_max: 2048,
};

/// btrfs that packs what it is given.
pub const BTRFS_PACKED: Format = Format { options: "compress-force=zstd", ..BTRFS };

/// A mounted file system in a file.
#[derive(Debug)]
pub struct Image {
    format: &'static Format,
    /// `None` while it is not mounted.
    device: Option<LoopDevice>,
    folder: Option<TempDir>,
    root: PathBuf,
    image: PathBuf,
}

impl Image {
    /// Makes and mounts an empty file system of this size.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn new(format: &'static Format, mebibytes: u64) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err(format!("mounting an {} image needs root", format.name));
        }
        let folder = tempfile::tempdir().expect("make a temporary folder");
        let home = folder.path().canonicalize().expect("resolve the temporary folder");
        let (root, image) = (home.join("root"), home.join(format.name));
        let mut made = Self { format, device: None, folder: Some(folder), root, image };
        std::fs::create_dir(&made.root).expect("make a mount point");
        let image = File::create(&made.image).expect("make an image");
        image.set_len(mebibytes.max(format.mebibytes_min) << 20).expect("size the image");
        let program = format!("mkfs.{}", format.name);
        run(Command::new(program).args(format.make).arg(&made.image))?;
        made.mount()?;
        if format.name.starts_with("ext") {
            std::fs::remove_dir(made.root.join("lost+found")).expect("remove lost+found");
        }
        Ok(made)
    }

    /// Returns its mount point. Empty at first: no lost+found.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Mounts it again with other flags.
    ///
    /// # Panics
    /// If the kernel refuses for another reason than a file that is open for writing.
    pub fn remount(&self, flags: MountFlags) {
        wait_until("no process writes to it", || match mount_remount(&self.root, flags, c"") {
            Err(Errno::BUSY) => false,
            result => result.map(|()| true).expect("remount"),
        });
    }

    /// Returns the name of its device, such as `loop3`.
    pub fn device(&self) -> &str {
        let node = self.device.as_ref().expect("it is mounted").node();
        node.file_name().and_then(OsStr::to_str).expect("text")
    }

    /// Returns the path of the image itself.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Unmounts it, lets `edit` do what it likes with the image, mounts it
    /// again.
    pub fn unmounted<T>(&mut self, edit: impl FnOnce(&mut File) -> T) -> T {
        self.unmount();
        let mut image =
            OpenOptions::new().read(true).write(true).open(&self.image).expect("open the image");
        let result = edit(&mut image);
        image.sync_all().expect("flush the image");
        drop(image);
        self.mount().expect("mount the image again");
        result
    }

    /// Flips the byte `delta` bytes after the start of the only place in the
    /// image that holds `pattern`; returns that byte's offset in the image.
    ///
    /// # Panics
    /// If the pattern is nowhere or in several places.
    pub fn flip_in_image(&mut self, pattern: &[u8], delta: u64) -> u64 {
        self.unmounted(|image| {
            let places = places(image, pattern).expect("search the image");
            let [place] = places[..] else {
                panic!("the pattern is in {} places, not one: {places:?}", places.len());
            };
            super::flip_byte(image, place + delta);
            place + delta
        })
    }

    /// Bytes its device has been asked to read, counted from some time before
    /// it was mounted.
    pub fn device_reads(&self) -> u64 {
        let device = loop_device(&self.image).expect("a loop device");
        let stat = std::fs::read_to_string(device.join("stat")).expect("the device's counters");
        // The kernel's Documentation/block/stat.rst: in sectors of 512 bytes.
        let sectors = stat.split_whitespace().nth(2).and_then(|number| number.parse::<u64>().ok());
        sectors.expect("a number of sectors") * 512
    }

    fn mount(&mut self) -> Result<(), String> {
        let start = |mut command: Command| command.spawn();
        let program = Path::new(env!("CARGO_BIN_EXE_fsure"));
        let device = LoopDevice::attach(start, program, (&self.image, &self.root));
        let mut device = device.map_err(|error| error.to_string())?;
        // Mounts are refused of a device that is open for writing, by some kernels.
        device.send_flush().map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", self.format.name, "-o", self.format.options]);
        run(mount.arg(device.node()).arg(&self.root))?;
        self.device = Some(device);
        Ok(())
    }

    fn unmount(&mut self) {
        wait_until("the image is not in use", || {
            match unmount(&self.root, UnmountFlags::empty()) {
                Ok(()) => true,
                Err(Errno::BUSY) => false,
                Err(error) => panic!("unmount {}: {error}", self.root.display()),
            }
        });
        self.device = None;
        // The loop device goes a little later, and caches until then.
        wait_until("the loop device is gone", || loop_device(&self.image).is_none());
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Processes that still use it keep it until they are done; the loop device
        // goes with the last of them. EINVAL: it is not mounted.
        match unmount(&self.root, UnmountFlags::DETACH) {
            Ok(()) | Err(Errno::INVAL) => {}
            // Never delete through a mount that is still there.
            Err(_) => _ = self.folder.take().map(TempDir::keep),
        }
    }
}

/// Every offset at which `pattern` starts. Holes are passed over.
fn places(image: &File, pattern: &[u8]) -> io::Result<Vec<u64>> {
    use std::os::unix::fs::FileExt as _;
    let mut places = Vec::new();
    let mut end = 0;
    loop {
        let start = match rustix::fs::seek(image, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(places),
            Err(error) => return Err(error.into()),
        };
        end = rustix::fs::seek(image, SeekFrom::Hole(start))?;
        let length = usize::try_from(end - start).expect("fits in memory");
        let mut data = vec![0; length];
        image.read_exact_at(&mut data, start)?;
        let mut at = 0;
        while let Some(next) = data[at..].iter().position(|byte| *byte == pattern[0]) {
            at += next;
            if data[at..].starts_with(pattern) {
                places.push(start + at as u64);
            }
            at += 1;
        }
    }
}

/// The folder of the loop device in `/sys`, while there is one.
fn loop_device(image: &Path) -> Option<PathBuf> {
    let devices = std::fs::read_dir("/sys/block").expect("list /sys/block");
    devices.filter_map(Result::ok).map(|device| device.path()).find(|device| {
        std::fs::read_to_string(device.join("loop/backing_file"))
            .is_ok_and(|name| Path::new(name.trim_end()) == image)
    })
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Runs a program; an error says what it said.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
