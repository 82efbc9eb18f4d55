//! `recover`: what is left of a damaged record.

use super::super::pieces::{Grade, Piece, Section};
use super::super::words::number;
use super::Draft;
use crate::outputs::Recovered;
use fsure_core::units;

/// The section of a run.
pub(super) fn section(run: &Recovered) -> Section {
    let Some(totals) = &run.summary else { return Draft::new("recover").done() };
    let mut draft = Draft::new(format!("recover {}", totals.root).trim().to_owned());
    let rows = number(totals.rows, "row", "rows");
    match &totals.damage {
        None => draft.verdict(Grade::Good, "The record is sound: there was nothing to do"),
        Some(damage) => {
            let would = if totals.is_dry_run { "would be" } else { "is" };
            let (grade, words) = match (totals.is_whole, totals.lost) {
                (true, _) => (Grade::Good, format!("The record {would} whole again: {rows}")),
                (false, 0) => (
                    Grade::Warn,
                    format!("{rows} are there; it is not proved that none is lacking"),
                ),
                (false, lost) => {
                    let lost = number(lost, "row is", "rows are");
                    (Grade::Bad, format!("{lost} lost of the record; {rows} are there"))
                }
            };
            draft.verdict(grade, words);
            draft.note(format!("Damage: {damage}."));
        }
    }
    if totals.is_dry_run {
        draft.note("Nothing was changed: it was a dry run.");
    }
    draft.key(fsure_core::count(totals.lost), "rows of the record lost");
    if let Some(kept) = &totals.kept_as {
        draft.fact("The damaged record is kept as", kept);
    }
    if totals.bytes_unreadable > 0 {
        draft.fact("Cannot be read from the medium", units::size(totals.bytes_unreadable));
    }
    draft.plain_exit_code(totals.exit_code);
    draft.counts(&[
        ("Rows", totals.rows),
        ("Rows that the damaged record still proves", totals.from_catalog),
        ("Rows from its backup", totals.from_backup),
        ("Rows from what travels with the data", totals.from_sidecars),
        ("Rows lost", totals.lost),
        ("Files whose block values are lost", totals.without_blocks),
    ]);
    let lost: Vec<_> =
        totals.lost_tables.iter().map(|name| (name.clone(), String::new())).collect();
    let heading = "Of this it is not proved that nothing is lacking";
    draft.part(heading, (!lost.is_empty()).then_some(Piece::List(lost)));
    draft.done()
}
