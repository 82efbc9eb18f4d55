//! Differences between results beside the drive: another machine, other settings, a busy or
//! incomplete run. They do not forbid a comparison, and must not go unsaid.

use super::contenders::Case;
use crate::environment;
use crate::flush::{ENDED_EARLY, RATE};
use crate::results::{Machine, Measurement, ResultLine, StoredResult};
use fsure_core::ExitCode;
use fsure_core::units;

/// Share of a rate below which it was not reached.
const RATE_SHARE_MIN: f64 = 0.95;

/// Returns the differences of each contender from the first, in sentences; `settings` are those
/// of its settings. The folders of one result (`is_one_run`) have their machine and their noise in
/// common.
pub(super) fn unlike(
    cases: &[Case<'_>],
    settings: Vec<Vec<Differing>>,
    is_one_run: bool,
) -> Vec<String> {
    let mut unlike = Vec::new();
    for (other, settings) in cases.iter().zip(settings).skip(1) {
        let [one, two] = [&cases[0], other].map(|case| case.contender.name.as_str());
        let mut all = machines(&cases[0], other);
        all.extend(settings);
        let words = |(what, first, second): (String, String, String)| {
            format!("{what}: {first} in {one}, {second} in {two}")
        };
        unlike.extend(all.into_iter().map(words));
    }
    unlike.extend(cases.iter().filter_map(missed_rate));
    for case in if is_one_run { &cases[..1] } else { cases } {
        let run = if is_one_run { "the run" } else { &case.contender.name };
        unlike.extend(incomplete(case.stored).map(|why| format!("{run} is incomplete: {why}")));
        let noise = case.stored.summary.as_ref().map(|summary| &summary.noise);
        let trouble = noise.and_then(environment::describe_noise);
        unlike.extend(
            trouble.map(|trouble| format!("during {run}, {trouble}: a ratio may be of that load")),
        );
    }
    unlike
}

/// Returns the reason why a result does not have all that its run was to measure.
fn incomplete(stored: &StoredResult) -> Option<&'static str> {
    let Some(summary) = &stored.summary else { return Some("it was cut off before its end") };
    let is_early = |line: &ResultLine| match line {
        ResultLine::Warning { words } => words.starts_with(ENDED_EARLY),
        _ => false,
    };
    let has_failed = stored.lines.iter().any(is_early);
    let stopped = [ExitCode::Interrupted, ExitCode::Terminated].map(ExitCode::number);
    let is_stopped = stopped.contains(&summary.exit_code);
    (has_failed || is_stopped).then_some("its run ended early")
}

/// Returns a sentence on a contender that was too slow for the rate that it was to be held at:
/// what it costs is then not what it costs at that rate.
fn missed_rate(case: &Case<'_>) -> Option<String> {
    let (_, rate) = case.stored.header.setup.iter().find(|(name, _)| name == RATE)?;
    let wanted: f64 = rate.strip_suffix("/s")?.parse().ok()?;
    let slowest = case.stored.lines.iter().filter_map(|line| match line {
        ResultLine::Method(method) if case.targets.contains(&method.target.as_str()) => {
            Some(method)
        }
        _ => None,
    });
    let slowest = slowest.min_by(|one, two| one.ops.total_cmp(&two.ops))?;
    let is_missed = slowest.ops < wanted * RATE_SHARE_MIN;
    is_missed.then(|| {
        let (name, method, reached) = (&case.contender.name, &slowest.name, slowest.ops);
        format!("{name} did not reach the rate of {rate}: {method} had {reached:.1}/s")
    })
}

/// The name of what differs, and both values.
pub(super) type Differing = (String, String, String);

fn differing(all: Vec<(String, String, String)>) -> Vec<Differing> {
    all.into_iter().filter(|(_, one, two)| one != two).collect()
}

fn machines(first: &Case<'_>, second: &Case<'_>) -> Vec<Differing> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
    let of = |case: &Case<'_>| {
        let Machine { host, system, processor, cores, memory_bytes, virtualization, .. } =
            &case.stored.header.machine;
        [
            ("machine", host.clone()),
            ("system", system.clone()),
            ("processor", known(processor)),
            ("cores", cores.to_string()),
            ("memory", known(&memory_bytes.map(units::size))),
            ("virtual machine", known(virtualization)),
            ("program", case.stored.header.program.clone()),
        ]
    };
    let pairs = of(first).into_iter().zip(of(second));
    differing(pairs.map(|((what, one), (_, two))| (what.to_owned(), one, two)).collect())
}

/// Returns the settings in which two contenders differ: options of the run, and the file
/// system, which is measured with the drive.
pub(super) fn settings(first: &Case<'_>, second: &Case<'_>) -> Vec<Differing> {
    let (one, two) = (setup(first), setup(second));
    let of = |setup: &[(String, String)], name: &str| {
        let found = setup.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "not recorded".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in one.iter().chain(&two) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let pair = |name: &&String| ((*name).clone(), of(&one, name), of(&two, name));
    differing(names.iter().map(pair).collect())
}

/// The settings of a contender, with its folders called by their place.
fn setup(case: &Case<'_>) -> Vec<(String, String)> {
    let header = &case.stored.header;
    let mut setup = Vec::new();
    for (name, value) in &header.setup {
        let of = |target: &str| {
            name.strip_suffix(target).and_then(|what| {
                what.strip_suffix(" of ").or_else(|| what.strip_suffix(" in ")).map(str::to_owned)
            })
        };
        let own = case.targets.iter().enumerate().find_map(|(n, target)| Some((n, of(target)?)));
        match own {
            Some((0, what)) => setup.push((what, value.clone())),
            Some((n, what)) => setup.push((format!("{what} of folder {}", n + 1), value.clone())),
            None if header.targets.iter().any(|target| of(&target.path).is_some()) => {}
            None => setup.push((name.clone(), value.clone())),
        }
    }
    if header.kind == Measurement::Flush {
        let kind = case.contender.file_system.clone();
        setup.extend(kind.map(|kind| ("file system".to_owned(), kind)));
    }
    setup
}

/// Returns the pairs of results that are of the same drive, by its serial number.
pub(super) fn same_drives(cases: &[Case<'_>]) -> Vec<String> {
    let mut pairs = Vec::new();
    for (place, two) in cases.iter().enumerate() {
        for one in &cases[..place] {
            pairs.extend(same_drive(one, two));
        }
    }
    pairs
}

fn same_drive(one: &Case<'_>, two: &Case<'_>) -> Option<String> {
    // Before and after, in whatever order they were named.
    let is_later = one.contender.started > two.contender.started;
    let (before, after) = if is_later { (two, one) } else { (one, two) };
    let (before, after) = (&before.contender, &after.contender);
    let serial = before.serial.as_ref().filter(|serial| after.serial.as_ref() == Some(serial))?;
    let [old, new] = [before, after].map(|one| one.firmware.as_deref().unwrap_or("not known"));
    let names = format!("{} and {}", before.name, after.name);
    Some(match old == new {
        true if before.firmware.is_none() => {
            format!("{names} lie on the same drive (serial {serial}); its firmware is not known")
        }
        true => {
            format!("{names} lie on the same drive (serial {serial}), firmware {old} both times")
        }
        false => format!(
            "{names} lie on the same drive (serial {serial}): firmware {old} before ({}), {new} after \
             ({})",
            before.name, after.name
        ),
    })
}
