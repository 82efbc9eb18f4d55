//! `status --age`: how long ago files were verified, in which folders.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Table};
use super::super::words::{date, files_are, number, path, percent};
use super::Draft;
use crate::chart::{Amount, TreemapClass, TreemapItem, amounts, treemap};
use crate::outputs::{Age, Bar, Checked, OutputTotals};
use fsure_core::{count, units};

/// The periods of which the coverage is shown, in days: those of the ages in `status --age`.
pub(super) const PERIODS_DAYS: [i64; 3] = [30, 91, 365];

/// The same with the ages within them.
const PERIODS: [(i64, &[&str]); 3] = [
    (PERIODS_DAYS[0], &["today", "week", "month"]),
    (PERIODS_DAYS[1], &["today", "week", "month", "quarter"]),
    (PERIODS_DAYS[2], &["today", "week", "month", "quarter", "year"]),
];

/// The verdict of `status --age`: how much was verified lately.
pub(super) fn judge(draft: &mut Draft, totals: &OutputTotals) {
    let (recent, _) = of(&totals.verified, PERIODS[1].1);
    let all = totals.verified.iter().map(|bar| bar.files).sum::<u64>();
    let share = percent(recent, all);
    draft.key(share.clone(), "of the files verified in the last three months");
    let sentence =
        format!("{share} of {} verified in the last three months", number(all, "file", "files"));
    let grade = if recent == all { Grade::Good } else { Grade::Warn };
    draft.verdict(grade, sentence);
    if totals.known_damage > 0 {
        let known = files_are(totals.known_damage);
        let since = totals.damaged_since.as_deref().map(date);
        let since = since.map_or(String::new(), |since| format!(", the first since {since}"));
        draft.verdict(Grade::Bad, format!("{known} known to be damaged{since}"));
    }
    if totals.bad_records > 0 {
        let records = number(totals.bad_records, "record", "records");
        draft.note(format!("{records} failed their own check and are left out."));
    }
}

/// The files and bytes of these ages.
fn of(bars: &[Bar], ages: &[&str]) -> (u64, u64) {
    let own = bars.iter().filter(|bar| ages.contains(&bar.when.as_str()));
    own.fold((0, 0), |(files, bytes), bar| (files + bar.files, bytes + bar.bytes))
}

/// The share that was verified in each period.
pub(super) fn coverage(bars: &[Bar]) -> Piece {
    let all = bars.iter().fold((0, 0), |sum, bar| (sum.0 + bar.files, sum.1 + bar.bytes));
    let names = ["Verified in the last", "#Files", "#Of all files", "#Bytes", "#Of all bytes"];
    let mut table = Table::new("Coverage", &names);
    for (days, ages) in PERIODS {
        let (files, bytes) = of(bars, ages);
        table.push(vec![
            Cell::head(format!("{days} days")),
            Cell::number(count(files)),
            Cell::number(percent(files, all.0)),
            Cell::number(units::size(bytes)),
            Cell::number(percent(bytes, all.1)),
        ]);
    }
    Piece::Table(table)
}

/// A treemap of the folders by the age of their verifications; its area is bytes.
pub(super) fn picture(checked: &Checked, with_root: bool, charts: &mut Charts) -> Option<Piece> {
    const CLASSES: [TreemapClass; 4] = [
        TreemapClass { name: "in 30 days", style: "good" },
        TreemapClass { name: "in 91 days", style: "plain" },
        TreemapClass { name: "in 365 days", style: "warn" },
        TreemapClass { name: "longer ago or never", style: "bad" },
    ];
    let class = |when: &str| PERIODS.iter().position(|(_, ages)| ages.contains(&when));
    let items = checked.folder_ages.iter().flat_map(|folder| {
        let root = if with_root { folder.root.trim_end_matches('/') } else { "" };
        let above: Vec<_> =
            [root, &folder.path].into_iter().filter(|part| !part.is_empty()).collect();
        let path = if above.is_empty() { "*".to_owned() } else { above.join("/") + "/*" };
        folder.verified.iter().map(move |bar| TreemapItem {
            path: path.clone(),
            weight: bar.bytes,
            class: class(&bar.when).unwrap_or(PERIODS.len()),
        })
    });
    let items: Vec<_> = items.collect();
    let caption = "The area of a folder is its bytes, its colour the age of their last \
                   verification.";
    let chart = || treemap("Folders by their last verification", &items, &CLASSES, &units::size);
    (!items.is_empty()).then(|| charts.add(&chart(), caption))
}

/// A bar for each age of a root.
pub(super) fn chart(title: &str, age: &Age, charts: &mut Charts) -> Piece {
    let oldest = age.oldest.as_ref().map(|oldest| {
        let path = path(&oldest.path, oldest.path_bytes.as_ref());
        format!("Verified longest ago: {}, {path}.", date(&oldest.verified))
    });
    charts.add(&amounts(title, &bars(&age.verified)), &oldest.unwrap_or_default())
}

fn bars(bars: &[Bar]) -> Vec<Amount> {
    let has_bytes = bars.iter().any(|bar| bar.bytes > 0);
    let amount = |bar: &Bar| Amount {
        label: match bar.when.as_str() {
            when @ ("week" | "month" | "quarter" | "year") => format!("this {when}"),
            when => when.to_owned(),
        },
        value: if has_bytes { bar.bytes } else { bar.files },
        words: format!("{}, {}", units::size(bar.bytes), number(bar.files, "file", "files")),
    };
    bars.iter().map(amount).collect()
}
