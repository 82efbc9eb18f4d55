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
    let pair = RatePair {
        label: name.to_owned(),
        reference: rate,
        actual: Some(rate),
        loss,
        waits: Some(Waits { p99_us: Some(value), max_us: value * 2.0 }),
        runs: 4,
    };
    let points = vec![(0.0, value, None), (value, 3.0, Some(u64::MAX))];
    let course = CacheCourse {
        name: name.to_owned(),
        median_mib_s: value,
        points,
        full_at_s: Some(value),
        memory_bytes: Some(value as u64),
        is_purged: true,
    };
    [
        beside_reference(name, &[pair], name),
        beside_reference(name, &[], name),
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
        latency(name, &[&method], &mark, name),
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
    .chain(story_charts(name, value))
    .chain(cache_charts(name, value))
    .chain(request_charts(name, value))
    .chain(curve_charts(name, value))
    .collect()
}

fn curve_charts(name: &str, value: f64) -> [Chart; 3] {
    let text = name.to_owned();
    let point = Point { x: value, y: value, low: 0.0, high: value, flushes_per_op: None };
    let curve_ = Curve {
        name: text.clone(),
        target: text.clone(),
        x: text.clone(),
        y: text.clone(),
        points: vec![point],
        measured: text,
    };
    let line = CurveLine { name, curve: &curve_ };
    let both = (name, name);
    [curves(name, &[line], both), curves(name, &[line, line, line], both), curves(name, &[], both)]
}

