//! The names that a Rust source uses, found without a parser: enough for
//! `tidy.rs`, and nothing that needs a compiler's libraries. Comments and
//! literals are passed over; a `use` counts as all the paths it stands for.

/// A path such as `crate::words::Entry` or a single word, and where it stands.
pub(crate) struct Found<'a> {
    /// Its names.
    pub(crate) path: Vec<&'a str>,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The two tokens before it.
    pub(crate) before: [&'a str; 2],
    /// The token after it.
    pub(crate) after: &'a str,
    /// Number of inline modules around it.
    pub(crate) inside: usize,
    /// True if one of these modules is `#[cfg(test)]`.
    pub(crate) is_test: bool,
}

/// All paths of a source, every branch of `use a::{b, c}` on its own.
pub(crate) fn paths(source: &str) -> Vec<Found<'_>> {
    let t = tokens(source);
    let text = |at: usize| t.get(at).map_or("", |token| token.0);
    let (mut all, mut at, mut braces) = (vec![], 0, 0);
    let mut modules: Vec<(i32, bool)> = vec![];
    while at < t.len() {
        let before = [2, 1].map(|back| at.checked_sub(back).map_or("", text));
        let line = t[at].1;
        if text(at) == "mod" && text(at + 2) == "{" {
            let is_test =
                at > 6 && t[at - 5..at].iter().map(|t| t.0).eq(["cfg", "(", "test", ")", "]"]);
            modules.push((braces, is_test));
        }
        braces += i32::from(text(at) == "{") - i32::from(text(at) == "}");
        if text(at) == "}" {
            modules.pop_if(|module| module.0 == braces);
        }
        let mut paths = vec![];
        at = if text(at).starts_with(|c: char| c.is_alphabetic()) {
            branches(&t, at, &[], &mut paths)
        } else {
            at + 1
        };
        let (inside, is_test) = (modules.len(), modules.iter().any(|module| module.1));
        let place = |path| Found { path, line, before, after: text(at), inside, is_test };
        all.extend(paths.into_iter().map(place));
    }
    all
}

/// The branches of the path at `at`; returns where it ends.
fn branches<'a>(
    t: &[(&'a str, usize)],
    mut at: usize,
    stem: &[&'a str],
    all: &mut Vec<Vec<&'a str>>,
) -> usize {
    let text = |at: usize| t.get(at).map_or("", |token| token.0);
    let mut path = stem.to_vec();
    while text(at) != "{" {
        path.push(text(at));
        at += 1;
        if text(at) != "::" || text(at + 1) == "<" {
            all.push(path);
            return at;
        }
        at += 1;
    }
    at += 1;
    while !["}", ""].contains(&text(at)) {
        at = if text(at) == "," { at + 1 } else { branches(t, at, &path, all) };
    }
    at + 1
}

/// Words, `::` and other characters, each with its line; no comments, no literals.
fn tokens(text: &str) -> Vec<(&str, usize)> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let hashes = rest[word..].len() - rest[word..].trim_start_matches('#').len();
        let raw =
            ["r", "br", "cr"].contains(&&rest[..word]) && rest[word + hashes..].starts_with('"');
        let until = |start, end: &str| {
            rest[start..].find(end).map_or(rest.len(), |at| start + at + end.len())
        };
        let mut is_token = false;
        let length = if raw {
            until(word + hashes + 1, &format!("\"{}", "#".repeat(hashes)))
        } else if rest.starts_with("//") {
            until(0, "\n")
        } else if rest.starts_with("/*") {
            until(2, "*/")
        } else if first == '"' || rest.starts_with("'\\") {
            let mut at = 1;
            while at < rest.len() && !rest[at..].starts_with(first) {
                at += if rest[at..].starts_with('\\') { 1 } else { 0 };
                at += rest[at..].chars().next().map_or(0, char::len_utf8);
            }
            at + 1
        } else if first == '\'' && rest.chars().nth(2) == Some('\'') {
            until(1 + rest.chars().nth(1).map_or(0, char::len_utf8), "'")
        } else {
            is_token = !first.is_whitespace();
            word.max(if rest.starts_with("::") { 2 } else { first.len_utf8() })
        };
        if is_token {
            tokens.push((&rest[..length], line));
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}
