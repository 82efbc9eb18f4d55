//! A command in a memory control group of its own. See [`crate::uncached`].

mod group;
mod keeper;

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;
use std::time::Instant;

use super::memory_cgroup::hierarchy;
use super::signal_forward::Relay;
use crate::uncached::{Failure, Options, Transferred, Uncached};
use group::Group;
use keeper::Keeper;

pub(crate) use keeper::keep;

pub(crate) fn run(options: &Options) -> Result<Uncached, Failure> {
    let [name, arguments @ ..] = &options.command[..] else {
        return Err(Failure::NotStarted(io::ErrorKind::InvalidInput.into()));
    };
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
    // What cannot be moved is to be told from what cannot be executed.
    let entry = group.try_entry(keeper.process(), &home).and_then(|()| group.entry());
    let entry = entry.map_err(refused)?;
    let mut command = Command::new(name);
    command.args(arguments);
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(move || Ok(rustix::io::write(&entry, b"0").map(drop)?)) };
    let before = Counters::read();
    let began = Instant::now();
    let relay = Relay::begin();
    let mut child = command.spawn().map_err(Failure::NotStarted)?;
    let status = relay.wait(&mut child).map_err(Failure::Lost)?;
    let elapsed = began.elapsed();
    let after = Counters::read();
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
        exit: status.code().and_then(|code| u8::try_from(code).ok()),
        signal: status.signal(),
        elapsed,
        bounded,
        kept,
        left,
        evicted: after.evicted.saturating_sub(before.evicted),
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
    io: Option<Transferred>,
}

impl Counters {
    fn read() -> Self {
        let table = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let pages = ["pgsteal_kswapd ", "pgsteal_direct ", "pgsteal_khugepaged "];
        let pages: u64 = pages.iter().filter_map(|name| value(&table, name)).sum();
        let evicted = pages.saturating_mul(rustix::param::page_size() as u64);
        Self { evicted, io: transferred() }
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

/// The number behind a name at the beginning of a line.
fn value(table: &str, name: &str) -> Option<u64> {
    table.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}
