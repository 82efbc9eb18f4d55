//! Bytes, rates and spans of time as icj prints them, because people compare
//! reports over the years.

use std::time::Duration;

/// Bytes that a drive writes atomically.
pub const SECTOR_BYTES: usize = 512;
/// Bytes in one MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in one GiB.
pub const GIB: u64 = 1 << 30;

/// A size for a person: exact below 1 KiB, else one decimal: `904.0 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "";
    for next in UNITS {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// MiB per second; 0 if no time has passed.
pub fn mib_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / MIB as f64 / seconds } else { 0.0 }
}

/// A span as `MM:SS`, from an hour on `H:MM:SS`, from a day on `D days H:MM:SS`.
pub fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (days, hours) = (whole / 86_400, whole / 3_600 % 24);
    let (minutes, seconds) = (whole / 60 % 60, whole % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes:02}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (1, _) => format!("1 day {hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} days {hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A latency for a person, from microseconds: `16.7 us`, `840 us`, `21.7 ms`.
pub fn microseconds(us: f64) -> String {
    match us {
        us if us < 99.95 => format!("{us:.1} us"),
        us if us < 999.5 => format!("{us:.0} us"),
        us if us < 99_950.0 => format!("{:.1} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// A size as people write it: `500B`, `64K`, `1.5GiB` in powers of 1024, `2MB`
/// in powers of 1000, and `0`. `None` for anything else, a bare number too, and for 2^64
/// bytes or more.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    if unit.is_empty() && number != 0.0 {
        return None;
    }
    let unit = unit.to_ascii_uppercase();
    let power = |letter: &str| {
        Some(["", "K", "M", "G", "T", "P"].iter().position(|l| *l == letter)? as i32)
    };
    let factor = match unit.strip_suffix('B') {
        Some(unit) => match unit.strip_suffix('I') {
            Some(letter) => 1024_f64.powi(power(letter).filter(|power| *power > 0)?),
            None => 1000_f64.powi(power(unit)?),
        },
        None => 1024_f64.powi(power(&unit)?),
    };
    let bytes = (number * factor).round();
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// A span of time as people write it: `200ms`, `90s`, `1.5h`, `5m`, `30d`, `2w`, `1y`. `None` for
/// anything else, a bare number too.
pub fn parse_span(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        "y" => 31_536_000.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// The same for an option. The error says what is lacking of a bare number, or else `form`.
pub fn size_option(text: &str, form: &str) -> Result<u64, String> {
    let unit = || format!("without a unit it would be bytes: say {0}MiB or {0}B", text.trim());
    parse_size(text).ok_or_else(|| if is_bare_number(text) { unit() } else { form.to_owned() })
}

/// A span of time as [`parse_span`] reads it, for an option. The error says what is lacking of a
/// bare number, or else `form`.
pub fn span_option(text: &str, form: &str) -> Result<Duration, String> {
    time_option(text, form, "seconds or minutes", "s")
}

/// An age as [`parse_span`] reads it, for an option. The error says what is lacking of a bare
/// number, or else `form`. It proposes days: seconds would forget what is gone since yesterday.
pub fn age_option(text: &str, form: &str) -> Result<Duration, String> {
    // Of an age, months are meant as often as minutes.
    if let Some((number, "m")) = split_unit(text) {
        return Err(format!("'m' could be minutes or months: say {number}min, or days"));
    }
    time_option(text, form, "hours or days", "d")
}

fn time_option(text: &str, form: &str, units: &str, unit: &str) -> Result<Duration, String> {
    let lacking = || format!("without a unit it could be {units}: say {}{unit}", text.trim());
    parse_span(text).ok_or_else(|| if is_bare_number(text) { lacking() } else { form.to_owned() })
}

/// Returns true if a text is a number without a unit.
pub fn is_bare_number(text: &str) -> bool {
    split_unit(text).is_some_and(|(_, unit)| unit.is_empty())
}

/// Splits a text into a number that is not negative and the text after it.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_never_show_four_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (904 * GIB, "904.0 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn latencies_keep_the_digits_that_distinguish_them() {
        for (us, text) in [
            (0.5, "0.5 us"),
            (16.66, "16.7 us"),
            (99.96, "100 us"),
            (999.6, "1.0 ms"),
            (21_739.0, "21.7 ms"),
            (99_960.0, "100 ms"),
            (1e6, "1.0 s"),
        ] {
            assert_eq!(microseconds(us), text);
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("500B", Some(500)),
            ("64K", Some(64 << 10)),
            ("1.5GiB", Some(3 << 29)),
            ("2 MB", Some(2_000_000)),
            ("10tib", Some(10 << 40)),
            ("500", None),
            ("", None),
            ("iB", None),
            ("1iB", None),
            ("-1", None),
            ("1.2.3", None),
            ("1e9", None),
            ("16384PiB", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_answered_with_one_that_has_it() {
        assert_eq!(size_option("0", "a size"), Ok(0));
        assert_eq!(size_option(" 200", "a size").unwrap_err().matches("200MiB").count(), 1);
        assert_eq!(size_option("fast", "a size").unwrap_err(), "a size");
        assert!(span_option("30", "a time").unwrap_err().ends_with("say 30s"));
        assert!(age_option("90", "a time").unwrap_err().ends_with("say 90d"));
        assert_eq!(span_option("soon", "a time").unwrap_err(), "a time");
    }

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text| parse_span(text).map(|span| span.as_secs_f64());
        assert_eq!(seconds("90s"), Some(90.0));
        assert_eq!(seconds("1.5 h"), Some(5_400.0));
        assert_eq!(seconds("30d"), Some(2_592_000.0));
        assert_eq!(seconds("1w"), Some(604_800.0));
        assert_eq!(seconds("1y"), Some(31_536_000.0));
        for text in ["", "90", "s", "-1s", "99999999999999999999d"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn spans() {
        for (seconds, text) in
            [(0.2, "00:00"), (225.0, "03:45"), (3_725.0, "1:02:05"), (200_000.0, "2 days 7:33:20")]
        {
            assert_eq!(span(seconds), text);
        }
    }
}
