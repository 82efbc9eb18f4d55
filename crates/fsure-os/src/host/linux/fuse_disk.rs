//! A disk of fsure behind a file of FUSE's.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, Session, SessionACL, WriteFlags,
};

use rustix::mount::{UnmountFlags, unmount};

use super::fuse_files::{Kind, Public, mount_by_right, refused, require_unused};
use super::fuse_reply::{self, FOR_EVER};
use super::private_mounts::Namespace;
use crate::fuse_disk::VirtualDisk;

/// The only file.
const NAME: &str = "disk";
const FOLDER: INodeNo = INodeNo(1);
const DISK: INodeNo = INodeNo(2);

const KIND: Kind<'_> = Kind { source: "fsure", name: "drive", options: "" };

pub(crate) struct ServedDisk {
    file: PathBuf,
    seen: DiskVisibility,
}

/// By whom it is seen.
enum DiskVisibility {
    By(Namespace, Option<BackgroundSession>),
    ByAll { _mount: Public },
}

impl fmt::Debug for ServedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Served").field(&self.file).finish()
    }
}

impl ServedDisk {
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for ServedDisk {
    fn drop(&mut self) {
        let DiskVisibility::By(space, session) = &mut self.seen else { return };
        let (session, folder) = (session.take(), self.file.parent().map(Path::to_owned));
        // Lazily: a loop device lets go of its file a moment after its last user
        // has gone, and is served until then.
        let end = move || {
            if let Some(folder) = folder {
                let _ = unmount(&folder, UnmountFlags::DETACH);
            }
            drop(session);
        };
        drop(space.run(end));
    }
}

pub(crate) fn serve(
    block: Arc<dyn VirtualDisk>,
    space: &Namespace,
    folder: &Path,
) -> io::Result<ServedDisk> {
    let at = folder.to_owned();
    let session = space.run(move || {
        let device = mount_by_right(&at, KIND)?;
        Session::from_fd(Disk(block), device, SessionACL::Owner, Config::default())?.spawn()
    })??;
    Ok(ServedDisk {
        file: folder.join(NAME),
        seen: DiskVisibility::By(space.clone(), Some(session)),
    })
}

pub(crate) fn publish(block: Arc<dyn VirtualDisk>, folder: &Path) -> io::Result<ServedDisk> {
    let folder = folder.canonicalize()?;
    require_unused(&folder)?;
    let mount = Public::new(Disk(block), &folder, KIND, SessionACL::Owner);
    let _mount = mount.map_err(|error| refused(&error.to_string()))?;
    Ok(ServedDisk { file: folder.join(NAME), seen: DiskVisibility::ByAll { _mount } })
}

struct Disk(Arc<dyn VirtualDisk>);

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
        let is_disk = parent == FOLDER && name == NAME;
        let found = is_disk.then(|| self.attributes(DISK)).ok_or(Errno::ENOENT);
        fuse_reply::entry(found, FOR_EVER, reply);
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
        let read = self.0.read(offset, &mut data);
        fuse_reply::data(read.map(|()| data), reply);
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
        fuse_reply::written(self.0.write(offset, data), data.len(), reply);
    }

    /// On closing: nothing is promised there.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        fuse_reply::empty(self.0.flush(), reply);
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, from: u64, reply: ReplyDirectory) {
        let names = [(DISK, FileType::RegularFile, OsStr::new(NAME))];
        fuse_reply::listing(names.into_iter(), from, reply);
    }
}
