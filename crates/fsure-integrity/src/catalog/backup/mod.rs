//! The backup of a catalog: a file beside it that grows with every commit by what
//! the commit changed, so that keeping it costs what the changes cost. What
//! damages the catalog leaves the backup, and `fsure recover` puts one together
//! from both. `docs/recover.md` is the format.

mod frame;
mod log;
mod replay;

pub(super) use log::{BackupLog, BackupState};
pub(super) use replay::{Replayed, replay};

/// The byte that an entry begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum BackupEntry {
    /// A row follows: number of the table, number of columns, the columns.
    Put = 1,
    /// The key of a row that is gone follows, in the same form.
    Delete = 2,
    /// All before is void: a whole copy begins.
    Clear = 3,
    /// The state up to here is that of the catalog with this number, 8 bytes.
    Commit = 4,
}

impl BackupEntry {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Put, Self::Delete, Self::Clear, Self::Commit]
            .into_iter()
            .find(|entry| *entry as u8 == number)
    }
}
