//! The ladder for a person: a line for each rung and below it what was truly
//! measured, fastest first if the order is certain. Where two intervals share a
//! value neither is the faster, and they have the same rank.

use std::fmt::Write as _;

use super::{figure, number, speed_io};
use fsure_core::safe;
use fsure_core::units;
use fsure_measure::results::{Limit, ResultLine, ResultSummary, Rung, Series};
use fsure_report::disk_factor;
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
        if times_the_disk(&rungs).iter().any(Option::is_some) {
            text.push_str(&disk_factor::MEANING.join("\n"));
            text.push('\n');
        }
    }
    let experiments = speed_io::text(lines);
    text += &experiments;
    if !experiments.is_empty() {
        text.push('\n');
    }
    let noun = if is_io(lines) { ("figure", "figures") } else { ("rung", "rungs") };
    for line in lines {
        other_line(&mut text, line, noun);
    }
    text
}

/// Returns true for a result of `--io`.
fn is_io(lines: &[ResultLine]) -> bool {
    let Some(ResultLine::Result(header)) = lines.first() else { return false };
    header.setup.iter().any(|(name, _)| name == "io")
}

const INTERVALS: &str = "\nThe figure is the median of the runs. The interval holds the true \
                         median with 95 %; below\nsix runs it is the range of all runs. Device \
                         figures are from its counters, which count\nall programs.\n";

/// The folders that were measured.
fn folders<'a>(rungs: &[&'a Rung]) -> std::collections::BTreeSet<&'a str> {
    rungs.iter().map(|rung| rung.target.as_str()).filter(|target| *target != "memory").collect()
}

/// Returns how many times as fast as its disk each rung is. Memory lies on no disk, and is compared
/// only if there is one folder.
fn times_the_disk(rungs: &[&Rung]) -> Vec<Option<f64>> {
    let folders = folders(rungs);
    let factor = |rung: &&Rung| {
        let disk = if folders.len() == 1 { folders.first().copied()? } else { &rung.target };
        let others = rungs.iter().copied().filter(|other| other.target == disk);
        disk_factor::factors(&others.chain([*rung]).collect::<Vec<_>>()).pop()?
    };
    rungs.iter().map(factor).collect()
}

/// The rungs of one unit, fastest first.
fn ladder(text: &mut String, unit: &str, mut rungs: Vec<&Rung>) {
    if rungs.is_empty() {
        return;
    }
    rungs.sort_by(|one, other| other.median.total_cmp(&one.median));
    let fastest = rungs[0].median;
    let (ranks, factors) = (ranks(&rungs), times_the_disk(&rungs));
    let width = longest(&ranks).max("rank".len());
    let _ = writeln!(
        text,
        "\n{:>width$}  {:<NAME$} {unit:>9} {:>7}  {:<23} runs  CPU s/GiB",
        "rank", "rung", "x disk", "interval"
    );
    let targets = folders(&rungs);
    for ((rung, rank), factor) in rungs.iter().zip(ranks).zip(factors) {
        let times = factor.map_or_else(|| "-".to_owned(), disk_factor::words);
        let interval = format!("{} - {}", figure(rung.low), figure(rung.high));
        let cpu = rung.cpu_s_per_gib.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2}"));
        let _ = writeln!(
            text,
            "{rank:>width$}  {:<NAME$} {:>9} {times:>7}  {interval:<23} {:>4}  {cpu:>9}  {}",
            rung.name,
            figure(rung.median),
            rung.runs,
            bar(rung.median, fastest),
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

/// A bar from zero: its length is its figure. One that would be nothing is a dot.
fn bar(value: f64, fastest: f64) -> String {
    let columns = (value / fastest.max(f64::MIN_POSITIVE) * BAR as f64).round();
    match columns.clamp(0.0, BAR as f64) as usize {
        0 => ".".to_owned(),
        columns => "#".repeat(columns),
    }
}

fn other_line(text: &mut String, line: &ResultLine, noun: (&str, &str)) {
    let _ = match line {
        ResultLine::NotRun(left) => {
            writeln!(text, "not run: {}, {}: {}", left.name, safe(&left.target), safe(&left.why))
        }
        ResultLine::Limit(limit) => write!(text, "{}", of_limit(limit)),
        ResultLine::Series(series) => write!(text, "{}", of_series(series)),
        ResultLine::Warning { words } => writeln!(text, "note: {}", safe(words)),
        ResultLine::Summary(summary) => writeln!(text, "{}", closing(summary, noun)),
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

fn closing(summary: &ResultSummary, (one, many): (&str, &str)) -> String {
    let mut text = format!(
        "\n{} measured, {} not run, in {:.1} s",
        number(summary.measured, one, many),
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
    fn bars_begin_at_zero() {
        for (value, columns) in [(1000.0, 24), (500.0, 12), (125.0, 3)] {
            assert_eq!(bar(value, 1000.0), "#".repeat(columns), "{value}");
        }
        assert_eq!((bar(1.0, 1000.0), bar(0.0, 0.0)), (".".to_owned(), ".".to_owned()));
    }

    #[test]
    fn memory_is_compared_with_the_only_disk() {
        let of = |name, target: &str, median| Rung {
            target: target.to_owned(),
            ..rung(name, median, median, median)
        };
        let memory = of("ram disk first write", "memory", 900.0);
        let [a, b] = ["/a", "/b"].map(|target| of("disk write durable", target, 300.0));
        let shown = text(&[memory.clone(), a.clone()].map(ResultLine::Rung));
        assert!(shown.contains(" 900   3.0 x  900 - 900 "), "{shown}");
        assert!(shown.contains("\nx disk: times as fast as the disk"), "{shown}");
        let shown = text(&[memory, a, b].map(ResultLine::Rung));
        assert!(shown.contains(" 900       -  900 - 900 "), "{shown}");
    }
}
