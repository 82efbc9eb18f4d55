//! `speed` and `flush`.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::NO_FIGURE;
use super::stored_lines::{by, conclude, lines};
use super::{Draft, measured_tree, requests};
use crate::anonymous::LEFT_OUT;
use crate::chart::{
    CurveLine, curves as draw_curves, figure, ladder, latency, microseconds, sorted, throughput,
};
use crate::disk_factor::{self, factors};
use crate::interval_words;
use crate::rank::{MEANING, ranks};
use fsure_core::{count, units};
use fsure_measure::DATABASE_FLUSHES;
use fsure_measure::results::{
    Claim, Curve, LayerLine, Limit, Machine, Measurement, MethodLine, Noise, NotRun, Profile,
    ResultLine, Rung, Series, StoredResult,
};

/// The target of rungs that measure no folder.
const MEMORY: &str = "memory";

/// End of the names of the curves of throughput by the size of a request.
const BY_SIZE: &str = " by request size";

/// The grade of a flush of which nothing shows that it reaches a drive.
const NOT_MEASURED: &str = "not measured";

/// Value of a fact that a drive does not give.
const NOT_TOLD: &str = "not told";

/// The file system of a drive that 'fsure crash --front folder' serves.
const SIMULATED: &str = "fuse.files";

/// The section of a result.
pub(super) fn section(stored: &StoredResult, charts: &mut Charts) -> Section {
    let header = &stored.header;
    let command = match header.kind {
        Measurement::Speed if measured_tree::is_tree(stored) => "speed --tree".to_owned(),
        Measurement::Speed => match header.setup.iter().find(|(name, _)| name == "io") {
            Some((_, experiments)) => format!("speed --io {}", experiments.replace(", ", ",")),
            None => "speed".to_owned(),
        },
        Measurement::Flush => "flush".to_owned(),
    };
    let targets: Vec<_> = header.targets.iter().map(|target| target.path.as_str()).collect();
    let mut draft = Draft::new(format!("{command} {}", targets.join(" ")));
    if stored.summary.is_some() {
        draft.verdict(Grade::Plain, "Nothing was measured");
    }
    match header.kind {
        Measurement::Speed if measured_tree::is_tree(stored) => {
            let (grade, sentence) = measured_tree::verdict(stored);
            conclude(&mut draft, stored, grade, sentence);
        }
        Measurement::Speed => judge_speed(&mut draft, stored),
        Measurement::Flush => judge_flush(&mut draft, stored),
    }
    facts(&mut draft, stored);
    draft.part("Verdicts", lines(stored, verdict).map(claim));
    draft.part("Limits", lines(stored, limit).map(|limit| Piece::Text(sentence(limit))));
    draft.part("Profiles of databases", profiles(stored));
    requests::parts(&mut draft, stored, charts);
    measured_tree::parts(&mut draft, stored, charts);
    ladders(&mut draft, stored, charts);
    draft.part("Throughput over time", throughputs(stored, charts));
    methods(&mut draft, stored, charts);
    curves(&mut draft, stored, charts);
    draft.part("What is below the path", stack(stored));
    draft.part("Not run", not_run(stored));
    let notes = lines(stored, |line| match line {
        ResultLine::Warning { words } => Some(words),
        _ => None,
    });
    draft.part("Notes", notes.map(|words| Piece::Note(Grade::Warn, words.clone())));
    draft.part("Machine", [Piece::Facts(machine(stored))]);
    draft.done()
}

/// Returns true if nothing shows that the flushes of a result reach a drive.
fn is_unproved(stored: &StoredResult) -> bool {
    lines(stored, verdict).any(|claim| claim.grade == NOT_MEASURED)
}

fn verdict(line: &ResultLine) -> Option<&Claim> {
    if let ResultLine::Verdict(claim) = line { Some(claim) } else { None }
}

fn limit(line: &ResultLine) -> Option<&Limit> {
    if let ResultLine::Limit(limit) = line { Some(limit) } else { None }
}

