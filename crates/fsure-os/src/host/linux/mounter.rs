//! A process in namespaces of its own that mounts for a user who is not root. A thread of
//! a process cannot have a user name space to itself, and only in one may such a user mount.
//!
//! It is a copy of a thread, as the first process of [`super::mount_sandbox`] is: it makes system
//! calls on what it is sent, and nothing else. It ends with its socket.

use std::ffi::{CStr, CString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::mount_sandbox::copy;
use super::overlay_options::append_path;
use super::process_tree::keep_only;
use crate::overmount::Ram;
use crate::private_mounts::MountKind;

/// The longest request: a kind, and three texts, each with a zero.
const REQUEST_MAX: usize = 16 << 10;

/// The process, seen from here.
#[derive(Debug)]
pub(super) struct Mounter {
    process: Pid,
    socket: Mutex<OwnedFd>,
}

/// One byte, and what is said with it.
const MOUNT: u8 = b'm';
const BIND: u8 = b'b';
/// Mounts FUSE; the answer is its device.
const FUSE: u8 = b'f';
/// The answer is what a path leads to.
const OPEN: u8 = b'o';
const UNMOUNT: u8 = b'u';
/// Keeps a descriptor; the answer is its number.
const KEEP: u8 = b'k';

impl Mounter {
    pub(super) fn start() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let maps = [format!("{0} {0} 1", user.as_raw()), format!("{0} {0} 1", group.as_raw())];
        let Some(process) = copy(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)? else {
            serve(&its, &maps);
        };
        drop(its);
        let mounter = Self { process, socket: Mutex::new(socket) };
        // It says first whether it is where it may mount.
        mounter.answer()?;
        Ok(mounter)
    }

    /// Mounts something; the top directory of it.
    pub(super) fn mount(&self, what: &MountKind, at: &Path) -> io::Result<OwnedFd> {
        let (kind, first, second) = match what {
            MountKind::Ram { bytes, huge } => {
                let Ram { bytes, inodes, .. } = Ram::disk(String::new(), *bytes, *huge);
                let huge = if *huge { ",huge=within_size" } else { "" };
                let options = format!("size={bytes},nr_inodes={inodes}{huge}");
                (MOUNT, b"tmpfs".to_vec(), options.into_bytes())
            }
            MountKind::Bind(folder) => (BIND, self.lend(folder)?, Vec::new()),
            MountKind::Overlay { lower, upper, work } => {
                // The attributes of an overlay are root's otherwise.
                let mut options = b"userxattr".to_vec();
                for (key, path) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
                    append_path(&mut options, key, &self.lend(path)?);
                }
                (MOUNT, b"overlay".to_vec(), options)
            }
            MountKind::Device { .. } => return Err(refused()),
        };
        let (_, root) = self.ask(kind, &[at.as_os_str().as_bytes(), &first, &second], None)?;
        root.ok_or_else(|| io::Error::other("nothing was mounted"))
    }

    /// Mounts a FUSE file system; the top directory of it, and the device by which it is served.
    /// The kernel demands that the device is opened in the user namespace that mounts.
    #[cfg(feature = "fuse")]
    pub(super) fn mount_fuse(&self, at: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
        let nothing = || io::Error::other("nothing was mounted");
        let at = at.as_os_str().as_bytes();
        let (_, device) = self.ask(FUSE, &[at], None)?;
        let (_, root) = self.ask(OPEN, &[at], None)?;
        Ok((root.ok_or_else(nothing)?, device.ok_or_else(nothing)?))
    }

    pub(super) fn unmount(&self, at: &Path) -> io::Result<()> {
        self.ask(UNMOUNT, &[at.as_os_str().as_bytes()], None).map(drop)
    }

    /// A path by which it reaches what this one leads to. What it has mounted itself is
    /// known here by a descriptor.
    fn lend(&self, path: &Path) -> io::Result<Vec<u8>> {
        if !path.starts_with(format!("/proc/{}/fd", std::process::id())) {
            return Ok(path.as_os_str().as_bytes().to_vec());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())?;
        let (number, _) = self.ask(KEEP, &[], Some(&folder))?;
        Ok(format!("/proc/self/fd/{number}").into_bytes())
    }

    fn ask(
        &self,
        kind: u8,
        texts: &[&[u8]],
        lent: Option<&OwnedFd>,
    ) -> io::Result<(i32, Option<OwnedFd>)> {
        let mut request = vec![kind];
        for text in texts {
            request.extend(CString::new(*text)?.into_bytes_with_nul());
        }
        if request.len() > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        pass(&socket, &request, lent)?;
        answer(&socket)
    }

    fn answer(&self) -> io::Result<(i32, Option<OwnedFd>)> {
        answer(&self.socket.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Mounter {
    fn drop(&mut self) {
        // It ends when nothing more is to come, and with it what is mounted.
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both);
        while let Err(Errno::INTR) = waitpid(Some(self.process), WaitOptions::empty()) {}
    }
}

/// The error for what it cannot be asked for.
pub(super) fn refused() -> io::Error {
    let why = "needs root: without it only folders in memory, binds, overlays and FUSE are mounted";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Sends bytes, with a descriptor.
fn pass(socket: &OwnedFd, bytes: &[u8], lent: Option<&OwnedFd>) -> io::Result<()> {
    let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut control);
    let lent = lent.map(|one| [one.as_fd()]);
    if let Some(lent) = &lent {
        message.push(SendAncillaryMessage::ScmRights(lent));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// An error number or a number, and a descriptor.
fn answer(socket: &OwnedFd) -> io::Result<(i32, Option<OwnedFd>)> {
    let mut bytes = [0; 8];
    let (length, passed) = receive(socket, &mut bytes)?;
    if length < bytes.len() {
        return Err(io::Error::other("the process that mounts has ended"));
    }
    let [errno, number] = [0, 4]
        .map(|at| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    if errno != 0 { Err(io::Error::from_raw_os_error(errno)) } else { Ok((number, passed)) }
}

/// Bytes, and a descriptor that came with them.
fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut control);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut message, flags)?;
    let mut passed = None;
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(mut rights) = part {
            passed = rights.next().or(passed);
        }
    }
    Ok((got.bytes, passed))
}

