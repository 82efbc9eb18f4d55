//! Names that a misspelt name probably means.

use std::path::{Path, PathBuf};

use crate::escape;
use unicode_normalization::UnicodeNormalization as _;

/// Entries of a folder that are compared with a misspelt name at most.
const ENTRIES_MAX: usize = 10_000;

/// Returns the known name that a misspelt one probably means: the nearest one, if no more than
/// a third of its letters are wrong. Two letters in wrong order count as one.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let letters = name.chars().count();
    let distance = |known: &&str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let nearest = known.into_iter().min_by_key(distance)?;
    (letters > 1 && distance(&nearest) <= (letters / 3).max(1)).then_some(nearest)
}

/// Returns the path beside a path that does not exist which it probably means.
pub(super) fn similar_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let names = fsure_os::user_file::names(folder.unwrap_or(Path::new("."))).ok()?;
    let latin_1 = |there: &[u8]| there.iter().map(|byte| char::from(*byte)).collect::<String>();
    let is_not_text = |there: &&Vec<u8>| std::str::from_utf8(there).is_err();
    let mut others = names.iter().take(ENTRIES_MAX).filter(is_not_text);
    if let Some(same) = others.find(|there| escape(there) == name || latin_1(there) == name) {
        return Some(path.with_file_name(fsure_os::path::from_bytes(same).as_ref()));
    }
    let names = names.iter().take(ENTRIES_MAX).filter_map(|name| std::str::from_utf8(name).ok());
    let names: Vec<_> = names.filter(|there| *there != name).collect();
    let same = names.iter().find(|there| there.nfc().eq(name.nfc())).copied();
    same.or_else(|| similar(name, names)).map(|similar| path.with_file_name(similar))
}

/// Returns true if two paths differ, if at all, in the Unicode normalization form of their names.
pub(super) fn is_same_in_unicode(one: &Path, other: &Path) -> bool {
    let text = |path: &Path| path.to_str().map(|text| text.nfc().collect::<String>());
    text(one).is_some_and(|one| Some(one) == text(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_others_are_not() {
        let known = ["update", "verify", "hot", "heal", "force", "photos"];
        for (typed, meant) in [
            ("verfiy", Some("verify")),
            ("Verify", Some("verify")),
            ("updaet", Some("update")),
            ("hael", Some("heal")),
            ("phots", Some("photos")),
            ("photo", Some("photos")),
            ("list", None),
            ("ignore", None),
            ("h", None),
            ("", None),
        ] {
            assert_eq!(similar(typed, known), meant, "{typed}");
        }
        assert_eq!(similar("photos", ["hot"]), None);
    }

    #[test]
    fn a_misspelt_path_finds_the_one_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let photos = folder.path().join("photos");
        std::fs::create_dir(&photos).unwrap();
        assert_eq!(similar_path(&folder.path().join("phots")), Some(photos));
        assert_eq!(similar_path(&folder.path().join("music")), None);
        assert_eq!(similar_path(&folder.path().join("none/phots")), None);
        assert_eq!(similar_path(Path::new("/")), None);
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
        std::fs::create_dir(folder.path().join(decomposed)).unwrap();
        std::fs::create_dir(folder.path().join("cafe")).unwrap();
        let found = similar_path(&folder.path().join(composed));
        assert_eq!(found, Some(folder.path().join(decomposed)));
        assert!(is_same_in_unicode(Path::new(composed), Path::new(decomposed)));
        assert!(!is_same_in_unicode(Path::new(composed), Path::new("cafe")));
    }
}
