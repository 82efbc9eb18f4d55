//! Counts of verdicts, and counts of them by kind of entry.

use super::{EntryKind, Verdict};
use fsure_core::ExitCode;

/// Counts by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts([u64; Verdict::ALL.len()]);

impl VerdictCounts {
    /// Counts one more.
    pub fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }

    /// Adds `count`.
    pub fn add_many(&mut self, verdict: Verdict, count: u64) {
        let sum = &mut self.0[verdict as usize];
        *sum = sum.saturating_add(count);
    }

    /// Counts one less.
    pub(super) fn remove(&mut self, verdict: Verdict) {
        let sum = &mut self.0[verdict as usize];
        *sum = sum.saturating_sub(1);
    }

    /// Adds the counts of another tally.
    pub fn join(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the count of this verdict.
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The exit code that files which are known to be damaged deserve, counted by the
    /// verdict of the run that last read them.
    pub fn known_damage_code(&self) -> ExitCode {
        match (self.total(), self.of(Verdict::Unreadable)) {
            (0, _) => ExitCode::Clean,
            (total, unreadable) if total > unreadable => ExitCode::Damage,
            _ => ExitCode::Unread,
        }
    }

    /// Returns the sum of the counts of verdicts that satisfy a condition.
    pub fn count(&self, condition: impl Fn(Verdict) -> bool) -> u64 {
        Verdict::ALL.into_iter().filter(|verdict| condition(*verdict)).map(|v| self.of(v)).sum()
    }
}

/// Counts by kind and verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountsByKind {
    /// Files.
    pub files: VerdictCounts,
    /// Links.
    pub links: VerdictCounts,
    /// Folders.
    pub folders: VerdictCounts,
}

impl CountsByKind {
    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.files.total() + self.links.total() + self.folders.total()
    }

    /// Counts one more.
    pub fn add(&mut self, kind: EntryKind, verdict: Verdict) {
        match kind {
            EntryKind::File | EntryKind::Special => self.files.add(verdict),
            EntryKind::Link => self.links.add(verdict),
            EntryKind::Folder => self.folders.add(verdict),
        }
    }
}
