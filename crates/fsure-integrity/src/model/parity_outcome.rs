//! Results of keeping recovery data.

use fsure_core::ExitCode;

/// Recovery data of a root, and the work done on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectOutcome {
    /// Redundancy, per mille.
    pub per_mille: u32,
    /// Files that have recovery data.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the recovery data occupy.
    pub space: u64,
    /// Groups that were as they should be.
    pub kept: u64,
    /// Groups that were made.
    pub made: u64,
    /// Groups that were deleted.
    pub deleted: u64,
    /// Groups that were damaged themselves.
    pub damaged: u64,
    /// Files that are not as recorded, for which no recovery data were made.
    pub left_out: u64,
    /// Those of them that were recorded from a list only: their content was never read.
    pub listed_only: u64,
    /// Bytes of files read.
    pub bytes_read: u64,
    /// Bytes of recovery data written.
    pub bytes_written: u64,
    /// True if this says what would be done: no file was read, and nothing was written.
    pub is_dry_run: bool,
}

impl ProtectOutcome {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self { left_out, .. } if *left_out > 0 => ExitCode::Incomplete,
            Self { damaged, .. } if *damaged > 0 => ExitCode::Healed,
            _ => ExitCode::Clean,
        }
    }
}

/// The state of the recovery data after an `update`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParityUpdate {
    /// They match the record, except for what was left out.
    Kept(ProtectOutcome),
    /// They could not be brought up to date; the message states the reason.
    Stale(String),
}

impl ParityUpdate {
    /// Returns true if they do not cover all that is recorded.
    pub fn is_incomplete(&self) -> bool {
        !matches!(self, Self::Kept(ProtectOutcome { left_out: 0, .. }))
    }
}
