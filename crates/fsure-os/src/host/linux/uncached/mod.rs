//! A command in a memory control group of its own. See [`crate::uncached`].

mod group;
mod keeper;

use std::io;
use std::os::unix::process::CommandExt as _;

use super::foreground::ForegroundCommand;
use super::memory_cgroup::hierarchy;
use super::memory_info::value;
use crate::uncached::{Failure, Options, Transferred, Uncached};
use group::Group;
use keeper::Keeper;

pub(crate) use keeper::keep;

pub(crate) fn run(options: &Options) -> Result<Uncached, Failure> {
    let hierarchy = hierarchy().map_err(Failure::Refused)?;
    let is_delegable = hierarchy.is_delegable();
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::Denied { error, is_delegable },
        _ => Failure::Refused(error),
    };
    let (mut group, home) = Group::create(hierarchy).map_err(refused)?;
    let bounded = group.bound(options.cache);
    let keeper = bounded.and_then(|_| Keeper::begin(&options.keeper, &group, options.cache));
    let mut keeper = keeper.inspect_err(|_| drop(group.remove())).map_err(Failure::Refused)?;
    // The command's own error is another one than that of a group that takes no process.
    let entry = match group.try_entry(keeper.process(), &home).and_then(|()| group.entry()) {
        Ok(entry) => entry,
        Err(error) => {
            // It might be in the group, which it would then never see empty.
            keeper.kill();
            let _ = group.remove();
            return Err(refused(error));
        }
    };
    let before = Counters::read(&group);
    let started = ForegroundCommand::start(&options.command, |command| {
        // SAFETY: between fork and exec only a system call is made.
        unsafe { command.pre_exec(move || Ok(rustix::io::write(&entry, b"0").map(drop)?)) };
    });
    let end = started.map_err(Failure::NotStarted)?.wait().map_err(Failure::Lost)?;
    let after = Counters::read(&group);
    let left = group.processes().map_err(Failure::Lost)?;
    let (peak, stalled) = (group.peak(), group.stalled());
    let kept = match left {
        0 => group.give_back(),
        _ => group.charged().map(|charged| charged.cache),
    };
    let kept = kept.map_err(Failure::Lost)?;
    let bounded = !keeper.has_ended();
    if left == 0 {
        keeper.dismiss();
        // The keeper has, unless it was killed.
        let _ = group.remove();
    }
    Ok(Uncached {
        end,
        bounded,
        kept,
        left,
        evicted: after.evicted.saturating_sub(before.evicted),
        outer_limit_hits: after.outer_limit_hits.saturating_sub(before.outer_limit_hits),
        peak,
        stalled,
        io: before.io.zip(after.io).map(|(before, after)| since(before, after)),
    })
}

/// Counters that only grow.
struct Counters {
    /// Bytes that were taken back because memory was short, on the whole machine. What a control
    /// group takes back because of its own limit is not counted there.
    evicted: u64,
    outer_limit_hits: u64,
    io: Option<Transferred>,
}

impl Counters {
    fn read(group: &Group) -> Self {
        let table = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let pages = ["pgsteal_kswapd ", "pgsteal_direct ", "pgsteal_khugepaged "];
        let pages: u64 = pages.iter().filter_map(|name| value(&table, name)).sum();
        let evicted = pages.saturating_mul(rustix::param::page_size() as u64);
        Self { evicted, outer_limit_hits: group.outer_limit_hits(), io: transferred() }
    }
}

/// Bytes of this process and of all children that it has waited for, with theirs.
fn transferred() -> Option<Transferred> {
    let table = std::fs::read_to_string("/proc/self/io").ok()?;
    Some(Transferred {
        read: value(&table, "rchar: ")?,
        written: value(&table, "wchar: ")?,
        read_from_storage: value(&table, "read_bytes: ")?,
        written_to_storage: value(&table, "write_bytes: ")?,
    })
}

fn since(before: Transferred, after: Transferred) -> Transferred {
    Transferred {
        read: after.read.saturating_sub(before.read),
        written: after.written.saturating_sub(before.written),
        read_from_storage: after.read_from_storage.saturating_sub(before.read_from_storage),
        written_to_storage: after.written_to_storage.saturating_sub(before.written_to_storage),
    }
}
