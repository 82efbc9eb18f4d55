//! `compare`.

use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{files_are, number, path};
use super::Draft;
use crate::outputs::Compared;
use fsure_core::units;

/// The section of a comparison.
pub(super) fn section(found: &Compared) -> Section {
    let mut draft = Draft::new("compare");
    if let Some(totals) = &found.summary {
        let differences = totals.different + totals.only_here + totals.only_there + totals.moved;
        let same = number(totals.same, "file", "files");
        if differences > 0 {
            let differ = number(differences, "difference", "differences");
            draft.verdict(Grade::Warn, format!("{differ}; {same} of the same content"));
        } else if totals.unknown > 0 {
            let unknown = number(totals.unknown, "file", "files");
            draft.verdict(
                Grade::Warn,
                format!("Of {unknown} nothing is known; {same} are the same"),
            );
        } else {
            draft.verdict(Grade::Good, format!("Both sides are the same: {same}"));
        }
        if totals.known_damage > 0 {
            let result = std::mem::take(&mut draft.0.sentence);
            draft.note(format!("{result}."));
            let files = files_are(totals.known_damage);
            draft.verdict(Grade::Bad, format!("{files} known to be damaged on one side"));
        }
        let all = number(totals.same + differences, "file", "files");
        draft.key(fsure_core::count(differences), format!("differences in {all}"));
        for (files, side) in [(totals.recorded_here, "here"), (totals.recorded_there, "there")] {
            if files > 0 {
                let files = number(files, "file", "files");
                draft.note(format!("{files} {side} not read: the record stands for the content."));
            }
        }
        if totals.bytes_read > 0 {
            draft.fact("Read", units::size(totals.bytes_read));
        }
        draft.exit_code(totals.exit_code);
    }
    draft.part("Differences", rows(found));
    if let Some(totals) = &found.summary {
        draft.counts(&[
            ("Same content", totals.same),
            ("Other content", totals.different),
            ("Only here", totals.only_here),
            ("Only there", totals.only_there),
            ("Moved", totals.moved),
            ("Content not known", totals.unknown),
            ("Bad records", totals.bad_records),
            ("Lines that make no sense", totals.malformed),
            ("Lines that cannot be used", totals.unusable),
            ("Known to be damaged", totals.known_damage),
            ("Not read here", totals.recorded_here),
            ("Not read there", totals.recorded_there),
        ]);
    }
    draft.done()
}

fn rows(found: &Compared) -> Vec<Piece> {
    let mut table = Table::new("Differences", &["Result", "Path", "There", "Kind"]);
    for row in &found.rows {
        let there = row.there.as_ref().map(|there| path(there, row.there_bytes.as_ref()));
        let grade = if row.result == "different" { Grade::Warn } else { Grade::Plain };
        table.push(vec![
            Cell::graded(row.result.replace('-', " "), grade),
            Cell::path(path(&row.path, row.path_bytes.as_ref())),
            Cell::path(there.unwrap_or_default()),
            Cell::text(&row.kind),
        ]);
    }
    let left_out = found.rows_total - found.rows.len() as u64;
    let left_out = (left_out > 0)
        .then(|| Piece::Text(format!("{} more are left out.", fsure_core::count(left_out))));
    table.unless_empty().into_iter().chain(left_out).collect()
}
