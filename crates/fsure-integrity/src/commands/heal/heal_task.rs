//! A file that can be healed: its finding, its proof and the sources of its pieces.

use fsure_os::Stat;

use super::plan::SourcePlan;
use super::proof::RecordProof;
use super::source_reader::{HealAttempt, HealFailure, SourceErrors, SourceFile, SourceReader};
use crate::model::Finding;

/// A file that can be healed, and how.
pub(super) struct HealTask<'a> {
    pub(super) finding: &'a Finding,
    pub(super) recorded: RecordProof,
    pub(super) candidates: Vec<SourceFile>,
    pub(super) plan: SourcePlan,
    /// Metadata of the damaged file; `None` if the file is missing.
    pub(super) damaged: Option<Stat>,
    /// True if what is replaced is to be kept.
    pub(super) keeps_original: bool,
}

impl HealTask<'_> {
    /// Reads a piece as it is to be, and proves it. It is then in the buffer.
    pub(super) fn read_piece(&self, reader: &mut SourceReader<'_>, piece: u64) -> HealAttempt<()> {
        if self.recorded.is_by_blocks() {
            return self.read_block(reader, piece);
        }
        let candidate = &self.candidates[self.plan.from[&piece]];
        let mut troubles = SourceErrors::default();
        // At most a block, which stays where it was read to.
        if reader.has_whole(&self.recorded, candidate, &mut troubles)? {
            return Ok(());
        }
        Err(HealFailure::Unhealed(format!(
            "the copy can no longer be read ({})",
            troubles.summary()
        )))
    }

    /// Reads a block from the candidate where it was found, or from any other that
    /// has it.
    pub(super) fn read_block(&self, reader: &mut SourceReader<'_>, block: u64) -> HealAttempt<()> {
        reader.go_on()?;
        let first = self.plan.from.get(&block).copied().unwrap_or(0);
        let others = (0..self.candidates.len()).filter(|place| *place != first);
        let mut troubles = SourceErrors::default();
        for place in std::iter::once(first).chain(others) {
            let candidate = &self.candidates[place];
            if reader.has_block(&self.recorded, candidate, block, &mut troubles) {
                return Ok(());
            }
        }
        let reported = troubles.summary();
        Err(HealFailure::Unhealed(format!("block {block} can no longer be read ({reported})")))
    }
}

/// Refuses a file that has changed since it was judged.
pub(super) fn require_as_found(stat: &Stat, finding: &Finding) -> HealAttempt<()> {
    let is_as_found = finding.found.as_ref().is_some_and(|found| {
        found.size == stat.size
            && found.mtime_ns == stat.mtime_ns
            && found.ctime_ns.is_none_or(|ctime_ns| ctime_ns == stat.ctime_ns)
            && found.inode.is_none_or(|inode| inode == stat.inode)
    });
    if is_as_found && stat.kind == fsure_os::Kind::File {
        return Ok(());
    }
    Err(HealFailure::Unhealed("busy: it changed since it was judged".to_owned()))
}
