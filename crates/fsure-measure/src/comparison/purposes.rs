//! Advice on which of the results suits which purpose, each with its reason: by the marks that
//! databases have published, by the differences that the runs show, and by the verdict on the
//! flush.

use super::figures::{Figure, FigureValue, Seen};
use super::{Comparison, Contender};
use crate::flush_verdict::Grade;
use crate::flush_verdict::thresholds::{ETCD_P99_US, SQLITE_DISK_COMMITS};
use crate::results::Measurement;
use fsure_core::units::microseconds;

/// Runs below which no result is called the better.
const RUNS_MIN: usize = 3;
/// Relative difference that counts, as for ratios.
const EFFECT: f64 = 0.05;
/// MiB of 1 TiB.
const TEBIBYTE_MIB: f64 = 1_048_576.0;

/// A purpose, and the results that suit it.
#[derive(Clone, Debug, PartialEq)]
pub struct Purpose {
    /// `PostgreSQL`, `photo archive`, ...
    pub name: &'static str,
    /// Names of the contenders that suit it best, or equally well; empty if none does or if
    /// these results do not show which.
    pub suits: Vec<String>,
    /// The reason.
    pub words: String,
}

/// Returns the advice for all purposes.
pub(super) fn purposes(compared: &Comparison) -> Vec<Purpose> {
    match compared.kind {
        Measurement::Flush => by_flushes(compared),
        Measurement::Speed => by_speed(compared),
    }
}

fn by_flushes(compared: &Comparison) -> Vec<Purpose> {
    let all = &compared.contenders;
    let Some(flush) = compared.key_figure() else { return Vec::new() };
    let each = "One session that waits for each commit gets one in";
    let times = values(all, flush, |value| microseconds(value.median));
    let turn = microseconds(1e6 / SQLITE_DISK_COMMITS);
    let marks = [
        (
            "PostgreSQL",
            format!(
                "{each} {times}.{} PostgreSQL publishes no mark.",
                pattern(all, "postgres", "commits/s")
            ),
        ),
        (
            "SQLite",
            format!(
                "{each} {times}; a rollback journal needs four.{} No mark is published: SQLite's \
                 FAQ expects {SQLITE_DISK_COMMITS} a second of a disk of 7,200 rpm ({turn}).",
                pattern(all, "sqlite", "wal commits/s")
            ),
        ),
    ];
    let database = |(name, words): (&'static str, String)| {
        let allowed = believed(all, flush);
        let mut purpose = suiting(compared, name, &best(flush, &allowed), &words, &allowed);
        purpose.words += &left_out(all, flush, &allowed);
        purpose
    };
    let mut purposes: Vec<_> = marks.into_iter().map(database).collect();
    purposes.push(etcd(compared, flush));
    purposes.push(archive_by_verdict(all));
    purposes.push(not_measured(
        "build cache",
        "What is lost can be built again, so flushes do not decide: compare with 'fsure speed \
         compare'.",
    ));
    purposes
}

/// The contenders that have a value and against whose flushes nothing speaks; if there are
/// none, all that are not known to lose data.
fn believed(all: &[Contender], figure: &Figure) -> Vec<usize> {
    let has_value = |place: &usize| figure.values[*place].is_some();
    let of = |is: &dyn Fn(&Contender) -> bool| -> Vec<usize> {
        (0..all.len()).filter(has_value).filter(|place| is(&all[*place])).collect()
    };
    let sound = of(&|one| one.verdict.as_ref().is_some_and(|verdict| verdict.grade == Grade::Ok));
    if sound.is_empty() { of(&|one| !one.has_bad_flush() && !one.is_in_memory()) } else { sound }
}

