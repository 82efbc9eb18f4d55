//! `--save` of all commands that have it.

use std::path::{Path, PathBuf};

use clap::Args;
use fsure_core::Result;

use super::screen::Screen;

/// The file that keeps a result.
#[derive(Args)]
pub(crate) struct SaveArgs {
    /// Save the result in FILE, which must not be there yet, line by line as it
    /// comes; '-' is standard output, as '--json'
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl SaveArgs {
    /// The file, for a command that measures: it saves its lines by itself, which are results and
    /// not those of `--json`.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.save.as_deref()
    }

    /// Begins to save the lines of JSON of the command of this name.
    pub(crate) fn begin(&self, screen: &Screen, command: &str) -> Result<()> {
        screen.save(self.save.as_deref(), command)
    }
}
