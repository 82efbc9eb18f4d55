//! The server: each request of the kernel's becomes one of [`VirtualFs`].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::super::fuse_reply::{self, FOR_EVER};
use crate::fuse_files::{
    Attributes, Clocked, FsResult, FuseDirEntry, FuseError, New, Ranging, Renaming, Setting, Sort,
    VirtualFs, When,
};

const BLOCK: u32 = 4096;

/// A file system, as it is served.
pub(super) struct FuseView<F> {
    files: Arc<Clocked<F>>,
    known: Mutex<KnownInode>,
    next_listing: AtomicU64,
}

/// Inodes and listings that the kernel holds.
#[derive(Default)]
struct KnownInode {
    /// Number of lookups of each inode that the kernel has not forgotten.
    lookups: HashMap<u64, u64>,
    /// Folders being listed, as they were when that began.
    listings: HashMap<u64, Arc<Vec<FuseDirEntry>>>,
}

impl<F: VirtualFs> FuseView<F> {
    pub(super) fn new(files: Arc<Clocked<F>>) -> Self {
        Self { files, known: Mutex::default(), next_listing: AtomicU64::new(1) }
    }

    fn known(&self) -> MutexGuard<'_, KnownInode> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers with an inode, which the kernel knows of from then on.
    fn answer_entry(&self, result: FsResult<Attributes>, reply: ReplyEntry) {
        if let Ok(found) = &result {
            *self.known().lookups.entry(found.inode).or_default() += 1;
        }
        fuse_reply::entry(result.map(|found| attributes(&found)), FOR_EVER, reply);
    }

    fn make(&self, parent: INodeNo, name: &OsStr, new: &New<'_>) -> FsResult<Attributes> {
        self.files.with(|files, now| files.make(now, (parent.0, name), new))
    }

    /// Takes the names of a folder for a listing that begins, or begins again.
    fn list(&self, inode: INodeNo, handle: u64) -> FsResult<()> {
        let mut names = self.files.with(|files, _| files.list(inode.0))?;
        let itself = [".", ".."].map(|name| FuseDirEntry {
            inode: inode.0,
            sort: Sort::Folder,
            name: name.into(),
        });
        names.splice(0..0, itself);
        self.known().listings.insert(handle, Arc::new(names));
        Ok(())
    }

    fn sync(&self, inode: INodeNo, reply: ReplyEmpty) {
        let answer = self.files.with(|files, now| files.sync(now, inode.0));
        fuse_reply::empty(answer.map(std::thread::sleep), reply);
    }
}

impl From<FuseError> for Errno {
    fn from(error: FuseError) -> Self {
        match error {
            FuseError::NotFound => Errno::ENOENT,
            FuseError::Exists => Errno::EEXIST,
            FuseError::NotEmpty => Errno::ENOTEMPTY,
            FuseError::NotAFolder => Errno::ENOTDIR,
            FuseError::IsAFolder => Errno::EISDIR,
            FuseError::NoRoom => Errno::ENOSPC,
            FuseError::TooLarge => Errno::EFBIG,
            FuseError::NameTooLong => Errno::ENAMETOOLONG,
            FuseError::Invalid => Errno::EINVAL,
            FuseError::Failed => Errno::EIO,
        }
    }
}

fn sort(sort: Sort) -> FileType {
    match sort {
        Sort::File => FileType::RegularFile,
        Sort::Folder => FileType::Directory,
        Sort::Link => FileType::Symlink,
        Sort::Fifo => FileType::NamedPipe,
        Sort::Socket => FileType::Socket,
    }
}

fn attributes(of: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(of.inode),
        size: of.size,
        blocks: of.size.div_ceil(512),
        atime: of.accessed,
        mtime: of.modified,
        ctime: of.changed,
        crtime: UNIX_EPOCH,
        kind: sort(of.sort),
        perm: (of.mode & 0o7777) as u16,
        nlink: of.links,
        uid: of.uid,
        gid: of.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

fn when(time: TimeOrNow) -> When {
    match time {
        TimeOrNow::Now => When::Now,
        TimeOrNow::SpecificTime(time) => When::At(time),
    }
}

fn new<'a>(sort: Sort, request: &Request, mode: u32, target: &'a OsStr) -> New<'a> {
    New { sort, mode: mode & 0o7777, uid: request.uid(), gid: request.gid(), target }
}

fn answer_attributes(result: FsResult<Attributes>, reply: ReplyAttr) {
    fuse_reply::attributes(result.map(|found| attributes(&found)), FOR_EVER, reply);
}

