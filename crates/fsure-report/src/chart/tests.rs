//! All charts of odd and of hostile results: well-formed, on the paper, and
//! nothing in them but numbers and text.

use super::*;
use fsure_measure::results::{
    AreaLine, AreaPoint, Curve, MethodLine, Point, RandomLine, Rung, Series, SustainedEnd,
    SustainedLine,
};

const HOSTILE: &str = "<b>&\"'\u{202e}\u{1b}[31m</text><script>";

fn rung(name: &str, low: f64, median: f64, high: f64) -> Rung {
    Rung {
        name: name.to_owned(),
        target: "/srv".to_owned(),
        unit: "MiB/s".to_owned(),
        median,
        low,
        high,
        runs: 3,
        measured: String::new(),
        samples: vec![low, median, high],
        warm_up: Vec::new(),
        outliers: vec![0, 99],
        amount: 1,
        cpu_s_per_gib: None,
        device_read_bytes: None,
        device_written_bytes: None,
        device_flushes: None,
    }
}

fn cache_charts(name: &str, value: f64) -> [Chart; 4] {
    let rate = RateBar { median: value, low: value / 2.0, high: value * 1.5 };
    let loss = name.to_owned();
    let pair = RatePair { label: name.to_owned(), potential: rate, actual: rate, loss };
    let points = vec![(0.0, value, None), (value, 3.0, Some(u64::MAX))];
    let course = CacheCourse { name: name.to_owned(), points, full_at_s: Some(value) };
    [
        potential_and_actual(name, &[pair]),
        potential_and_actual(name, &[]),
        cache_course(name, &[course.clone(), course]),
        cache_course(name, &[]),
    ]
}

fn charts(name: &str, value: f64) -> Vec<Chart> {
    let rungs = [rung(name, value / 2.0, value, value * 1.5), rung("b", 1.0, 2.0, 3.0)];
    let rungs: Vec<_> = rungs.iter().collect();
    let text = name.to_owned();
    let points = vec![(0.0, value), (1.0, 3.0)];
    let series = Series {
        name: text.clone(),
        target: text.clone(),
        measured: text.clone(),
        points,
        bytes: 1,
        cache_bytes: 1,
        mib_per_s: value,
        cpu_s_per_gib: 1.0,
        eviction: None,
    };
    let method = MethodLine {
        name: text.clone(),
        target: text.clone(),
        ops: value,
        p50_us: value,
        p99_us: value,
        max_us: value,
        p10_us: value,
        p90_us: value,
        count: 1,
        device_kib_per_op: None,
        flushes_per_op: None,
        reached: text.clone(),
        histogram: vec![(value, 5), (7.0, 1)],
        turns_us: vec![value],
    };
    let point = Point { x: value, y: value, low: 0.0, high: value, flushes_per_op: None };
    let curve_ = Curve {
        name: text.clone(),
        target: text.clone(),
        x: text.clone(),
        y: text.clone(),
        points: vec![point],
        measured: text.clone(),
    };
    let bar = Bar { interval: Some((0.0, value)), ..Bar::new(text.clone(), value) };
    let mark = Mark { label: text.clone(), value: 3.0 };
    let item = TreemapItem { path: text.clone(), weight: value as u64, class: 0 };
    let item_2 = TreemapItem { path: format!("{text}/a"), weight: 7, class: 0 };
    let class = TreemapClass { name: "c", style: "bad" };
    let moment = Moment { at_s: value as i64, lane: 0, is_bad: true };
    let damage = DamageMap::of(value as u64, &[[5, 9 << 20]], &[[0, 1]]).unwrap();
    let amount = Amount { label: text.clone(), value: value as u64, words: text.clone() };
    vec![
        ladder(name, &rungs),
        ladder(name, &[]),
        throughput(name, &[&series]),
        throughput(name, &[]),
        latency(name, &[&method], &mark),
        curve(name, &curve_),
        amounts(name, &[amount]),
        comparison(name, &[bar.clone(), bar], &[mark], &|value| figure(value)),
        comparison(name, &[], &[], &|value| figure(value)),
        treemap(name, &[item, item_2], &[class], &|weight| weight.to_string()),
        treemap(name, &[], &[class], &|weight| weight.to_string()),
        timeline(name, &[name], &[moment], &|second| second.to_string()),
        timeline(name, &[name], &[], &|second| second.to_string()),
        block_map(name, &damage),
    ]
    .into_iter()
    .chain(cache_charts(name, value))
    .chain(request_charts(name, value))
    .collect()
}

