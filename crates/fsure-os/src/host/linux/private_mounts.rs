//! Mounts in a namespace of its own, which one thread has. See
//! [`crate::private_mounts`].

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

pub use super::memory_cgroup::Group;
use super::mounter::{self, Mounter};
use super::overlay_options::append_path;
use super::overmount::Detached;
pub use super::process_tree::{first, outer};
use crate::overmount::Ram;
use crate::private_mounts::{MountKind, retry_while_busy};

type NamespaceTask = Box<dyn FnOnce() + Send>;

/// A mount namespace, and the thread or the process that is in it. What is mounted keeps it.
#[derive(Clone, Debug)]
pub struct Namespace(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    Thread(Thread),
    /// Without root.
    Process(Mounter),
}

#[derive(Debug)]
struct Thread {
    /// `None` once it is to end.
    work: Mutex<Option<Sender<NamespaceTask>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The namespace itself. When this process is killed, the kernel closes this
    /// together with the other descriptors and unmounts only then, when a disk
    /// of fsure has been given up ([`crate::fuse_disk`]). Held by threads alone, the
    /// last of them would unmount first, and wait for that disk for ever.
    _held: OwnedFd,
}

impl Namespace {
    /// A namespace with all the mounts of this thread's, none of which hears of
    /// the other's changes from here on. Needs root.
    pub fn new() -> io::Result<Self> {
        let (work, works) = channel::<NamespaceTask>();
        let (entered, is_entered) = sync_channel(1);
        let thread = std::thread::Builder::new().name("mounts".into()).spawn(move || {
            let is_in = entered.send(enter());
            if is_in.is_ok() {
                works.into_iter().for_each(|work| work());
            }
        })?;
        let held = is_entered.recv().map_err(io::Error::other)??;
        let (work, thread) = (Mutex::new(Some(work)), Mutex::new(Some(thread)));
        Ok(Self(Arc::new(Inner::Thread(Thread { work, thread, _held: held }))))
    }

