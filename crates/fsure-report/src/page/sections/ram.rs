//! RAM folders: how far each is behind its disk, and what was agreed.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, date, milliseconds, number, path};
use super::Draft;
use crate::chart::{Bar, Mark, comparison};
use crate::outputs::{RamFolder, RamRun};
use fsure_core::{count, units};

/// The section of a run.
pub(super) fn section(run: &RamRun, charts: &mut Charts) -> Section {
    let command = match run.done.first() {
        Some((kind, _)) if run.folders.is_empty() => format!("ram: {kind}"),
        _ => "ram status".to_owned(),
    };
    let mut draft = Draft::new(command);
    judge(&mut draft, run);
    if let Some(totals) = &run.summary {
        draft.plain_exit_code(totals.exit_code);
    }
    for folder in &run.folders {
        for wrong in &folder.wrong {
            let words = format!("{}: {wrong}", shown(folder));
            draft.0.pieces.push(Piece::Note(Grade::Bad, words));
        }
    }
    draft.part("How far behind the disk", lag(run, charts));
    draft.part("Folders", table(run));
    draft.part("Done", done(run));
    let told = run.told.iter().map(|told| (date(&told.at), told.words.clone()));
    let told: Vec<_> = told.collect();
    draft.part("Reported earlier", (!told.is_empty()).then_some(Piece::List(told)));
    draft.done()
}

fn shown(folder: &RamFolder) -> String {
    path(&folder.path, folder.path_bytes.as_ref())
}

fn judge(draft: &mut Draft, run: &RamRun) {
    let wrong = run.folders.iter().filter(|folder| !folder.wrong.is_empty()).count() as u64;
    let all = run.folders.len() as u64;
    let folders = number(all, "RAM folder", "RAM folders");
    let differences: usize = run.done.iter().map(|(_, done)| done.differences.len()).sum();
    match () {
        () if wrong > 0 => {
            draft.verdict(
                Grade::Bad,
                format!("Something is wrong with {} of {folders}", count(wrong)),
            );
        }
        () if differences > 0 => {
            let names = number(differences as u64, "name differs", "names differ");
            draft.verdict(Grade::Warn, format!("{names} between memory and disk"));
        }
        () if !run.folders.is_empty() => {
            draft.verdict(Grade::Good, format!("All is well with {folders}"));
        }
        () if !run.done.is_empty() => {
            let words = run.done.iter().map(|(kind, done)| format!("{kind} {}", shown(done)));
            draft.verdict(Grade::Good, words.collect::<Vec<_>>().join("; "));
        }
        () if run.summary.is_some() => draft.verdict(Grade::Plain, "There is no RAM folder"),
        () => {}
    }
    let worst = run.folders.iter().filter_map(|folder| folder.worst_loss_ms).max();
    if let Some(worst) = worst {
        draft.key(milliseconds(worst as f64), "of changes a crash could cost at most");
    }
}

fn lag(run: &RamRun, charts: &mut Charts) -> Option<Piece> {
    let bar =
        |folder: &RamFolder| Some(Bar::new(shown(folder), folder.worst_loss_ms? as f64 * 1e3));
    let bars: Vec<_> = run.folders.iter().filter_map(bar).collect();
    let mut agreed: Vec<_> = run.folders.iter().filter_map(|folder| folder.max_loss_ms).collect();
    agreed.sort_unstable();
    agreed.dedup();
    agreed.truncate(4);
    let mark = |ms: u64| {
        let value = ms as f64 * 1e3;
        Mark { label: format!("agreed: {}", crate::chart::microseconds(value)), value }
    };
    let marks: Vec<_> = agreed.into_iter().map(mark).collect();
    let words = |value: f64| crate::chart::microseconds(value);
    let chart = || comparison("Age of changes that are not on the disk", &bars, &marks, &words);
    (!bars.is_empty()).then(|| charts.add(&chart(), ""))
}

fn table(run: &RamRun) -> Option<Piece> {
    let columns = [
        "Folder",
        "#Files",
        "#Content",
        "#Memory",
        "#Generation",
        "#Took",
        "#At most lost",
        "State",
    ];
    let mut table = Table::new("Folders", &columns);
    let none = || NO_FIGURE.to_owned();
    for folder in &run.folders {
        let memory = match (folder.used, folder.bytes) {
            (Some(used), Some(bytes)) => format!("{} of {}", units::size(used), units::size(bytes)),
            _ => none(),
        };
        let (grade, state) = match folder.wrong.is_empty() {
            true => (Grade::Good, "well"),
            false => (Grade::Bad, "wrong"),
        };
        let lost = folder.worst_loss_ms.map_or_else(none, |ms| milliseconds(ms as f64));
        table.push(vec![
            Cell::path(shown(folder)),
            Cell::number(folder.files.map_or_else(none, count)),
            Cell::number(folder.content.map_or_else(none, units::size)),
            Cell::number(memory),
            Cell::number(folder.generation.map_or_else(none, count)),
            Cell::number(folder.took_ms.map_or_else(none, milliseconds)),
            Cell::number(lost),
            Cell::graded(state, grade),
        ]);
    }
    table.unless_empty()
}

fn done(run: &RamRun) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (kind, done) in &run.done {
        let mut facts = vec![(kind.clone(), shown(done))];
        let mut fact = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        fact("result", done.what.clone());
        fact("generation", done.generation.map(count));
        fact("written", done.written.map(units::size));
        fact("took", done.took_ms.map(milliseconds));
        fact("not on the disk", (!done.unsettled.is_empty()).then(|| done.unsettled.join(", ")));
        pieces.push(Piece::Facts(facts));
        let items = done.differences.iter().map(|one| (one.path.clone(), one.how.clone()));
        let items: Vec<_> = items.collect();
        pieces.extend((!items.is_empty()).then_some(Piece::List(items)));
    }
    pieces
}
