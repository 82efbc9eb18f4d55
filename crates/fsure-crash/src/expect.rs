//! The claim about a workload that the table compares with what the cuts show.

use std::fmt;
use std::time::Duration;

use fsure_simdrive::Behavior;

/// A program whose power is cut, as `program workload run NAME .` starts it and
/// `program workload check NAME .` checks what a cut leaves.
pub trait CrashWorkload: fmt::Debug + Sync {
    /// Returns its name.
    fn name(&self) -> &str;

    /// Returns the expected result on a drive with a file system of this kind.
    fn expect(&self, drive: Behavior, file_system: &str) -> Expect;
}

/// Expected result of the cuts of a workload on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing acknowledged is lost.
    NeverLoses,
    /// At most the last acknowledgement is lost.
    MayLoseLast,
    /// At most what was acknowledged in this time before the cut is lost.
    MayLoseUpTo(Duration),
    /// Anything may be lost, but what is there is consistent.
    MayLose,
    /// At least one cut loses or corrupts something.
    Fails,
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverLoses => f.write_str("loses nothing"),
            Self::MayLoseLast => f.write_str("may lose the last"),
            Self::MayLoseUpTo(time) => write!(f, "may lose {} s", time.as_secs_f64()),
            Self::MayLose => f.write_str("stays consistent"),
            Self::Fails => f.write_str("loses or corrupts"),
        }
    }
}
