//! A view of a real folder on which reading fails where a test wants it to:
//! the dying disk, without a dying disk.
//!
//! Names, sizes, dates and inode numbers are the source's own, so a record
//! made through the view matches the view later. Only what `read` gives is
//! spoilt. The kernel caches nothing beyond one open file: attributes and names
//! live zero seconds. The view is read-only; keep the catalog elsewhere.
//!
//! A fault hits a *request*, and the kernel decides what a request is. With
//! `O_DIRECT` or [`Faults::direct_io`] it is what the program asked for, cut
//! at 256 pages. A buffered read asks in advance; if that fails, the kernel
//! asks again, now for the one page that is needed. So a buffered reader sees
//! EIO for the bad pages only, but uses up two or more of [`Fault::times`].

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenAccMode, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Session, SessionACL,
};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use super::concurrent_edit::{Meanwhile, Moment};

/// The effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It fails with EIO.
    Eio,
    /// It fails with another error, by its number.
    Error(i32),
    /// The bytes in the range come inverted.
    Flip,
}

/// A bad place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file's path below the root of the view. A folder can only have
    /// [`How::Eio`], and then it cannot be listed.
    pub path: PathBuf,
    /// The bytes that are bad.
    pub range: Range<u64>,
    /// Effect on requests that overlap the range.
    pub how: How,
    /// Number of further requests that the fault affects; `None` is all of them.
    pub times: Option<u32>,
}

impl Fault {
    /// Requests that overlap the range fail.
    pub fn eio(path: impl Into<PathBuf>, range: Range<u64>) -> Self {
        Self { path: path.into(), range, how: How::Eio, times: None }
    }

    /// The bytes of the range are read inverted.
    pub fn flip(path: impl Into<PathBuf>, range: Range<u64>) -> Self {
        Self { path: path.into(), range, how: How::Flip, times: None }
    }

    /// The fault passes after this many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn hits(&self, path: &Path, range: &Range<u64>) -> bool {
        let overlaps = self.range.start < range.end && range.start < self.range.end;
        self.times != Some(0) && self.path == path && overlaps
    }
}

/// A request to read that reached the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The file's path below the root of the view.
    pub path: PathBuf,
    /// The bytes of the file it covers.
    pub range: Range<u64>,
    /// The fault that affected it; `None` if it succeeded.
    pub fault: Option<How>,
}

/// The faults of a view. Tests may change them at any time, but must not hold
/// their lock while they read from the view.
#[derive(Debug, Default)]
pub struct Faults {
    /// The bad places.
    pub list: Vec<Fault>,
    /// True if files that are opened from now on bypass the page cache, however they
    /// are opened.
    pub direct_io: bool,
    /// All requests to read so far.
    pub requests: Vec<Request>,
    /// Action on the source at each moment, before the view responds.
    pub meanwhile: Meanwhile,
    /// Files whose reads and folders whose listings get no response, as on a server that
    /// is gone.
    pub silent: HashSet<PathBuf>,
    /// True if a name is found in any case, as on FAT and macOS.
    pub folds_case: bool,
    /// Unit of all dates, nanoseconds; 0 for those of the source.
    pub date_unit_ns: i64,
}

