//! Compares each rung of a ladder with the disk below it. A write is compared with the
//! durable write and a read with the read past the page cache: a RAM disk that is written
//! says nothing of how fast the disk reads.

use fsure_measure::results::Rung;

/// The rung that reads are compared with.
const DISK_READ: &str = "disk read direct";
/// The rung that writes are compared with.
const DISK_WRITE: &str = "disk write durable";
/// First words of the rungs that write, beside those with `write` in their names.
const WRITES: [&str; 7] = ["void", "bind", "bindfs", "overlay", "zram", "fuse", "pv"];

/// Explanation of the factors, in two lines.
pub const MEANING: [&str; 2] = [
    "x disk: times as fast as the disk; what writes beside 'disk write durable', all else beside",
    "'disk read direct'.",
];

/// Returns how many times as fast as the disk each rung is; `None` for those in another unit
/// than the disk's, and without the disk's own rung. The rungs are those of one folder and
/// of memory.
pub fn factors(rungs: &[&Rung]) -> Vec<Option<f64>> {
    let median = |name: &str| rungs.iter().find(|rung| rung.name == name).copied();
    let (read, write) = (median(DISK_READ), median(DISK_WRITE));
    let factor = |rung: &&Rung| {
        let disk = if is_write(&rung.name) { write } else { read }?;
        let factor = rung.median / disk.median;
        (rung.unit == disk.unit && factor.is_finite()).then_some(factor)
    };
    rungs.iter().map(factor).collect()
}

/// A factor as it stands beside a bar: `12 x`, `1.4 x`, `0.35 x`.
pub fn words(factor: f64) -> String {
    match factor {
        factor if factor >= 9.95 => format!("{factor:.0} x"),
        factor if factor >= 0.995 => format!("{factor:.1} x"),
        factor => format!("{factor:.2} x"),
    }
}

/// Returns true for a rung that writes.
pub fn is_write(name: &str) -> bool {
    let mut words = name.split(' ');
    words.clone().next().is_some_and(|first| WRITES.contains(&first))
        || words.any(|word| ["write", "rewrite"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(name: &str, unit: &str, median: f64) -> Rung {
        Rung {
            name: name.to_owned(),
            target: "/a".to_owned(),
            unit: unit.to_owned(),
            median,
            low: median,
            high: median,
            runs: 6,
            measured: String::new(),
            samples: vec![median],
            warm_up: Vec::new(),
            outliers: Vec::new(),
            amount: 1,
            cpu_s_per_gib: None,
            device_read_bytes: None,
            device_written_bytes: None,
            device_flushes: None,
        }
    }

    #[test]
    fn writes_are_beside_the_durable_write_and_reads_beside_the_direct_read() {
        let rungs = [
            rung("ram disk first write", "MiB/s", 1000.0),
            rung("ram disk read", "MiB/s", 4000.0),
            rung("fuse kernel passthrough", "MiB/s", 50.0),
            rung("small files create", "files/s", 4000.0),
            rung(DISK_READ, "MiB/s", 400.0),
            rung(DISK_WRITE, "MiB/s", 100.0),
        ];
        let all: Vec<_> = rungs.iter().collect();
        let expected = [Some(10.0), Some(10.0), Some(0.5), None, Some(1.0), Some(1.0)];
        assert_eq!(factors(&all), expected);
        assert_eq!(factors(&all[..2]), [None, None]);
    }

    #[test]
    fn a_factor_has_the_digits_that_count() {
        for (factor, text) in [(123.4, "123 x"), (9.96, "10 x"), (1.0, "1.0 x"), (0.354, "0.35 x")]
        {
            assert_eq!(words(factor), text);
        }
    }
}
