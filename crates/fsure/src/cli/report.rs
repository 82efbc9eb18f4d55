//! `fsure report`.

use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_core::{unless_reader_left, write_output};
use fsure_os::output::{Destination, STANDARD_OUTPUT};
use fsure_os::{path, user_file};
use fsure_report::chart::MADE_HERE;
use fsure_report::page::{Named, page};
use fsure_report::read_any;

use super::OutputArgs;
use super::screen::Screen;

/// Draw stored results as one page that needs nothing else
///
/// What 'fsure speed' and 'fsure flush' saved, and what 'fsure verify --json',
/// 'update', 'scrub' and 'status' printed. Nothing is measured or read again.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Files of results
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// Write the page to FILE ('-' is standard output); only an older page is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write each chart to FOLDER, too, as an SVG file
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(&screen) {
        Ok(()) => screen.end(ExitCode::Clean),
        Err(error) => {
            screen.error(&error);
            error.exit_code()
        }
    }
}

impl ReportArgs {
    fn run(&self, screen: &Screen) -> Result<()> {
        if self.svg.as_deref().is_some_and(|folder| folder == Path::new(STANDARD_OUTPUT)) {
            return Err(Error::Usage {
                message: "the charts are several files: '--svg' cannot be '-'".to_owned(),
                hint: Some("name a folder, './-' if it is to have that name".to_owned()),
            });
        }
        let results = self.results.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
        let report = page(&results).map_err(|error| Error::Internal(error.to_string()))?;
        let mut charts = Vec::new();
        if let Some(folder) = &self.svg {
            path::make_folder(folder).context("make", folder)?;
            let file = |(name, svg): (String, String)| (folder.join(name), svg);
            charts.extend(report.charts.into_iter().map(file));
        }
        let page = Some(&self.output).filter(|path| !Destination::is_standard_output(path));
        for path in page.into_iter().chain(charts.iter().map(|(path, _)| path)) {
            may_replace(path)?;
        }
        match page {
            Some(path) => write_output(path, &report.html, screen)?,
            None => {
                let written = screen.results().write_all(report.html.as_bytes());
                let written = written.context("write", Path::new("standard output"));
                unless_reader_left(written, screen)?;
            }
        }
        charts.iter().try_for_each(|(path, svg)| write_chart(path, svg))
    }
}

fn read(path: &Path) -> Result<Named> {
    let file = user_file::open(path).context("read", path)?;
    let content = read_any(BufReader::new(file))
        .map_err(|why| Error::UnreadableResult { path: path.to_owned(), why: why.to_string() })?;
    Ok(Named { file: path.to_string_lossy().into_owned(), content })
}

/// Refuses to replace a file that is not a page or chart of fsure's: it may be the only
/// copy of something, a result for example. Nothing of a stream is replaced.
fn may_replace(path: &Path) -> Result<()> {
    let Destination::File(file) = Destination::of(path).context("write", path)? else {
        return Ok(());
    };
    if !path::exists(&file) {
        return Ok(());
    }
    let mut head = Vec::new();
    let open = user_file::open_own(&file).context("read", path)?;
    open.take(256).read_to_end(&mut head).context("read", path)?;
    if String::from_utf8_lossy(&head).contains(MADE_HERE) {
        return Ok(());
    }
    Err(Error::FailedPrecondition {
        message: format!("{} is there and was not made by 'fsure report'", path.display()),
        hint: Some("name another file, or move that one away".to_owned()),
    })
}

/// Writes a chart to its own name, never through a link of that name.
fn write_chart(path: &Path, svg: &str) -> Result<()> {
    let write = || {
        let mut file = user_file::AtomicFile::create(path)?;
        file.write_all(svg.as_bytes())?;
        file.finish()
    };
    write().context("write", path)
}