    /// The same, but without root one in a user namespace, in which only folders in memory,
    /// binds, overlays and FUSE are mounted.
    pub fn of_user() -> io::Result<Self> {
        match Self::new() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::of_process()
                .map_err(|why| {
                    let message = format!("{error}, or a user namespace: {why}");
                    io::Error::new(io::ErrorKind::PermissionDenied, message)
                }),
            other => other,
        }
    }

    /// One in a user namespace.
    pub(crate) fn of_process() -> io::Result<Self> {
        Ok(Self(Arc::new(Inner::Process(Mounter::start()?))))
    }

    /// Mounts something over a folder.
    pub fn mount(&self, what: &MountKind, at: &Path) -> io::Result<Mount> {
        if let Inner::Process(mounter) = &*self.0 {
            let mounted = match what {
                MountKind::Device { .. } => Err(mounter::refused()),
                _ => mounter.mount(what, at).map_err(|error| failed(what, at, &error)),
            };
            let root = Some(mounted?);
            return Ok(Mount { space: self.clone(), place: at.to_owned(), root });
        }
        let (what, place) = (what.clone(), at.to_owned());
        self.mount_by(at, move || attach(&what, &place))
    }

    /// Mounts a FUSE file system, and returns the device by which it is served; `None` in the
    /// namespace of a thread, in which a server mounts by itself.
    #[cfg(feature = "fuse")]
    pub(super) fn mount_fuse(&self, at: &Path) -> Option<io::Result<(Mount, OwnedFd)>> {
        let Inner::Process(mounter) = &*self.0 else { return None };
        let mounted = mounter.mount_fuse(at).map(|(root, device)| {
            (Mount { space: self.clone(), place: at.to_owned(), root: Some(root) }, device)
        });
        Some(mounted)
    }

    /// Has something mounted over a folder by `attach`, in the namespace.
    pub(super) fn mount_by(
        &self,
        at: &Path,
        attach: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Mount> {
        let place = at.to_owned();
        let root = self.run(move || {
            attach()?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(CWD, &place, flags, Mode::empty());
            opened.map_err(|errno| {
                let _ = unmount(&place, UnmountFlags::empty());
                io::Error::from(errno)
            })
        })??;
        Ok(Mount { space: self.clone(), place: at.to_owned(), root: Some(root) })
    }

    /// Starts a process that is in the namespace, and keeps it.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.run(move || command.spawn())?
    }

    /// Does something in the namespace. A process that it starts is in it, too.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let Inner::Thread(thread) = &*self.0 else { return Err(mounter::refused()) };
        let (answer, answers) = sync_channel(1);
        let gone = || io::Error::other("the thread that mounts has ended");
        let works = thread.work.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = works.as_ref().ok_or_else(gone)?.send(Box::new(move || {
            // The caller waits no more only if the process ends.
            let _ = answer.send(work());
        }));
        sent.map_err(|_| gone())?;
        drop(works);
        answers.recv().map_err(|_| gone())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // The thread ends when there is nothing more to come, and with it the
        // namespace: when this returns, nothing is mounted any more.
        drop(self.work.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Something mounted; unmounted when it is dropped, unless it is in use: then it
/// is when the last mount of its namespace is.
#[derive(Debug)]
pub struct Mount {
    space: Namespace,
    place: PathBuf,
    /// `None` once it is unmounted.
    root: Option<OwnedFd>,
}

impl Mount {
    /// A path that leads to it from everywhere, as long as it is mounted.
    pub fn path(&self) -> PathBuf {
        let root = self.root.as_ref().map_or(-1, |root| root.as_raw_fd());
        format!("/proc/{}/fd/{root}", std::process::id()).into()
    }

    /// Unmounts it, and never lazily: fails where it is in use.
    pub fn unmount(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        if self.root.take().is_none() {
            return Ok(());
        }
        let place = self.place.clone();
        match &*self.space.0 {
            Inner::Process(mounter) => retry_while_busy(|| mounter.unmount(&place)),
            Inner::Thread(_) => self
                .space
                .run(move || retry_while_busy(|| Ok(unmount(&place, UnmountFlags::empty())?)))?,
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A mount in use goes with the namespace.
        let _ = self.end();
    }
}

/// Has the calling thread enter a namespace of its own.
fn enter() -> io::Result<OwnedFd> {
    let refused = |errno: rustix::io::Errno| match errno {
        rustix::io::Errno::PERM => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "needs root (CAP_SYS_ADMIN) to mount for its own processes",
        ),
        other => other.into(),
    };
    // SAFETY: the mount namespace and the working folder become this thread's
    // own; no descriptors are, and nothing else runs on it.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(refused)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(refused)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, "/proc/thread-self/ns/mnt", flags, Mode::empty())?)
}

fn attach(what: &MountKind, at: &Path) -> io::Result<()> {
    let plain = MountFlags::NODEV | MountFlags::NOSUID;
    let done = match what {
        // As a RAM folder's, so that what is measured here is what is had there.
        MountKind::Ram { bytes, huge } => {
            let ram = Ram::disk("fsure".to_owned(), *bytes, *huge);
            Detached::ram(&ram, at).and_then(|ram| ram.publish(at))
        }
        MountKind::Bind(folder) => plainly(mount_bind(folder, at)),
        MountKind::Overlay { lower, upper, work } => {
            let mut options = Vec::new();
            for (key, path) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
                append_path(&mut options, key, path.as_os_str().as_bytes());
            }
            let options = c_string(OsStr::from_bytes(&options))?;
            plainly(mount("fsure", at, "overlay", plain, &*options))
        }
        MountKind::Device { node, kind } => plainly(mount(node, at, *kind, plain, None)),
    };
    done.map_err(|error| failed(what, at, &error))
}

fn failed(what: &MountKind, at: &Path, error: &io::Error) -> io::Error {
    let name = match what {
        MountKind::Ram { .. } => "a RAM disk".into(),
        MountKind::Overlay { .. } => "an overlay".into(),
        MountKind::Bind(path) | MountKind::Device { node: path, .. } => path.display().to_string(),
    };
    let at = at.display();
    io::Error::new(error.kind(), format!("cannot mount {name} over {at}: {error}"))
}

fn plainly(done: rustix::io::Result<()>) -> io::Result<()> {
    Ok(done?)
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}
