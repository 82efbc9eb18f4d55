//! The reasons why a file of results cannot be read.

use std::io;

use super::VERSION;

/// Reason why something is not a result that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It does not begin as a result does.
    #[error("line 1 does not begin a result of speed or flush")]
    NotAResult,
    /// It is the report of a command that is not shown.
    #[error("it is a report of 'fsure {0}', which the page does not show")]
    OtherCommand(String),
    /// It was written by a later program.
    #[error(
        "written by {program} in version {version} of the format; this program reads {VERSION}"
    )]
    TooNew {
        /// The program that wrote it.
        program: String,
        /// The format's version.
        version: u32,
    },
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Damaged {
        /// Its number, from 1.
        line: usize,
        /// Message of the parser.
        why: String,
    },
}
