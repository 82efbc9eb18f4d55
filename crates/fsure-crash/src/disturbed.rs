//! Other processes that get in the way of a run: what they disturb is done once more, and
//! is never a result of the drive or of the program.

use std::io;

use fsure_os::loop_mount::MountError;

use super::{CrashMonitor, CrashOptions};
use crate::CrashLine;
use fsure_core::{Error, Result};

/// Attempts at something that another process disturbs each time.
const ATTEMPTS_MAX: u32 = 20;

/// Repeats an attempt that another process has disturbed, with a warning each time.
pub(super) fn undisturbed<T>(
    listener: &dyn CrashMonitor,
    what: &str,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt() {
            Err(Error::HarnessBroken { why }) if listener.stop_requested().is_none() => {
                let words = format!("{what} is repeated: {why}");
                listener.report(&CrashLine::Warning { words });
            }
            other => return other,
        }
    }
    attempt()
}

/// Converts a failure to mount a drive that was not cut.
pub(super) fn unmounted(options: &CrashOptions, error: MountError) -> Error {
    match error {
        MountError::Disturbed(why) => Error::HarnessBroken { why },
        MountError::Refused(error) => Error::Io {
            doing: "mount a drive at",
            path: options.folder.clone(),
            source: match error.kind() {
                io::ErrorKind::StorageFull => error,
                // Of another kind: the remedy is in its words.
                _ => io::Error::other(error),
            },
        },
        MountError::Unmountable(words) => Error::FailedPrecondition {
            message: format!("a new {} does not mount: {words}", options.front.name()),
            hint: Some("check '--mount-options'".to_owned()),
        },
    }
}
