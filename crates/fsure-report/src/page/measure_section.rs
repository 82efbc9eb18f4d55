//! The part of the page on a measurement.

use serde::Serialize;

use super::{Charts, Figure};
use crate::chart::{curve, figure, ladder, latency, microseconds, sorted, throughput};
use crate::rank::{Rank, ranks};
use fsure_core::units;
use fsure_measure::results::{
    Claim, LayerLine, Limit, Machine, Measurement, Noise, NotRun, Profile, ResultLine,
};
use fsure_measure::results::{MethodLine, Rung, Series, StoredResult};

/// A result of `speed` or `flush`.
#[derive(Serialize)]
pub(super) struct Measured {
    file: String,
    title: String,
    started: String,
    program: String,
    is_cut_off: bool,
    exit_code: Option<u8>,
    facts: Vec<(String, String)>,
    warnings: Vec<String>,
    ladders: Vec<Ladder>,
    limits: Vec<String>,
    not_run: Vec<NotRun>,
    series: Vec<[String; 6]>,
    throughputs: Vec<Figure>,
    stack: Vec<LayerLine>,
    verdicts: Vec<Claim>,
    methods: Vec<Methods>,
    curves: Vec<(Figure, String)>,
    profiles: Vec<ProfileRow>,
}

#[derive(Serialize)]
struct Ladder {
    target: String,
    unit: String,
    chart: Figure,
    rows: Vec<RungRow>,
}

#[derive(Serialize)]
struct RungRow {
    rank: String,
    name: String,
    measured: String,
    median: String,
    interval: String,
    runs: String,
    cpu: String,
    device: String,
}

#[derive(Serialize)]
struct Methods {
    target: String,
    chart: Figure,
    rows: Vec<[String; 8]>,
}

#[derive(Serialize)]
struct ProfileRow {
    name: String,
    target: String,
    passed: &'static str,
    words: String,
}

/// The section of a result.
pub(super) fn section(file: &str, stored: &StoredResult, charts: &mut Charts) -> Measured {
    let header = &stored.header;
    let what = match header.kind {
        Measurement::Speed => "Throughput",
        Measurement::Flush => "The price of a flush",
    };
    let targets: Vec<_> = header.targets.iter().map(|target| target.path.as_str()).collect();
    let mut section = Measured {
        file: file.to_owned(),
        title: format!("{what}: {}", targets.join(", ")),
        started: header.started.clone(),
        program: header.program.clone(),
        is_cut_off: stored.summary.is_none(),
        exit_code: stored.summary.as_ref().map(|summary| summary.exit_code),
        facts: machine(&header.machine),
        warnings: Vec::new(),
        ladders: ladders(
            &all(stored, |line| if let ResultLine::Rung(l) = line { Some(l) } else { None }),
            charts,
        ),
        limits: Vec::new(),
        not_run: Vec::new(),
        series: Vec::new(),
        throughputs: Vec::new(),
        stack: Vec::new(),
        verdicts: Vec::new(),
        methods: Vec::new(),
        curves: Vec::new(),
        profiles: Vec::new(),
    };
    section.facts.extend(header.setup.iter().cloned());
    if let Some(summary) = &stored.summary {
        section.facts.push(("duration".to_owned(), format!("{} s", figure(summary.seconds))));
        section.facts.push(("other load".to_owned(), noise(&summary.noise)));
    }
    let series = all(stored, |line| if let ResultLine::Series(l) = line { Some(l) } else { None });
    for of_target in by_target(&series, |series| &series.target) {
        let title = format!("Throughput over time: {}", of_target[0].target);
        section.throughputs.push(charts.add(&throughput(&title, &of_target)));
        section.series.extend(of_target.iter().map(|series| series_row(series)));
    }
    let methods = all(stored, |line| if let ResultLine::Method(l) = line { Some(l) } else { None });
    for of_target in by_target(&methods, |method| &method.target) {
        let target = of_target[0].target.clone();
        let chart = charts.add(&latency(&format!("Flush latency: {target}"), &of_target));
        let rows = of_target.iter().map(|method| method_row(method)).collect();
        section.methods.push(Methods { target, chart, rows });
    }
    stored.lines.iter().for_each(|line| section.add(line, charts));
    section
}

impl Measured {
    fn add(&mut self, line: &ResultLine, charts: &mut Charts) {
        match line {
            ResultLine::NotRun(not_run) => self.not_run.push(not_run.clone()),
            ResultLine::Limit(limit) => self.limits.push(sentence(limit)),
            ResultLine::Layer(layer) => self.stack.push(layer.clone()),
            ResultLine::Verdict(claim) => self.verdicts.push(claim.clone()),
            ResultLine::Warning { words } => self.warnings.push(words.clone()),
            ResultLine::Profile(profile) => self.profiles.push(profile_row(profile)),
            ResultLine::Curve(line) => {
                let title = format!("{}: {}", line.name, line.target);
                self.curves.push((charts.add(&curve(&title, line)), line.measured.clone()));
            }
            _ => {}
        }
    }
}