/// A step of the ladder.
fn rung(line: &ResultLine) -> Option<&Rung> {
    if let ResultLine::Rung(rung) = line { Some(rung) } else { None }
}

/// A way to make a write durable.
fn method(line: &ResultLine) -> Option<&MethodLine> {
    if let ResultLine::Method(method) = line { Some(method) } else { None }
}

fn series(line: &ResultLine) -> Option<&Series> {
    if let ResultLine::Series(series) = line { Some(series) } else { None }
}

fn curve_line(line: &ResultLine) -> Option<&Curve> {
    if let ResultLine::Curve(curve) = line { Some(curve) } else { None }
}

fn profile(line: &ResultLine) -> Option<&Profile> {
    if let ResultLine::Profile(profile) = line { Some(profile) } else { None }
}

fn not_run_line(line: &ResultLine) -> Option<&NotRun> {
    if let ResultLine::NotRun(not_run) = line { Some(not_run) } else { None }
}

fn layer(line: &ResultLine) -> Option<&LayerLine> {
    if let ResultLine::Layer(layer) = line { Some(layer) } else { None }
}

/// The measured device in a few words, as far as the lines say.
fn device(stored: &StoredResult) -> Option<String> {
    let layers: Vec<_> = lines(stored, layer).collect();
    let disk = layers.iter().rev().find(|layer| layer.layer != "file system")?;
    let fact = |name: &str| {
        let found = disk.facts.iter().find(|(fact, _)| fact == name);
        found.map(|(_, value)| value.clone()).filter(|value| value != NOT_TOLD)
    };
    let words = [fact("vendor"), fact("model")].into_iter().flatten().collect::<Vec<_>>();
    let words = if words.is_empty() { disk.name.clone() } else { words.join(" ") };
    Some(match fact("transport") {
        Some(transport) => format!("{words} ({transport})"),
        None => words,
    })
}

/// The flush that databases use, if it was measured.
fn database_flush(stored: &StoredResult) -> Option<&MethodLine> {
    let of = |name: &&str| lines(stored, method).find(|method| method.name == *name);
    DATABASE_FLUSHES.iter().find_map(of)
}

