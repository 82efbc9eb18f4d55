//! A mount that only some processes see. A child makes the namespaces and
//! mounts in them, because a process with threads cannot change its user name
//! space; the descriptors that it hands over keep them. Between fork and end it
//! makes system calls and nothing else: another thread may hold any lock.

use std::ffi::{CStr, CString};
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities,
    configure_capability_in_ambient_set, move_into_link_name_space, set_capabilities,
    unshare_unsafe,
};

/// Name spaces with a mount in them.
pub(super) struct Space {
    place: CString,
    mounts: OwnedFd,
    /// `None` where this process may mount without one.
    user: Option<OwnedFd>,
}

/// Data that the child needs, made before the fork: the child must not allocate.
struct MountRequest {
    place: CString,
    users: String,
    groups: String,
    options: String,
}

/// Steps at which the child can fail, as text.
const STEPS: [&str; 5] = [
    "enter its own namespaces",
    "map its user into them",
    "open /dev/fuse",
    "mount there",
    "hand the mount over",
];

impl Space {
    /// Mounts over a folder; the second is the descriptor to serve the mount by.
    pub(super) fn with_mount(place: &Path) -> io::Result<(Self, OwnedFd)> {
        let plan = MountRequest::new(place)?;
        let (own_end, child_end) = socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )?;
        let child = in_child(|| match make(&plan, &child_end) {
            Ok(()) => 0,
            Err((step, errno)) => {
                let errno = errno.raw_os_error().to_le_bytes();
                let word = [step, errno[0], errno[1], errno[2], errno[3]];
                // Without a message, the parent reports that.
                let _ = rustix::io::write(&child_end, &word);
                1
            }
        })?;
        drop(child_end);
        let received = receive(&own_end);
        wait_for(child)?;
        let mut descriptors = received?.into_iter();
        let mut next = || descriptors.next().ok_or(io::ErrorKind::UnexpectedEof);
        let (device, mounts) = (next()?, next()?);
        let space = Self { place: plan.place, mounts, user: descriptors.next() };
        Ok((space, device))
    }

    /// Returns true if other users than that of this process can be let in: only root has them
    /// in its name space.
    pub(super) fn is_for_all(&self) -> bool {
        self.user.is_none()
    }

    /// The namespaces to be entered, in this order.
    pub(super) fn spaces(&self) -> [Option<RawFd>; 2] {
        [self.user.as_ref().map(OwnedFd::as_raw_fd), Some(self.mounts.as_raw_fd())]
    }

    /// Takes the mount away from the processes that still use it.
    pub(super) fn end(self) -> io::Result<()> {
        let Self { place, mounts, user } = self;
        let spaces = [user.as_ref().map(OwnedFd::as_raw_fd), Some(mounts.as_raw_fd())];
        let child = in_child(|| {
            let ended = enter(spaces)
                .and_then(|()| Ok(unmount(&*place, UnmountFlags::FORCE | UnmountFlags::DETACH)?));
            i32::from(ended.is_err())
        })?;
        match wait_for(child)? {
            0 => Ok(()),
            _ => Err(io::Error::other("the folder cannot be unmounted")),
        }
    }
}

impl MountRequest {
    fn new(place: &Path) -> io::Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let (uid, gid) = (uid.as_raw(), gid.as_raw());
        Ok(Self {
            place: CString::new(place.as_os_str().as_bytes())?,
            users: format!("{uid} {uid} 1"),
            groups: format!("{gid} {gid} 1"),
            options: format!("rootmode=40000,user_id={uid},group_id={gid},default_permissions"),
        })
    }
}

