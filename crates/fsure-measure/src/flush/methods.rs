//! The table: what each method of making a write durable costs, and what of it
//! reached the device.

use fsure_os::durable_write::Method;

use super::operations::{Append, Create, Idle, Overwrite};
use super::time_slice::SliceStats;
use super::workspace::{FlushWorkspace, MeasuredOperation};
use crate::flush_verdict::thresholds::NO_FLUSHES;
use crate::results;
use crate::results::ResultLine;
use fsure_core::{Result, units};

/// Other processes are reported if they write more than this share of what the
/// strongest flush writes: from there on the counters are theirs, too.
const FOREIGN_MAX: f64 = 0.5;

/// The measurements, by their names.
pub(super) struct Table {
    rows: Vec<(String, SliceStats)>,
    /// Bytes per second that other processes had the device write.
    idle: Option<f64>,
}

impl Table {
    pub(super) fn of(&self, method: Method) -> Option<&SliceStats> {
        self.rows.iter().find(|(name, _)| name == method.name()).map(|(_, tally)| tally)
    }

    /// Bytes that other processes had the device write per byte of this one while the
    /// strongest flush was measured, if they went on as they did while this one did
    /// nothing.
    pub(super) fn foreign_ratio(&self, size: usize) -> Option<f64> {
        let measured = self.of(Method::strongest())?.per_second() * size as f64;
        Some(self.idle? / measured).filter(|ratio| ratio.is_finite())
    }
}

/// Returns the number of methods.
pub(super) fn count() -> usize {
    // The patterns are three.
    Method::all().len() + 3
}

/// Measures all of them.
pub(super) fn measure(site: &FlushWorkspace<'_>) -> Result<Table> {
    let size = site.options.size;
    let sizes = [size];
    let mut contenders = vec![MeasuredOperation::new(IDLE, Idle)];
    for method in Method::all() {
        let made = Overwrite::new(site, *method, size);
        let made = site.or_not_run(method.name(), made)?;
        contenders.extend(made.map(|made| MeasuredOperation::with_tail(site, method.name(), made)));
    }
    let flush = Method::thorough().name();
    let name = format!("append + {flush}");
    if let Some(made) = site.or_not_run(&name, Append::new(site, Method::thorough(), &sizes))? {
        contenders.push(MeasuredOperation::with_tail(site, name, made));
    }
    let name = format!("create + {flush} + folder flush");
    if let Some(made) = site.or_not_run(&name, Create::beside(site, size))? {
        contenders.push(MeasuredOperation::with_tail(site, name, made));
    }
    let name = format!("replace + {flush} + folder flush");
    if let Some(made) = site.or_not_run(&name, Create::replacing(site, size))? {
        contenders.push(MeasuredOperation::with_tail(site, name, made));
    }
    let ended = site.measure(&mut contenders, site.options.span);
    let mut rows: Vec<_> = contenders.into_iter().map(|one| (one.name, one.tally)).collect();
    let idle = rows.remove(0).1.device_bytes_per_second();
    let table = Table { rows, idle };
    let foreign = table.foreign_ratio(size).filter(|ratio| *ratio > FOREIGN_MAX);
    for (name, tally) in table.rows.iter().filter(|(_, tally)| tally.latency.count() > 0) {
        site.report(&ResultLine::Method(row(site, name, tally, foreign.is_some())));
    }
    if let Some(ratio) = foreign {
        let rate = units::size(table.idle.unwrap_or_default() as u64);
        site.warn(format!(
            "other programs wrote {rate} a second to the device of {} while nothing was measured, \
             {ratio:.1} times the flushed writes: its counters include theirs; measure again when \
             it is quiet",
            site.target
        ));
    }
    ended.map(|()| table)
}

const IDLE: &str = "others at work";

fn row(
    site: &FlushWorkspace<'_>,
    name: &str,
    tally: &SliceStats,
    is_shared: bool,
) -> results::MethodLine {
    let latency = &tally.latency;
    let [p10_us, p50_us, p90_us, p99_us] =
        [0.1, 0.5, 0.9, 0.99].map(|share| latency.quantile_us(share));
    let method = Method::all().iter().find(|method| method.name() == name);
    results::MethodLine {
        name: name.to_owned(),
        target: site.target.clone(),
        ops: tally.per_second(),
        p50_us,
        p99_us,
        max_us: latency.max_us(),
        p10_us,
        p90_us,
        count: latency.count(),
        device_kib_per_op: tally.device_bytes().map(|bytes| bytes / 1024.0),
        flushes_per_op: tally.flushes(),
        reached: Reached {
            bytes: tally.device_bytes(),
            flushes: tally.flushes(),
            size: site.options.size as f64,
            may_be_forced: site.takes_forced() && method.is_some_and(|method| method.is_forced()),
            is_shared,
        }
        .words(&site.file_system),
        histogram: latency.buckets(),
        turns_us: tally.turns_us(),
    }
}

