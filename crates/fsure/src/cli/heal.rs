//! `fsure heal`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::report::json;
use crate::report::last_word::RootEnd;
use clap::{Args, ValueHint};
use fsure_core::{Error, ExitCode, Result, shell_quoted};
use fsure_integrity::catalog::{OWN_CATALOG, OWN_FOLDER, RootLocation, locate};
use fsure_integrity::model::{Outcome, Verdict};
use fsure_integrity::{HealOptions, Options, RecordAccess, heal, nested_place};

use super::OutputArgs;
use super::access_args::{AccessArgs, AllowedArgs};
use super::exclude_args::ExcludeArgs;
use super::headings::RECORD;
use super::io_args::EffortArgs;
use super::path_list::PathListArgs;
use super::root_runner::{print_last_word, report, select_listed};
use super::screen::Screen;
use super::signed_by_args::SignedByArgs;

/// Repair damaged and lost files from copies that the record proves
///
/// Judges everything below PATH as verify does, and searches for a proven copy of
/// each damaged block and each lost file. Copies may be damaged, too: block by block,
/// only what the record proves is taken, from whichever copy has it. A file is healed
/// as a whole or left as it is. Edits, which have another date than recorded, are
/// never touched. A 'damaged-copy', which may be an edit, is replaced only if what is
/// there is kept. What is replaced is kept in '.fsure/replaced'. Without '--yes' it
/// reports what it would do.
#[derive(Args)]
#[command(mut_arg("files_from", |arg| arg.help("Heal the paths in FILE only, a line each, all of them \
    below PATH; '-' is standard input")))]
pub(crate) struct HealArgs {
    /// A folder or file; it belongs to the nearest root above it that has a
    /// record
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: PathBuf,
    #[command(flatten)]
    list: PathListArgs,
    /// A copy of PATH, which may be damaged elsewhere; can be repeated, and the first
    /// that has the wanted content is taken
    #[arg(long, value_name = "REPLICA", value_hint = ValueHint::AnyPath)]
    from: Vec<PathBuf>,
    /// Heal, rather than report what would be done
    #[arg(short = 'y', long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    access: AccessArgs,
    /// Write into damaged files, with a journal, rather than put new ones in
    /// their place: keeps hard links, inodes and flags
    #[arg(long)]
    in_place: bool,
    /// Do not keep what is replaced in '.fsure/replaced': it is gone then. A
    /// 'damaged-copy', which may be an edit, is left alone
    #[arg(long, alias = "altered")]
    no_keep: bool,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    allowed: AllowedArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    signed_by: SignedByArgs,
}

/// A missing file is named once, with what was done about it.
const HIDDEN: &[Verdict] = &[Verdict::Ignored, Verdict::New, Verdict::Touched, Verdict::Missing];

impl HealArgs {
    /// Returns the error with other advice if there is no record: to record the folder as it is
    /// now would record its damage.
    fn with_other_record(&self, error: Error) -> Error {
        // An empty folder is most likely a mount point, and heal would fill it.
        let is_empty = fsure_os::user_file::names(&self.path).is_ok_and(|names| names.is_empty());
        if !matches!(error, Error::NoRecord { .. }) || is_empty {
            return error;
        }
        if let Some(copy) = self.from.iter().find(|copy| !copy.exists()) {
            return Error::not_a_folder(copy, "name the folder of a copy");
        }
        let here = shell_quoted(&self.path);
        let recorded = self.from.iter().find(|copy| copy.join(OWN_CATALOG).is_file());
        let bring = |copy: &Path| {
            let own = shell_quoted(&copy.join(OWN_FOLDER));
            format!("'cp -r {own} {here}' brings it along, then run the same command again")
        };
        let hint = match (recorded, self.from.first()) {
            (Some(copy), _) => {
                format!("{} has one of the same files: {}", copy.display(), bring(copy))
            }
            (None, Some(copy)) => {
                let copied = shell_quoted(copy);
                format!(
                    "{} has none either, so nothing proves which of two files is sound. 'fsure \
                     compare {here} {copied}' shows which differ. If all of {} is sound, record it \
                     with 'fsure update {copied}'; {}",
                    copy.display(),
                    copy.display(),
                    bring(copy)
                )
            }
            (None, None) => format!(
                "heal puts back what a record proves. '--catalog FILE' names one that is kept \
                 elsewhere or was moved; without one, compare with a copy: 'fsure compare {here} \
                 COPY'. From now on, 'fsure update {here}' keeps a record"
            ),
        };
        Error::Reported { message: error.to_string(), hint: Some(hint), code: error.exit_code() }
    }
}

