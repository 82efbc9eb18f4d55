//! Registry of the folders that are in RAM and of the processes that keep them. Each has
//! a folder of its own in the runtime folder, which is empty after a start of the
//! machine, as memory is. What survives a start lies in the RAM folder itself, see
//! `docs/ram.md`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fsure_os::lock::{self, Attempt, Lock};
use fsure_os::overmount::{self, MountEntry};
use fsure_os::root_dir::Root;
use fsure_os::{detached_process, path as os_path, user_file, zram};
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::run_memory::Runs;
use super::runtime_files::{KeeperProcess, load, store};
use fsure_core::{Error, IoContext as _, Result};

/// Path of the registry, except in tests.
pub const RUNTIME: &str = "/run/fsure/ram";
/// Folder of the notes on which folders are in RAM. It survives a start of the machine.
pub const LASTING: &str = "/var/lib/fsure/ram";
/// A path at which no process has anything.
const NONE: &str = "/nonexistent/fsure/ram";
const VERSION: u32 = 1;
const BOUND: &str = "bound.json";
/// Name of the mount point of the disk side, which can be reached there while it is
/// covered.
const DISK: &str = "disk";
const CONTROL: &str = "control";
/// Held (flock) by the process that is going to thaw the RAM side.
const STILL: &str = "still.lock";
/// Exists once the RAM side was visible to all processes.
const PUBLISHED: &str = "published";
/// Longest wait for a process that was killed to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// All RAM folders of this machine.
#[derive(Clone, Debug)]
pub struct Registry {
    folder: PathBuf,
    lasting: PathBuf,
    runs: Runs,
}

/// One RAM folder, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// Made of the path that it was bound at, so that the same folder has the same.
    pub id: String,
    /// The folder, without links; where it was moved to, if it was.
    pub path: PathBuf,
    /// Maximum age of a change that a crash loses.
    pub max_loss: Duration,
    /// Bytes of memory that its content takes at most.
    pub bytes: u64,
    /// Names that it takes at most.
    pub inodes: u64,
    /// Bytes that it has in any case, if its size follows its use; `None` if it was stated.
    pub least: Option<u64>,
    /// The time at which it was put into RAM, in nanoseconds since 1970; 0 if that is not known.
    pub since_ns: i64,
    /// Backend of the RAM side.
    pub backend: Backend,
    /// The number of its zram device, once it has one.
    pub device: Option<u32>,
    /// Identity of the folder that the path led to; `None` if it could not be determined.
    pub which: Option<FolderIdentity>,
}

/// A folder, told from another at the same path, also after a start of the machine: the
/// number of a file system is not the same then, but when a folder was made is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderIdentity {
    inode: u64,
    made_ns: Option<i64>,
}

impl FolderIdentity {
    /// The folder that a path leads to.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        let is = Root::open(path)?.stat(b"")?;
        Ok(Self { inode: is.inode, made_ns: is.birth_ns })
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct StoredEntry {
    version: u32,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    max_loss_ms: u64,
    bytes: u64,
    inodes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    least: Option<u64>,
    #[serde(default)]
    since_ns: i64,
    #[serde(default)]
    backend: Backend,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    which: Option<FolderIdentity>,
}

/// The role of a process of fsure for a RAM folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Starts the worker again when it was killed.
    Keeper,
    /// Brings the disk up to date.
    Worker,
}

impl Role {
    fn file(self) -> &'static str {
        match self {
            Self::Keeper => "keeper.json",
            Self::Worker => "worker.json",
        }
    }

    fn lock(self) -> &'static str {
        match self {
            Self::Keeper => "keeper.lock",
            Self::Worker => "worker.lock",
        }
    }
}

impl RegistryEntry {
    /// An entry for a folder, whose path is without links; of a tmpfs.
    pub fn new(path: &Path, max_loss: Duration, (bytes, inodes): (u64, u64)) -> Self {
        let id = blake3::hash(&os_path::bytes(path)).to_hex()[..16].to_owned();
        let (path, backend) = (path.to_owned(), Backend::default());
        let (least, since_ns, device, which) = (None, 0, None, None);
        Self { id, path, max_loss, bytes, inodes, least, since_ns, backend, device, which }
    }

    /// Returns the source that the mount table has for its RAM side.
    pub fn source(&self) -> String {
        match self.device {
            None => format!("fsure:{}", self.id),
            Some(number) => zram::node(number).display().to_string(),
        }
    }

