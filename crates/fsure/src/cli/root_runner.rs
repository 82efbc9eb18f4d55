//! The parts that all commands over roots share: the paths given, each root's run and
//! report, and one exit code for all of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::report::last_word;
use crate::report::last_word::RootEnd;
use crate::report::metrics::{RootMetrics, metrics};
use crate::report::{RootPaths, json, text};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum, ValueHint};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Monitor, RelPath, Result, shell_quoted};
use fsure_core::{unless_reader_left, write_output};
use fsure_integrity::catalog::{RootLocation, locate, locate_folder, locate_record};
use fsure_integrity::model::{Outcome, ScanMonitor, Scopes, StopReason, Verdict};
use fsure_integrity::scan::{ContentSource, IoOptions};
use fsure_integrity::{Options, RecordAccess, UserConfig, age, nested_place};
use fsure_os::device::StorageDevice;
use fsure_os::output::Destination;
use fsure_os::root_dir::Root;

use super::OutputArgs;
use super::access_args::AllowedArgs;
use super::exclude_args::ExcludeArgs;
use super::headings::{HOW_TO_READ, OUTPUT, RECORD, WHAT_TO_READ};
use super::screen::{Screen, VerdictList};

/// Paths, and how to walk them.
#[derive(Clone, Args)]
pub(crate) struct RootArgs {
    /// Folders or files; each belongs to the nearest root above it that has a
    /// record [default: the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    exclude: ExcludeArgs,
    /// Include other file systems mounted below the root; `update` remembers it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", help_heading = WHAT_TO_READ,
          env = "FSURE_CROSS_FILE_SYSTEMS", hide_env_values = true,
          value_parser = BoolishValueParser::new())]
    cross_file_systems: Option<bool>,
    /// Read from the medium, or from memory what is there [default: verify
    /// reads from the medium, update from memory what is there]
    #[arg(long, alias = "from", value_enum, value_name = "WHERE", ignore_case = true,
          help_heading = HOW_TO_READ, env = "FSURE_READ_FROM", hide_env_values = true)]
    read_from: Option<ReadFrom>,
    /// Keep the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    allowed: AllowedArgs,
    /// Report paths that are ok, too
    #[arg(short = 'v', long, visible_alias = "verbose", help_heading = OUTPUT)]
    pub(crate) all: bool,
    #[command(flatten)]
    lists: ListArgs,
    /// True if the paths are folders whose records play no part.
    #[arg(skip)]
    are_folders: bool,
    /// True if no file of the paths is read, so that they may be on a disk that is not mounted.
    #[arg(skip)]
    are_records: bool,
    /// More paths, from a list.
    #[arg(skip)]
    listed: Option<Vec<PathBuf>>,
}

/// Lists of paths, on the command line.
#[derive(Clone, Args)]
struct ListArgs {
    /// Write the paths with this verdict to FILE, one a line; several verdicts are separated
    /// by commas, and '-' is standard output, which then has nothing else; can be repeated.
    /// FILE is replaced only if it is empty or such a list
    #[arg(id = "path_lists", long = "paths", value_name = "VERDICT=FILE")]
    wanted: Vec<VerdictList>,
    /// End each path of such a list with a NUL character, for 'xargs -0'
    #[arg(long, requires = "path_lists")]
    print0: bool,
}

/// A source that content is read from.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReadFrom {
    Medium,
    Cache,
}

