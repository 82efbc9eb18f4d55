//! The data that cshatag writes into the attributes of a file: its SHA-256, and the
//! modification time it had then.

use super::entry::{ListedMtime, ManifestEntry, ManifestItem};
use super::escaping;
use fsure_core::{Algorithm, Digests, RelPath};

/// The attribute with 64 hexadecimal digits.
pub const SHA256: &str = "user.shatag.sha256";
/// The attribute with the date, `seconds.nanoseconds`.
pub const TIME: &str = "user.shatag.ts";

/// Resolution in nanoseconds that a date keeps on its way over a network; cshatag
/// compares no more.
const UNIT_NS: i64 = 100;

/// The entry of a file, from its attributes.
pub fn item(path: RelPath, sha256: &[u8], time: Option<&[u8]>) -> ManifestItem {
    // Old versions wrote the NUL behind their text, too.
    let text = |value: &[u8]| value.strip_suffix(b"\0").unwrap_or(value).to_vec();
    let parsed = escaping::digest(Algorithm::Sha256, &text(sha256)).and_then(|sha256| {
        let time = time.map(|time| modified(&text(time)).ok_or("its date is not valid"));
        Ok((sha256, time.transpose()?))
    });
    match parsed {
        Ok((sha256, modified)) => {
            let mut digests = Digests::default();
            digests.insert(Algorithm::Sha256, &sha256);
            ManifestItem::Listed(ManifestEntry {
                path,
                digests,
                modified,
                ..ManifestEntry::default()
            })
        }
        Err(reason) => {
            ManifestItem::malformed(0, format!("{}: in its attributes: {reason}", path.display()))
        }
    }
}

fn modified(text: &[u8]) -> Option<ListedMtime> {
    let text = str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction_ns: i64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds: i64 = seconds.parse().ok()?;
    let time_ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)?;
    let unit_ns = UNIT_NS.max(10_i64.pow(9 - fraction.len() as u32));
    Some(ListedMtime { time_ns, unit_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sha256: &str, time: Option<&str>) -> Result<Option<ListedMtime>, String> {
        let path = RelPath::from_bytes(*b"a");
        match item(path, sha256.as_bytes(), time.map(str::as_bytes)) {
            ManifestItem::Listed(listed) => Ok(listed.modified),
            ManifestItem::Problem(problem) => Err(problem.reason),
        }
    }

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let sha = "ab".repeat(32);
        let date = |time_ns, unit_ns| Ok(Some(ListedMtime { time_ns, unit_ns }));
        assert_eq!(read(&sha, None), Ok(None));
        assert_eq!(read(&sha, Some("1560177334.020775051")), date(1_560_177_334_020_775_051, 100));
        assert_eq!(read(&format!("{sha}\0"), Some("7.5\0")), date(7_500_000_000, 100_000_000));
        assert_eq!(read(&sha, Some("7")), date(7_000_000_000, 1_000_000_000));
        for (sha, time, reason) in [
            ("ab", None, "a: in its attributes: not a sha256 digest of 64"),
            (&*sha, Some("x"), "a: in its attributes: its date"),
            (&sha, Some("1.2.3"), "a: in its attributes: its date"),
            (&sha, Some(""), "a: in its attributes: its date"),
            (&sha, Some("99999999999"), "a: in its attributes: its date"),
        ] {
            let error = read(sha, time).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
