//! fsure's own form: JSON, one object to a line. Holds any name and every digest,
//! and says at its end how many entries there were, so that a list that was
//! cut off is not taken for a short one.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::entry::{EntrySink, ListedMtime, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{Lines, NumberedLine};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, Result};

/// The first line, version included. A reader of version 1 refuses any other.
pub(super) const HEAD: &str = r#"{"type":"fsure-list","version":1}"#;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEntry {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtime_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha512: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha1: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    md5: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    xxh128: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    r#type: String,
    files: u64,
}

/// Reads a list.
pub(super) fn read(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<()> {
    let mut entries = 0;
    let mut has_ended = false;
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        if number == 1 {
            if line != HEAD.as_bytes() {
                sink(ManifestItem::malformed(number, format!("the first line is not {HEAD}")))?;
                return Ok(());
            }
        } else if has_ended {
            sink(ManifestItem::malformed(number, "a line follows the last one"))?;
        } else if let Ok(end) = serde_json::from_slice::<End>(&line) {
            has_ended = end.r#type == "end";
            if !has_ended || end.files != entries {
                let reason = format!("{entries} entries where {} were written", end.files);
                sink(ManifestItem::malformed(number, reason))?;
            }
        } else {
            entries += 1;
            sink(match parse(&line) {
                Ok(listed) => ManifestItem::Listed(ManifestEntry { line: number, ..listed }),
                Err(reason) => ManifestItem::malformed(number, reason),
            })?;
        }
    }
    if !has_ended {
        sink(ManifestItem::malformed(
            lines.number(),
            "the list is cut off: its last line is missing",
        ))?;
    }
    Ok(())
}

pub(super) fn parse(line: &[u8]) -> std::result::Result<ManifestEntry, String> {
    let entry: JsonEntry = serde_json::from_slice(line).map_err(|error| {
        // The line is identified by its number in the list.
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
        format!("not an entry: {reason} (column {})", error.column())
    })?;
    let name = match &entry.path_bytes {
        Some(bytes) => BASE64.decode(bytes).map_err(|_| "path_bytes is not base64")?,
        None => entry.path.clone().into_bytes(),
    };
    let mut digests = Digests::default();
    for (algorithm, text) in [
        (Algorithm::Blake3, &entry.blake3),
        (Algorithm::Sha256, &entry.sha256),
        (Algorithm::Sha512, &entry.sha512),
        (Algorithm::Sha1, &entry.sha1),
        (Algorithm::Md5, &entry.md5),
        (Algorithm::Xxh128, &entry.xxh128),
    ] {
        if let Some(text) = text {
            digests.insert(algorithm, &escaping::digest(algorithm, text.as_bytes())?);
        }
    }
    if digests == Digests::default() {
        return Err("an entry without a digest".to_owned());
    }
    let modified = entry.mtime_ns.map(|time_ns| ListedMtime { time_ns, unit_ns: 1 });
    let path = escaping::path(&name)?;
    Ok(ManifestEntry { path, digests, size: entry.size, modified, ..ManifestEntry::default() })
}

/// Writes what comes before the entries.
pub(super) fn begin(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEAD}")
}

/// Writes an entry.
pub(super) fn write(out: &mut dyn Write, listed: &ManifestEntry) -> io::Result<()> {
    let bytes = listed.path.as_bytes();
    let digest = |algorithm| listed.digests.get(algorithm).map(hex);
    let entry = JsonEntry {
        path: String::from_utf8_lossy(bytes).into_owned(),
        path_bytes: listed.path.as_text().is_none().then(|| BASE64.encode(bytes)),
        size: listed.size,
        mtime_ns: listed.modified.map(|modified| modified.time_ns),
        blake3: digest(Algorithm::Blake3),
        sha256: digest(Algorithm::Sha256),
        sha512: digest(Algorithm::Sha512),
        sha1: digest(Algorithm::Sha1),
        md5: digest(Algorithm::Md5),
        xxh128: digest(Algorithm::Xxh128),
    };
    line(out, &entry)
}

/// Writes what comes behind the entries.
pub(super) fn end(out: &mut dyn Write, files: u64) -> io::Result<()> {
    line(out, &End { r#type: "end".to_owned(), files })
}

pub(super) fn line(out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}
