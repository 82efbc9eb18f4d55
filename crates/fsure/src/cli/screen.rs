//! The terminal as a listener, and the only place besides `cli/mod.rs` that
//! prints: results to standard output, progress and warnings to standard error.
//!
//! A reader who goes away (`fsure verify | head`) ends the output and not the
//! run: the record matters more than the listing. Nothing here panics on a
//! failed write, as `println!` would.

mod path_lists;
pub(crate) mod progress;
mod results;
mod saved_lines;
mod task;
#[cfg(feature = "storage")]
mod view;
mod wrap;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
#[cfg(feature = "storage")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::report::json::{self, StartRoot};
use crate::report::{RootPaths, text};
use clap::ValueEnum;
use fsure_core::safe;
use fsure_core::{Clock, Error, ExitCode, Result};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::{Finding, Verdict};
use fsure_os::output::{Destination, standard_output};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use path_lists::{PathLists, VerdictList};
use saved_lines::SavedLines;
#[cfg(feature = "storage")]
pub(crate) use saved_lines::create as create_saved;
pub(crate) use task::Task;
use wrap::wrap;
pub(super) use wrap::wrap_message;

/// Lines that a report takes at most below the findings, with the last command typed.
const REPORT_LINES: u64 = 16;

/// A setting for the colour of the verdict's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    Auto,
    /// Whatever the output is.
    Always,
    /// On no output.
    Never,
}

/// A setting for the progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A line that is drawn over and over on a terminal, else a line a minute.
    Auto,
    /// No line.
    Never,
    /// Lines of JSON among those of `--json`, with warnings.
    Json,
}

/// Settings for the content and the form of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenSettings {
    /// JSON lines in place of text.
    pub(crate) json: bool,
    /// Findings only.
    pub(crate) quiet: bool,
    /// The progress; none if `quiet`.
    pub(crate) progress: ProgressMode,
    /// The form of the counts.
    pub(crate) summary: text::SummaryForm,
    /// Colours.
    pub(crate) color: Color,
    /// Every finding, also those that are ok or hidden.
    pub(crate) all: bool,
    /// Verdicts that are counted in the summary but get no line of text,
    /// because there may be a million of them.
    pub(crate) hide: &'static [Verdict],
}

/// The terminal.
///
/// Locks are taken in one order: the live lines' own, then `output`.
pub(crate) struct Screen {
    settings: ScreenSettings,
    colored: bool,
    /// True if standard output is a terminal: then every line is shown at once, and
    /// the live lines make way for it.
    attended: bool,
    /// 0, or the number of the signal that asks the run to stop.
    stop: Arc<AtomicUsize>,
    /// The folder that the command was called in, if it is known.
    working_folder: Option<PathBuf>,
    output: Mutex<Output>,
    /// Standard output, if the lines go elsewhere.
    spare_output: Mutex<Option<BufWriter<Box<dyn Write + Send>>>>,
    /// Lists of paths that were asked for beside the report.
    lists: Mutex<PathLists>,
    /// The roots that the command works on.
    places: Mutex<Vec<RootLocation>>,
    errors: Mutex<Box<dyn Write + Send>>,
    /// True if standard error is a terminal.
    are_errors_attended: bool,
    /// The file of `--save`.
    saved: Mutex<Option<SavedLines>>,
    /// The live lines; `None` unless standard error is a terminal.
    live: Option<MultiProgress>,
    /// True once a view was drawn.
    #[cfg(feature = "storage")]
    has_view: AtomicBool,
}

/// A line that is drawn over and over, until it is dropped.
pub(crate) struct Live<'a> {
    all: &'a MultiProgress,
    line: ProgressBar,
}

impl Screen {
    /// The screen on this process's standard output and error. `stop` holds 0
    /// or the number of the signal that asks the run to end.
    pub(crate) fn new(settings: ScreenSettings, stop: Arc<AtomicUsize>) -> Self {
        let attended = io::stdout().is_terminal();
        let live = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let is_shown = !settings.quiet && settings.progress == ProgressMode::Auto;
        let live = (is_shown && !live.is_hidden()).then_some(live);
        let colored = match settings.color {
            Color::Auto => attended && terminal_wants_color(),
            Color::Always => true,
            Color::Never => false,
        };
        let (output, errors) = (standard_output(), Box::new(io::stderr()));
        let working_folder = std::env::current_dir().ok();
        let screen = Self::on(settings, colored, stop, output, errors);
        let are_errors_attended = io::stderr().is_terminal();
        Self { attended, are_errors_attended, live, working_folder, ..screen }
    }

