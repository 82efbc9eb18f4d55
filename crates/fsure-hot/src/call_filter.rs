//! The single calls that a log shows: by program, by path, and by operation. The summary counts
//! all others, too.

use std::path::Path;

use fsure_os::io_trace::{LoggedCall, LoggedOperation};

/// Bytes that the kernel keeps of a program's name.
const PROGRAM_NAME_BYTES: usize = 15;

/// The calls that are logged. A list that is empty restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Names of programs, or numbers of processes.
    pub programs: Vec<String>,
    /// Patterns for the whole path: `*` stands for any bytes, `?` for one.
    pub paths: Vec<String>,
    /// Operations.
    pub operations: Vec<LoggedOperation>,
}

impl CallFilter {
    /// Returns the operations that the kernel is to report.
    pub(super) fn operations(&self) -> Vec<LoggedOperation> {
        if self.operations.is_empty() {
            return LoggedOperation::ALL.to_vec();
        }
        self.operations.clone()
    }

    /// Returns true if a call is logged.
    pub(super) fn matches(&self, call: &LoggedCall) -> bool {
        let is_program = |program: &String| {
            let is_number = program.parse() == Ok(call.process.id);
            is_number || shortened(program) == call.process.name.as_bytes()
        };
        let is_path =
            |pattern: &String| call.path.as_deref().is_some_and(|path| fits(pattern, path));
        (self.programs.is_empty() || self.programs.iter().any(is_program))
            && (self.paths.is_empty() || self.paths.iter().any(is_path))
    }
}

/// The part of a program's name that the kernel keeps.
fn shortened(program: &str) -> &[u8] {
    let name = program.as_bytes();
    &name[..name.len().min(PROGRAM_NAME_BYTES)]
}

fn fits(pattern: &str, path: &Path) -> bool {
    glob(pattern.as_bytes(), &fsure_os::path::bytes(path))
}

/// Returns true if a pattern matches all of the text. It goes back to the last `*` only, so the
/// time is bounded by the product of both lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text, mut last_star) = (0, 0, None);
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at, in_text));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else { return false };
                last_star = Some((star, taken + 1));
                (at, in_text) = (star + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::io_trace::ProcessIo;

    fn call(program: &str, id: u32, path: Option<&str>) -> LoggedCall {
        LoggedCall {
            began_ns: 0,
            ns: None,
            process: ProcessIo { name: program.to_owned(), id },
            operation: LoggedOperation::Read,
            call: "read",
            path: path.map(Into::into),
            bytes: None,
            error: None,
            is_waited: false,
        }
    }

    #[test]
    fn a_pattern_is_for_the_whole_path() {
        for (pattern, path, is) in [
            ("*.sqlite", "/a/b.sqlite", true),
            ("*.sqlite", "/a/b.sqlite-wal", false),
            ("*.sqlite*", "/a/b.sqlite-wal", true),
            ("/srv/*/log", "/srv/a/b/log", true),
            ("/srv/*/log", "/srv/log", false),
            ("/a/?", "/a/b", true),
            ("/a/?", "/a/", false),
            ("", "/a", false),
            ("*", "/a", true),
            ("*a*b*a*", "/xaybzb", false),
        ] {
            assert_eq!(fits(pattern, Path::new(path)), is, "{pattern} {path}");
        }
        let many = "*a".repeat(50) + "b";
        assert!(!fits(&many, Path::new(&"a".repeat(4000))), "and it ends");
    }

    #[test]
    fn a_program_is_meant_by_its_name_or_its_number() {
        let all = CallFilter::default();
        assert!(all.matches(&call("cat", 7, None)));
        let programs = |names: &[&str]| CallFilter {
            programs: names.iter().map(|name| (*name).to_owned()).collect(),
            ..CallFilter::default()
        };
        assert!(programs(&["cat"]).matches(&call("cat", 7, None)));
        assert!(programs(&["cat", "7"]).matches(&call("dog", 7, None)));
        assert!(!programs(&["cat"]).matches(&call("cats", 7, None)));
        // The kernel cuts names off.
        let long = programs(&["gnome-terminal-server"]);
        assert!(long.matches(&call("gnome-terminal-", 7, None)));
        let paths = CallFilter { paths: vec!["/a*".to_owned()], ..CallFilter::default() };
        assert!(paths.matches(&call("cat", 7, Some("/a/b"))));
        assert!(!paths.matches(&call("cat", 7, None)), "a call on no file");
    }
}
