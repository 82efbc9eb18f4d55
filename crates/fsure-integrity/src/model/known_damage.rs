//! Damage that the record remembers from an earlier run.

use super::Verdict;

/// Damage that a run found in a file, and that neither a later reading nor the
/// user has settled since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDamage {
    /// The verdict of the run that last read the file.
    pub verdict: Verdict,
    /// Date of the run that first found the damage, seconds since 1970.
    pub found_s: i64,
    /// Date of the run that last found it, seconds since 1970.
    pub seen_s: i64,
}
