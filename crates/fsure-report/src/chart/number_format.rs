//! Numbers for people: as many digits as can be told apart, and a unit that
//! keeps them few.

use fsure_core::units;

/// A number with three digits that count, or all before the point: `13,824`,
/// `305`, `1.38`, `0.0123`, without zeros at its end. What is not a number is a dash.
pub fn figure(value: f64) -> String {
    let text = measured(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number with three digits that count, as of something measured: `98.0`.
pub(super) fn measured(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size >= 1e15 {
        return format!("{value:.2e}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if size >= 99.95 {
        return format!("{sign}{}", fsure_core::count(size.round() as u64));
    }
    let digits = match size {
        0.0 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => 2_i32.saturating_sub(size.log10().floor() as i32).clamp(2, 9),
    };
    format!("{sign}{size:.*}", usize::try_from(digits).unwrap_or_default())
}

/// A span of time with three digits that count, as of something measured: `22.0 ms`.
pub(super) fn measured_microseconds(value: f64) -> String {
    match value.abs() {
        size if size >= 999_500.0 => format!("{} s", measured(value / 1e6)),
        size if size >= 999.5 => format!("{} ms", measured(value / 1e3)),
        _ => format!("{} µs", measured(value)),
    }
}

/// A span of time: `84 µs`, `3.3 ms`, `1.2 s`.
pub fn microseconds(value: f64) -> String {
    match value.abs() {
        size if size >= 999_500.0 => format!("{} s", figure(value / 1e6)),
        size if size >= 999.5 => format!("{} ms", figure(value / 1e3)),
        _ => format!("{} µs", figure(value)),
    }
}

/// A size without a digit behind the point if that is a zero: `4 KiB`.
pub fn whole_size(bytes: u64) -> String {
    units::size(bytes).replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (13_824.4, "13,824"),
            (999.6, "1,000"),
            (305.2, "305"),
            (99.96, "100"),
            (58.31, "58.3"),
            (9.999, "10"),
            (1.384, "1.38"),
            (2.0, "2"),
            (0.012_34, "0.0123"),
            (-4.26, "-4.26"),
            (1e-12, "0"),
            (1e18, "1.00e18"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
    }

    #[test]
    fn spans_have_the_unit_that_keeps_them_short() {
        for (value, text) in [
            (84.0, "84 µs"),
            (999.9, "1 ms"),
            (3_300.0, "3.3 ms"),
            (21_700.0, "21.7 ms"),
            (1.2e6, "1.2 s"),
        ] {
            assert_eq!(microseconds(value), text);
        }
    }
}