impl RootArgs {
    /// The first folder or file that was asked for.
    pub(crate) fn first(&self) -> &Path {
        self.paths.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The same paths as folders whose records play no part.
    pub(crate) fn of_folders(&self) -> Self {
        Self { are_folders: true, ..self.clone() }
    }

    /// The same paths, of which only the records are read.
    pub(crate) fn of_records(&self) -> Self {
        Self { are_records: true, ..self.clone() }
    }

    /// The same, with the paths of a list.
    pub(crate) fn with_listed(&self, listed: Option<Vec<PathBuf>>) -> Self {
        Self { listed, ..self.clone() }
    }

    /// Returns true if the user has named any.
    pub(crate) fn has_paths(&self) -> bool {
        !self.paths.is_empty() || self.listed.is_some()
    }

    /// The same, or the roots that hold these paths if no other path is given.
    pub(crate) fn or_those_that_hold(&self, held: &[PathBuf]) -> Self {
        let mut args = self.clone();
        if !self.has_paths() && self.catalog.is_none() {
            let root = |path: &PathBuf| locate(path, None).map(|place| place.root).ok();
            let mut roots: Vec<_> =
                held.iter().map(|path| root(path).unwrap_or_else(|| path.clone())).collect();
            roots.sort_unstable();
            roots.dedup();
            args.paths = roots;
        }
        args
    }

    /// The options all jobs share. Reads what they name files for.
    pub(crate) fn options(
        &self,
        access: RecordAccess,
        effort: IoOptions,
        user: &UserConfig,
        monitor: &dyn Monitor,
    ) -> Result<Options> {
        self.exclude.refuse_expanded(&self.paths)?;
        Ok(Options {
            access,
            effort,
            signed_by: None,
            exclude: self.exclude.patterns(monitor)?,
            exclude_always: user.exclude.clone(),
            cross_file_systems: self.cross_file_systems,
            reads_from: self.read_from.map(|from| match from {
                ReadFrom::Medium => ContentSource::Medium,
                ReadFrom::Cache => ContentSource::Cache,
            }),
            backup_folders: user.backup.clone(),
            allowed: self.allowed.allowed(),
            report_ok: self.all || self.lists.wanted.iter().any(|list| list.wants(Verdict::Ok)),
            clock: Clock::default(),
        })
    }
}

/// A command over roots.
pub(crate) struct RootRunner<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a RootArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) screen: &'a Screen,
    /// Also gets the number of roots that its disk still has to serve, this one
    /// included.
    pub(crate) job: &'a Job<'a>,
    /// Options for the metrics of the run.
    pub(crate) metrics: &'a MetricsArgs,
}

/// Metrics, on the command line.
#[derive(Args)]
pub(crate) struct MetricsArgs {
    /// Write what was found to FILE, in the text format of Prometheus, for the
    /// textfile collector of its node exporter (FILE should end in .prom); '-' is
    /// standard output, behind the report
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", help_heading = OUTPUT,
          value_hint = ValueHint::FilePath)]
    metrics: Option<PathBuf>,
}

impl MetricsArgs {
    /// No metrics.
    pub(crate) const NONE: Self = Self { metrics: None };

    /// Returns true if they go to standard output, as the report does.
    fn are_behind_the_report(&self) -> bool {
        self.metrics.as_deref().is_some_and(Destination::is_standard_output)
    }

    /// Refuses metrics among lines of JSON.
    fn refuse_with_json(&self, json: bool) -> Result<()> {
        if !json || !self.are_behind_the_report() {
            return Ok(());
        }
        Err(Error::Usage {
            message: "'--json' and '--metrics -' cannot share standard output".to_owned(),
            hint: Some("write the metrics to a file: '--metrics FILE'".to_owned()),
        })
    }

    /// Refuses metrics of a selection: they would pass for those of the whole root.
    fn refuse_with_list(&self, args: &RootArgs) -> Result<()> {
        match (&self.metrics, &args.listed) {
            (Some(_), Some(_)) => Err(Error::Usage {
                message: "'--metrics' are of roots, and '--files-from' is for single paths"
                    .to_owned(),
                hint: Some("leave one of them out".to_owned()),
            }),
            _ => Ok(()),
        }
    }
}

/// The work of a command on one root; its second argument is the number of roots that
/// the disk still has to serve.
pub(crate) type Job<'a> =
    dyn Fn(&RootLocation, usize, &dyn ScanMonitor) -> Result<Outcome> + Sync + 'a;

/// The roots that are done, each with the order it was asked for in.
struct FinishedRoots {
    code: ExitCode,
    outcomes: Vec<(usize, String, Outcome)>,
    metrics: Vec<(usize, RootMetrics)>,
    ends: Vec<(usize, RootEnd)>,
}

