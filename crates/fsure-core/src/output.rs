//! Outputs that the user names: opened with a monitor to warn of a wait; and the ends of
//! outputs whose reader goes away.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use fsure_os::output::{Destination, Output};
use fsure_os::{path as os_path, user_file};

use crate::{Error, ExitCode, IoContext as _, Monitor, Result};

/// The time that a FIFO is waited for before the user is warned.
const WARNING_DELAY: Duration = Duration::from_secs(1);

/// Refuses to replace a file that is none of `what` by the word of `is_own`, which is asked for a
/// file that has content: it may be the only copy of something. Nothing of a stream is replaced.
pub fn may_replace(
    path: &Path,
    what: &str,
    is_own: &mut dyn FnMut(&Path) -> Result<bool>,
) -> Result<()> {
    let Destination::File(file) = Destination::of(path).context("write", path)? else {
        return Ok(());
    };
    if !os_path::exists(&file) {
        return Ok(());
    }
    let mut first = Vec::new();
    let read = user_file::open(&file).and_then(|file| file.take(1).read_to_end(&mut first));
    read.context("read", path)?;
    if first.is_empty() || is_own(&file)? {
        return Ok(());
    }
    Err(Error::FailedPrecondition {
        message: format!("{} is there and is not {what}, so it is not replaced", path.display()),
        hint: Some("name another file, or move that one away".to_owned()),
    })
}

/// Opens an output. A FIFO that no program reads is waited for, with a warning, until the
/// monitor asks to stop.
pub fn open_output(path: &Path, monitor: &dyn Monitor) -> Result<Output> {
    let (mut has_warned, mut stopped_by): (bool, Option<ExitCode>) = (false, None);
    let opened = Output::create(path, &mut |waited| {
        if waited >= WARNING_DELAY && !has_warned {
            has_warned = true;
            monitor.warn(&format!(
                "{} is a FIFO that no program reads; waiting for one. Ctrl-C ends this",
                path.display()
            ));
        }
        stopped_by = monitor.stop_requested();
        if stopped_by.is_some() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    });
    match stopped_by {
        Some(code) => Err(Error::Interrupted(code)),
        None => opened.context("write", path),
    }
}

/// Writes a text to an output that the user named.
pub fn write_output(path: &Path, text: &str, monitor: &dyn Monitor) -> Result<()> {
    let mut output = open_output(path, monitor)?;
    let written = output.write_all(text.as_bytes()).and_then(|()| output.finish());
    unless_stopped(written.context("write", path), monitor)
}

/// Takes the error of standard output whose reader has gone away for its end: what the
/// reader does not want is not lost. A named output has no such end: the program that it
/// goes to may have failed, and no exit code but this one tells of that.
pub fn unless_reader_left(written: Result<()>, monitor: &dyn Monitor) -> Result<()> {
    match unless_stopped(written, monitor) {
        Err(error) if is_reader_gone(&error) => Ok(()),
        other => other,
    }
}

/// Takes a reader that has gone away after the user asked to stop for the stop: the
/// output is not whole.
pub fn unless_stopped(written: Result<()>, monitor: &dyn Monitor) -> Result<()> {
    match (written, monitor.stop_requested()) {
        (Err(error), Some(code)) if is_reader_gone(&error) => Err(Error::Interrupted(code)),
        (written, _) => written,
    }
}

/// Returns whether an output has failed because its reader has gone away.
pub fn is_reader_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
}
