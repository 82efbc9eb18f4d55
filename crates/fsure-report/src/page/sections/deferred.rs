//! `defer`: how far the medium was behind what the program was told.

use super::super::charts::Charts;
use super::super::pieces::{Grade, Section};
use super::super::words::milliseconds;
use super::Draft;
use crate::chart::{Bar, Mark, comparison, microseconds};
use crate::outputs::Deferred;

/// The section of a run.
pub(super) fn section(run: &Deferred, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("defer");
    let Some(totals) = &run.summary else { return draft.done() };
    let (lag, agreed) = (totals.largest_lag_ms, totals.max_loss_ms);
    let [lag_words, agreed_words] = [lag, agreed].map(milliseconds);
    if let Some(why) = &totals.failure {
        draft.verdict(Grade::Bad, format!("A flush in the background failed: {why}"));
    } else if lag > agreed {
        let words = format!("BOUND EXCEEDED: durable after {lag_words}, not {agreed_words}");
        draft.verdict(Grade::Bad, words);
    } else {
        let words = format!("All was durable after {lag_words} at most; {agreed_words} was agreed");
        draft.verdict(Grade::Good, words);
    }
    draft.key(lag_words, format!("behind at most; {agreed_words} was agreed"));
    draft.fact("Way", &totals.backend);
    let ended = match (totals.command_exit, totals.command_signal) {
        (_, Some(signal)) => Some(format!("by signal {signal}")),
        (Some(code), None) => Some(format!("with exit code {code}")),
        (None, None) => None,
    };
    if let Some(ended) = ended {
        draft.fact("The program ended", ended);
    }
    draft.plain_exit_code(totals.exit_code);
    let bars = [
        Bar::new("largest lag", lag * 1e3),
        Bar::new("longest flush", totals.longest_flush_ms * 1e3),
    ];
    let mark = Mark { label: format!("agreed: {}", milliseconds(agreed)), value: agreed * 1e3 };
    let chart = comparison("How far behind the medium was", &bars, &[mark], &microseconds);
    draft.part("How far behind", [charts.add(&chart, "")]);
    draft.counts(&[
        ("Flushes deferred", totals.deferred),
        ("Flushes waited for", totals.waited),
        ("Flushes passed on", totals.passed),
        ("Flushes refused", totals.refused),
        ("Flushes in the background", totals.flushes),
    ]);
    draft.done()
}