impl RootRunner<'_> {
    /// Runs the job over every root that was asked for, and the roots found
    /// below them, and reports each. Roots on different disks are run at the
    /// same time. A root that fails does not keep the others from their turn.
    pub(crate) fn run(&self, check: &dyn Fn(&[RootLocation]) -> Result<()>) -> ExitCode {
        let screen = self.screen;
        let refused = self.metrics.refuse_with_json(self.output.json);
        if let Err(error) = refused.and_then(|()| self.metrics.refuse_with_list(self.args)) {
            return screen.end(screen.failed(&error));
        }
        let found = find(self.args, self.command).and_then(|places| {
            check(&places)?;
            screen.starts_on(&places);
            screen.write_lists(&self.args.lists.wanted, self.args.lists.print0)?;
            Ok(places)
        });
        let places = match found {
            Ok(places) => places,
            Err(error) => {
                screen.error(&error);
                let code = error.exit_code();
                return code.worse(self.write_metrics(self.args.not_run(code)));
            }
        };
        let is_one_of_several = places.len() > 1;
        let asked_roots = asked_roots(&places);
        let done = Mutex::new(FinishedRoots::default());
        match &mut by_disk(places)[..] {
            [group] => {
                self.run_group(std::mem::take(group), &asked_roots, is_one_of_several, &done);
            }
            groups => std::thread::scope(|scope| {
                for group in groups {
                    let (group, asked, done) = (std::mem::take(group), &asked_roots, &done);
                    scope.spawn(move || self.run_group(group, asked, true, done));
                }
            }),
        }
        let FinishedRoots { code, mut outcomes, metrics, mut ends } =
            done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let code = code.worse(self.end_lists());
        ends.sort_by_key(|(number, _)| *number);
        let ends = ends.into_iter().map(|(_, end)| end).collect();
        let has_failed = |(.., outcome): &(usize, String, Outcome)| {
            matches!(outcome.stopped, Some(StopReason::RecordFailed(_)))
        };
        // The code of an interrupted run says that its state is saved.
        let is_saved = !outcomes.iter().any(has_failed);
        let stopped = |code| screen.stop_requested().filter(|_| is_saved).unwrap_or(code);
        // Metrics come after the report if both go to standard output.
        let code = if self.metrics.are_behind_the_report() {
            print_last_word(ends, stopped(code), self.output, screen);
            stopped(code.worse(self.write_metrics(metrics)))
        } else {
            let code = stopped(code.worse(self.write_metrics(metrics)));
            print_last_word(ends, code, self.output, screen);
            code
        };
        if self.output.json && !outcomes.is_empty() {
            outcomes.sort_by_key(|(number, ..)| *number);
            let outcomes: Vec<_> =
                outcomes.into_iter().map(|(_, root, outcome)| (root, outcome)).collect();
            screen.print(&json::summary(self.command, &outcomes, code));
        }
        screen.end(code)
    }

    /// Ends the lists of paths; one that could not be written makes the run incomplete.
    fn end_lists(&self) -> ExitCode {
        match self.screen.end_lists() {
            Ok(()) => ExitCode::Clean,
            Err(error) => self.screen.failed(&error),
        }
    }

    /// Runs roots one after the other.
    fn run_group(
        &self,
        group: SameDiskRoots,
        asked_roots: &HashSet<PathBuf>,
        mut is_one_of_several: bool,
        done: &Mutex<FinishedRoots>,
    ) {
        let mut places = VecDeque::from(group);
        while let Some((number, place)) = places.pop_front() {
            let root = place.root.to_string_lossy().into_owned();
            let paths = self.screen.paths(&place);
            let task = self.screen.begin(paths.clone(), is_one_of_several);
            // A fault in one must not take the report of the others with it.
            let job = AssertUnwindSafe(|| (self.job)(&place, places.len() + 1, &task));
            let result = catch_unwind(job)
                .unwrap_or_else(|_| Err(Error::Internal("the run ended early".to_owned())));
            let metrics = self.metrics(&place, &root, &result, &task);
            let repeats_findings = task.has_lost_findings();
            drop(task);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.metrics.extend(metrics.map(|metrics| (number, metrics)));
            match result {
                Ok(outcome) => {
                    done.code = done.code.worse(outcome.exit_code());
                    let nested = outcome.nested_roots.iter().map(|path| nested_place(&place, path));
                    for nested in nested.rev().filter(|nested| !asked_roots.contains(&nested.root))
                    {
                        places.push_front((number, nested));
                    }
                    report(
                        (self.command, &paths),
                        &outcome,
                        repeats_findings,
                        self.output,
                        self.screen,
                    );
                    done.ends.push((number, RootEnd::of(&paths, &outcome)));
                    done.outcomes.push((number, root, Outcome { grave: Vec::new(), ..outcome }));
                }
                Err(error) => {
                    done.code = done.code.worse(error.exit_code());
                    self.screen.error(&error);
                    done.ends.push((number, RootEnd::failed(&paths, &error)));
                }
            }
            if self.screen.stop_requested().is_some() {
                let left = places.iter();
                let not_reached = left.map(|(number, place)| {
                    (*number, RootEnd::not_reached(&self.screen.paths(place)))
                });
                done.ends.extend(not_reached);
                break;
            }
            is_one_of_several |= !places.is_empty();
        }
    }

    /// Returns the metrics of one root; `None` if no metrics are wanted.
    fn metrics(
        &self,
        place: &RootLocation,
        root: &str,
        result: &Result<Outcome>,
        monitor: &dyn ScanMonitor,
    ) -> Option<RootMetrics> {
        self.metrics.metrics.as_ref()?;
        let code = match result {
            Ok(outcome) => outcome.exit_code(),
            Err(error) => error.exit_code(),
        };
        // The ages of the recorded files are reported as far as the record can be
        // read.
        let ages = age(place, &Clock::default(), monitor).ok();
        let outcome = result.as_ref().ok().cloned();
        // A part of a root has samples of its own.
        let path = place.root.join(fsure_os::path::from_bytes(place.scope.as_bytes()));
        let root = if place.scope.is_root() { root.into() } else { path.to_string_lossy().into() };
        Some(RootMetrics { root, outcome, ages, code })
    }

    /// Writes the metrics so that no reader ever finds half of them. A failed write
    /// is an error like any other.
    fn write_metrics(&self, mut roots: Vec<(usize, RootMetrics)>) -> ExitCode {
        let Some(file) = &self.metrics.metrics else { return ExitCode::Clean };
        roots.sort_by_key(|(number, _)| *number);
        // A sample that comes twice would cost the reader the whole file.
        let mut once: Vec<RootMetrics> = Vec::new();
        for (_, root) in roots {
            match once.iter_mut().find(|other| other.root == root.root) {
                Some(same) => same.code = same.code.worse(root.code),
                None => once.push(root),
            }
        }
        let text = metrics(self.command, Clock::default().now_s(), &once);
        let written = if Destination::is_standard_output(file) {
            let written = self.screen.results().write_all(text.as_bytes());
            let written = written.context("write", Path::new("standard output"));
            unless_reader_left(written, self.screen)
        } else {
            write_output(file, &text, self.screen)
        };
        match written {
            Ok(()) => ExitCode::Clean,
            Err(error) => self.screen.failed(&error),
        }
    }
}

