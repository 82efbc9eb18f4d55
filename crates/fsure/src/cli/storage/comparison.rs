//! `fsure speed compare` and `fsure flush compare`: saved results beside each other.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::report::storage::comparison as report;
use clap::Args;
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_measure::comparison::{StoredFile, compare};
use fsure_measure::results::{self, Measurement, StoredResult};

use super::OutputArgs;
use super::screen::Screen;

/// The saved results to compare.
#[derive(Args)]
pub(super) struct CompareArgs {
    /// Saved results, each to be held against the first; of a single one, its folders
    #[arg(value_name = "RESULT", required = true, value_hint = clap::ValueHint::FilePath)]
    results: Vec<PathBuf>,
}

impl CompareArgs {
    /// Compares results of this command.
    pub(super) fn run(
        &self,
        kind: Measurement,
        output: &OutputArgs,
        screen: &Screen,
    ) -> Result<ExitCode> {
        let read = |path: &PathBuf| Ok((path.to_string_lossy().into_owned(), read(path, kind)?));
        let all = self.results.iter().map(read).collect::<Result<Vec<_>>>()?;
        let files: Vec<_> = all.iter().map(|(file, stored)| StoredFile { file, stored }).collect();
        let compared = compare(kind, &files)?;
        screen.print(&match output.json {
            true => report::json_lines(&compared),
            false => report::text(&compared),
        });
        Ok(compared.exit_code())
    }
}

fn read(file: &Path, kind: Measurement) -> Result<StoredResult> {
    let open = fsure_os::user_file::open(file).context("read", file)?;
    let command = match kind {
        Measurement::Speed => "speed",
        Measurement::Flush => "flush",
    };
    results::read(BufReader::new(open)).map_err(|error| Error::Usage {
        message: format!("{}: {error}", file.display()),
        hint: Some(format!("'fsure {command} --save FILE' makes a result that can be compared")),
    })
}