    fn on(
        settings: ScreenSettings,
        colored: bool,
        stop: Arc<AtomicUsize>,
        output: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
    ) -> Self {
        Self {
            settings,
            colored,
            attended: false,
            stop,
            working_folder: None,
            output: Mutex::new(Output::on(output)),
            spare_output: Mutex::default(),
            places: Mutex::default(),
            lists: Mutex::default(),
            errors: Mutex::new(errors),
            are_errors_attended: false,
            saved: Mutex::default(),
            live: None,
            #[cfg(feature = "storage")]
            has_view: AtomicBool::new(false),
        }
    }

    /// Returns a root's paths as they are shown to the user who called the command.
    pub(crate) fn paths(&self, place: &RootLocation) -> RootPaths {
        RootPaths::of(place, self.working_folder.as_deref())
    }

    /// Sets the command that the first line of JSON names. Without one there is no such line.
    pub(crate) fn starts(&self, command: &str) {
        if self.settings.json {
            let time_ns = Clock::default().now_ns();
            let start = Start { command: command.to_owned(), time_ns, roots: Vec::new() };
            locked(&self.output).start = Some(start);
        }
    }

    /// Sets the roots that the first line of JSON names.
    pub(crate) fn starts_on(&self, places: &[RootLocation]) {
        places.clone_into(&mut locked(&self.places));
        let mut output = locked(&self.output);
        if let Some(start) = &mut output.start {
            start.roots = places.iter().map(start_root).collect();
        }
    }

    /// Prints the first line of JSON now: a program that the command runs prints next.
    pub(crate) fn print_start(&self) {
        let mut output = locked(&self.output);
        output.print_start();
        output.flush();
    }

    /// Sends the lines of JSON to another output than standard output.
    pub(crate) fn print_to(&self, output: Box<dyn Write + Send>) {
        let before = locked(&self.output).print_to(output);
        *locked(&self.spare_output) = Some(before);
    }

    /// Writes lists of paths beside the report. One on standard output has it for itself, and
    /// the report goes to standard error.
    pub(crate) fn write_lists(&self, wanted: &[VerdictList], ends_with_nul: bool) -> Result<()> {
        let spare = locked(&self.spare_output).take();
        let is_json = self.settings.json && spare.is_none();
        let mut lists = PathLists::open(wanted, (ends_with_nul, is_json), self)?;
        if lists.wants_standard_output() {
            let own = || locked(&self.output).print_to(Box::new(io::stderr()));
            lists.give_standard_output(spare.unwrap_or_else(own));
        }
        *locked(&self.lists) = lists;
        Ok(())
    }

    /// Puts the path of a finding on the lists that want it.
    fn list(&self, paths: &RootPaths, finding: &Finding) {
        locked(&self.lists).add(finding.verdict, || paths.typed_bytes(&finding.path));
    }

    /// Ends the lists of paths. The error is that of the first that could not be written.
    pub(crate) fn end_lists(&self) -> Result<()> {
        let lists = std::mem::take(&mut *locked(&self.lists));
        lists.end(self)
    }