/// The change of the device's counters, per operation.
struct Reached {
    bytes: Option<f64>,
    flushes: Option<f64>,
    /// Bytes that were to be written.
    size: f64,
    /// True if the device may have been requested to force the write through its
    /// cache, which nothing counts.
    may_be_forced: bool,
    /// True if other processes had the device at work beyond [`FOREIGN_MAX`], so that
    /// what was counted need not be from this one.
    is_shared: bool,
}

impl Reached {
    /// In words, from the counters and nothing else.
    fn words(&self, file_system: &str) -> String {
        let Some(bytes) = self.bytes else {
            return format!("not known: no counters for {file_system}");
        };
        // Half of it: a file system that compresses may write less than it was given.
        let has_data = bytes >= self.size / 2.0;
        let Some(flushes) = self.flushes else {
            let data = match has_data {
                true if self.is_shared => "data, from this run or other programs",
                true => "data",
                false => "nothing yet",
            };
            return format!("{data}; flushes are not counted");
        };
        let many = flushes.round();
        match (has_data, flushes >= NO_FLUSHES) {
            (true, true) if self.is_shared => {
                "data; flushes of this run and of other programs cannot be told apart".to_owned()
            }
            (false, true) if self.is_shared => {
                "a flush, from this run or other programs; no data".to_owned()
            }
            (true, false) if self.is_shared => {
                "data, from this run or other programs; no flush".to_owned()
            }
            (true, true) if many >= 2.0 => format!("data and {many} flushes"),
            (true, true) if flushes >= 0.5 => "data and a flush".to_owned(),
            (true, true) => format!("data, and a flush for every {:.0}", 1.0 / flushes),
            (true, false) if self.may_be_forced => {
                "data, no flush; forced writes (FUA) are not counted".to_owned()
            }
            (true, false) => "data, no flush".to_owned(),
            (false, true) => "a flush, but no data".to_owned(),
            (false, false) => "nothing yet".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_the_device_match_the_counters() {
        let words = |bytes, flushes, may_be_forced| {
            let is_shared = false;
            Reached { bytes, flushes, size: 4096.0, may_be_forced, is_shared }.words("tmpfs")
        };
        for (bytes, flushes, forced, expected) in [
            (None, None, false, "not known: no counters for tmpfs"),
            (Some(4096.0), None, true, "data; flushes are not counted"),
            (Some(0.0), None, false, "nothing yet; flushes are not counted"),
            (Some(4200.0), Some(1.05), true, "data and a flush"),
            (Some(100e3), Some(2.0), false, "data and 2 flushes"),
            (Some(4096.0), Some(0.25), false, "data, and a flush for every 4"),
            (Some(4096.0), Some(0.02), false, "data, no flush"),
            (Some(4096.0), Some(0.0), true, "data, no flush; forced writes (FUA) are not counted"),
            (Some(12.0), Some(1.0), false, "a flush, but no data"),
            (Some(12.0), Some(0.0), true, "nothing yet"),
        ] {
            assert_eq!(words(bytes, flushes, forced), expected);
        }
    }

    #[test]
    fn io_of_other_processes_is_not_claimed_as_own() {
        for (bytes, flushes, expected) in [
            (None, None, "not known: no counters for ext4"),
            (Some(4096.0), None, "data, from this run or other programs; flushes are not counted"),
            (
                Some(4200.0),
                Some(1.05),
                "data; flushes of this run and of other programs cannot be told apart",
            ),
            (
                Some(4096.0),
                Some(0.33),
                "data; flushes of this run and of other programs cannot be told apart",
            ),
            (Some(4096.0), Some(0.02), "data, from this run or other programs; no flush"),
            (Some(12.0), Some(0.33), "a flush, from this run or other programs; no data"),
            (Some(12.0), Some(0.0), "nothing yet"),
        ] {
            let reached =
                Reached { bytes, flushes, size: 4096.0, may_be_forced: true, is_shared: true };
            assert_eq!(reached.words("ext4"), expected);
        }
    }
}