impl Default for FinishedRoots {
    fn default() -> Self {
        Self { code: ExitCode::Clean, outcomes: Vec::new(), metrics: Vec::new(), ends: Vec::new() }
    }
}

/// Reports what a command did on one root. The gravest findings are repeated if their own
/// lines cannot be seen any more.
pub(crate) fn report(
    (command, paths): (&str, &RootPaths),
    outcome: &Outcome,
    repeats_findings: bool,
    output: &OutputArgs,
    screen: &Screen,
) {
    if output.json {
        let root = paths.root().to_string_lossy();
        screen.print(&json::root_summary(&root, command, outcome));
    } else if output.quiet {
        for sentence in text::beyond_findings(paths, outcome) {
            let sentence = sentence.replace("\n    ", " ");
            screen.warn(&format!("{}: {sentence}", paths.root().to_string_lossy()));
        }
    } else {
        let form = screen.summary_form();
        let report = text::summary(paths, command, outcome, form, repeats_findings);
        // Of a run that is not clean, the last line over all roots says how it ended.
        match outcome.exit_code() {
            ExitCode::Clean => screen.print_verdict(&report, ExitCode::Clean),
            _ => screen.print(&report),
        }
    }
}

/// Ends the report for a person on all roots of a command.
pub(crate) fn print_last_word(
    ends: Vec<RootEnd>,
    code: ExitCode,
    output: &OutputArgs,
    screen: &Screen,
) {
    if !output.json && !output.quiet {
        screen.print_verdict(&last_word::text(ends, code), code);
    }
}

