//! Selects the files that are hashed although no change of them was reported. Each has
//! its turn, so that a change that left no trace is found one day, and no generation is
//! late for it.

use std::time::Instant;

use super::index::Index;
use fsure_core::RelPath;

/// Bytes hashed in a second: about a twentieth of a core's time.
const RATE: f64 = (50 << 20) as f64;
/// Cost of a file in addition to its bytes, in bytes.
const EACH: u64 = 64 << 10;
/// A larger file would take a generation's time alone: it is hashed while it is
/// mapped, and at the end.
const LARGEST: u64 = 1 << 30;

/// State of the rotation through all files.
#[derive(Debug)]
pub(super) struct RehashRotation {
    /// The last one that had its turn.
    at: RelPath,
    since: Instant,
    credit: u64,
}

impl RehashRotation {
    pub(super) fn new(now: Instant) -> Self {
        Self { at: RelPath::root(), since: now, credit: 0 }
    }

    /// Those whose turn has come by now.
    pub(super) fn next(&mut self, index: &Index, now: Instant) -> Vec<RelPath> {
        let passed = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        self.credit = (self.credit + (passed * RATE) as u64).min(LARGEST + EACH);
        let mut taken = Vec::new();
        let mut behind = index.behind(&self.at);
        loop {
            let Some((path, entry)) = behind.next() else {
                // From the beginning next time: no file has two turns at once.
                self.at = RelPath::root();
                return taken;
            };
            if entry.is_file() && entry.facts.size <= LARGEST {
                let cost = entry.facts.size + EACH;
                if cost > self.credit {
                    return taken;
                }
                self.credit -= cost;
                taken.push(path.clone());
            }
            self.at = path.clone();
        }
    }
}
