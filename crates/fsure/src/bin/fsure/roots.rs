//! What all commands over roots share: the paths given, each root's run and
//! report, and one exit code for all of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueEnum};
use fsure::catalog::{Place, locate};
use fsure::job::{Options, nested_place};
use fsure::report::{json, text};
use fsure::scan::{Effort, From};
use fsure::words::{Clock, Error, ExitCode, Monitor, Outcome, Result, escape};
use fsure_os::device::Device;
use fsure_os::folder::Root;

use super::OutputArgs;
use super::screen::Screen;

/// Paths, and how to walk them.
#[derive(Clone, Args)]
pub(crate) struct RootArgs {
    /// Folders or files; each belongs to the nearest root above it that has a
    /// record [default: the current folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Keep the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Leave out what fits GLOB, as in .gitignore; can be repeated, and is not
    /// remembered: for good, put it into .fsureignore or .fsure/config.toml
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Include other file systems mounted below the root; `update` remembers it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    cross_file_systems: Option<bool>,
    /// Read from the medium, or from memory what is there [default: verify
    /// reads from the medium, update from memory what is there]
    #[arg(long, value_enum, value_name = "WHERE")]
    from: Option<ReadFrom>,
    /// Go on although the root is another file system, empty or mostly missing
    #[arg(long)]
    force: bool,
    /// Report paths that are ok, too
    #[arg(long)]
    pub(crate) all: bool,
}

/// Where content is read from.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReadFrom {
    Medium,
    Cache,
}

impl RootArgs {
    /// The same paths, with a list in the place of a record.
    pub(crate) fn with_list(&self, list: &std::path::Path) -> Self {
        Self { catalog: Some(list.to_owned()), ..self.clone() }
    }

    /// The options all jobs share.
    pub(crate) fn options(&self, effort: Effort) -> Options {
        Options {
            effort,
            exclude: self.exclude.clone(),
            cross_file_systems: self.cross_file_systems,
            reads_from: self.from.map(|from| match from {
                ReadFrom::Medium => From::Medium,
                ReadFrom::Cache => From::Cache,
            }),
            force: self.force,
            tell_ok: self.all,
            clock: Clock::default(),
        }
    }
}

/// A command over roots.
pub(crate) struct Run<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a RootArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) screen: &'a Screen,
    /// Is also told how many roots its disk still has to serve, this one included.
    pub(crate) job: &'a Job<'a>,
}

/// What is done with one root.
pub(crate) type Job<'a> = dyn Fn(&Place, usize, &dyn Monitor) -> Result<Outcome> + Sync + 'a;

/// What has been done so far: outcomes with the order they were asked for in.
struct Done {
    code: ExitCode,
    outcomes: Vec<(usize, String, Outcome)>,
}

impl Run<'_> {
    /// Runs the job over every root that was asked for, and the roots found
    /// below them, and reports each. Roots on different disks are run at the
    /// same time. A root that fails does not keep the others from their turn.
    pub(crate) fn run(&self, check: &dyn Fn(&[Place]) -> Result<()>) -> ExitCode {
        let screen = self.screen;
        let found = find(self.args).and_then(|places| check(&places).map(|()| places));
        let places = match found {
            Ok(places) => places,
            Err(error) => {
                screen.error(&error);
                return error.exit_code();
            }
        };
        let done = Mutex::new(Done { code: ExitCode::Clean, outcomes: Vec::new() });
        match &mut by_disk(places)[..] {
            [group] => self.run_group(std::mem::take(group), false, &done),
            groups => std::thread::scope(|scope| {
                for group in groups {
                    let (group, done) = (std::mem::take(group), &done);
                    scope.spawn(move || self.run_group(group, true, done));
                }
            }),
        }
        let Done { code, mut outcomes } = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let code = screen.stop_requested().unwrap_or(code);
        if self.output.json && !outcomes.is_empty() {
            outcomes.sort_by_key(|(number, ..)| *number);
            let outcomes: Vec<_> =
                outcomes.into_iter().map(|(_, root, outcome)| (root, outcome)).collect();
            screen.print(&json::summary(self.command, &outcomes, code));
        }
        screen.end(code)
    }

    /// Runs roots one after the other.
    fn run_group(&self, group: Group, is_one_of_several: bool, done: &Mutex<Done>) {
        let mut places = VecDeque::from(group);
        while let Some((number, place)) = places.pop_front() {
            let root = place.root.to_string_lossy().into_owned();
            let task = self.screen.begin(root.clone(), is_one_of_several);
            // A fault in one must not take the report of the others with it.
            let job = AssertUnwindSafe(|| (self.job)(&place, places.len() + 1, &task));
            let result = catch_unwind(job)
                .unwrap_or_else(|_| Err(Error::Internal("the run ended early".to_owned())));
            drop(task);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(outcome) => {
                    done.code = done.code.worse(outcome.exit_code());
                    let nested = outcome.nested_roots.iter().map(|path| nested_place(&place, path));
                    for nested in nested.rev().filter(|nested| !self.args.names(nested)) {
                        places.push_front((number, nested));
                    }
                    self.report(&place, &root, &outcome);
                    done.outcomes.push((number, root, Outcome { grave: Vec::new(), ..outcome }));
                }
                Err(error) => {
                    done.code = done.code.worse(error.exit_code());
                    self.screen.error(&error);
                }
            }
            if self.screen.stop_requested().is_some() {
                break;
            }
        }
    }

    fn report(&self, place: &Place, root: &str, outcome: &Outcome) {
        if self.output.json {
            self.screen.print(&json::root_summary(root, self.command, outcome));
        } else if !self.output.quiet {
            let shown = escape(&fsure_os::path::bytes(&place.root));
            self.screen.print(&text::summary(&shown, self.command, outcome));
        }
    }
}

/// Roots that are run one after the other, by their numbers.
type Group = Vec<(usize, Place)>;

/// Roots with their numbers, those that share a disk together: to read two of
/// them at once would slow down both.
fn by_disk(places: Vec<Place>) -> Vec<Group> {
    let mut groups: Vec<(Vec<Device>, Group)> = Vec::new();
    for (number, place) in places.into_iter().enumerate() {
        let device = Root::open(&place.root).map(|root| Device::of(&root, b""));
        // One that cannot be opened will say so in its turn.
        let device = device.unwrap_or_else(|_| Device::unknown());
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

fn find(args: &RootArgs) -> Result<Vec<Place>> {
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    if args.catalog.is_some() && paths.len() > 1 {
        return Err(Error::Usage {
            message: "one catalog cannot hold several roots".to_owned(),
            hint: Some("with '--catalog FILE', give one PATH".to_owned()),
        });
    }
    paths.iter().map(|path| locate(path, args.catalog.as_deref())).collect()
}

impl RootArgs {
    /// Whether a root found below another was also asked for by name.
    fn names(&self, nested: &Place) -> bool {
        let named = self.paths.iter().filter_map(|path| fsure_os::path::resolve(path).ok());
        named.into_iter().any(|path| path == nested.root)
    }
}