    /// A root whose run begins now.
    pub(crate) fn begin(&self, paths: RootPaths, is_one_of_several: bool) -> Task<'_> {
        Task::new(self, paths, is_one_of_several)
    }

    /// Returns a live line; `None` without a terminal for it.
    pub(crate) fn live_line(&self) -> Option<Live<'_>> {
        let all = self.live.as_ref()?;
        Some(Live { all, line: all.add(live_line_on_stderr()) })
    }

    /// Prints a report: one line or several, with or without a line end; no line
    /// if it is empty.
    pub(crate) fn print(&self, report: &str) {
        if !report.is_empty() {
            self.put(report.trim_end_matches('\n'));
        }
    }

    /// Prints a report whose last sentence says how the run ended.
    pub(crate) fn print_verdict(&self, report: &str, code: ExitCode) {
        let report = report.trim_end_matches('\n');
        let color = match code {
            ExitCode::Clean => "32",
            ExitCode::Damage | ExitCode::RecordUntrusted | ExitCode::Internal => "31",
            _ => "33",
        };
        let mut lines: Vec<_> = report.lines().map(str::to_owned).collect();
        // A command keeps its form, or it would be broken, and be copied in parts.
        let sentence = lines.iter_mut().rfind(|line| !line.starts_with("    "));
        if let Some(sentence) = sentence.filter(|line| self.colored && !line.is_empty()) {
            *sentence = format!("\x1b[{color}m{sentence}\x1b[0m");
        }
        self.print(&lines.join("\n"));
    }

    /// The form of the counts that the user asked for.
    pub(crate) fn summary_form(&self) -> text::SummaryForm {
        self.settings.summary
    }

    /// Lines printed so far.
    fn lines_printed(&self) -> u64 {
        locked(&self.output).lines
    }

    /// Returns true if what was printed behind so many lines is above the top of the terminal
    /// by the time a report is printed.
    fn has_scrolled_away(&self, line: u64) -> bool {
        let since = self.lines_printed().saturating_sub(line) + REPORT_LINES;
        terminal_size(self.attended).is_some_and(|(_, rows)| since > u64::from(rows))
    }

    /// Prints the progress for a reader of a log.
    fn progress_line(&self, text: &str) {
        if !self.settings.quiet && self.settings.progress == ProgressMode::Auto {
            self.complain("fsure", text);
        }
    }

    /// Saves the lines of JSON in a file that must not exist yet, beginning with the one that
    /// names the command. Standard output is no such file: there they are printed.
    pub(crate) fn save(&self, path: Option<&Path>, command: &str) -> Result<()> {
        let file = path.filter(|path| !Destination::is_standard_output(path));
        let saved = file.map(|path| SavedLines::begin(path, command, self)).transpose()?;
        *locked(&self.saved) = saved;
        Ok(())
    }

    /// Reports a line of JSON: prints it if lines are asked for, and saves it.
    pub(crate) fn result_line(&self, line: &str) {
        let line = line.trim_end_matches('\n');
        if self.settings.json {
            self.print_now(line);
        }
        self.save_with(|saved| saved.result(line));
    }

    /// Returns true if lines of JSON are printed or saved.
    #[cfg(feature = "storage")]
    pub(crate) fn wants_result_lines(&self) -> bool {
        self.settings.json || locked(&self.saved).is_some()
    }

    /// Returns true if no more can be written to standard output, such as when the reader of a
    /// pipe has ended.
    #[cfg(feature = "storage")]
    pub(crate) fn has_lost_output(&self) -> bool {
        locked(&self.output).failure.is_some()
    }

    /// Returns the rows that a view may have; `None` if standard output is not a terminal.
    #[cfg(feature = "storage")]
    pub(crate) fn view_rows(&self) -> Option<usize> {
        terminal_size(self.attended).map(|(_, rows)| usize::from(rows).saturating_sub(1))
    }

    /// Draws a view in the place of the one before, or below it without a terminal.
    #[cfg(feature = "storage")]
    pub(crate) fn draw(&self, view: &str) {
        let Some((columns, rows)) = terminal_size(self.attended) else {
            return self.print_now(view);
        };
        let is_first = !self.has_view.swap(true, Ordering::Relaxed);
        let size = (usize::from(columns), usize::from(rows));
        let mut output = locked(&self.output);
        output.put(&view::drawn(view, size, is_first));
        output.flush();
    }

    fn save_with(&self, write: impl FnOnce(&mut SavedLines) -> io::Result<()>) {
        let written = locked(&self.saved).as_mut().map_or(Ok(()), write);
        if let Err(error) = written {
            self.warn(&format!("the result is no longer saved: {error}"));
        }
    }

    /// Ends the line of a program that writes to the same standard output: it might not have done
    /// so itself.
    #[cfg(feature = "storage")]
    pub(crate) fn end_output_of_program(&self) {
        // Lines of JSON that go elsewhere are not behind it.
        if locked(&self.spare_output).is_none() {
            self.print_now("\n");
        }
    }

    /// Prints a line of which the reader is not to wait for the next one.
    pub(crate) fn print_now(&self, line: &str) {
        self.print(line);
        locked(&self.output).flush();
    }

    /// Reports what ended the run and what to do now; with `--json` on standard
    /// output as well.
    pub(crate) fn error(&self, error: &Error) {
        self.complain("fsure", &error.to_string());
        let hint = error.hint_for(&|catalog| {
            let places = locked(&self.places);
            let place = places.iter().find(|place| place.catalog == catalog);
            place.map(|place| place.root.clone())
        });
        if let Some(hint) = &hint {
            self.complain("fsure: hint", hint);
        }
        let line = json::error_line(error, hint);
        if self.settings.json {
            self.put(&line);
        }
        self.save_with(|saved| saved.line(&line));
    }

    /// Reports what ended the run, as [`Self::error`] does, and returns its exit code.
    pub(crate) fn failed(&self, error: &Error) -> ExitCode {
        self.error(error);
        error.exit_code()
    }

    /// Writes out what is left. After an error, a reader lacks results that it wanted.
    fn finish(&self) -> io::Result<()> {
        let spare = locked(&self.spare_output).as_mut().map_or(Ok(()), BufWriter::flush);
        let mut output = locked(&self.output);
        output.flush();
        match output.failure.take().or(spare.err()) {
            Some(failure) if failure.kind() != io::ErrorKind::BrokenPipe => Err(failure),
            _ => Ok(()),
        }
    }

    /// Writes out what is left, and returns the exit code: that of the command,
    /// unless results were lost.
    pub(crate) fn end(&self, code: ExitCode) -> ExitCode {
        let is_saved = locked(&self.saved).take().is_none_or(SavedLines::end);
        let code = if is_saved { code } else { code.worse(ExitCode::Incomplete) };
        match self.finish() {
            Ok(()) => code,
            Err(error) => {
                self.warn(&format!(
                    "standard output failed, and a part of the report was lost: {error}"
                ));
                code.worse(ExitCode::Incomplete)
            }
        }
    }

    fn put(&self, line: &str) {
        if !self.attended {
            return locked(&self.output).line(line);
        }
        let width = terminal_size(true).filter(|_| !self.settings.json).map(|(width, _)| width);
        let wrapped = width.map(|width| {
            let lines: Vec<_> = line.lines().map(|line| wrap(line, usize::from(width))).collect();
            lines.join("\n")
        });
        self.beside_the_live_lines(|| {
            let mut output = locked(&self.output);
            output.line(wrapped.as_deref().unwrap_or(line));
            output.flush();
        });
    }

    fn complain(&self, who: &str, message: &str) {
        let line = format!("{who}: {}", safe(message));
        let line = match error_width().filter(|_| self.are_errors_attended) {
            Some(width) => wrap_message(&line, width),
            None => line,
        };
        self.beside_the_live_lines(|| {
            // If standard error fails, there is no output left to report it on.
            let _ = writeln!(locked(&self.errors), "{line}");
        });
    }

    fn beside_the_live_lines(&self, print: impl FnOnce()) {
        match &self.live {
            Some(live) => live.suspend(print),
            None => print(),
        }
    }

    /// Prints a report beside the output of another program, which has standard output.
    pub(crate) fn print_beside(&self, report: &str) {
        self.beside_the_live_lines(|| {
            let mut errors = locked(&self.errors);
            for line in report.lines() {
                // If standard error fails, there is no output left to report it on.
                let _ = writeln!(errors, "{}", safe(line));
            }
        });
    }

    /// Prints a note beside the output of another program.
    pub(crate) fn note(&self, message: &str) {
        self.complain("fsure", message);
    }

    /// Prints a warning that a person should see and that is not a verdict.
    pub(crate) fn warn(&self, message: &str) {
        self.complain("fsure: warning", message);
        if self.settings.json && self.settings.progress == ProgressMode::Json {
            self.put(&json::warning_line(message));
        }
    }

    /// The exit code to end with, once a signal has asked for that.
    pub(crate) fn stop_requested(&self) -> Option<ExitCode> {
        const SIGINT: usize = 2;
        match self.stop.load(Ordering::Relaxed) {
            0 => None,
            SIGINT => Some(ExitCode::Interrupted),
            _ => Some(ExitCode::Terminated),
        }
    }

    fn is_shown(&self, finding: &Finding) -> bool {
        let verdict = finding.verdict;
        let hidden = !self.settings.json && self.settings.hide.contains(&verdict);
        self.settings.all || finding.is_flagged() || (verdict != Verdict::Ok && !hidden)
    }

    fn paint(&self, line: String, verdict: Verdict) -> String {
        let word = verdict.name();
        match (color_of(verdict), line.strip_prefix(word)) {
            (Some(code), Some(rest)) if self.colored => format!("\x1b[{code}m{word}\x1b[0m{rest}"),
            _ => line,
        }
    }
}