/// Returns the contenders with the best value: the best, and all from which it does not differ.
/// Empty if the runs are too few to show that.
fn best(figure: &Figure, among: &[usize]) -> Vec<usize> {
    let value = |place: usize| figure.values[place].as_ref();
    let known = among.iter().filter_map(|place| value(*place));
    let is_sure = |value: &FigureValue| value.runs >= RUNS_MIN && value.interval.is_some();
    if !known.clone().all(is_sure) {
        return Vec::new();
    }
    let is_open = |place: &usize| {
        let ratio = figure.ratios.get(*place).and_then(Option::as_ref);
        ratio.is_some_and(|ratio| ratio.seen == Seen::TooFewRuns)
    };
    if among.iter().any(is_open) {
        return Vec::new();
    }
    let better = |one: f64, other: f64| if figure.is_time() { one < other } else { one > other };
    let Some(best) =
        known.reduce(|one, two| if better(two.median, one.median) { two } else { one })
    else {
        return Vec::new();
    };
    let is_as_good = |place: &usize| {
        let (Some(value), Some((low, high))) = (value(*place), best.interval) else { return false };
        let overlaps = value.interval.is_some_and(|(from, to)| from <= high && low <= to);
        overlaps || (value.median / best.median - 1.0).abs() < EFFECT
    };
    among.iter().copied().filter(is_as_good).collect()
}

fn suiting(
    compared: &Comparison,
    name: &'static str,
    best: &[usize],
    words: &str,
    allowed: &[usize],
) -> Purpose {
    let all = &compared.contenders;
    let reason = match best.len() {
        0 if allowed.is_empty() => " None of these suits.",
        0 => " The runs are too few to tell.",
        1 => "",
        _ if allowed.len() > best.len() => " No difference was seen between the best.",
        _ => " No difference was seen.",
    };
    let words = format!("{words}{reason}");
    Purpose { name, suits: best.iter().map(|place| all[*place].name.clone()).collect(), words }
}

/// The value of each contender: `21.7 ms (A), 7 ms (B)`.
fn values(all: &[Contender], figure: &Figure, words: impl Fn(&FigureValue) -> String) -> String {
    let pairs = all.iter().zip(&figure.values);
    let each =
        pairs.filter_map(|(one, value)| Some(format!("{} ({})", words(value.as_ref()?), one.name)));
    each.collect::<Vec<_>>().join(", ")
}

/// A sentence on each contender that its verdict keeps from being considered.
fn left_out(all: &[Contender], figure: &Figure, considered: &[usize]) -> String {
    let has_value = |place: &usize| figure.values[*place].is_some();
    let others = (0..all.len()).filter(has_value).filter(|place| !considered.contains(place));
    let words = others.map(|place| {
        let one = &all[place];
        let id = one.verdict.as_ref().map_or("no verdict", |verdict| &verdict.id);
        let name = &one.name;
        if one.is_in_memory() {
            format!(" {name} is ruled out: it is in memory, and a power cut loses everything in it.")
        } else if one.has_bad_flush() {
            format!(" {name} is ruled out: its flush is bad ({id}).")
        } else {
            format!(
                " {name} is left out: it is not proved that its flush holds ({id}); 'fsure powercut' \
                 can prove it."
            )
        }
    });
    words.collect()
}

/// A sentence on the commits a second of a database's own pattern, where it was measured.
fn pattern(all: &[Contender], database: &str, figure: &str) -> String {
    let each = all.iter().filter_map(|one| {
        Some(format!("{} ({})", digits(one.profile_figure(database, figure)?), one.name))
    });
    let each: Vec<_> = each.collect();
    if each.is_empty() {
        return String::new();
    }
    format!(" Its own pattern gave {} commits a second.", each.join(", "))
}

fn digits(rate: f64) -> String {
    if rate < 99.5 { format!("{rate:.1}") } else { fsure_core::count(rate.round() as u64) }
}

/// By the 99th percentile of etcd's own pattern if all have it, else of the plain flush.
fn etcd(compared: &Comparison, flush: &Figure) -> Purpose {
    let all = &compared.contenders;
    let of_pattern: Vec<_> = all.iter().map(|one| one.profile_figure("etcd", "p99 us")).collect();
    let has_pattern = of_pattern.iter().all(Option::is_some);
    let p99 = |place: usize| match has_pattern {
        true => of_pattern[place],
        false => Some(flush.values[place].as_ref()?.flush?.p99_us),
    };
    let passes = |place: &usize| p99(*place).is_some_and(|p99| p99 < ETCD_P99_US);
    let allowed = believed(all, flush);
    let passed: Vec<_> = allowed.iter().copied().filter(passes).collect();
    let times = (0..all.len())
        .filter_map(|place| Some(format!("{} ({})", microseconds(p99(place)?), all[place].name)));
    let of = if has_pattern { "flushes of its own pattern" } else { "flushes" };
    let none = if passed.is_empty() { " None of these suits." } else { "" };
    let words = format!(
        "99 % of the {of} took at most {}; etcd asks for less than {}.{none}{}",
        times.collect::<Vec<_>>().join(", "),
        microseconds(ETCD_P99_US),
        left_out(all, flush, &allowed)
    );
    let suits = passed.iter().map(|place| all[*place].name.clone()).collect();
    Purpose { name: "etcd", suits, words }
}

