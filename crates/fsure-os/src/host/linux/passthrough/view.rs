//! The file system itself: every request becomes the same call below.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackingId, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, CWD, Dir, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use super::super::fuse_reply;
use super::counts::{RequestCounters, count};
use super::nodes::{InodeEntry, NameEntry, Nodes, attributes, no};

/// Time for which the kernel can cache a response: as with libfuse.
const CACHED: Duration = Duration::from_secs(1);

/// A folder, passed on.
pub(super) struct PassthroughFs {
    nodes: Nodes,
    /// True if the kernel is to read and write by itself.
    kernel: bool,
    counts: Arc<RequestCounters>,
}

type FuseResult<T> = Result<T, Errno>;

impl PassthroughFs {
    pub(super) fn new(
        source: &Path,
        kernel: bool,
        counts: Arc<RequestCounters>,
    ) -> io::Result<Self> {
        Ok(Self { nodes: Nodes::new(source)?, kernel, counts })
    }

    /// Registers an open file with the kernel, if it is to be and can be.
    fn back(
        &self,
        node: &InodeEntry,
        register: impl FnOnce() -> io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        if !self.kernel {
            return None;
        }
        let mut known = node.backing.lock().unwrap_or_else(PoisonError::into_inner);
        let backing = match known.upgrade() {
            Some(backing) => backing,
            // Refused, it is served from here, and the counts say so.
            None => Arc::new(register().ok()?),
        };
        *known = Arc::downgrade(&backing);
        count(&self.counts.backed);
        Some(backing)
    }

    fn entry(&self, parent: INodeNo, name: &OsStr) -> FuseResult<FileAttr> {
        let parent = self.nodes.get(parent)?;
        self.nodes.look_up(&parent, name)
    }

    fn list(&self, number: INodeNo) -> FuseResult<Vec<NameEntry>> {
        let folder = self.nodes.get(number)?.open(libc::O_RDONLY | libc::O_DIRECTORY);
        let mut names = Vec::new();
        for name in Dir::read_from(folder.map_err(no)?).map_err(no)? {
            let name = name.map_err(no)?;
            use rustix::fs::FileType as Kind;
            let kind = match name.file_type() {
                Kind::Directory => FileType::Directory,
                Kind::Symlink => FileType::Symlink,
                // Only a hint: a program that wants to know asks for the stat.
                _ => FileType::RegularFile,
            };
            let bytes = OsStr::from_bytes(name.file_name().to_bytes()).to_owned();
            names.push((INodeNo(name.ino()), kind, bytes));
        }
        Ok(names)
    }

    fn resize(&self, node: &InodeEntry, handle: Option<FileHandle>, size: u64) -> FuseResult<()> {
        match handle.and_then(|handle| self.nodes.file(handle).ok()) {
            Some(open) => open.file.set_len(size).map_err(no),
            None => node.open(libc::O_WRONLY).and_then(|file| file.set_len(size)).map_err(no),
        }
    }

    fn two(
        &self,
        first: INodeNo,
        second: INodeNo,
    ) -> FuseResult<(Arc<InodeEntry>, Arc<InodeEntry>)> {
        Ok((self.nodes.get(first)?, self.nodes.get(second)?))
    }
}

fn timestamp(time: Option<TimeOrNow>) -> Timespec {
    let (seconds, nanoseconds) = match time {
        None => (0, rustix::fs::UTIME_OMIT),
        Some(TimeOrNow::Now) => (0, rustix::fs::UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => (since.as_secs() as i64, i64::from(since.subsec_nanos())),
            Err(before) => {
                let before = before.duration();
                let (whole, rest) = (before.as_secs() as i64, i64::from(before.subsec_nanos()));
                if rest == 0 { (-whole, 0) } else { (-whole - 1, 1_000_000_000 - rest) }
            }
        },
    };
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds }
}

fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits & 0o7777)
}

