//! SFV: names with their CRC-32. A CRC-32 detects accidents but not intent, so a file
//! is compared with it and never recorded by it: `docs/exchange.md`.

use super::entry::{EntrySink, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{Lines, NumberedLine};
use fsure_core::{Algorithm, Digests, Result};

/// Reads a list.
pub(super) fn read(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<()> {
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        if line.trim_ascii().is_empty() || line.starts_with(b";") {
            continue;
        }
        sink(match parse(&line) {
            Ok(listed) => ManifestItem::Listed(ManifestEntry { line: number, ..listed }),
            Err(reason) => ManifestItem::malformed(number, reason),
        })?;
    }
    Ok(())
}

fn parse(line: &[u8]) -> std::result::Result<ManifestEntry, String> {
    let (name, crc) = parts(line).ok_or("not 'NAME CRC32'")?;
    let mut digests = Digests::default();
    digests.insert(Algorithm::Crc32, &escaping::digest(Algorithm::Crc32, crc)?);
    let (path, is_absolute) = escaping::any_path(name)?;
    Ok(ManifestEntry { path, is_absolute, digests, ..ManifestEntry::default() })
}

/// A name and its CRC-32, with blanks between.
pub(super) fn parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let (name, crc) = line.split_at_checked(line.len().checked_sub(8)?)?;
    let is_crc = crc.iter().all(u8::is_ascii_hexdigit);
    let trimmed = name.trim_ascii_end();
    (is_crc && !trimmed.is_empty() && trimmed.len() < name.len()).then_some((trimmed, crc))
}
