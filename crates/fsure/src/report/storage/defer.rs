//! `defer` in words and as JSON: what was deferred, and whether the bound held.

use std::time::Duration;

use fsure_os::defer::{Backend, Deferred};
use serde::Serialize;

use super::{command_code, duration, exit_and_signal, milliseconds, number};
use fsure_core::ExitCode;
use fsure_core::count;

/// Returns the exit code of the run, see `docs/defer.md`.
pub fn exit_code(done: &Deferred) -> ExitCode {
    if done.failure.is_some() {
        return ExitCode::Damage;
    }
    let asked = done.end.asked.and_then(ExitCode::of_signal);
    asked.unwrap_or_else(|| command_code(done.end.ended))
}

/// The report for a person.
pub fn text(done: &Deferred, longest: Duration) -> String {
    let how = match done.backend {
        Backend::Preload => "a preloaded library",
        Backend::Seccomp => "seccomp",
    };
    let mut text = format!(
        "Deferred: {} by {how}, {} waited, {} passed on to other file systems.\n\
         Flushed: {}, the longest {}; largest lag {} of {}.\n",
        number(done.deferred, "call", "calls"),
        count(done.waited),
        count(done.passed),
        number(done.flushes, "time", "times"),
        duration(done.longest_flush),
        duration(done.largest_lag),
        duration(longest),
    );
    if done.largest_lag > longest {
        text += "BOUND EXCEEDED: a flush took longer than all before it.\n";
    }
    match &done.failure {
        Some(why) => {
            text += &format!(
                "FLUSH FAILED: {why}. Writes acknowledged before can be lost; every call since \
                 then has failed ({}).\n",
                count(done.refused)
            );
        }
        None if done.deferred > 0 => text += "All of it is durable.\n",
        None => {}
    }
    text
}

/// Returns the warnings that are shown even if no report is wanted: a promise was broken.
pub fn warnings(done: &Deferred, longest: Duration) -> Vec<String> {
    let failed = done.failure.as_ref().map(|why| format!("a background flush failed: {why}"));
    let exceeded = (done.largest_lag > longest).then(|| {
        let (lag, longest) = (done.largest_lag.as_millis(), longest.as_millis());
        let (lag, longest) = (count(lag as u64), count(longest as u64));
        format!(
            "BOUND EXCEEDED: acknowledged writes became durable {lag} ms later, and not within \
             {longest} ms"
        )
    });
    failed.into_iter().chain(exceeded).collect()
}

#[derive(Serialize)]
struct DeferSummary<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    command: &'a str,
    backend: &'a str,
    max_loss_ms: f64,
    deferred: u64,
    waited: u64,
    passed: u64,
    refused: u64,
    flushes: u64,
    longest_flush_ms: f64,
    largest_lag_ms: f64,
    command_exit: Option<u8>,
    command_signal: Option<i32>,
    failure: Option<&'a str>,
    exit_code: u8,
}

/// The line for a program.
pub fn json_line(done: &Deferred, longest: Duration) -> String {
    let (command_exit, command_signal) = exit_and_signal(done.end.ended);
    let summary = DeferSummary {
        kind: "summary",
        command: "defer",
        backend: match done.backend {
            Backend::Preload => "preload",
            Backend::Seccomp => "seccomp",
        },
        max_loss_ms: milliseconds(longest),
        deferred: done.deferred,
        waited: done.waited,
        passed: done.passed,
        refused: done.refused,
        flushes: done.flushes,
        longest_flush_ms: milliseconds(done.longest_flush),
        largest_lag_ms: milliseconds(done.largest_lag),
        command_exit,
        command_signal,
        failure: done.failure.as_deref(),
        exit_code: exit_code(done).number(),
    };
    serde_json::to_string(&summary).expect("numbers and text under fixed names")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::process_tree::{CommandEnd, Ended};

    fn end(ended: Ended, asked: Option<i32>) -> CommandEnd {
        CommandEnd { ended, time: 2 * SECOND, asked }
    }

    fn done() -> Deferred {
        Deferred {
            backend: Backend::Preload,
            end: end(Ended::Code(7), None),
            deferred: 51_234,
            waited: 3,
            passed: 2,
            refused: 0,
            flushes: 41,
            longest_flush: Duration::from_micros(22_400),
            largest_lag: Duration::from_micros(523_900),
            failure: None,
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_report() {
        assert_eq!(
            text(&done(), SECOND),
            "Deferred: 51,234 calls by a preloaded library, 3 waited, 2 passed on to other file \
             systems.\n\
             Flushed: 41 times, the longest 22.4 ms; largest lag 524 ms of 1.0 s.\n\
             All of it is durable.\n"
        );
        let late = Deferred { largest_lag: 2 * SECOND, ..done() };
        assert!(text(&late, SECOND).contains("BOUND EXCEEDED"));
        assert!(warnings(&done(), SECOND).is_empty());
        let [warning] = &warnings(&late, SECOND)[..] else { panic!("one") };
        assert!(warning.contains("durable 2,000 ms later, and not within 1,000 ms"), "{warning}");
        let failed = Deferred { failure: Some("I/O error".to_owned()), ..done() };
        assert!(text(&failed, SECOND).contains("FLUSH FAILED: I/O error"));
        assert!(!text(&failed, SECOND).contains("on the medium"));
        assert_eq!(warnings(&failed, SECOND), ["a background flush failed: I/O error"]);
    }

    #[test]
    fn a_line() {
        assert_eq!(
            json_line(&done(), SECOND),
            "{\"type\":\"summary\",\"command\":\"defer\",\"backend\":\"preload\",\
             \"max_loss_ms\":1000.0,\"deferred\":51234,\"waited\":3,\"passed\":2,\"refused\":0,\"flushes\":41,\
             \"longest_flush_ms\":22.4,\"largest_lag_ms\":523.9,\"command_exit\":7,\
             \"command_signal\":null,\"failure\":null,\"exit_code\":7}"
        );
    }

    #[test]
    fn the_code_is_the_commands_unless_we_know_worse() {
        let code = |done: &Deferred| exit_code(done).number();
        assert_eq!(code(&done()), 7);
        assert_eq!(code(&Deferred { end: end(Ended::Signal(9), None), ..done() }), 137);
        assert_eq!(code(&Deferred { end: end(Ended::Code(7), Some(15)), ..done() }), 143);
        assert_eq!(code(&Deferred { end: end(Ended::Code(7), Some(2)), ..done() }), 130);
        assert_eq!(code(&Deferred { end: end(Ended::Code(7), Some(1)), ..done() }), 7);
        let failed = Some("I/O error".to_owned());
        assert_eq!(
            code(&Deferred { end: end(Ended::Code(7), Some(2)), failure: failed, ..done() }),
            3
        );
    }
}
