//! Checks the parts of a bag outside its manifests: the declaration that it is a bag
//! (`bagit.txt`), the list of what is still to be fetched (`fetch.txt`), and what its
//! version forbids.

use std::io::BufReader;
use std::path::Path;

use fsure_os::path as os_path;
use fsure_os::user_file;

use super::bagit_manifest;
use super::bagit_paths::payload_path;
use super::entry::{EntrySink, ManifestItem};
use super::lines::{Lines, NumberedLine};
use fsure_core::{AlgorithmSet, IoContext as _, Result};

/// The declaration of a bag.
pub(super) const DECLARATION: &str = "bagit.txt";
/// The list of what is to be fetched.
const TO_FETCH: &str = "fetch.txt";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A bag: what holds of its manifests together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bag {
    /// Version 1.0 or later: every payload manifest lists every file, and each
    /// only once.
    pub is_strict: bool,
    /// The digests of its payload manifests, as far as fsure knows them.
    pub payload: AlgorithmSet,
}

impl Bag {
    /// The bag of a declaration and the names of its manifests.
    pub(super) fn new(declaration: &[u8], manifests: &[&Vec<u8>]) -> Self {
        let payload = manifests.iter().filter(|name| !name.starts_with(b"tag"));
        let known = payload.filter_map(|name| bagit_manifest::algorithm_of(name).flatten());
        let payload = AlgorithmSet::of(&known.collect::<Vec<_>>());
        Self { is_strict: bagit_manifest::is_encoded(declaration), payload }
    }
}

/// Tells what is wrong with the declaration of a bag and with what it is to
/// fetch; with whole lines only, the version has its say about the manifests.
pub(super) fn check(
    folder: &Path,
    declaration: Option<&[u8]>,
    each: &mut dyn FnMut(&Path, ManifestItem) -> Result<()>,
) -> Result<()> {
    let file = folder.join(DECLARATION);
    let reason = declaration.map_or(Some("there is no bagit.txt: this is not a bag"), objection);
    if let Some(reason) = reason {
        each(&file, ManifestItem::malformed(u64::from(declaration.is_some()), reason))?;
    }
    let file = folder.join(TO_FETCH);
    if os_path::exists(&file) {
        let mut input = BufReader::new(user_file::open_regular(&file).context("open", &file)?);
        to_fetch(&mut Lines::new(&mut input, &file, b'\n'), &mut |item| each(&file, item))?;
    }
    Ok(())
}

/// Returns the fault of a `bagit.txt`; `None` if it has none.
fn objection(text: &[u8]) -> Option<&'static str> {
    if text.starts_with(BYTE_ORDER_MARK) {
        return Some("it begins with a byte-order mark, which BagIt forbids here");
    }
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut value = |name: &[u8]| {
        let line = lines.next()?.strip_prefix(name)?.strip_prefix(b":")?;
        Some(line.trim_ascii_start()).filter(|value| !value.is_empty())
    };
    let Some(version) = value(b"BagIt-Version") else {
        return Some("its first line is not 'BagIt-Version: M.N'");
    };
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_version = version.split(|byte| *byte == b'.').collect::<Vec<_>>();
    if is_version.len() != 2 || !is_version.iter().all(|part| is_number(part)) {
        return Some("its version is not of the form M.N");
    }
    match value(b"Tag-File-Character-Encoding") {
        Some(_) => None,
        None => Some("its second line is not 'Tag-File-Character-Encoding: ENCODING'"),
    }
}

/// Reads `fetch.txt` and reports its bad lines. Programs fetch files by this list: a path
/// that leads out of the bag must be reported before that.
fn to_fetch(lines: &mut Lines<'_>, sink: &mut EntrySink<'_>) -> Result<()> {
    while let Some(line) = lines.next()? {
        let number = lines.number();
        let NumberedLine::Bytes(line) = line else {
            sink(ManifestItem::malformed(number, "a line of more than a mebibyte"))?;
            continue;
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut words = line.splitn(3, |byte| matches!(byte, b' ' | b'\t'));
        let (_url, length, path) = (words.next(), words.next(), words.next());
        let is_length = |text: &[u8]| text == b"-" || text.iter().all(u8::is_ascii_digit);
        let reason = match (length, path) {
            (Some(length), Some(path)) if is_length(length) => {
                payload_path(path.trim_ascii_start()).err()
            }
            _ => Some("not 'URL LENGTH PATH'".to_owned()),
        };
        if let Some(reason) = reason {
            sink(ManifestItem::malformed(number, reason))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_two_lines() {
        for (text, is_one) in [
            (&b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"[..], true),
            (b"BagIt-Version: 0.97\r\nTag-File-Character-Encoding: UTF-8", true),
            (b"BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n", false),
            (b"BagIt-Version: .97\nTag-File-Character-Encoding: UTF-8\n", false),
            (b"BagIt-Version: 1.0.0\nTag-File-Character-Encoding: UTF-8\n", false),
            (b"BagIt-Version: 0.97\n", false),
            (b"\xef\xbb\xbfBagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", false),
            (b"", false),
        ] {
            assert_eq!(objection(text).is_none(), is_one, "{}", text.escape_ascii());
        }
    }
}