fn all<T>(stored: &StoredResult, of: impl Fn(&ResultLine) -> Option<&T>) -> Vec<&T> {
    stored.lines.iter().filter_map(of).collect()
}

/// In the order in which each first appears.
fn by_target<'a, T>(all: &[&'a T], target: impl Fn(&T) -> &str) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&'a T>> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|group| target(group[0]) == target(one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

fn ladders(rungs: &[&Rung], charts: &mut Charts) -> Vec<Ladder> {
    let mut ladders = Vec::new();
    for of_target in by_target(rungs, |rung| &rung.target) {
        for of_unit in by_target(&of_target, |rung| &rung.unit) {
            let (target, unit) = (of_unit[0].target.clone(), of_unit[0].unit.clone());
            let scale: Vec<_> = rungs.iter().copied().filter(|rung| rung.unit == unit).collect();
            let chart = ladder(&format!("Ladder, {unit}: {target}"), &of_unit, &scale);
            let sorted = sorted(&of_unit);
            let rows = sorted.iter().zip(ranks(&sorted)).map(|(rung, rank)| rung_row(rung, rank));
            ladders.push(Ladder { rows: rows.collect(), chart: charts.add(&chart), target, unit });
        }
    }
    ladders
}

fn rung_row(rung: &Rung, rank: Rank) -> RungRow {
    let runs = match rung.outliers.len() {
        0 => rung.runs.to_string(),
        far => format!("{} ({far} far off)", rung.runs),
    };
    let bytes = |what: &str, bytes: Option<u64>| Some(format!("{what} {}", units::size(bytes?)));
    let device = [
        bytes("read", rung.device_read_bytes),
        bytes("written", rung.device_written_bytes),
        rung.device_flushes.map(|flushes| format!("{} flushes", fsure_core::count(flushes))),
    ];
    let device: Vec<_> = device.into_iter().flatten().collect();
    RungRow {
        rank: rank.to_string(),
        name: rung.name.clone(),
        measured: rung.measured.clone(),
        median: figure(rung.median),
        interval: format!("{} – {}", figure(rung.low), figure(rung.high)),
        runs,
        cpu: optional(rung.cpu_s_per_gib),
        device: if device.is_empty() { "not told".to_owned() } else { device.join(", ") },
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "not told".to_owned(), figure)
}

fn series_row(series: &Series) -> [String; 6] {
    let eviction = series.eviction.map_or_else(
        || "not told".to_owned(),
        |it| {
            let gone = it.before_bytes.saturating_sub(it.after_bytes);
            let [gone, before, left] = [gone, it.before_bytes, it.left_bytes].map(units::size);
            format!("{gone} of {before} of others thrown out; {left} of its own left in memory")
        },
    );
    [
        series.name.clone(),
        series.measured.clone(),
        figure(series.mib_per_s),
        format!("{} with {} of cache", units::size(series.bytes), units::size(series.cache_bytes)),
        figure(series.cpu_s_per_gib),
        eviction,
    ]
}

fn method_row(method: &MethodLine) -> [String; 8] {
    [
        method.name.clone(),
        figure(method.ops),
        microseconds(method.p50_us),
        microseconds(method.p99_us),
        microseconds(method.max_us),
        optional(method.device_kib_per_op),
        optional(method.flushes_per_op),
        method.reached.clone(),
    ]
}

fn profile_row(profile: &Profile) -> ProfileRow {
    ProfileRow {
        name: profile.name.clone(),
        target: profile.target.clone(),
        passed: match profile.passed {
            Some(true) => "passed",
            Some(false) => "failed",
            None => "no mark",
        },
        words: profile.words.clone(),
    }
}

fn sentence(limit: &Limit) -> String {
    format!(
        "{}: verify would run at {} % of this device ({} of {} MiB/s); the limit is {}.",
        limit.target,
        figure(limit.percent),
        figure(limit.verify_mib_s),
        figure(limit.device_mib_s),
        limit.limit
    )
}

fn machine(machine: &Machine) -> Vec<(String, String)> {
    let facts = [
        ("machine", Some(machine.host.clone())),
        ("system", Some(machine.system.clone())),
        ("processor", machine.processor.clone()),
        ("cores", Some(machine.cores.to_string())),
        ("memory", machine.memory_bytes.map(units::size)),
        ("virtual machine", machine.virtualization.clone()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn noise(noise: &Noise) -> String {
    let parts = [
        ("load before", noise.load_before, ""),
        ("load after", noise.load_after, ""),
        ("stolen by the hypervisor", noise.steal_percent, " %"),
        ("used by other processes", noise.others_percent, " %"),
    ];
    let parts = parts.map(|(name, value, unit)| {
        value
            .map_or_else(|| format!("{name}: not told"), |v| format!("{name}: {}{unit}", figure(v)))
    });
    parts.join("; ")
}
