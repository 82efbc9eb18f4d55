//! The time that is watched: until it is over, a command ends, or the listener wants an end.
//! Calls and intervals are reported meanwhile.

use std::io;
use std::time::Duration;

use fsure_core::{Clock, ElapsedTimer, ExitCode, Step};
use fsure_os::io_trace::Tracer;
use fsure_os::process_tree::CommandEnd;

use crate::monitor::{HotMonitor, Interval};
use crate::options::HotOptions;

/// Longest delay before a request to stop is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Longest delay before calls are taken from the kernel, which keeps some 95,000.
const LOG_SLICE: Duration = Duration::from_millis(50);

/// Duration of a watch, and its end.
pub(super) struct Watch {
    pub(super) seconds: f64,
    pub(super) command: Option<CommandEnd>,
    pub(super) ended_by: Option<ExitCode>,
    /// Number of calls that were logged; `None` without a log.
    pub(super) logged: Option<u64>,
}

/// Watches, and stops the tracer.
pub(super) fn watch(
    tracer: &mut Tracer,
    options: &HotOptions,
    listener: &dyn HotMonitor,
) -> io::Result<Watch> {
    let began = options.clock.watch();
    let mut reports = Reports::of(options, listener);
    let mut watch = Watch { seconds: 0.0, command: None, ended_by: None, logged: None };
    while !is_over(&watch, options, &began) {
        let slice = if reports.has_more_calls { Duration::ZERO } else { slice(options, &began) };
        if options.command.is_empty() {
            tracer.watch(slice)?;
            watch.ended_by = listener.stop_requested();
        } else {
            watch.command = tracer.watch_command(slice)?;
        }
        reports.take(tracer)?;
        if let Some(limit) = options.time_limit() {
            let share = began.elapsed().as_secs_f64() / limit.as_secs_f64();
            listener.under_way(&Step { what: "watching what programs read and write", share });
        }
    }
    watch.seconds = match &watch.command {
        Some(end) => end.time.as_secs_f64(),
        None => began.elapsed().as_secs_f64(),
    };
    tracer.stop();
    reports.take_rest(tracer);
    watch.logged = options.log.is_some().then_some(reports.logged);
    Ok(watch)
}

fn is_over(watch: &Watch, options: &HotOptions, began: &ElapsedTimer) -> bool {
    let is_late = options.time_limit().is_some_and(|limit| began.elapsed() >= limit);
    is_late || watch.command.is_some() || watch.ended_by.is_some()
}

fn slice(options: &HotOptions, began: &ElapsedTimer) -> Duration {
    let longest = if options.log.is_some() { LOG_SLICE } else { SLICE };
    let left = options.time_limit().map(|limit| limit.saturating_sub(began.elapsed()));
    left.map_or(longest, |left| left.min(longest))
}

/// Reports to the listener while it is watched.
struct Reports<'a> {
    options: &'a HotOptions,
    listener: &'a dyn HotMonitor,
    logged: u64,
    has_more_calls: bool,
    interval: ElapsedTimer,
}

impl<'a> Reports<'a> {
    fn of(options: &'a HotOptions, listener: &'a dyn HotMonitor) -> Self {
        let interval = options.clock.watch();
        Self { options, listener, logged: 0, has_more_calls: false, interval }
    }

    fn take(&mut self, tracer: &mut Tracer) -> io::Result<()> {
        self.has_more_calls = self.take_calls(tracer);
        let elapsed = self.interval.elapsed();
        if self.options.interval.is_some_and(|interval| elapsed >= interval) {
            self.interval = self.options.clock.watch();
            let seen = tracer.interval()?;
            self.listener.interval(&Interval {
                at_ns: Clock::default().now_ns(),
                seconds: elapsed.as_secs_f64(),
                folders: seen.folders,
                programs: seen.programs,
                lost: seen.lost,
            });
        }
        Ok(())
    }

    fn take_calls(&mut self, tracer: &mut Tracer) -> bool {
        let Some(filter) = &self.options.log else { return false };
        let mut calls = Vec::new();
        let has_more = tracer.take_calls(&mut |call| {
            if filter.matches(&call) {
                calls.push(call);
            }
        });
        self.logged += calls.len() as u64;
        if !calls.is_empty() {
            self.listener.calls(&calls);
        }
        has_more
    }

    fn take_rest(&mut self, tracer: &mut Tracer) {
        while self.take_calls(tracer) {}
    }
}
