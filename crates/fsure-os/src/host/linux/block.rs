//! A disk of ours behind a file of FUSE's, and loop devices.

use std::ffi::{OsStr, c_ulong};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, WriteFlags,
};

use crate::block::Block;

/// The only file.
const NAME: &str = "disk";
const FOLDER: INodeNo = INodeNo(1);
const DISK: INodeNo = INodeNo(2);
/// Nothing changes here but content, and that only through us.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

pub(crate) struct Served {
    file: PathBuf,
    /// Dropped last: this unmounts.
    _session: BackgroundSession,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Served").field(&self.file).finish()
    }
}

impl Served {
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

pub(crate) fn serve(block: Arc<dyn Block>, folder: &Path) -> io::Result<Served> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("fsure".to_owned()),
        MountOption::Subtype("drive".to_owned()),
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    let session = Session::new(Disk(block), folder, &config)?.spawn()?;
    Ok(Served { file: folder.join(NAME), _session: session })
}

struct Disk(Arc<dyn Block>);

impl Disk {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_disk = inode == DISK;
        let size = if is_disk { self.0.size() } else { 0 };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Disk {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == FOLDER && name == NAME {
            reply.entry(&FOR_EVER, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode == DISK {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = (offset + u64::from(size)).min(self.0.size());
        let mut data = vec![0; usize::try_from(end.saturating_sub(offset)).unwrap_or(0)];
        match self.0.read(offset, &mut data) {
            Ok(()) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error.into()),
        }
    }

    /// On closing: nothing is promised there.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.0.flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        if from == 0 {
            // One name always fits.
            let _ = reply.add(DISK, 1, FileType::RegularFile, NAME);
        }
        reply.ok();
    }
}

/// `LOOP_CTL_GET_FREE` and `LOOP_CONFIGURE` of `linux/loop.h`.
const GET_FREE: c_ulong = 0x4C82;
const CONFIGURE: c_ulong = 0x4C0A;
/// `LO_FLAGS_AUTOCLEAR`: it goes with its last user.
const AUTOCLEAR: u32 = 4;
/// Another process may take the free device first.
const ATTEMPTS: u32 = 64;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    numbers: [u64; 5],
    number: u32,
    encryption: u32,
    key_size: u32,
    flags: u32,
    names: [u8; 64 + 64 + 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Configuration {
    file: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

#[derive(Debug)]
pub(crate) struct Loop {
    device: PathBuf,
    /// The first of its users; nobody may be left for it to go.
    _open: File,
}

impl Loop {
    pub(crate) fn attach(file: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(file)?;
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let mut attempts = 0;
        loop {
            match Self::configure(&control, &file) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempts < ATTEMPTS => {
                    attempts += 1;
                }
                other => return other,
            }
        }
    }

    fn configure(control: &File, file: &File) -> io::Result<Self> {
        // SAFETY: the call takes no argument and returns a number.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let device = PathBuf::from(format!("/dev/loop{number}"));
        let open = OpenOptions::new().read(true).write(true).open(&device)?;
        let configuration = Configuration {
            file: u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?,
            block_size: 0,
            info: Info {
                numbers: [0; 5],
                number: 0,
                encryption: 0,
                key_size: 0,
                flags: AUTOCLEAR,
                names: [0; 160],
                init: [0; 2],
            },
            reserved: [0; 8],
        };
        // SAFETY: the structure has the layout of the kernel's and lives
        // through the call, which only reads it; both descriptors are open.
        let result = unsafe { libc::ioctl(open.as_raw_fd(), CONFIGURE, &raw const configuration) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { device, _open: open })
    }

    pub(crate) fn device(&self) -> &Path {
        &self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::did_not_run;
    use std::process::Command;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A disk in memory that counts its flushes.
    struct Memory(Mutex<Vec<u8>>, AtomicU64);

    impl Block for Memory {
        fn size(&self) -> u64 {
            self.0.lock().unwrap().len() as u64
        }

        fn read(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
            let offset = usize::try_from(offset).unwrap();
            target.copy_from_slice(&self.0.lock().unwrap()[offset..offset + target.len()]);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let offset = usize::try_from(offset).unwrap();
            self.0.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    /// The sizes are those of `linux/loop.h`.
    #[test]
    fn the_structures_have_the_kernels_size() {
        assert_eq!(size_of::<Info>(), 232);
        assert_eq!(size_of::<Configuration>(), 304);
    }

    #[test]
    fn a_file_system_on_a_disk_of_ours_flushes_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Memory(Mutex::new(vec![0; 64 << 20]), AtomicU64::new(0)));
        let served = match serve(disk.clone(), folder.path()) {
            Ok(served) => served,
            Err(error) => {
                return did_not_run(
                    "a file system on a disk of ours",
                    &format!("no FUSE: {error}"),
                );
            }
        };
        let device = match Loop::attach(served.file()) {
            Ok(device) => device,
            Err(error) => {
                return did_not_run(
                    "a file system on a disk of ours",
                    &format!("no loop device: {error}"),
                );
            }
        };
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.device()).status();
        if !made.is_ok_and(|status| status.success()) {
            return did_not_run("a file system on a disk of ours", "no mkfs.ext4");
        }
        let target = tempfile::tempdir().unwrap();
        let mount = |args: &[&str]| Command::new(args[0]).args(&args[1..]).status().unwrap();
        let (from, to) = (device.device().to_str().unwrap(), target.path().to_str().unwrap());
        assert!(mount(&["mount", from, to]).success());
        let mut file = File::create(target.path().join("file")).unwrap();
        let before = disk.1.load(Ordering::Relaxed);
        io::Write::write_all(&mut file, b"acknowledged").unwrap();
        file.sync_all().unwrap();
        assert!(disk.1.load(Ordering::Relaxed) > before, "the flush has arrived");
        let held = disk.0.lock().unwrap().windows(12).any(|bytes| bytes == b"acknowledged");
        assert!(held, "and what was flushed is on the disk");
        drop(file);
        assert!(mount(&["umount", to]).success());
        drop(device);
    }
}
