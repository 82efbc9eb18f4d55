//! `fsure report`.

use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fsure::report::chart::MADE_HERE;
use fsure::report::page::{Named, page};
use fsure::results::read_any;
use fsure::words::{Error, ExitCode, IoContext as _, Result};
use fsure_os::{path, plain};

use super::OutputArgs;

/// Draw stored results as one page that needs nothing else
///
/// What 'fsure speed' and 'fsure flush' saved, and what 'fsure verify --json',
/// 'update', 'scrub' and 'status' printed. Nothing is measured or read again.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Files of results
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// Write the page to FILE; only an older page is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write each chart to FOLDER, too, as an SVG file
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run() {
        Ok(()) => screen.end(ExitCode::Clean),
        Err(error) => {
            screen.error(&error);
            error.exit_code()
        }
    }
}

impl ReportArgs {
    fn run(&self) -> Result<()> {
        let results = self.results.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
        let report = page(&results).map_err(|error| Error::Internal(error.to_string()))?;
        let mut files = vec![(self.output.clone(), report.html)];
        if let Some(folder) = &self.svg {
            path::make_folder(folder).doing("make", folder)?;
            files.extend(report.charts.into_iter().map(|(name, svg)| (folder.join(name), svg)));
        }
        for (path, _) in &files {
            may_replace(path)?;
        }
        files.iter().try_for_each(|(path, text)| write(path, text))
    }
}

fn read(path: &Path) -> Result<Named> {
    let file = plain::open(path).doing("read", path)?;
    let content = read_any(BufReader::new(file))
        .map_err(|why| Error::UnreadableResult { path: path.to_owned(), why: why.to_string() })?;
    Ok(Named { file: path.to_string_lossy().into_owned(), content })
}

/// What we did not make may be somebody's only copy, a result for example.
fn may_replace(path: &Path) -> Result<()> {
    if !path::exists(path) {
        return Ok(());
    }
    let mut head = Vec::new();
    let file = plain::open(path).doing("read", path)?;
    file.take(256).read_to_end(&mut head).doing("read", path)?;
    if String::from_utf8_lossy(&head).contains(MADE_HERE) {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("{} is there and was not made by 'fsure report'", path.display()),
        hint: Some("name another file, or move that one away".to_owned()),
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = plain::Beside::create(path).doing("write", path)?;
    file.write_all(text.as_bytes()).doing("write", path)?;
    file.finish().doing("write", path)
}
