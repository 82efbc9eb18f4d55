//! Messages that the processes of a RAM folder exchange and that the user reads: one JSON
//! value a line, on a pipe and at the control socket.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::write_back::Generation;
use fsure_core::{Error, ExitCode, RelPath};

/// Messages that a worker writes to its standard output, and that a keeper passes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "kebab-case")]
pub enum DaemonEvent {
    /// The folder is in RAM, and is kept.
    Ready {
        /// True if the folder was in RAM already: a worker before this one had it.
        adopted: bool,
    },
    /// It is not, or not yet again.
    Failed(Failed),
    /// It is out of RAM.
    Ended(UnbindReport),
    /// A warning for the user.
    Warning {
        /// Text of the warning.
        words: String,
    },
}

impl DaemonEvent {
    /// Returns the messages about its start or end, one a line.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Ready { .. } | Self::Warning { .. } => Vec::new(),
            Self::Failed(failed) => vec![failed.message.clone()],
            Self::Ended(ended) => {
                let last = match ended.generation {
                    0 => "out of RAM".to_owned(),
                    number => format!("out of RAM; generation {number} is on the disk"),
                };
                ended.warnings.iter().cloned().chain([last]).collect()
            }
        }
    }
}

/// Requests to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Request {
    /// The state at this moment.
    Status,
    /// A generation now.
    Sync,
    /// A comparison of both sides.
    Verify,
    /// The end.
    Unbind,
}

/// Responses of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Response {
    /// Response to [`Request::Status`].
    Status(Box<FolderState>),
    /// It is on the disk.
    Synced(SyncReport),
    /// The names that differ.
    Verified {
        /// Each name with its difference; empty if both sides are equal.
        differences: Vec<DifferenceLine>,
    },
    /// It is out of RAM.
    Ended(UnbindReport),
    /// It was not done.
    Failed(Failed),
}

/// An error, as one process reports it to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Message of the error.
    pub message: String,
    /// The next step for the user.
    pub hint: Option<String>,
    /// The exit code that it deserves.
    pub code: u8,
}

/// One generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncReport {
    /// Its number; that of the last one if nothing had changed.
    pub generation: u64,
    /// Names made or changed.
    pub changed: u64,
    /// Names removed.
    pub removed: u64,
    /// Bytes written.
    pub written: u64,
    /// Duration, in milliseconds.
    pub took_ms: f64,
    /// Files that are not brought to the disk, as in [`FolderState::unsettled`].
    pub unsettled: Vec<String>,
    /// Time span of the moments of which its names and files are, in milliseconds; 0 if all
    /// are of one moment.
    pub spread_ms: f64,
    /// Path of the trash folder with what was removed.
    pub trash: Option<String>,
    /// Folders that stay on the disk side.
    pub kept: Vec<String>,
}

/// A name below the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathName {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

impl PathName {
    /// As text, and in base64 where the text alone would lose some.
    pub fn new(path: &RelPath) -> Self {
        let bytes = path.as_bytes();
        let is_text = std::str::from_utf8(bytes).is_ok();
        Self { path: text(path), path_bytes: (!is_text).then(|| BASE64.encode(bytes)) }
    }

    /// Returns the name for display, distinct from every other.
    pub fn shown(&self) -> String {
        let bytes = self.path_bytes.as_ref().and_then(|text| BASE64.decode(text).ok());
        let bytes = bytes.unwrap_or_else(|| self.path.clone().into_bytes());
        RelPath::from_bytes(bytes).display().to_string()
    }
}

fn text(path: &RelPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

/// A name that differs between the sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceLine {
    /// The name.
    #[serde(flatten)]
    pub name: PathName,
    /// `only-in-ram`, `only-on-disk`, `content`, `metadata`, `changing`.
    pub how: String,
}

/// The end of a RAM folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbindReport {
    /// The last generation.
    pub generation: u64,
    /// Path of the trash folder that is left; `None` if there is none.
    pub trash: Option<String>,
    /// Warnings: something was not as it should be, though nothing is lost.
    pub warnings: Vec<String>,
}

