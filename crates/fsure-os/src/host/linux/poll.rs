//! Waiting for a descriptor: until there is something to read, or until the process that
//! it stands for has ended.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until a descriptor is readable, and says whether it is. A signal ends the wait,
/// too.
pub(super) fn is_readable(file: impl AsFd, at_most: Duration) -> io::Result<bool> {
    let at_most = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&at_most)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_readable_when_something_is_there() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(!is_readable(&reader, Duration::ZERO).unwrap());
        rustix::io::write(&writer, b"x").unwrap();
        // No wait is too long to be asked for.
        assert!(is_readable(&reader, Duration::MAX).unwrap());
    }
}
