//! The ladder for a person: a line for each rung and below it what was truly
//! measured, fastest first if the order is certain. Where two intervals share a
//! value neither is the faster, and they have the same rank.

use std::fmt::Write as _;

use super::{figure, number};
use fsure_core::safe;
use fsure_core::units;
use fsure_measure::results::{Limit, ResultLine, ResultSummary, Rung, Series};
use fsure_report::rank::{MEANING, longest, ranks};

/// Columns of the longest bar.
const BAR: usize = 24;
/// Columns of a name; longer ones push their figures aside.
const NAME: usize = 28;

/// The whole result as text.
pub fn text(lines: &[ResultLine]) -> String {
    let mut text = String::new();
    if let Some(ResultLine::Result(header)) = lines.first() {
        let machine = &header.machine;
        let processor = machine.processor.as_deref().unwrap_or("processor not known");
        let _ = writeln!(text, "{}: {}, {} cores", machine.host, processor, machine.cores);
        let shown = header.setup.iter().map(|(name, value)| format!("{name} {value}"));
        let _ = writeln!(text, "{}", safe(&shown.collect::<Vec<_>>().join(", ")));
    }
    let rungs: Vec<&Rung> = lines
        .iter()
        .filter_map(|line| match line {
            ResultLine::Rung(rung) => Some(rung),
            _ => None,
        })
        .collect();
    for unit in ["MiB/s", "files/s"] {
        let of_unit: Vec<_> = rungs.iter().copied().filter(|rung| rung.unit == unit).collect();
        ladder(&mut text, unit, of_unit);
    }
    if !rungs.is_empty() {
        text.push_str(INTERVALS);
        text.push_str(&MEANING.join("\n"));
        text.push('\n');
    }
    for line in lines {
        other_line(&mut text, line);
    }
    text
}

const INTERVALS: &str = "\nThe figure is the median of the runs. The interval holds the true \
                         median with 95 %; below\nsix runs it is the range of all runs. Device \
                         figures are from its counters, which count\nall programs.\n";

/// The rungs of one unit, fastest first.
fn ladder(text: &mut String, unit: &str, mut rungs: Vec<&Rung>) {
    if rungs.is_empty() {
        return;
    }
    rungs.sort_by(|one, other| other.median.total_cmp(&one.median));
    let (fastest, slowest) = (rungs[0].median, rungs[rungs.len() - 1].median);
    let ranks = ranks(&rungs);
    let width = longest(&ranks).max("rank".len());
    let _ = writeln!(
        text,
        "\n{:>width$}  {:<NAME$} {unit:>9}  {:<23} runs  CPU s/GiB",
        "rank", "rung", "interval"
    );
    let targets: std::collections::BTreeSet<_> =
        rungs.iter().map(|rung| &rung.target).filter(|target| *target != "memory").collect();
    for (rung, rank) in rungs.iter().zip(ranks) {
        let interval = format!("{} - {}", figure(rung.low), figure(rung.high));
        let cpu = rung.cpu_s_per_gib.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2}"));
        let _ = writeln!(
            text,
            "{rank:>width$}  {:<NAME$} {:>9}  {interval:<23} {:>4}  {cpu:>9}  {}",
            rung.name,
            figure(rung.median),
            rung.runs,
            bar(rung.median, slowest, fastest),
        );
        let place = match targets.len() > 1 && rung.target != "memory" {
            true => format!("{}: ", safe(&rung.target)),
            false => String::new(),
        };
        let _ = writeln!(text, "{:width$}  {place}{}{}", "", safe(&rung.measured), asides(rung));
    }
}

/// Returns further facts about a rung.
fn asides(rung: &Rung) -> String {
    let mut asides = String::new();
    let device = [("read", rung.device_read_bytes), ("wrote", rung.device_written_bytes)];
    let per_run = |total: u64| total / rung.runs.max(1) as u64;
    let counts: Vec<_> = device
        .iter()
        .filter_map(|(did, bytes)| bytes.map(|bytes| (did, per_run(bytes))))
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(did, bytes)| format!("{did} {}", units::size(bytes)))
        .chain(rung.device_flushes.filter(|flushes| *flushes > 0).map(|flushes| {
            format!("flushed {:.1} times", flushes as f64 / rung.runs.max(1) as f64)
        }))
        .collect();
    if !counts.is_empty() {
        let _ = write!(asides, "; per run the device {}", counts.join(", "));
    } else if rung.device_read_bytes.is_some() {
        asides.push_str("; the device did nothing");
    }
    if let [warm_up, ..] = rung.warm_up[..] {
        let _ = write!(asides, "; warm-up {}", figure(warm_up));
    }
    if !rung.outliers.is_empty() {
        let runs: Vec<_> = rung.outliers.iter().map(|place| figure(rung.samples[*place])).collect();
        let _ = write!(asides, "; far from the others: {}", runs.join(", "));
    }
    asides
}

