//! `ram try`: the times of a command on the disk, in memory and with deferred flushes.

use super::super::Named;
use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, milliseconds, number};
use super::{Draft, machine_of_all};
use crate::chart::{
    Measure, RatioBar, RatioClass, RatioGroup, WayPanel, WayRow, WayScale, figure, ratios, ways,
};
use crate::interval_words;
use crate::outputs::{ResultContent, TrialRun, TrialWay};
use fsure_core::count;
use fsure_measure::stats::SURE_RUNS;

/// The way in memory.
const RAM: &str = "ram";
/// The good end of a time.
const SHORTER: &str = "less is better";

/// The bars of a command in [`side_by_side`].
const RATIOS: [RatioClass<'static>; 2] = [
    RatioClass { class: "first", name: "in memory", meaning: "in memory, without copies" },
    RatioClass {
        class: "second",
        name: "with copies",
        meaning: "with the copies in and out, checked and flushed ('ram run')",
    },
];

/// A command in [`side_by_side`].
struct Tried<'a> {
    named: &'a Named,
    /// Its way in memory.
    way: &'a TrialWay,
    /// The file system of the disk, if recorded.
    file_system: Option<&'a str>,
}

/// Several commands beside each other, if there are several: how many times as fast each is in
/// memory.
pub(super) fn side_by_side(results: &[Named], charts: &mut Charts) -> Option<Section> {
    let tried = results.iter().filter_map(|named| match &named.result.content {
        ResultContent::Trial(run) => {
            let way = run.ways.iter().find(|way| way.way == RAM && way.ratio.is_some())?;
            let totals = run.summary.as_ref();
            let file_system = totals.and_then(|totals| totals.file_system.as_deref());
            Some(Tried { named, way, file_system })
        }
        _ => None,
    });
    let tried: Vec<_> = tried.collect();
    if tried.len() < 2 {
        return None;
    }
    let group = |Tried { named, way, .. }: &Tried<'_>| {
        let bar = |ratio: Option<f64>, interval| match ratio {
            Some(ratio) => Ok(RatioBar { ratio, interval }),
            None => Err(NO_FIGURE),
        };
        let own = bar(way.ratio, way.ratio_low.zip(way.ratio_high));
        let whole = bar(way.whole_ratio, way.whole_ratio_low.zip(way.whole_ratio_high));
        RatioGroup { name: named.words(), ratios: vec![own, whole] }
    };
    let groups: Vec<_> = tried.iter().map(group).collect();
    let runs = tried.iter().map(|one| one.way.runs as usize);
    let turns = interval_words::span(runs.clone());
    let words = format!(
        "Times as fast as on the disk: medians of the ratios of {turns} turns. Equal steps of the \
         axis are equal factors."
    );
    let interval = interval_words::meaning(runs);
    let asked = format!("How many times as fast is each command in memory as {}?", disk(&tried));
    let chart = ratios(&asked, &groups, &RATIOS, (&interval, &words));
    let title = format!("Side by side: {} commands in memory", groups.len());
    let machine = machine_of_all(tried.iter().map(|one| one.named));
    let pieces = vec![charts.add_with_subtitle(&chart, machine)];
    Some(Section { title, grade: Grade::Plain, pieces, ..Section::default() })
}

