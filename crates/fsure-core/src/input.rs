//! Inputs that the user names and that can be read only once: copied with a monitor that may
//! end the wait for them.

use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::Path;

use fsure_os::unnamed_file::UnnamedContent;
use fsure_os::{input, user_file};

use crate::{Error, IoContext as _, Monitor, Result};

/// Copies a stream, of which `-` is standard input, until its end or until the monitor asks to
/// stop.
pub fn copy_stream(path: &Path, monitor: &dyn Monitor) -> Result<UnnamedContent> {
    if path == Path::new(input::STANDARD_INPUT) && std::io::stdin().is_terminal() {
        monitor.warn("reading from the terminal until Ctrl-D");
    }
    let copied = input::copy_stream(path, &|| monitor.stop_requested().is_some());
    match (copied, monitor.stop_requested()) {
        (Err(error), Some(code)) if error.kind() == ErrorKind::Interrupted => {
            Err(Error::Interrupted(code))
        }
        (copied, _) => copied.context("read", path),
    }
}

/// Reads a whole file or stream into memory.
pub fn read_input(path: &Path, monitor: &dyn Monitor) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input::is_stream(path) {
        copy_stream(path, monitor)?.read_to_end(&mut bytes).context("read", path)?;
    } else {
        let mut file = user_file::open(path).context("open", path)?;
        file.read_to_end(&mut bytes).context("read", path)?;
    }
    Ok(bytes)
}
