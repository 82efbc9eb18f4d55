//! Checks whether a RAM folder has space and whether the machine has memory. If memory
//! runs out, the folder goes back to the disk before the kernel kills a process for it.
//! The size of the folder is set by [`super::auto_size`].

use fsure_os::control_socket::{AT_ONCE, ask};
use fsure_os::memory_info::{Pressure, memory, pressure};
use fsure_os::overmount;

use super::auto_size::Use;
use super::auto_size::reserve;
use super::protocol::{Request, Response, line};
use super::registry::{Registry, RegistryEntry, Role};
use super::run_memory::RamFolders;
use fsure_core::units::size;

/// Action that a folder needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing, and nothing that was reported before is the case any more.
    Nothing,
    /// Nothing new: it is between the limits at which something is reported and is over.
    Unchanged,
    /// To say that it is nearly full.
    Full { words: String },
    /// To take it out of RAM.
    Evict { words: String },
}

/// Fuller than this it is nearly full: nine tenths.
const NEARLY_FULL_SHARE: (u64, u64) = (9, 10);
/// A warning that it is nearly full is over below eight tenths: use that goes up and down by
/// a little would be reported again and again.
const NEARLY_FULL_END_SHARE: (u64, u64) = (8, 10);

/// Returns the action that a folder needs now, given its own space and the memory of the
/// machine.
pub(super) fn need(registry: &Registry, entry: &RegistryEntry, others: RamFolders) -> Need {
    let memory = memory();
    let (Some(available), Some(total)) = (memory.available, memory.total) else {
        return Need::Nothing;
    };
    let Ok(mut space) = overmount::space(&entry.path) else { return Need::Nothing };
    if let Some(least) = entry.least {
        // The limit moves on when it is nearly reached; the share does not.
        let used = Use {
            bytes: space.used,
            names: space.inodes_used,
            others,
            available,
            reserve: reserve(total),
        };
        let most = used.most(least);
        (space.bytes, space.inodes) = (most.bytes, most.names);
    }
    match judge(&space, available, reserve(total), pressure()) {
        // Of several the one that does least goes, and then the next one.
        Need::Evict { .. } if !is_least(registry, entry) => Need::Unchanged,
        Need::Full { words } if !entry.backend.grows() => Need::Evict {
            words: format!("out of RAM: {words}, and {} cannot grow", entry.backend.name()),
        },
        Need::Full { words } => {
            let why = match entry.least {
                Some(_) => "that is its share of the memory",
                None => "that size was given",
            };
            Need::Full {
                words: format!(
                    "{words}, and {why}: further writes fail with 'no space left on device'"
                ),
            }
        }
        other => other,
    }
}

/// All wait for memory for so much of the time, in percent: a machine that swaps or
/// reads its programs again and again has too little, whatever it counts as free.
const STALLED: f64 = 10.0;

fn judge(
    space: &overmount::FsSpace,
    available: u64,
    reserve: u64,
    pressure: Option<Pressure>,
) -> Need {
    let stalls = pressure.is_some_and(|pressure| pressure.full >= STALLED);
    // Half of what was left alone is gone, or any of it and it is felt.
    if available < reserve / 2 || available < reserve && stalls {
        let words = format!(
            "out of RAM: only {} of memory are available, and {} are reserved for other programs",
            size(available),
            size(reserve)
        );
        return Need::Evict { words };
    }
    let is_beyond = |(part, of): (u64, u64), used: u64, all: u64| used > all / of * part;
    let is_full = |used, all| is_beyond(NEARLY_FULL_SHARE, used, all);
    if !is_full(space.used, space.bytes) && !is_full(space.inodes_used, space.inodes) {
        let is_over = available >= reserve
            && !is_beyond(NEARLY_FULL_END_SHARE, space.used, space.bytes)
            && !is_beyond(NEARLY_FULL_END_SHARE, space.inodes_used, space.inodes);
        return if is_over { Need::Nothing } else { Need::Unchanged };
    }
    let words = match is_full(space.used, space.bytes) {
        true => format!("{} of {} are taken", size(space.used), size(space.bytes)),
        false => format!("{} of {} names are taken", space.inodes_used, space.inodes),
    };
    Need::Full { words }
}

