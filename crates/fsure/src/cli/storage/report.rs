//! `fsure report`.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_core::{json_path_and_bytes, may_replace, safe, shell_quoted, units};
use fsure_core::{unless_reader_left, write_output};
use fsure_os::output::{Destination, STANDARD_OUTPUT};
use fsure_os::{input, path, user_file};
use fsure_report::chart::MADE_HERE;
use fsure_report::page::{Named, page};
use fsure_report::{Anonymous, read_any};
use serde_json::json;

use super::OutputArgs;
use super::screen::Screen;

/// Draw stored results as one page that needs nothing else
///
/// A result is what a command printed with '--json' or saved with '--save': verify, update,
/// scrub, status, heal, speed, flush, flush trace, compare, dupes, log, seal, recover,
/// protect, crash, powercut check, hot, defer, ram status, ram try. Two of speed or flush
/// are compared. Nothing is measured or read again.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Files of results; '-' is standard input
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// Write the page to FILE ('-' is standard output); only an older page is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write each chart to FOLDER, too, as an SVG file
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// Leave out names of machines and users, serial numbers and the folders above each root
    #[arg(long)]
    anonymous: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(output, &screen) {
        Ok(()) => screen.end(ExitCode::Clean),
        Err(error) => screen.failed(&error),
    }
}

impl ReportArgs {
    fn run(&self, output: &OutputArgs, screen: &Screen) -> Result<()> {
        if self.svg.as_deref().is_some_and(|folder| folder == Path::new(STANDARD_OUTPUT)) {
            return Err(Error::Usage {
                message: "the charts are several files: '--svg' cannot be '-'".to_owned(),
                hint: Some("name a folder, './-' if it is to have that name".to_owned()),
            });
        }
        let results = self.results.iter().map(|path| self.read(path, screen));
        let results = results.collect::<Result<Vec<_>>>()?;
        let report =
            page(&results, self.anonymous).map_err(|error| Error::Internal(error.to_string()))?;
        let mut charts = Vec::new();
        if let Some(folder) = &self.svg {
            path::make_folder(folder).context("make", folder)?;
            let file = |(name, svg): (String, String)| (folder.join(name), svg);
            charts.extend(report.charts.into_iter().map(file));
        }
        let page = Some(&self.output).filter(|path| !Destination::is_standard_output(path));
        for path in page.into_iter().chain(charts.iter().map(|(path, _)| path)) {
            may_replace(path, "a page or chart of 'fsure report'", &mut |file| is_made_here(file))?;
        }
        match page {
            Some(path) => write_output(path, &report.html, screen)?,
            None => {
                let written = screen.results().write_all(report.html.as_bytes());
                let written = written.context("write", Path::new("standard output"));
                unless_reader_left(written, screen)?;
            }
        }
        charts.iter().try_for_each(|(path, svg)| write_chart(path, svg))?;
        if let Some(page) = page.filter(|_| !output.quiet) {
            let bytes = report.html.len() as u64;
            screen.print(&match output.json {
                true => done_line(page, bytes, charts.len()),
                false => self.done(page, bytes, charts.len()),
            });
        }
        Ok(())
    }

    /// Says where the page is and how to see it.
    fn done(&self, page: &Path, bytes: u64, charts: usize) -> String {
        let mut text = format!("Page: {} ({})", safe(&page.to_string_lossy()), units::size(bytes));
        if let Some(folder) = &self.svg {
            text += &format!("\nCharts: {charts} in {}", safe(&folder.to_string_lossy()));
        }
        if let Some(url) = file_url(page) {
            text += &format!("\nOpen it in a browser: {url}");
        }
        text + "\n"
    }

    fn read(&self, path: &Path, screen: &Screen) -> Result<Named> {
        let name =
            if self.anonymous { path.file_name().unwrap_or_default().as_ref() } else { path };
        let file = match path == Path::new(input::STANDARD_INPUT) {
            true => "standard input".to_owned(),
            false => name.to_string_lossy().into_owned(),
        };
        let input = open(path, screen)?;
        let result = match self.anonymous {
            true => read_any(Anonymous::new(input)),
            false => read_any(input),
        };
        let why = |why: String| Error::UnreadableResult { path: path.to_owned(), why };
        Ok(Named { file, result: result.map_err(|error| why(error.to_string()))? })
    }
}

/// Opens a file of results. A stream is read to its end first, until the user stops it.
fn open(path: &Path, screen: &Screen) -> Result<Box<dyn BufRead>> {
    if path::is_folder(path) {
        return Err(Error::Usage {
            message: format!("{} is a folder, and a result is a file", path.display()),
            hint: Some(format!(
                "to verify it and make a page of that: fsure verify {} --json > v.json; fsure \
                 report v.json -o v.html",
                shell_quoted(path)
            )),
        });
    }
    if !input::is_stream(path) {
        return Ok(Box::new(BufReader::new(user_file::open(path).context("read", path)?)));
    }
    let copied = input::copy_stream(path, &|| screen.stop_requested().is_some());
    match screen.stop_requested() {
        Some(code) => Err(Error::Interrupted(code)),
        None => Ok(Box::new(BufReader::new(copied.context("read", path)?))),
    }
}

/// The address of a file, for a browser; `None` if the page has no file of its own.
fn file_url(page: &Path) -> Option<String> {
    let Ok(Destination::File(file)) = Destination::of(page) else { return None };
    let absolute = std::path::absolute(file).ok()?;
    let mut url = "file://".to_owned();
    for byte in path::bytes(&absolute).iter() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                url.push(char::from(*byte));
            }
            _ => url += &format!("%{byte:02X}"),
        }
    }
    Some(url)
}

/// The same for a program.
fn done_line(page: &Path, bytes: u64, charts: usize) -> String {
    let (page, page_bytes) = json_path_and_bytes(&path::bytes(page));
    let mut line = json!({
        "type": "summary", "command": "report", "page": page, "bytes": bytes, "charts": charts,
        "exit_code": 0,
    });
    if let Some(bytes) = page_bytes {
        line["page_bytes"] = bytes.into();
    }
    format!("{line}\n")
}

/// Returns true if a file is a page or chart of fsure's.
fn is_made_here(file: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let open = user_file::open_own(file).context("read", file)?;
    open.take(256).read_to_end(&mut head).context("read", file)?;
    Ok(String::from_utf8_lossy(&head).contains(MADE_HERE))
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
