//! The file of `--save`, for commands whose lines of JSON the screen prints: the same lines,
//! each as soon as it is known, whether they are printed or not.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fsure_core::{Clock, IoContext as _, Result, open_output};
use fsure_os::output::Destination;

use super::Screen;
use crate::report::json;

/// A file, until a write to it fails.
pub(super) struct SavedLines {
    writer: Option<Box<dyn Write + Send>>,
    /// The file, if it was made for the lines.
    made: Option<PathBuf>,
    has_results: bool,
}

impl SavedLines {
    /// Begins a file that must not exist yet with the line that names the command.
    pub(super) fn begin(path: &Path, command: &str, screen: &Screen) -> Result<Self> {
        let (writer, made) = create(path, screen)?;
        let mut saved = Self { writer: Some(writer), made, has_results: false };
        let start = json::start_line(command, Clock::default().now_ns(), &[]);
        match saved.line(&start) {
            Ok(()) => Ok(saved),
            Err(error) => {
                saved.end();
                Err(error).context("save the result in", path)
            }
        }
    }

    /// Writes a line of a result.
    pub(super) fn result(&mut self, line: &str) -> io::Result<()> {
        self.has_results = true;
        self.line(line)
    }

    /// Writes a line, so that a kill leaves it there.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let written = writeln!(writer, "{line}").and_then(|()| writer.flush());
        if written.is_err() {
            self.writer = None;
        }
        written
    }

    /// Takes away a file that holds no result: it would only be in the way of the next
    /// attempt. Returns false if not all is saved.
    pub(super) fn end(self) -> bool {
        if let Some(path) = self.made.filter(|_| !self.has_results) {
            fsure_os::path::remove(&path, false);
        }
        self.writer.is_some()
    }
}

/// Begins to save lines. A stream is written to; a file must not be there yet, and its
/// path is handed back.
pub(crate) fn create(
    path: &Path,
    screen: &Screen,
) -> Result<(Box<dyn Write + Send>, Option<PathBuf>)> {
    let doing = "save the result in";
    let Destination::File(file) = Destination::of(path).context(doing, path)? else {
        return Ok((Box::new(open_output(path, screen)?), None));
    };
    let output = fsure_os::user_file::create_new(&file).map_err(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return error;
        }
        let why = "it is there already, and no result is written over another one";
        io::Error::new(error.kind(), why)
    });
    Ok((Box::new(output.context(doing, path)?), Some(file)))
}
