//! Bytes, rates and spans of time as icj prints them, because people compare
//! reports over the years.

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

/// MiB per second; 0 where no time has passed.
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
    fn spans() {
        for (seconds, text) in
            [(0.2, "00:00"), (225.0, "03:45"), (3_725.0, "1:02:05"), (200_000.0, "2 days 7:33:20")]
        {
            assert_eq!(span(seconds), text);
        }
    }
}
