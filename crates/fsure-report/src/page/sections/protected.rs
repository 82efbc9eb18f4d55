//! `protect`: recovery data beside the files.

use super::super::pieces::{Grade, Section};
use super::super::words::number;
use super::Draft;
use crate::chart::figure;
use crate::outputs::Protected;
use fsure_core::units;

/// The section of a run.
pub(super) fn section(run: &Protected) -> Section {
    let roots: Vec<_> = run.roots.iter().map(|root| root.root.as_str()).collect();
    let mut draft = Draft::new(format!("protect {}", roots.join(" ")).trim().to_owned());
    for totals in &run.roots {
        let files = number(totals.files, "file", "files");
        let share = format!("{} %", figure(totals.redundancy * 100.0));
        let bytes = units::size(totals.bytes);
        let words = format!("{files} ({bytes}) have recovery data of {share}");
        if totals.dry_run {
            draft
                .verdict(Grade::Warn, format!("dry run: nothing was written; {words} after a run"));
        } else if totals.left_out > 0 {
            let left_out = number(totals.left_out, "file is", "files are");
            draft.verdict(Grade::Warn, format!("{left_out} NOT PROTECTED; {words}"));
        } else {
            draft.verdict(Grade::Good, words);
        }
        draft.key(share, "of the data can be lost and repaired");
        draft.fact("Room of the recovery data", units::size(totals.room));
        if totals.bytes_read > 0 {
            draft.fact("Read", units::size(totals.bytes_read));
        }
        if totals.bytes_written > 0 {
            draft.fact("Written", units::size(totals.bytes_written));
        }
        draft.plain_exit_code(totals.exit_code);
        draft.counts(&[
            ("Files", totals.files),
            ("Files left out", totals.left_out),
            ("Groups kept", totals.groups_kept),
            ("Groups made", totals.groups_made),
            ("Groups deleted", totals.groups_deleted),
            ("Groups that were damaged", totals.groups_damaged),
        ]);
    }
    draft.done()
}