/// By the logarithm, or all but the fastest would be nothing.
fn bar(value: f64, slowest: f64, fastest: f64) -> String {
    // A tenth of the slowest, so that it has a bar, too.
    let zero = (slowest / 10.0).max(f64::MIN_POSITIVE);
    let share = (value / zero).ln() / (fastest / zero).ln();
    let columns = (share * BAR as f64).round().clamp(1.0, BAR as f64) as usize;
    "#".repeat(columns)
}

fn other_line(text: &mut String, line: &ResultLine) {
    let _ = match line {
        ResultLine::NotRun(left) => {
            writeln!(text, "not run: {}, {}: {}", left.name, safe(&left.target), safe(&left.why))
        }
        ResultLine::Limit(limit) => write!(text, "{}", of_limit(limit)),
        ResultLine::Series(series) => write!(text, "{}", of_series(series)),
        ResultLine::Warning { words } => writeln!(text, "note: {}", safe(words)),
        ResultLine::Summary(summary) => writeln!(text, "{}", closing(summary)),
        _ => Ok(()),
    };
}

/// Reports the speed of `verify` relative to the device.
fn of_limit(limit: &Limit) -> String {
    let longer = match &*limit.limit {
        "its beginning and end" => ": the file was short; '--size' and '--budget' make it longer",
        _ => "",
    };
    format!(
        "\n{}: verify would run at {:.0} % of this device ({} of {} MiB/s); the limit is {}{longer}\n",
        safe(&limit.target),
        limit.percent,
        figure(limit.verify_mib_s),
        figure(limit.device_mib_s),
        safe(&limit.limit)
    )
}

/// The cost of caching, in one paragraph.
fn of_series(series: &Series) -> String {
    let mut text = format!(
        "\n{}, {}: {} MiB/s, {:.2} CPU s/GiB\n      {}\n",
        series.name,
        safe(&series.target),
        figure(series.mib_per_s),
        series.cpu_s_per_gib,
        safe(&series.measured)
    );
    if let Some(eviction) = series.eviction {
        let _ = writeln!(
            text,
            "      of another file's {} in memory {} were left afterwards, and {} of the file that \
             it read",
            units::size(eviction.before_bytes),
            units::size(eviction.after_bytes),
            units::size(eviction.left_bytes)
        );
    }
    text
}

fn closing(summary: &ResultSummary) -> String {
    let mut text = format!(
        "\n{} measured, {} not run, in {:.1} s",
        number(summary.measured, "rung", "rungs"),
        summary.not_run,
        summary.seconds
    );
    let noise = &summary.noise;
    let reported = [
        ("load before", noise.load_before, ""),
        ("load after", noise.load_after, ""),
        ("stolen by the hypervisor", noise.steal_percent, " %"),
        ("used by other programs", noise.others_percent, " %"),
    ];
    for (what, value, unit) in reported {
        let value = value.map_or_else(|| "not known".to_owned(), |v| format!("{v:.1}{unit}"));
        let _ = write!(text, "; {what}: {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(name: &str, low: f64, median: f64, high: f64) -> Rung {
        Rung {
            name: name.to_owned(),
            target: "memory".to_owned(),
            unit: "MiB/s".to_owned(),
            median,
            low,
            high,
            runs: 6,
            measured: "nothing".to_owned(),
            samples: vec![low, low, median, median, high, high],
            warm_up: vec![low],
            outliers: vec![5],
            amount: 1 << 20,
            cpu_s_per_gib: None,
            device_read_bytes: Some(0),
            device_written_bytes: Some(6 << 20),
            device_flushes: Some(6),
        }
    }

    #[test]
    fn nothing_is_ranked_that_may_be_the_same() {
        let (fast, twin, slow) = (
            rung("fast", 90.0, 100.0, 110.0),
            rung("twin", 85.0, 95.0, 99.0),
            rung("slow", 1.0, 2.0, 3.0),
        );
        let once = Rung { runs: 1, ..rung("once", 500.0, 500.0, 500.0) };
        let shown: Vec<_> =
            ranks(&[&once, &fast, &twin, &slow]).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["-", "1-2", "1-2", "3"]);
        let text = text(&[slow, twin, fast].map(ResultLine::Rung));
        let ranks: Vec<_> = text.lines().filter_map(|line| line.trim().split_once("  ")).collect();
        let order: Vec<_> = ranks.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(order, ["rank", "1-2", "1-2", "3"], "{text}");
        assert!(text.contains("per run the device wrote 1.0 MiB, flushed 1.0 times"), "{text}");
        assert!(text.contains("warm-up 90.0; far from the others: 110"), "{text}");
    }

    #[test]
    fn bars_have_a_length_between_one_and_all() {
        for (value, columns) in [(1.0, 6), (10.0, 12), (1000.0, 24)] {
            assert_eq!(bar(value, 1.0, 1000.0).len(), columns, "{value}");
        }
        assert_eq!(bar(5.0, 5.0, 5.0).len(), BAR);
    }
}
