//! Finds the sizes that several files have. A file whose size is unique is
//! equal to no other, so that a search for equal files need not read it. The
//! memory is fixed: two bits for each of 2^25 places that sizes are hashed to,
//! and two sizes in one place cost no more than a file read in vain.

use std::sync::Arc;

use fsure_os::Kind;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::Root;

use crate::model::ScanMonitor;
use crate::tree::{Walk, WalkEvent, WalkOptions};
use fsure_core::{Error, Result};

const PLACE_BITS: u32 = 25;

/// The sizes that at least two files have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeFilter {
    once: Vec<u64>,
    again: Vec<u64>,
}

impl SizeFilter {
    /// Collects the sizes of all files of a walk.
    pub fn of(root: &Arc<Root>, walk: &WalkOptions, monitor: &dyn ScanMonitor) -> Result<Self> {
        let mut options = walk.clone();
        options.borders.places = LocateFiles::No;
        let mut sizes = Self::none();
        for step in Walk::start(Arc::clone(root), options)? {
            if let Some(code) = monitor.stop_requested() {
                return Err(Error::Interrupted(code));
            }
            if let WalkEvent::Entry(_, stat, _) = step?
                && stat.kind == Kind::File
            {
                sizes.add(stat.size);
            }
        }
        Ok(sizes)
    }

    fn none() -> Self {
        let places = vec![0; 1 << (PLACE_BITS - u64::BITS.ilog2())];
        Self { once: places.clone(), again: places }
    }

    fn add(&mut self, size: u64) {
        let (word, bit) = place(size);
        self.again[word] |= self.once[word] & bit;
        self.once[word] |= bit;
    }

    /// Returns true if another file might have that size; `false` is certain.
    /// Empty files are equal without being read, and count as not shared.
    pub fn may_be_shared(&self, size: u64) -> bool {
        let (word, bit) = place(size);
        size > 0 && self.again[word] & bit != 0
    }
}

/// A word and a bit in it. The factor spreads sizes that are alike (2^64 by the
/// golden ratio).
fn place(size: u64) -> (usize, u64) {
    let place = size.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS);
    ((place / u64::from(u64::BITS)) as usize, 1 << (place % u64::from(u64::BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_was_met_twice_is_shared_and_few_others_are() {
        let mut sizes = SizeFilter::none();
        for size in (0..20_000).map(|number| number * 4096) {
            sizes.add(size);
        }
        for size in (0..1_000).map(|number| number * 4096) {
            sizes.add(size);
        }
        assert!((1..1_000).all(|number| sizes.may_be_shared(number * 4096)));
        assert!(!sizes.may_be_shared(0));
        let in_vain = (1_000..20_000).filter(|number| sizes.may_be_shared(number * 4096)).count();
        assert!(in_vain < 200, "{in_vain}");
    }
}
