//! Sums in the manner of GNU, BSD, OpenSSL, `b3sum` and rclone: a digest and a
//! name to a line. The reader takes what any of them writes; the writers keep
//! to what the strictest reader takes.

use std::io::{self, Write};

use super::entry::{EntrySink, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{Lines, NumberedLine};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, RelPath, Result};

/// Properties of a list that a line alone does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SumsDialect {
    /// Algorithm of a value of 64 hexadecimal digits without a tag.
    pub(super) of_64: Algorithm,
    /// True if a leading backslash announces escapes; rclone has none.
    pub(super) is_escaped: bool,
}

/// Reads a list.
pub(super) fn read(
    lines: &mut Lines<'_>,
    manner: SumsDialect,
    sink: &mut EntrySink<'_>,
) -> Result<()> {
    // Escapes are for lines that a line feed ends.
    let manner = SumsDialect { is_escaped: manner.is_escaped && !lines.is_zero(), ..manner };
    let mut is_reversed = None;
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        // Programs on Windows begin comments with a semicolon.
        let is_comment = line.starts_with(b"#") || line.starts_with(b";");
        let is_comment = is_comment && !lines.is_zero();
        if line.is_empty() || is_comment {
            continue;
        }
        let item = match parse(&line, manner, &mut is_reversed) {
            Ok(((path, is_absolute), Some(digests))) => ManifestItem::Listed(ManifestEntry {
                path,
                is_absolute,
                digests,
                line: number,
                ..ManifestEntry::default()
            }),
            Ok(((path, _), None)) => ManifestItem::unsupported(
                number,
                format!("the digest of {} is of a kind that fsure cannot compute", path.display()),
            ),
            Err(reason) => ManifestItem::malformed(number, reason),
        };
        sink(item)?;
    }
    Ok(())
}

/// A path, true if it is absolute, and its digest if fsure knows its kind.
type Parsed = std::result::Result<((RelPath, bool), Option<Digests>), String>;

fn parse(line: &[u8], manner: SumsDialect, is_reversed: &mut Option<bool>) -> Parsed {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let line = &line[blanks..];
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(rest) if manner.is_escaped => (rest, true),
        _ => (line, false),
    };
    let named = |name: &[u8]| {
        let name = match is_escaped {
            true => escaping::gnu_unescape(name).ok_or("an escape other than \\\\, \\n and \\r")?,
            false => name.to_vec(),
        };
        escaping::any_path(&name)
    };
    if let Some((tag, name, digest)) = tagged(line) {
        let path = named(name)?;
        return Ok((
            path,
            match escaping::algorithm(tag) {
                Some(algorithm) => Some(one(algorithm, &escaping::digest(algorithm, digest)?)),
                None => None,
            },
        ));
    }
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digest, rest) = line.split_at(digits);
    let value = escaping::from_hex(digest).filter(|value| value.len() >= 4);
    let value = value.ok_or("neither 'DIGEST  NAME' nor 'ALGORITHM (NAME) = DIGEST'")?;
    let name = match rest {
        [b' ' | b'\t', b' ' | b'*', name @ ..]
            if !name.is_empty() && *is_reversed != Some(true) =>
        {
            *is_reversed = Some(false);
            name
        }
        // BSD's reversed lines have one blank and no mark. Whether a blank
        // belongs to the name is settled by the first of them.
        [b' ' | b'\t', name @ ..] if !name.is_empty() && *is_reversed != Some(false) => {
            *is_reversed = Some(true);
            name
        }
        _ => return Err("no name after the digest".to_owned()),
    };
    let path = named(name)?;
    let algorithm = match value.len() {
        16 => Algorithm::Md5,
        20 => Algorithm::Sha1,
        32 => manner.of_64,
        64 => Algorithm::Sha512,
        _ => return Ok((path, None)),
    };
    Ok((path, Some(one(algorithm, &value))))
}

/// The parts of a tagged line, `SHA256 (NAME) = HEX` by BSD or
/// `SHA256(NAME)= HEX` by OpenSSL. The name ends at the last parenthesis.
fn tagged(line: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    // Longer than any name of an algorithm, shorter than any digest.
    const TAG_MAX: usize = 16;
    let open = line.iter().take(TAG_MAX).position(|byte| *byte == b'(')?;
    let tag = str::from_utf8(&line[..open]).ok()?.trim_end_matches(' ');
    let is_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '_');
    if tag.is_empty() || !tag.chars().all(is_tag) {
        return None;
    }
    let close = line.iter().rposition(|byte| *byte == b')').filter(|close| *close > open)?;
    let digest = line[close + 1..].trim_ascii_start().strip_prefix(b"=")?;
    Some((tag, &line[open + 1..close], digest.trim_ascii()))
}

fn one(algorithm: Algorithm, value: &[u8]) -> Digests {
    let mut digests = Digests::default();
    digests.insert(algorithm, value);
    digests
}

/// Writes a line: two blanks, no mark, lower case, which `sha256sum`,
/// `sha512sum` and `b3sum` all take. They read standard input for a file `-`.
pub(super) fn write(out: &mut dyn Write, digest: &[u8], path: &RelPath) -> io::Result<()> {
    let name = if path.as_bytes() == b"-" { b"./-" } else { path.as_bytes() };
    let is_escaped = escaping::needs_gnu_escape(name);
    let escaped = if is_escaped { escaping::gnu_escape(name) } else { name.to_vec() };
    write!(out, "{}{}  ", if is_escaped { "\\" } else { "" }, hex(digest))?;
    out.write_all(&escaped)?;
    out.write_all(b"\n")
}