fn request_charts(name: &str, value: f64) -> [Chart; 4] {
    let (random, sustained_, area_) = requests_of(name, value);
    [
        requests(name, &[&random]),
        requests(name, &[]),
        sustained(name, &sustained_),
        area(name, &area_),
    ]
}

/// A line of each experiment with requests.
fn requests_of(name: &str, value: f64) -> (RandomLine, SustainedLine, AreaLine) {
    let text = name.to_owned();
    let random = RandomLine {
        name: text.clone(),
        target: text.clone(),
        queue_depth: 32,
        block_bytes: 4096,
        iops: value,
        low: value / 2.0,
        high: value * 1.5,
        mib_per_s: value,
        p50_us: value,
        p99_us: value,
        p999_us: value,
        max_us: value,
        count: 1,
        samples: vec![value],
        warm_up: Vec::new(),
        histogram: Vec::new(),
        device_read_bytes: None,
        device_written_bytes: None,
        measured: text.clone(),
    };
    let sustained = SustainedLine {
        name: text.clone(),
        target: text.clone(),
        points: vec![(1.0, value), (2.0, 3.0)],
        bytes: value as u64,
        mib_per_s: value,
        before_mib_s: value,
        after_mib_s: Some(3.0),
        fast_cache_bytes: Some(value as u64),
        drop_s: Some(value),
        slowest_mib_s: 3.0,
        end: SustainedEnd::Drop,
        device_written_bytes: None,
        measured: text.clone(),
    };
    let point = |at_bytes, rate| AreaPoint { at_bytes, mib_per_s: rate, low: rate, high: rate };
    let area = AreaLine {
        name: text.clone(),
        target: text.clone(),
        device: text.clone(),
        device_bytes: value as u64,
        place_bytes: 1,
        passes: 1,
        points: vec![point(0, Some(value)), point(5, None), point(u64::MAX, Some(7.0))],
        median_mib_s: value,
        slowest_mib_s: value,
        fastest_mib_s: value,
        first_tenth_mib_s: value,
        last_tenth_mib_s: value,
        unreadable: 1,
        device_read_bytes: None,
        measured: text,
    };
    (random, sustained, area)
}

/// The text of a chart, once a parser has found it well-formed.
fn text_of(svg: &str) -> String {
    let mut reader = quick_xml::Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let mut names = Vec::new();
    let mut text = String::new();
    loop {
        match reader.read_event().expect("well-formed") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag) => {
                names.push(tag.name().as_ref().to_owned());
            }
            quick_xml::events::Event::Text(part) => text += &part,
            quick_xml::events::Event::GeneralRef(part) => {
                text += &format!("&{};", &*part);
            }
            _ => {}
        }
    }
    let known = ["svg", "title", "desc", "style", "text", "line", "rect", "path", "circle", "g"];
    assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
    text
}

#[test]
fn a_name_stays_text() {
    for chart in charts(HOSTILE, 5.0) {
        for svg in [chart.alone(), chart.inline("c1")] {
            let text = text_of(&svg);
            assert!(text.contains("&lt;b&gt;&amp;&quot;&#x27;\\u{202e}\\x1b[31m"), "{text}");
            assert!(!svg.contains('\u{202e}') && !svg.contains('\u{1b}'));
        }
    }
}

#[test]
fn no_value_leaves_the_paper_or_is_no_number() {
    for value in [0.0, 1e-300, 1.0, 1e300, f64::MAX, f64::NAN, f64::INFINITY, -1.0] {
        for chart in charts("n", value) {
            let svg = chart.alone();
            text_of(&svg);
            for word in ["NaN", "inf\"", "\"inf", " inf", "Minf"] {
                assert!(!svg.contains(word), "{word} for {value}: {svg}");
            }
        }
    }
}

/// The number of an attribute.
fn attribute(line: &str, name: &str) -> f64 {
    let value = line.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {line}"))
}