fn judge_speed(draft: &mut Draft, stored: &StoredResult) {
    let of = |name: &str| lines(stored, rung).find(|rung| rung.name == name);
    let rate = |rung: &Rung| format!("{} {}", figure(rung.median), rung.unit);
    let read = of("disk read direct").or_else(|| of("disk read uncached"));
    let write = of("disk write durable");
    let parts = [
        read.map(|rung| format!("reads {}", rate(rung))),
        write.map(|rung| format!("writes {} durably", rate(rung))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if let Some(rung) = read.or(write).or_else(|| lines(stored, rung).next()) {
        draft.key(rate(rung), format!("{}, median", rung.name));
        let sentence = match parts.is_empty() {
            true => format!("{}: {}", rung.name, rate(rung)),
            false => format!("The disk {}", parts.join(" and ")),
        };
        conclude(draft, stored, Grade::Plain, sentence);
    }
    for limit in lines(stored, limit) {
        draft.note(sentence(limit));
    }
    requests::judge(draft, stored);
}

fn judge_flush(draft: &mut Draft, stored: &StoredResult) {
    let claims: Vec<_> = lines(stored, verdict).collect();
    let grade = claims.iter().map(|claim| grade(&claim.grade)).max().unwrap_or_default();
    if let Some(method) = database_flush(stored) {
        let name = &method.name;
        let [median, slowest] = [method.p50_us, method.max_us].map(microseconds);
        let tail = match method.known_p99_us().map(microseconds) {
            Some(p99) => {
                draft.key(p99.clone(), format!("99 % of {name} take less"));
                format!("99 % take less than {p99}")
            }
            None => {
                let count = count(method.count);
                draft.key(slowest.clone(), format!("the slowest of {count} {name}"));
                format!("the slowest of {count} took {slowest}")
            }
        };
        let takes = format!("takes {median}; {tail}");
        let sentence = match is_unproved(stored) {
            true => format!("It was not measured if {name} reaches a drive; it {takes}"),
            false => format!("A durable write with {name} {takes}"),
        };
        conclude(draft, stored, grade, sentence);
    }
    for claim in claims {
        draft.note(format!("{}: {}", claim.title(), claim.words));
    }
}

fn grade(word: &str) -> Grade {
    match word {
        "ok" => Grade::Good,
        "suspicious" | NOT_MEASURED => Grade::Warn,
        "bad" => Grade::Bad,
        _ => Grade::Plain,
    }
}

fn claim(claim: &Claim) -> Piece {
    let text = format!("{}, {}: {}", claim.title(), claim.target, claim.words);
    Piece::Note(grade(&claim.grade), text)
}

fn facts(draft: &mut Draft, stored: &StoredResult) {
    let header = &stored.header;
    draft.fact("Asked", format!("fsure {}", draft.0.title));
    draft.fact("Date", format!("{} UTC", super::date(&header.started)));
    draft.fact("Host", &header.machine.host);
    draft.fact("Program", &header.program);
    if let Some(device) = device(stored) {
        draft.fact("Device", device);
    }
    if let Some(summary) = &stored.summary {
        draft.fact("Duration", format!("{} s", figure(summary.seconds)));
        draft.plain_exit_code(summary.exit_code);
    }
    draft.0.facts.retain(|(_, value)| !value.is_empty() && value != LEFT_OUT);
}

/// Rungs of a unit that are in one picture, and its title: those of a folder, with those of
/// memory if they have the unit. Memory without a folder has a picture of its own.
fn pictures(stored: &StoredResult) -> Vec<(String, Vec<&Rung>)> {
    let (memory, folders): (Vec<&Rung>, Vec<&Rung>) =
        lines(stored, rung).partition(|rung| rung.target == MEMORY);
    let mut pictures = Vec::new();
    for of_target in by(folders.iter().copied(), |rung| &rung.target) {
        for of_unit in by(of_target.into_iter(), |rung| &rung.unit) {
            let (target, unit) = (&of_unit[0].target, &of_unit[0].unit);
            let of_memory = memory.iter().copied().filter(|rung| rung.unit == *unit);
            let of_memory: Vec<_> = of_memory.collect();
            let beside = if of_memory.is_empty() { "" } else { "memory and " };
            let title = format!("Ladder, {unit}: {beside}{target}");
            pictures.push((title, of_memory.into_iter().chain(of_unit).collect()));
        }
    }
    let has_picture = |unit: &str| folders.iter().any(|rung| rung.unit == unit);
    for of_unit in by(memory.iter().copied(), |rung| &rung.unit) {
        let unit = &of_unit[0].unit;
        if !has_picture(unit) {
            pictures.push((format!("Ladder, {unit}: {MEMORY}"), of_unit));
        }
    }
    pictures
}

fn ladders(draft: &mut Draft, stored: &StoredResult, charts: &mut Charts) {
    for (title, rungs) in pictures(stored) {
        let unit = &rungs[0].unit;
        let asked =
            format!("{} {unit}, longer is better{}", question(&rungs), folder(stored, &rungs));
        let chart = charts.add(&ladder(&asked, &rungs), "");
        let sorted = sorted(&rungs);
        let (ranks, factors) = (ranks(&sorted), factors(&sorted));
        let has_factors = factors.iter().any(Option::is_some);
        let median = format!("#Median, {unit}");
        let times = if has_factors { "#x disk" } else { "" };
        let interval = interval_words::heading(rungs.iter().map(|rung| rung.runs));
        let interval = format!("#{interval}");
        let columns = ["#Rank", "Rung", &median, times, &interval, "#Runs", "#CPU s/GiB", "Device"];
        let columns: Vec<_> = columns.into_iter().filter(|column| !column.is_empty()).collect();
        let mut table = Table::new(&title, &columns);
        for ((rung, rank), factor) in sorted.iter().zip(&ranks).zip(factors) {
            let mut row = rung_row(rung, &rank.to_string());
            if has_factors {
                let words = factor.map_or_else(|| NO_FIGURE.to_owned(), disk_factor::words);
                row.insert(3, Cell::number(words));
            }
            table.push(row);
        }
        let compared = has_factors.then(|| Piece::Text(disk_factor::MEANING.join(" ")));
        let is_ranked = ranks.iter().any(|rank| rank.is_shared());
        let meaning = is_ranked.then(|| Piece::Text(MEANING.join(" ")));
        let pieces = [chart, Piece::Table(table)].into_iter().chain(compared).chain(meaning);
        draft.part(&title, pieces);
    }
}

/// The question that the rungs of a picture answer.
fn question(rungs: &[&Rung]) -> &'static str {
    let all = |words: &str| rungs.iter().all(|rung| rung.name.starts_with(words));
    let of_memory = rungs.iter().filter(|rung| rung.target == MEMORY).count();
    match () {
        () if all("pv") => "How fast does pv write zeros into each place?",
        () if all("ram disk") => "How fast is a RAM disk?",
        () if rungs.iter().all(|rung| is_of_either_disk(rung)) && of_memory > 0 => {
            "How fast is a RAM disk, beside the disk?"
        }
        () if of_memory > 0 && of_memory < rungs.len() => {
            "How fast is each step from memory to the disk?"
        }
        () => "How fast is each way to write or read?",
    }
}

/// Returns true for a rung of a RAM disk or of the disk, with nothing between.
fn is_of_either_disk(rung: &Rung) -> bool {
    ["ram disk ", "disk "].iter().any(|words| rung.name.starts_with(words))
}

/// The folder that the rungs of a picture measure, in brackets, if the result has several.
fn folder(stored: &StoredResult, rungs: &[&Rung]) -> String {
    let own = rungs.iter().map(|rung| &rung.target).find(|target| *target != MEMORY);
    match own {
        Some(folder) if stored.header.targets.len() > 1 => format!(" ({folder})"),
        _ => String::new(),
    }
}

fn rung_row(rung: &Rung, rank: &str) -> Vec<Cell> {
    let runs = match rung.outliers.len() {
        0 => rung.runs.to_string(),
        far => format!("{} ({far} far off)", rung.runs),
    };
    // The counters are sums over the runs.
    let each = |bytes: Option<u64>| Some(units::size(bytes? / rung.runs.max(1) as u64));
    let device = [
        each(rung.device_read_bytes).map(|bytes| format!("read {bytes}")),
        each(rung.device_written_bytes).map(|bytes| format!("written {bytes}")),
        rung.device_flushes.map(|flushes| {
            let each = flushes as f64 / rung.runs.max(1) as f64;
            format!("{} flushes", figure(each))
        }),
    ];
    let device: Vec<_> = device.into_iter().flatten().collect();
    let device = match device.is_empty() {
        true => NO_FIGURE.to_owned(),
        false => format!("{} in a run", device.join(", ")),
    };
    vec![
        Cell::number(rank),
        Cell::head(&rung.name).with_small(&rung.measured),
        Cell::number(figure(rung.median)),
        Cell::number(format!("{} – {}", figure(rung.low), figure(rung.high))),
        Cell::number(runs),
        Cell::number(optional(rung.cpu_s_per_gib)),
        Cell::text(device),
    ]
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NO_FIGURE.to_owned(), figure)
}

