//! `--save` of the commands whose lines of JSON the screen prints.

use std::path::PathBuf;

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
    /// Begins to save the lines of the command of this name.
    pub(crate) fn begin(&self, screen: &Screen, command: &str) -> Result<()> {
        screen.save(self.save.as_deref(), command)
    }
}
