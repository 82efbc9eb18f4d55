//! Small files in the runtime folder, by which the processes of fsure find each other: a
//! value as JSON, and a process by its number and its start.

use std::io::{Read as _, Write as _};
use std::path::Path;

use fsure_os::{detached_process, user_file};
use serde::{Deserialize, Serialize};

use fsure_core::{Error, IoContext as _, Result};

/// Maximum length of such a file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// A process, by its number and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperProcess {
    /// Its number.
    pub number: u32,
    /// In ticks since the machine was started.
    pub began: u64,
}

impl KeeperProcess {
    /// Returns true if it runs.
    pub fn is_running(self) -> bool {
        detached_process::is_running(self.number, self.began)
    }
}

/// Reads a value; `None` if there is none, or not one that makes sense.
pub(super) fn load<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let mut text = String::new();
    user_file::open(path).ok()?.take(FILE_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Writes a value in the place of the one that is there.
pub(super) fn store(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|why| Error::Internal(why.to_string()))?;
    let write = || {
        let mut file = user_file::AtomicFile::create(path)?;
        writeln!(file, "{text}")?;
        file.finish()
    };
    write().context("write", path)
}
