//! The part of a `speed` result about the files of volumes: what the page cache costs.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Table};
use super::Draft;
use crate::cache_words::{
    PAST, THROUGH, answer, bystander, costs, decisive, load_words, loss_or_none, loss_percent,
    memory, of_load, past_of, ways,
};
use crate::chart::{
    CacheCourse, RateBar, RatePair, beside_reference, cache_course, figure, microseconds,
};
use fsure_core::units;
use fsure_measure::results::{CacheCost, CacheVerdict, ResultLine, StoredResult, TreeWay};

/// Stands for a figure that there is none of.
const NO_FIGURE: &str = "–";
/// Name of the way out of the page cache, which reads fewer bytes.
const FROM: &str = "from the cache";

/// The 99th percentile of fewer reads is the longest of them.
const P99_COUNT_MIN: u64 = 100;

/// Returns true if a result is about the files of volumes.
pub(super) fn is_tree(stored: &StoredResult) -> bool {
    stored.lines.iter().any(|line| matches!(line, ResultLine::TreeWay(_)))
}

/// The answer, with its grade.
pub(super) fn verdict(stored: &StoredResult) -> (Grade, String) {
    let costs = costs(&stored.lines);
    let grade = match decisive(&costs).map(|cost| cost.verdict) {
        Some(CacheVerdict::Matters) => Grade::Warn,
        Some(CacheVerdict::NoDifference | CacheVerdict::Faster) => Grade::Good,
        Some(CacheVerdict::Unsure) | None => Grade::Plain,
    };
    (grade, answer(&costs))
}

/// The figures and the pictures.
pub(super) fn parts(draft: &mut Draft, stored: &StoredResult, charts: &mut Charts) {
    let (ways, costs) = (ways(&stored.lines), costs(&stored.lines));
    let decisive = decisive(&costs);
    let is_decisive = |way: &&&TreeWay| {
        let load = (way.wanted_bytes, way.wanted_readers);
        decisive.is_none_or(|cost| (cost.wanted_bytes, cost.wanted_readers) == load)
    };
    if let Some(cost) = decisive {
        key(draft, cost);
    }
    if let Some(first) = ways.iter().find(is_decisive) {
        notes(draft, first, &ways);
    }
    let pairs = pairs(&ways);
    if !pairs.is_empty() {
        let chart = beside_reference("How fast is each way of reading? MiB/s, from zero", &pairs);
        draft.part("The price of the page cache", [charts.add(&chart, "")]);
    }
    if let Some(way) = ways.iter().filter(is_decisive).find(|way| way.name == THROUGH) {
        let heading = format!("Course of a run{}", of_sweep(way, &ways));
        draft.part(&heading, [course(way, &ways, charts)]);
    }
    draft.part("Ways", table(&ways).unless_empty());
    draft.part("Volumes", volumes(&ways).unless_empty());
}

fn key(draft: &mut Draft, cost: &CacheCost) {
    let of = match cost.verdict {
        CacheVerdict::Matters => "of the speed lost by reading through the page cache",
        CacheVerdict::Faster => "faster through the page cache",
        CacheVerdict::NoDifference | CacheVerdict::Unsure => return,
    };
    draft.key(format!("{} %", figure(cost.loss_percent.abs())), of);
}

fn notes(draft: &mut Draft, first: &TreeWay, ways: &[&TreeWay]) {
    let (past, through) = (past_of(first, ways), of_load(first, ways, THROUGH));
    let sentences = [
        through.and_then(memory),
        past.zip(through).and_then(|(past, through)| bystander(past, through)),
    ];
    sentences.into_iter().flatten().for_each(|words| draft.note(format!("{words}.")));
}

fn load(way: &TreeWay) -> String {
    load_words(way.wanted_bytes, way.wanted_readers)
}

/// Returns true if more than one load was measured.
fn is_sweep(ways: &[&TreeWay]) -> bool {
    ways.iter().filter(|way| way.name == THROUGH).count() > 1
}

/// The load behind a comma, if there are others.
fn of_sweep(way: &TreeWay, ways: &[&TreeWay]) -> String {
    if is_sweep(ways) { format!(", {}", load(way)) } else { String::new() }
}

