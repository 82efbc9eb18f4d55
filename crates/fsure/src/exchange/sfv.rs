//! SFV: names with their CRC-32. We do not compute it: 32 bits find accidents,
//! but a record of them would say `ok` of one damaged file in four billion and
//! of any forged one. Every line is told, so that nobody takes the list for
//! verified.

use super::lines::{Line, Lines};
use super::listed::{Item, Sink};
use super::names;
use crate::words::Result;

/// Reads a list.
pub(super) fn read(lines: &mut Lines<'_>, sink: &mut Sink<'_>) -> Result<()> {
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let Line::Bytes(line) = line else {
            sink(Item::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        if line.is_empty() || line.starts_with(b";") {
            continue;
        }
        sink(match name(&line).map(names::path) {
            Some(Ok(path)) => Item::unsupported(
                number,
                format!("CRC-32 of {}: fsure does not compute it", path.shown()),
            ),
            Some(Err(reason)) => Item::malformed(number, reason),
            None => Item::malformed(number, "not 'NAME CRC32'"),
        })?;
    }
    Ok(())
}

/// The name in a line that ends with a CRC-32.
pub(super) fn name(line: &[u8]) -> Option<&[u8]> {
    let (name, crc) = line.split_at_checked(line.len().checked_sub(8)?)?;
    let is_crc = crc.iter().all(u8::is_ascii_hexdigit);
    let trimmed = name.trim_ascii_end();
    (is_crc && !trimmed.is_empty() && trimmed.len() < name.len()).then_some(trimmed)
}