/// Runs in the child: makes the namespaces, mounts in them, and hands the descriptors to
/// the parent. An error has the index of its step.
fn make(plan: &MountRequest, parent: &OwnedFd) -> Result<(), (u8, Errno)> {
    let at = |step: u8| move |errno: Errno| (step, errno);
    let is_alone = own_spaces().map_err(at(0))?;
    if is_alone {
        put(c"/proc/self/setgroups", b"deny").map_err(at(1))?;
        put(c"/proc/self/gid_map", plan.groups.as_bytes()).map_err(at(1))?;
        put(c"/proc/self/uid_map", plan.users.as_bytes()).map_err(at(1))?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", private).map_err(at(0))?;
    let device = open(c"/dev/fuse", OFlags::RDWR).map_err(at(2))?;
    let mut options = [0; 160];
    let length = options.len();
    let mut rest = &mut options[..length - 1];
    let others = if is_alone { "" } else { ",allow_other" };
    write!(rest, "fd={},{}{others}", device.as_raw_fd(), plan.options)
        .map_err(|_| (3, Errno::TOOBIG))?;
    let options = CStr::from_bytes_until_nul(&options).map_err(|_| (3, Errno::INVAL))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount(c"fsure", &*plan.place, c"fuse.files", flags, Some(options)).map_err(at(3))?;
    let mounts = open(c"/proc/self/ns/mnt", OFlags::RDONLY).map_err(at(4))?;
    let user = open(c"/proc/self/ns/user", OFlags::RDONLY).map_err(at(4))?;
    let all = [device.as_fd(), mounts.as_fd(), user.as_fd()];
    send(parent, if is_alone { &all } else { &all[..2] }).map_err(at(4))
}

/// Enters a mount name space; whether it took a user name space, too.
fn own_spaces() -> Result<bool, Errno> {
    // SAFETY: the child has one thread, and nothing of it is shared by these.
    match unsafe { unshare_unsafe(UnshareFlags::NEWNS) } {
        Err(Errno::PERM) => {}
        other => return other.map(|()| false),
    }
    // SAFETY: likewise.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }.map(|()| true)
}

fn open(path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}

fn put(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY)?;
    rustix::io::write(&file, text).map(drop)
}

fn send(parent: &OwnedFd, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut message = SendAncillaryBuffer::new(&mut control);
    message.push(SendAncillaryMessage::ScmRights(descriptors));
    sendmsg(parent, &[IoSlice::new(b"!")], &mut message, SendFlags::empty()).map(drop)
}

/// Receives the descriptors that the child hands over, or the error that it reports.
pub(super) fn receive(child: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut word = [0; 8];
    let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut message = RecvAncillaryBuffer::new(&mut control);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(child, &mut [IoSliceMut::new(&mut word)], &mut message, flags)?;
    let mut descriptors = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    if got.bytes == 5 {
        let error =
            io::Error::from_raw_os_error(i32::from_le_bytes([word[1], word[2], word[3], word[4]]));
        let step = STEPS.get(usize::from(word[0])).copied().unwrap_or("mount");
        return Err(io::Error::new(error.kind(), format!("cannot {step}: {error}")));
    }
    Ok(descriptors)
}

/// Enters namespaces. Makes system calls only.
pub(super) fn enter(spaces: [Option<RawFd>; 2]) -> io::Result<()> {
    for (space, kind) in spaces.into_iter().zip([LinkNameSpaceType::User, LinkNameSpaceType::Mount])
    {
        let Some(space) = space else { continue };
        // SAFETY: a number that is not open fails the call.
        let space = unsafe { BorrowedFd::borrow_raw(space) };
        move_into_link_name_space(space, Some(kind))?;
        if kind == LinkNameSpaceType::User {
            keep_right()?;
        }
    }
    Ok(())
}

/// Has the right to mount outlive the start of a program whose user is not root:
/// it is [`crate::process_tree`], which makes namespaces and drops the right.
fn keep_right() -> io::Result<()> {
    let mut rights = capabilities(None)?;
    rights.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, rights)?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// Starts a child that does one thing and ends with that code. It may make
/// system calls only.
pub(super) fn in_child(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the child makes system calls and ends without running anything of
    // what this process has prepared for its end.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = work();
            // SAFETY: ends this process.
            unsafe { libc::_exit(code) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::other("a child without a number")),
    }
}

/// Its code, and `-1` where a signal ended it.
pub(super) fn wait_for(child: Pid) -> io::Result<i32> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(ended) => {
                return Ok(ended.and_then(|(_, status)| status.exit_status()).unwrap_or(-1));
            }
        }
    }
}
