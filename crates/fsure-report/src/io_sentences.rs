//! The sentence that each experiment of `speed --io` comes to, for the terminal and the page.

use fsure_core::units;
use fsure_measure::results::{AreaLine, RandomLine, SustainedEnd, SustainedLine};

use crate::chart::figure;

/// Below this share of the first tenth, the last tenth of a device is called slower.
const SLOWER: f64 = 0.8;

/// Returns the sentence on the random requests of one folder; `None` without any.
pub fn random(lines: &[&RandomLine]) -> Option<String> {
    let target = &lines.first()?.target;
    let of = |name: &str, noun: &str| {
        let mut of_name: Vec<_> = lines.iter().filter(|line| line.name == name).collect();
        of_name.sort_by_key(|line| line.queue_depth);
        let (first, last) = (of_name.first()?, of_name.last()?);
        let one = format!("{} {noun} a second", figure(first.iops));
        Some(match first.queue_depth == last.queue_depth {
            true => one,
            false => format!("{one} ({} with {} at a time)", figure(last.iops), last.queue_depth),
        })
    };
    let both = [of("random read", "random reads"), of("random write", "writes")];
    let both: Vec<_> = both.into_iter().flatten().collect();
    Some(format!("{target}: {}", both.join(", ")))
}

/// Returns the sentence on a sustained write.
pub fn sustained(line: &SustainedLine) -> String {
    let (target, before) = (&line.target, figure(line.before_mib_s));
    let dropped = line.after_mib_s.zip(line.fast_cache_bytes).zip(line.drop_s);
    if let Some(((after, cache), seconds)) = dropped {
        return format!(
            "{target} writes {before} MiB/s until its fast cache of about {} is used up after {} s, \
             and {} MiB/s from then on",
            units::size(cache),
            seconds.round(),
            figure(after)
        );
    }
    let end = match line.end {
        SustainedEnd::Space => "all the space that it might use",
        SustainedEnd::Budget => "the budget was spent",
        SustainedEnd::Interrupted => "it was interrupted",
        SustainedEnd::Failed => "a write failed then",
        SustainedEnd::Drop => "the drop did not last",
    };
    format!("{target} writes {before} MiB/s, and did not become slower within {} ({end})", {
        units::size(line.bytes)
    })
}

/// Returns the sentence on the area of a device.
pub fn area(line: &AreaLine) -> String {
    let median = figure(line.median_mib_s);
    let (slowest, fastest) = (figure(line.slowest_mib_s), figure(line.fastest_mib_s));
    let device = &line.device;
    let all = format!(
        "{device} reads {median} MiB/s over its {} ({slowest} to {fastest})",
        units::size(line.device_bytes)
    );
    let share = line.last_tenth_mib_s / line.first_tenth_mib_s;
    let end = match share {
        share if share > 0.0 && share < SLOWER => {
            format!("; its end is {:.0} % as fast as its beginning", share * 100.0)
        }
        _ => String::new(),
    };
    match line.unreadable {
        0 => all + &end,
        count => format!("{count} of {} places of {device} could not be read", line.points.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_line(name: &str, queue_depth: usize, iops: f64) -> RandomLine {
        RandomLine {
            name: name.to_owned(),
            target: "/a".to_owned(),
            queue_depth,
            block_bytes: 4096,
            iops,
            low: iops,
            high: iops,
            mib_per_s: iops / 256.0,
            p50_us: 1.0,
            p99_us: 2.0,
            p999_us: 3.0,
            max_us: 4.0,
            count: 1,
            samples: vec![iops],
            warm_up: Vec::new(),
            histogram: Vec::new(),
            device_read_bytes: None,
            device_written_bytes: None,
            measured: String::new(),
        }
    }

    #[test]
    fn both_ends_of_the_queue_are_named() {
        let lines = [
            random_line("random read", 32, 90_000.0),
            random_line("random read", 1, 9_000.0),
            random_line("random write", 4, 7_000.0),
        ];
        assert_eq!(
            random(&lines.iter().collect::<Vec<_>>()).unwrap(),
            "/a: 9,000 random reads a second (90,000 with 32 at a time), 7,000 writes a second"
        );
        assert_eq!(random(&[]), None);
    }

    #[test]
    fn a_cache_is_named_only_if_it_was_used_up() {
        let even = SustainedLine {
            name: "sustained write".to_owned(),
            target: "/a".to_owned(),
            points: vec![(1.0, 300.0)],
            bytes: 3 << 30,
            mib_per_s: 300.0,
            before_mib_s: 300.0,
            after_mib_s: None,
            fast_cache_bytes: None,
            drop_s: None,
            slowest_mib_s: 300.0,
            end: SustainedEnd::Space,
            device_written_bytes: None,
            measured: String::new(),
        };
        assert_eq!(
            sustained(&even),
            "/a writes 300 MiB/s, and did not become slower within 3.0 GiB (all the space that \
             it might use)"
        );
        let dropped = SustainedLine {
            after_mib_s: Some(80.0),
            fast_cache_bytes: Some(2 << 30),
            drop_s: Some(6.8),
            end: SustainedEnd::Drop,
            ..even
        };
        assert_eq!(
            sustained(&dropped),
            "/a writes 300 MiB/s until its fast cache of about 2.0 GiB is used up after 7 s, and \
             80 MiB/s from then on"
        );
    }
}
