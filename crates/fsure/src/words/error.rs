//! What ends a run: what, where, and what to do now. A file that cannot be
//! read is a finding, never one of these.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ExitCode, shell_quoted};

/// The result of anything that can end a run.
pub type Result<T> = std::result::Result<T, Error>;

/// What ends a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong, with its place.
        message: String,
        /// What to do now.
        hint: Option<String>,
    },
    /// No catalog was found.
    #[error("no record of {}", .path.display())]
    NoRecord {
        /// What was asked for.
        path: PathBuf,
        /// The folder that could have a record: it, or the one it is in.
        folder: PathBuf,
    },
    /// A path neither exists nor is recorded. It may be on a medium that is not mounted.
    #[error("{} does not exist, and there is no record of it", .path.display())]
    NotThere {
        /// What was asked for.
        path: PathBuf,
    },
    /// There is nothing in the folder to record.
    #[error("{} is empty: there is nothing to record", .path.display())]
    EmptyRoot {
        /// The folder.
        path: PathBuf,
    },
    /// The catalog cannot be trusted or understood.
    #[error("the record {} cannot be used: {why}", .catalog.display())]
    RecordUntrusted {
        /// The catalog's file.
        catalog: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to do now.
        hint: String,
    },
    /// The catalog cannot be written.
    #[error("cannot write the record {}: {why}", .catalog.display())]
    RecordNotWritten {
        /// The catalog's file.
        catalog: PathBuf,
        /// What the system said.
        why: String,
        /// What to do now.
        hint: &'static str,
    },
    /// A file of results cannot be understood.
    #[error("{} is no result that can be shown: {why}", .path.display())]
    UnreadableResult {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused something outside any single file of a tree.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done, as a verb.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process of ours could not do what it was asked for.
    #[error("{message}")]
    Told {
        /// Why, in its words.
        message: String,
        /// What to do now.
        hint: Option<String>,
        /// What it deserves.
        code: ExitCode,
    },
    /// Something that a test stands on does not hold, and nothing was shown.
    #[error("harness broken: {why}")]
    HarnessBroken {
        /// The fact.
        why: String,
    },
    /// The run was asked to stop before it had anything to report.
    #[error("interrupted")]
    Interrupted(ExitCode),
    /// A fault of this program.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl Error {
    /// The exit code this error deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::Usage,
            Self::NoRecord { .. }
            | Self::NotThere { .. }
            | Self::EmptyRoot { .. }
            | Self::RecordNotWritten { .. }
            | Self::UnreadableResult { .. }
            | Self::Io { .. } => ExitCode::Incomplete,
            Self::RecordUntrusted { .. } => ExitCode::RecordUntrusted,
            Self::Told { code, .. } | Self::Interrupted(code) => *code,
            Self::HarnessBroken { .. } | Self::Internal(_) => ExitCode::Internal,
        }
    }

    /// What to do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } | Self::Told { hint, .. } => hint.clone(),
            Self::NoRecord { folder, .. } => Some(format!(
                "if a disk should be mounted there, mount it; '--catalog FILE' names a record kept \
                 elsewhere; to record the folder as it is now: fsure update {}",
                shell_quoted(folder)
            )),
            Self::NotThere { .. } => Some(
                "if it is on a disk that is not mounted, mount it; nothing was judged".to_owned(),
            ),
            Self::EmptyRoot { .. } => Some(
                "if a disk should be mounted there, mount it; '--force' makes an empty record"
                    .to_owned(),
            ),
            Self::RecordUntrusted { hint, .. } => Some(hint.clone()),
            Self::RecordNotWritten { hint, .. } => Some((*hint).to_owned()),
            Self::UnreadableResult { .. } => Some(
                "'fsure speed' and 'fsure flush' save results with '--save FILE'; of verify, \
                 update, scrub and status the output of '--json' is one"
                    .to_owned(),
            ),
            Self::HarnessBroken { .. } => Some(
                "end the program that changes loop devices, and run it once more; 'losetup' lists \
                 them"
                    .to_owned(),
            ),
            Self::Internal(_) => Some("please report this, with the command line".to_owned()),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("make room there, or choose another place".to_owned())
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    Some("it is mounted read-only: choose another place".to_owned())
                }
                io::ErrorKind::PermissionDenied => {
                    Some("choose a place that you may write to, or run it as its owner".to_owned())
                }
                _ => None,
            },
            Self::Interrupted(_) => None,
        }
    }
}

/// Says of a system error where it happened.
pub trait IoContext<T> {
    /// Adds what was being done, and to what.
    fn doing(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { doing, path: path.to_owned(), source })
    }
}

/// What is said of something for which the storage does not answer.
pub(crate) fn no_answer(patience: Duration) -> io::Error {
    let why = format!("the storage did not answer for {} s", patience.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, why)
}
