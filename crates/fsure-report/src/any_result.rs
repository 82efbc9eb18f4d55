//! Reads a stored result of either kind: a measurement, or what `verify --json` printed.

use std::io::BufRead;

use super::{VerifyOutput, verify_output};
use fsure_measure::results::{BoundedLines, ReadError, StoredResult, read_on};

/// Content of a file of results.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultContent {
    /// Result of `speed` or `flush`.
    Measured(Box<StoredResult>),
    /// Result of `verify`, `update`, `scrub` or `status`.
    Checked(Box<VerifyOutput>),
}

/// Reads whatever a file of results holds; its first line says what that is.
pub fn read_any(input: impl BufRead) -> Result<ResultContent, ReadError> {
    let mut lines = BoundedLines::new(input);
    let first = lines.next_line()?.ok_or(ReadError::Empty)?;
    let first: serde_json::Value = first.parse().ok().flatten().ok_or(ReadError::NotAResult)?;
    if first["type"] == "result" {
        return read_on(first, lines).map(|stored| ResultContent::Measured(Box::new(stored)));
    }
    verify_output::read_on(first, lines).map(|found| ResultContent::Checked(Box::new(found)))
}
