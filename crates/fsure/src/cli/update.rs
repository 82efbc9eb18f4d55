//! `fsure update`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use fsure_core::{Algorithm, AlgorithmSet, Error, ExitCode, RelPath, Result, units};
use fsure_integrity::catalog::{RootLocation, locate};
use fsure_integrity::model::{MetadataField, MetadataFields, ScanMonitor, SidecarKind, Verdict};
use fsure_integrity::scan::Accept;
use fsure_integrity::{UpdateOptions, update};
use fsure_os::path::resolve;

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::choices::{digest, layout};
use super::headings::{RECORD, WHAT_TO_READ};
use super::io_args::EffortArgs;
use super::path_list::PathListArgs;
use super::root_runner::{MetricsArgs, RootArgs, RootRunner};

/// Record a checksum of every new and changed file
///
/// Reads files that are new or whose size, dates or inode have changed, and records
/// them. A file that differs from its record although its date does not explain it is
/// reported and never recorded, unless --accept names it.
#[derive(Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    roots: RootArgs,
    #[command(flatten)]
    list: PathListArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    access: AccessArgs,
    /// Read every file, also those whose size, dates and inode are as recorded
    #[arg(long, help_heading = WHAT_TO_READ)]
    full: bool,
    /// Digests to compute from now on, with commas between them [default: as before, at first
    /// blake3]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = digest(),
          ignore_case = true, help_heading = RECORD)]
    digest: Vec<Algorithm>,
    /// Metadata to record and compare from now on: mode, owner, acl, xattr,
    /// or none [default: as before, at first none]
    #[arg(long, value_name = "NAMES", value_parser = aspects, help_heading = RECORD)]
    meta: Option<MetadataFields>,
    /// Carrier of the record beside the catalog from now on: tree for none, folder
    /// for a file in each folder, xattr for an attribute of each file [default: as
    /// before, at first tree]
    #[arg(long, value_name = "LAYOUT", value_parser = layout(), ignore_case = true,
          help_heading = RECORD)]
    layout: Option<SidecarKind>,
    /// Make a record of the current folder if there is none of it
    #[arg(long, help_heading = RECORD)]
    new: bool,
    /// Record what is found at PATH or below it, whatever its verdict; can be
    /// repeated. Without another PATH, the roots that hold it are updated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = RECORD)]
    accept: Vec<PathBuf>,
    /// Forget what has been gone for AGE or longer, such as 90d; 0 for all that
    /// is gone [default: 1 year, once the record changes]
    #[arg(long, value_name = "AGE", value_parser = age, help_heading = RECORD)]
    forget: Option<Duration>,
    /// Record everything found, whatever its verdict
    #[arg(long, conflicts_with = "accept", help_heading = RECORD)]
    accept_all: bool,
}

fn age(text: &str) -> std::result::Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => units::age_option(text, "a time such as 12h or 90d, or 0"),
    }
}

fn aspects(names: &str) -> std::result::Result<MetadataFields, String> {
    if names == "none" {
        return Ok(MetadataFields::default());
    }
    MetadataFields::from_names(names).filter(|aspects| !aspects.is_empty()).ok_or_else(|| {
        let names: Vec<_> = MetadataField::ALL.into_iter().map(MetadataField::name).collect();
        format!("known are {}, or none", names.join(", "))
    })
}

/// A million new files are what an `update` is for: they are counted.
const HIDDEN: &[Verdict] = &[Verdict::New, Verdict::Ignored];

/// A dry run is for seeing which they are.
const HIDDEN_IN_DRY_RUN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &UpdateArgs, output: &OutputArgs) -> ExitCode {
    let hidden = if args.access.dry_run { HIDDEN_IN_DRY_RUN } else { HIDDEN };
    let screen = output.screen(args.roots.all, hidden);
    let effort = args.effort.effort(&output.user);
    let common = args.roots.options(args.access.access(), effort, &output.user, &screen);
    let read = common.and_then(|common| Ok((common, args.list.paths(&screen)?)));
    let (common, listed) = match read {
        Ok(read) => read,
        Err(error) => return screen.failed(&error),
    };
    let roots = args.roots.with_listed(listed).or_those_that_hold(&args.accept);
    let job = |place: &RootLocation, _, monitor: &dyn ScanMonitor| {
        let options = UpdateOptions {
            common: common.clone(),
            first_digests: output.user.digests,
            full: args.full,
            only_completes: false,
            digests: (!args.digest.is_empty()).then(|| AlgorithmSet::of(&args.digest)),
            meta: args.meta,
            layout: args.layout,
            accept: args.accepted(place),
            forget: args.forget,
        };
        if let Some(warning) = second_record(place, args.access.dry_run) {
            monitor.warn(&warning);
        }
        update(place, &options, monitor)
    };
    let run = RootRunner {
        command: "update",
        args: &roots,
        output,
        screen: &screen,
        job: &job,
        metrics: &args.metrics,
    };
    run.run(&|places| {
        args.check_accepted(places)?;
        args.check_new(places)
    })
}

/// Returns a warning if a record is begun elsewhere of a root that has one: it knows nothing of
/// before, and takes what is damaged by now for sound.
fn second_record(place: &RootLocation, is_dry_run: bool) -> Option<String> {
    let own = locate(&place.root, None).ok().filter(RootLocation::is_recorded)?;
    // The record of a folder above may know nothing of this one.
    if !own.scope.is_root() {
        return None;
    }
    (!place.is_inside() && !place.is_recorded()).then(|| {
        format!(
            "a second record {} in {}, which takes what is there now for sound; the one in {} knows \
             what was there before: {}",
            if is_dry_run { "would be begun" } else { "is begun" },
            place.catalog.display(),
            own.root.display(),
            own.command("verify")
        )
    })
}

impl UpdateArgs {
    /// Returns the part of one root that is accepted whatever its verdict.
    fn accepted(&self, place: &RootLocation) -> Accept {
        if self.accept_all {
            return Accept::All;
        }
        let below = self.accept.iter().filter_map(|path| {
            let path = resolve(path).ok()?;
            let rest = path.strip_prefix(&place.root).ok()?;
            Some(RelPath::from_bytes(fsure_os::path::bytes(rest)))
        });
        let below: Vec<_> = below.collect();
        if below.is_empty() { Accept::Nothing } else { Accept::Within(below) }
    }

    /// Refuses to make a record that was not asked for by the name of its root.
    fn check_new(&self, places: &[RootLocation]) -> Result<()> {
        let is_asked_for = self.new || self.roots.has_paths();
        match places.iter().find(|place| !is_asked_for && !place.is_recorded()) {
            None => Ok(()),
            Some(place) => {
                Err(Error::NoRecord { path: place.root.clone(), folder: place.root.clone() })
            }
        }
    }

    /// Refuses a path that no root of this call could hold.
    fn check_accepted(&self, places: &[RootLocation]) -> Result<()> {
        let is_held = |path: &PathBuf| {
            let path = resolve(path).unwrap_or_else(|_| path.clone());
            places.iter().any(|place| path.starts_with(&place.root))
        };
        match self.accept.iter().find(|path| !is_held(path)) {
            None => Ok(()),
            Some(path) => Err(Error::Usage {
                message: format!("--accept {} is below none of the roots", path.display()),
                hint: Some(
                    "it is a path from the current folder, as PATH is, and not one from the root"
                        .to_owned(),
                ),
            }),
        }
    }
}
