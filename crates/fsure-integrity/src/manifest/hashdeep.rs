//! hashdeep 1.0: a header that names the columns, then sizes, digests and
//! names with commas between. Nothing is escaped.

use std::io::{self, Write};

use super::entry::{EntrySink, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{Lines, NumberedLine};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, RelPath, Result};

/// The first line.
pub(super) const MAGIC: &str = "%%%% HASHDEEP-1.0";

/// Reads a list.
pub(super) fn read(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<()> {
    let mut columns: Option<Vec<Option<Algorithm>>> = None;
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        match (number, line.strip_prefix(b"%%%% "), &columns) {
            (1, _, _) if line == MAGIC.as_bytes() => {}
            (1, _, _) => {
                sink(ManifestItem::malformed(number, format!("the first line is not '{MAGIC}'")))?;
                return Ok(());
            }
            (_, Some(header), None) => match columns_of(header) {
                Ok(named) => {
                    let unknown = named.iter().filter(|(_, known)| known.is_none());
                    for (name, _) in unknown {
                        sink(ManifestItem::note(
                            number,
                            format!("{name}: fsure cannot compute it"),
                        ))?;
                    }
                    columns = Some(named.into_iter().map(|(_, known)| known).collect());
                }
                Err(reason) => return sink(ManifestItem::malformed(number, reason)),
            },
            _ if line.is_empty() || line.starts_with(b"#") => {}
            (_, _, Some(columns)) => sink(item(&line, columns, number))?,
            (_, _, None) => {
                sink(ManifestItem::malformed(
                    number,
                    "an entry before the line that names the columns",
                ))?;
                return Ok(());
            }
        }
    }
    Ok(())
}

type Columns = Vec<(String, Option<Algorithm>)>;

fn columns_of(header: &[u8]) -> std::result::Result<Columns, String> {
    let header = String::from_utf8_lossy(header);
    let middle = header.strip_prefix("size,").and_then(|rest| rest.strip_suffix(",filename"));
    let middle = middle.ok_or("the columns are not 'size,ALGORITHM,...,filename'")?;
    Ok(middle.split(',').map(|name| (name.to_owned(), escaping::algorithm(name))).collect())
}

fn item(line: &[u8], columns: &[Option<Algorithm>], number: u64) -> ManifestItem {
    match parse(line, columns) {
        Ok(listed) if listed.digests.algorithms() == Default::default() => {
            let reason = format!("{} has no digest that fsure can compute", listed.path.display());
            ManifestItem::unsupported(number, reason)
        }
        Ok(listed) => ManifestItem::Listed(ManifestEntry { line: number, ..listed }),
        Err(reason) => ManifestItem::malformed(number, reason),
    }
}

fn parse(line: &[u8], columns: &[Option<Algorithm>]) -> std::result::Result<ManifestEntry, String> {
    // Commas behind those between columns belong to the name.
    let mut fields = line.splitn(columns.len() + 2, |byte| *byte == b',');
    let mut field = || fields.next().ok_or("fewer fields than columns");
    let size = str::from_utf8(field()?).ok().and_then(|size| size.parse().ok());
    let size: u64 = size.ok_or("the size is not a number")?;
    let mut digests = Digests::default();
    for column in columns {
        let text = field()?;
        if let Some(algorithm) = column {
            digests.insert(*algorithm, &escaping::digest(*algorithm, text)?);
        }
    }
    let (path, is_absolute) = escaping::any_path(field()?)?;
    Ok(ManifestEntry { path, is_absolute, digests, size: Some(size), ..ManifestEntry::default() })
}

/// Writes what comes before the entries.
pub(super) fn begin(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{MAGIC}\n%%%% size,sha256,filename")
}

/// Writes an entry. The name begins with `./`, as hashdeep itself has it when it
/// is given a folder: it calls a file by any other name moved, and of several
/// with one content finds only one.
pub(super) fn write(
    out: &mut dyn Write,
    size: u64,
    digest: &[u8],
    path: &RelPath,
) -> io::Result<()> {
    write!(out, "{size},{},./", hex(digest))?;
    out.write_all(path.as_bytes())?;
    out.write_all(b"\n")
}
