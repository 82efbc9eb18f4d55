//! Headings of the help under which options stand that several commands share. Each option names
//! its heading itself: a heading for "all that follow" would take the next command's own along.

/// Which files and folders are meant.
pub(super) const WHAT_TO_READ: &str = "What to read";
/// How hard, how fast and from where content is read.
pub(super) const HOW_TO_READ: &str = "How to read";
/// Where the record is, and what it holds.
pub(super) const RECORD: &str = "The record";
/// States in which a run ends, because a medium may not be mounted.
pub(super) const NOT_THE_ROOT: &str = "If the root is not as expected";
/// By whom the record must be signed.
pub(super) const TRUST: &str = "Trust";
/// What is reported, and in which form.
pub(super) const OUTPUT: &str = "Output";
