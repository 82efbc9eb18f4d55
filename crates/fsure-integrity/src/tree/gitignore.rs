//! A pattern of `.gitignore` as a regular expression over the bytes of a path. What git
//! keeps must not be left out, so this follows git to the byte: braces mean nothing, `?`
//! is one byte, a class never matches a slash.

use std::fmt::Write as _;

/// A pattern that is ready to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// True if it takes back what one before it has left out.
    pub(super) is_exception: bool,
    /// True if it is about folders only.
    pub(super) is_for_folders: bool,
}

/// A line as an expression for the path below the folder of its file, and what it says of
/// what matches; `None` for blank lines and comments, an error for what git takes for a
/// pattern that matches nothing.
pub(super) fn parse(line: &str) -> Result<Option<(String, Rule)>, &'static str> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = without_blanks(line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (is_exception, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
    let (is_for_folders, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
    // A slash anywhere ties the pattern to its folder; otherwise it is a name at any depth.
    let glob = Glob { bytes: line.as_bytes(), is_name: !line.contains('/') };
    Ok(Some((glob.expression()?, Rule { is_exception, is_for_folders })))
}

/// A line without the blanks at its end; a backslash before one keeps it.
fn without_blanks(line: &str) -> &str {
    let (mut end, mut is_quoted) = (0, false);
    for (at, c) in line.char_indices() {
        if c != ' ' || is_quoted {
            end = at + c.len_utf8();
        }
        is_quoted = c == '\\' && !is_quoted;
    }
    &line[..end]
}

struct Glob<'a> {
    bytes: &'a [u8],
    is_name: bool,
}

impl Glob<'_> {
    fn expression(&self) -> Result<String, &'static str> {
        let glob = self.bytes.strip_prefix(b"/").unwrap_or(self.bytes);
        // git compares what comes before the first special character by itself: what
        // follows it is at the beginning of a pattern.
        let prefix = glob.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(glob.len());
        let mut text = if self.is_name { "^(?:.*/)?".to_owned() } else { "^".to_owned() };
        let mut rest = glob;
        while let Some((first, behind)) = rest.split_first() {
            let at = glob.len() - rest.len();
            rest = behind;
            match first {
                b'\\' => {
                    let (quoted, behind) = rest.split_first().ok_or("it ends with a backslash")?;
                    literal(&mut text, *quoted);
                    rest = behind;
                }
                b'?' => text.push_str("[^/]"),
                b'*' => {
                    let is_first = at == prefix || glob[at - 1] == b'/';
                    rest = self.stars(&mut text, rest, is_first);
                }
                b'[' => {
                    let (class, behind) = Class::parse(rest)?;
                    class.write(&mut text);
                    rest = behind;
                }
                other => literal(&mut text, *other),
            }
        }
        Ok(text + "$")
    }

    /// Writes one star or several, and hands back what is behind them.
    fn stars<'a>(&self, text: &mut String, behind: &'a [u8], is_first: bool) -> &'a [u8] {
        let more = behind.iter().take_while(|byte| **byte == b'*').count();
        let behind = &behind[more..];
        let is_last = behind.is_empty() || behind.starts_with(b"/") || behind.starts_with(b"\\/");
        if self.is_name || more == 0 || !is_first || !is_last {
            text.push_str("[^/]*");
            return behind;
        }
        match behind.strip_prefix(b"/") {
            // No folder, or any number of them.
            Some(rest) => {
                text.push_str("(?:.*/)?");
                rest
            }
            None => {
                text.push_str(".*");
                behind
            }
        }
    }
}

fn literal(text: &mut String, byte: u8) {
    write!(text, "\\x{byte:02x}").expect("text has room");
}

/// The bytes that a class in brackets matches.
struct Class([bool; 256]);

impl Class {
    /// Reads a class behind its opening bracket, and hands back what is behind it.
    fn parse(text: &[u8]) -> Result<(Self, &[u8]), &'static str> {
        const UNCLOSED: &str = "a bracket is not closed";
        let mut class = Self([false; 256]);
        let is_negated = matches!(text.first(), Some(b'!' | b'^'));
        let mut rest = &text[usize::from(is_negated)..];
        let mut is_first = true;
        // The first character of a range, if a hyphen follows.
        let mut before = None;
        loop {
            let (byte, behind) = rest.split_first().ok_or(UNCLOSED)?;
            if *byte == b']' && !is_first {
                rest = behind;
                break;
            }
            (rest, is_first) = (behind, false);
            let is_range = behind.first().is_some_and(|next| *next != b']');
            match (byte, before) {
                (b'-', Some(low)) if is_range => {
                    let (high, behind) = quoted(rest).ok_or(UNCLOSED)?;
                    (low..=high).for_each(|byte| class.0[usize::from(byte)] = true);
                    (rest, before) = (behind, None);
                }
                (b'[', _) if behind.starts_with(b":") => {
                    let end = behind.iter().position(|byte| *byte == b']').ok_or(UNCLOSED)?;
                    let name = behind[1..end].strip_suffix(b":");
                    match name.filter(|_| end > 1) {
                        Some(name) => {
                            class.add(named(name).ok_or("an unknown character class")?);
                            (rest, before) = (&behind[end + 1..], None);
                        }
                        None => {
                            class.0[usize::from(b'[')] = true;
                            before = Some(b'[');
                        }
                    }
                }
                _ => {
                    let start = &text[text.len() - rest.len() - 1..];
                    let (byte, behind) = quoted(start).ok_or(UNCLOSED)?;
                    class.0[usize::from(byte)] = true;
                    (rest, before) = (behind, Some(byte));
                }
            }
        }
        if is_negated {
            class.0.iter_mut().for_each(|is_in| *is_in = !*is_in);
        }
        class.0[usize::from(b'/')] = false;
        Ok((class, rest))
    }

    fn add(&mut self, is_in: fn(u8) -> bool) {
        for byte in 0..=u8::MAX {
            self.0[usize::from(byte)] |= is_in(byte);
        }
    }

    fn write(&self, text: &mut String) {
        let bytes = (0..=u8::MAX).filter(|byte| self.0[usize::from(*byte)]);
        text.push('[');
        let mut is_empty = true;
        for byte in bytes {
            literal(text, byte);
            is_empty = false;
        }
        // It matches nothing.
        if is_empty {
            text.push_str("^\\x00-\\xff");
        }
        text.push(']');
    }
}

/// The first byte of a text, or the one behind a backslash, and what is behind it.
fn quoted(text: &[u8]) -> Option<(u8, &[u8])> {
    let (byte, rest) = text.strip_prefix(b"\\").unwrap_or(text).split_first()?;
    Some((*byte, rest))
}

/// The class of that name, as git has it: of ASCII, whatever the locale.
fn named(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| byte.is_ascii_graphic() || byte == b' ',
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