fn throughputs(stored: &StoredResult, charts: &mut Charts) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut table = Table::new("Series", &["Way", "#MiB/s", "Read", "#CPU s/GiB", "Page cache"]);
    for of_target in by(lines(stored, series), |series| &series.target) {
        let title = format!("Throughput over time: {}", of_target[0].target);
        pieces.push(charts.add(&throughput(&title, &of_target), ""));
        of_target.iter().for_each(|series| table.push(series_row(series)));
    }
    pieces.extend(table.unless_empty());
    pieces
}

fn series_row(series: &Series) -> Vec<Cell> {
    let eviction = series.eviction.map_or_else(
        || NO_FIGURE.to_owned(),
        |it| {
            let gone = it.before_bytes.saturating_sub(it.after_bytes);
            let [gone, before, left] = [gone, it.before_bytes, it.left_bytes].map(units::size);
            format!("{gone} of {before} of others thrown out; {left} of its own left in memory")
        },
    );
    let [bytes, cache] = [series.bytes, series.cache_bytes].map(units::size);
    vec![
        Cell::head(&series.name).with_small(&series.measured),
        Cell::number(figure(series.mib_per_s)),
        Cell::text(format!("{bytes} with {cache} of cache")),
        Cell::number(figure(series.cpu_s_per_gib)),
        Cell::text(eviction),
    ]
}