impl Faults {
    /// Notes a request for `data` at `offset`, and applies the faults to its response.
    fn answer(&mut self, path: &Path, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        let range = offset..offset + data.len() as u64;
        let mut worst = None;
        for fault in self.list.iter_mut().filter(|fault| fault.hits(path, &range)) {
            fault.times = fault.times.map(|times| times - 1);
            worst = if worst == Some(How::Eio) { worst } else { Some(fault.how) };
            if fault.how == How::Flip {
                let start = fault.range.start.max(range.start) - offset;
                let end = fault.range.end.min(range.end) - offset;
                data[index(start)..index(end)].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        self.requests.push(Request { path: path.to_owned(), range, fault: worst });
        match worst {
            Some(How::Eio) => Err(Errno::EIO),
            Some(How::Error(number)) => Err(Errno::from_i32(number)),
            Some(How::Flip) | None => Ok(()),
        }
    }

    /// Returns true if a folder cannot be listed now. Uses up one request of the fault.
    fn refuses_listing(&mut self, path: &Path) -> bool {
        let everything = 0..u64::MAX;
        let mut faults = self.list.iter_mut();
        let fault = faults.find(|fault| fault.how == How::Eio && fault.hits(path, &everything));
        fault.map(|fault| fault.times = fault.times.map(|times| times - 1)).is_some()
    }
}

/// A mounted view with faults. Unmounted at the end.
#[derive(Debug)]
pub struct FaultyFs {
    /// Its faults.
    pub faults: Arc<Mutex<Faults>>,
    unanswered: Arc<Mutex<Vec<Unanswered>>>,
    session: Option<BackgroundSession>,
    mount_point: Option<TempDir>,
    root: PathBuf,
}

impl FaultyFs {
    /// Mounts a view of `source`, without faults at first.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn new(source: &Path) -> Result<Self, String> {
        Self::with(source, Arc::default())
    }

    /// Mounts a view of `source` with these faults.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn with(source: &Path, faults: Arc<Mutex<Faults>>) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("mounting a FUSE file system needs root".into());
        }
        let mount_point = tempfile::tempdir().expect("make a mount point");
        let root = mount_point.path().canonicalize().expect("resolve the mount point");
        let unanswered = Arc::default();
        let view = View {
            source: source.to_owned(),
            faults: Arc::clone(&faults),
            known: Mutex::default(),
            unanswered: Arc::clone(&unanswered),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::RO,
            MountOption::DefaultPermissions,
            MountOption::FSName("faulty".into()),
        ];
        config.acl = SessionACL::All;
        let session = Session::new(view, &root, &config).and_then(Session::spawn);
        let session = session.map_err(|error| format!("mount a FUSE file system: {error}"))?;
        Ok(Self {
            faults,
            unanswered,
            session: Some(session),
            mount_point: Some(mount_point),
            root,
        })
    }

    /// Returns its mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Replaces all faults.
    pub fn set(&self, list: impl IntoIterator<Item = Fault>) {
        lock(&self.faults).list = list.into_iter().collect();
    }

    /// Makes these paths silent and lets all others respond again. Requests that have been
    /// waiting for a response fail: until then their process cannot end, even if killed.
    pub fn silence(&self, paths: &[&str]) {
        lock(&self.faults).silent = paths.iter().map(PathBuf::from).collect();
        lock(&self.unanswered).clear();
    }

    /// Returns true if a process waits for a response that does not come.
    pub fn is_waited_for(&self) -> bool {
        !lock(&self.unanswered).is_empty()
    }

    /// Takes the requests to read seen since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut lock(&self.faults).requests)
    }
}

impl Drop for FaultyFs {
    fn drop(&mut self) {
        // Detached rather than unmounted: this must not fail because a child
        // of another test, between fork and exec, holds files of this one open.
        if unmount(&self.root, UnmountFlags::DETACH).is_err() {
            // Never delete through a mount that is still there.
            _ = self.mount_point.take().map(TempDir::keep);
        }
        // Its thread is not joined: it ends with the last user of the mount.
        drop(self.session.take());
    }
}

/// The state that the kernel refers to: paths by inode number, and open files.
#[derive(Debug, Default)]
struct Known {
    paths: HashMap<u64, PathBuf>,
    open: HashMap<u64, Arc<(PathBuf, File)>>,
    last_handle: u64,
}

#[derive(Debug)]
struct View {
    source: PathBuf,
    faults: Arc<Mutex<Faults>>,
    known: Mutex<Known>,
    unanswered: Arc<Mutex<Vec<Unanswered>>>,
}

/// A request without a response yet. If dropped, it fails with EIO.
#[derive(Debug)]
#[expect(dead_code, reason = "kept so that it is not dropped")]
enum Unanswered {
    Read(ReplyData),
    Listing(ReplyDirectory),
    Link(ReplyData),
}

impl View {
    fn is_silent(&self, path: Result<PathBuf, Errno>) -> bool {
        path.is_ok_and(|path| lock(&self.faults).silent.contains(&path))
    }

    /// The path of an inode below the root; empty for the root.
    fn path(&self, inode: INodeNo) -> Result<PathBuf, Errno> {
        if inode == INodeNo::ROOT {
            return Ok(PathBuf::new());
        }
        lock(&self.known).paths.get(&inode.0).cloned().ok_or(Errno::ESTALE)
    }

    fn meanwhile(&self, path: &Path, moment: Moment) {
        lock(&self.faults).meanwhile.act(path, moment);
    }

    fn stat(&self, path: &Path) -> Result<FileAttr, Errno> {
        // Not `join`: with an empty path it adds a slash, which follows links.
        let full =
            if path.as_os_str().is_empty() { self.source.clone() } else { self.source.join(path) };
        attributes(&std::fs::symlink_metadata(full)?, lock(&self.faults).date_unit_ns)
    }

    fn lookup(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let folder = self.path(parent)?;
        let mut path = folder.join(name);
        if lock(&self.faults).folds_case && self.stat(&path).is_err() {
            let names = std::fs::read_dir(self.source.join(&folder))?.flatten();
            let mut names = names.map(|entry| entry.file_name());
            path = names
                .find(|other| other.eq_ignore_ascii_case(name))
                .map_or(path, |n| folder.join(n));
        }
        self.meanwhile(&path, Moment::Name);
        let found = self.stat(&path)?;
        lock(&self.known).paths.insert(found.ino.0, path);
        Ok(found)
    }

    fn getattr(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let path = self.path(inode)?;
        self.meanwhile(&path, Moment::Stat);
        let found = self.stat(&path)?;
        let same = inode == INodeNo::ROOT || found.ino == inode;
        if same { Ok(found) } else { Err(Errno::ESTALE) }
    }