    /// Returns the label of its xfs, so that it is not mistaken for that of another entry.
    pub(super) fn xfs_label(&self) -> String {
        format!("fs{}", &self.id[..10])
    }

    /// Returns the mount point of its RAM side among these mounts; `None` if it is not
    /// mounted. A folder above it could have been renamed, and what is mounted moves
    /// along.
    pub(super) fn place(&self, mounts: &[MountEntry]) -> Option<PathBuf> {
        let source = self.source();
        let is_whole = |mount: &&MountEntry| mount.source == source && mount.root == Path::new("/");
        let is_here = |mount: &MountEntry| mount.point == self.path;
        let mut whole = mounts.iter().filter(is_whole);
        let found = whole.clone().find(|mount| is_here(mount));
        found.or_else(|| whole.find(|mount| self.is_of(mount))).map(|mount| mount.point.clone())
    }

    /// Returns true if a mount is of its RAM side, wherever that is. The label is checked
    /// too, because the number of a device could belong to another entry by now.
    pub(super) fn is_of(&self, mount: &MountEntry) -> bool {
        let is_own = |number| zram::is_xfs_of(number, &self.xfs_label()).unwrap_or(false);
        mount.source == self.source() && self.device.is_none_or(is_own)
    }
}

impl Registry {
    /// The registry in a folder, and what of it is to last in another; neither need
    /// be there.
    pub fn new(folder: &Path, lasting: &Path) -> Self {
        let runs = Runs::new(folder.parent());
        Self { folder: folder.to_owned(), lasting: lasting.to_owned(), runs }
    }

    /// The one of this user: that of the machine for root, who alone may list what is bound,
    /// and an empty one for others. To them a folder that is bound is one in memory.
    /// `runtime` is the user's own runtime folder, if there is one.
    pub fn of_user(runtime: Option<&Path>) -> Self {
        let registry = match fsure_os::user::user_and_group().0 {
            0 => Self::new(Path::new(RUNTIME), Path::new(LASTING)),
            _ => Self::new(Path::new(NONE), Path::new(NONE)),
        };
        Self { runs: Runs::new(runtime), ..registry }
    }

    /// The notes of what each `ram run` takes.
    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Returns the path of the registry.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the notes that survive a start of the machine.
    pub(super) fn lasting(&self) -> &Path {
        &self.lasting
    }

    /// Makes the folder, and keeps others from entering RAM folders until the lock
    /// is dropped: of two that are nested, one must see the other.
    pub fn lock(&self) -> Result<Lock> {
        for folder in [&self.lasting, &self.folder] {
            if let Some(above) = folder.parent() {
                os_path::make_folder(above).context("make", above)?;
            }
            os_path::make_private_folder(folder).context("make", folder)?;
        }
        let name = self.folder.join("lock");
        match lock::try_lock(&name).context("lock", &name)? {
            Attempt::Locked(lock) => Ok(lock),
            Attempt::HeldBy(holder) => Err(Error::FailedPrecondition {
                message: format!("{holder} is putting another folder into RAM"),
                hint: Some("run the same command again when that is done".to_owned()),
            }),
        }
    }