fn methods(draft: &mut Draft, stored: &StoredResult, charts: &mut Charts) {
    for of_target in by(lines(stored, method), |method| &method.target) {
        let title = format!("Flush latency: {}", of_target[0].target);
        let columns = [
            "Method",
            "#op/s",
            "#Median",
            "#p99",
            "#Slowest",
            "#Device KiB/op",
            "#Flushes/op",
            "What reached the device",
        ];
        let mut table = Table::new(&title, &columns);
        for method in &of_target {
            let mut row = vec![Cell::head(&method.name), Cell::number(figure(method.ops))];
            let times = [Some(method.p50_us), method.known_p99_us(), Some(method.max_us)];
            row.extend(times.map(|time| match time {
                Some(time) => Cell::number(microseconds(time)).with_key(time),
                None => Cell::number(NO_FIGURE),
            }));
            let device = [method.device_kib_per_op, method.flushes_per_op];
            row.extend(device.map(|value| Cell::number(optional(value))));
            row.push(Cell::text(&method.reached));
            table.push(row);
        }
        let target = &of_target[0].target;
        let drive = drive(stored, target);
        let asked =
            format!("How long does one write take, by the call that makes it durable? ({drive})");
        let shown: Vec<_> = of_target.iter().map(|method| shown(stored, method)).collect();
        let shown: Vec<_> = shown.iter().collect();
        let conditions = [verdicts(stored, target), write_size(stored)].concat();
        let chart = latency(&asked, &shown, &super::marks::etcd(), conditions.trim());
        let chart = charts.add(&chart, "");
        draft.part(&title, [chart, Piece::Table(table)]);
    }
}

/// Returns the name of a target. Of a drive that fsure simulates, it tells the time of a flush.
fn drive(stored: &StoredResult, target: &str) -> String {
    let own = |layer: &&LayerLine| layer.target == target && layer.name == SIMULATED;
    match lines(stored, layer).find(own) {
        Some(layer) => match flush_time(layer) {
            Some(time) => format!("{target}, simulated: a flush takes {time}"),
            None => format!("{target}, simulated"),
        },
        None => target.to_owned(),
    }
}

/// The time of a flush of a simulated drive, in words.
fn flush_time(layer: &LayerLine) -> Option<String> {
    let (_, source) = layer.facts.iter().find(|(name, _)| name == "mounted from")?;
    let (_, time) = source.rsplit_once(":flush=")?;
    let ms = time.strip_suffix("ms")?.parse::<f64>().ok()?;
    Some(microseconds(ms * 1e3))
}

/// The verdicts on the flushes of a target that are not good, as a sentence; empty without any.
fn verdicts(stored: &StoredResult, target: &str) -> String {
    let own = lines(stored, verdict).filter(|claim| claim.target == target);
    let doubts = own.filter(|claim| grade(&claim.grade) > Grade::Good);
    let titles: Vec<_> = doubts
        .map(|claim| match claim.grade == NOT_MEASURED {
            true => format!("{} (what reached the drive is not proved)", claim.title()),
            false => claim.title(),
        })
        .collect();
    if titles.is_empty() { String::new() } else { format!("Verdict: {}. ", titles.join(", ")) }
}

