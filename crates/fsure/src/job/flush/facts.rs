//! What was measured, as the rules of the verdict want to have it.

use fsure_os::durable::Method;

use super::methods::Table;
use super::slice::Tally;
use crate::words::durability::{Facts, Medium};

/// All facts about a place.
pub(super) fn of(file_system: &str, table: &Table, size: usize, slope: Vec<(u64, f64)>) -> Facts {
    let strongest = table.of(Method::strongest());
    let quantile = |share| strongest.map_or(0.0, |tally| tally.latency.quantile_us(share));
    let median = |method| table.of(method).map(|tally: &Tally| tally.latency.quantile_us(0.5));
    Facts {
        medium: medium(file_system),
        file_system: file_system.to_owned(),
        write_cache: None,
        drive_cache_on: None,
        count: strongest.map_or(0, |tally| tally.latency.count()),
        spread_us: (quantile(0.1), quantile(0.9)),
        flush_us: median(Method::strongest()),
        direct_us: median(Method::Direct),
        flushes_per_op: strongest.and_then(Tally::flushes),
        foreign_ratio: table.foreign_ratio(size),
        slope,
        dsync_us: median(Method::Dsync),
        weak_us: Method::weaker().and_then(median),
        cuts: None,
    }
}

fn medium(file_system: &str) -> Medium {
    match file_system {
        "tmpfs" | "ramfs" => Medium::Memory,
        _ => Medium::Unknown,
    }
}