    /// Returns all entries, with their current places. What cannot be read is not an entry
    /// of fsure, and is not touched.
    pub fn entries(&self) -> Result<Vec<RegistryEntry>> {
        if !os_path::exists(&self.folder) {
            return Ok(Vec::new());
        }
        let names = user_file::names(&self.folder).context("list", &self.folder)?;
        let ids = names.iter().filter_map(|name| std::str::from_utf8(name).ok());
        let mut entries: Vec<_> = ids.filter_map(|id| self.read(id)).collect();
        if entries.is_empty() {
            return Ok(entries);
        }
        let mounts = overmount::mounts(None).context("find what is mounted for", &self.folder)?;
        for entry in &mut entries {
            entry.path = entry.place(&mounts).unwrap_or_else(|| entry.path.clone());
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// The entry of an id, as it was noted last.
    pub fn read(&self, id: &str) -> Option<RegistryEntry> {
        entry(id, load(&self.home(id).join(BOUND))?)
    }

    /// Folders that were in RAM when the machine went down.
    pub fn left_over(&self) -> Result<Vec<RegistryEntry>> {
        if !os_path::exists(&self.lasting) {
            return Ok(Vec::new());
        }
        let names = user_file::names(&self.lasting).context("list", &self.lasting)?;
        let left = names.iter().filter_map(|name| {
            let id = std::str::from_utf8(name).ok()?.strip_suffix(".json")?;
            let left = entry(id, load(&self.note(id))?)?;
            self.read(id).is_none().then_some(left)
        });
        Ok(left.collect())
    }

    /// No longer notes that a folder was in RAM.
    pub fn forget(&self, id: &str) {
        os_path::remove(&self.note(id), false);
    }

    fn note(&self, id: &str) -> PathBuf {
        self.lasting.join(format!("{id}.json"))
    }

    /// The entry of a folder, whose path is without links.
    pub fn find(&self, path: &Path) -> Result<Option<RegistryEntry>> {
        Ok(self.entries()?.into_iter().find(|entry| entry.path == path))
    }

    /// Enters a folder, or what has changed of one.
    pub fn put(&self, entry: &RegistryEntry) -> Result<()> {
        let home = self.home(&entry.id);
        os_path::make_private_folder(&home).context("make", &home)?;
        let disk = self.disk(&entry.id);
        os_path::make_private_folder(&disk).context("make", &disk)?;
        let bytes = os_path::bytes(&entry.path);
        let is_text = std::str::from_utf8(&bytes).is_ok();
        let stored = StoredEntry {
            version: VERSION,
            path: String::from_utf8_lossy(&bytes).into_owned(),
            path_bytes: (!is_text).then(|| BASE64.encode(&bytes)),
            max_loss_ms: u64::try_from(entry.max_loss.as_millis()).unwrap_or(u64::MAX),
            bytes: entry.bytes,
            inodes: entry.inodes,
            least: entry.least,
            since_ns: entry.since_ns,
            backend: entry.backend,
            device: entry.device,
            which: entry.which,
        };
        store(&self.note(&entry.id), &stored)?;
        store(&home.join(BOUND), &stored)
    }

    /// Takes an entry back. Removes only the names that fsure makes. The place of the disk
    /// side must be unmounted, or this fails.
    pub fn remove(&self, id: &str) -> Result<()> {
        let (home, disk) = (self.home(id), self.disk(id));
        // First what is a mount, so that a failure leaves an entry.
        os_path::remove_empty_folder(&disk).context("remove", &disk)?;
        for role in [Role::Worker, Role::Keeper] {
            os_path::remove(&home.join(role.file()), false);
            os_path::remove(&home.join(role.lock()), false);
        }
        for name in [CONTROL, PUBLISHED, STILL, BOUND] {
            os_path::remove(&home.join(name), false);
        }
        self.forget(id);
        os_path::remove_empty_folder(&home).context("remove", &home)
    }

    /// Returns the mount point of the disk side of a folder.
    pub fn disk(&self, id: &str) -> PathBuf {
        self.home(id).join(DISK)
    }

    /// Returns the path of the control socket of its worker.
    pub fn control(&self, id: &str) -> PathBuf {
        self.home(id).join(CONTROL)
    }

    /// Returns the path of the lock that is held while its RAM side is frozen.
    pub(super) fn still(&self, id: &str) -> PathBuf {
        self.home(id).join(STILL)
    }

    /// Notes that a folder is in RAM from now on.
    pub fn publish(&self, id: &str) -> Result<()> {
        store(&self.home(id).join(PUBLISHED), &true)
    }

    /// Returns true if a folder was in RAM already, as noted by [`Self::publish`].
    pub fn was_published(&self, id: &str) -> bool {
        os_path::exists(&self.home(id).join(PUBLISHED))
    }

    /// The process that has a role, if it runs.
    pub fn process(&self, id: &str, role: Role) -> Option<KeeperProcess> {
        load(&self.home(id).join(role.file()))
            .filter(|process: &KeeperProcess| process.is_running())
    }

    /// Returns true if this process still has a role. A folder that was taken out of RAM
    /// and put back at once has other processes, under the same name.
    pub fn has(&self, id: &str, role: Role) -> bool {
        let name = self.home(id).join(role.file());
        match load::<KeeperProcess>(&name) {
            Some(process) => process.number == std::process::id(),
            // A file that only cannot be read just now is not another process's.
            None => os_path::exists(&name),
        }
    }

    /// Has this process have a role, until it ends; `None` where another has it. One
    /// that was killed is waited for: it has its lock until its last thread has ended,
    /// which may wait for the disk.
    pub fn take(&self, id: &str, role: Role) -> Result<Option<Lock>> {
        let (home, number, began) = (self.home(id), std::process::id(), Instant::now());
        let name = home.join(role.lock());
        let lock = loop {
            match lock::try_lock(&name).context("lock", &name)? {
                Attempt::Locked(lock) => break lock,
                Attempt::HeldBy(_)
                    if self.process(id, role).is_some() || began.elapsed() > EXIT_TIMEOUT =>
                {
                    return Ok(None);
                }
                Attempt::HeldBy(_) => std::thread::sleep(EXIT_POLL_INTERVAL),
            }
        };
        let began = detached_process::begun(number).unwrap_or_default();
        store(&home.join(role.file()), &KeeperProcess { number, began })?;
        Ok(Some(lock))
    }

    fn home(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }
}

/// The entry that was stored for an id.
fn entry(id: &str, stored: StoredEntry) -> Option<RegistryEntry> {
    let StoredEntry { version, path, max_loss_ms, bytes, inodes, backend, device, which, .. } =
        stored;
    let (least, since_ns) = (stored.least, stored.since_ns);
    let path = match stored.path_bytes {
        Some(text) => os_path::from_bytes(&BASE64.decode(text).ok()?).into_owned(),
        None => path.into(),
    };
    let entry = RegistryEntry::new(&path, Duration::from_millis(max_loss_ms), (bytes, inodes));
    let entry =
        RegistryEntry { id: id.to_owned(), least, since_ns, backend, device, which, ..entry };
    (version == VERSION).then_some(entry)
}

/// Returns the error that another process does what this one was started for.
pub(super) fn already_running_error(entry: &RegistryEntry) -> Error {
    Error::FailedPrecondition {
        message: format!("{} is already in RAM, and a process keeps it", entry.path.display()),
        hint: Some("'fsure ram status' shows it; if it was killed, wait until it ends".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_was_entered() {
        let folder = tempfile::tempdir().unwrap();
        let registry =
            Registry::new(&folder.path().join("run/ram"), &folder.path().join("var/ram"));
        assert_eq!(registry.entries().unwrap(), []);
        let lock = registry.lock().unwrap();
        assert!(registry.lock().is_err());
        drop(lock);
        let mut entries = Vec::new();
        for name in [&b"/srv/a b"[..], b"/srv/\xff\\"] {
            let path = os_path::from_bytes(name).into_owned();
            let mut entry = RegistryEntry::new(&path, Duration::from_millis(1500), (1 << 30, 5000));
            if !entries.is_empty() {
                (entry.backend, entry.device) = (Backend::ZramXfs, Some(3));
                assert_eq!(entry.source(), "/dev/zram3");
                entry.which = Some(FolderIdentity::at(folder.path()).unwrap());
            }
            registry.put(&entry).unwrap();
            assert_eq!(registry.find(&path).unwrap().as_ref(), Some(&entry));
            entries.push(entry);
        }
        assert_eq!(registry.entries().unwrap(), entries);
        let id = &entries[0].id;
        assert_eq!(registry.process(id, Role::Worker), None);
        let lock = registry.take(id, Role::Worker).unwrap().unwrap();
        // Only if a process can be distinguished from an earlier one of its number.
        if let Some(process) = registry.process(id, Role::Worker) {
            assert_eq!(process.number, std::process::id());
        }
        assert!(registry.take(id, Role::Worker).unwrap().is_none(), "taken twice");
        drop(lock);
        let name = registry.home(id).join(Role::Worker.lock());
        let Attempt::Locked(dying) = lock::try_lock(&name).unwrap() else { panic!("locked") };
        os_path::remove(&registry.home(id).join(Role::Worker.file()), false);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| registry.take(id, Role::Worker).unwrap().is_some());
            std::thread::sleep(10 * EXIT_POLL_INTERVAL);
            assert!(!next.is_finished(), "one that is just ending is waited for");
            drop(dying);
            assert!(next.join().unwrap());
        });
        std::fs::write(registry.disk(id).join("mounted"), "").unwrap();
        assert!(registry.remove(id).is_err(), "as if the disk side were mounted");
        assert!(registry.read(id).is_some());
        std::fs::remove_file(registry.disk(id).join("mounted")).unwrap();
        registry.remove(id).unwrap();
        assert_eq!(registry.entries().unwrap(), entries[1..]);
        assert_eq!(registry.left_over().unwrap(), []);
        let booted = Registry::new(&folder.path().join("new"), &folder.path().join("var/ram"));
        assert_eq!(booted.left_over().unwrap(), entries[1..]);
    }
}