/// Runs the command.
pub(crate) fn run(args: &HealArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, HIDDEN);
    let options = match args.options(output, &screen) {
        Ok(options) => options,
        Err(error) => return screen.failed(&error),
    };
    let first = match args.place(&screen) {
        Ok(place) => place,
        Err(error) => return screen.failed(&error),
    };
    screen.starts_on(std::slice::from_ref(&first));
    let (mut code, mut outcomes, mut ends) = (ExitCode::Clean, Vec::new(), Vec::new());
    let mut left = VecDeque::from([(first, options)]);
    while let Some((place, options)) = left.pop_front() {
        let root = place.root.to_string_lossy().into_owned();
        let paths = screen.paths(&place).with_list(args.list.option().filter(|_| ends.is_empty()));
        match heal_one(&place, &options, !ends.is_empty(), &screen) {
            Ok((outcome, repeats_findings)) => {
                code = code.worse(outcome.exit_code());
                report(("heal", &paths), &outcome, repeats_findings, output, &screen);
                ends.push(RootEnd::of(&paths, &outcome));
                left.extend(nested(&place, &options, &outcome));
                outcomes.push((root, Outcome { grave: Vec::new(), ..outcome }));
            }
            Err(error) => {
                // Of a root below, nothing was asked by name.
                let is_first = outcomes.is_empty();
                let error = args.with_other_record(error);
                let missed = if is_first { error.exit_code() } else { ExitCode::Incomplete };
                code = code.worse(missed);
                screen.error(&error);
                ends.push(RootEnd::failed(&paths, &error));
            }
        }
        if screen.stop_requested().is_some() {
            break;
        }
    }
    let code = screen.stop_requested().unwrap_or(code);
    if output.json && !outcomes.is_empty() {
        screen.print(&json::summary("heal", &outcomes, code));
    }
    ends.extend(left.iter().map(|(place, _)| RootEnd::not_reached(&screen.paths(place))));
    print_last_word(ends, code, output, &screen);
    screen.end(code)
}

impl HealArgs {
    /// The place to heal, or the listed paths of it.
    fn place(&self, screen: &Screen) -> Result<RootLocation> {
        let listed = self.list.paths(screen)?;
        let place = locate(&self.path, self.catalog.as_deref())?;
        select_listed(place, listed.as_deref(), "heal")
    }

    fn options(&self, output: &OutputArgs, screen: &Screen) -> Result<HealOptions> {
        let access = RecordAccess { is_dry_run: !self.yes, ..self.access.access() };
        Ok(HealOptions {
            common: Options {
                access,
                signed_by: self.signed_by.signed_by(&output.user, access)?,
                exclude: self.exclude.patterns(screen)?,
                allowed: self.allowed.allowed(),
                effort: self.effort.effort(&output.user),
                backup_folders: output.user.backup.clone(),
                ..Options::default()
            },
            replicas: self.from.clone(),
            does: self.yes,
            in_place: self.in_place,
            discards_replaced: self.no_keep,
        })
    }
}

/// Heals one root. Returns true beside the outcome if its first grave finding cannot be seen
/// any more.
fn heal_one(
    place: &RootLocation,
    options: &HealOptions,
    is_one_of_several: bool,
    screen: &Screen,
) -> Result<(Outcome, bool)> {
    let task = screen.begin(screen.paths(place), is_one_of_several);
    let job = std::panic::AssertUnwindSafe(|| heal(place, options, &task));
    // A fault must not take the report of what was done before with it.
    let outcome = std::panic::catch_unwind(job)
        .unwrap_or_else(|_| Err(Error::Internal("the run ended early".to_owned())));
    outcome.map(|outcome| (outcome, task.has_lost_findings()))
}

/// Roots found below this one, each with what corresponds to it in the copies.
fn nested(
    place: &RootLocation,
    options: &HealOptions,
    outcome: &Outcome,
) -> Vec<(RootLocation, HealOptions)> {
    let corresponding = |path: &fsure_core::RelPath| {
        let rest = path.as_bytes().strip_prefix(place.scope.as_bytes()).unwrap_or_default();
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let replicas = options.replicas.iter();
        let replicas = replicas.map(|replica| replica.join(fsure_os::path::from_bytes(rest)));
        HealOptions { replicas: replicas.collect(), ..options.clone() }
    };
    let roots = outcome.nested_roots.iter();
    roots.map(|path| (nested_place(place, path), corresponding(path))).collect()
}