/// An archive is written once, so that the price of a flush matters less than that it holds.
fn archive_by_verdict(all: &[Contender]) -> Purpose {
    let of = |wanted: &[Grade]| -> Vec<String> {
        let is = |one: &&Contender| {
            let grade = one.verdict.as_ref().map(|verdict| verdict.grade);
            !one.is_in_memory() && grade.is_some_and(|grade| wanted.contains(&grade))
        };
        all.iter().filter(is).map(|one| one.name.clone()).collect()
    };
    let (sound, unproved, mut bad) =
        (of(&[Grade::Ok]), of(&[Grade::Suspicious, Grade::NotMeasured]), of(&[Grade::Bad]));
    bad.extend(all.iter().filter(|one| one.is_in_memory()).map(|one| one.name.clone()));
    let mut words =
        "Written once and kept: that a flush holds matters more than its price.".to_owned();
    for (names, what) in [
        (&sound, "nothing speaks against the flush of"),
        (&unproved, "it is not proved that a flush holds on"),
        (&bad, "acknowledged data get lost on"),
    ] {
        if !names.is_empty() {
            words += &format!(" By the verdicts, {what} {}.", names.join(", "));
        }
    }
    words += " A second copy on another drive is needed in any case.";
    Purpose { name: "photo archive", suits: sound, words }
}

fn not_measured(name: &'static str, words: &str) -> Purpose {
    Purpose { name, suits: Vec::new(), words: words.to_owned() }
}

fn by_speed(compared: &Comparison) -> Vec<Purpose> {
    let figure = |names: &[&str]| {
        names.iter().find_map(|name| compared.figures.iter().find(|one| one.name == *name))
    };
    let databases = ["PostgreSQL", "SQLite", "etcd"].map(|name| {
        not_measured(
            name,
            "Throughput does not decide, the price of a commit does: 'fsure flush --save' and \
             'fsure flush compare'.",
        )
    });
    let mut purposes: Vec<_> = databases.into_iter().collect();
    purposes.push(match figure(&["verify", "disk read direct", "disk read uncached"]) {
        None => {
            not_measured("photo archive", "Not measured: run it again with '--rungs disk,verify'.")
        }
        Some(read) => {
            let hours = |value: &FigureValue| hours(TEBIBYTE_MIB / value.median / 3600.0);
            let times = values(&compared.contenders, read, hours);
            let words = format!(
                "Read in full at each check: 1 TiB takes {times} ({}). 'fsure flush' \
                 judges whether a flush holds.",
                read.name
            );
            chosen(compared, read, "photo archive", &words)
        }
    });
    purposes.push(match figure(&["small files create"]) {
        None => not_measured(
            "build cache",
            "Not measured: run it again with '--rungs \"small files\"'.",
        ),
        Some(files) => {
            let rate = |value: &FigureValue| fsure_core::count(value.median.round() as u64);
            let rates = values(&compared.contenders, files, rate);
            let words = format!("Many small files, none flushed: {rates} new files a second.");
            chosen(compared, files, "build cache", &words)
        }
    });
    purposes
}

fn chosen(compared: &Comparison, figure: &Figure, name: &'static str, words: &str) -> Purpose {
    let among: Vec<_> = (0..figure.values.len()).filter(|n| figure.values[*n].is_some()).collect();
    suiting(compared, name, &best(figure, &among), words, &among)
}

fn hours(hours: f64) -> String {
    if hours < 1.0 {
        format!("{:.0} min", (hours * 60.0).max(1.0))
    } else {
        format!("{hours:.1} h")
    }
}