impl Live<'_> {
    /// Draws this in its place.
    pub(crate) fn set_text(&self, text: String) {
        self.line.set_message(text);
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.line.finish_and_clear();
        self.all.remove(&self.line);
    }
}

/// Standard output, until a write to it fails.
struct Output {
    writer: BufWriter<Box<dyn Write + Send>>,
    failure: Option<io::Error>,
    /// The first line of JSON, until it is printed.
    start: Option<Start>,
    /// Lines printed.
    lines: u64,
}

/// The content of the first line of JSON.
struct Start {
    command: String,
    time_ns: i64,
    roots: Vec<StartRoot>,
}

fn start_root(place: &RootLocation) -> StartRoot {
    StartRoot {
        root: place.root.to_string_lossy().into_owned(),
        catalog: Some(&place.catalog)
            .filter(|catalog| !catalog.as_os_str().is_empty())
            .map(|catalog| catalog.to_string_lossy().into_owned()),
        generation: fsure_integrity::last_generation(place),
    }
}

impl Output {
    fn on(writer: Box<dyn Write + Send>) -> Self {
        let writer = BufWriter::with_capacity(1 << 16, writer);
        Self { writer, failure: None, start: None, lines: 0 }
    }

    /// Prints to another writer from now on, and returns the one before.
    fn print_to(&mut self, output: Box<dyn Write + Send>) -> BufWriter<Box<dyn Write + Send>> {
        std::mem::replace(&mut self.writer, BufWriter::new(output))
    }

