//! Name mismatch: two names that differ only in their Unicode form or in case. Systems
//! differ in how they keep a name that is the same to a person: macOS may take `ü` apart
//! into two characters (NFD) while others keep one (NFC), and some change capitals. Names
//! are compared as bytes first, and in these ways only if the bytes find no match.
//!
//! Names are never compared by compatibility (NFKC, NFKD), which equates `ﬁ` with
//! `fi` and makes one name of two that people keep apart. They are compared
//! component by component: one that is not valid UTF-8 has no other spelling, and
//! does not prevent its neighbours from having one.

use std::borrow::Cow;

use unicase::UniCase;
use unicode_normalization::{UnicodeNormalization as _, is_nfc_quick};

use fsure_core::RelPath;

/// The difference between a name and the recorded one that is the same to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameMismatch {
    /// Only in its Unicode form: equal once both are in NFC.
    Nfc,
    /// In letter case, and perhaps in Unicode form: equal once both are folded.
    Case,
    /// Several names that came or went fold together, and nothing says which
    /// of them is which: they are `new` and `missing`.
    Ambiguous,
}

impl NameMismatch {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nfc => "nfc",
            Self::Case => "case",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// Returns the difference between two paths that are the same to a person; `None` if
    /// they are identical or not the same.
    pub fn between(one: &RelPath, other: &RelPath) -> Option<Self> {
        if one == other {
            None
        } else if nfc(one) == nfc(other) {
            Some(Self::Nfc)
        } else {
            (folded(one) == folded(other)).then_some(Self::Case)
        }
    }
}

/// Returns the path in NFC, which is equal for paths that differ only in their Unicode
/// form.
pub fn nfc(path: &RelPath) -> Cow<'_, [u8]> {
    let bytes = path.as_bytes();
    let is_composed =
        |text: &str| is_nfc_quick(text.chars()) == unicode_normalization::IsNormalized::Yes;
    if bytes.is_ascii() || path.as_text().is_some_and(is_composed) {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(by_component(bytes, |name| name.nfc().collect()))
}

/// Returns the folded path, which is equal for paths that differ in capitals or
/// Unicode form: the canonical caseless match of the Unicode standard (3.13, D145).
pub fn folded(path: &RelPath) -> Vec<u8> {
    if path.as_bytes().is_ascii() {
        return path.as_bytes().to_ascii_lowercase();
    }
    by_component(path.as_bytes(), |name| {
        let apart: String = name.nfd().collect();
        UniCase::unicode(apart).to_folded_case().nfd().collect()
    })
}

fn by_component(path: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let names = path.split(|byte| *byte == b'/').map(|name| match std::str::from_utf8(name) {
        Ok(name) => Cow::Owned(change(name).into_bytes()),
        Err(_) => Cow::Borrowed(name),
    });
    names.collect::<Vec<_>>().join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_only_if_a_reader_sees_one_name() {
        use NameMismatch::{Case, Nfc};
        for (one, other, expected) in [
            (&b"a"[..], &b"a"[..], None),
            (b"a", b"b", None),
            (b"readme", b"README", Some(Case)),
            ("\u{fc}".as_bytes(), "u\u{308}".as_bytes(), Some(Nfc)),
            ("\u{dc}".as_bytes(), "u\u{308}".as_bytes(), Some(Case)),
            ("D/\u{fc}/x".as_bytes(), "D/u\u{308}/x".as_bytes(), Some(Nfc)),
            ("\u{fc}/x".as_bytes(), "u\u{308}/X".as_bytes(), Some(Case)),
            // Two marks in either order.
            ("a\u{323}\u{302}".as_bytes(), "a\u{302}\u{323}".as_bytes(), Some(Nfc)),
            ("stra\u{df}e".as_bytes(), b"STRASSE", Some(Case)),
            ("\u{3c3}".as_bytes(), "\u{3c2}".as_bytes(), Some(Case)),
            // The one case in which folding takes a mark out of its order.
            ("\u{3b1}\u{345}\u{301}".as_bytes(), "\u{3b1}\u{301}\u{345}".as_bytes(), Some(Nfc)),
            // Compatibility, and letters that only look alike.
            ("\u{fb01}".as_bytes(), "\u{fb00}".as_bytes(), None),
            ("\u{2460}".as_bytes(), b"1", None),
            ("\u{ff21}".as_bytes(), b"A", None),
            ("\u{410}".as_bytes(), b"A", None),
            // The dotless i of Turkish is a letter of its own.
            ("\u{131}".as_bytes(), b"I", None),
            // A mark cannot join the slash before it.
            ("a/\u{338}".as_bytes(), "a\u{338}/".as_bytes(), None),
            // A component that is not text has one spelling, its neighbours have theirs.
            (b"A\xff", b"a\xff", None),
            (b"D/A\xff", b"d/A\xff", Some(Case)),
            (b"u\xcc\x88/A\xff", b"\xc3\xbc/A\xff", Some(Nfc)),
        ] {
            let [one, other] = [one, other].map(RelPath::from_bytes);
            let shown = format!("{} {}", one.display(), other.display());
            assert_eq!(NameMismatch::between(&one, &other), expected, "{shown}");
            assert_eq!(NameMismatch::between(&other, &one), expected, "{shown}, turned round");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_key_is_its_own_key(text in "\\PC{0,12}") {
            let path = RelPath::from_bytes(text.as_bytes());
            for key in [&|path: &RelPath| nfc(path).into_owned(), &folded as &dyn Fn(&_) -> _] {
                let once = key(&path);
                proptest::prop_assert_eq!(&key(&RelPath::from_bytes(&*once)), &once);
            }
        }

        /// Checks that two paths that are equal in NFC are also equal when folded.
        #[test]
        fn folding_keeps_together_what_is_one_already(text in "\\PC{0,12}") {
            let [one, other] = [text.nfc().collect::<String>(), text.nfd().collect()]
                .map(|text: String| RelPath::from_bytes(text.as_bytes()));
            proptest::prop_assert_eq!(nfc(&one), nfc(&other));
            proptest::prop_assert_eq!(folded(&one), folded(&other));
        }
    }
}
