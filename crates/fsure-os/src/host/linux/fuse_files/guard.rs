//! A child that unmounts what all processes see when this one lets go of it or is
//! killed: the mount would stay otherwise, and answer with errors to every process that
//! looks at it. It unmounts the mount of this process and no other, whatever has come
//! over it or has taken its place meanwhile.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Pid;

use super::super::process_tree::keep_only;
use super::namespace::{in_child, wait_for};

#[derive(Debug)]
pub(super) struct Guard {
    place: CString,
    /// Read by the child; closed by the kernel if this process is killed.
    pipe: Option<OwnedFd>,
    child: Pid,
}

impl Guard {
    /// For a mount that is made after this, so that the child has no descriptor
    /// that serves it.
    pub(super) fn new(place: &Path) -> io::Result<Self> {
        let place = CString::new(place.as_os_str().as_bytes())?;
        let words = [c"fusermount3", c"-u", c"-q", c"-z", c"--", &place];
        let mut arguments: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
        arguments.push(std::ptr::null());
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let below = mount_id(&place)?;
        let child = in_child(|| {
            // Free of what ends the parent's group of processes, and of all that it has open.
            let _ = rustix::process::setsid();
            keep_only(&read);
            let (own, top) = (read_last(&read), mount_id(&place));
            // Killed before it got the message, it was what had come just then.
            let is_own = match (own, top) {
                (_, Err(_)) => false,
                (Some(own), Ok(top)) => own == top,
                (None, Ok(top)) => top != below,
            };
            // Lazily, or a process that is in it would keep a mount that is dead. That
            // is right only because nothing that matters outlives its server: a
            // simulated drive is gone with the process.
            if is_own && unmount(&*place, UnmountFlags::DETACH).is_err() {
                // SAFETY: the words and the list end with zero and live in this
                // copy of the parent's memory.
                unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
            }
            0
        })?;
        Ok(Self { place, pipe: Some(write), child })
    }

    /// Says that the mount is there now.
    pub(super) fn mounted(&self) -> io::Result<()> {
        let own = mount_id(&self.place)?.to_ne_bytes();
        if let Some(pipe) = &self.pipe {
            // So few bytes go into a pipe as one.
            rustix::io::write(pipe, &own)?;
        }
        Ok(())
    }
}

impl Drop for Guard {
    /// Has it unmounted, and waits for that.
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = wait_for(self.child);
    }
}

/// Waits until nothing more is said, and answers with the last.
fn read_last(pipe: &OwnedFd) -> Option<u64> {
    let (mut last, mut word) = (None, [0; 8]);
    loop {
        match rustix::io::read(pipe, &mut word) {
            Err(Errno::INTR) => {}
            Ok(8) => last = Some(u64::from_ne_bytes(word)),
            Ok(_) | Err(_) => return last,
        }
    }
}

/// The number of the mount that a path leads to now: since Linux 6.8 one that no
/// other mount ever has, before that one that no other has meanwhile, and before
/// 5.8 always 0. System calls only, none of which comes to a server of FUSE's.
pub(super) fn mount_id(place: &CStr) -> Result<u64, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = openat(CWD, place, flags, Mode::empty())?;
    // STATX_MNT_ID_UNIQUE, which rustix has no name for.
    let wanted = StatxFlags::MNT_ID | StatxFlags::from_bits_retain(0x4000);
    let answer = statx(&top, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, wanted)?;
    Ok(if answer.stx_mask & wanted.bits() == 0 { 0 } else { answer.stx_mnt_id })
}
