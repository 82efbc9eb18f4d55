//! The change time (`st_ctime`) that a file gets from a given moment on at least.
//!
//! A change has the time of the last clock tick, of 1 to 10 ms. Since Linux 6.13 a file whose
//! times were read gets a finer one with its next change, and every later change of any file
//! gets that one or a later one. So two changes of a file here, with its times read in
//! between, draw a line between all changes before and after it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, MemfdFlags, StatxFlags, memfd_create, statx};

const NS_PER_S: i64 = 1_000_000_000;

/// Draws lines between changes.
#[derive(Debug)]
pub(super) struct ChangeTime(OwnedFd);

impl ChangeTime {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(memfd_create(c"fsure-change-time", MemfdFlags::CLOEXEC)?))
    }

    /// The time that every change from now on has at least, and none before; in nanoseconds
    /// since 1970. `None` where changes have the time of a tick.
    pub(super) fn draw_line(&self) -> io::Result<Option<i64>> {
        let (tick, fine) = (self.change()?, self.change()?);
        Ok((fine > tick).then_some(fine))
    }

    /// Changes the file and reads its change time.
    fn change(&self) -> io::Result<i64> {
        rustix::io::pwrite(&self.0, &[0], 0)?;
        let time = statx(&self.0, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)?.stx_ctime;
        Ok(time.tv_sec * NS_PER_S + i64::from(time.tv_nsec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::did_not_run;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_change_is_on_its_side_of_the_line() {
        let times = ChangeTime::new().unwrap();
        if times.draw_line().unwrap().is_none() {
            let why = "this kernel gives changes the time of a tick (needs Linux 6.13)";
            return did_not_run("a_change_is_on_its_side_of_the_line", why);
        }
        // The memory that a RAM folder is made of.
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let time = |path| {
            let is = std::fs::metadata(path).unwrap();
            is.ctime() * NS_PER_S + is.ctime_nsec()
        };
        for _ in 0..100 {
            std::fs::write(&before, "1").unwrap();
            let from = times.draw_line().unwrap().expect("it was fine before");
            std::fs::write(&after, "1").unwrap();
            assert!(time(&before) < from && from <= time(&after));
        }
    }
}
