//! The files of fsure in a scratch folder: its lock, and the lines on what is to be released
//! when its process has died. [`crate::scratch_dir`] has the format.

use std::io;
use std::path::PathBuf;

/// The lines on what is to be released beside the folder.
pub(crate) const REGISTERED: &str = "registered";
/// The file with the lock that tells folders in use from abandoned ones.
pub(crate) const LOCK: &str = "lock";

/// A resource that the system keeps when its user has died, and a guard releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A zram device, by its number.
    Zram(u32),
    /// A control group, by its folder, whose name begins with `fsure-`.
    Group(PathBuf),
}

impl Resource {
    /// Returns the line that registers it. `boot` returns the identity of this start of the
    /// system: a number means another device after the next one.
    pub(crate) fn line(&self, boot: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
        match self {
            Self::Zram(number) => Ok(format!("zram {number} {}", boot()?)),
            Self::Group(folder) => match folder.to_str() {
                Some(folder) if !folder.contains('\n') => Ok(format!("group {folder}")),
                _ => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the path cannot be noted in one line",
                )),
            },
        }
    }

    /// Parses a line; `None` for one that is cut off, and for a device of a time
    /// before the system was started.
    pub(crate) fn parse(line: &str, boot: impl FnOnce() -> io::Result<String>) -> Option<Self> {
        match line.split_once(' ')? {
            ("zram", rest) => {
                let (number, registered) = rest.split_once(' ')?;
                (boot().ok()? == registered).then_some(Self::Zram(number.parse().ok()?))
            }
            ("group", folder) => Some(Self::Group(folder.into())),
            _ => None,
        }
    }
}
