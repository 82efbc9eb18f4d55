//! Options for patterns of what a run leaves out.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fsure_core::{Error, Monitor, Result, read_input};
use fsure_integrity::tree::Patterns;

use super::headings::WHAT_TO_READ;

/// Patterns of the command line.
#[derive(Clone, Args)]
pub(crate) struct ExcludeArgs {
    /// Leave out what fits GLOB, as in .gitignore; can be repeated, and is not
    /// remembered: to exclude it permanently, put it into .fsureignore or
    /// .fsure/config.toml
    #[arg(long, value_name = "GLOB", help_heading = WHAT_TO_READ)]
    exclude: Vec<String>,
    /// Leave out what fits the patterns in FILE, a line each as in .gitignore; '-' is standard
    /// input; can be repeated, and is not remembered either
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          help_heading = WHAT_TO_READ, env = "FSURE_EXCLUDE_FROM", hide_env_values = true)]
    exclude_from: Vec<PathBuf>,
}

impl ExcludeArgs {
    /// The patterns that were typed.
    pub(crate) fn of_command_line(&self) -> &[String] {
        &self.exclude
    }

    /// The patterns of the files, and then those of the command line, which count before them.
    pub(crate) fn patterns(&self, monitor: &dyn Monitor) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for file in &self.exclude_from {
            let shown = file.display().to_string();
            let text = String::from_utf8(read_input(file, monitor)?);
            let text = text.map_err(|_| Error::Usage {
                message: format!("{shown} is not UTF-8 text"),
                hint: Some("name a file of patterns, a line each as in .gitignore".to_owned()),
            })?;
            let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
            let lines: Vec<_> = lines.map(str::to_owned).collect();
            Patterns::require_valid(&lines, &shown)?;
            all.extend(lines);
        }
        all.extend(self.exclude.iter().cloned());
        Ok(all)
    }
}
