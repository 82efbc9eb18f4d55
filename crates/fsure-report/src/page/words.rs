//! Words that all sections share: numbers with their nouns, dates, paths.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::outputs::StartMachine;
use fsure_core::{count, escape};

/// Said in place of a figure that there is none of.
pub(super) const NO_FIGURE: &str = "–";

/// `1 file`, `1,204 files`.
pub(super) fn number(amount: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(amount), if amount == 1 { one } else { many })
}

/// `1 file is`, `3 files are`.
pub(super) fn files_are(amount: u64) -> String {
    format!("{} {}", number(amount, "file", "files"), is_or_are(amount))
}

/// `is` of one, else `are`.
pub(super) fn is_or_are(amount: u64) -> &'static str {
    if amount == 1 { "is" } else { "are" }
}

/// The machine in a few words, by which the pictures of two can be told apart.
pub(super) fn machine_words(machine: &StartMachine) -> String {
    let StartMachine { system, processor, cores, virtualization } = machine;
    let kernel = system.as_ref().map(|system| match system.split_once(',') {
        Some((kernel, _)) => kernel.to_owned(),
        None => system.clone(),
    });
    let cores = cores.map(|cores| number(cores, "core", "cores"));
    let processor = processor.as_ref().map(|name| name.replace("(R)", "").replace("(TM)", ""));
    let words = [processor, cores, virtualization.clone(), kernel];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `2026-11-20 12:00:00` of RFC 3339 in UTC.
pub(super) fn date(rfc3339: &str) -> String {
    rfc3339.chars().take(19).collect::<String>().replace('T', " ")
}

/// The whole time, with the fraction of its second: `2026-11-20 12:00:00.5`.
pub(super) fn exact_date(rfc3339: &str) -> String {
    let text = rfc3339.trim_end_matches('Z').replace('T', " ");
    match text.split_once('.') {
        Some((whole, fraction)) => match fraction.trim_end_matches('0') {
            "" => whole.to_owned(),
            fraction => format!("{whole}.{fraction}"),
        },
        None => text,
    }
}

/// A path, exact where the bytes are known, and never anything that a reader's eye or a
/// browser would obey.
pub(super) fn path(text: &str, bytes: Option<&String>) -> String {
    let bytes = bytes.and_then(|bytes| BASE64.decode(bytes).ok());
    escape(bytes.as_deref().unwrap_or(text.as_bytes()))
}

/// Milliseconds with their unit.
pub(super) fn milliseconds(ms: f64) -> String {
    crate::chart::microseconds(ms * 1e3)
}

/// A percentage of a whole: `98 %`; nothing of nothing is all of it.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "100 %".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    // What is not all must not look like all.
    let share = if part < whole { share.min(99.9) } else { share };
    format!("{} %", (share * 10.0).floor() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(files_are(1), "1 file is");
        assert_eq!(files_are(1_204), "1,204 files are");
    }

    #[test]
    fn a_fraction_is_shown_where_there_is_one() {
        assert_eq!(exact_date("2026-11-20T12:00:00.500000000Z"), "2026-11-20 12:00:00.5");
        assert_eq!(exact_date("2026-11-20T12:00:00.000000000Z"), "2026-11-20 12:00:00");
        assert_eq!(exact_date("2026-11-20T12:00:00Z"), "2026-11-20 12:00:00");
    }

    #[test]
    fn a_part_never_looks_like_the_whole() {
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(5, 5), "100 %");
    }
}
