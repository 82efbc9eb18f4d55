//! `flush` for a person: what the path lies on, what each way of making a write
//! durable costs there, and last what to believe of it, since the last lines
//! are what is still on the terminal.

use super::{figure, table};
use fsure_core::units::size;
use fsure_core::{count, safe};
use fsure_measure::results::{Claim, Curve, LayerLine, MethodLine, NotRun, Profile, ResultLine};

/// Columns of a line, but for names and sentences that have no place to break.
const WIDTH: usize = 96;

/// Stands for a 99th percentile of too few writes.
const NO_P99: &str = "-";
const FEW_WRITES: &str = "  -: less than 100 writes have no p99, see the longest; a longer '--time' \
                          makes more\n";

/// The report on all lines of a result, in the order of its targets; nothing
/// where there are none.
pub fn text(lines: &[ResultLine]) -> String {
    let mut targets: Vec<&str> = Vec::new();
    for target in lines.iter().filter_map(target) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        return String::new();
    }
    let parts: Vec<_> = targets.iter().map(|target| of_target(target, lines)).collect();
    let mut report = parts.join("\n");
    if !is_whole(lines) {
        report += "\nThe run did not end: the results above are all that it measured.\n";
    }
    report
}

/// Returns true if the run came to its end. A run that was stopped or failed has a last
/// line, but not a verdict on each target.
fn is_whole(lines: &[ResultLine]) -> bool {
    let judged = |path: &str| {
        lines.iter().any(|line| matches!(line, ResultLine::Verdict(one) if one.target == path))
    };
    let is_judged = |line: &ResultLine| match line {
        ResultLine::Result(header) => header.targets.iter().all(|target| judged(&target.path)),
        _ => true,
    };
    lines.iter().any(|line| matches!(line, ResultLine::Summary(_))) && lines.iter().all(is_judged)
}

/// Returns the verdict on each target, and nothing else.
pub fn verdicts(lines: &[ResultLine]) -> String {
    let block = |line: &ResultLine| Some(format!("{}\n{}", safe(target(line)?), verdict(line)?));
    lines.iter().filter_map(block).collect()
}

fn target(line: &ResultLine) -> Option<&str> {
    Some(match line {
        ResultLine::Layer(LayerLine { target, .. })
        | ResultLine::Method(MethodLine { target, .. })
        | ResultLine::NotRun(NotRun { target, .. })
        | ResultLine::Curve(Curve { target, .. })
        | ResultLine::Profile(Profile { target, .. })
        | ResultLine::Verdict(Claim { target, .. }) => target,
        _ => return None,
    })
}

fn of_target(name: &str, lines: &[ResultLine]) -> String {
    let own: Vec<_> = lines.iter().filter(|line| target(line) == Some(name)).collect();
    let mut report = format!("{}\n", safe(name));
    let mut part = |title: &str, text: String| {
        if !text.is_empty() {
            report += &format!("\n{title}\n{text}");
        }
    };
    part("Lies on", layers(&own));
    part("Ways to make a write durable", methods(&own));
    for line in &own {
        if let ResultLine::Curve(one) = line {
            part(&heading(one), bars(one));
        }
    }
    part("Databases", own.iter().filter_map(|line| profile(line)).collect());
    part("Not run", own.iter().filter_map(|line| not_run(line)).collect());
    part("Verdict", own.iter().filter_map(|line| verdict(line)).collect());
    report
}

fn layers(lines: &[&ResultLine]) -> String {
    let layers: Vec<_> = lines
        .iter()
        .filter_map(|line| if let ResultLine::Layer(layer) = line { Some(layer) } else { None })
        .collect();
    let width = |of: fn(&LayerLine) -> &str| {
        layers.iter().map(|layer| safe(of(layer)).chars().count()).max().unwrap_or(0)
    };
    let (kinds, names) = (width(|layer| &layer.layer), width(|layer| &layer.name));
    let mut text = String::new();
    for layer in layers {
        let start = format!("  {:kinds$}  {:names$}  ", safe(&layer.layer), safe(&layer.name));
        let facts = layer.facts.iter().map(|(name, value)| safe(&format!("{name}: {value}")));
        text += &filled(&start, &facts.collect::<Vec<_>>(), ", ");
    }
    text
}

