//! A refusal to put a folder into RAM, in words.

use std::path::Path;

/// A reason not to put the folder into RAM, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindRefusal {
    /// The obstacle.
    pub why: String,
    /// The next step for the user.
    pub remedy: String,
}

pub(super) fn refuse(why: impl Into<String>, remedy: impl Into<String>) -> BindRefusal {
    BindRefusal { why: why.into(), remedy: remedy.into() }
}

/// At most so many are named.
pub(super) const NAMES_SHOWN_MAX: usize = 5;

/// Names some of these paths, and counts the rest.
pub(super) fn some(all: &[impl AsRef<Path>]) -> String {
    let named = all.iter().take(NAMES_SHOWN_MAX).map(|path| path.as_ref().display().to_string());
    let rest = all.len().saturating_sub(NAMES_SHOWN_MAX);
    let rest = (rest > 0).then(|| format!("and {rest} more"));
    named.chain(rest).collect::<Vec<_>>().join(", ")
}
