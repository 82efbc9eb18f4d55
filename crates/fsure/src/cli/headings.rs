//! Headings of the help under which options stand that several commands share. Each option names
//! its heading itself: a heading for "all that follow" would take the next command's own along.

/// The files and folders that are meant.
pub(super) const WHAT_TO_READ: &str = "What to read";
/// The effort, the rate and the source of reading.
pub(super) const HOW_TO_READ: &str = "How to read";
/// The place of the record, and its content.
pub(super) const RECORD: &str = "The record";
/// States in which a run ends, because a medium may not be mounted.
pub(super) const NOT_THE_ROOT: &str = "If the root is not as expected";
/// The signature that the record must bear.
pub(super) const TRUST: &str = "Trust";
/// The content and the form of the report.
pub(super) const OUTPUT: &str = "Output";
