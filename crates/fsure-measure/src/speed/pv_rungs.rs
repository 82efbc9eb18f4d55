//! The founders' own line, `pv -faSs450m < /dev/zero`, ten times into each of their sinks:
//! nowhere, a folder on the disk, and folders in memory (`mounted_rungs`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fsure_os::{path as os_path, pv};

use super::rung::{
    MEMORY, MIB_PER_S, RunContext, RunResult, Rung, RungRun, RungUnavailable, Spec, Stopwatch,
};
use super::workspace::SpeedWorkspace;

/// The first word of their names, and the whole name of the one into the folder.
pub(super) const PV: &str = "pv";
/// The founders' ten runs.
pub(super) const RUNS: usize = 10;
/// Description of each.
pub(super) const MEASURED: &str = "pv -faSs450m < /dev/zero > FILE, a new file each time, timed from its start to its end and \
     not as it says itself";

/// Returns the rung into nowhere.
pub(super) fn void() -> Box<dyn Rung> {
    Box::new(PvVoid)
}

/// Returns the rung into a folder.
pub(super) fn folder(site: &Arc<SpeedWorkspace>) -> Box<dyn Rung> {
    Box::new(PvFolder { site: Arc::clone(site) })
}

/// Runs it once into a new file, which is gone afterwards.
pub(super) fn once(path: &Path, go: &RunContext<'_>) -> RunResult<RungRun> {
    let watch = Stopwatch::start(None);
    let written = pv::write(path, &|| go.check().is_ok());
    let run = watch.stop(pv::BYTES);
    os_path::remove(path, false);
    timed(run, written?, go)
}

/// A run with the time of `pv`, and not with the processor time, which is another process's.
fn timed(run: RungRun, took: Option<Duration>, go: &RunContext<'_>) -> RunResult<RungRun> {
    match took {
        Some(took) => Ok(RungRun { seconds: took.as_secs_f64(), cpu_s: None, ..run }),
        None => Err(go.check().err().unwrap_or(RungUnavailable::NoTime)),
    }
}

struct PvVoid;

impl Rung for PvVoid {
    fn spec(&self) -> Spec {
        Spec { name: format!("{PV} void"), target: MEMORY.to_owned(), unit: MIB_PER_S }
    }

    fn runs(&self) -> Option<usize> {
        Some(RUNS)
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let watch = Stopwatch::start(None);
        let took = pv::discard(&|| go.check().is_ok())?;
        timed(watch.stop(pv::BYTES), took, go)
    }

    fn measured(&self) -> String {
        "pv -faSs450m < /dev/zero > /dev/null, timed from its start to its end: no storage"
            .to_owned()
    }
}

struct PvFolder {
    site: Arc<SpeedWorkspace>,
}

impl Rung for PvFolder {
    fn spec(&self) -> Spec {
        self.site.spec(PV, MIB_PER_S)
    }

    fn runs(&self) -> Option<usize> {
        Some(RUNS)
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        self.site.require_free_space(pv::BYTES)?;
        let path = self.site.path().join(PV);
        let watch = Stopwatch::start(self.site.meter.as_ref());
        let run = once(&path, go)?;
        Ok(RungRun { device: watch.stop(pv::BYTES).device, ..run })
    }

    fn measured(&self) -> String {
        format!("{MEASURED}: zeros into the page cache, 450 MiB")
    }
}
