//! The part of a `speed` result about the files of volumes: what the page cache costs.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Table};
use super::super::words::{NO_FIGURE, number};
use super::Draft;
use crate::cache_words::{
    PAST, THROUGH, answer, bystander, costs, decisive, load_words, loss_or_none, loss_percent,
    memory, of_load, past_of, ways,
};
use crate::chart::{
    CacheCourse, RateBar, RatePair, Waits, beside_reference, cache_course, figure, microseconds,
    whole_size,
};
use crate::interval_words;
use fsure_core::units::{self, MIB};
use fsure_measure::are_read_in_batches;
use fsure_measure::results::{
    Bystander, CacheCost, CacheVerdict, ResultLine, StoredResult, TreeWay,
};
use fsure_measure::stats::Spread;

/// Said of files of less than a block.
const BATCHED: &str = "Past the cache, such small files are read many with one call, and through it \
                       one by one: a part of the loss, or all of it, is that.";
/// Less of the processors for other programs is not worth a sentence, in percent.
const OTHERS_MIN_PERCENT: f64 = 1.0;
/// Name of the way out of the page cache, which reads fewer bytes.
const FROM: &str = "from the cache";

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
        let title = title(stored, &ways);
        let chart = beside_reference(&title, &pairs, &conditions(stored, &ways));
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

/// The time of a run in brackets, if it is too short to say much.
fn of_short_run(way: &TreeWay) -> String {
    const SHORT_S: f64 = 0.5;
    let seconds = way.bytes as f64 / MIB as f64 / way.median;
    match seconds < SHORT_S {
        true => format!(" (runs of {seconds:.2} s)"),
        false => String::new(),
    }
}

/// Each way beside the one past the page cache, that one first.
fn pairs(ways: &[&TreeWay]) -> Vec<RatePair> {
    let bar = |way: &TreeWay| RateBar { median: way.median, low: way.low, high: way.high };
    let pair = |way: &&TreeWay| {
        let past = past_of(way, ways)?;
        let label = format!("{}{}{}", way.name, of_sweep(way, ways), of_short_run(way));
        let actual = (way.name != PAST).then(|| bar(way));
        let loss =
            loss_percent(way, past).map_or(String::new(), |loss| loss_words(&loss, way, past));
        let of = |one: &Bystander| Waits { p99_us: one.known_p99_us(), max_us: one.max_us };
        let (waits, runs) = (way.bystander.as_ref().map(of), way.samples.len());
        Some(RatePair { label, reference: bar(past), actual, loss, waits, runs })
    };
    // Of a sweep, what is asked is how the price changes.
    let shown = ways.iter().filter(|way| !is_sweep(ways) || way.name != FROM);
    let mut pairs: Vec<_> = shown.filter_map(pair).collect();
    if pairs.iter().all(|pair| pair.actual.is_none()) {
        pairs.clear();
    }
    pairs
}

/// Returns the title of the picture, which says what tells it apart from others of its kind.
fn title(stored: &StoredResult, ways: &[&TreeWay]) -> String {
    let mut title = "How fast is each way of reading".to_owned();
    if most_read(ways).is_some_and(|most| are_read_in_batches(files(most), most.bytes)) {
        title += " many small files";
    }
    if let Some(memory) = memory_limit(stored, ways) {
        title += &format!(" with {} of memory", whole_size(memory));
    }
    title + "? MiB/s, longer is better"
}

/// Returns the run through the page cache that reads most.
fn most_read<'a>(ways: &[&'a TreeWay]) -> Option<&'a TreeWay> {
    let through = ways.iter().filter(|way| way.name == THROUGH);
    through.max_by_key(|way| way.bytes).copied()
}

fn files(way: &TreeWay) -> u64 {
    way.volumes.iter().map(|volume| volume.files).sum()
}

/// Returns the memory that fsure and the page cache were limited to.
fn memory_limit(stored: &StoredResult, ways: &[&TreeWay]) -> Option<u64> {
    let is_limited = stored.header.setup.iter().any(|(name, _)| name == "memory");
    memory_bytes(ways).filter(|_| is_limited)
}