/// Names the disk, with its file system if all of the trials have the same one.
fn disk(tried: &[Tried<'_>]) -> String {
    let mut systems: Vec<_> = tried.iter().map(|one| one.file_system).collect();
    systems.dedup();
    match systems[..] {
        [Some(system)] => format!("on the disk ({system})"),
        _ => "on the disk".to_owned(),
    }
}

/// The section of a run.
pub(super) fn section(run: &TrialRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("ram try");
    if let Some(totals) = &run.summary {
        draft.verdict(Grade::Plain, verdict(run));
        let lost = milliseconds(totals.max_loss_ms);
        if let Some(whole) = fastest(run).and_then(|(way, _)| way.whole_ratio) {
            draft.note(format!(
                "With the time of its copies it is {} times as fast.",
                figure(whole)
            ));
        }
        draft.note(format!(
            "In memory and deferred, a power cut loses up to {lost} of what was acknowledged."
        ));
        if totals.turns < SURE_RUNS as u64 {
            draft.note(format!("Less than {SURE_RUNS} turns show no difference for sure."));
        }
        if totals.ended_early {
            draft.note("The run was ended early.");
        }
        if let Some(system) = &totals.file_system {
            draft.fact("File system", system);
        }
        draft.fact("Turns", number(totals.turns, "turn", "turns"));
        draft.plain_exit_code(totals.exit_code);
    }
    if let Some((way, ratio)) = fastest(run) {
        draft.key(figure(ratio), format!("times as fast {}", words(way)));
    }
    let refused = run.ways.iter().filter_map(|way| {
        let why = way.refused.as_ref()?;
        Some(Piece::Note(Grade::Warn, format!("Not run {}: {why}.", words(way))))
    });
    draft.part("Not run", refused);
    draft.part("Time of the command", picture(run, charts).into_iter().chain(table(run)));
    draft.done()
}

/// The way whose interval shows that it is faster, if there is one.
fn fastest(run: &TrialRun) -> Option<(&TrialWay, f64)> {
    let is_faster = |way: &&TrialWay| {
        way.runs >= SURE_RUNS as u64 && way.ratio_low.is_some_and(|low| low > 1.0)
    };
    let ratios = run.ways.iter().filter(is_faster).filter_map(|way| Some((way, way.ratio?)));
    ratios.max_by(|one, two| one.1.total_cmp(&two.1))
}

/// The ratios to the times on the disk, as a sentence; `None` for the disk.
fn ratio_words(way: &TrialWay) -> Option<String> {
    let words_of = |ratio: Option<f64>, low: Option<f64>, high: Option<f64>| {
        let [ratio, low, high] = [ratio?, low?, high?].map(figure);
        Some(format!("{ratio} times as fast ({low} to {high})"))
    };
    let own = words_of(way.ratio, way.ratio_low, way.ratio_high)?;
    let whole = words_of(way.whole_ratio, way.whole_ratio_low, way.whole_ratio_high);
    let whole = whole.map_or(String::new(), |whole| format!(", with its copies {whole}"));
    Some(format!("The command is {own} {}{whole}: medians of the ratios by turn. ", words(way)))
}

fn verdict(run: &TrialRun) -> String {
    match fastest(run) {
        Some((way, ratio)) => {
            format!("The command is {} times as fast {}", figure(ratio), words(way))
        }
        None if run.ways.iter().all(|way| way.runs == 0) => "Nothing was measured".to_owned(),
        None => "The command is not shown to be faster in memory, or deferred".to_owned(),
    }
}

fn words(way: &TrialWay) -> &str {
    match &*way.way {
        "disk" => "on the disk",
        RAM => "in memory",
        other => other,
    }
}

fn picture(run: &TrialRun, charts: &mut Charts) -> Option<Piece> {
    let run_ways: Vec<_> = run.ways.iter().filter(|way| way.median_s.is_some()).collect();
    // As in the ladder, where the disk and memory have these colours.
    let class = |way: &TrialWay| match &*way.way {
        "disk" => "second",
        RAM => "first",
        _ => "third",
    };
    let row = |way: &&TrialWay| WayRow {
        command: String::new(),
        way: words(way).to_owned(),
        class: class(way),
    };
    let rows: Vec<_> = run_ways.iter().map(row).collect();
    let measure = |seconds: Option<f64>, range: Option<(f64, f64)>| {
        let median = seconds?;
        Some(Measure { median, range, words: milliseconds(median * 1e3) })
    };
    let command = |way: &&TrialWay| measure(way.median_s, way.low_s.zip(way.high_s));
    let whole = |way: &&TrialWay| measure(way.whole_s, way.whole_low_s.zip(way.whole_high_s));
    let scale = WayScale { full: None, tick: |seconds| milliseconds(seconds * 1e3) };
    let panels = [
        WayPanel {
            head: ["time of the command", SHORTER],
            scale,
            bars: run_ways.iter().map(command).collect(),
        },
        WayPanel {
            head: ["with its copies", SHORTER],
            scale,
            bars: run_ways.iter().map(whole).collect(),
        },
    ];
    let runs = run_ways.iter().map(|way| way.runs as usize);
    let interval = interval_words::meaning(runs.clone());
    let ratios: String = run_ways.iter().filter_map(|way| ratio_words(way)).collect();
    let conditions = format!(
        "{ratios}Medians of {} runs in turns; bars begin at zero. Copies: the files of the folder \
         into memory before, and what was changed to the disk afterwards.",
        runs.max().unwrap_or_default()
    );
    let title = "How long does the command take, on the disk and in memory?";
    let chart = || ways(title, &rows, &panels, (&interval, &conditions));
    (!rows.is_empty()).then(|| charts.add(&chart(), ""))
}

fn table(run: &TrialRun) -> Option<Piece> {
    let columns = ["Way", "#Runs", "#Command", "#Interval", "#With its copies", "#Times as fast"];
    let mut table = Table::new("Times", &columns);
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(|| "\u{2013}".to_owned(), |seconds| milliseconds(seconds * 1e3))
    };
    for way in run.ways.iter().filter(|way| way.runs > 0) {
        let ratio = way.ratio.map_or_else(String::new, |ratio| {
            let [low, high] = [way.ratio_low, way.ratio_high].map(Option::unwrap_or_default);
            format!("{} ({} to {})", figure(ratio), figure(low), figure(high))
        });
        table.push(vec![
            Cell::text(words(way)),
            Cell::number(count(way.runs)).with_key(way.runs),
            Cell::number(time(way.median_s)).with_key(way.median_s.unwrap_or_default()),
            Cell::number(format!("{} to {}", time(way.low_s), time(way.high_s))),
            Cell::number(time(way.whole_s)).with_key(way.whole_s.unwrap_or_default()),
            Cell::number(ratio),
        ]);
    }
    table.unless_empty()
}
