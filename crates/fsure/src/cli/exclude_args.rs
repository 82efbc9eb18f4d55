//! Options for patterns of what a run leaves out.

use std::path::{Path, PathBuf};

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
    /// Refuses a pattern that the shell replaced by the names of files: only the first of them is
    /// a pattern then, and the others are among `paths`.
    pub(crate) fn refuse_expanded(&self, paths: &[PathBuf]) -> Result<()> {
        for excluded in self.exclude.iter().map(Path::new).filter(|path| path.exists()) {
            // A pattern has no effect on a file that is named: such a line makes no sense.
            let is_beside = |path: &&PathBuf| {
                path.parent() == excluded.parent() && *path != excluded && path.is_file()
            };
            let Some(taken) = paths.iter().find(is_beside) else { continue };
            let pattern = excluded.extension().filter(|end| taken.extension() == Some(end));
            let pattern = pattern.map_or("*".into(), |end| format!("*.{}", end.display()));
            return Err(Error::Usage {
                message: format!(
                    "the shell has put the names of files in place of a pattern: {} is to be left \
                     out, and {} beside it would be looked at",
                    excluded.display(),
                    taken.display()
                ),
                hint: Some(format!("put the pattern in quotes: --exclude '{pattern}'")),
            });
        }
        Ok(())
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
