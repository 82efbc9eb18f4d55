//! Other processes that change loop devices while a test has one: the settings belong to
//! the whole machine.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use super::report_retry;

/// Runs of a test that is disturbed each time.
const ATTEMPTS_MAX: u32 = 30;

/// Runs a test on loop devices. One that fails while another process has changed the
/// setting of any of them is run once more, and says so; what fails undisturbed fails.
pub fn undisturbed(test: &str, body: impl Fn()) {
    for _ in 1..ATTEMPTS_MAX {
        let noise = Noise::listen();
        let Err(panic) = catch_unwind(AssertUnwindSafe(&body)) else { return };
        if !noise.is_disturbed() {
            resume_unwind(panic);
        }
        report_retry(test, "another process changed loop devices meanwhile");
    }
    body();
}

/// Writes to the settings of all loop devices that there are.
struct Noise(OwnedFd);

impl Noise {
    fn listen() -> Self {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
        for device in fs::read_dir("/sys/block").expect("list /sys/block").flatten() {
            if device.file_name().to_string_lossy().starts_with("loop") {
                // A device that is removed just now has no user.
                let _ = add_watch(&events, write_cache(&device.path()), WatchFlags::MODIFY);
            }
        }
        Self(events)
    }

    fn is_disturbed(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        Reader::new(&self.0, &mut buffer).next().is_ok()
    }
}

/// The setting of a device, by its folder in `/sys`.
pub fn write_cache(device: &Path) -> PathBuf {
    device.join("queue/write_cache")
}

/// Has the kernel send flushes to a device, whatever another process has left there.
pub fn send_flushes(device: &Path) {
    let setting = write_cache(device);
    let is = fs::read_to_string(&setting).expect("the setting of a loop device");
    if is.trim_end() != "write back" {
        fs::write(&setting, "write back").expect("put a loop device right");
    }
}
