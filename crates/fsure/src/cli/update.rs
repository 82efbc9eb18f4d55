//! `fsure update`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fsure_core::{Algorithm, AlgorithmSet, Error, ExitCode, RelPath, Result, units};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::{MetadataField, MetadataFields, ScanMonitor, SidecarKind, Verdict};
use fsure_integrity::scan::Accept;
use fsure_integrity::{UpdateOptions, update};
use fsure_os::path::resolve;

use super::OutputArgs;
use super::io_args::EffortArgs;
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
    effort: EffortArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Read every file, also those whose size, dates and inode are as recorded
    #[arg(long)]
    full: bool,
    /// Digests to compute from now on: blake3, sha256, sha512, sha1, md5,
    /// xxh128 [default: as before, at first blake3]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = algorithm)]
    digest: Vec<Algorithm>,
    /// Metadata to record and compare from now on: mode, owner, acl, xattr,
    /// or none [default: as before, at first none]
    #[arg(long, value_name = "NAMES", value_parser = aspects)]
    meta: Option<MetadataFields>,
    /// Carrier of the record beside the catalog from now on: tree for none, folder
    /// for a file in each folder, xattr for an attribute of each file [default: as
    /// before, at first tree]
    #[arg(long, value_name = "LAYOUT", value_parser = layout)]
    layout: Option<SidecarKind>,
    /// Make a record of the current folder if there is none of it
    #[arg(long)]
    new: bool,
    /// Record what is found at PATH or below it, whatever its verdict; can be
    /// repeated. Without another PATH, the roots that hold it are updated
    #[arg(long, value_name = "PATH")]
    accept: Vec<PathBuf>,
    /// Forget what has been gone for AGE or longer, such as 90d; 0 for all that
    /// is gone [default: 1 year, once the record changes]
    #[arg(long, value_name = "AGE", value_parser = age)]
    forget: Option<Duration>,
    /// Record everything found, whatever its verdict
    #[arg(long, conflicts_with = "accept")]
    accept_all: bool,
}

fn algorithm(name: &str) -> std::result::Result<Algorithm, String> {
    Algorithm::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Algorithm::RECORDED.into_iter().map(Algorithm::name).collect();
        format!("known are {}", names.join(", "))
    })
}

fn layout(name: &str) -> std::result::Result<SidecarKind, String> {
    SidecarKind::from_name(name).ok_or_else(|| {
        let names: Vec<_> = SidecarKind::ALL.into_iter().map(SidecarKind::name).collect();
        format!("known are {}", names.join(", "))
    })
}

fn age(text: &str) -> std::result::Result<Duration, String> {
    let age = if text == "0" { Some(Duration::ZERO) } else { units::parse_span(text) };
    age.ok_or_else(|| "a time such as 12h or 90d, or 0".to_owned())
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

/// Runs the command.
pub(crate) fn run(args: &UpdateArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    let roots = args.roots.or_those_that_hold(&args.accept);
    let job = |place: &RootLocation, _, monitor: &dyn ScanMonitor| {
        let options = UpdateOptions {
            common: args.roots.options(args.effort.effort(&output.user), &output.user),
            first_digests: output.user.digests,
            full: args.full,
            only_completes: false,
            digests: (!args.digest.is_empty()).then(|| AlgorithmSet::of(&args.digest)),
            meta: args.meta,
            layout: args.layout,
            accept: args.accepted(place),
            forget: args.forget,
        };
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
                hint: None,
            }),
        }
    }
}
