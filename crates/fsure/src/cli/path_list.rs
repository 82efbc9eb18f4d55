//! Options for a list of paths, in any number.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fsure_core::{Error, Monitor, Result, read_input, shell_quoted};

use super::headings::WHAT_TO_READ;
use fsure_integrity::catalog::OWN_FOLDER;

/// A list of paths, on the command line.
#[derive(Args)]
pub(crate) struct PathListArgs {
    /// Take the paths in FILE, too, a line each, as if each was given as PATH; '-' is standard
    /// input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          help_heading = WHAT_TO_READ)]
    files_from: Option<PathBuf>,
    /// The paths of '--files-from' end with a NUL byte, as 'find -print0' writes them
    #[arg(short = '0', long, requires = "files_from", help_heading = WHAT_TO_READ)]
    null: bool,
}

impl PathListArgs {
    /// The options as they were typed, for a command that is advised; `None` without a list.
    pub(crate) fn option(&self) -> Option<String> {
        let file = shell_quoted(self.files_from.as_ref()?);
        Some(format!("--files-from {file}{}", if self.null { " -0" } else { "" }))
    }

    /// Reads the list; `None` if none is given.
    pub(crate) fn paths(&self, monitor: &dyn Monitor) -> Result<Option<Vec<PathBuf>>> {
        let Some(file) = &self.files_from else { return Ok(None) };
        let bytes = read_input(file, monitor)?;
        let bad = |what: &str, hint: &str| {
            let message = format!("{} {what}", file.display());
            Err(Error::Usage { message, hint: Some(hint.to_owned()) })
        };
        if !self.null && bytes.contains(&0) {
            return bad("has NUL bytes in it, which no path has", "add '-0' if they end its paths");
        }
        let end = if self.null { b'\0' } else { b'\n' };
        let paths = bytes.split(|byte| *byte == end).filter(|path| !path.is_empty());
        let paths = paths.map(|path| fsure_os::path::from_bytes(path).into_owned());
        // 'find' names the files of the record, too, which no run judges.
        let is_own = |path: &PathBuf| path.iter().any(|part| part == OWN_FOLDER);
        let paths: Vec<_> = paths.filter(|path| !is_own(path)).collect();
        match paths.is_empty() {
            true => bad("names no path", "without '--files-from', PATH is judged as a whole"),
            false => Ok(Some(paths)),
        }
    }
}
