//! Answers what the evaluation asks for few files: from the record by way of the recorder, and
//! from the system.

use fsure_os::mapped_write;
use fsure_os::root_dir::Root;

use crate::catalog::{Catalog, Row};
use crate::model::DateRules;
use crate::scan::ScanPlan;
use crate::scan::candidate::Candidate;
use crate::scan::evaluate::EvaluateLookup;
use crate::scan::result_recorder::ResultRecorder;
use fsure_core::Result;
use fsure_core::block_hash::BlockValue;

/// Answers the questions of an evaluation from the record and the system.
pub(super) struct RecordLookup<'r, 'a> {
    pub(super) plan: &'a ScanPlan,
    pub(super) recorder: &'r mut ResultRecorder<'a>,
}

impl EvaluateLookup for RecordLookup<'_, '_> {
    fn block_values(&mut self, row: &Row) -> Result<Vec<BlockValue>> {
        self.recorder.blocks(row)
    }

    fn are_dates_in_doubt(&mut self) -> Result<bool> {
        // The precheck reads a sample of the tree.
        Ok(self.recorder.precheck_once()? && self.recorder.mtimes().is_in_doubt())
    }

    fn date_rules(&self, file: &Candidate) -> DateRules {
        file.date_rules(self.recorder.mtimes().explains_nothing())
    }

    fn doubt_of_rot(&self, file: &Candidate) -> Option<String> {
        doubt_of_rot(&self.plan.root, self.recorder.catalog(), file)
    }
}

fn doubt_of_rot(root: &Root, catalog: &Catalog, file: &Candidate) -> Option<String> {
    let row = file.sound_row()?;
    if mapped_write::is_open_for_writing(root, file.path.as_bytes()) == Some(true) {
        let why = "another process has it open for writing, and might have changed it in memory \
                   (mmap) without a new date";
        return Some(why.to_owned());
    }
    let kind = &catalog.file_system(file.entry.file_system).volume.kind;
    let unseen_write_max_ns = mapped_write::unseen_write_max_ns(kind);
    row.record.may_hide_mapped_write(unseen_write_max_ns).then(|| {
        format!(
            "it was recorded or verified within {} s of its last change, so that a program might \
             have changed it since without a new date (mmap)",
            unseen_write_max_ns.div_euclid(1_000_000_000).max(1)
        )
    })
}
