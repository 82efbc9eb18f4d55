//! Files mapped and locked, and inotify to follow what becomes of them. See
//! [`crate::mlock`].
//!
//! An event only says which folder to look at again: what is done follows from
//! what is there then, so that an event that is late or missing does no harm.

mod mapping;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, inotify};
use rustix::io::Errno;
use rustix::process::Resource;

use self::mapping::{Mapping, Trouble};
use super::poll;
use super::root_dir::open_in_one_piece;
use crate::mlock::{Held, Refused};

/// Events that change the names in a folder, or the length of a file in it.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// Dates as young as this may stay as they are with the next change: file systems
/// take them from a clock that ticks.
const CLOCK_TICK_MAX: Duration = Duration::from_millis(20);

/// A folder whose files are held, until this is dropped.
#[derive(Debug)]
pub struct Pin {
    root: OwnedFd,
    /// Of the file system: others below are left out.
    device: u64,
    queue: OwnedFd,
    folders: BTreeMap<PathBuf, LockedFolder>,
    /// The folder of each watch.
    watches: HashMap<i32, PathBuf>,
    /// Folders to scan again.
    changed: BTreeSet<PathBuf>,
    /// Folders that cannot be followed now, and why: they are tried again each time.
    troubles: BTreeMap<PathBuf, String>,
    /// Bytes that are held.
    bytes: u64,
    /// True once all files were held.
    is_filled: bool,
}

#[derive(Debug, Default)]
struct LockedFolder {
    watch: i32,
    inode: u64,
    files: HashMap<OsString, LockedFile>,
    left_out: HashMap<OsString, String>,
}

#[derive(Debug)]
struct LockedFile {
    is: Is,
    mapping: Mapping,
}

/// The identity of a file. If its dates differ, it might have been rewritten in place, and
/// its pages have been removed from the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Is {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of its content and of itself.
    dates: [i64; 4],
    is_young: bool,
}

/// A file that is to be taken up: its folder, its name, and what it is.
type Wanted = (PathBuf, OsString, Is);

/// The content of a folder.
#[derive(Default)]
struct Listing {
    files: Vec<(OsString, Is)>,
    /// With their inodes: another one may have the name.
    folders: HashMap<OsString, u64>,
    /// Names that cannot be checked, each with the reason.
    unseen: HashMap<OsString, String>,
}