fn methods(lines: &[&ResultLine]) -> String {
    let methods: Vec<_> = lines
        .iter()
        .filter_map(|line| if let ResultLine::Method(method) = line { Some(method) } else { None })
        .collect();
    let optional = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.2}"));
    let mut rows = vec![
        ["", "per second", "p50 us", "p99 us", "max us", "KiB each", "flushes each"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows[0].push("reached the device".to_owned());
    rows.extend(methods.iter().map(|method| {
        vec![
            safe(&method.name),
            figure(method.ops),
            figure(method.p50_us),
            method.known_p99_us().map_or(NO_P99.to_owned(), figure),
            figure(method.max_us),
            optional(method.device_kib_per_op),
            optional(method.flushes_per_op),
            safe(&method.reached),
        ]
    }));
    if methods.is_empty() {
        return String::new();
    }
    let has_few = methods.iter().any(|method| method.known_p99_us().is_none());
    indented(&rows) + if has_few { FEW_WRITES } else { "" }
}

/// The first and the last column to the left, what is between to the right.
fn indented(rows: &[Vec<String>]) -> String {
    let last = rows[0].len() - 1;
    let lines = table(rows, |column| column == 0 || column == last);
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

fn heading(curve: &Curve) -> String {
    let words = format!("{}, {}: {}", capital(&curve.name), curve.y, curve.measured);
    filled("", &safe(&words).split(' ').collect::<Vec<_>>(), " ").trim_end().to_owned()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn bars(curve: &Curve) -> String {
    const LONGEST: f64 = 30.0;
    let top = curve.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let rows = curve.points.iter().map(|point| {
        let length = if top > 0.0 { (point.y / top * LONGEST).round() as usize } else { 0 };
        let flushes = point.flushes_per_op.map_or("?".to_owned(), |n| format!("{n:.2}"));
        let sure = format!("{} to {}", figure(point.low), figure(point.high));
        let bar = "#".repeat(length);
        vec![String::new(), x(point.x, &curve.x), figure(point.y), sure, flushes, bar]
    });
    let head = ["", &curve.x, &curve.y, "95 % sure", "flushes each", ""].map(str::to_owned);
    let all: Vec<_> = std::iter::once(head.to_vec()).chain(rows).collect();
    indented(&all)
}

/// Bytes as people read them, counts as they are.
fn x(value: f64, unit: &str) -> String {
    if unit.contains("byte") { size(value as u64) } else { count(value as u64) }
}

fn profile(line: &ResultLine) -> Option<String> {
    let ResultLine::Profile(profile) = line else { return None };
    let mark = match profile.passed {
        Some(true) => "passed",
        Some(false) => "FAILED",
        None => "no mark",
    };
    Some(paragraph(&format!("{}, {mark}:", safe(&profile.name)), &profile.words))
}

fn not_run(line: &ResultLine) -> Option<String> {
    let ResultLine::NotRun(one) = line else { return None };
    Some(paragraph(&format!("{}:", safe(&one.name)), &one.why))
}

fn verdict(line: &ResultLine) -> Option<String> {
    let ResultLine::Verdict(claim) = line else { return None };
    Some(paragraph(&format!("{}:", safe(&claim.title())), &claim.words))
}

/// A sentence behind its subject, broken at its words.
fn paragraph(start: &str, words: &str) -> String {
    let words = safe(words);
    let mut all: Vec<_> = start.split(' ').collect();
    all.extend(words.split(' '));
    filled("  ", &all, " ")
}

/// Pieces behind `start`, in lines of [`WIDTH`] that begin below the first.
fn filled(start: &str, pieces: &[impl AsRef<str>], between: &str) -> String {
    filled_to(WIDTH, start, pieces, between)
}

/// The same in lines of this width.
pub(super) fn filled_to(
    columns: usize,
    start: &str,
    pieces: &[impl AsRef<str>],
    between: &str,
) -> String {
    let indent = " ".repeat(start.chars().count());
    let (mut text, mut line) = (String::new(), start.to_owned());
    for (place, piece) in pieces.iter().enumerate() {
        let piece = piece.as_ref();
        let is_first = line == start || line == indent;
        if !is_first && line.chars().count() + piece.chars().count() > columns {
            text += line.trim_end();
            text.push('\n');
            line.clone_from(&indent);
        }
        line += piece;
        if place + 1 < pieces.len() {
            line += between;
        }
    }
    text += line.trim_end();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_measure::results::{Noise, Point, ResultSummary};

    fn lines() -> Vec<ResultLine> {
        let target = "/srv/\u{1b}[1mdb".to_owned();
        let layer = |layer: &str, name: &str, facts: &[(&str, &str)]| {
            let facts = facts.iter().map(|(name, is)| ((*name).to_owned(), (*is).to_owned()));
            let (target, facts) = (target.clone(), facts.collect());
            ResultLine::Layer(LayerLine {
                target,
                layer: layer.to_owned(),
                name: name.to_owned(),
                facts,
            })
        };
        let method = |name: &str, ops, p50_us, counted: Option<(f64, f64)>, reached: &str| {
            ResultLine::Method(MethodLine {
                name: name.to_owned(),
                target: target.clone(),
                ops,
                p50_us,
                p99_us: p50_us * 10.0,
                max_us: 12_345.6,
                p10_us: p50_us,
                p90_us: p50_us,
                count: 100,
                device_kib_per_op: counted.map(|(kib, _)| kib),
                flushes_per_op: counted.map(|(_, flushes)| flushes),
                reached: reached.to_owned(),
                histogram: Vec::new(),
                turns_us: Vec::new(),
            })
        };
        let noise = Noise::default();
        let summary = ResultSummary { seconds: 20.0, noise, measured: 3, not_run: 1, exit_code: 0 };
        let point = |x, y| Point { x, y, low: y / 2.0, high: y, flushes_per_op: Some(1.0 / x) };
        vec![
            layer("file system", "ext4", &[("at", "/srv"), ("options", "rw,relatime")]),
            layer("disk", "vda", &[("model", "a model with a long name of many words"); 3]),
            method("fsync", 46.0, 21_739.0, Some((4.0, 1.0)), "data and a flush"),
            method("write only", 612_345.4, 1.63, None, "not known: no counters"),
            ResultLine::Curve(Curve {
                name: "commits per flush".to_owned(),
                target: target.clone(),
                x: "commits per flush".to_owned(),
                y: "commits/s".to_owned(),
                points: vec![point(1.0, 46.0), point(64.0, 2_944.0)],
                measured: "so many writes, then fdatasync".to_owned(),
            }),
            ResultLine::Profile(Profile {
                name: "etcd".to_owned(),
                target: target.clone(),
                passed: Some(false),
                words: "99 % of the flushes took at most 30 ms; etcd asks for less than 10 ms"
                    .to_owned(),
                figures: Vec::new(),
            }),
            ResultLine::NotRun(NotRun {
                name: "RWF_DSYNC".to_owned(),
                target: target.clone(),
                why: "not available here: too old".to_owned(),
            }),
            ResultLine::Verdict(Claim {
                target,
                id: "SLOW_FLUSH".to_owned(),
                grade: "ok".to_owned(),
                words: "Durability at the speed of a hard disk: ".to_owned()
                    + &"many words ".repeat(8)
                    + "and an end.",
            }),
            ResultLine::Summary(summary),
        ]
    }

    const REPORT: &str = r"/srv/\x1b[1mdb

Lies on
  file system  ext4  at: /srv, options: rw,relatime
  disk         vda   model: a model with a long name of many words,
                     model: a model with a long name of many words,
                     model: a model with a long name of many words

Ways to make a write durable
              per second  p50 us   p99 us  max us  KiB each  flushes each  reached the device
  fsync             46.0  21,739  217,390  12,346      4.00          1.00  data and a flush
  write only     612,345    1.63     16.3  12,346         ?             ?  not known: no counters

Commits per flush, commits/s: so many writes, then fdatasync
    commits per flush  commits/s       95 % sure  flushes each
                    1       46.0    23.0 to 46.0          1.00
                   64      2,944  1,472 to 2,944          0.02  ##############################

Databases
  etcd, FAILED: 99 % of the flushes took at most 30 ms; etcd asks for less than 10 ms

Not run
  RWF_DSYNC: not available here: too old

Verdict
  SLOW_FLUSH (ok): Durability at the speed of a hard disk: many words many words many words many
  words many words many words many words many words and an end.
";

    #[test]
    fn a_report() {
        assert_eq!(text(&lines()), REPORT);
    }

    #[test]
    fn few_writes_have_no_percentile() {
        let mut few = lines();
        for line in &mut few {
            if let ResultLine::Method(method) = line {
                method.count = if method.name == "fsync" { 99 } else { 100 };
            }
        }
        let report = text(&few);
        let row = |name: &str| report.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(!row("fsync ").contains("217,390"), "{report}");
        assert!(row("write only").contains("16.3"), "{report}");
        assert!(report.contains("less than 100 writes have no p99"), "{report}");
    }

    #[test]
    fn verdicts_alone_name_their_target() {
        let reported = verdicts(&lines());
        assert!(
            reported.starts_with("/srv/\\x1b[1mdb\n  SLOW_FLUSH (ok): Durability"),
            "{reported}"
        );
        assert_eq!(reported.lines().count(), 3, "{reported}");
    }

    #[test]
    fn an_interrupted_run_is_marked() {
        let mut cut = lines();
        cut.pop();
        assert!(text(&cut).ends_with("the results above are all that it measured.\n"));
        assert_eq!(text(&[]), "", "and where nothing was measured, the error says all");
    }

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in
            [(0.0, "0.00"), (1.634, "1.63"), (9.996, "10.0"), (99.96, "100"), (21_739.4, "21,739")]
        {
            assert_eq!(figure(value), text);
        }
    }
}