    fn open(&self, inode: INodeNo, flags: OpenFlags) -> Result<(FileHandle, FopenFlags), Errno> {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return Err(Errno::EROFS);
        }
        let path = self.path(inode)?;
        self.meanwhile(&path, Moment::Open);
        let file = File::open(self.source.join(&path))?;
        let direct = lock(&self.faults).direct_io;
        let mut known = lock(&self.known);
        known.last_handle += 1;
        let handle = known.last_handle;
        known.open.insert(handle, Arc::new((path, file)));
        let flags = if direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() };
        Ok((FileHandle(handle), flags))
    }

    fn read(&self, handle: FileHandle, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let open = lock(&self.known).open.get(&handle.0).cloned().ok_or(Errno::EBADF)?;
        let (path, file) = &*open;
        self.meanwhile(path, Moment::Read);
        let mut data = vec![0; index(size.into())];
        let mut filled = 0;
        while filled < data.len() {
            match file.read_at(&mut data[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        data.truncate(filled);
        lock(&self.faults).answer(path, offset, &mut data)?;
        Ok(data)
    }

    /// The entries of a folder from the `from`-th on.
    fn list(&self, inode: INodeNo, from: u64, reply: &mut ReplyDirectory) -> Result<(), Errno> {
        let path = self.path(inode)?;
        if lock(&self.faults).refuses_listing(&path) {
            return Err(Errno::EIO);
        }
        let entries = std::fs::read_dir(self.source.join(&path))?;
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for (next, entry) in (1..).zip(entries).skip(index(from)) {
            let kind = FileType::from_std(entry.file_type()?).ok_or(Errno::EIO)?;
            if reply.add(INodeNo(entry.ino()), next, kind, entry.file_name()) {
                break;
            }
        }
        Ok(())
    }
}

impl Filesystem for View {
    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.lookup(parent, name) {
            Ok(found) => reply.entry(&Duration::ZERO, &found, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &fuser::Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.getattr(inode) {
            Ok(found) => reply.attr(&Duration::ZERO, &found),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &fuser::Request, inode: INodeNo, reply: ReplyData) {
        if self.is_silent(self.path(inode)) {
            return lock(&self.unanswered).push(Unanswered::Link(reply));
        }
        let full = self.path(inode).map(|path| self.source.join(path));
        match full.and_then(|full| Ok(std::fs::read_link(full)?)) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &fuser::Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open(inode, flags) {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.is_silent(self.path(inode)) {
            return lock(&self.unanswered).push(Unanswered::Read(reply));
        }
        match self.read(handle, offset, size) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error),
        }
    }

    fn release(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        lock(&self.known).open.remove(&handle.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        if self.is_silent(self.path(inode)) {
            return lock(&self.unanswered).push(Unanswered::Listing(reply));
        }
        match self.list(inode, from, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &fuser::Request, _: INodeNo, reply: ReplyStatfs) {
        match rustix::fs::statvfs(&self.source) {
            Ok(s) => {
                let block = u32::try_from(s.f_bsize).unwrap_or(4096);
                let fragment = u32::try_from(s.f_frsize).unwrap_or(4096);
                let (blocks, free, available) = (s.f_blocks, s.f_bfree, s.f_bavail);
                reply.statfs(blocks, free, available, s.f_files, s.f_ffree, block, 255, fragment);
            }
            Err(error) => reply.error(io::Error::from(error).into()),
        }
    }
}

fn attributes(found: &Metadata, date_unit_ns: i64) -> Result<FileAttr, Errno> {
    let time = |seconds: i64, nanoseconds: i64| {
        let whole_ns = seconds * 1_000_000_000 + nanoseconds;
        let kept_ns = whole_ns - whole_ns.rem_euclid(date_unit_ns.max(1));
        time(kept_ns.div_euclid(1_000_000_000), kept_ns.rem_euclid(1_000_000_000))
    };
    Ok(FileAttr {
        ino: INodeNo(found.ino()),
        size: found.size(),
        blocks: found.blocks(),
        atime: time(found.atime(), found.atime_nsec()),
        mtime: time(found.mtime(), found.mtime_nsec()),
        ctime: time(found.ctime(), found.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: FileType::from_std(found.file_type()).ok_or(Errno::EIO)?,
        perm: u16::try_from(found.mode() & 0o7777).expect("twelve bits"),
        nlink: u32::try_from(found.nlink()).unwrap_or(u32::MAX),
        uid: found.uid(),
        gid: found.gid(),
        rdev: u32::try_from(found.rdev()).unwrap_or(0),
        blksize: u32::try_from(found.blksize()).unwrap_or(4096),
        flags: 0,
    })
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    start + Duration::from_nanos(nanoseconds.unsigned_abs())
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("fits in memory")
}

/// A test that failed while it held a lock shall not hang the mount as well.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