impl Pin {
    /// Watches a folder, and holds nothing yet.
    pub fn new(folder: &Path) -> Result<Self, Refused> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::openat(CWD, folder, flags, Mode::empty()).map_err(io::Error::from)?;
        let queue =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(io::Error::from)?;
        let device = rustix::fs::fstat(&root).map_err(io::Error::from)?.st_dev;
        let mut pin = Self {
            root,
            device,
            queue,
            folders: BTreeMap::new(),
            watches: HashMap::new(),
            changed: BTreeSet::from([PathBuf::new()]),
            troubles: BTreeMap::new(),
            bytes: 0,
            is_filled: false,
        };
        match pin.enter(Path::new("")) {
            Err(error) if is_watch_limit(&error) => Err(too_many_folders()),
            other => Ok(other.map(|()| pin)?),
        }
    }

    /// Holds what is there, as far as `most` bytes in all, and lets go of what is
    /// gone. The first time all is held or nothing is, but for what cannot be read;
    /// later what cannot be is left out. When this returns, all that is held is in
    /// memory. It ends early, and with nothing that could be used, when `is_over`.
    pub fn lock_files(&mut self, most: u64, is_over: &dyn Fn() -> bool) -> Result<Held, Refused> {
        let wanted = self.look()?;
        let files = wanted.len() as u64;
        let bytes: u64 = wanted.iter().map(|(.., is)| is.bytes()).sum();
        if !self.is_filled && bytes > most {
            return Err(Refused::TooLarge { files, bytes });
        }
        for (folder, name, is) in wanted {
            let Err(trouble) = self.take_up(&folder, &name, is, most, is_over) else { continue };
            match trouble {
                Trouble::Over => return Err(Refused::Over),
                Trouble::Limit if !self.is_filled => {
                    let limit = rustix::process::getrlimit(Resource::Memlock).current;
                    return Err(Refused::Limit { limit: limit.unwrap_or(u64::MAX), bytes });
                }
                Trouble::Mappings if !self.is_filled => {
                    return Err(Refused::TooManyFiles { files });
                }
                _ => {}
            }
            if let Some(folder) = self.folders.get_mut(&folder) {
                // The program cannot say of what is half in memory that it is held.
                let had = folder.files.remove(&name);
                self.bytes -= had.map_or(0, |file| file.is.bytes());
                folder.left_out.insert(name, trouble.to_string());
            }
        }
        self.is_filled = true;
        Ok(self.held())
    }

    /// Waits until something changes in the folder, and no longer than that: says
    /// whether it did.
    pub fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        poll::is_readable(&self.queue, longest)?;
        self.collect()?;
        Ok(!self.changed.is_empty())
    }

    /// Returns true if the folder itself was removed.
    pub fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Returns true if the folder still has this path, which is without links; also if that
    /// cannot be determined.
    pub fn is_at(&self, path: &Path) -> bool {
        let Ok(root) = rustix::fs::fstat(&self.root) else { return true };
        match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => (there.st_dev, there.st_ino) == (root.st_dev, root.st_ino),
            Err(errno) => !is_absent(&errno.into()),
        }
    }

    /// Returns true if there are folders that could not be followed. A new attempt might
    /// succeed.
    pub fn has_trouble(&self) -> bool {
        !self.troubles.is_empty()
    }

    fn held(&self) -> Held {
        let mut held = Held { bytes: self.bytes, ..Held::default() };
        let shown = |path: &PathBuf| match path {
            path if path == Path::new("") => PathBuf::from("."),
            path => path.clone(),
        };
        held.left_out.extend(self.troubles.iter().map(|(path, why)| (shown(path), why.clone())));
        for (path, folder) in &self.folders {
            held.files += folder.files.len() as u64;
            let left_out = folder.left_out.iter();
            held.left_out.extend(left_out.map(|(name, why)| (path.join(name), why.clone())));
        }
        held.left_out.sort();
        held
    }

    /// Notes which folders the events that are there speak of.
    fn collect(&mut self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut events = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // What was said is lost: everything may have changed.
                self.changed.extend(self.folders.keys().cloned());
            } else if let Some(folder) = self.watches.get(&event.wd()) {
                self.changed.insert(folder.clone());
            }
        }
    }

    /// Looks at what changed: lets go of what is gone, enters new folders, and
    /// says which files are to be taken up. What cannot be listed is held on to.
    fn look(&mut self) -> Result<Vec<Wanted>, Refused> {
        let (mut listed, mut unentered) = (Vec::new(), Vec::new());
        let mut changed = std::mem::take(&mut self.changed);
        changed.extend(std::mem::take(&mut self.troubles).into_keys());
        // A folder that was moved has one watch under both names, so that the old
        // name is given up before the new one is looked at.
        for path in changed {
            if !self.folders.contains_key(&path) {
                unentered.push(path);
                continue;
            }
            match self.list(&path) {
                Ok(listing) => {
                    self.unlock_removed(&path, &listing);
                    listed.push((path, listing));
                }
                Err(error) if is_absent(&error) => self.forget(&path),
                Err(error) if !self.is_filled => return Err(error.into()),
                Err(error) => _ = self.troubles.insert(path, words(&error)),
            }
        }
        let mut wanted = Vec::new();
        loop {
            while let Some(path) = unentered.pop() {
                let is_in_sight =
                    path.parent().is_none_or(|above| self.folders.contains_key(above));
                if self.folders.contains_key(&path) || !is_in_sight {
                    continue;
                }
                match self.enter(&path).and_then(|()| self.list(&path)) {
                    Ok(listing) => listed.push((path, listing)),
                    Err(error) if is_absent(&error) => self.forget(&path),
                    Err(error) if is_watch_limit(&error) && !self.is_filled => {
                        return Err(too_many_folders());
                    }
                    Err(error) => _ = self.troubles.insert(path, words(&error)),
                }
            }
            let Some((path, listing)) = listed.pop() else { return Ok(wanted) };
            unentered.extend(listing.folders.keys().map(|name| path.join(name)));
            let Some(folder) = self.folders.get_mut(&path) else { continue };
            folder.left_out.extend(listing.unseen);
            let is_news = |name: &OsString, is: Is| {
                folder.files.get(name).is_none_or(|file| file.is != is || is.is_young)
            };
            let news = listing.files.into_iter().filter(|(name, is)| is_news(name, *is));
            wanted.extend(news.map(|(name, is)| (path.clone(), name, is)));
        }
    }

    /// Watches a folder. From then on nothing that is done in it is missed.
    fn enter(&mut self, path: &Path) -> io::Result<()> {
        let opened = self.open(path, OFlags::PATH | OFlags::DIRECTORY)?;
        let inode = rustix::fs::fstat(&opened)?.st_ino;
        let way = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let watch = inotify::add_watch(&self.queue, way, CHANGES)?;
        self.watches.insert(watch, path.to_owned());
        self.folders
            .insert(path.to_owned(), LockedFolder { watch, inode, ..LockedFolder::default() });
        Ok(())
    }

    /// Lets go of a folder, and all below it.
    fn forget(&mut self, path: &Path) {
        let from = self.folders.range(path.to_owned()..).map(|(path, _)| path);
        let below: Vec<_> = from.take_while(|below| below.starts_with(path)).cloned().collect();
        for path in below {
            let Some(folder) = self.folders.remove(&path) else { continue };
            // One that was moved has its watch under its new name already.
            if self.watches.get(&folder.watch) == Some(&path) {
                // It is gone already where the folder is.
                let _ = inotify::remove_watch(&self.queue, folder.watch);
                self.watches.remove(&folder.watch);
            }
            self.bytes -= folder.files.values().map(|file| file.is.bytes()).sum::<u64>();
        }
    }

    /// Lets go of what is not in a folder any more.
    fn unlock_removed(&mut self, path: &Path, listing: &Listing) {
        let there: HashMap<&OsStr, Is> =
            listing.files.iter().map(|(name, is)| (name.as_os_str(), *is)).collect();
        if let Some(folder) = self.folders.get_mut(path) {
            folder.left_out.clear();
            for (_, file) in folder.files.extract_if(|name, file| {
                !listing.unseen.contains_key(name)
                    && there.get(name.as_os_str()).is_none_or(|is| !is.is_same_file(file.is))
            }) {
                self.bytes -= file.is.bytes();
            }
        }
        let is_gone = |(below, folder): &(&PathBuf, &LockedFolder)| {
            below.parent() == Some(path)
                && below.file_name().is_some_and(|name| {
                    !listing.unseen.contains_key(name)
                        && listing.folders.get(name) != Some(&folder.inode)
                })
        };
        let gone = self.folders.iter().filter(is_gone).map(|(below, _)| below.clone());
        gone.collect::<Vec<_>>().iter().for_each(|below| self.forget(below));
    }

    fn list(&self, path: &Path) -> io::Result<Listing> {
        let folder = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut listing = Listing::default();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => {
                    let why = io::Error::from(errno).to_string();
                    listing.unseen.insert(name.to_owned(), why);
                    continue;
                }
            };
            if stat.st_dev != self.device {
                continue;
            }
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    listing.folders.insert(name.to_owned(), stat.st_ino);
                }
                FileType::RegularFile if stat.st_size > 0 => {
                    listing.files.push((name.to_owned(), Is::of(&stat)));
                }
                _ => {}
            }
        }
        Ok(listing)
    }

    /// Maps and locks a file, or what is new of it.
    fn take_up(
        &mut self,
        path: &Path,
        name: &OsStr,
        is: Is,
        most: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Trouble> {
        let Some(folder) = self.folders.get_mut(path) else { return Ok(()) };
        let had = folder.files.get(name).map_or(0, |file| file.is.bytes());
        if self.bytes - had + is.bytes() > most {
            return Err(Trouble::TooMuch);
        }
        if let Some(file) = folder.files.get_mut(name) {
            file.mapping.resize(is.bytes())?;
            file.mapping.fill(is_over)?;
            file.is = is;
        } else {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let opened = match self.open(&path.join(name), flags | OFlags::NOATIME) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.open(&path.join(name), flags)
                }
                other => other,
            };
            let file = opened.map_err(Trouble::System)?;
            let mapping = Mapping::new(&file, is.bytes(), is_over)?;
            let Some(folder) = self.folders.get_mut(path) else { return Ok(()) };
            folder.files.insert(name.to_owned(), LockedFile { is, mapping });
        }
        self.bytes = self.bytes - had + is.bytes();
        Ok(())
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_in_one_piece(self.root.as_fd(), path.as_os_str().as_bytes(), flags)
    }
}