#[test]
fn the_length_of_a_bar_is_its_figure_however_far_apart_they_are() {
    let rungs = [rung("a", 8e4, 8e4, 8e4), rung("b", 2e4, 2e4, 2e4), rung("c", 1e3, 1e3, 1e3)];
    let rungs: Vec<_> = rungs.iter().collect();
    let chart = ladder("t", &rungs).alone();
    let bars = chart.lines().filter(|line| line.starts_with("<rect class=\"bar\""));
    let lengths: Vec<_> = bars.map(|line| attribute(line, "width")).collect();
    let [longest, quarter, least] = lengths[..] else { panic!("{lengths:?}") };
    assert!((longest / quarter - 4.0).abs() < 0.1 && longest / least > 60.0, "{lengths:?}");
    assert!(chart.contains(">0</text>") && !chart.contains("logarithmic"), "{chart}");
}

#[test]
fn throughput_and_time_run_evenly_from_zero() {
    let points = vec![(0.0, 1000.0), (1.0, 500.0), (100.0, 1.0)];
    let text = String::from("t");
    let series = Series {
        name: text.clone(),
        target: text.clone(),
        measured: text,
        points,
        bytes: 1,
        cache_bytes: 1,
        mib_per_s: 1.0,
        cpu_s_per_gib: 1.0,
        eviction: None,
    };
    let chart = throughput("t", &[&series]).alone();
    let path = chart.lines().find(|line| line.contains("class=\"line ink0\"")).expect("a line");
    let path = path.split(" d=\"M").nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
    let places: Vec<(f64, f64)> = path
        .split('L')
        .map(|point| point.split_once(' ').expect("two numbers"))
        .map(|(x, y)| (x.parse().expect("a number"), y.parse().expect("a number")))
        .collect();
    let [(x0, y0), (x1, y1), (x2, y2)] = places[..] else { panic!("{places:?}") };
    assert!(((x1 - x0) * 100.0 - (x2 - x0)).abs() < 10.0, "time: {places:?}");
    assert!(((y1 - y0) * 999.0 / 500.0 - (y2 - y0)).abs() < 0.5, "throughput: {places:?}");
}

#[test]
fn a_rate_runs_evenly_from_zero_and_an_unread_place_is_a_cross() {
    let (_, sustained_, area_) = requests_of("t", 400.0);
    let chart = sustained("t", &sustained_).alone();
    assert!(chart.contains("MiB/s over seconds") && chart.contains(">0</text>"), "{chart}");
    assert_eq!(chart.matches("class=\"mark\"").count(), 1, "the drop");
    let none = SustainedLine { drop_s: None, ..sustained_ };
    assert_eq!(sustained("t", &none).alone().matches("class=\"mark\"").count(), 0);
    let chart = area("t", &area_).alone();
    assert_eq!(chart.matches("class=\"limit\"").count(), 1, "{chart}");
    assert_eq!(chart.matches("class=\"range\"").count(), 2, "{chart}");
    assert!(chart.contains("could not be read"), "{chart}");
}

#[test]
fn overlapping_intervals_share_their_ranks() {
    let rungs = [rung("a", 9.0, 10.0, 11.0), rung("b", 7.0, 8.0, 9.5), rung("c", 1.0, 2.0, 3.0)];
    let rungs: Vec<_> = rungs.iter().collect();
    let chart = ladder("t", &rungs).alone();
    assert_eq!(chart.matches("class=\"tie\"").count(), 1);
    assert_eq!(text_of(&chart).matches("1-2").count(), 2);
}

#[test]
fn a_rank_of_two_digits_is_on_the_paper() {
    let rungs: Vec<_> = (1..=12).map(|n| rung("a", 100.0 - f64::from(n), 100.0, 101.0)).collect();
    let chart = ladder("t", &rungs.iter().collect::<Vec<_>>()).alone();
    let rank = chart.lines().find(|line| line.contains(">1-12<")).expect("a rank");
    let x = rank.split('"').nth(1).and_then(|x| x.parse::<f64>().ok()).expect("its place");
    assert!(x >= "1-12".len() as f64 * svg::CHARACTER, "{rank}");
    let few = ladder("t", &[&rungs[0]]).alone();
    assert!(few.contains("x=\"30.0\""), "one digit stays where it was");
}