/// Each way beside the one past the page cache, that one first.
fn pairs(ways: &[&TreeWay]) -> Vec<RatePair> {
    let bar = |way: &TreeWay| RateBar { median: way.median, low: way.low, high: way.high };
    let pair = |way: &&TreeWay| {
        let past = past_of(way, ways)?;
        let label = format!("{}{}", way.name, of_sweep(way, ways));
        let actual = (way.name != PAST).then(|| bar(way));
        let loss =
            loss_percent(way, past).map_or(String::new(), |loss| loss_words(loss, way, past));
        Some(RatePair { label, reference: bar(past), actual, loss, waits: waits(way) })
    };
    // Of a sweep, what is asked is how the price changes.
    let shown = ways.iter().filter(|way| !is_sweep(ways) || way.name != FROM);
    let mut pairs: Vec<_> = shown.filter_map(pair).collect();
    if pairs.iter().all(|pair| pair.actual.is_none()) {
        pairs.clear();
    }
    pairs
}

/// The waits of the program beside a way, in words.
fn waits(way: &TreeWay) -> String {
    way.bystander.as_ref().map_or(String::new(), |waits| {
        let [p99, longest] = [waits.p99_us, waits.max_us].map(microseconds);
        match waits.reads {
            reads if reads < P99_COUNT_MIN => format!("another program waited {longest} at most"),
            _ => format!("another program: 99 % of reads below {p99}, longest {longest}"),
        }
    })
}

/// A loss as it stands on a bar.
fn loss_words(loss_percent: f64, way: &TreeWay, past: &TreeWay) -> String {
    match loss_percent {
        loss if loss >= 0.0 => format!("{loss:.0} % lost"),
        loss if loss > -100.0 => format!("{:.0} % faster", -loss),
        _ => format!("{} times as fast", figure(way.median / past.median)),
    }
}

fn course(through: &TreeWay, ways: &[&TreeWay], charts: &mut Charts) -> Piece {
    let own = ways.iter().filter(|way| {
        way.name != FROM
            && (way.wanted_bytes, way.wanted_readers)
                == (through.wanted_bytes, through.wanted_readers)
    });
    let courses: Vec<_> = own
        .map(|way| CacheCourse {
            name: way.name.clone(),
            points: way.points.clone(),
            full_at_s: way.full_at_s,
            is_purged: way.purges.is_some(),
        })
        .collect();
    let caption = memory(through).map_or(String::new(), |words| format!("{words}."));
    let title = format!(
        "What happens during a run? Throughput and page cache over time{}",
        of_sweep(through, ways)
    );
    charts.add(&cache_course(&title, &courses), &caption)
}

fn table(ways: &[&TreeWay]) -> Table {
    let columns = [
        "Way",
        "#MiB/s",
        "#95 % interval",
        "#Loss",
        "#User s/GiB",
        "#Kernel s/GiB",
        "#99 % wait",
        "#Longest wait",
    ];
    let mut table = Table::new("Ways", &columns);
    for way in ways {
        let loss = past_of(way, ways).and_then(|past| loss_percent(way, past));
        let wait = |of: fn(&fsure_measure::results::Bystander) -> f64| {
            way.bystander.as_ref().map_or_else(|| NO_FIGURE.to_owned(), |one| microseconds(of(one)))
        };
        table.push(vec![
            Cell::head(format!("{}{}", way.name, of_sweep(way, ways))).with_small(&way.measured),
            Cell::number(figure(way.median)),
            Cell::number(format!("{} – {}", figure(way.low), figure(way.high))),
            Cell::number(loss.map_or(NO_FIGURE.to_owned(), loss_or_none)),
            Cell::number(optional(way.user_s_per_gib)),
            Cell::number(optional(way.system_s_per_gib)),
            Cell::number(wait(|one| one.p99_us)),
            Cell::number(wait(|one| one.max_us)),
        ]);
    }
    table
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NO_FIGURE.to_owned(), figure)
}

fn volumes(ways: &[&TreeWay]) -> Table {
    let columns = ["Volume", "Files by", "Way", "#Files", "#Bytes", "#Readers", "#MiB/s"];
    let mut table = Table::new("Volumes", &columns);
    for way in ways {
        for volume in &way.volumes {
            let found = if volume.is_recorded { "its record" } else { "a walk" };
            table.push(vec![
                Cell::path(&volume.target),
                Cell::text(found),
                Cell::text(format!("{}{}", way.name, of_sweep(way, ways))),
                Cell::number(fsure_core::count(volume.files)),
                Cell::number(units::size(volume.bytes)),
                Cell::number(volume.readers.to_string()),
                Cell::number(figure(volume.mib_per_s)),
            ]);
        }
    }
    table
}
