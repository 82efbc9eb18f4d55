//! The view itself. Every request becomes the same call on the folder below.

mod nodes;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BackingId, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType,
    Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption,
    OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow,
    WriteFlags,
};

use nodes::Nodes;

/// How long the kernel may believe what it was told. Nobody else changes what
/// is below.
const TTL: Duration = Duration::from_secs(60);

pub(crate) struct Passthrough {
    handed_over: Arc<AtomicU64>,
    _session: BackgroundSession,
}

impl std::fmt::Debug for Passthrough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Passthrough").field(&self.handed_over).finish()
    }
}

impl Passthrough {
    pub(crate) fn mount(from: &Path, at: &Path, in_kernel: bool) -> io::Result<Self> {
        let handed_over = Arc::new(AtomicU64::new(0));
        let view = View {
            below: std::path::absolute(from)?,
            in_kernel,
            handed_over: Arc::clone(&handed_over),
            nodes: Mutex::new(Nodes::new()),
            open: Mutex::default(),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("fsure".to_owned()),
            MountOption::Subtype("passthrough".to_owned()),
            MountOption::NoSuid,
            MountOption::NoDev,
        ];
        // As many as a program that means to be fast would have.
        config.n_threads = Some(std::thread::available_parallelism().map_or(1, Into::into));
        let session = Session::new(view, at, &config)?.spawn()?;
        Ok(Self { handed_over, _session: session })
    }

    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }
}

struct View {
    below: PathBuf,
    in_kernel: bool,
    handed_over: Arc<AtomicU64>,
    nodes: Mutex<Nodes>,
    open: Mutex<Open>,
}

/// Files that are open.
#[derive(Default)]
struct Open {
    files: HashMap<u64, Handle>,
    /// One file is handed to the kernel once, however often it is open.
    backing: HashMap<INodeNo, Weak<BackingId>>,
    last: u64,
}

