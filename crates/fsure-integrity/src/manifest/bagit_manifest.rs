//! Manifests of BagIt (RFC 8493): a digest and a path to a line, with line
//! ends and the percent sign encoded from version 1.0 on. Programs disagree
//! on the encoding, so that a line may stand for one of several names.

use std::io::{self, Write};

use super::bagit_paths;
use super::entry::{EntrySink, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{Lines, NumberedLine};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, RelPath, Result};

/// Properties of a manifest that its lines do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Algorithm of the digests in the lines; `None` if fsure does not know it.
    pub(super) algorithm: Option<Algorithm>,
    /// True if the bag is of version 1.0 or later.
    pub(super) is_encoded: bool,
    /// True if the manifest lists the files around the payload.
    pub(super) is_of_tags: bool,
}

/// The algorithm in a manifest's file name, `manifest-sha512.txt` or
/// `tagmanifest-sha512.txt`; the outer `None` for any other file.
#[allow(clippy::option_option)]
pub(super) fn algorithm_of(name: &[u8]) -> Option<Option<Algorithm>> {
    let name = str::from_utf8(name).ok()?;
    let name = name.strip_prefix("tag").unwrap_or(name).strip_prefix("manifest-")?;
    Some(escaping::algorithm(name.strip_suffix(".txt")?))
}

/// Returns true if a declaration (`bagit.txt`) names version 1.0 or later.
pub(super) fn is_encoded(declaration: &[u8]) -> bool {
    let text = String::from_utf8_lossy(declaration);
    let version = text.lines().find_map(|line| line.strip_prefix("BagIt-Version:"));
    let major = version.and_then(|version| version.trim().split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= 1)
}

/// Reads a manifest.
pub(super) fn read(
    lines: &mut Lines<'_>,
    manifest: Manifest,
    sink: &mut EntrySink<'_>,
) -> Result<()> {
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        if line.is_empty() {
            continue;
        }
        sink(match (parse(&line, manifest), manifest.algorithm) {
            (Ok(listed), Some(_)) => ManifestItem::Listed(ManifestEntry { line: number, ..listed }),
            (Ok(listed), None) => {
                let path = listed.path.display();
                ManifestItem::unsupported(
                    number,
                    format!("the digest of {path} is of an unknown kind"),
                )
            }
            (Err(reason), _) => ManifestItem::malformed(number, reason),
        })?;
    }
    Ok(())
}

fn parse(line: &[u8], manifest: Manifest) -> std::result::Result<ManifestEntry, String> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(is_blank).ok_or("no path after the digest")?;
    let (digest, rest) = line.split_at(end);
    let mut digests = Digests::default();
    match manifest.algorithm {
        Some(algorithm) => digests.insert(algorithm, &escaping::digest(algorithm, digest)?),
        None => drop(escaping::from_hex(digest).ok_or("not a hexadecimal digest")?),
    }
    let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
    let name = &rest[blanks..];
    // The mark of md5sum's binary mode, which the specification lets pass: md5sum writes
    // it behind one blank. Behind several it begins a name, but for payload, which is
    // below data/, and for programs that take it off everywhere.
    let (name, other_name) = match name.strip_prefix(b"*") {
        Some(rest) if blanks == 1 || rest.starts_with(b"data/") => (rest, Some(name)),
        rest => (name, rest),
    };
    let mut variants = variants(name, manifest.is_encoded);
    variants.extend(other_name.iter().flat_map(|name| self::variants(name, manifest.is_encoded)));
    let first = variants.remove(0);
    let plain = |name: &[u8]| match manifest.is_of_tags {
        true => bagit_paths::tag_path(name),
        false => bagit_paths::payload_path(name),
    };
    let path = plain(&first)?;
    let mut others: Vec<RelPath> = Vec::new();
    for other in variants.iter().filter_map(|other| plain(other).ok()) {
        if other != path && !others.contains(&other) {
            others.push(other);
        }
    }
    Ok(ManifestEntry { path, others, digests, ..ManifestEntry::default() })
}

/// The meanings of a name, in the order in which it is to be tried: bagit-python decodes
/// line ends and no percent sign, and encodes neither of the latter, whatever version it
/// says.
fn variants(name: &[u8], is_encoded: bool) -> Vec<Vec<u8>> {
    let decoded = |with_percent| escaping::percent_decode(name, with_percent);
    match is_encoded {
        true => vec![decoded(true), name.to_vec(), decoded(false)],
        false => vec![name.to_vec(), decoded(false), decoded(true)],
    }
}

/// Writes a line of a manifest, of version 1.0.
pub(super) fn write(out: &mut dyn Write, digest: &[u8], path: &[u8]) -> io::Result<()> {
    write!(out, "{}  ", hex(digest))?;
    out.write_all(&escaping::percent_encode(path))?;
    out.write_all(b"\n")
}
