//! Hard links: one inode is read once in a run, however many names it has.

use std::collections::HashMap;
use std::rc::Rc;

use fsure_os::Stat;

use super::read_request::ReadContent;
use fsure_core::AlgorithmSet;

/// Contents kept for further names, and the block values of all of them. A
/// tree of backups made of hard links has far more; those beyond it are read
/// again, which is slower and not wrong.
const KEPT_MAX: usize = 100_000;
const KEPT_BLOCKS_MAX: usize = 1_000_000;

/// An inode, and what was to be computed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LinkKey {
    device: u64,
    inode: u64,
    algorithms: u8,
}

impl LinkKey {
    /// The key of a file with further names; `None` where there are none.
    pub(super) fn of(stat: &Stat, algorithms: AlgorithmSet) -> Option<Self> {
        let key = Self { device: stat.device, inode: stat.inode, algorithms: algorithms.bits() };
        (stat.links > 1).then_some(key)
    }
}

/// The state of an inode with several names.
pub(super) enum HardLinkState {
    /// Its first name is being read; the orders that wait for it.
    Reading(Vec<u64>),
    /// Its content, and the number of its names that have not come by yet.
    Read(Rc<ReadContent>, u32),
    /// The storage does not respond for it.
    Silent,
}

/// The inodes with several names of this run.
#[derive(Default)]
pub(super) struct HardLinkCache {
    known: HashMap<LinkKey, HardLinkState>,
    kept: usize,
    kept_blocks: usize,
}

impl HardLinkCache {
    /// Returns the state of an inode, if it has one.
    pub(super) fn get(&mut self, key: &LinkKey) -> Option<&mut HardLinkState> {
        self.known.get_mut(key)
    }

    /// Notes that the first name of an inode is going to be read.
    pub(super) fn begin(&mut self, key: LinkKey) {
        self.known.insert(key, HardLinkState::Reading(Vec::new()));
    }

    /// Keeps the content of an inode for its further names, if it was read and
    /// there is space. Returns the orders that waited for it.
    pub(super) fn finish(&mut self, key: &LinkKey, content: Option<&Rc<ReadContent>>) -> Vec<u64> {
        let waiting = match self.known.remove(key) {
            Some(HardLinkState::Reading(waiting)) => waiting,
            _ => Vec::new(),
        };
        let has_space = |content: &&Rc<ReadContent>| {
            self.kept < KEPT_MAX && self.kept_blocks + content.blocks.len() <= KEPT_BLOCKS_MAX
        };
        if let Some(content) = content.filter(has_space) {
            let left = content.stat.links.saturating_sub(1 + waiting.len() as u32);
            if left > 0 {
                self.kept += 1;
                self.kept_blocks += content.blocks.len();
                self.known.insert(*key, HardLinkState::Read(Rc::clone(content), left));
            }
        }
        waiting
    }

    /// Notes that an inode is not available. Returns the orders that waited for it.
    pub(super) fn give_up(&mut self, key: &LinkKey) -> Vec<u64> {
        let waiting = self.finish(key, None);
        self.known.insert(*key, HardLinkState::Silent);
        waiting
    }

    /// Counts another name of an inode; drops the content with the last one.
    pub(super) fn pass(&mut self, key: &LinkKey) {
        if let Some(HardLinkState::Read(content, left)) = self.known.get_mut(key) {
            *left -= 1;
            if *left == 0 {
                self.kept -= 1;
                self.kept_blocks -= content.blocks.len();
                self.known.remove(key);
            }
        }
    }
}
