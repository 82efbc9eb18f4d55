//! Options of `hot`: the part of the machine that is watched, and the reports meanwhile.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fsure_core::Clock;
use fsure_os::io_trace::TraceSource;

use super::call_filter::CallFilter;

/// Options of [`hot`](crate::hot()).
#[derive(Clone, Debug)]
pub struct HotOptions {
    /// Folders that matter, with all that is below them; the whole machine where
    /// there are none.
    pub below: Vec<PathBuf>,
    /// Duration of the watch of all programs; `None` if only the listener ends it.
    pub span: Option<Duration>,
    /// The command that alone is watched, with all that it starts, until it ends; empty for
    /// all programs.
    pub command: Vec<OsString>,
    /// Source of the events; `None` for the best that is available.
    pub source: Option<TraceSource>,
    /// Single calls that are reported as they end; `None` for none.
    pub log: Option<CallFilter>,
    /// Time after which what was done since is reported, again and again; `None` for never.
    pub interval: Option<Duration>,
    /// Clock by which times are read.
    pub clock: Clock,
}

impl HotOptions {
    /// Returns the time after which the watch ends by itself; `None` beside a command, whose
    /// end ends it.
    pub(super) fn time_limit(&self) -> Option<Duration> {
        self.span.filter(|_| self.command.is_empty())
    }

    /// Returns the option that needs eBPF, as the user types it.
    pub(super) fn needs_ebpf(&self) -> Option<&'static str> {
        let log = self.log.is_some().then_some("--log");
        log.or(self.interval.is_some().then_some("--top"))
    }
}

impl Default for HotOptions {
    fn default() -> Self {
        Self {
            below: Vec::new(),
            span: Some(Duration::from_secs(30)),
            command: Vec::new(),
            source: None,
            log: None,
            interval: None,
            clock: Clock::default(),
        }
    }
}