/// State of a RAM folder at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FolderState {
    /// Maximum age of a change that a crash loses, as agreed with the user, in
    /// milliseconds.
    pub max_loss_ms: u64,
    /// Greatest possible age of a change that is not on the disk, in milliseconds.
    pub worst_loss_ms: u64,
    /// The last generation.
    pub generation: u64,
    /// Duration of the last generation, in milliseconds.
    pub took_ms: f64,
    /// Time span of the moments of which its names and files are, in milliseconds; 0 if all
    /// are of one moment.
    pub spread_ms: f64,
    /// Generations since the worker began.
    #[serde(default)]
    pub generations: u64,
    /// Those of them that are not of one moment.
    #[serde(default)]
    pub spread_generations: u64,
    /// The largest spread of these.
    #[serde(default)]
    pub spread_max_ms: f64,
    /// Names made, changed or removed since the worker began.
    pub changed: u64,
    /// Bytes written since the worker began.
    pub written: u64,
    /// Files, and their bytes.
    pub files: u64,
    /// Bytes in them.
    pub content: u64,
    /// Memory that is taken, of `bytes`.
    pub used: u64,
    /// Memory that it may take.
    pub bytes: u64,
    /// True if it is read-only, because the disk refuses generations.
    pub fenced: bool,
    /// True if a generation takes so long that the agreed loss cannot be kept.
    pub too_slow: bool,
    /// Failures in a row.
    pub failures: u32,
    /// Message of the last failure; `None` if the last generation succeeded.
    pub error: Option<String>,
    /// Files that are written whenever they are read, that cannot be read for lack of
    /// permission, or that the disk cannot hold.
    pub unsettled: Vec<String>,
    /// Path of the trash folder of the last generation that removed suspiciously much.
    pub trash: Option<String>,
    /// Method by which changes are found, as text.
    pub tracking: String,
    /// True if it is being taken out of RAM.
    pub ending: bool,
    /// The current step; `None` while it waits for the next generation.
    pub doing: Option<String>,
    /// Time for which that step has lasted, in milliseconds.
    pub doing_ms: u64,
}

impl FolderState {
    /// Returns what is wrong, as text; empty if all is well.
    pub fn wrongs(&self) -> Vec<String> {
        let mut wrongs = Vec::new();
        if self.fenced {
            wrongs.push("read-only, until the disk takes a generation".to_owned());
        }
        if let Some(error) = self.error.as_ref().filter(|_| self.failures > 0) {
            wrongs.push(format!("{} generations failed in a row: {error}", self.failures));
        }
        if let Some(doing) = self.doing.as_ref().filter(|_| self.doing_ms > self.max_loss_ms) {
            let for_s = self.doing_ms as f64 / 1e3;
            wrongs.push(format!(
                "busy with one step for {for_s:.1} s, and no generation is made: {doing}"
            ));
        }
        if self.worst_loss_ms > self.max_loss_ms {
            wrongs.push("a crash can lose more than '--max-loss' allows".to_owned());
        }
        if self.too_slow {
            wrongs.push("the disk is too slow for this '--max-loss'".to_owned());
        }
        if let Some(first) = self.unsettled.first() {
            let count = self.unsettled.len();
            wrongs.push(format!(
                "{count} not written to the disk, because they change during every read, must not \
                 be read, or do not fit its file system: {first}"
            ));
        }
        wrongs
    }
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        Self { message: error.to_string(), hint: error.hint(), code: error.exit_code().number() }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        let Failed { message, hint, code } = failed;
        let is = |one: &ExitCode| one.number() == code;
        let known = [ExitCode::Usage, ExitCode::Interrupted, ExitCode::Internal];
        let code = known.into_iter().find(is).unwrap_or(ExitCode::Incomplete);
        Self::Reported { message, hint, code }
    }
}

impl UnbindReport {
    /// Returns the exit code of the command.
    pub fn exit_code(&self) -> ExitCode {
        if self.warnings.is_empty() { ExitCode::Clean } else { ExitCode::Differences }
    }
}

impl From<&Generation> for SyncReport {
    fn from(done: &Generation) -> Self {
        let texts = |paths: &[RelPath]| paths.iter().map(text).collect();
        Self {
            generation: done.number,
            changed: done.changed,
            removed: done.removed,
            written: done.written,
            took_ms: done.took.as_secs_f64() * 1e3,
            unsettled: texts(&done.unsettled),
            spread_ms: done.spread.map_or(0.0, |spread| spread.as_secs_f64() * 1e3),
            trash: done.trash.as_ref().map(|path| path.display().to_string()),
            kept: texts(&done.kept),
        }
    }
}

/// A value as a line.
pub(super) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_exact() {
        for (bytes, json, shown) in [
            (&b""[..], r#"{"path":""}"#, "."),
            (b"a\nb", r#"{"path":"a\nb"}"#, "a\\nb"),
            (b"\xff", "{\"path\":\"\u{fffd}\",\"path_bytes\":\"/w==\"}", "\\xff"),
        ] {
            let name = PathName::new(&RelPath::from_bytes(bytes.to_vec()));
            assert_eq!((&*line(&name), &*name.shown()), (json, shown));
        }
    }

    #[test]
    fn an_error_of_another_process_ends_as_its_own_would() {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let full = Error::Io { doing: "write", path: "/srv".into(), source };
        let refused = Error::Usage { message: "no".to_owned(), hint: None };
        for error in [full, refused, Error::Interrupted(ExitCode::Interrupted)] {
            let restored = Error::from(Failed::from(&error));
            assert_eq!(restored.exit_code(), error.exit_code());
            assert_eq!((restored.to_string(), restored.hint()), (error.to_string(), error.hint()));
        }
    }
}