/// The size of one write, as a sentence; empty if the result does not have it.
fn write_size(stored: &StoredResult) -> String {
    let size = stored.header.setup.iter().find(|(name, _)| name == "size of a write");
    size.map_or(String::new(), |(_, size)| format!("One write is of {size}. "))
}

/// Returns a method as the picture names it: FUSE does not pass `syncfs` on to a program.
fn shown(stored: &StoredResult, method: &MethodLine) -> MethodLine {
    let is_fuse =
        |layer: &LayerLine| layer.target == method.target && layer.name.starts_with("fuse.");
    let mut shown = method.clone();
    if shown.name == "syncfs" && lines(stored, layer).any(is_fuse) {
        shown.name += " (on FUSE: no flush)";
    }
    shown
}

fn curves(draft: &mut Draft, stored: &StoredResult, charts: &mut Charts) {
    for together in together(lines(stored, curve_line)) {
        let first = together[0];
        let mut name = first.name.chars();
        let name: String =
            name.next().into_iter().flat_map(char::to_uppercase).chain(name).collect();
        let (title, x_name) = match (together.len(), is_of_commits(first)) {
            (1, _) => (format!("{name}: {}", first.target), first.x.as_str()),
            (_, true) => (format!("Commits: {}", first.target), "commits at the same time"),
            _ => (format!("Reads and writes by request size: {}", first.target), &*first.x),
        };
        let asked = asked(&together, &drive(stored, &first.target));
        let conditions = meaning(&together);
        let lines = together.iter().map(|curve| CurveLine { name: line_name(curve), curve });
        let lines: Vec<_> = lines.collect();
        let chart = draw_curves(&asked, &lines, (x_name, conditions.trim()));
        let measured = if together.len() == 1 { &*first.measured } else { "" };
        let chart = charts.add(&chart, measured);
        draft.part(&title, [chart]);
    }
}

/// Returns true for commits by how many come at the same time.
fn is_of_commits(curve: &Curve) -> bool {
    curve.y == "commits/s"
}

/// The name of a curve beside others in its picture.
fn line_name(curve: &Curve) -> &str {
    match curve.name.as_str() {
        "commits per flush" => "one program, one flush behind all",
        "threads" => "threads, each with a file of its own",
        "group commit" => "threads with one file, which share flushes",
        name => name.split(' ').next().unwrap_or_default(),
    }
}

/// Curves that belong into one picture: reads and writes of one folder by the size of a request,
/// and commits by how many come at the same time.
fn together<'a>(curves: impl Iterator<Item = &'a Curve>) -> Vec<Vec<&'a Curve>> {
    let mut pictures: Vec<Vec<&Curve>> = Vec::new();
    for curve in curves {
        let is_beside = |other: &&Curve| {
            let both = |of: fn(&Curve) -> bool| of(other) && of(curve);
            let are_alike = both(|one| one.name.ends_with(BY_SIZE)) || both(is_of_commits);
            are_alike && other.target == curve.target
        };
        match pictures.last_mut() {
            Some(last) if is_beside(&last[0]) => last.push(curve),
            _ => pictures.push(vec![curve]),
        }
    }
    pictures
}

/// The meaning of the curves of a picture, in sentences: of commits that share a flush also their
/// price. Empty for curves that need none.
fn meaning(curves: &[&Curve]) -> String {
    let Some(line) = curves.first() else { return String::new() };
    if line.name.ends_with(BY_SIZE) {
        let flushes = match curves.iter().any(|line| line.name.starts_with("write")) {
            true => " Nothing is flushed: writes may be in the drive's own cache.",
            false => "",
        };
        return format!(
            "One request at a time, at random places of a file, past the page cache.{flushes}"
        );
    }
    let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else {
        return String::new();
    };
    if line.name != "commits per flush" || line.points.len() < 2 {
        return String::new();
    }
    let [alone, with_others] = [first, last].map(|point| microseconds(point.x / point.y * 1e6));
    let threads = match curves.len() {
        1 => "",
        _ => " Each thread waits for its own commit before it begins the next.",
    };
    format!(
        "Commits share a flush if all are written first and one flush makes all of them durable. \
         The price: none is acknowledged before that flush ends: {alone} for {}, {with_others} \
         for {}.{threads}",
        figure(first.x),
        figure(last.x)
    )
}