/// Roots that are run one after the other, by their numbers.
type SameDiskRoots = Vec<(usize, RootLocation)>;

/// Roots with their numbers, those that share a disk together: to read two of
/// them at once would slow down both.
fn by_disk(places: Vec<RootLocation>) -> Vec<SameDiskRoots> {
    let mut groups: Vec<(Vec<StorageDevice>, SameDiskRoots)> = Vec::new();
    for (number, place) in places.into_iter().enumerate() {
        let device = Root::open(&place.root).map(|root| StorageDevice::of(&root, b""));
        // A root that cannot be opened is reported in its turn.
        let device = device.unwrap_or_else(|_| StorageDevice::unknown());
        let group = groups
            .iter_mut()
            .find(|(devices, _)| devices.iter().any(|other| other.shares_a_disk_with(&device)));
        match group {
            Some((devices, places)) => {
                devices.push(device);
                places.push((number, place));
            }
            None => groups.push((vec![device], vec![(number, place)])),
        }
    }
    groups.into_iter().map(|(_, places)| places).collect()
}

/// The paths that were asked for on the command line itself.
fn asked_for(args: &RootArgs) -> Vec<PathBuf> {
    match &args.listed {
        Some(_) if args.catalog.is_none() => args.paths.clone(),
        _ if args.paths.is_empty() => vec![PathBuf::from(".")],
        _ => args.paths.clone(),
    }
}

/// The roots that were asked for as a whole, so that each is run once if it lies in another.
pub(crate) fn asked_roots(places: &[RootLocation]) -> HashSet<PathBuf> {
    let whole = places.iter().filter(|place| place.scopes().is_root());
    whole.map(|place| place.root.clone()).collect()
}

/// Refuses a catalog without the folder that it is the record of, which it does not name.
/// `options` are those that the command needs in any case.
pub(crate) fn refuse_unknown_root(
    path: Option<&Path>,
    catalog: Option<&Path>,
    command: &str,
    options: &str,
) -> Result<()> {
    let Some(catalog) = catalog.filter(|_| path.is_none()) else { return Ok(()) };
    Err(Error::Usage {
        message: "'--catalog FILE' needs PATH: a catalog does not name the folder that it is the \
                  record of"
            .to_owned(),
        hint: Some(format!(
            "give that folder; if it is the current one: fsure {command} . --catalog {}{options}",
            shell_quoted(catalog)
        )),
    })
}

/// The roots that were asked for.
pub(crate) fn find(args: &RootArgs, command: &str) -> Result<Vec<RootLocation>> {
    let paths = asked_for(args);
    let path = args.paths.first().map(PathBuf::as_path);
    refuse_unknown_root(path, args.catalog.as_deref(), command, "")?;
    if args.catalog.is_some() && paths.len() > 1 {
        return Err(Error::Usage {
            message: "one catalog cannot hold several roots".to_owned(),
            hint: Some("with '--catalog FILE', give one PATH".to_owned()),
        });
    }
    if args.are_folders && paths.len() > 1 {
        return Err(Error::Usage {
            message: "one list cannot be of several folders".to_owned(),
            hint: Some("with '--against LIST', give one PATH".to_owned()),
        });
    }
    let find = |path: &PathBuf| match args.are_folders {
        true => locate_folder(path),
        false if args.are_records => locate_record(path, args.catalog.as_deref()),
        false => locate(path, args.catalog.as_deref()),
    };
    let places = paths.iter().map(find).collect::<Result<Vec<_>>>()?;
    match (&args.listed, places.first()) {
        (None, _) => Ok(places),
        (Some(listed), Some(place)) if args.catalog.is_some() => {
            Ok(vec![select(place.clone(), below_root(place, listed, command)?)])
        }
        (Some(listed), _) => Ok(places.into_iter().chain(hold(listed)?).collect()),
    }
}