/// The kinds of need that were reported and are not over. Their words have figures that change
/// each second: reported each time, they would drive everything else out of the list of what
/// was reported.
#[derive(Debug, Default)]
pub(super) struct ReportedNeeds {
    is_full: bool,
    is_evicted: bool,
}

impl ReportedNeeds {
    /// Returns the words of a need if it is to be reported now.
    pub(super) fn words<'a>(&mut self, need: &'a Need) -> Option<&'a str> {
        let (was_reported, words) = match need {
            Need::Nothing => {
                *self = Self::default();
                return None;
            }
            Need::Unchanged => return None,
            Need::Full { words } => (&mut self.is_full, words),
            Need::Evict { words } => (&mut self.is_evicted, words),
        };
        (!std::mem::replace(was_reported, true)).then_some(words)
    }
}

/// Returns true if no other RAM folder has had fewer changes.
fn is_least(registry: &Registry, entry: &RegistryEntry) -> bool {
    let changes = |entry: &RegistryEntry| {
        registry.process(&entry.id, Role::Worker)?;
        // One that is stopped would stop this one, too, just when memory is short.
        let socket = registry.control(&entry.id);
        let answer = ask(&socket, &line(&Request::Status), Some(AT_ONCE)).ok()?;
        match serde_json::from_str(&answer).ok()? {
            Response::Status(state) => Some((state.changed, entry.id.clone())),
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
    use fsure_core::units::MIB;
    use fsure_os::overmount::FsSpace;

    #[test]
    fn a_full_folder_is_reported_and_goes_when_there_is_no_memory() {
        let space =
            |used, inodes_used| FsSpace { bytes: 100 * MIB, used, inodes: 1000, inodes_used };
        let stalled = Some(Pressure { some: 90.0, full: 50.0 });
        let under = |pressure, available| judge(&space(0, 0), available * MIB, 100 * MIB, pressure);
        assert!(matches!(under(stalled, 99), Need::Evict { .. }));
        assert_eq!(under(stalled, 101), Need::Nothing);
        let judge = |space, available| judge(&space, available * MIB, 100 * MIB, None);
        assert_eq!(judge(space(90 * MIB, 900), 1000), Need::Unchanged);
        assert_eq!(judge(space(80 * MIB, 800), 1000), Need::Nothing);
        assert_eq!(judge(space(80 * MIB, 800), 99), Need::Unchanged);
        let Need::Full { words } = judge(space(91 * MIB, 0), 1000) else { panic!() };
        assert_eq!(words, "91.0 MiB of 100.0 MiB are taken");
        let Need::Full { words } = judge(space(0, 901), 1000) else { panic!() };
        assert_eq!(words, "901 of 1000 names are taken");
        assert_eq!(judge(space(0, 0), 50), Need::Unchanged);
        assert!(matches!(judge(space(0, 0), 49), Need::Evict { .. }));
    }

    #[test]
    fn memory_pressure_is_reported_once_until_it_ends() {
        let mut reported = ReportedNeeds::default();
        let full = |words: &str| Need::Full { words: words.to_owned() };
        let evict = |words: &str| Need::Evict { words: words.to_owned() };
        assert_eq!(reported.words(&full("91 of 100")), Some("91 of 100"));
        assert_eq!(reported.words(&full("92 of 100")), None);
        assert_eq!(reported.words(&Need::Unchanged), None);
        assert_eq!(reported.words(&full("91 of 100")), None);
        assert_eq!(reported.words(&evict("99 left")), Some("99 left"));
        assert_eq!(reported.words(&full("91 of 100")), None);
        assert_eq!(reported.words(&evict("98 left")), None);
        assert_eq!(reported.words(&Need::Nothing), None);
        assert_eq!(reported.words(&full("95 of 100")), Some("95 of 100"));
    }
}
