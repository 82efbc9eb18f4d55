//! The messages that a Rust source can print, found without a parser: string literals in
//! the places where this code base makes errors and warnings. A compiler's library would
//! be a dependency for one test.

/// The ends of code that a message follows: the text of an error, a refusal, or a warning.
const PLACES: &[&str] = &[
    "#[error(",
    "message:",
    "message=",
    "warning=",
    "warn(",
    "warnings.push(",
    "usage(",
    "refuse(",
    "distrust(",
    "untrusted(file,",
];
/// The refusals of `ram bind` are bound to a name first.
const PLACE_IN_RAM: &str = "why=";
/// Number of characters of code that are kept before a literal.
const BEFORE: usize = 60;
/// Code between a place and the literal that does not matter.
const WRAPPERS: &[&str] = &["&", "Some(", "format!("];

/// A string literal of a source, and the code before it.
pub(crate) struct Literal {
    /// The code on the left, without spaces, comments and the content of literals.
    before: String,
    /// Its text as it is printed, with `…` for each placeholder.
    pub(crate) text: String,
}

impl Literal {
    /// Returns true for a message in words; those of placeholders alone have no meaning.
    pub(crate) fn is_message(&self, is_in_ram: bool) -> bool {
        let mut before = self.before.as_str();
        while let Some(shorter) = WRAPPERS.iter().find_map(|end| before.strip_suffix(end)) {
            before = shorter;
        }
        let is_place = PLACES.iter().any(|place| before.ends_with(place))
            || is_in_ram && before.ends_with(PLACE_IN_RAM);
        let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1;
        is_place && self.text.split(' ').filter(is_word).count() > 1
    }
}

/// Returns all string literals of a source up to its tests.
pub(crate) fn literals(source: &str) -> Vec<Literal> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut all, mut code, mut at) = (Vec::new(), String::new(), 0);
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let is_in_word = source[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        at += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some((start, end, length)) = string(rest, is_in_word) {
            let before = code[code.len().saturating_sub(BEFORE)..].to_owned();
            all.push(Literal { before, text: shown(&rest[start..end]) });
            code.push_str("\"\"");
            length
        } else if let Some(length) = character(rest) {
            code.push_str("''");
            length
        } else {
            // ASCII only, so that it can be cut anywhere.
            match first {
                _ if first.is_whitespace() => {}
                _ => code.push(if first.is_ascii() { first } else { '?' }),
            }
            first.len_utf8()
        };
    }
    all
}

/// Start and end of the content of the string literal that begins here, and the literal's
/// length; `None` if none begins here.
fn string(rest: &str, is_in_word: bool) -> Option<(usize, usize, usize)> {
    let raw = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r').filter(|_| !is_in_word);
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let start = rest.len() - raw.len() + hashes + 1;
            let end = rest[start..].find(&format!("\"{}", "#".repeat(hashes)))? + start;
            return Some((start, end, end + 1 + hashes));
        }
    }
    let mut end = rest.strip_prefix('"').map(|_| 1)?;
    while !rest[end..].starts_with('"') {
        end += if rest[end..].starts_with('\\') { 1 } else { 0 };
        end += rest[end..].chars().next()?.len_utf8();
    }
    Some((1, end, end + 1))
}

/// The length of the character literal that begins here; `None` for a lifetime, too.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let skipped = if inside.starts_with('\\') { 2 } else { inside.chars().next()?.len_utf8() };
    let close = inside.get(skipped..)?.find('\'')?;
    (close == 0 || inside.starts_with('\\') && close < 10).then_some(skipped + close + 2)
}

/// Returns a literal as it is printed: escapes resolved, one space between words, and `…`
/// for each placeholder.
fn shown(literal: &str) -> String {
    let (mut text, mut chars) = (String::new(), literal.chars().peekable());
    while let Some(next) = chars.next() {
        match (next, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't' | '0')) => {
                chars.next();
                text.push(' ');
            }
            ('\\', Some(_)) => text.extend(chars.next()),
            ('{', Some('{')) | ('}', Some('}')) => text.extend(chars.next()),
            ('{', _) => {
                chars.by_ref().find(|c| *c == '}');
                text.push('…');
            }
            _ => text.push(next),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
