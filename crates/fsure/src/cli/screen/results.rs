//! Standard output for results that are not lines of a report: a list, a page,
//! metrics.

use std::io::{self, Write};

use fsure_core::{ExitCode, Monitor};

use super::{Screen, locked};

/// Standard output as a writer. What was printed before comes before it.
pub(crate) struct Results<'a>(&'a Screen);

impl Screen {
    /// Standard output for results that are not lines of a report.
    pub(crate) fn results(&self) -> Results<'_> {
        Results(self)
    }
}

impl Write for Results<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *locked(&self.0.spare_output) {
            Some(output) => output.write(bytes),
            None => locked(&self.0.output).writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *locked(&self.0.spare_output) {
            Some(output) => output.flush(),
            None => locked(&self.0.output).writer.flush(),
        }
    }
}

/// A listener outside the run of any root.
impl Monitor for Screen {
    fn warn(&self, message: &str) {
        Self::warn(self, message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        Self::stop_requested(self)
    }
}