    /// Prints the first line of JSON if it is not printed yet.
    fn print_start(&mut self) {
        if let Some(Start { command, time_ns, roots }) = self.start.take() {
            self.line(&json::start_line(&command, time_ns, &roots));
        }
    }

    fn line(&mut self, line: &str) {
        self.print_start();
        self.lines += 1 + line.matches('\n').count() as u64;
        if self.failure.is_none() {
            self.failure = writeln!(self.writer, "{line}").err();
        }
    }

    /// Writes text that does not end a line.
    #[cfg(feature = "storage")]
    fn put(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.writer.write_all(text.as_bytes()).err();
        }
    }

    fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.writer.flush().err();
        }
    }
}

/// Returns the columns and rows of the terminal; `None` without one.
fn terminal_size(attended: bool) -> Option<(u16, u16)> {
    let size = attended.then(|| terminal_size::terminal_size_of(io::stdout()))??;
    Some((size.0.0, size.1.0))
}

/// Returns the columns of the terminal that standard error is; `None` if it is not one.
pub(super) fn error_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// Returns the columns of the terminal that standard output is, or those of the variable
/// `COLUMNS`, which help goes by, too; `None` without either.
pub(super) fn help_width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stdout());
    let named = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    size.map(|(width, _)| usize::from(width.0)).or_else(named).filter(|width| *width > 0)
}

/// A line that is drawn over and over, cut to the width of the terminal.
fn live_line_on_stderr() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}").expect("a fixed template");
    ProgressBar::no_length().with_style(style)
}

fn terminal_wants_color() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Red for lost or doubtful content, yellow for what could not be judged or needs
/// attention, green for ok.
fn color_of(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Ok => Some("32"),
        Verdict::Rotten
        | Verdict::Altered
        | Verdict::DamagedCopy
        | Verdict::Mismatch
        | Verdict::Unreadable
        | Verdict::RecordBad => Some("31"),
        Verdict::Flaky
        | Verdict::Denied
        | Verdict::Busy
        | Verdict::Reverted
        | Verdict::TypeChanged
        | Verdict::Missing => Some("33"),
        Verdict::Touched | Verdict::Modified | Verdict::Moved | Verdict::New | Verdict::Ignored => {
            None
        }
    }
}

