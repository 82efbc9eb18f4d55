//! mtree(5): a word per name and keywords with values, in either of its two
//! manners: full paths, or names in the folder that was entered last. The only
//! text form that holds any name.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::entry::{EntrySink, ListedMtime, ManifestEntry, ManifestItem};
use super::escaping;
use super::lines::{LINE_MAX, Lines, NumberedLine};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, RelPath, Result};

const SECOND_NS: i64 = 1_000_000_000;

/// Its digests under the names that writers use.
const DIGESTS: [(&str, Algorithm); 8] = [
    ("md5digest", Algorithm::Md5),
    ("md5", Algorithm::Md5),
    ("sha1digest", Algorithm::Sha1),
    ("sha1", Algorithm::Sha1),
    ("sha256digest", Algorithm::Sha256),
    ("sha256", Algorithm::Sha256),
    ("sha512digest", Algorithm::Sha512),
    ("sha512", Algorithm::Sha512),
];

/// Digests that fsure knows of and does not compute.
const FOREIGN: [&str; 7] =
    ["cksum", "rmd160digest", "rmd160", "ripemd160digest", "sha384digest", "sha384", "sha224"];

type Keywords = BTreeMap<String, String>;

/// Reads a list.
pub(super) fn read(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<()> {
    let mut reader = MtreeReader::default();
    while let Some((line, number)) = logical_line(lines, sink)? {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|w| !w.is_empty());
        let Some(first) = words.next().filter(|first| !first.starts_with(b"#")) else {
            continue;
        };
        let keywords: Keywords = words.map(keyword).collect();
        match first {
            b"/set" => reader.defaults.extend(keywords),
            b"/unset" => {
                if keywords.contains_key("all") {
                    reader.defaults.clear();
                }
                reader.defaults.retain(|name, _| !keywords.contains_key(name));
            }
            b".." => {
                if reader.folders.pop().is_none() {
                    sink(ManifestItem::malformed(number, "'..' leads out of the root"))?;
                }
            }
            name => match reader.entry(name, keywords, number) {
                Ok(item) => item.map_or(Ok(()), &mut *sink)?,
                Err(reason) => sink(ManifestItem::malformed(number, reason))?,
            },
        }
    }
    Ok(())
}

