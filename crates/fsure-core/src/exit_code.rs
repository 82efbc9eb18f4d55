//! Exit codes: part of the interface, so that a script can tell damage from a
//! folder that it is not permitted to read.

/// The result of a command, as an exit code.
///
/// If several apply, the first of 6, 3, 4, 5, 7, 1, 0 is taken, over all
/// paths of one call. A script should treat any code it does not know as a
/// failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// 0: everything checked is as recorded; for `update` also: now recorded.
    Clean,
    /// 1: differences, none of them suspicious.
    Differences,
    /// 2: the command line makes no sense, or the state of the machine forbids what it asks for.
    Usage,
    /// 3: content is damaged: rotten, altered, damaged-copy, flaky or mismatch.
    Damage,
    /// 4: something could not be read: unreadable, denied or busy.
    Unread,
    /// 5: a root is offline, there is no record, or the run could not be finished.
    Incomplete,
    /// 6: the record itself cannot be trusted.
    RecordUntrusted,
    /// 7: damage was found and all of it repaired.
    Healed,
    /// 70: a fault of this program (`EX_SOFTWARE` of `sysexits.h`), or a test whose
    /// preconditions another process has changed.
    Internal,
    /// The exit code of a program that was run for the caller.
    Program(u8),
    /// 130: interrupted (128 + SIGINT), state saved.
    Interrupted,
    /// 143: terminated (128 + SIGTERM), state saved.
    Terminated,
}

impl ExitCode {
    /// Returns the code of a run that a signal asked to end; `None` for a signal that does not
    /// ask that.
    pub fn of_signal(signal: i32) -> Option<Self> {
        match signal {
            2 => Some(Self::Interrupted),
            15 => Some(Self::Terminated),
            _ => None,
        }
    }

    /// The number given to the operating system.
    pub fn number(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Differences => 1,
            Self::Usage => 2,
            Self::Damage => 3,
            Self::Unread => 4,
            Self::Incomplete => 5,
            Self::RecordUntrusted => 6,
            Self::Healed => 7,
            Self::Internal => 70,
            Self::Program(code) => code,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The graver of two.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    /// Ranks it beside the others by gravity.
    pub fn rank(self) -> u8 {
        match self {
            Self::Clean | Self::Program(0) => 0,
            Self::Differences => 1,
            Self::Healed => 2,
            Self::Incomplete | Self::Program(_) => 3,
            Self::Unread => 4,
            Self::Damage => 5,
            Self::RecordUntrusted => 6,
            Self::Usage => 7,
            Self::Interrupted => 8,
            Self::Terminated => 9,
            Self::Internal => 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode;

    #[test]
    fn the_first_of_6_3_4_5_7_1_0_wins() {
        let order = [
            ExitCode::RecordUntrusted,
            ExitCode::Damage,
            ExitCode::Unread,
            ExitCode::Incomplete,
            ExitCode::Healed,
            ExitCode::Differences,
            ExitCode::Clean,
        ];
        for (place, graver) in order.iter().enumerate() {
            for milder in &order[place..] {
                assert_eq!(graver.worse(*milder), *graver);
                assert_eq!(milder.worse(*graver), *graver);
            }
        }
    }
}
