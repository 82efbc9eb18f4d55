//! The founders' experiment to the letter: `pv -faSs450m < /dev/zero > FILE`.
//! What `pv` prints is rounded to three digits, and it stops its clock before
//! it has ended; so it is timed from outside, from its start to its end.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The bytes that `-s450m` means to `pv`.
pub const BYTES: u64 = 450 << 20;
/// The pause between two checks for its end: the end is seen this much late at most.
const END_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Lets `pv` write a new file, and returns the time that it took; `None` if
/// `go_on` became false, and the file is not whole.
pub fn write(file: &Path, go_on: &dyn Fn() -> bool) -> io::Result<Option<Duration>> {
    let took = run(OpenOptions::new().write(true).create_new(true).open(file)?, go_on)?;
    match took.is_none() || std::fs::metadata(file)?.len() == BYTES {
        true => Ok(took),
        false => Err(io::Error::other("pv did not write 450 MiB")),
    }
}

/// Lets `pv` write to nowhere, and returns the same.
pub fn discard(go_on: &dyn Fn() -> bool) -> io::Result<Option<Duration>> {
    run(OpenOptions::new().write(true).open("/dev/null")?, go_on)
}

fn run(output: File, go_on: &dyn Fn() -> bool) -> io::Result<Option<Duration>> {
    let zeros = File::open("/dev/zero")?;
    let mut command = Command::new("pv");
    command.arg("-faSs450m").stdin(zeros).stdout(output).stderr(Stdio::null());
    let began = Instant::now();
    let mut pv = command.spawn().map_err(|error| {
        let why = format!("install pv: it cannot be started: {error}");
        io::Error::new(error.kind(), why)
    })?;
    loop {
        if let Some(status) = pv.try_wait()? {
            let took = began.elapsed();
            return match status.success() {
                true => Ok(Some(took)),
                false => Err(io::Error::other(format!("pv did not write 450 MiB: {status}"))),
            };
        }
        if !go_on() {
            pv.kill()?;
            pv.wait()?;
            return Ok(None);
        }
        std::thread::sleep(END_POLL_INTERVAL);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pv_is_ended_when_no_caller_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        match write(&file, &|| false) {
            Ok(took) => assert!(took.is_none() || file.exists()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                crate::host::did_not_run("pv_is_ended", &error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
        std::fs::write(folder.path().join("precious"), "x").unwrap();
        assert!(write(&folder.path().join("precious"), &|| true).is_err());
    }
}