impl<F: VirtualFs> Filesystem for FuseView<F> {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer_entry(self.files.with(|files, _| files.look_up(parent.0, name)), reply);
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        let mut known = self.known();
        let Some(lookups) = known.lookups.get_mut(&inode.0) else { return };
        *lookups = lookups.saturating_sub(times);
        if *lookups == 0 {
            known.lookups.remove(&inode.0);
            self.files.with(|files, _| files.forget(inode.0));
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(self.files.with(|files, _| files.attributes(inode.0)), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
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
        let (accessed, modified) = (accessed.map(when), modified.map(when));
        let mode = mode.map(|mode| mode & 0o7777);
        let setting = Setting { mode, uid, gid, size, accessed, modified };
        let answer = self.files.with(|files, now| files.set(now, inode.0, &setting));
        answer_attributes(answer, reply);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        let target = self.files.with(|files, _| files.target(inode.0));
        fuse_reply::data(target.map(|target| target.into_encoded_bytes()), reply);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let sort = match mode & libc::S_IFMT {
            libc::S_IFREG | 0 => Sort::File,
            libc::S_IFIFO => Sort::Fifo,
            libc::S_IFSOCK => Sort::Socket,
            _ => return reply.error(Errno::EPERM),
        };
        let new = new(sort, request, mode, OsStr::new(""));
        self.answer_entry(self.make(parent, name, &new), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let new = new(Sort::Folder, request, mode, OsStr::new(""));
        self.answer_entry(self.make(parent, name, &new), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let new = new(Sort::Link, request, 0o777, target.as_os_str());
        self.answer_entry(self.make(parent, name, &new), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        fuse_reply::empty(
            self.files.with(|files, now| files.remove(now, (parent.0, name), false)),
            reply,
        );
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        fuse_reply::empty(
            self.files.with(|files, now| files.remove(now, (parent.0, name), true)),
            reply,
        );
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
        let renaming = match flags {
            none if none.is_empty() => Renaming::Replace,
            RenameFlags::RENAME_NOREPLACE => Renaming::Refuse,
            RenameFlags::RENAME_EXCHANGE => Renaming::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        fuse_reply::empty(
            self.files.with(|files, now| files.rename(now, from, to, renaming)),
            reply,
        );
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let answer = self.files.with(|files, now| files.link(now, inode.0, (parent.0, name)));
        self.answer_entry(answer, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.make(parent, name, &new(Sort::File, request, mode, OsStr::new(""))) {
            Ok(made) => {
                *self.known().lookups.entry(made.inode).or_default() += 1;
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                let made = attributes(&made);
                reply.created(&FOR_EVER, &made, Generation(0), FileHandle(0), flags);
            }
            Err(refusal) => reply.error(refusal.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.files.with(|files, _| files.read(inode.0, offset, size as usize));
        fuse_reply::data(read, reply);
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.files.with(|files, now| files.write(now, inode.0, offset, data));
        fuse_reply::written(written, data.len(), reply);
    }

    /// On closing: nothing is promised there.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(inode, reply);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(inode, reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        let ranging = match mode {
            0 => Ranging::Reserve,
            // There is space, or there is not: nothing is set aside.
            libc::FALLOC_FL_KEEP_SIZE => return reply.ok(),
            PUNCH | ZERO => Ranging::Zero,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let range = (offset, length);
        fuse_reply::empty(
            self.files.with(|files, now| files.range(now, inode.0, range, ranging)),
            reply,
        );
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let handle = self.next_listing.fetch_add(1, Ordering::Relaxed);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        from: u64,
        reply: ReplyDirectory,
    ) {
        // Begun or rewound, it shows what is there now.
        if from == 0
            && let Err(refusal) = self.list(inode, handle.0)
        {
            return reply.error(refusal.into());
        }
        let listing = self.known().listings.get(&handle.0).cloned();
        let Some(listing) = listing else { return reply.error(Errno::EBADF) };
        let names = listing.iter();
        let names = names.map(|name| (INodeNo(name.inode), sort(name.sort), &*name.name));
        fuse_reply::listing(names, from, reply);
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.known().listings.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let space = self.files.with(|files, _| files.free_space());
        let block = u64::from(BLOCK);
        let (blocks, free) = (space.bytes / block, space.free / block);
        let inodes = space.inodes + free;
        reply.statfs(blocks, free, free, inodes, free, BLOCK, 255, BLOCK);
    }
}
