//! A simulated drive that other programs use while it is cut. The clock runs, requests
//! take the time that the drive would take, and an image of what a cut would leave is
//! available at any moment without stopping anything.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::fuse_disk::VirtualDisk;

use crate::{CutVariant, Drive, DriveError, Image, RequestCounts, Traits};
use fsure_core::Random;

/// Approximate overshoot of a sleep of the system; shorter times are spent in a busy
/// loop.
const SLEEPABLE: Duration = Duration::from_micros(200);

/// A drive that is switched on when the value is created.
#[derive(Debug)]
pub struct LiveDrive {
    drive: Mutex<Drive>,
    switched_on: Instant,
    size: u64,
}

impl LiveDrive {
    /// Switches on a drive that holds `content`.
    pub fn new(traits: Traits, content: Image) -> Self {
        let size = content.size();
        let drive = Mutex::new(Drive::new(traits, content));
        Self { drive, switched_on: Instant::now(), size }
    }

    /// Returns the content of the medium if the power is cut now. The drive goes on.
    pub fn cut(&self, cut: CutVariant, random: &mut Random) -> Image {
        let mut drive = self.lock();
        drive.cut(self.switched_on.elapsed(), cut, random)
    }

    /// Returns the counts of requests so far.
    pub fn counts(&self) -> RequestCounts {
        self.lock().counts()
    }

    /// Calls `act` with the drive and the time since it was switched on, while no request
    /// is under way.
    pub fn with<T>(&self, act: impl FnOnce(&mut Drive, Duration) -> T) -> T {
        let mut drive = self.lock();
        act(&mut drive, self.switched_on.elapsed())
    }

    /// Takes a write that is to be on the medium when this returns.
    pub fn write_fua(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let took = self.with(|drive, now| drive.write_fua(now, offset, data));
        wait(took.map_err(refused)?);
        Ok(())
    }

    /// Takes a trim.
    pub fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        let took = self.with(|drive, now| drive.trim(now, offset, length));
        wait(took.map_err(refused)?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Drive> {
        self.drive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VirtualDisk for LiveDrive {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        self.lock().read(offset, target).map_err(refused)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let took = self.with(|drive, now| drive.write(now, offset, data));
        wait(took.map_err(refused)?);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let took = self.with(Drive::flush);
        wait(took.map_err(refused)?);
        Ok(())
    }
}

fn refused(error: DriveError) -> io::Error {
    io::Error::other(error)
}

fn wait(time: Duration) {
    if time >= SLEEPABLE {
        return std::thread::sleep(time);
    }
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}