fn story_charts(name: &str, value: f64) -> [Chart; 8] {
    let text = || name.to_owned();
    let cut = |state| CutCell { state, oldest_lost_ms: Some(value), variant: text() };
    let states = [CutState::Lost, CutState::Damaged, CutState::Unknown];
    let few: Vec<_> = states.into_iter().map(cut).collect();
    let many = few.iter().cycle().take(60).cloned().collect();
    let run = |cuts| CutRun {
        label: text(),
        rate: (value, text()),
        oldest_lost: (value, text()),
        cuts,
        outcome: text(),
        filesystem: text(),
        drive: text(),
        flush: text(),
        pause_max: text(),
        has_long_superblock: true,
    };
    let folder = FolderBars {
        path: text(),
        advice: text(),
        memory: text(),
        waited: (value, text()),
        moved: (value, value, text()),
    };
    let row = WayRow { command: text(), way: text(), class: "first" };
    let measure = Measure { median: value, range: Some((value, value)), words: text() };
    let scale = WayScale { full: None, tick: figure };
    let panel = WayPanel { head: ["t", "t"], scale, bars: vec![Some(measure)] };
    let ratio = RatioBar { ratio: value, interval: Some((0.5, value)) };
    let group = RatioGroup { name: text(), ratios: vec![Ok(ratio), Err("killed"), Ok(ratio)] };
    let class = |class| RatioClass { class, name, meaning: name };
    let classes = ["first", "second", "third"].map(class);
    [
        cuts(name, &[run(few), run(many)]),
        cuts(name, &[]),
        folders(name, &[folder], name, name),
        folders(name, &[], name, name),
        ways(name, &[row], &[panel.clone(), panel], (name, name)),
        ways(name, &[], &[], (name, name)),
        ratios(name, &[group.clone(), group], &classes, (name, name)),
        ratios(name, &[], &classes, (name, name)),
    ]
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

/// The room that a text of a chart takes.
#[derive(Debug)]
pub(super) struct TextPlace {
    words: String,
    left: f64,
    pub(super) right: f64,
    pub(super) y: f64,
}

/// The texts of a chart whose characters have this mean width.
pub(super) fn text_places(body: &str, character: f64) -> Vec<TextPlace> {
    let place = |line: &str| {
        let (x, y) = (attribute(line, "x"), attribute(line, "y"));
        let class = line.split("class=\"").nth(1).and_then(|rest| rest.split('"').next());
        let has = |name: &str| class.is_some_and(|class| class.split(' ').any(|one| one == name));
        let words = line.split('>').nth(1).and_then(|rest| rest.split('<').next()).expect("text");
        let words = words.replace("&#x27;", "'").replace("&quot;", "\"").replace("&amp;", "&");
        let width = words.chars().count() as f64 * character;
        let left = match () {
            () if has("end") => x - width,
            () if has("mid") => x - width / 2.0,
            () => x,
        };
        TextPlace { words, left, right: left + width, y }
    };
    body.lines().filter(|line| line.starts_with("<text")).map(place).collect()
}

/// Asserts that no two texts of a chart take the same room.
pub(super) fn assert_no_overlap(body: &str, character: f64) {
    const HEIGHT: f64 = 13.0;
    let places = text_places(body, character);
    for (number, one) in places.iter().enumerate() {
        for other in &places[number + 1..] {
            let is_beside = one.right <= other.left || other.right <= one.left;
            let is_above = (one.y - other.y).abs() >= HEIGHT;
            assert!(is_beside || is_above, "'{}' is in '{}'", one.words, other.words);
        }
    }
}

/// Asserts that every text of a narrow chart is on its paper, and by itself.
pub(super) fn assert_readable(chart: &Chart) {
    assert!(chart.width <= svg::COLUMN, "{}", chart.title);
    for text in text_places(&chart.body, svg::COLUMN_CHARACTER) {
        let is_inside = text.left >= 0.0 && text.right <= svg::COLUMN + 1.0;
        let is_above_end = text.y > 0.0 && text.y <= chart.height;
        assert!(is_inside && is_above_end, "{}: {text:?}", chart.title);
    }
    assert_no_overlap(&chart.body, svg::COLUMN_CHARACTER);
}

/// The lengths of the bars of a class.
pub(super) fn lengths(body: &str, class: &str) -> Vec<f64> {
    let bars = body.lines().filter(|line| line.starts_with(&format!("<rect class=\"{class}\"")));
    let lengths = bars.map(|line| (attribute(line, "width"), attribute(line, "height")));
    // The key of a chart has one of 11 px.
    lengths.filter(|(_, height)| *height != 11.0).map(|(width, _)| width).collect()
}

#[test]
fn the_length_of_a_bar_is_its_figure_however_far_apart_they_are() {
    let rungs = [rung("a", 8e4, 8e4, 8e4), rung("b", 2e4, 2e4, 2e4), rung("c", 1e3, 1e3, 1e3)];
    let rungs: Vec<_> = rungs.iter().collect();
    let chart = ladder("t", &rungs).alone();
    let lengths = lengths(&chart, "second");
    let [longest, quarter, least] = lengths[..] else { panic!("{lengths:?}") };
    assert!((longest / quarter - 4.0).abs() < 0.1 && longest / least > 60.0, "{lengths:?}");
    assert!(chart.contains(">0</text>") && !chart.contains("logarithmic"), "{chart}");
    assert!(!chart.contains("a scale of their own"), "all are on one scale");
}

/// The founders' rungs, with figures as they are on a machine of two cores.
fn founders_ladder() -> Chart {
    let of = |name: &str, target: &str, median: f64| {
        let rung = rung(name, median * 0.97, median, median * 1.03);
        Rung { target: target.to_owned(), ..rung }
    };
    let rungs = [
        of("void", "memory", 105_277.0),
        of("disk read cached", "/srv", 28_553.0),
        of("hash blake3 all cores", "memory", 14_695.0),
        of("disk write cached", "/srv", 4_706.0),
        of("disk read direct", "/srv", 3_509.0),
        of("ram disk first write", "memory", 2_966.0),
        of("bind", "memory", 2_931.0),
        of("verify", "/srv", 2_847.0),
        of("disk write durable", "/srv", 1_884.0),
        of("fuse", "memory", 1_213.0),
    ];
    ladder("How fast is each step?", &rungs.iter().collect::<Vec<_>>())
}

#[test]
fn bars_that_would_take_the_axis_from_the_others_have_a_scale_of_their_own() {
    let chart = founders_ladder();
    let (memory, disk) = (lengths(&chart.body, "bar"), lengths(&chart.body, "second"));
    // Of what writes, void has one scale, and the others another; what reads stands below.
    let [void, ram_disk, bind, fuse, hash] = memory[..] else { panic!("{memory:?}") };
    let [write, durable, read, ..] = disk[..] else { panic!("{disk:?}") };
    assert!((ram_disk / bind - 2_966.0 / 2_931.0).abs() < 0.01, "{memory:?}");
    assert!((write / durable - 4_706.0 / 1_884.0).abs() < 0.01, "{disk:?}");
    assert!(bind / fuse > 2.3 && write > void * 0.8, "{memory:?} {disk:?}");
    assert!((read / hash - 28_553.0 / 14_695.0).abs() < 0.01, "{memory:?} {disk:?}");
    let body = &chart.body;
    let place = |words: &str| body.find(words).unwrap_or_else(|| panic!("{words}: {body}"));
    assert!(
        place(">writing (beside") < place(">fuse") && place(">fuse") < place(">reading, hashing")
    );
    assert!(!body.contains(">rank<"), "what writes has no rank among what reads");
    assert!(chart.description.contains("void 105,277 MiB/s"), "{}", chart.description);
    assert!(chart.body.contains(">far faster than the rest: a scale of their own<"));
    assert!(chart.body.contains(">the rest: bars are drawn 22 times as long<"), "{}", chart.body);
    assert!(chart.body.contains(">100,000</text>") && chart.body.contains(">4,000</text>"));
}

#[test]
fn what_others_measured_is_grey_and_has_its_source() {
    let chart = founders_ladder();
    let grey = lengths(&chart.body, "reference");
    assert_eq!(grey.len(), 5, "{grey:?}");
    // 305 and 145 MiB/s, to the scale of the rungs.
    let memory = lengths(&chart.body, "bar");
    assert!((grey[3] / memory[2] - 305.0 / 2_931.0).abs() < 0.01, "{grey:?} {memory:?}");
    assert!(chart.body.contains("founders") && chart.description.contains("bindfs: 145"));
    let other = Rung { unit: "ops/s".to_owned(), ..rung("bind", 1.0, 2.0, 3.0) };
    assert!(lengths(&ladder("t", &[&other]).body, "reference").is_empty(), "another unit");
}

fn rate(median: f64) -> RateBar {
    RateBar { median, low: median * 0.98, high: median * 1.01 }
}

/// The ways of reading, as they were on a machine of two cores.
fn price_of_the_cache() -> Chart {
    let pair = |label: &str, actual: Option<f64>, loss: &str| RatePair {
        label: label.to_owned(),
        reference: rate(2_952.0),
        actual: actual.map(rate),
        loss: loss.to_owned(),
        waits: Some(Waits { p99_us: Some(22.6), max_us: 49_300.0 }),
        runs: 4,
    };
    let pairs = [
        pair("past the cache", None, ""),
        pair("through the cache", Some(2_722.0), "8 % lost"),
        pair("from the cache", Some(10_322.0), "3.5 times as fast"),
        pair("through a purged cache", Some(640.0), "78 % lost"),
    ];
    beside_reference("How fast is each way of reading?", &pairs, "1.0 GiB of memory.")
}

#[test]
fn each_way_has_the_length_of_its_rate() {
    let chart = price_of_the_cache();
    let (reference, actual) = (lengths(&chart.body, "reference"), lengths(&chart.body, "third"));
    assert_eq!((reference.len(), actual.len()), (4, 3), "a grey bar for each way");
    assert_eq!(chart.body.matches(">99 % below 22.6 µs, longest 49.3 ms<").count(), 4);
    assert!(reference.iter().all(|length| *length == reference[0]), "{reference:?}");
    let rates = [2_722.0, 10_322.0, 640.0];
    for (length, rate) in actual.iter().zip(rates) {
        assert!((length / reference[0] - rate / 2_952.0).abs() < 0.01, "{rate}: {actual:?}");
    }
    assert!(chart.description.contains("MiB/s, 3.5 times as fast;"), "{}", chart.description);
    assert!(chart.body.contains("class=\"strong rim\">78 % lost<"), "{}", chart.body);
    assert!(chart.body.contains("class=\"onbar end\">3.5 times as fast<"), "{}", chart.body);
}

fn method(name: &str, p50_us: f64) -> MethodLine {
    MethodLine {
        name: name.to_owned(),
        target: "drive".to_owned(),
        ops: 1e6 / p50_us,
        p50_us,
        p99_us: p50_us * 1.2,
        max_us: p50_us * 9.0,
        p10_us: p50_us * 0.9,
        p90_us: p50_us * 1.1,
        count: 64,
        device_kib_per_op: None,
        flushes_per_op: None,
        reached: String::new(),
        histogram: Vec::new(),
        turns_us: Vec::new(),
    }
}

#[test]
fn what_does_not_wait_for_the_drive_stands_apart_from_what_does() {
    let methods = [
        method("create + fsync + folder flush", 44_000.0),
        method("fsync", 21_905.0),
        method("syncfs", 7.8),
        method("O_DIRECT + fdatasync", 22_100.0),
        method("write only", 7.4),
    ];
    let mark = Mark { label: "etcd: 99 % in less than 10 ms (its FAQ)".to_owned(), value: 1e4 };
    let chart =
        latency("t", &methods.iter().collect::<Vec<_>>(), &mark, "One write is of 4.0 KiB.");
    let (apart, flushed) = chart.description.split_once("waits for a flush").expect("two groups");
    assert!(apart.contains("syncfs") && !flushed.contains("syncfs"), "{}", chart.description);
    let place = |name: &str| flushed.find(name).unwrap_or_else(|| panic!("{name}: {flushed}"));
    assert!(place("fsync, O_DIRECT + fdatasync: median 21.9–22.1 ms") < place("create"));
    assert!(
        chart.body.contains(">beyond the mark of etcd: 99 % in less than 10 ms (its FAQ)</text>")
    );
    let zones = lengths(&chart.body, "zone");
    assert_eq!(zones.len(), 2, "one behind each flush, and not behind means: {zones:?}");
    assert!(zones.iter().all(|zone| *zone == zones[0] && *zone > 20.0), "{zones:?}");
    assert_readable(&chart);
    assert!(chart.body.contains(">16.7 µs</text>"), "what does not flush on macOS");
    assert_eq!(chart.body.matches(">–</text>").count(), 3, "no p99 of 64 values");
    assert!(chart.body.contains(">fsync, O_DIRECT + fdatasync</text>"), "{}", chart.body);
    assert!(chart.body.contains(">Medians of 64 writes. Fewer than 100"), "{}", chart.body);
    assert!(
        chart.body.contains(">Calls whose medians are within a quarter share a row"),
        "{}",
        chart.body
    );
    assert!(!chart.description.contains("99 % below"), "{}", chart.description);
    let many = MethodLine { count: 100, ..method("fsync", 21_905.0) };
    let chart = latency("t", &[&many], &mark, "");
    assert!(!chart.body.contains(">–</text>") && chart.description.contains("99 % below 26.3 ms"));
}

#[test]
fn a_range_that_its_median_hides_is_no_longer_than_it_is() {
    let hidden = MethodLine { p10_us: 99.9, p90_us: 100.1, ..method("fsync", 100.0) };
    let mark = Mark { label: "etcd".to_owned(), value: 1e4 };
    let chart = latency("t", &[&hidden], &mark, "");
    assert_eq!(lengths(&chart.body, "bar"), [1.0], "{}", chart.body);
    assert_readable(&chart);
}

/// Cuts of a drive that defers flushes, as they were.
pub(super) fn deferred_cuts(count: usize) -> CutRun {
    let of = |state, oldest_lost_ms, variant: &str| CutCell {
        state,
        oldest_lost_ms,
        variant: variant.to_owned(),
    };
    let cuts = [
        of(CutState::Lost, Some(426.0), "none"),
        of(CutState::Kept, None, "all"),
        of(CutState::Unmountable, None, "prefix"),
        of(CutState::Damaged, Some(2_900.0), "epoch"),
        of(CutState::Unknown, None, "random"),
        of(CutState::Lost, Some(81.0), "torn"),
    ];
    CutRun {
        label: "deferred by the drive".to_owned(),
        rate: (2_461.0, "2,461 commits/s".to_owned()),
        oldest_lost: (2_900.0, "2.9 s".to_owned()),
        cuts: cuts.iter().cycle().take(count).cloned().collect(),
        outcome: "5 of 6 cuts lost something, 1 damaged, 1 did not mount".to_owned(),
        filesystem: "ext4 (data=journal)".to_owned(),
        drive: "defers flushes by up to 1 s".to_owned(),
        flush: "21.7 ms".to_owned(),
        pause_max: "2 s".to_owned(),
        has_long_superblock: true,
    }
}

#[test]
fn each_cut_is_a_cell_that_says_what_it_took() {
    let chart = cuts("t", &[deferred_cuts(6), deferred_cuts(12)]);
    assert_readable(&chart);
    for word in ["safe", "lost", "damaged", "gone", "unknown", "426 ms", "(prefix)"] {
        assert!(chart.body.contains(&format!(">{word}</text>")), "{word}");
    }
    assert!(chart.description.contains("2,461 commits/s: 5 of 6 cuts"), "{}", chart.description);
    assert_eq!(lengths(&chart.body, "tile gone").len(), 3, "of each six cuts one");
    assert!(chart.body.contains("epoch: all"), "{}", chart.body);
    assert!(!chart.body.contains("superblock"), "what did not mount was no torn cut");
    let mut torn = deferred_cuts(6);
    (torn.cuts[2].state, torn.cuts[5].state) = (CutState::Lost, CutState::Unmountable);
    let chart_of_torn = cuts("t", &[torn.clone()]);
    assert!(chart_of_torn.body.contains("superblock of a"), "{}", chart_of_torn.body);
    assert!(chart_of_torn.description.contains("; 1 of 2 cuts that break the order did damage"));
    let slow = CutRun { rate: (615.25, "615 commits/s".to_owned()), ..deferred_cuts(6) };
    let rates = lengths(&cuts("t", &[slow, deferred_cuts(6)]).body, "bar");
    assert!((rates[1] / rates[0] - 4.0).abs() < 0.05, "{rates:?}");
    let short = CutRun { oldest_lost: (290.0, "290 ms".to_owned()), ..deferred_cuts(6) };
    let losses = cuts("t", &[short, deferred_cuts(6)]).body;
    let lengths_of_losses = lengths(&losses, "second");
    assert!((lengths_of_losses[1] / lengths_of_losses[0] - 10.0).abs() < 0.2, "{losses}");
    assert!(losses.contains("shorter is better"), "equal rates show nothing: {losses}");
    let whole = cuts("t", &[CutRun { has_long_superblock: false, ..torn }]);
    assert!(!whole.body.contains("superblock"), "{}", whole.body);
}

#[test]
fn both_figures_of_a_folder_are_bars_from_zero() {
    let folder = |path: &str, advice: &str, waited: f64, moved: f64| FolderBars {
        path: path.to_owned(),
        advice: advice.to_owned(),
        memory: if advice == "bind" { "4.3 MiB".to_owned() } else { String::new() },
        waited: (waited, format!("{waited} ms")),
        moved: (moved / 4.0, moved * 0.75, format!("{moved} MiB")),
    };
    let long = format!("/srv/{}/profile", "long/".repeat(30));
    let all = [
        folder("/srv/shop/db", "bind", 800.0, 4.0),
        folder(&long, "leave", 200.0, 0.0),
        folder("/srv/media", "", 0.0, 400.0),
    ];
    let without_memory = folders("t", &all[1..], "30 s", "");
    let chart = folders("t", &all, "30 s", "2 folders with less are left out.");
    assert_readable(&chart);
    let (waited, moved) = (lengths(&chart.body, "second"), lengths(&chart.body, "fourth"));
    let ([most, quarter], [hundredth, all]) = (&waited[..], &moved[..]) else {
        panic!("{waited:?}")
    };
    let read = lengths(&chart.body, "bar");
    assert!((all / read.last().unwrap() - 4.0).abs() < 0.05, "a quarter was read: {read:?}");
    assert!((most / quarter - 4.0).abs() < 0.05, "{waited:?}");
    assert!((all / hundredth - 100.0).abs() < 15.0, "{moved:?}");
    assert!(chart.body.contains("/profile</text>"), "the end of a long path is shown");
    assert!(chart.body.contains(">programs waited in 30 s</text>"), "{}", chart.body);
    assert!(chart.body.contains(">bind<"), "{}", chart.body);
    assert!(chart.body.contains(">Memory: /srv/shop/db takes 4.3 MiB"), "{}", chart.body);
    assert!(!without_memory.body.contains("Memory: "), "no advice here takes memory");
    assert!(chart.body.contains(">bind: into a folder in memory"), "{}", chart.body);
    assert!(!chart.body.contains(">pin: "), "only what is in the picture: {}", chart.body);
    let small = folders(
        "t",
        &[folder("/srv/db", "", 800.0, 4.0), folder("/srv/tiny", "", 0.001, 0.0)],
        "30 s",
        "",
    );
    assert_eq!(lengths(&small.body, "second").len(), 1, "no bar is longer than its figure");
}

#[test]
fn each_way_is_a_bar_in_each_panel() {
    let of = |command: &str, way: &str| WayRow {
        command: command.into(),
        way: way.into(),
        class: match way {
            "fsure uncached" => "third",
            "nocache" => "second",
            _ => "reference",
        },
    };
    let rows = [
        of("tar", "plain"),
        of("tar", "nocache"),
        of("tar", "limit of 128 MiB"),
        of("tar", "fsure uncached"),
        of("rsync", "plain"),
        of("rsync", "fsure uncached"),
    ];
    let shares = [0.08, 0.5, 1.0, 1.0, 0.02, 1.0].map(|share: f64| {
        let range = Some(((share - 0.1).max(0.0), (share + 0.5).min(1.0)));
        Some(Measure { median: share, range, words: format!("{:.0} %", share * 100.0) })
    });
    let scale = WayScale { full: Some(1.0), tick: figure };
    let kept = WayPanel { head: ["kept", "more"], scale, bars: shares.to_vec() };
    let words = ("range", "All had 768 MiB of memory.");
    let one = ways("t", &rows, std::slice::from_ref(&kept), words);
    assert_readable(&one);
    let full = lengths(&one.body, "third");
    assert!(full.len() == 2, "one way has one colour: {full:?}");
    assert!((lengths(&one.body, "second")[0] * 2.0 - full[0]).abs() < 0.2, "half of the bar");
    assert!(one.description.contains("tar, plain: kept 8 %; tar, nocache"), "{}", one.description);
    let mut times = [0.104, 0.036, 0.012, 0.011, 0.127, 0.011].map(|median: f64| {
        let (range, words) = (Some((median * 0.8, median * 2.0)), format!("{} ms", median * 1e3));
        Some(Measure { median, range, words })
    });
    times[1] = None;
    let scale = WayScale { full: None, tick: figure };
    let again = WayPanel { head: ["read again in", "less"], scale, bars: times.to_vec() };
    let two = ways("t", &rows, &[kept, again.clone()], words);
    assert_readable(&two);
    assert!(lengths(&two.body, "third")[0] < full[0], "two panels share the width");
    assert_eq!(lengths(&two.body, "second").len(), 1, "what was not measured has no bar");
    assert!(two.description.contains("tar, nocache: kept 50 %; "), "{}", two.description);
    assert!(two.description.contains("rsync, plain: kept 2 %, read again in 127 ms"));
    let mut longer = again.clone();
    longer.bars[0].as_mut().unwrap().range = Some((0.1, 0.508));
    let [alone, beside] = [&[again.clone(), again.clone()], &[again, longer]]
        .map(|panels| lengths(&ways("t", &rows, panels, words).body, "third"));
    assert!((alone[0] / beside[0] - 2.0).abs() < 0.1, "one scale: {alone:?} {beside:?}");
}

#[test]
fn no_text_of_a_narrow_chart_is_clipped_or_in_another() {
    assert_readable(&founders_ladder());
    assert_readable(&price_of_the_cache());
    // The last value of an axis may be at its very end.
    let pair = RatePair {
        label: "through the cache".to_owned(),
        reference: rate(1_840.0),
        actual: Some(rate(1_000.0)),
        loss: "46 % lost".to_owned(),
        waits: None,
        runs: 6,
    };
    let chart = beside_reference("t", &[pair], "");
    assert!(chart.body.contains(">2,000</text>"), "{}", chart.body);
    assert!(chart.body.contains(">95 % interval of the median<"), "{}", chart.body);
    assert!(price_of_the_cache().body.contains(">range of 4 runs<"), "no interval of so few");
    assert_readable(&chart);
}

#[test]
fn every_chart_shows_its_title() {
    for chart in charts("a title that is asked", 5.0) {
        let title = ">a title that is asked</text>";
        assert!(chart.alone().contains(title) && chart.inline("c").contains(title));
    }
    let long = "words ".repeat(40);
    let svg = ladder(&long, &[]).alone();
    assert!(svg.matches("class=\"strong\"").count() > 2, "a long title has several lines");
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
    // One beside the rungs, and one in the key.
    assert_eq!(chart.matches("class=\"tie\"").count(), 2);
    assert_eq!(text_of(&chart).matches("1-2").count(), 2);
}

#[test]
fn a_rank_of_two_digits_is_on_the_paper() {
    let rungs: Vec<_> = (1..=12).map(|n| rung("a", 100.0 - f64::from(n), 100.0, 101.0)).collect();
    let chart = ladder("t", &rungs.iter().collect::<Vec<_>>()).alone();
    let rank = chart.lines().find(|line| line.contains(">1-12<")).expect("a rank");
    let x = rank.split('"').nth(1).and_then(|x| x.parse::<f64>().ok()).expect("its place");
    assert!(x >= "1-12".len() as f64 * svg::COLUMN_CHARACTER, "{rank}");
}
