//! `--history` of `fsure hot` and `fsure hot advise`: what a recorder has stored.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fsure_core::{Clock, units};
use fsure_hot::HistoryOptions;

/// Folder of the store, unless the user names another one. The service has the same.
pub(super) const STORE: &str = "/var/lib/fsure/hot";

/// A stored history.
#[derive(Args)]
pub(super) struct HistoryArgs {
    /// Answer from what 'fsure hot record' has stored, and watch nothing
    #[arg(long, conflicts_with_all = ["span", "source", "command"])]
    history: bool,
    /// Time before now that matters, such as 7d [default: all that is stored]
    #[arg(long, value_name = "TIME", value_parser = age, requires = "history")]
    since: Option<Duration>,
    /// Folder of the store
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        default_value = STORE,
        requires = "history"
    )]
    store: PathBuf,
}

pub(super) fn age(text: &str) -> Result<Duration, String> {
    const FORM: &str = "a time such as 12h or 7d";
    let age = units::age_option(text, FORM)?;
    if age.is_zero() { Err(FORM.to_owned()) } else { Ok(age) }
}

impl HistoryArgs {
    /// Returns the options of a history of these folders; `None` if it is not asked for.
    pub(super) fn options(&self, below: &[PathBuf]) -> Option<HistoryOptions> {
        self.history.then(|| HistoryOptions {
            store: self.store.clone(),
            since: self.since,
            below: below.to_vec(),
            clock: Clock::default(),
        })
    }
}
