//! Names inside a root, as the bytes the file system gave, because a name that
//! is not valid UTF-8 deserves the same protection as any other.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// A path relative to its root: raw bytes, `/` between components, never
/// absolute, never with `.` or `..`; the empty path is the root itself.
///
/// The order is that of the bytes, which is also the order of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<[u8]>);

impl RelPath {
    /// The root itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Takes bytes that already are a relative path in the form described above.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of `name` in this folder.
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        if !self.is_root() {
            bytes.extend_from_slice(&self.0);
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes.into_boxed_slice())
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// The folder this path is in, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Some(Self(self.0[..end].into()))
    }

    /// The folders this path is in, from the top, without the root.
    pub fn folders(&self) -> impl Iterator<Item = Self> {
        let ends = (0..self.0.len()).filter(|end| self.0[*end] == b'/');
        ends.map(|end| Self(self.0[..end].into()))
    }

    /// Returns true if this is the path of `name` in `folder`.
    pub fn equals(&self, folder: &Self, name: &[u8]) -> bool {
        match self.0.strip_suffix(name) {
            Some(rest) if folder.is_root() => rest.is_empty(),
            Some(rest) => rest.strip_suffix(b"/") == Some(&*folder.0),
            None => false,
        }
    }

    /// Returns true if this path is `folder` or lies anywhere below it.
    pub fn is_within(&self, folder: &Self) -> bool {
        folder.is_root()
            || self
                .0
                .strip_prefix(&*folder.0)
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The half-open range of byte strings that holds everything strictly
    /// below this folder: `path/` up to, not including, `path0`.
    pub fn below(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        if self.is_root() {
            return (Vec::new(), None);
        }
        let mut first = self.0.to_vec();
        first.push(b'/');
        let mut end = self.0.to_vec();
        end.push(b'/' + 1);
        (first, Some(end))
    }

    /// The path as text; `None` if it is not valid UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The path in a form that is safe on a terminal and can be told apart
    /// from every other path: see [`escape`].
    pub fn display(&self) -> DisplayPath<'_> {
        DisplayPath(&self.0)
    }
}

/// Prints a path for a person; made by [`RelPath::display`].
pub struct DisplayPath<'a>(&'a [u8]);

impl fmt::Display for DisplayPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { "" })?;
        f.write_str(&escape(self.0))
    }
}

/// Bytes as text that cannot move the cursor, change colours, reverse the
/// line or pass for another name: control characters, invisible and
/// direction-changing characters and invalid UTF-8 become `\n`, `\x1b`,
/// `\u{202e}` and the like, and a backslash is doubled.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut text, character);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Returns a name in the form that programs read: the bytes as text, and also in base64
/// if the text alone would lose some.
pub fn json_path_and_bytes(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(BASE64.encode(bytes))),
    }
}

/// Returns the bytes of a name that is in that form.
pub fn json_path(text: String, bytes: Option<String>) -> Vec<u8> {
    bytes.and_then(|bytes| BASE64.decode(bytes).ok()).unwrap_or(text.into_bytes())
}

fn push_escaped(text: &mut String, character: char) {
    match character {
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if is_unseen(c) => text.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        c => text.push(c),
    }
}

/// C1 controls, zero-width characters, direction marks, line separators, the
/// byte-order mark and tags: what Unicode prints as nothing or as something else.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0x80..=0x9f | 0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        for (bytes, shown) in [
            (&b"plain name.txt"[..], "plain name.txt"),
            (b"new\nline", "new\\nline"),
            (b"back\\slash", "back\\\\slash"),
            (b"\x1b[31mred", "\\x1b[31mred"),
            (b"bad\xff\xfe", "bad\\xff\\xfe"),
            ("b\u{202e}txt".as_bytes(), "b\\u{202e}txt"),
            ("é".as_bytes(), "é"),
        ] {
            assert_eq!(escape(bytes), shown);
        }
    }

    #[test]
    fn below_holds_exactly_the_folder_s_content() {
        let folder = RelPath::from_bytes(*b"a");
        let (first, end) = folder.below();
        let end = end.unwrap();
        for (path, inside) in
            [("a", false), ("a-b", false), ("a/", true), ("a/x", true), ("a0", false)]
        {
            let bytes = path.as_bytes().to_vec();
            assert_eq!(bytes >= first && bytes < end, inside, "{path}");
        }
    }

    #[test]
    fn a_path_is_its_folder_and_its_name() {
        let path = RelPath::from_bytes(*b"a/b");
        for (folder, name, is) in
            [("a", "b", true), ("", "a/b", true), ("", "b", false), ("a/b", "", false)]
        {
            let folder = RelPath::from_bytes(folder.as_bytes());
            assert_eq!(path.equals(&folder, name.as_bytes()), is, "{} {name}", folder.display());
        }
        assert!(!RelPath::from_bytes(*b"ab").equals(&RelPath::from_bytes(*b"a"), b"b"));
    }

    #[test]
    fn within_needs_a_whole_component() {
        let folder = RelPath::from_bytes(*b"a/b");
        assert!(RelPath::from_bytes(*b"a/b").is_within(&folder));
        assert!(RelPath::from_bytes(*b"a/b/c").is_within(&folder));
        assert!(!RelPath::from_bytes(*b"a/bc").is_within(&folder));
        assert!(folder.is_within(&RelPath::root()));
    }
}
