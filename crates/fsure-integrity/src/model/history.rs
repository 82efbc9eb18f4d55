//! The history of a record: what each run changed in it, who signed it, and
//! how much was verified.

use super::{Finding, Verdict};

/// The changes that a run has made in a record. Counts are of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Recorded for the first time.
    pub new: u64,
    /// Recorded with another content.
    pub modified: u64,
    /// Recorded with another date and the same content.
    pub touched: u64,
    /// Gone.
    pub missing: u64,
    /// Recorded under another name.
    pub moved: u64,
    /// Recorded because the user accepted them, whatever else they are.
    pub accepted: u64,
    /// Total size of those that are new or modified.
    pub bytes: u64,
}

impl Changes {
    /// Counts a finding on a file that the record now holds.
    pub fn add(&mut self, finding: &Finding) {
        let verdict = finding.verdict;
        let count = match verdict {
            Verdict::New => &mut self.new,
            Verdict::Touched => &mut self.touched,
            Verdict::Missing => &mut self.missing,
            Verdict::Moved => &mut self.moved,
            Verdict::Ok => return,
            // Left out, and forgotten for that.
            Verdict::Ignored => &mut self.missing,
            _ => &mut self.modified,
        };
        *count += 1;
        self.accepted += u64::from(!verdict.is_recordable());
        if !matches!(
            verdict,
            Verdict::Touched | Verdict::Missing | Verdict::Ignored | Verdict::Moved
        ) {
            self.bytes += finding.found.as_ref().map_or(0, |entry| entry.size);
        }
    }

    /// Returns the sum of both. The sum saturates, because the counts can come from any source.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            new: self.new.saturating_add(other.new),
            modified: self.modified.saturating_add(other.modified),
            touched: self.touched.saturating_add(other.touched),
            missing: self.missing.saturating_add(other.missing),
            moved: self.moved.saturating_add(other.moved),
            accepted: self.accepted.saturating_add(other.accepted),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// A state of the record, with the run that led to it or the signature on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number, from 1 on.
    pub number: u64,
    /// Date of the run, seconds since 1970.
    pub at_s: i64,
    /// Name of the command.
    pub command: String,
    /// Version of the program.
    pub made_by: String,
    /// Changes that the run made; empty if it signed.
    pub changes: Changes,
    /// Statement and signature, if the run signed.
    pub seal: Option<SignedStatement>,
}

/// A statement and the signature on it, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedStatement {
    /// The message, as text.
    pub statement: String,
    /// The content of the `.minisig` file.
    pub signature: String,
}

/// A run that read files and compared them with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Date at which the run ended, seconds since 1970.
    pub at_s: i64,
    /// Name of the command.
    pub command: String,
    /// The generation that it judged by; 0 if there was none.
    pub generation: u64,
    /// Files read and judged.
    pub files: u64,
    /// Their size in bytes, as far as they were judged.
    pub bytes: u64,
    /// The exit code that its findings deserve.
    pub exit_code: u8,
}

/// A signature that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureInfo {
    /// The generation that bears it.
    pub generation: u64,
    /// Date of the signature, seconds since 1970, as the signer states it.
    pub at_s: i64,
    /// The name of the root, as the signer states it.
    pub root: String,
    /// The chain of generations that it belongs to, hexadecimal.
    pub chain: String,
    /// BLAKE3 of the statement, hexadecimal: stands for all that was signed.
    pub head: String,
    /// The key's number, as minisign shows it.
    pub key_id: String,
}
