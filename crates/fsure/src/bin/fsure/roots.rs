//! What all commands over roots share: the paths given, each root's run and
//! report, and one exit code for all of them.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fsure::catalog::{Place, locate};
use fsure::job::{Options, nested_place};
use fsure::report::{json, text};
use fsure::scan::{Effort, From};
use fsure::words::{Error, ExitCode, Monitor as _, Outcome, Result, escape};

use super::OutputArgs;
use super::screen::Screen;

/// Paths, and how to walk them.
#[derive(Args)]
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
        }
    }
}

/// Runs a job over every root that was asked for, and the roots found below
/// them, and reports each. A root that fails does not keep the others from
/// their turn.
pub(crate) fn run_all(
    command: &str,
    args: &RootArgs,
    output: &OutputArgs,
    screen: &Screen,
    check: &dyn Fn(&[Place]) -> Result<()>,
    job: &dyn Fn(&Place) -> Result<Outcome>,
) -> ExitCode {
    let mut code = ExitCode::Clean;
    let mut done: Vec<(String, Outcome)> = Vec::new();
    let found = find(args).and_then(|places| check(&places).map(|()| places));
    let mut places = match found {
        Ok(places) => VecDeque::from(places),
        Err(error) => {
            screen.error(&error);
            return error.exit_code();
        }
    };
    while let Some(place) = places.pop_front() {
        let root = place.root.to_string_lossy().into_owned();
        screen.begin(&root);
        match job(&place) {
            Ok(outcome) => {
                code = code.worse(outcome.exit_code());
                let nested = outcome.nested_roots.iter().map(|path| nested_place(&place, path));
                for nested in nested.rev().filter(|nested| !args.names(nested)) {
                    places.push_front(nested);
                }
                report(command, &place, &root, &outcome, output, screen);
                done.push((root, Outcome { grave: Vec::new(), ..outcome }));
            }
            Err(error) => {
                code = code.worse(error.exit_code());
                screen.error(&error);
            }
        }
        if screen.stop_requested().is_some() {
            break;
        }
    }
    if let Some(stopped) = screen.stop_requested() {
        code = stopped;
    }
    if output.json && !done.is_empty() {
        screen.print(&json::summary(command, &done, code));
    }
    match screen.finish() {
        Ok(()) => code,
        Err(error) => {
            screen.warn(&format!("standard output failed, results were lost: {error}"));
            code.worse(ExitCode::Incomplete)
        }
    }
}

fn report(
    command: &str,
    place: &Place,
    root: &str,
    outcome: &Outcome,
    output: &OutputArgs,
    screen: &Screen,
) {
    if output.json {
        screen.print(&json::root_summary(root, command, outcome));
    } else if !output.quiet {
        let shown = escape(fsure_os::path::bytes(&place.root));
        screen.print(&text::summary(&shown, command, outcome));
    }
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