/// The question that the curves of a picture answer.
fn asked(curves: &[&Curve], drive: &str) -> String {
    let [line] = curves else {
        let question = match curves.iter().all(|curve| is_of_commits(curve)) {
            true => "How many commits a second, by how many come at the same time?",
            false => "How fast are reads and writes, by the size of a request?",
        };
        return format!("{question} ({drive})");
    };
    let question = match line.name.as_str() {
        "commits per flush" => "How many commits a second, by how many share one flush?",
        "threads" => "How many commits a second, by the threads that flush?",
        "group commit" => "How many commits a second, by the threads that share flushes?",
        "read by request size" => "How fast are reads, by the size of a request?",
        "write by request size" => "How fast are writes, by the size of a request?",
        "flush after dirty bytes" => "How long does a flush take, by the bytes written before?",
        name => return format!("{name}, {} over {}: {}", line.y, line.x, line.target),
    };
    format!("{question} ({drive})")
}

fn profiles(stored: &StoredResult) -> Option<Piece> {
    let item = |profile: &Profile| {
        let passed = match profile.passed {
            Some(true) => "passed",
            Some(false) => "FAILED",
            None => "no mark is published",
        };
        (format!("{}: {passed}", profile.name), format!("({}). {}", profile.target, profile.words))
    };
    let items: Vec<_> = lines(stored, profile).map(item).collect();
    (!items.is_empty()).then_some(Piece::List(items))
}

fn stack(stored: &StoredResult) -> Option<Piece> {
    let item = |layer: &LayerLine| {
        let facts =
            layer.facts.iter().filter(|(_, value)| ![LEFT_OUT, NOT_TOLD].contains(&value.as_str()));
        let facts: Vec<_> = facts.map(|(name, value)| format!("{name} {value}")).collect();
        let name = format!("{} {}", layer.layer, layer.name);
        (name, format!("{}: {}", layer.target, facts.join("; ")))
    };
    let items: Vec<_> = lines(stored, layer).map(item).collect();
    (!items.is_empty()).then_some(Piece::List(items))
}

fn not_run(stored: &StoredResult) -> Option<Piece> {
    let items = lines(stored, not_run_line);
    let items: Vec<_> =
        items.map(|one| (one.name.clone(), format!("({}): {}", one.target, one.why))).collect();
    (!items.is_empty()).then_some(Piece::List(items))
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

fn machine(stored: &StoredResult) -> Vec<(String, String)> {
    let Machine { system, processor, cores, memory_bytes, virtualization, backup_power, .. } =
        &stored.header.machine;
    let facts = [
        ("system", Some(system.clone())),
        ("processor", processor.clone()),
        ("cores", Some(cores.to_string())),
        ("memory", memory_bytes.map(units::size)),
        ("virtual machine", virtualization.clone()),
        ("battery or UPS", backup_power.clone()),
        ("other load", stored.summary.as_ref().and_then(|summary| noise(&summary.noise))),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    facts.chain(stored.header.setup.iter().cloned()).collect()
}

fn noise(noise: &Noise) -> Option<String> {
    let parts = [
        ("load before", noise.load_before, ""),
        ("load after", noise.load_after, ""),
        ("stolen by the hypervisor", noise.steal_percent, " %"),
        ("used by other processes", noise.others_percent, " %"),
    ];
    let parts = parts.into_iter().filter_map(|(name, value, unit)| {
        value.map(|value| format!("{name}: {}{unit}", figure(value)))
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
