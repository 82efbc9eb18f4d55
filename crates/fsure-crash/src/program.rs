//! A program of the user on a drive: its output and its end.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fsure_os::path;
use fsure_os::process_tree::{Ended, Lines, ProcessTree, Task};

use super::backend::MountedMedium;
use fsure_core::Monitor;

/// Interval at which a program is polled for its end.
pub(super) const PROGRAM_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Number of lines that are kept of a program's standard error.
const LAST_WORDS: usize = 4;

/// Bytes that are kept of each line.
const WORDS_MAX: usize = 1000;

/// A command to run: a program and its arguments, in which `$MNT` and `$ACKED` stand for
/// the environment variables of these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramCommand<'a> {
    pub(super) words: &'a [OsString],
    pub(super) acked: Option<u64>,
}

/// A program that runs.
#[derive(Debug)]
pub(super) struct Program {
    family: ProcessTree,
    last_lines: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// Starts the program with the file system as its working folder.
    pub(super) fn start(
        mounted: &MountedMedium,
        command: &ProgramCommand<'_>,
        output: Lines,
    ) -> std::io::Result<Self> {
        let mut environment = vec![("MNT".to_owned(), mounted.place().into())];
        if let Some(acked) = command.acked {
            environment.push(("ACKED".to_owned(), acked.to_string().into()));
        }
        let task = Task {
            command: filled(command.words, &environment),
            environment,
            folder: mounted.place().to_owned(),
        };
        let last_lines = Arc::<Mutex<Vec<String>>>::default();
        let keep = Arc::clone(&last_lines);
        let error = move |line: &[u8]| {
            let mut last_lines = locked(&keep);
            if last_lines.len() == LAST_WORDS {
                last_lines.remove(0);
            }
            let line = &line[..line.len().min(WORDS_MAX)];
            last_lines.push(String::from_utf8_lossy(line).trim_end().to_owned());
        };
        Ok(Self { family: mounted.spawn(&task, output, Box::new(error))?, last_lines })
    }

    /// Returns the end of the program; `None` while it runs.
    pub(super) fn ended(&mut self) -> std::io::Result<Option<Ended>> {
        self.family.try_wait()
    }

    /// Waits until the program ends; `None` if the monitor requests a stop before.
    pub(super) fn wait(&mut self, monitor: &dyn Monitor) -> std::io::Result<Option<Ended>> {
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(Some(ended));
            }
            if monitor.stop_requested().is_some() {
                return Ok(None);
            }
            std::thread::sleep(PROGRAM_POLL_INTERVAL);
        }
    }

    /// Returns its last lines on standard error that are not empty.
    pub(super) fn last_words(&self) -> Vec<String> {
        let last_lines = locked(&self.last_lines);
        last_lines.iter().filter(|line| !line.is_empty()).cloned().collect()
    }
}

/// Returns a command with the values of its variables. A line for a shell stays as it is:
/// the shell has the variables in its environment, and a path may have quotes in it.
fn filled(words: &[OsString], environment: &[(String, OsString)]) -> Vec<OsString> {
    let is_for_shell = matches!(words, [shell, option, ..] if shell == "sh" && option == "-c");
    let of = |(place, word): (usize, &OsString)| match place {
        2 if is_for_shell => word.clone(),
        _ => filled_in(word, environment),
    };
    words.iter().enumerate().map(of).collect()
}

/// Returns a word with the values of its variables, byte by byte: neither the word nor a
/// path needs to be text.
fn filled_in(word: &OsString, environment: &[(String, OsString)]) -> OsString {
    let bytes = path::bytes(Path::new(word));
    let (mut rest, mut filled) = (&bytes[..], Vec::new());
    while let Some(place) = rest.iter().position(|byte| *byte == b'$') {
        filled.extend_from_slice(&rest[..place]);
        rest = &rest[place..];
        let found = environment.iter().find_map(|(name, value)| Some((length(rest, name)?, value)));
        if let Some((length, value)) = found {
            filled.extend_from_slice(&path::bytes(Path::new(value)));
            rest = &rest[length..];
        } else {
            filled.push(b'$');
            rest = &rest[1..];
        }
    }
    filled.extend_from_slice(rest);
    path::from_bytes(&filled).into_owned().into_os_string()
}

/// Returns the length of `$NAME` or `${NAME}` if `text` begins with it, and not with a
/// longer name.
fn length(text: &[u8], name: &str) -> Option<usize> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if text.starts_with(format!("${{{name}}}").as_bytes()) {
        return Some(name.len() + 3);
    }
    let rest = text.strip_prefix(format!("${name}").as_bytes())?;
    (!rest.first().is_some_and(is_of_name)).then_some(name.len() + 1)
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Describes the end of a program in words.
pub(super) fn describe_end(ended: Ended, last_words: &[String]) -> String {
    let end = match ended {
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
    };
    if last_words.is_empty() { end } else { format!("{end}: {}", last_words.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in() {
        let environment = [("MNT".to_owned(), "/place".into()), ("ACKED".to_owned(), "12".into())];
        for (word, expected) in [
            ("$MNT/data", "/place/data"),
            ("--acked=${ACKED}", "--acked=12"),
            ("$HOME", "$HOME"),
            ("$MNTDATA/$MNT_/$MNT2", "$MNTDATA/$MNT_/$MNT2"),
            ("${MNT}DATA:$MNT:$", "/placeDATA:/place:$"),
            ("plain", "plain"),
        ] {
            assert_eq!(filled(&[word.into()], &environment), [expected]);
        }
        let environment = [("MNT".to_owned(), "/$ACKED".into()), environment[1].clone()];
        assert_eq!(filled(&["$MNT".into()], &environment), ["/$ACKED"], "once");
        let line = ["sh", "-c", "cd $MNT", "$MNT"].map(OsString::from);
        let expected = ["sh", "-c", "cd $MNT", "/$ACKED"];
        assert_eq!(filled(&line, &environment), expected, "a shell has its environment");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_filled_in_as_it_is() {
        let of = |bytes: &[u8]| path::from_bytes(bytes).into_owned().into_os_string();
        let environment = [("MNT".to_owned(), of(b"/tmp/\xff"))];
        assert_eq!(filled(&["$MNT/a".into()], &environment), [of(b"/tmp/\xff/a")]);
        assert_eq!(filled(&[of(b"\xfe$MNT")], &environment), [of(b"\xfe/tmp/\xff")]);
    }
}
