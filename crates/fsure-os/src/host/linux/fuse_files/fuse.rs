//! A mount of FUSE's over a folder: made by this process where it may, and by
//! `fusermount3` where only that may. Not by fuser, which unmounts in the end what
//! is there by name, even where its own mount has gone before.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::namespace::receive;

/// The kind of a mount, as the mount table names it.
#[derive(Clone, Copy, Debug)]
pub(in crate::host::linux) struct Kind<'a> {
    /// The source, without spaces and commas.
    pub(in crate::host::linux) source: &'a str,
    /// The part of the type behind `fuse.`.
    pub(in crate::host::linux) name: &'static str,
    /// FUSE options; empty, or each with a comma before it.
    pub(in crate::host::linux) options: &'static str,
}

/// Mounts it, if need be with help; the answer is the descriptor to serve it by.
pub(super) fn mount_for_all(place: &Path, kind: Kind<'_>) -> io::Result<OwnedFd> {
    match mount_by_right(place, kind) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => mount_by_helper(place, kind),
        mounted => mounted,
    }
}

/// The same with no help, for this thread's name space.
pub(in crate::host::linux) fn mount_by_right(place: &Path, kind: Kind<'_>) -> io::Result<OwnedFd> {
    let device = openat(CWD, c"/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let device = device.map_err(|errno| io::Error::other(format!("/dev/fuse: {errno}")))?;
    let (uid, gid) = crate::user::user_and_group();
    let Kind { source, name, options } = kind;
    let number = device.as_raw_fd();
    let options = format!("fd={number},rootmode=40000,user_id={uid},group_id={gid}{options}");
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount(source, place, format!("fuse.{name}"), flags, Some(&*options))?;
    Ok(device)
}

/// It hands the descriptor over by a socket, which is its standard input here.
fn mount_by_helper(place: &Path, kind: Kind<'_>) -> io::Result<OwnedFd> {
    let (own_end, helper_end) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let Kind { source, name, options } = kind;
    let helper = Command::new("fusermount3")
        .arg("-o")
        .arg(format!("fsname={source},subtype={name},nosuid,nodev{options}"))
        .arg("--")
        .arg(place)
        .env("_FUSE_COMMFD", "0")
        .stdin(helper_end)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let helper = helper.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start fusermount3: {error}"))
    })?;
    let received = receive(&own_end);
    let stderr = helper.wait_with_output()?.stderr;
    let helper_error = || io::Error::other(String::from_utf8_lossy(&stderr).into_owned());
    received?.pop().ok_or_else(helper_error)
}
