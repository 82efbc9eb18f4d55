//! Converts what was measured to the facts that the rules of the verdict need.

use fsure_os::durable_write::Method;
use fsure_os::storage_stack::{self, Stack};

use super::methods::Table;
use super::time_slice::SliceStats;
use crate::flush_verdict::{FlushFacts, Medium, WriteCache};

/// All facts about a place, given the layers below it before it was measured and
/// after.
pub(super) fn of(
    (stack, after): (&Stack, &Stack),
    file_system: &str,
    table: &Table,
    size: usize,
    slope: Vec<(u64, f64)>,
) -> FlushFacts {
    let strongest = table.of(Method::strongest());
    let quantile = |share| strongest.map_or(0.0, |tally| tally.latency.quantile_us(share));
    let median = |method| table.of(method).map(|tally: &SliceStats| tally.latency.quantile_us(0.5));
    FlushFacts {
        medium: medium(stack),
        file_system: judged_file_system(stack, file_system).to_owned(),
        write_cache: stack.is_write_back.map(|is_back| match is_back {
            true => WriteCache::Back,
            false => WriteCache::Through,
        }),
        write_cache_changed: stack.is_write_back != after.is_write_back,
        held_by_loop: stack.held_by_loop().map(str::to_owned),
        drive_cache_on: stack.drive_cache_on,
        count: strongest.map_or(0, |tally| tally.latency.count()),
        spread_us: (quantile(0.1), quantile(0.9)),
        flush_us: median(Method::strongest()),
        direct_us: median(Method::Direct),
        flushes_per_op: strongest.and_then(SliceStats::flushes),
        foreign_ratio: table.foreign_ratio(size),
        slope,
        dsync_us: median(Method::Dsync),
        weak_us: Method::weaker().and_then(median),
        backup_power: None,
        cuts: None,
    }
}

/// Returns the kind of the file system by which a flush is judged. Where there is no drive, that is
/// the one that has none: not ext4 on a loop device whose file is in FUSE, but FUSE.
fn judged_file_system<'a>(stack: &'a Stack, own: &'a str) -> &'a str {
    match stack.medium {
        storage_stack::Medium::Remote | storage_stack::Medium::Memory => {
            stack.lowest_file_system().unwrap_or(own)
        }
        _ => own,
    }
}

/// Converts to the type of the layer that knows no system.
fn medium(stack: &Stack) -> Medium {
    match stack.medium {
        storage_stack::Medium::Nvme => Medium::Nvme,
        storage_stack::Medium::Solid => Medium::Ssd,
        storage_stack::Medium::Heads => Medium::Hdd,
        storage_stack::Medium::Virtual => Medium::Virtual,
        storage_stack::Medium::Loop => Medium::Loop,
        storage_stack::Medium::Remote => Medium::Remote,
        storage_stack::Medium::Memory => Medium::Memory,
        storage_stack::Medium::Unknown => Medium::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use fsure_os::storage_stack::StorageLayer;

    use super::*;

    #[test]
    fn a_file_system_without_a_drive_is_named_and_not_the_one_on_its_loop_device() {
        let layer = |kind, name: &str| StorageLayer { kind, name: name.to_owned(), facts: vec![] };
        let stack = |medium, lower: &str| Stack {
            layers: vec![
                layer("file system", "ext4"),
                layer("loop", "loop3"),
                layer("file system", lower),
            ],
            medium,
            is_write_back: None,
            drive_cache_on: None,
        };
        for (medium, lower, judged) in [
            (storage_stack::Medium::Remote, "fuse.bindfs", "fuse.bindfs"),
            (storage_stack::Medium::Memory, "tmpfs", "tmpfs"),
            (storage_stack::Medium::Loop, "btrfs", "ext4"),
        ] {
            assert_eq!(judged_file_system(&stack(medium, lower), "ext4"), judged);
        }
        let bare = Stack { layers: vec![], ..stack(storage_stack::Medium::Memory, "") };
        assert_eq!(judged_file_system(&bare, "tmpfs"), "tmpfs");
    }
}
