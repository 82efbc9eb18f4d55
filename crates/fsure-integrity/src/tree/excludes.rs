//! Determines which paths are left out: `--exclude`, `config.toml` and `.fsureignore`
//! files, in the syntax of `.gitignore` because it is widely known. `.gitignore` itself
//! is never obeyed: what git leaves out is often the only copy.

use std::sync::Arc;

use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, PatternSet, meta};

use super::gitignore::{self, Rule};
use super::walk_bounds::ExcludeReason;
use fsure_core::{Error, RelPath, Result, escape};

/// The name of the pattern files.
pub const IGNORE_FILE: &str = ".fsureignore";

/// Memory for what the patterns of one file have been found to match so far.
const CACHE_BYTES: usize = 10 << 20;

/// Patterns that hold in one folder and below it.
#[derive(Debug)]
struct PatternLayer {
    folder: RelPath,
    /// An expression for each rule.
    set: meta::Regex,
    rules: Vec<Rule>,
    outer: Option<Arc<Self>>,
}

/// All patterns that hold in a folder.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// From the command line; no file can make an exception to them.
    first: Option<Arc<PatternLayer>>,
    innermost: Option<Arc<PatternLayer>>,
}

impl Patterns {
    /// The patterns given for a whole run: those of the command line, those of
    /// the root's `config.toml`, and those of the user's.
    pub fn new(command_line: &[String], root: &[String], user: &[String]) -> Result<Self> {
        let layer = |lines: &[String], outer, source| {
            let lines = lines.iter().map(String::as_str);
            PatternLayer::parse(lines, RelPath::root(), outer, source)
        };
        let outermost = layer(user, None, "exclude in your config.toml")?;
        let innermost = layer(root, outermost.clone(), ".fsure/config.toml")?;
        Ok(Self {
            first: layer(command_line, None, "--exclude")?,
            innermost: innermost.or(outermost),
        })
    }

    /// Refuses lines that are no patterns, by the name of the file that they are in.
    pub fn require_valid(lines: &[String], source: &str) -> Result<()> {
        let lines = lines.iter().map(String::as_str);
        PatternLayer::parse(lines, RelPath::root(), None, source).map(drop)
    }

    /// These patterns and those of a pattern file in `folder`.
    pub fn with_file(&self, folder: &RelPath, text: &str) -> Result<Self> {
        let file = folder.join(IGNORE_FILE.as_bytes());
        let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        let source = file.display().to_string();
        let layer = PatternLayer::parse(lines, folder.clone(), self.innermost.clone(), &source)?;
        Ok(Self { first: self.first.clone(), innermost: layer.or(self.innermost.clone()) })
    }

    /// Returns true if there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.innermost.is_none()
    }

    /// Returns the source of the pattern that leaves out a path; `None` if the path is
    /// not left out. A folder that is left out takes everything below it along. A pattern
    /// file is never left out: it could hide itself with the rest.
    pub fn leave_out(&self, path: &RelPath, is_folder: bool) -> Option<ExcludeReason> {
        if !is_folder && path.name() == IGNORE_FILE.as_bytes() {
            return None;
        }
        if let Some(verdict) = self.first.as_ref().and_then(|first| first.verdict(path, is_folder))
        {
            return verdict.then_some(ExcludeReason::CommandLine);
        }
        let mut layer = self.innermost.as_ref();
        while let Some(current) = layer {
            if let Some(verdict) = current.verdict(path, is_folder) {
                return verdict.then_some(ExcludeReason::Pattern);
            }
            layer = current.outer.as_ref();
        }
        None
    }
}

impl PatternLayer {
    fn parse<'a>(
        lines: impl Iterator<Item = &'a str>,
        folder: RelPath,
        outer: Option<Arc<Self>>,
        source: &str,
    ) -> Result<Option<Arc<Self>>> {
        let (mut expressions, mut rules) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(lines) {
            let parsed = gitignore::parse(line);
            let parsed = parsed.map_err(|why| bad_pattern(source, number, line, why))?;
            if let Some((expression, rule)) = parsed {
                expressions.push(expression);
                rules.push(rule);
            }
        }
        if rules.is_empty() {
            return Ok(None);
        }
        let bytes = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
        let all = meta::Config::new()
            .match_kind(MatchKind::All)
            .utf8_empty(false)
            .hybrid_cache_capacity(CACHE_BYTES);
        let set = meta::Builder::new().configure(all).syntax(bytes).build_many(&expressions);
        let set = set.map_err(|_| bad_pattern(source, 1, "", "the patterns are too many"))?;
        Ok(Some(Arc::new(Self { folder, set, rules, outer })))
    }

    /// Returns true if the last pattern that matches leaves the path out, false if it is
    /// an exception; `None` if no pattern matches.
    fn verdict(&self, path: &RelPath, is_folder: bool) -> Option<bool> {
        let start = if self.folder.is_root() { 0 } else { self.folder.as_bytes().len() + 1 };
        let below = path.as_bytes().get(start..)?;
        let mut fitting = PatternSet::new(self.rules.len());
        let input = Input::new(below).anchored(Anchored::Yes);
        self.set.which_overlapping_matches(&input, &mut fitting);
        let mut rules = fitting.iter().rev().map(|pattern| self.rules[pattern.as_usize()]);
        rules.find(|rule| is_folder || !rule.is_for_folders).map(|rule| !rule.is_exception)
    }
}

