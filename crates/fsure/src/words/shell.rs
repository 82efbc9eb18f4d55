//! Commands in hints, so that they work as they are printed.

use std::path::Path;

/// A path as a shell takes it.
pub fn shell_quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':' | '@');
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in
            [("/srv/a-b_c.d", "/srv/a-b_c.d"), ("/srv/it's", r"'/srv/it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_quoted(Path::new(path)), word);
        }
    }
}
