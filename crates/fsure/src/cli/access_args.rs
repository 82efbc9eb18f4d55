//! Options for the manner in which a run takes the record, and for going on although the root
//! may not be the recorded one.

use clap::Args;
use clap::builder::BoolishValueParser;
use fsure_integrity::RecordAccess;
use fsure_integrity::model::Allowed;

use super::headings::{NOT_THE_ROOT, RECORD};

/// End at once if another process works with the record.
#[derive(Clone, Copy, Args)]
pub(crate) struct NoWaitArgs {
    /// End with exit code 5, rather than wait, if another fsure works with the record
    #[arg(long, help_heading = RECORD, env = "FSURE_NO_WAIT", hide_env_values = true,
          value_parser = BoolishValueParser::new())]
    no_wait: bool,
}

/// The manner in which a run takes the record.
#[derive(Clone, Copy, Args)]
pub(crate) struct AccessArgs {
    /// Report what would be done, and write nothing: neither the record nor anything else
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    wait: NoWaitArgs,
}

impl NoWaitArgs {
    /// The same as plain data, for a run that is no dry run.
    pub(crate) fn access(self) -> RecordAccess {
        RecordAccess { is_dry_run: false, is_impatient: self.no_wait }
    }
}

impl AccessArgs {
    /// The same as plain data.
    pub(crate) fn access(self) -> RecordAccess {
        RecordAccess { is_dry_run: self.dry_run, ..self.wait.access() }
    }
}

/// Go on in a state that may mean that a medium is not mounted.
#[derive(Clone, Copy, Args)]
pub(crate) struct AllowedArgs {
    /// Go on although the root is empty, as a mount point is without its disk
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_empty: bool,
    /// Go on although the root is another file system than the recorded one
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_other_disk: bool,
    /// Go on although most of the recorded files are gone
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_missing: bool,
    /// All three
    #[arg(long, hide = true)]
    force: bool,
}

impl AllowedArgs {
    /// The same as plain data.
    pub(crate) fn allowed(self) -> Allowed {
        Allowed {
            empty: self.allow_empty || self.force,
            other_disk: self.allow_other_disk || self.force,
            missing: self.allow_missing || self.force,
        }
    }
}