fn memory_bytes(ways: &[&TreeWay]) -> Option<u64> {
    ways.iter().filter(|way| way.name == THROUGH).filter_map(|way| way.memory_bytes).max()
}

/// The bytes, the memory and the other load, in sentences.
fn conditions(stored: &StoredResult, ways: &[&TreeWay]) -> String {
    let mut sentences = vec![
        "Longer is better; a loss is the median of those of the rounds, with its interval."
            .to_owned(),
        "The founders' program lost 75 % on macOS, and 35 % with a purge: of the speed of the \
         disk, and not of a way past the cache."
            .to_owned(),
    ];
    if let Some(hot) = ways.iter().find_map(|way| way.bystander.as_ref()) {
        sentences.push(format!(
            "Another program reads its own {}, which are in memory, {} at a time. Right is worse: \
             each line of its axis is ten times slower than the one before it.",
            whole_size(hot.hot_bytes),
            whole_size(hot.read_bytes)
        ));
    }
    if let Some(most) = most_read(ways) {
        let count = files(most);
        let files = number(count, "file", "files");
        let bytes = whole_size(most.bytes);
        sentences.push(format!("A run reads at most {bytes}, in {files}."));
        if are_read_in_batches(count, most.bytes) {
            sentences.push(BATCHED.to_owned());
        }
    }
    if let Some(memory) = memory_limit(stored, ways) {
        let memory = whole_size(memory);
        sentences.push(format!("Memory was limited to {memory} for fsure and the page cache."));
    } else if let Some(memory) = memory_bytes(ways) {
        sentences.push(format!("The machine has {} of memory.", whole_size(memory)));
    }
    let noise = stored.summary.as_ref().and_then(|summary| summary.noise.others_percent);
    let noise = noise.filter(|percent| *percent >= OTHERS_MIN_PERCENT);
    sentences.extend(
        noise.map(|percent| format!("Other programs used {percent:.0} % of the processors.")),
    );
    sentences.join(" ")
}

/// A loss with its interval, as it stands on a bar.
fn loss_words(loss_percent: &Spread, way: &TreeWay, past: &TreeWay) -> String {
    // Plus zero, since a rounded loss of less than nothing would be "-0".
    let [low, high] = [loss_percent.low, loss_percent.high].map(|end| end.round() + 0.0);
    match loss_percent.median {
        loss if loss >= 0.0 => format!("loss by round {loss:.0} % ({low:.0} to {high:.0})"),
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
            median_mib_s: way.median,
            points: way.points.clone(),
            full_at_s: way.full_at_s,
            memory_bytes: way.memory_bytes,
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
    let interval = interval_words::heading(ways.iter().map(|way| way.samples.len()));
    let interval = format!("#{interval}");
    let columns = [
        "Way",
        "#MiB/s",
        &interval,
        "#Loss",
        "#User s/GiB",
        "#Kernel s/GiB",
        "#99 % wait",
        "#Longest wait",
    ];
    let mut table = Table::new("Ways", &columns);
    for way in ways {
        let loss = past_of(way, ways).and_then(|past| Some(loss_percent(way, past)?.median));
        let wait = |of: fn(&Bystander) -> Option<f64>| {
            let time = way.bystander.as_ref().and_then(of);
            time.map_or_else(|| NO_FIGURE.to_owned(), microseconds)
        };
        table.push(vec![
            Cell::head(format!("{}{}", way.name, of_sweep(way, ways))).with_small(&way.measured),
            Cell::number(figure(way.median)),
            Cell::number(format!("{} – {}", figure(way.low), figure(way.high))),
            Cell::number(loss.map_or(NO_FIGURE.to_owned(), loss_or_none)),
            Cell::number(optional(way.user_s_per_gib)),
            Cell::number(optional(way.system_s_per_gib)),
            Cell::number(wait(Bystander::known_p99_us)),
            Cell::number(wait(|one| Some(one.max_us))),
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
