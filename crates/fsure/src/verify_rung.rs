//! The product itself as a rung of the ladder of `speed`: `update` and `verify` over
//! the file that the other rungs read.

use std::path::Path;

use fsure_core::{ExitCode, Monitor, RelPath, Result};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::ScanMonitor;
use fsure_integrity::{Options, UpdateOptions, update, verify};
use fsure_measure::{Verified, Verifier};

/// The commands `update` and `verify` of this program.
#[derive(Clone, Copy, Debug)]
pub struct OwnVerifier;

impl Verifier for OwnVerifier {
    fn record(&self, tree: &Path, catalog: &Path, monitor: &dyn Monitor) -> Result<ExitCode> {
        let options = UpdateOptions::default();
        let outcome = update(&location(tree, catalog), &options, &StopOnly(monitor))?;
        Ok(outcome.exit_code())
    }

    fn verify(&self, tree: &Path, catalog: &Path, monitor: &dyn Monitor) -> Result<Verified> {
        let options = Options::default();
        let outcome = verify(&location(tree, catalog), &options, &StopOnly(monitor))?;
        Ok(Verified { exit_code: outcome.exit_code(), direct_bytes: outcome.bytes.direct })
    }
}

fn location(tree: &Path, catalog: &Path) -> RootLocation {
    RootLocation {
        root: tree.to_owned(),
        catalog: catalog.to_owned(),
        scope: RelPath::root(),
        parts: None,
    }
}

/// Passes on the request to stop, and nothing else.
struct StopOnly<'a>(&'a dyn Monitor);

impl Monitor for StopOnly<'_> {
    fn stop_requested(&self) -> Option<ExitCode> {
        self.0.stop_requested()
    }
}

impl ScanMonitor for StopOnly<'_> {}