fn bad_pattern(source: &str, number: usize, line: &str, why: &str) -> Error {
    Error::Usage {
        message: format!(
            "bad pattern in {source}, line {number}: '{}': {why}",
            escape(line.as_bytes()),
        ),
        hint: Some("the patterns are those of .gitignore; a backslash quotes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::from_bytes(text.as_bytes())
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        let cases = [
            ("*.tmp", "a.tmp", false, true),
            ("*.tmp", "x/y/a.tmp", false, true),
            ("/*.tmp", "x/a.tmp", false, false),
            ("x/*.tmp", "x/a.tmp", false, true),
            ("x/*.tmp", "x/y/a.tmp", false, false),
            ("x/**/a", "x/y/z/a", false, true),
            ("cache/", "cache", false, false),
            ("cache/", "x/cache", true, true),
            ("# comment", "# comment", false, false),
            ("\\# no comment", "# no comment", false, true),
            ("trailing  ", "trailing", false, true),
            ("*.log\n!keep.log", "keep.log", false, false),
            ("*.log\n!keep.log", "other.log", false, true),
            ("[ab].x", "a.x", false, true),
            // What follows was asked of git 2.39.
            ("{a,b}.x", "b.x", false, false),
            ("{a,b}.x", "{a,b}.x", false, true),
            ("}{", "}{", false, true),
            ("[[:alpha:]]x", "ax", false, true),
            ("[[:alpha:]]x", "1x", false, false),
            ("[![:alpha:]_]x", "1x", false, true),
            ("[[:digit:][:upper:]]", "Z", false, true),
            ("[]a]", "]", false, true),
            ("[a-]", "-", false, true),
            ("[\\]]", "]", false, true),
            ("[c-a]", "c", false, true),
            ("[c-a]", "b", false, false),
            ("[:a]", ":", false, true),
            ("x[!a]y", "x/y", false, false),
            ("a/x[+-9]y", "a/x/y", false, false),
            ("?", "\u{fc}", false, false),
            ("??", "\u{fc}", false, true),
            ("a**/b", "ax/y/b", false, true),
            ("**/b/**", "a/b/c/d", false, true),
            ("a/**", "a", true, false),
            ("blank\\ ", "blank ", false, true),
            ("back\\\\ ", "back\\", false, true),
        ];
        for (text, name, is_folder, left_out) in cases {
            let patterns = Patterns::default().with_file(&RelPath::root(), text).unwrap();
            let verdict = patterns.leave_out(&path(name), is_folder);
            assert_eq!(verdict.is_some(), left_out, "{text} on {name}");
        }
    }

    #[test]
    fn inner_files_come_after_outer_and_the_command_line_before_all() {
        let patterns = Patterns::new(&["*.never".into()], &["*.a".into()], &[]).unwrap();
        let inner = patterns.with_file(&path("in"), "!*.a\n!*.never\n/b").unwrap();
        for (name, left_out) in [
            ("x.a", true),
            ("in/x.a", false),
            ("in/x.never", true),
            ("in/b", true),
            ("in/c/b", false),
        ] {
            assert_eq!(inner.leave_out(&path(name), false).is_some(), left_out, "{name}");
        }
    }

    #[test]
    fn names_need_not_be_text() {
        let patterns = Patterns::new(&["*.tmp".into()], &[], &[]).unwrap();
        let path = RelPath::from_bytes(*b"x/\xff\xfe.tmp");
        assert_eq!(patterns.leave_out(&path, false), Some(ExcludeReason::CommandLine));
    }

    #[test]
    fn a_bad_pattern_is_named_with_its_line() {
        let error = Patterns::default().with_file(&path("d"), "ok\n[z").unwrap_err();
        assert!(error.to_string().contains("d/.fsureignore, line 2: '[z'"), "{error}");
    }
}
