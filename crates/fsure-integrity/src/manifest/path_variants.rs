//! Other paths that a name in a list may stand for if there is no file of the name as it
//! is written: lists come from systems with another separator, another encoding or
//! another Unicode form.

use unicode_normalization::UnicodeNormalization as _;

use super::entry::ManifestEntry;
use super::escaping;
use fsure_core::RelPath;

/// The characters of Windows-1252 from 0x80 to 0x9f; 0 for a byte without a character.
/// From 0xa0 on, it has Unicode's own order.
const WINDOWS_1252: [u32; 32] = [
    0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039,
    0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc,
    0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
];

impl ManifestEntry {
    /// The other paths that this entry may be about, in the order in which they
    /// are to be tried. All of them are plain paths below the root.
    pub fn path_variants(&self) -> Vec<RelPath> {
        let mut found: Vec<RelPath> = Vec::new();
        let mut add = |path: RelPath| {
            if path != self.path && !found.contains(&path) {
                found.push(path);
            }
        };
        for path in std::iter::once(&self.path).chain(&self.others) {
            add(path.clone());
            // By a program on Windows.
            let separated = path.as_bytes().contains(&b'\\').then(|| {
                let bytes = path.as_bytes().iter();
                bytes.map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect::<Vec<u8>>()
            });
            for name in std::iter::once(path.as_bytes().to_vec()).chain(separated) {
                for variant in variants(&name) {
                    // Which may have made a way up of it.
                    if let Ok(path) = escaping::path(&variant) {
                        add(path);
                    }
                }
            }
        }
        found
    }
}

/// A name and its Unicode forms; of one that is not UTF-8, what it says in
/// Windows-1252, the "ANSI" of Western programs.
fn variants(name: &[u8]) -> Vec<Vec<u8>> {
    let decoded = || name.iter().map(|byte| from_1252(*byte)).collect::<Option<String>>();
    let text = match str::from_utf8(name) {
        Ok(text) => Some(text.to_owned()),
        Err(_) => decoded(),
    };
    let Some(text) = text else { return vec![name.to_vec()] };
    if text.is_ascii() {
        return vec![text.into_bytes()];
    }
    let (composed, decomposed) = (text.nfc().collect::<String>(), text.nfd().collect::<String>());
    vec![text.into_bytes(), composed.into_bytes(), decomposed.into_bytes()]
}

fn from_1252(byte: u8) -> Option<char> {
    let code = match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        other => other.into(),
    };
    char::from_u32(code).filter(|_| code != 0 || byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(name: &[u8]) -> Vec<Vec<u8>> {
        let listed = ManifestEntry { path: RelPath::from_bytes(name), ..ManifestEntry::default() };
        listed.path_variants().iter().map(|path| path.as_bytes().to_vec()).collect()
    }

    #[test]
    fn other_systems_spell_otherwise() {
        assert_eq!(others(b"plain/name"), Vec::<Vec<u8>>::new());
        assert_eq!(others(b"a\\b"), [b"a/b"]);
        assert_eq!(others(b".\\a\\b"), [b"a/b"]);
        assert_eq!(others(b"m\xe4\x80"), ["m\u{e4}\u{20ac}", "ma\u{308}\u{20ac}"].map(Vec::from));
        assert_eq!(others("\u{e9}".as_bytes()), [Vec::from("e\u{301}")]);
        assert_eq!(others("e\u{301}".as_bytes()), [Vec::from("\u{e9}")]);
        assert_eq!(others(b"d\\\xe9")[..2], [Vec::from("d\\\u{e9}"), Vec::from("d\\e\u{301}")]);
        assert!(others(b"d\\\xe9").contains(&Vec::from("d/\u{e9}")));
        assert_eq!(others(b"\x81"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn no_form_of_a_path_leads_out() {
        for name in [&b"..\\a"[..], b"a\\..\\..\\b", b"\\a", b"\\\\host\\a", b"a\\\\b"] {
            assert_eq!(others(name), Vec::<Vec<u8>>::new(), "{}", name.escape_ascii());
        }
    }
}
