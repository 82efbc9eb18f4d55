//! Text for a person: messages without control characters, and counts.

use super::escape;

/// A message of fsure with every control character escaped. Backslashes stay:
/// the names in it may be escaped already.
pub fn safe(message: &str) -> String {
    let parts: Vec<_> = message.split('\\').map(|part| escape(part.as_bytes())).collect();
    parts.join("\\")
}

/// A count with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
    }
}
