//! Loop devices by their ioctls and their files in sysfs. See [`crate::loop_device`].

mod journal;
mod settings;

use std::ffi::c_ulong;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use super::mountinfo::{self, MountInfo};
use crate::buffer::Buffer;
use crate::loop_device::{LoopError, Reliance};
pub(super) use settings::file_of;
use settings::{Information, LoopSettings, write_cache};

const CONTROL: &str = "/dev/loop-control";
/// linux/loop.h.
const LOOP_CTL_GET_FREE: c_ulong = 0x4c82;
const LOOP_CONFIGURE: c_ulong = 0x4c0a;
/// The device is detached when its last user has closed it.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// Processes that look for a free device get the same one, and all but the first must
/// look again: 4 s in all.
const CLAIMS_MAX: u32 = 400;
const CLAIM_PAUSE: Duration = Duration::from_millis(10);
/// Devices that are tried, where settings cannot be put right.
const DEVICES_MAX: usize = 8;
/// Of each device, another process may change a setting back at the same moment.
const SETTING_ATTEMPTS: u32 = 5;
/// One block of any device, which the proof writes.
const BLOCK: usize = 4096;
const PROOF: &str = ".fsure-proof";
/// The remedy where no loop device is available.
const NO_LOOP: &str = "no loop device is available: run 'modprobe loop', or give this container \
                       /dev/loop-control; without '--fs' the drive is a folder, which needs none";

/// A device that is attached to a file, and what it has to stay.
pub(crate) struct Attached {
    number: u32,
    node: PathBuf,
    /// The folder that it is mounted at.
    place: PathBuf,
    /// Keeps it attached. Writable until the proof: kernels that let no process write
    /// to a mounted device refuse to mount one that is open for writing.
    open: File,
    settings: LoopSettings,
    watch: LoopWatch,
    /// The option of the mount that keeps flushes from the device.
    no_barrier: Option<&'static str>,
    /// The first disturbance by another process of flushes, and of the content.
    disturbs_flushes: Option<String>,
    disturbs_content: Option<String>,
}

impl Attached {
    /// Attaches a file that is to be mounted at `place`.
    pub(crate) fn new(file: &Path, place: &Path) -> Result<Self, LoopError> {
        let control = File::open(CONTROL)
            .map_err(|error| io::Error::new(error.kind(), format!("{error}: {NO_LOOP}")))?;
        let file = OpenOptions::new().read(true).write(true).open(file)?;
        // One that cannot be used is held until another is: else it would be the free one.
        let mut unusable = Vec::new();
        loop {
            let (number, node, open) = claim(&control, &file)?;
            // Both outlive the file that was attached when they were changed.
            let watch =
                settings::make_writable(number, &open).and_then(|()| LoopWatch::new(number));
            let watch = match watch {
                Ok(watch) => watch,
                Err(_) if unusable.len() < DEVICES_MAX => {
                    unusable.push(open);
                    continue;
                }
                Err(error) => return Err(error),
            };
            return Ok(Self {
                settings: LoopSettings::of(number, &open)?,
                number,
                node,
                place: place.to_owned(),
                open,
                watch,
                no_barrier: None,
                disturbs_flushes: None,
                disturbs_content: None,
            });
        }
    }

    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    /// Writes the first block as it is, past the page cache, and flushes.
    pub(crate) fn send_flush(&mut self) -> Result<(), LoopError> {
        let mut block = Buffer::new(BLOCK)?;
        self.open.read_exact_at(&mut block[..BLOCK], 0)?;
        self.open.write_all_at(&block[..BLOCK], 0)?;
        self.open.sync_data()?;
        self.open = File::open(&self.node)?;
        self.watch.node = Some(self.watch.add(&self.node)?);
        Ok(())
    }

    pub(crate) fn note_mount(&mut self) -> Result<(), LoopError> {
        self.no_barrier = self.mounts()?.iter().find_map(MountInfo::no_barrier);
        Ok(())
    }

    pub(crate) fn sync_file(&mut self) -> Result<(), LoopError> {
        let path = self.place.join(PROOF);
        let file = File::create_new(&path)?;
        let synced = file.write_all_at(PROOF.as_bytes(), 0).and_then(|()| file.sync_all());
        std::fs::remove_file(&path)?;
        File::open(&self.place)?.sync_all()?;
        Ok(synced?)
    }

    pub(crate) fn check(&mut self, reliance: Reliance) -> Result<u64, LoopError> {
        // Before what is compared: what is changed in between is heard of next time.
        let flushes = match self.no_barrier {
            None => journal::flushes_at_least(self.number),
            Some(_) => 0,
        };
        self.look()?;
        let content = self.disturbs_content.as_ref();
        let disturbed = match reliance {
            Reliance::Flushes => self.disturbs_flushes.as_ref().or(content),
            Reliance::Content => content,
        };
        disturbed.map_or(Ok(flushes), |words| Err(LoopError::Disturbed(words.clone())))
    }

    /// Notes what another process has done.
    fn look(&mut self) -> Result<(), LoopError> {
        let writes = self.watch.take()?;
        let own = format!("/sys/block/loop{}", self.number);
        let flushes = &mut self.disturbs_flushes;
        if writes.write_cache {
            flushes.get_or_insert(format!("another process wrote to {own}/queue/write_cache"));
        }
        if let Err(error) = is_write_back(self.number) {
            flushes.get_or_insert(error.to_string());
        }
        let content = &mut self.disturbs_content;
        if writes.node {
            content.get_or_insert(format!("another process wrote to {}", self.node.display()));
        }
        if let Some(words) = self.settings.difference(&LoopSettings::of(self.number, &self.open)?) {
            content.get_or_insert(format!("another process changed {own}: {words}"));
        }
        let no_barrier = self.mounts()?.iter().find_map(MountInfo::no_barrier);
        if let Some(option) = no_barrier.filter(|_| self.no_barrier.is_none()) {
            let node = self.node.display();
            let words = format!("another process mounted {node} again with {option}");
            self.disturbs_flushes.get_or_insert(words);
        }
        Ok(())
    }