/// A line with those it goes on in: all that end with a backslash.
fn logical_line(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<Option<(Vec<u8>, u64)>> {
    let mut whole = Vec::new();
    let mut first = None;
    while let Some(line) = lines.next()? {
        let number = *first.get_or_insert(lines.number());
        let NumberedLine::Bytes(mut line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            return Ok(Some((Vec::new(), number)));
        };
        let goes_on = line.ends_with(b"\\") && !line.starts_with(b"#");
        if goes_on {
            line.pop();
            line.push(b' ');
        }
        whole.extend_from_slice(&line);
        if whole.len() > LINE_MAX {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            return Ok(Some((Vec::new(), number)));
        }
        if !goes_on {
            break;
        }
    }
    Ok(first.map(|number| (whole, number)))
}

fn keyword(word: &[u8]) -> (String, String) {
    let word = String::from_utf8_lossy(word);
    let (name, value) = word.split_once('=').unwrap_or((&word, ""));
    (name.to_owned(), value.to_owned())
}

#[derive(Default)]
struct MtreeReader {
    defaults: Keywords,
    /// The folders entered, outermost first; the root's own `.` counts.
    folders: Vec<Vec<u8>>,
}

impl MtreeReader {
    fn entry(
        &mut self,
        word: &[u8],
        own: Keywords,
        line: u64,
    ) -> std::result::Result<Option<ManifestItem>, String> {
        let name = escaping::octal_unescape(word).ok_or("an escape that mtree does not know")?;
        let mut keywords = self.defaults.clone();
        keywords.extend(own);
        // A slash makes it a full path, wherever it stands.
        let is_full = word.contains(&b'/');
        let kind = keywords.get("type").map(String::as_str);
        if kind == Some("dir") {
            if !is_full {
                if name.contains(&b'/') || name == b".." {
                    return Err("a folder whose name is a path".to_owned());
                }
                self.folders.push(name);
            }
            return Ok(None);
        }
        if !matches!(kind, Some("file") | None) {
            return Ok(None);
        }
        let path = match is_full {
            true => escaping::path(&name)?,
            false if name.contains(&b'/') => return Err("a name with a slash in it".to_owned()),
            false => {
                let folders = self.folders.iter().map(Vec::as_slice);
                let parts: Vec<_> = folders.chain([&name[..]]).collect();
                escaping::path(&parts.join(&b'/'))?
            }
        };
        let listed = ManifestEntry {
            path,
            digests: digests(&keywords)?,
            size: number(&keywords, "size")?,
            modified: keywords.get("time").map(|time| modified(time)).transpose()?,
            line,
            others: Vec::new(),
            is_absolute: false,
        };
        Ok(Some(Self::item(listed, &keywords)))
    }

    fn item(listed: ManifestEntry, keywords: &Keywords) -> ManifestItem {
        if listed.digests != Digests::default() {
            return ManifestItem::Listed(listed);
        }
        let path = listed.path.display();
        let foreign = FOREIGN.iter().find(|name| keywords.contains_key(**name));
        let reason = match foreign {
            Some(name) => format!("{path} has {name} only, which fsure cannot compute"),
            None => format!("{path} has no digest"),
        };
        ManifestItem::unsupported(listed.line, reason)
    }
}

fn digests(keywords: &Keywords) -> std::result::Result<Digests, String> {
    let mut digests = Digests::default();
    for (name, algorithm) in DIGESTS {
        if let Some(text) = keywords.get(name) {
            digests.insert(algorithm, &escaping::digest(algorithm, text.as_bytes())?);
        }
    }
    Ok(digests)
}

fn number(keywords: &Keywords, name: &str) -> std::result::Result<Option<u64>, String> {
    let number = keywords.get(name).map(|value| value.parse());
    number.transpose().map_err(|_| format!("{name} is not a number"))
}

/// Seconds, and behind the point nanoseconds: as a number by libarchive, which
/// leaves out zeros in front, and as nine digits by others, which is the same.
fn modified(text: &str) -> std::result::Result<ListedMtime, String> {
    let parsed = || {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let (seconds, fraction): (i64, i64) = (seconds.parse().ok()?, fraction.parse().ok()?);
        let is_fraction = (0..SECOND_NS).contains(&fraction);
        let time_ns = seconds.checked_mul(SECOND_NS)?.checked_add(fraction)?;
        let unit_ns = if text.contains('.') { 1 } else { SECOND_NS };
        is_fraction.then_some(ListedMtime { time_ns, unit_ns })
    };
    parsed().ok_or_else(|| "time is not a number of seconds".to_owned())
}

/// Writes what comes before the entries. The root is the first of them: mtree(8) of
/// NetBSD and FreeBSD refuses a list without it, and an entry whose folder is not listed
/// before it.
pub(super) fn begin(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"#mtree\n. type=dir\n")
}

/// Writes the folders of an entry that are not in the list yet. Entries come in the order
/// of their paths, so that a folder's are all in a row; `last` is that of the one before.
pub(super) fn write_folders(
    out: &mut dyn Write,
    last: &mut RelPath,
    path: &RelPath,
) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let bytes = folder.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    for end in ends.chain((!bytes.is_empty()).then_some(bytes.len())) {
        if !last.is_within(&RelPath::from_bytes(&bytes[..end])) {
            out.write_all(b"./")?;
            out.write_all(&escaping::octal_escape(&bytes[..end]))?;
            out.write_all(b" type=dir\n")?;
        }
    }
    *last = folder;
    Ok(())
}

/// Writes an entry, as a full path.
pub(super) fn write(out: &mut dyn Write, listed: &ManifestEntry) -> io::Result<()> {
    out.write_all(b"./")?;
    out.write_all(&escaping::octal_escape(listed.path.as_bytes()))?;
    out.write_all(b" type=file")?;
    if let Some(size) = listed.size {
        write!(out, " size={size}")?;
    }
    if let Some(ListedMtime { time_ns, .. }) = listed.modified {
        let (seconds, ns) = (time_ns.div_euclid(SECOND_NS), time_ns.rem_euclid(SECOND_NS));
        write!(out, " time={seconds}.{ns:09}")?;
    }
    for (name, algorithm) in DIGESTS.into_iter().filter(|(name, _)| name.ends_with("digest")) {
        if let Some(value) = listed.digests.get(algorithm) {
            write!(out, " {name}={}", hex(value))?;
        }
    }
    out.write_all(b"\n")
}