#[derive(Clone)]
struct Handle {
    file: Arc<File>,
    /// Alive as long as the kernel may use it.
    backing: Option<Arc<BackingId>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    fn path(&self, number: INodeNo) -> Result<PathBuf, Errno> {
        locked(&self.nodes).path(number).map(|path| self.below.join(path)).ok_or(Errno::ESTALE)
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> Result<PathBuf, Errno> {
        locked(&self.nodes).child(parent, name).ok_or(Errno::ESTALE)
    }

    /// The attributes of a name that the kernel is told of.
    fn tell(&self, path: PathBuf) -> Result<FileAttr, Errno> {
        let found = std::fs::symlink_metadata(self.below.join(&path))?;
        Ok(attributes(locked(&self.nodes).tell(path), &found))
    }

    fn file(&self, handle: FileHandle) -> Result<Arc<File>, Errno> {
        let open = locked(&self.open);
        open.files.get(&handle.0).map(|handle| Arc::clone(&handle.file)).ok_or(Errno::EBADF)
    }

    /// Notes an open file. `hand` hands it to the kernel.
    fn opened(
        &self,
        number: INodeNo,
        file: File,
        hand: impl FnOnce(&File) -> io::Result<BackingId>,
    ) -> (FileHandle, Option<Arc<BackingId>>) {
        let mut open = locked(&self.open);
        let known = open.backing.get(&number).and_then(Weak::upgrade);
        let backing = match known {
            _ if !self.in_kernel => None,
            Some(known) => Some(known),
            None => hand(&file).ok().map(Arc::new),
        };
        if let Some(backing) = &backing {
            open.backing.insert(number, Arc::downgrade(backing));
            self.handed_over.fetch_add(1, Ordering::Relaxed);
        }
        open.last += 1;
        let handle = open.last;
        open.files.insert(handle, Handle { file: Arc::new(file), backing: backing.clone() });
        (FileHandle(handle), backing)
    }

    fn set(
        &self,
        number: INodeNo,
        mode: Option<u32>,
        size: Option<u64>,
        times: (Option<TimeOrNow>, Option<TimeOrNow>),
    ) -> Result<FileAttr, Errno> {
        let path = self.path(number)?;
        if let Some(mode) = mode {
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        if let Some(size) = size {
            OpenOptions::new().write(true).open(&path)?.set_len(size)?;
        }
        let now = |time| match time {
            TimeOrNow::SpecificTime(time) => time,
            TimeOrNow::Now => SystemTime::now(),
        };
        let (accessed, modified) = (times.0.map(now), times.1.map(now));
        if accessed.is_some() || modified.is_some() {
            let mut times = FileTimes::new();
            times = accessed.map_or(times, |time| times.set_accessed(time));
            times = modified.map_or(times, |time| times.set_modified(time));
            File::open(&path)?.set_times(times)?;
        }
        Ok(attributes(number, &std::fs::symlink_metadata(&path)?))
    }

    fn rename(&self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr)) -> Result<(), Errno> {
        let (from, to) = (self.child(from.0, from.1)?, self.child(to.0, to.1)?);
        std::fs::rename(self.below.join(&from), self.below.join(&to))?;
        locked(&self.nodes).renamed(&from, &to);
        Ok(())
    }

    fn create(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, File), Errno> {
        let path = self.child(parent, name)?;
        let mut options = options(OpenFlags(flags));
        options.create(true).create_new(flags & libc::O_EXCL != 0).mode(mode);
        let file = options.open(self.below.join(&path))?;
        Ok((self.tell(path)?, file))
    }

    fn list(&self, number: INodeNo, from: u64, reply: &mut ReplyDirectory) -> Result<(), Errno> {
        let path = self.path(number)?;
        let dots = [".", ".."].map(|name| (name.into(), FileType::Directory, number));
        let entries = std::fs::read_dir(path)?.map(|entry| {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            Ok((entry.file_name(), kind, INodeNo(u64::MAX)))
        });
        let all: Vec<_> = dots.into_iter().map(Ok).chain(entries).collect::<io::Result<_>>()?;
        for (place, (name, kind, number)) in (0..).zip(all).skip(from as usize) {
            if reply.add(number, place + 1, kind, name) {
                break;
            }
        }
        Ok(())
    }
}

/// As they are asked for by who opens.
fn options(flags: OpenFlags) -> OpenOptions {
    let mode = flags.acc_mode();
    let mut options = OpenOptions::new();
    options.read(mode != OpenAccMode::O_WRONLY).write(mode != OpenAccMode::O_RDONLY);
    // Where to write is said with each write.
    let passed = libc::O_DIRECT | libc::O_SYNC | libc::O_DSYNC | libc::O_TRUNC | libc::O_NOATIME;
    options.custom_flags(flags.0 & passed);
    options
}

fn attributes(number: INodeNo, found: &Metadata) -> FileAttr {
    let time = |seconds, nanoseconds: i64| {
        let since = Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds as u32);
        SystemTime::UNIX_EPOCH + since
    };
    FileAttr {
        ino: number,
        size: found.size(),
        blocks: found.blocks(),
        atime: time(found.atime(), found.atime_nsec()),
        mtime: time(found.mtime(), found.mtime_nsec()),
        ctime: time(found.ctime(), found.ctime_nsec()),
        crtime: SystemTime::UNIX_EPOCH,
        kind: FileType::from_std(found.file_type()).unwrap_or(FileType::RegularFile),
        perm: (found.mode() & 0o7777) as u16,
        nlink: found.nlink() as u32,
        uid: found.uid(),
        gid: found.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn done(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn told(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(found) => reply.entry(&TTL, &found, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn attr(reply: ReplyAttr, result: Result<FileAttr, Errno>) {
    match result {
        Ok(found) => reply.attr(&TTL, &found),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for View {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if self.in_kernel {
            // Where either is refused, files cannot be handed over, and how
            // many were is told.
            let asked = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH);
            let _ = asked.map(|()| config.set_max_stack_depth(1));
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        told(reply, self.child(parent, name).and_then(|path| self.tell(path)));
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        locked(&self.nodes).forget(number, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.path(number).and_then(|path| Ok(std::fs::symlink_metadata(path)?));
        attr(reply, found.map(|found| attributes(number, &found)));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        attr(reply, self.set(number, mode, size, (accessed, modified)));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.child(parent, name).and_then(|path| {
            std::fs::DirBuilder::new().mode(mode).create(self.below.join(&path))?;
            self.tell(path)
        });
        told(reply, made);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.child(parent, name).and_then(|path| {
            std::fs::remove_file(self.below.join(&path))?;
            locked(&self.nodes).removed(&path);
            Ok(())
        });
        done(reply, gone);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.child(parent, name).and_then(|path| {
            std::fs::remove_dir(self.below.join(&path))?;
            locked(&self.nodes).removed(&path);
            Ok(())
        });
        done(reply, gone);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let result = match flags.is_empty() {
            true => self.rename((parent, name), (new_parent, new_name)),
            false => Err(Errno::EINVAL),
        };
        done(reply, result);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.path(number).and_then(|path| Ok(options(flags).open(path)?)) {
            Ok(file) => match self.opened(number, file, |file| reply.open_backing(file)) {
                (handle, Some(id)) => reply.opened_passthrough(handle, FopenFlags::empty(), &id),
                (handle, None) => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
            },
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let generation = Generation(0);
        match self.create(parent, name, mode, flags) {
            Ok((found, file)) => {
                match self.opened(found.ino, file, |file| reply.open_backing(file)) {
                    (handle, Some(id)) => reply.created_passthrough(
                        &TTL,
                        &found,
                        generation,
                        handle,
                        FopenFlags::empty(),
                        &id,
                    ),
                    (handle, None) => {
                        reply.created(
                            &TTL,
                            &found,
                            generation,
                            handle,
                            FopenFlags::FOPEN_KEEP_CACHE,
                        );
                    }
                }
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut data = vec![0; size as usize];
        match self.file(handle).and_then(|file| Ok(file.read_at(&mut data, offset)?)) {
            Ok(count) => reply.data(&data[..count]),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.file(handle).and_then(|file| Ok(file.write_at(data, offset)?)) {
            Ok(count) => reply.written(count as u32),
            Err(error) => reply.error(error),
        }
    }

    /// On closing: the file below stays open until its last user is gone.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let gone = locked(&self.open).files.remove(&handle.0);
        // The kernel is told of the end of a backing file, which takes a while.
        drop(gone.map(|handle| (handle.file, handle.backing)));
        reply.ok();
    }

    fn fsync(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let synced = self
            .file(handle)
            .and_then(|file| Ok(if data_only { file.sync_data() } else { file.sync_all() }?));
        done(reply, synced);
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.path(number).and_then(|path| Ok(File::open(path)?.sync_all()?)));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.list(number, from, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match rustix::fs::statvfs(&self.below) {
            Ok(found) => {
                let block = u32::try_from(found.f_bsize).unwrap_or(4096);
                let (blocks, free, room) = (found.f_blocks, found.f_bfree, found.f_bavail);
                reply.statfs(blocks, free, room, found.f_files, found.f_ffree, block, 255, block);
            }
            Err(error) => reply.error(io::Error::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests;