/// Returns a place for `command`: all of it, or the listed paths in it alone.
pub(crate) fn select_listed(
    place: RootLocation,
    listed: Option<&[PathBuf]>,
    command: &str,
) -> Result<RootLocation> {
    let Some(listed) = listed else { return Ok(place) };
    let paths = below_root(&place, listed, command)?;
    match paths.iter().position(|path| !path.is_within(&place.scope)) {
        Some(number) => Err(not_below(&listed[number], &place.asked())),
        None => Ok(RootLocation { parts: Some(Scopes::of(paths)), ..place }),
    }
}

fn not_below(path: &Path, folder: &Path) -> Error {
    Error::Usage {
        message: format!("{} is not below {}", path.display(), folder.display()),
        hint: Some(
            "give the folder that holds all paths of the list as PATH, or leave this one out"
                .to_owned(),
        ),
    }
}

/// The listed paths, as paths below a root.
fn below_root(place: &RootLocation, listed: &[PathBuf], command: &str) -> Result<Vec<RelPath>> {
    let below = |path: &PathBuf| {
        let found = fsure_os::path::resolve(path).context("find", path)?;
        let rest = found.strip_prefix(&place.root).map_err(|_| not_below(path, &place.root));
        let scope = RelPath::from_bytes(fsure_os::path::bytes(rest?));
        refuse_inner_root(place, path, command)?;
        Ok(scope)
    };
    listed.iter().map(below).collect()
}

/// Refuses a path below another root: what is in that has its record there.
fn refuse_inner_root(place: &RootLocation, path: &Path, command: &str) -> Result<()> {
    // One that is gone may be recorded all the same.
    let Ok(inner) = locate(path, None) else { return Ok(()) };
    let is_outer = inner.root == place.root || !inner.root.starts_with(&place.root);
    if is_outer || !inner.is_recorded() {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!(
            "{} is in {}, which has a record of its own",
            path.display(),
            inner.root.display()
        ),
        hint: Some(format!(
            "leave it out of the list, and run '{}' for it",
            inner.command(command)
        )),
    })
}

/// The roots that hold the listed paths, each with those that it holds.
fn hold(listed: &[PathBuf]) -> Result<Vec<RootLocation>> {
    let mut places: Vec<(RootLocation, Vec<RelPath>)> = Vec::new();
    let mut numbers: HashMap<PathBuf, usize> = HashMap::new();
    for path in listed {
        let place = locate(path, None)?;
        let scope = place.scope.clone();
        let number = *numbers.entry(place.root.clone()).or_insert_with(|| {
            places.push((place, Vec::new()));
            places.len() - 1
        });
        places[number].1.push(scope);
    }
    Ok(places.into_iter().map(|(place, paths)| select(place, paths)).collect())
}

/// A place, for these paths in its root alone. One of them is as one that is given as PATH.
fn select(place: RootLocation, paths: Vec<RelPath>) -> RootLocation {
    let parts = Scopes::of(paths);
    match parts.is_one() {
        true => RootLocation { scope: parts.around(), parts: None, ..place },
        false => RootLocation { scope: RelPath::root(), parts: Some(parts), ..place },
    }
}

impl RootArgs {
    /// The metrics of a call that ran nothing: older metrics in the file must not
    /// pass for those of this call.
    fn not_run(&self, code: ExitCode) -> Vec<(usize, RootMetrics)> {
        let root = |path: &PathBuf| {
            let path = fsure_os::path::resolve(path).unwrap_or_else(|_| path.clone());
            RootMetrics { root: path.to_string_lossy().into(), outcome: None, ages: None, code }
        };
        asked_for(self).iter().map(root).enumerate().collect()
    }
}
