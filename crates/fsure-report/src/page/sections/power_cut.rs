//! `powercut check`: whether a drive kept what it had acknowledged.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, milliseconds, number};
use super::Draft;
use crate::anonymous::LEFT_OUT;
use crate::chart::{Amount, amounts};
use crate::outputs::PowerCut;
use fsure_core::count;

/// The section of a check.
pub(super) fn section(run: &PowerCut, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("powercut check");
    if let Some(totals) = &run.summary {
        let acked = number(totals.acked, "acknowledged write", "acknowledged writes");
        match totals.state.as_str() {
            "passed" => draft.verdict(Grade::Good, format!("All that {acked} left is there")),
            "failed" => {
                let blocks = number(totals.failed, "block does", "blocks do");
                let words = format!("{blocks} not hold what was acknowledged last, of {acked}");
                draft.verdict(Grade::Bad, words);
                draft.note("Do not trust this storage with anything that is nowhere else.");
            }
            _ => draft.verdict(Grade::Warn, "Nothing is shown"),
        }
        if let Some(why) = &totals.why {
            draft.note(format!("{why}."));
        }
        if totals.read == "cached" {
            draft.note(
                "Read through the page cache: only after a restart of the machine that says what \
                 is on the medium.",
            );
        }
        draft.key(count(totals.failed), format!("blocks lost of {acked}"));
        if let Some(device) = &totals.device {
            let parts = [
                device.model.clone(),
                device.serial.clone().map(|serial| format!("serial {serial}")),
                device.firmware.clone().map(|firmware| format!("firmware {firmware}")),
            ];
            let parts = parts.into_iter().flatten().filter(|part| !part.contains(LEFT_OUT));
            draft.fact("Device", parts.collect::<Vec<_>>().join(", "));
        }
        if let Some(cuts) = &totals.cuts {
            let lost = number(cuts.lost, "block", "blocks");
            let made = number(cuts.made, "cut", "cuts");
            draft.fact("All cuts of this device", format!("{made}, {lost} lost"));
        }
        if let Some(name) = &totals.run {
            draft.fact("Run", name);
        }
        draft.fact("Heard for", milliseconds(totals.heard_ms as f64));
        draft.plain_exit_code(totals.exit_code);
    }
    draft.part("Blocks that were lost", chart(run, charts));
    draft.part("Each way of writing", table(run));
    draft.done()
}

fn chart(run: &PowerCut, charts: &mut Charts) -> Option<Piece> {
    let amount = |method: &crate::outputs::PowerCutMethod| {
        let bad = method.lost + method.old + method.torn + method.misdirected;
        let words = format!("{} of {} acknowledged", count(bad), count(method.acked));
        Amount { label: method.method.clone(), value: bad, words }
    };
    let bars: Vec<_> = run.methods.iter().map(amount).collect();
    let is_bad = bars.iter().any(|bar| bar.value > 0);
    is_bad.then(|| charts.add(&amounts("Blocks that were lost, by way of writing", &bars), ""))
}

fn table(run: &PowerCut) -> Option<Piece> {
    let columns = [
        "Method",
        "#Acknowledged",
        "#Lost",
        "#Old",
        "#Torn",
        "#Misdirected",
        "#Reordered",
        "#Oldest lost",
        "#Not acknowledged, there",
    ];
    let mut table = Table::new("Each way of writing", &columns);
    for method in &run.methods {
        let number = |value: u64| Cell::number(count(value)).with_key(value);
        let oldest = method.oldest_lost_ms.map(|ms| milliseconds(ms as f64));
        let mut row = vec![Cell::head(&method.method)];
        row.extend(
            [
                method.acked,
                method.lost,
                method.old,
                method.torn,
                method.misdirected,
                method.reordered,
            ]
            .map(number),
        );
        row.push(Cell::number(oldest.unwrap_or_else(|| NO_FIGURE.to_owned())));
        row.push(number(method.extra));
        table.push(row);
    }
    table.unless_empty()
}