impl Filesystem for PassthroughFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // One file system below: the RAM disk, or the disk.
        self.kernel = self.kernel
            && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(1).is_ok();
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        fuse_reply::entry(self.entry(parent, name), CACHED, reply);
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        self.nodes.forget(number, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        fuse_reply::attributes(
            self.nodes.get(number).and_then(|node| attributes(&node.at)),
            CACHED,
            reply,
        );
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        bits: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = |node: Arc<InodeEntry>| -> FuseResult<FileAttr> {
            if uid.is_some() || gid.is_some() {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                rustix::fs::chownat(&node.at, c"", uid, gid, AtFlags::EMPTY_PATH).map_err(no)?;
            }
            if let Some(bits) = bits {
                rustix::fs::chmod(node.path(), mode(bits)).map_err(no)?;
            }
            if let Some(size) = size {
                self.resize(&node, handle, size)?;
            }
            if accessed.is_some() || modified.is_some() {
                let times = Timestamps {
                    last_access: timestamp(accessed),
                    last_modification: timestamp(modified),
                };
                let path = node.path();
                rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).map_err(no)?;
            }
            attributes(&node.at)
        };
        fuse_reply::attributes(self.nodes.get(number).and_then(set), CACHED, reply);
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self
            .nodes
            .get(number)
            .and_then(|node| rustix::fs::readlinkat(&node.at, c"", Vec::new()).map_err(no));
        fuse_reply::data(target.map(CString::into_bytes), reply);
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        bits: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.nodes.get(parent).and_then(|parent| {
            rustix::fs::mkdirat(&parent.at, name, mode(bits & !umask)).map_err(no)
        });
        fuse_reply::entry(made.and_then(|()| self.entry(parent, name)), CACHED, reply);
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = self
            .nodes
            .get(parent)
            .and_then(|parent| rustix::fs::symlinkat(target, &parent.at, name).map_err(no));
        fuse_reply::entry(made.and_then(|()| self.entry(parent, name)), CACHED, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.nodes.get(parent).and_then(|parent| {
            rustix::fs::unlinkat(&parent.at, name, AtFlags::empty()).map_err(no)
        });
        fuse_reply::empty(gone, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.nodes.get(parent).and_then(|parent| {
            rustix::fs::unlinkat(&parent.at, name, AtFlags::REMOVEDIR).map_err(no)
        });
        fuse_reply::empty(gone, reply);
    }

    fn rename(
        &self,
        _: &Request,
        from: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.two(from, to).and_then(|(from, to)| {
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            rustix::fs::renameat_with(&from.at, name, &to.at, new, flags).map_err(no)
        });
        fuse_reply::empty(renamed, reply);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.two(number, parent).and_then(|(node, parent)| {
            let follow = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(CWD, node.path(), &parent.at, name, follow).map_err(no)
        });
        fuse_reply::entry(linked.and_then(|()| self.entry(parent, name)), CACHED, reply);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened =
            self.nodes.get(number).and_then(|node| Ok((node.open(flags.0).map_err(no)?, node)));
        let (file, node) = match opened {
            Ok(opened) => opened,
            Err(error) => return reply.error(error),
        };
        count(&self.counts.opened);
        let backing = self.back(&node, || reply.open_backing(&file));
        let handle = self.nodes.keep_file(file, backing.clone());
        match backing {
            Some(backing) => reply.opened_passthrough(handle, FopenFlags::empty(), &backing),
            None => reply.opened(handle, FopenFlags::empty()),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        bits: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.nodes.get(parent).and_then(|folder| {
            let flags = OFlags::from_bits_retain(flags.cast_unsigned());
            let flags = flags.difference(OFlags::APPEND | OFlags::DIRECT);
            let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&folder.at, name, flags, mode(bits & !umask));
            let file = std::fs::File::from(file.map_err(no)?);
            let found = self.nodes.look_up(&folder, name)?;
            Ok((file, found, self.nodes.get(found.ino)?))
        });
        let (file, found, node) = match made {
            Ok(made) => made,
            Err(error) => return reply.error(error),
        };
        count(&self.counts.opened);
        let backing = self.back(&node, || reply.open_backing(&file));
        let handle = self.nodes.keep_file(file, backing.clone());
        let (new, plain) = (Generation(0), FopenFlags::empty());
        match backing {
            Some(id) => reply.created_passthrough(&CACHED, &found, new, handle, plain, &id),
            None => reply.created(&CACHED, &found, new, handle, plain),
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
        count(&self.counts.reads);
        let read = self.nodes.file(handle).and_then(|open| {
            crate::root_dir::read_all(size as usize, |target, at| {
                // One byte more would be asked for than there is to give.
                let left = (size as usize).saturating_sub(at as usize).min(target.len());
                open.file.read_at(&mut target[..left], offset + at)
            })
            .map_err(no)
        });
        fuse_reply::data(read, reply);
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
        count(&self.counts.writes);
        let open = self.nodes.file(handle);
        let written = open.and_then(|open| open.file.write_all_at(data, offset).map_err(no));
        fuse_reply::written(written, data.len(), reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a descriptor of this process would tell nothing more than `write` did.
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
        self.nodes.close(handle);
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
        count(&self.counts.flushes);
        let flushed = self.nodes.file(handle).and_then(|open| {
            let file = &open.file;
            if data_only { file.sync_data() } else { file.sync_all() }.map_err(no)
        });
        fuse_reply::empty(flushed, reply);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.list(number) {
            Ok(names) => reply.opened(self.nodes.keep_names(names), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        match self.nodes.names(handle) {
            Ok(names) => {
                let names = names.iter().map(|(number, kind, name)| (*number, *kind, &**name));
                fuse_reply::listing(names, offset, reply);
            }
            Err(error) => reply.error(error),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.nodes.close(handle);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        count(&self.counts.flushes);
        let folder = self.nodes.get(number);
        let opened =
            folder.and_then(|node| node.open(libc::O_RDONLY | libc::O_DIRECTORY).map_err(no));
        fuse_reply::empty(opened.and_then(|folder| folder.sync_all().map_err(no)), reply);
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        let stat =
            self.nodes.get(number).and_then(|node| rustix::fs::fstatvfs(&node.at).map_err(no));
        match stat {
            Ok(is) => reply.statfs(
                is.f_blocks,
                is.f_bfree,
                is.f_bavail,
                is.f_files,
                is.f_ffree,
                is.f_bsize as u32,
                is.f_namemax as u32,
                is.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }
}