/// The process.
fn serve(socket: &OwnedFd, maps: &[String; 2]) -> ! {
    // What is open in the process that this is a copy of is not kept open here.
    keep_only(socket);
    let begun = begin(maps);
    respond(socket, begun.map(|()| 0), None);
    let mut request = [0; REQUEST_MAX];
    while begun.is_ok() {
        match receive(socket, &mut request) {
            Ok((0, _)) => break,
            Ok((length, Some(lent))) if request[0] == KEEP && length == 1 => {
                respond(socket, Ok(lent.as_raw_fd()), None);
                // For as long as this process lives.
                std::mem::forget(lent);
            }
            Ok((length, _)) => {
                let done = act(&request[..length]);
                respond(
                    socket,
                    done.as_ref().map(|_| 0).map_err(|errno| *errno),
                    done.as_ref().ok(),
                );
            }
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // SAFETY: ends this process, and nothing else of the one that it is a copy of.
    unsafe { libc::_exit(0) }
}

fn begin(maps: &[String; 2]) -> Result<(), Errno> {
    let [users, groups] = maps;
    super::mount_sandbox::put(c"/proc/self/setgroups", b"deny")?;
    super::mount_sandbox::put(c"/proc/self/gid_map", groups.as_bytes())?;
    super::mount_sandbox::put(c"/proc/self/uid_map", users.as_bytes())?;
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

/// Does what is asked for; what a path leads to then.
fn act(request: &[u8]) -> Result<OwnedFd, Errno> {
    let (kind, mut rest) = request.split_first().ok_or(Errno::INVAL)?;
    let mut texts = [c""; 3];
    for text in &mut texts {
        let Ok(next) = CStr::from_bytes_until_nul(rest) else { break };
        rest = &rest[next.to_bytes_with_nul().len()..];
        *text = next;
    }
    let [at, first, second] = texts;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    match *kind {
        MOUNT => mount(c"fsure", at, first, flags, Some(second))?,
        BIND => mount(first, at, c"", flags | MountFlags::BIND, None::<&CStr>)?,
        FUSE => return mount_fuse(at, flags),
        OPEN => {}
        UNMOUNT => unmount(at, UnmountFlags::empty())?,
        _ => return Err(Errno::INVAL),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, at, flags, Mode::empty())
}

/// Mounts FUSE for this user alone; its device.
fn mount_fuse(at: &CStr, flags: MountFlags) -> Result<OwnedFd, Errno> {
    let device = openat(CWD, c"/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        user.as_raw(),
        group.as_raw()
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    mount(c"fsure", at, c"fuse", flags, Some(&*options))?;
    Ok(device)
}

fn respond(socket: &OwnedFd, done: Result<i32, Errno>, opened: Option<&OwnedFd>) {
    let (errno, number) = done.map_or_else(|errno| (errno.raw_os_error(), 0), |number| (0, number));
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&errno.to_ne_bytes());
    bytes[4..].copy_from_slice(&number.to_ne_bytes());
    let _ = match opened {
        Some(_) => pass(socket, &bytes, opened),
        None => send(socket, &bytes, SendFlags::NOSIGNAL).map(drop).map_err(io::Error::from),
    };
}
