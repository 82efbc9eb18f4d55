//! Names on their way in and out of lists: what is a path below a root and
//! what is not, how each form spells what it cannot hold plainly, and digests
//! as text.

use fsure_core::{Algorithm, RelPath};

/// The path that a list names, if it is one below the list's root. `.` as a
/// component says nothing and is left out, as in `./name` by `find`.
pub(super) fn path(bytes: &[u8]) -> Result<RelPath, String> {
    if bytes.contains(&0) {
        return Err("a name with a NUL byte".to_owned());
    }
    if bytes.starts_with(b"/") {
        return Err("an absolute path; names are relative to the root of the list".to_owned());
    }
    let mut path: Vec<u8> = Vec::with_capacity(bytes.len());
    for component in bytes.split(|byte| *byte == b'/') {
        match component {
            b"" => return Err("a path with an empty component".to_owned()),
            b".." => return Err("a path with '..', which leads out of the root".to_owned()),
            b"." => {}
            name => {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
            }
        }
    }
    match path.is_empty() {
        true => Err("a path that names no file".to_owned()),
        false => Ok(RelPath::from_bytes(path)),
    }
}

/// The path that a list names, if it may be an absolute one, and true if it is: it is then
/// relative to `/`, for `absolute_paths` to make one below the root of the list of it.
pub(super) fn any_path(bytes: &[u8]) -> Result<(RelPath, bool), String> {
    let below = bytes.strip_prefix(b"/");
    path(below.unwrap_or(bytes)).map(|path| (path, below.is_some()))
}

/// The bytes of a hexadecimal text.
pub(super) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() || text.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}

/// A digest as hexadecimal text, if it is one of that algorithm.
pub(super) fn digest(algorithm: Algorithm, text: &[u8]) -> Result<Vec<u8>, String> {
    let value = from_hex(text).filter(|value| value.len() == algorithm.length());
    value.ok_or_else(|| {
        format!(
            "not a {} digest of {} hexadecimal digits",
            algorithm.name(),
            2 * algorithm.length()
        )
    })
}

/// The algorithm by any of the names that programs give it.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match name.to_ascii_lowercase().as_str() {
        "blake3" => Algorithm::Blake3,
        "sha256" | "sha2256" => Algorithm::Sha256,
        "sha512" | "sha2512" => Algorithm::Sha512,
        "sha1" => Algorithm::Sha1,
        "md5" => Algorithm::Md5,
        "xxh128" => Algorithm::Xxh128,
        _ => return None,
    })
}

/// Returns true if GNU's format does not write a name plainly.
pub(super) fn needs_gnu_escape(name: &[u8]) -> bool {
    name.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'))
}

/// A name in the manner of GNU, behind a line's leading backslash.
pub(super) fn gnu_escape(name: &[u8]) -> Vec<u8> {
    replaced(name, |byte| match byte {
        b'\\' => Some(b"\\\\"),
        b'\n' => Some(b"\\n"),
        b'\r' => Some(b"\\r"),
        _ => None,
    })
}

/// The name behind a leading backslash; `None` for anything but the three
/// escapes there are.
pub(super) fn gnu_unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            other => *other,
        });
    }
    Some(name)
}

/// A name in a BagIt 1.0 manifest: line ends and the percent sign encoded.
pub(super) fn percent_encode(name: &[u8]) -> Vec<u8> {
    replaced(name, |byte| match byte {
        b'\n' => Some(b"%0A"),
        b'\r' => Some(b"%0D"),
        b'%' => Some(b"%25"),
        _ => None,
    })
}

/// The name with `%0A`, `%0D` and, `with_percent`, `%25` decoded, and nothing
/// else.
pub(super) fn percent_decode(text: &[u8], with_percent: bool) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let code = rest.get(..3).map(|code| code.to_ascii_uppercase());
        let decoded = match code.as_deref() {
            Some(b"%0A") => Some(b'\n'),
            Some(b"%0D") => Some(b'\r'),
            Some(b"%25") if with_percent => Some(b'%'),
            _ => None,
        };
        name.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &rest[3..] } else { behind };
    }
    name
}

/// A name in mtree: all but plain characters as octal numbers. Blanks end a
/// word, `#` begins a comment, `*?[` are patterns, and `=` makes a keyword.
pub(super) fn octal_escape(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'.'
            | b'_'
            | b'-'
            | b'/'
            | b','
            | b'+'
            | b'%'
            | b'@'
            | b':' => text.push(*byte),
            other => text.extend_from_slice(format!("\\{other:03o}").as_bytes()),
        }
    }
    text
}

/// The name of a word in mtree: octal numbers and the escapes of C and vis(3).
pub(super) fn octal_unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'\\' {
            name.push(*first);
            continue;
        }
        if let Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7']) = rest.get(..3) {
            name.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = &rest[3..];
            continue;
        }
        let (code, behind) = rest.split_first()?;
        rest = behind;
        name.push(match code {
            b'\\' => b'\\',
            b's' => b' ',
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            b'#' => b'#',
            _ => return None,
        });
    }
    Some(name)
}

fn replaced(name: &[u8], with: impl Fn(u8) -> Option<&'static [u8]>) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for byte in name {
        match with(*byte) {
            Some(other) => text.extend_from_slice(other),
            None => text.push(*byte),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_below_the_root_gets_through() {
        for (bytes, taken) in [
            (&b"a"[..], Some(&b"a"[..])),
            (b"./a/./b", Some(b"a/b")),
            (b"...", Some(b"...")),
            (b"a/..b", Some(b"a/..b")),
            (b"\xff", Some(b"\xff")),
            (b"", None),
            (b".", None),
            (b"..", None),
            (b"a/..", None),
            (b"../a", None),
            (b"a/../b", None),
            (b"/a", None),
            (b"a//b", None),
            (b"a/", None),
            (b"a\0b", None),
        ] {
            let path = path(bytes).ok();
            assert_eq!(path.as_ref().map(RelPath::as_bytes), taken, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn different_encodings_of_programs_are_distinguished() {
        assert_eq!(percent_encode(b"a%0A\n\r"), b"a%250A%0A%0D");
        assert_eq!(percent_decode(b"a%250a%0a%0D%41%", true), b"a%0a\n\r%41%");
        assert_eq!(percent_decode(b"%25%0A", false), b"%25\n");
        assert_eq!(gnu_unescape(b"a\\nb\\\\n\\r"), Some(b"a\nb\\n\r".to_vec()));
        assert_eq!(gnu_unescape(b"a\\t"), None);
        assert_eq!(gnu_unescape(b"a\\"), None);
        assert_eq!(octal_escape(b"a b\xff\\"), b"a\\040b\\377\\134");
        assert_eq!(octal_unescape(b"a\\040\\s\\134\\\\"), Some(b"a  \\\\".to_vec()));
        assert_eq!(octal_unescape(b"\\400"), None);
        assert_eq!(octal_unescape(b"\\"), None);
    }

    #[test]
    fn hexadecimal_is_taken_in_either_case_and_nothing_else_is() {
        assert_eq!(from_hex(b"0aFF"), Some(vec![10, 255]));
        for bad in [&b""[..], b"0", b"0g", b"+1", b" 1"] {
            assert_eq!(from_hex(bad), None);
        }
    }
}
