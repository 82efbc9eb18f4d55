//! Whether a RAM folder has room, and whether the machine has: it goes back to the
//! disk before the kernel kills something for it.

use fsure_os::control::{AT_ONCE, ask};
use fsure_os::memory::{Pressure, memory, pressure};
use fsure_os::ramfs;

use super::preflight::reserve;
use super::registry::{Entry, Registry, Role};
use super::told::{Answer, Request, line};
use crate::words::units::size;
use crate::words::{IoContext as _, Result};

/// What is to be done.
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// To have it be larger.
    Room { bytes: u64, inodes: u64 },
    /// To say that it is full and that there is no more.
    Full { words: String },
    /// To take it out of RAM.
    Evict { words: String },
}

/// Fuller than this it grows: nine tenths.
const FULL: (u64, u64) = (9, 10);
/// By half.
const GROWTH: (u64, u64) = (3, 2);

/// What a folder and the machine need now.
pub(super) fn need(registry: &Registry, entry: &Entry) -> Need {
    let memory = memory();
    let (Some(available), Some(total)) = (memory.available, memory.total) else {
        return Need::Nothing;
    };
    let Ok(room) = ramfs::room(&entry.path) else { return Need::Nothing };
    let need = judge(&room, available, reserve(total), pressure());
    match need {
        // Of several the one that does least goes, and then the next one.
        Need::Evict { .. } if !is_least(registry, entry) => Need::Nothing,
        Need::Room { .. } | Need::Full { .. } if !entry.backend.grows() => Need::Evict {
            words: format!(
                "out of RAM: {} of {} are taken, and {} does not grow",
                size(room.used),
                size(room.bytes),
                entry.backend.name()
            ),
        },
        other => other,
    }
}

/// All wait for memory for so much of the time, in percent: a machine that swaps or
/// reads its programs again and again has too little, whatever it counts as free.
const STALLED: f64 = 10.0;

fn judge(room: &ramfs::Room, available: u64, reserve: u64, pressure: Option<Pressure>) -> Need {
    let stalls = pressure.is_some_and(|pressure| pressure.full >= STALLED);
    // Half of what was left alone is gone, or any of it and it is felt.
    if available < reserve / 2 || available < reserve && stalls {
        let words = format!(
            "out of RAM: only {} of memory are to be had, {} are left for others",
            size(available),
            size(reserve)
        );
        return Need::Evict { words };
    }
    let is_full = |used: u64, all: u64| used > all / FULL.1 * FULL.0;
    let has_bytes = !is_full(room.used, room.bytes);
    if has_bytes && !is_full(room.inodes_used, room.inodes) {
        return Need::Nothing;
    }
    let grown = |all: u64| all / GROWTH.1 * GROWTH.0;
    let bytes = if has_bytes { room.bytes } else { grown(room.bytes).next_multiple_of(4096) };
    let inodes =
        if is_full(room.inodes_used, room.inodes) { grown(room.inodes) } else { room.inodes };
    if bytes - room.bytes > available.saturating_sub(reserve) {
        let words = format!(
            "{} of {} are taken, and there is no memory to have it be larger",
            size(room.used),
            size(room.bytes)
        );
        return Need::Full { words };
    }
    Need::Room { bytes, inodes }
}

/// Has it be larger, now and when it is taken over.
pub(super) fn grow(entry: &mut Entry, registry: &Registry, room: (u64, u64)) -> Result<()> {
    ramfs::reconfigure(&entry.path, room.0, room.1).doing("enlarge", &entry.path)?;
    (entry.bytes, entry.inodes) = room;
    registry.put(entry)
}

/// Whether no other RAM folder has had fewer changes.
fn is_least(registry: &Registry, entry: &Entry) -> bool {
    let changes = |entry: &Entry| {
        registry.process(&entry.id, Role::Worker)?;
        // One that is stopped would stop this one, too, just when memory is short.
        let socket = registry.control(&entry.id);
        let answer = ask(&socket, &line(&Request::Status), Some(AT_ONCE)).ok()?;
        match serde_json::from_str(&answer).ok()? {
            Answer::Status(state) => Some((state.changed, entry.id.clone())),
            _ => None,
        }
    };
    let Some(own) = changes(entry) else { return true };
    let others = registry.entries().unwrap_or_default();
    others.iter().filter(|other| other.id != entry.id).filter_map(changes).all(|other| own <= other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::units::MIB;
    use fsure_os::ramfs::Room;

    #[test]
    fn a_full_folder_grows_while_there_is_memory_and_goes_when_there_is_none() {
        let room = |used, inodes_used| Room { bytes: 100 * MIB, used, inodes: 1000, inodes_used };
        let stalled = Some(Pressure { some: 90.0, full: 50.0 });
        let under = |pressure, available| judge(&room(0, 0), available * MIB, 100 * MIB, pressure);
        assert!(matches!(under(stalled, 99), Need::Evict { .. }));
        assert!(matches!(under(stalled, 101), Need::Nothing));
        let judge = |room, available| judge(&room, available * MIB, 100 * MIB, None);
        assert!(matches!(judge(room(90 * MIB, 900), 1000), Need::Nothing));
        let Need::Room { bytes, inodes } = judge(room(91 * MIB, 0), 1000) else { panic!() };
        assert_eq!((bytes, inodes), (150 * MIB, 1000));
        let Need::Room { bytes, inodes } = judge(room(0, 901), 1000) else { panic!() };
        assert_eq!((bytes, inodes), (100 * MIB, 1500));
        assert!(matches!(judge(room(91 * MIB, 0), 149), Need::Full { .. }));
        assert!(matches!(judge(room(0, 0), 50), Need::Nothing));
        assert!(matches!(judge(room(0, 0), 49), Need::Evict { .. }));
    }
}
