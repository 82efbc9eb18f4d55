//! The product itself as a rung: `verify` over the file that the other rungs read,
//! with a record that lives as long as the measurement. Compared with the device, it
//! shows how far the product is from the limit, and what limits it.

use std::path::PathBuf;
use std::sync::Arc;

use super::Verifier;
use super::rung::{
    MIB_PER_S, RunContext, RunResult, Rung, RungRun, RungUnavailable, Spec, Stopwatch,
};
use super::workspace::SpeedWorkspace;
use crate::results::{Limit, Rung as Line};
use fsure_core::{Error, ExitCode, Monitor, Result, units};

/// The rung's name.
pub(super) const VERIFY: &str = "verify";

/// From this share of the device's rate on, in percent, it is the device that limits
/// `verify`: the rest is its beginning and its end.
const IS_THE_DEVICE: f64 = 85.0;

/// A hash that is slower than the device limits `verify` if that comes to this share
/// of the hash's own rate; otherwise something else does.
const HASH_SHARE: f64 = 0.5;

/// Length in seconds of a run in which the time before the first byte and after the
/// last is less than what the device may lack. That time was 40 ms (measured: 138 MiB
/// in 83 ms at 1.7 GB/s, 1 GiB of the same disk at 3.0 GB/s).
const LONG_ENOUGH_S: f64 = 0.25;

/// `verify` of a folder's file.
pub(super) struct Verify {
    site: Arc<SpeedWorkspace>,
    verifier: Arc<dyn Verifier>,
    catalog: PathBuf,
    direct_bytes: u64,
}

impl Verify {
    /// Of the file that the other rungs of the folder read.
    pub(super) fn new(site: &Arc<SpeedWorkspace>, verifier: &Arc<dyn Verifier>) -> Self {
        let catalog = site.path().join("catalog.db");
        let verifier = Arc::clone(verifier);
        Self { site: Arc::clone(site), verifier, catalog, direct_bytes: 0 }
    }
}

/// Passes on the request to stop, and nothing else.
struct SilentStop<'a, 'b>(&'a RunContext<'b>);

impl Monitor for SilentStop<'_, '_> {
    fn stop_requested(&self) -> Option<ExitCode> {
        self.0.check().is_err().then_some(ExitCode::Interrupted)
    }
}

/// Refuses a run that was not clean: it was stopped, or storage is so bad that there
/// is nothing to be measured.
fn require_clean(ended: Result<ExitCode>, go: &RunContext<'_>) -> RunResult<()> {
    go.check()?;
    match ended.map_err(|error: Error| RungUnavailable::NotHere(error.to_string()))? {
        ExitCode::Clean => Ok(()),
        code => Err(RungUnavailable::NotHere(format!(
            "a new file was read back with other content (exit code {}): check this disk before \
             anything else",
            code.number()
        ))),
    }
}

impl Rung for Verify {
    fn spec(&self) -> Spec {
        self.site.spec(VERIFY, MIB_PER_S)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        self.site.lay_out(go)?;
        let tree = self.site.tree();
        require_clean(self.verifier.record(&tree, &self.catalog, &SilentStop(go)), go)
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        self.site.open_stream(fsure_os::read::ReadMode::Direct)?.evict();
        let watch = Stopwatch::start(self.site.meter.as_ref());
        let verified = self.verifier.verify(&self.site.tree(), &self.catalog, &SilentStop(go));
        let run = watch.stop(self.site.size);
        self.direct_bytes = verified.as_ref().map_or(0, |verified| verified.direct_bytes);
        require_clean(verified.map(|verified| verified.exit_code), go)?;
        Ok(run)
    }

    fn measured(&self) -> String {
        let size = self.site.size;
        let way = match self.direct_bytes >= size {
            true => "past the page cache",
            false if self.site.is_memory() => "out of memory, where it lies",
            false => "partly through the page cache, as direct reads are refused here",
        };
        format!(
            "'fsure verify' of a file of {}: read {way}, hashed by blake3, judged, its date of \
             verification noted; with its beginning and its end",
            units::size(size)
        )
    }
}

/// Returns what limits `verify`, from the rungs of one folder and the hash's; `None`
/// without the rungs that this needs.
pub(super) fn limit(target: &str, lines: &[Line]) -> Option<Limit> {
    let of = |name: &str, target: &str| {
        lines.iter().find(|line| line.name == name && line.target == target)
    };
    let verify = of(VERIFY, target)?;
    let device = of("disk read direct", target)?;
    let memory = super::rung::MEMORY;
    let hash = of("hash blake3 all cores", memory).or_else(|| of("hash blake3", memory));
    let percent = 100.0 * verify.median / device.median;
    let is_slow_hash = hash.is_some_and(|hash| {
        hash.median <= device.median && verify.median >= HASH_SHARE * hash.median
    });
    let seconds = verify.amount as f64 / units::MIB as f64 / verify.median;
    let limit = if percent >= IS_THE_DEVICE {
        "the device"
    } else if seconds < LONG_ENOUGH_S {
        "its beginning and end"
    } else if is_slow_hash {
        "the hash"
    } else {
        "the cores"
    };
    Some(Limit {
        target: target.to_owned(),
        verify_mib_s: verify.median,
        device_mib_s: device.median,
        percent,
        limit: limit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, target: &str, median: f64) -> Line {
        Line {
            name: name.to_owned(),
            target: target.to_owned(),
            unit: MIB_PER_S.to_owned(),
            median,
            low: median,
            high: median,
            runs: 1,
            measured: String::new(),
            samples: vec![median],
            warm_up: Vec::new(),
            outliers: Vec::new(),
            amount: 450 << 20,
            cpu_s_per_gib: None,
            device_read_bytes: None,
            device_written_bytes: None,
            device_flushes: None,
        }
    }

    #[test]
    fn what_holds_verify_is_named() {
        let limit_of = |verify, device, hash| {
            let lines = [
                line(VERIFY, "/a", verify),
                line("disk read direct", "/a", device),
                line("hash blake3 all cores", "memory", hash),
            ];
            limit("/a", &lines).map(|limit| (limit.percent.round() as u64, limit.limit))
        };
        assert_eq!(limit_of(90.0, 100.0, 900.0), Some((90, "the device".to_owned())));
        assert_eq!(limit_of(70.0, 1000.0, 100.0), Some((7, "the hash".to_owned())));
        assert_eq!(limit_of(70.0, 100.0, 900.0), Some((70, "the cores".to_owned())));
        assert_eq!(limit_of(34.0, 100.0, 99.0), Some((34, "the cores".to_owned())));
        assert_eq!(
            limit_of(2000.0, 4000.0, 9000.0),
            Some((50, "its beginning and end".to_owned()))
        );
        assert_eq!(limit("/a", &[line(VERIFY, "/a", 1.0)]), None);
    }
}
