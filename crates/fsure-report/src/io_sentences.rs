//! The sentence that each experiment of `speed --io` comes to, for the terminal and the page.

use fsure_core::units;
use fsure_measure::results::{
    AreaLine, Curve, RandomLine, ResultLine, SustainedEnd, SustainedLine,
};

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

/// From this share of the most on, a larger request is hardly worth anything.
const NEARLY_ALL: f64 = 0.9;

/// Returns the curve of a line, if it is one over the sizes of requests.
pub fn size_curve(line: &ResultLine) -> Option<&Curve> {
    match line {
        ResultLine::Curve(curve) if curve.name.ends_with(" by request size") => Some(curve),
        _ => None,
    }
}

/// Returns the sentence on a curve over the sizes of requests; `None` without a point.
pub fn sizes(curve: &Curve) -> Option<String> {
    let (first, last) = (curve.points.first()?, curve.points.last()?);
    let size = |bytes: f64| units::size(bytes as u64);
    let most = curve.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let enough = curve.points.iter().find(|point| point.y >= most * NEARLY_ALL)?;
    let what = if curve.name.starts_with("read") { "reads" } else { "writes" };
    if curve.points.len() == 1 {
        let (size, rate) = (size(first.x), figure(first.y));
        return Some(format!("{}: {what} of {size} come to {rate} MiB/s", curve.target));
    }
    let enough = match enough.x < last.x {
        true => format!("from {} on it is nine tenths of the most or more", size(enough.x)),
        false => "no smaller size comes to nine tenths of that".to_owned(),
    };
    Some(format!(
        "{}: {what} of {} come to {} MiB/s, those of {} to {}; {enough}",
        curve.target,
        size(first.x),
        figure(first.y),
        size(last.x),
        figure(last.y)
    ))
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
    use fsure_measure::results::Point;

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
    fn a_size_from_which_on_a_larger_one_is_hardly_worth_anything() {
        let point = |x: u32, y| Point { x: f64::from(x), y, low: y, high: y, flushes_per_op: None };
        let curve = Curve {
            name: "read by request size".to_owned(),
            target: "/srv".to_owned(),
            x: "bytes of a request".to_owned(),
            y: "MiB/s".to_owned(),
            points: vec![point(4096, 100.0), point(65_536, 950.0), point(1 << 20, 1_000.0)],
            measured: String::new(),
        };
        assert_eq!(
            sizes(&curve).unwrap(),
            "/srv: reads of 4.0 KiB come to 100 MiB/s, those of 1.0 MiB to 1,000; from 64.0 KiB on \
             it is nine tenths of the most or more"
        );
        assert!(size_curve(&ResultLine::Curve(curve.clone())).is_some());
        let one = sizes(&Curve { points: vec![point(4096, 7.0)], ..curve.clone() }).unwrap();
        assert_eq!(one, "/srv: reads of 4.0 KiB come to 7 MiB/s");
        let steep = vec![point(4096, 100.0), point(8192, 200.0)];
        let steep = sizes(&Curve { points: steep, ..curve.clone() }).unwrap();
        assert!(steep.ends_with("8.0 KiB to 200; no smaller size comes to nine tenths of that"));
        let threads = Curve { name: "threads".to_owned(), points: Vec::new(), ..curve };
        assert_eq!((sizes(&threads), size_curve(&ResultLine::Curve(threads))), (None, None));
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
