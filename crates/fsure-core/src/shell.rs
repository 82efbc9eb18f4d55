//! Commands in hints, so that they work as they are printed.

use std::path::Path;

use crate::path::is_unseen;

/// Writes a path as one word of a shell. Control characters and bytes that are not UTF-8
/// are written as `$'...'`, which bash, zsh, ksh and POSIX of 2024 take.
pub fn shell_quoted(path: &Path) -> String {
    let bytes = fsure_os::path::bytes(path);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/.-_:@+,=%".contains(byte);
    // A terminal may turn the text around at an unseen character.
    let is_text = |text: &str| !text.contains(|c: char| c.is_control() || is_unseen(c));
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.is_empty() && bytes.iter().all(is_plain) => text.to_owned(),
        Ok(text) if is_text(text) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let escaped = bytes.iter().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

/// Writes a command on a path within a sentence: in quotation marks, unless the path needs
/// some itself. What is between them, or to the end, works as it is printed.
pub fn shell_command(command: &str, path: &Path) -> String {
    let typed = format!("{command} {}", shell_quoted(path));
    if typed.contains('\'') { typed } else { format!("'{typed}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [
            ("/srv/a-b_c.d", "/srv/a-b_c.d"),
            ("/srv/it's", r"'/srv/it'\''s'"),
            ("", "''"),
            ("a\tb'", r"$'a\x09b\''"),
            ("rtl\u{202e}gpj", r"$'rtl\xe2\x80\xaegpj'"),
        ] {
            assert_eq!(shell_quoted(Path::new(path)), word);
        }
        assert_eq!(shell_command("umount", Path::new("/srv/a")), "'umount /srv/a'");
        assert_eq!(shell_command("umount", Path::new("/srv/a b")), "umount '/srv/a b'");
    }
}
