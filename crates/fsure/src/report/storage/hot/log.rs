//! A single call of `hot --log`, as a line of text or of JSON.

use std::borrow::Cow;

use fsure_core::units::{microseconds, size};
use fsure_core::{escape, json_path_and_bytes, safe};
use fsure_os::io_trace::LoggedCall;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::report::json::line;
use crate::report::timestamp;

/// The heads of the columns of [`call_texts`].
pub const LOG_HEAD: &str = concat!(
    "time             program                what    ",
    "call                  took        bytes  file; W: waited for the device",
);

/// A line of text for each call; no line end behind the last.
pub fn call_texts(calls: &[LoggedCall]) -> String {
    let zone = TimeZone::system();
    let lines: Vec<_> = calls.iter().map(|call| text(call, &zone)).collect();
    lines.join("\n")
}

fn text(call: &LoggedCall, zone: &TimeZone) -> String {
    let time = timestamp(call.began_ns).to_zoned(zone.clone()).strftime("%T%.6f").to_string();
    let who = format!("{}.{}", safe(&call.process.name), call.process.id);
    let took = call.ns.map_or_else(|| "-".to_owned(), |ns| microseconds(ns as f64 / 1e3));
    let waited = if call.is_waited { 'W' } else { ' ' };
    let bytes = call.bytes.map_or_else(|| "-".to_owned(), size);
    let file = match &call.path {
        Some(path) => escape(&fsure_os::path::bytes(path)),
        None => "-".to_owned(),
    };
    let (what, name) = (call.operation.name(), call.call);
    let error = call.error.map_or_else(String::new, |error| format!("  failed: {}", words(error)));
    format!(
        "{time}  {who:<21}  {what:<6}  {name:<16}  {took:>8} {waited} {bytes:>10}  {file}{error}"
    )
}

/// The system's words for an error.
fn words(error: i32) -> String {
    std::io::Error::from_raw_os_error(error).to_string()
}

#[derive(Serialize)]
struct CallLine<'a> {
    r#type: &'static str,
    time: String,
    program: Cow<'a, str>,
    process: u32,
    operation: &'static str,
    call: &'static str,
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    bytes: Option<u64>,
    took_ms: Option<f64>,
    waited: bool,
    error: Option<String>,
}

/// A line of JSON for each call; no line end behind the last.
pub fn call_lines(calls: &[LoggedCall]) -> String {
    let lines: Vec<_> = calls.iter().map(json).collect();
    lines.join("\n")
}

fn json(call: &LoggedCall) -> String {
    let path = call.path.as_deref().map(|path| json_path_and_bytes(&fsure_os::path::bytes(path)));
    let (path, path_bytes) = path.map_or((None, None), |(path, bytes)| (Some(path), bytes));
    line(&CallLine {
        r#type: "call",
        time: timestamp(call.began_ns).to_string(),
        program: Cow::Borrowed(&call.process.name),
        process: call.process.id,
        operation: call.operation.name(),
        call: call.call,
        path,
        path_bytes,
        bytes: call.bytes,
        took_ms: call.ns.map(|ns| ns as f64 / 1e6),
        waited: call.is_waited,
        error: call.error.map(words),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::io_trace::{LoggedOperation, ProcessIo};

    fn call() -> LoggedCall {
        LoggedCall {
            began_ns: 1_000_000_000_123_456,
            ns: Some(8_214_000),
            process: ProcessIo { name: "my\u{1b}sqld".to_owned(), id: 1234 },
            operation: LoggedOperation::Flush,
            call: "fsync",
            path: Some("/srv/a\u{1b}b".into()),
            bytes: None,
            error: None,
            is_waited: true,
        }
    }

    #[test]
    fn a_line_has_the_columns_of_its_head() {
        let done = text(&call(), &TimeZone::UTC);
        assert_eq!(
            done,
            "13:46:40.000123  my\\x1bsqld.1234        flush   fsync               8.2 ms W          -  \
             /srv/a\\x1bb"
        );
        let at = |words: &str, line: &str| line.find(words);
        assert_eq!(at("program", LOG_HEAD), at("my", &done));
        assert_eq!(at("what", LOG_HEAD), at("flush", &done));
        assert_eq!(at("call", LOG_HEAD), at("fsync", &done));
        assert_eq!(at("file", LOG_HEAD), at("/srv", &done));
        let failed =
            LoggedCall { path: None, ns: None, error: Some(28), is_waited: false, ..call() };
        let failed = text(&failed, &TimeZone::UTC);
        assert!(failed.contains("  -  failed: No space left on device"), "{failed}");
    }

    #[test]
    fn a_line_of_json_has_every_field() {
        let line: serde_json::Value = serde_json::from_str(&json(&call())).unwrap();
        assert_eq!(line["time"], "1970-01-12T13:46:40.000123456Z");
        assert_eq!((&line["process"], &line["took_ms"]), (&1234.into(), &8.214.into()));
        assert_eq!((&line["bytes"], &line["error"]), (&().into(), &().into()));
        assert_eq!(call_lines(&[call(), call()]).lines().count(), 2);
    }
}