    /// Mounts of the device that this process sees.
    fn mounts(&self) -> io::Result<Vec<MountInfo>> {
        let node = self.node.to_string_lossy();
        Ok(mountinfo::all()?.into_iter().filter(|mount| mount.source == node).collect())
    }
}

/// Attaches a file to a device that is free.
fn claim(control: &File, file: &File) -> Result<(u32, PathBuf, File), LoopError> {
    let mut claims = 0;
    loop {
        // SAFETY: it takes no argument.
        let free = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        let Ok(number) = u32::try_from(free) else {
            let error = io::Error::last_os_error();
            return Err(io::Error::new(error.kind(), format!("{error}: {NO_LOOP}")).into());
        };
        let node = PathBuf::from(format!("/dev/loop{number}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        let error = match options.open(&node) {
            Ok(open) => match configure(&open, file) {
                Ok(()) => return Ok((number, node, open)),
                Err(error) => error,
            },
            Err(error) => error,
        };
        claims += 1;
        // EBUSY: another process was faster. ENXIO, ENOENT: it has removed the device, or
        // the device is so new that it has no node yet.
        let is_race = [libc::EBUSY, libc::ENXIO, libc::ENOENT].map(Some);
        if !is_race.contains(&error.raw_os_error()) || claims == CLAIMS_MAX {
            let words = format!("cannot attach {}: {error}: {NO_LOOP}", node.display());
            return Err(io::Error::new(error.kind(), words).into());
        }
        std::thread::sleep(CLAIM_PAUSE);
    }
}

/// `struct loop_config` of linux/loop.h, with its `struct loop_info64` inside.
#[repr(C)]
struct Configuration {
    fd: u32,
    block_size: u32,
    info: Information,
    reserved: [u64; 8],
}

fn configure(device: &File, file: &File) -> io::Result<()> {
    let configuration = Configuration {
        fd: file.as_raw_fd().unsigned_abs(),
        block_size: 0,
        info: Information::with_flags(LO_FLAGS_AUTOCLEAR),
        reserved: [0; 8],
    };
    // SAFETY: it has the size and the layout of what is read.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const configuration) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Hears of every write to the files of a device. The kernel tells of it when the write
/// is done, also where the same value is written, or one that is changed back later.
struct LoopWatch {
    events: OwnedFd,
    write_cache: i32,
    /// `None` until the device has been written to for the proof.
    node: Option<i32>,
}

/// Writes that were heard of.
#[derive(Default)]
struct WatchedWrites {
    write_cache: bool,
    node: bool,
}

impl LoopWatch {
    /// Puts the setting of a device right and watches it from then on.
    fn new(number: u32) -> Result<Self, LoopError> {
        let file = write_cache(number);
        let mut attempts = 0;
        loop {
            // Nothing is written where it is right: another process may watch it, too.
            let set = is_write_back(number).or_else(|_| Ok(std::fs::write(&file, "write back\n")?));
            let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(no_watch)?;
            let write_cache = add_watch(&events, &file, WatchFlags::MODIFY).map_err(no_watch)?;
            attempts += 1;
            match (is_write_back(number), set) {
                (Ok(()), _) => return Ok(Self { events, write_cache, node: None }),
                (Err(LoopError::Disturbed(words)), Err::<(), _>(LoopError::Failed(error))) => {
                    // It would be so the next time, too.
                    let words = format!("{words}, and cannot be set: {error}");
                    return Err(io::Error::new(error.kind(), words).into());
                }
                (Err(error), _) if attempts == SETTING_ATTEMPTS => return Err(error),
                (Err(_), _) => {}
            }
        }
    }

    fn add(&self, path: &Path) -> io::Result<i32> {
        Ok(add_watch(&self.events, path, WatchFlags::MODIFY)?)
    }

    fn take(&self) -> io::Result<WatchedWrites> {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut writes = WatchedWrites::default();
        loop {
            match reader.next() {
                Ok(event) => {
                    // Events that were dropped may have been of either.
                    let is_all = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    writes.write_cache |= is_all || event.wd() == self.write_cache;
                    writes.node |= is_all || Some(event.wd()) == self.node;
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(writes),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn no_watch(errno: rustix::io::Errno) -> io::Error {
    let error = io::Error::from(errno);
    let words = format!("cannot watch the settings of a loop device: {error}");
    let remedy = match errno {
        rustix::io::Errno::MFILE | rustix::io::Errno::NOSPC => {
            ": raise fs.inotify.max_user_instances and fs.inotify.max_user_watches (sysctl -w)"
        }
        _ => "",
    };
    io::Error::new(error.kind(), words + remedy)
}

/// Fails where the kernel sends no flush to a device.
fn is_write_back(number: u32) -> Result<(), LoopError> {
    let file = write_cache(number);
    let setting = std::fs::read_to_string(&file)?;
    match setting.trim_end() {
        "write back" => Ok(()),
        setting => Err(LoopError::Disturbed(format!(
            "{} says '{setting}', so the kernel sends no flush",
            file.display()
        ))),
    }
}