/// Locks a mutex; a panic elsewhere is not a reason to lose the rest of the output.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_core::{Monitor as _, RelPath};
    use fsure_integrity::model::{EntryKind, Progress, ScanMonitor as _};

    const PLAIN: ScreenSettings = ScreenSettings {
        json: false,
        quiet: false,
        progress: ProgressMode::Auto,
        summary: text::SummaryForm::Short,
        color: Color::Never,
        all: false,
        hide: &[Verdict::New],
    };

    /// Keeps what is written, and fails with the given error once there is one.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<(Vec<u8>, Option<io::ErrorKind>)>>);

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(locked(&self.0).0.clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut paper = locked(&self.0);
            if let Some(kind) = paper.1 {
                return Err(kind.into());
            }
            paper.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn screen(settings: ScreenSettings, colored: bool) -> (Screen, Paper, Paper) {
        let (output, errors) = (Paper::default(), Paper::default());
        let boxed = |paper: &Paper| Box::new(paper.clone());
        let screen = Screen::on(settings, colored, Arc::default(), boxed(&output), boxed(&errors));
        (screen, output, errors)
    }

    fn finding(path: &[u8], verdict: Verdict) -> Finding {
        Finding::bare(RelPath::from_bytes(path), EntryKind::Folder, verdict, None)
    }

    fn printed(settings: ScreenSettings, colored: bool) -> String {
        let (screen, output, _) = screen(settings, colored);
        let task = screen.begin(RootPaths::at("/r".as_ref()), false);
        for verdict in [Verdict::Ok, Verdict::New, Verdict::Rotten] {
            task.finding(&finding(b"a\n\x1b[31mb", verdict));
        }
        screen.finish().unwrap();
        output.text()
    }

    #[test]
    fn findings_are_chosen_and_escaped() {
        let name = "/r/a\\n\\x1b[31mb  folder\n";
        let rotten = format!("rotten       {name}");
        assert_eq!(printed(PLAIN, false), rotten);
        let all = format!("ok           {name}new          {name}{rotten}");
        assert_eq!(printed(ScreenSettings { all: true, ..PLAIN }, false), all);
        let colored = format!("\x1b[31mrotten\x1b[0m       {name}");
        assert_eq!(printed(PLAIN, true), colored);
        let json = printed(ScreenSettings { json: true, ..PLAIN }, true);
        let verdicts: Vec<_> = json.lines().map(|line| line.contains("\"new\"")).collect();
        assert_eq!(verdicts, [true, false], "hiding is for text only: {json}");
        assert!(json.contains(r#""root":"/r","path":"a\n\u001b[31mb""#), "{json}");
    }

    #[test]
    fn a_reader_that_left_is_not_an_error_and_a_full_disk_is() {
        for (kind, is_error) in
            [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)]
        {
            let (screen, output, _) = screen(PLAIN, false);
            screen.print("before\n");
            let task = screen.begin(RootPaths::at("/r".as_ref()), false);
            task.progress(&Progress::default(), None);
            locked(&output.0).1 = Some(kind);
            for _ in 0..10_000 {
                task.finding(&finding(b"x", Verdict::Rotten));
            }
            locked(&output.0).1 = None;
            screen.print("after");
            assert_eq!(screen.finish().is_err(), is_error, "{kind}");
            drop(task);
            drop(screen);
            assert_eq!(output.text().lines().next(), Some("before"));
            assert!(!output.text().contains("after"), "quiet after a failure");
        }
    }

    #[test]
    fn a_warning_names_its_root_if_there_are_several() {
        let (screen, output, errors) = screen(PLAIN, false);
        let task = screen.begin(RootPaths::at("/r\x1b".as_ref()), true);
        task.finding(&finding(b"a", Verdict::Rotten));
        task.warn("odd");
        drop(task);
        screen.finish().unwrap();
        assert_eq!(output.text(), "rotten       /r\\x1b/a  folder\n");
        assert_eq!(errors.text(), "fsure: warning: /r\\x1b: odd\n");
    }

    #[test]
    fn warnings_and_errors_cannot_break_out_either() {
        let (screen, output, errors) = screen(ScreenSettings { json: true, ..PLAIN }, false);
        screen.warn("odd\x1b[2J name a\\nb");
        screen.error(&Error::NoRecord { path: "/x\n".into(), folder: "/x\n".into() });
        screen.finish().unwrap();
        let errors = errors.text();
        let lines: Vec<_> = errors.lines().collect();
        assert_eq!(lines[0], "fsure: warning: odd\\x1b[2J name a\\nb");
        assert_eq!(lines[1], r"fsure: no record of $'/x\x0a'");
        assert!(lines[2].ends_with(r"fsure update $'/x\x0a'"), "{errors}");
        assert!(output.text().starts_with(r#"{"type":"error","#));
    }

    #[test]
    fn a_signal_asks_to_stop() {
        let stop = Arc::new(AtomicUsize::new(0));
        let sink = || Box::new(io::sink());
        let screen = Screen::on(PLAIN, false, stop.clone(), sink(), sink());
        for (signal, code) in
            [(0, None), (2, Some(ExitCode::Interrupted)), (15, Some(ExitCode::Terminated))]
        {
            stop.store(signal, Ordering::Relaxed);
            assert_eq!(screen.stop_requested(), code);
        }
    }
}
