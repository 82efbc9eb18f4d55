//! `uncached` in words and as JSON: what the command kept of the page cache, and what a shortage
//! of memory took from other programs meanwhile.

use fsure_os::uncached::Uncached;
use serde::Serialize;

use super::{command_code, duration, exit_and_signal, milliseconds, number};
use fsure_core::units::size;

/// The report for a person, of a command that might have had `limit` bytes of page cache.
pub fn text(done: &Uncached, limit: u64) -> String {
    let mut text = String::from("Uncached: ");
    if let Some(io) = &done.io {
        text += &format!(
            "read {} ({} of it from storage), wrote {}, ",
            size(io.read),
            size(io.read_from_storage),
            size(io.written)
        );
    }
    text += &format!("in {}", duration(done.end.time));
    if let Some(peak) = done.peak {
        text += &format!("; at most {} of memory, its cache included", size(peak));
    }
    text += &format!(".\nPage cache: {} kept of {} allowed", size(done.kept), size(limit));
    if done.left > 0 {
        text += &format!(
            "; {} of the command still run, and their cache is given back when they end",
            number(done.left, "process", "processes")
        );
    }
    text += ".\nOthers: ";
    text += &match done.evicted {
        0 if done.outer_limit_hits > 0 => String::new(),
        0 => "memory was never short, so none of their pages were pushed out".to_owned(),
        evicted => format!(
            "memory was short meanwhile: at most {} were pushed out, by all programs together",
            size(evicted)
        ),
    };
    if done.outer_limit_hits > 0 {
        // What that took is not in the counters of the whole machine.
        text += if done.evicted > 0 { "; and " } else { "" };
        text += &format!(
            "a control group around the command was at its memory limit {}: what other programs \
             in it had in memory may have been pushed out",
            number(done.outer_limit_hits, "time", "times")
        );
    }
    if let Some(stalled) = done.stalled.filter(|time| !time.is_zero()) {
        text += &format!(".\nWaited for memory: {}", duration(stalled));
    }
    text + ".\n"
}

#[derive(Serialize)]
struct UncachedSummary<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    command: &'a str,
    limit: u64,
    bounded: bool,
    kept: u64,
    left: u64,
    evicted: u64,
    outer_limit_hits: u64,
    peak: Option<u64>,
    stalled_ms: Option<f64>,
    elapsed_ms: f64,
    bytes_read: Option<u64>,
    bytes_written: Option<u64>,
    storage_bytes_read: Option<u64>,
    storage_bytes_written: Option<u64>,
    command_exit: Option<u8>,
    command_signal: Option<i32>,
    exit_code: u8,
}

/// The line for a program.
pub fn json_line(done: &Uncached, limit: u64) -> String {
    let (command_exit, command_signal) = exit_and_signal(done.end.ended);
    let io = done.io.as_ref();
    let summary = UncachedSummary {
        kind: "summary",
        command: "uncached",
        limit,
        bounded: done.bounded,
        kept: done.kept,
        left: done.left,
        evicted: done.evicted,
        outer_limit_hits: done.outer_limit_hits,
        peak: done.peak,
        stalled_ms: done.stalled.map(milliseconds),
        elapsed_ms: milliseconds(done.end.time),
        bytes_read: io.map(|io| io.read),
        bytes_written: io.map(|io| io.written),
        storage_bytes_read: io.map(|io| io.read_from_storage),
        storage_bytes_written: io.map(|io| io.written_to_storage),
        command_exit,
        command_signal,
        exit_code: command_code(done.end.ended).number(),
    };
    serde_json::to_string(&summary).expect("numbers and text under fixed names")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fsure_core::units::{GIB, MIB};
    use fsure_os::process_tree::{CommandEnd, Ended};
    use fsure_os::uncached::Transferred;

    fn done() -> Uncached {
        Uncached {
            end: CommandEnd {
                ended: Ended::Code(7),
                time: Duration::from_millis(1_500),
                asked: None,
            },
            bounded: true,
            kept: 0,
            left: 0,
            evicted: 0,
            outer_limit_hits: 0,
            peak: Some(140 * MIB),
            stalled: Some(Duration::from_millis(12)),
            io: Some(Transferred {
                read: 3 * GIB,
                written: 4096,
                read_from_storage: 2 * GIB,
                written_to_storage: 8192,
            }),
        }
    }

    #[test]
    fn a_report() {
        assert_eq!(
            text(&done(), 128 * MIB),
            "Uncached: read 3.0 GiB (2.0 GiB of it from storage), wrote 4.0 KiB, in 1.5 s; at most \
             140.0 MiB of memory, its cache included.\n\
             Page cache: 0 B kept of 128.0 MiB allowed.\n\
             Others: memory was never short, so none of their pages were pushed out.\n\
             Waited for memory: 12.0 ms.\n"
        );
        let short =
            Uncached { evicted: 5 * MIB, left: 2, peak: None, stalled: None, io: None, ..done() };
        assert_eq!(
            text(&short, 128 * MIB),
            "Uncached: in 1.5 s.\n\
             Page cache: 0 B kept of 128.0 MiB allowed; 2 processes of the command still run, and \
             their cache is given back when they end.\n\
             Others: memory was short meanwhile: at most 5.0 MiB were pushed out, by all programs \
             together.\n"
        );
        let within = Uncached { outer_limit_hits: 3, io: None, ..done() };
        assert!(text(&within, MIB).contains("at its memory limit 3 times: what other programs"));
        let both = text(&Uncached { evicted: 5 * MIB, ..within }, MIB);
        let limit = "programs together; and a control group around the command was at its memory";
        assert!(both.contains(limit), "{both}");
    }

    #[test]
    fn a_line() {
        assert_eq!(
            json_line(&done(), MIB),
            "{\"type\":\"summary\",\"command\":\"uncached\",\"limit\":1048576,\"bounded\":true,\"kept\":0,\
             \"left\":0,\"evicted\":0,\"outer_limit_hits\":0,\"peak\":146800640,\"stalled_ms\":12.0,\
             \"elapsed_ms\":1500.0,\"bytes_read\":3221225472,\"bytes_written\":4096,\
             \"storage_bytes_read\":2147483648,\"storage_bytes_written\":8192,\
             \"command_exit\":7,\"command_signal\":null,\"exit_code\":7}"
        );
    }

    #[test]
    fn the_code_is_the_commands() {
        let code = |done: &Uncached| command_code(done.end.ended).number();
        assert_eq!(code(&done()), 7);
        assert_eq!(
            code(&Uncached { end: CommandEnd { ended: Ended::Signal(9), ..done().end }, ..done() }),
            137
        );
    }
}
