//! The frame of each measurement of `speed`: its first line, what its folders lie on, and its end
//! with the load by other programs, the exit code and the summary. It is the same whatever is
//! measured in between.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result};
use fsure_os::path as os_path;
use fsure_os::storage_stack::Stack;

use crate::environment::{self, NoiseMeter};
use crate::results::{
    Measurement, MeasurementMonitor, ResultHeader, ResultLine, ResultSummary, ResultTarget, VERSION,
};

/// A measurement under way.
pub(crate) struct SpeedRun<'a> {
    listener: &'a dyn MeasurementMonitor,
    began: Instant,
    noise: NoiseMeter,
    cores: usize,
}

impl<'a> SpeedRun<'a> {
    /// Begins to take the time and the load.
    pub(crate) fn begin(listener: &'a dyn MeasurementMonitor) -> Self {
        Self { listener, began: Instant::now(), noise: NoiseMeter::begin(), cores: 1 }
    }

    /// The time since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Reports the first line: the program, the machine, the targets and the settings.
    pub(crate) fn report_header(
        &mut self,
        (program, clock): (&str, &Clock),
        targets: &[&Path],
        setup: Vec<(String, String)>,
    ) {
        let machine = environment::machine();
        self.cores = machine.cores;
        self.listener.measured(&ResultLine::Result(ResultHeader {
            kind: Measurement::Speed,
            version: VERSION,
            program: program.to_owned(),
            started: environment::timestamp(clock),
            machine,
            targets: targets.iter().map(|path| ResultTarget::of(path)).collect(),
            setup,
        }));
    }

    /// Reports the layers that a target lies on, which name the drive.
    pub(crate) fn report_layers(&self, target: &str, stack: &Stack) {
        for layer in environment::layers(target, stack) {
            self.listener.measured(&ResultLine::Layer(layer));
        }
    }

    /// Reports the load and the summary. Returns the exit code: that of a run that was stopped
    /// before that of what was found, if that is no success.
    pub(crate) fn end(self, (measured, not_run): (u64, u64), found: Option<ExitCode>) -> ExitCode {
        let noise = self.noise.end();
        let advice = environment::advice(&noise, self.cores);
        advice.into_iter().for_each(|words| warn(self.listener, words));
        let incomplete = (measured == 0).then_some(ExitCode::Incomplete);
        let found = found.or(incomplete).unwrap_or(ExitCode::Clean);
        let code = self.listener.stop_requested().unwrap_or(found);
        self.listener.measured(&ResultLine::Summary(ResultSummary {
            seconds: self.began.elapsed().as_secs_f64(),
            noise,
            measured,
            not_run,
            exit_code: code.number(),
        }));
        code
    }
}

/// Reports what the user has to know about the figures.
pub(crate) fn warn(listener: &dyn MeasurementMonitor, words: String) {
    listener.measured(&ResultLine::Warning { words });
}

/// A path as the lines of a result name it.
pub(crate) fn target_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The paths that were named, without links in them. Refuses one that is named twice.
pub(crate) fn resolved_targets(targets: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let resolved = |path: &PathBuf| os_path::resolve(path).context("find", path);
    let paths = targets.iter().map(resolved).collect::<Result<Vec<_>>>()?;
    // A line names its target by text, so that two of one name are one.
    let is_twin = |place: usize| {
        paths[..place].iter().any(|path| target_text(path) == target_text(&paths[place]))
    };
    match (1..paths.len()).find(|place| is_twin(*place)) {
        None => Ok(paths),
        Some(place) => Err(Error::Usage {
            message: format!("{} is given twice", paths[place].display()),
            hint: Some("name each folder once; '--runs' measures it several times".to_owned()),
        }),
    }
}