impl Is {
    fn of(stat: &rustix::fs::Stat) -> Self {
        let changed = Duration::new(
            u64::try_from(stat.st_ctime).unwrap_or(0),
            u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
        );
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let dates =
            [stat.st_mtime, stat.st_mtime_nsec as i64, stat.st_ctime, stat.st_ctime_nsec as i64];
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            dates,
            is_young: now < changed + CLOCK_TICK_MAX,
        }
    }

    fn is_same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    fn bytes(self) -> u64 {
        self.size.next_multiple_of(rustix::param::page_size() as u64)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns true if the error is inotify's limit of watches per user.
fn is_watch_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

/// Returns the reason why a folder is not followed, as text.
fn words(error: &io::Error) -> String {
    if is_watch_limit(error) {
        return "fs.inotify.max_user_watches allows no more folders".to_owned();
    }
    error.to_string()
}

/// Returns the error for too many folders, with the limit of watches per user.
fn too_many_folders() -> Refused {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    Refused::TooManyFolders { limit: limit.ok().and_then(|limit| limit.trim().parse().ok()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PLENTY: u64 = 1 << 30;

    fn files(pin: &mut Pin) -> u64 {
        pin.lock_files(PLENTY, &|| false).unwrap().files
    }

    #[test]
    fn a_folder_that_moved_is_followed_under_its_new_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a")).unwrap();
        fs::create_dir_all(at("b")).unwrap();
        let mut pin = Pin::new(folder.path()).unwrap();
        assert_eq!(files(&mut pin), 0);
        fs::rename(at("a"), at("b/c")).unwrap();
        // Its new name is heard of first, and its old one when all is settled.
        pin.wait(Duration::ZERO).unwrap();
        assert!(pin.changed.remove(Path::new("")));
        assert_eq!(files(&mut pin), 0);
        pin.changed.insert(PathBuf::new());
        assert_eq!(files(&mut pin), 0);
        fs::write(at("b/c/file"), "x").unwrap();
        assert!(pin.wait(Duration::ZERO).unwrap(), "it is not watched any more");
        assert_eq!(files(&mut pin), 1);
        // Another one has its name at once.
        fs::rename(at("b/c"), at("d")).unwrap();
        fs::create_dir(at("b/c")).unwrap();
        pin.wait(Duration::ZERO).unwrap();
        assert_eq!(files(&mut pin), 1);
        for name in ["b/c/new", "d/new"] {
            fs::write(at(name), "x").unwrap();
            assert!(pin.wait(Duration::ZERO).unwrap(), "{name} is not heard of");
        }
        assert_eq!(files(&mut pin), 3);
    }
}
