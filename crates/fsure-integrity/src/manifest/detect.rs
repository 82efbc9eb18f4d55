//! Recognises the form of a list by its first bytes and, if two programs write the same
//! lines, by its name.

use super::formats::ManifestFormat;
use super::{bagit_manifest, sfv};

/// The form of a list of that name that begins with those bytes.
pub(super) fn recognise(name: &[u8], head: &[u8]) -> ManifestFormat {
    if bagit_manifest::algorithm_of(name).is_some() {
        return ManifestFormat::Bagit;
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = head.trim_ascii_start();
    // Whatever its version: the reader says which it reads.
    if head.starts_with(b"%%%% ") {
        ManifestFormat::Hashdeep
    } else if text.starts_with(b"#mtree") || is_mtree(text) {
        ManifestFormat::Mtree
    } else if text.starts_with(b"<") {
        ManifestFormat::AscMhl
    } else if text.starts_with(b"{\"type\":\"fsure-list\"") {
        ManifestFormat::Json
    } else if text.starts_with(b"{") {
        ManifestFormat::Chkbit
    } else if is_sfv(head) {
        ManifestFormat::Sfv
    } else if is_of_blake3(name, head) {
        ManifestFormat::B3sum
    } else {
        ManifestFormat::Sha256sums
    }
}

fn is_mtree(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")).unwrap_or_default();
    first.starts_with(b"/set ") || first.windows(6).any(|word| word == b" type=")
}

fn is_sfv(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b";"));
    let is_entry = |line: &[u8]| sfv::parts(line).is_some() && !is_digest_first(line);
    first.map_or(head.starts_with(b";"), is_entry)
}

fn is_digest_first(line: &[u8]) -> bool {
    line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 32 || line.contains(&b'(')
}

/// 64 digits may be SHA-256 or BLAKE3: only a word of the name can tell, and not the end of one,
/// as in `usb3`.
fn is_of_blake3(name: &[u8], head: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_word = |word| matches!(word, "b3" | "b3sum" | "b3sums") || word.starts_with("blake3");
    !name.contains("sha256") && words.any(is_word) || head.starts_with(b"BLAKE3 (")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_from_their_content() {
        let sha = "0".repeat(64) + "  a";
        for (name, head, format) in [
            ("manifest-sha256.txt", "", ManifestFormat::Bagit),
            ("tagmanifest-md5.txt", "", ManifestFormat::Bagit),
            ("x", "%%%% HASHDEEP-1.0\n", ManifestFormat::Hashdeep),
            ("x", "%%%% HASHDEEP-2.0\n", ManifestFormat::Hashdeep),
            ("x", "#mtree\n", ManifestFormat::Mtree),
            ("x", "# user: root\n/set type=file\n", ManifestFormat::Mtree),
            ("x", "./a type=file size=1\n", ManifestFormat::Mtree),
            ("x", "\u{feff}<?xml version=\"1.0\"?>", ManifestFormat::AscMhl),
            ("x", "{\"type\":\"fsure-list\",\"version\":1}\n", ManifestFormat::Json),
            (".chkbit-db", "{\"type\":\"chkbit\",\"version\":6,", ManifestFormat::Chkbit),
            (".chkbit", "{\"v\":2,\"idx\":", ManifestFormat::Chkbit),
            ("x.sfv", "; by\r\n\r\na b.txt 0123ABCD\r\n", ManifestFormat::Sfv),
            ("SHA256SUMS", &sha, ManifestFormat::Sha256sums),
            ("x", "00000000000000000000000000000000  my deadbeef", ManifestFormat::Sha256sums),
            ("photos.b3", &sha, ManifestFormat::B3sum),
            ("B3SUMS", &sha, ManifestFormat::B3sum),
            ("my-blake3sums.txt", &sha, ManifestFormat::B3sum),
            ("2026.b3.txt", &sha, ManifestFormat::B3sum),
            ("usb3-disk.txt", &sha, ManifestFormat::Sha256sums),
            ("SHA256SUMS-b3", &sha, ManifestFormat::Sha256sums),
            ("x", "BLAKE3 (a) = 00", ManifestFormat::B3sum),
            ("x", "", ManifestFormat::Sha256sums),
        ] {
            assert_eq!(recognise(name.as_bytes(), head.as_bytes()), format, "{name} {head}");
        }
    }
}
