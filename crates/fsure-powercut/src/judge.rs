//! Judges a cut: compares the record of the witness with what is there.
//!
//! Only what was acknowledged is owed. A write that is there without an acknowledgement
//! is not a fault, and neither is a later one in the place of an acknowledged one. An
//! acknowledgement that did not reach the witness makes the test weaker and never wrong.

use std::collections::BTreeMap;

use super::{BLOCK, Stamp, Unstamped};
use fsure_core::units::SECTOR_BYTES;

/// A write that was acknowledged, as the witness remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Stamp of what was written.
    pub stamp: Stamp,
    /// Milliseconds from the moment when the witness received the acknowledgement to the
    /// moment when it last received anything from the writer.
    pub age_ms: u64,
}

/// A block that was found after the cut.
#[derive(Clone, Copy, Debug)]
pub struct FoundBlock<'a> {
    /// The file, by number.
    pub file: u32,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Its content; shorter where the file ends.
    pub block: &'a [u8],
}

/// Kind of fault of an acknowledged write that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// An older version of the block is there, whole.
    Old,
    /// Nothing is there: zeros, or the file is shorter, or is gone.
    Lost,
    /// Sectors of two versions, or of one and something else.
    Torn,
    /// Something that belongs elsewhere.
    Misdirected,
}

/// Result of a cut for one method of making writes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Blocks for which a write was acknowledged.
    pub acknowledged: u64,
    /// Acknowledged blocks with an older version.
    pub old: u64,
    /// Acknowledged blocks with nothing there.
    pub lost: u64,
    /// Blocks that are torn.
    pub torn: u64,
    /// Blocks with something that belongs elsewhere.
    pub misdirected: u64,
    /// Blocks that are there and whose write was not acknowledged, which is not a fault.
    pub extra: u64,
    /// Faults of writes that were acknowledged before another which is there: the order
    /// was not kept.
    pub reordered: u64,
    /// Age of the oldest acknowledgement that does not hold, in milliseconds; `None` if
    /// all hold.
    pub oldest_ms: Option<u64>,
}

impl Judged {
    /// Returns the number of acknowledgements that do not hold.
    pub fn faults(&self) -> u64 {
        self.old + self.lost + self.torn + self.misdirected
    }
}

/// The judgement of a run, for each method by itself: of all acknowledged writes
/// the last of each block is owed. What is there is shown to it block by block, in
/// any order; what is not shown is lost.
#[derive(Debug)]
pub struct Judge {
    run: [u8; 16],
    owed: BTreeMap<(u32, u64), OwedWrite>,
    latest_there: u64,
    extra: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct OwedWrite {
    write: Acknowledged,
    fault: Option<Fault>,
}

impl Judge {
    /// Creates a judge that has not seen any block yet.
    pub fn new(run: [u8; 16], acknowledged: impl IntoIterator<Item = Acknowledged>) -> Self {
        let mut owed = BTreeMap::new();
        for write in acknowledged {
            let place = (write.stamp.file, write.stamp.offset);
            let first = || OwedWrite { write, fault: Some(Fault::Lost) };
            let last = owed.entry(place).or_insert_with(first);
            if write.stamp.number > last.write.stamp.number {
                last.write = write;
            }
        }
        Self { run, owed, latest_there: 0, extra: BTreeMap::new() }
    }

    /// Compares a block with what is owed.
    pub fn found(&mut self, block: FoundBlock<'_>) {
        let there = whole(self.run, block);
        let owed = self.owed.get_mut(&(block.file, block.offset));
        let number = owed.as_ref().map_or(0, |owed| owed.write.stamp.number);
        if let Some(stamp) = there.filter(|stamp| stamp.number > number) {
            *self.extra.entry(stamp.method).or_default() += 1;
        }
        let Some(owed) = owed else { return };
        owed.fault = look(self.run, &owed.write, block);
        if owed.fault.is_none() {
            self.latest_there = self.latest_there.max(number);
        }
    }

    /// Returns the result of each method, by its number.
    pub fn judged(self) -> BTreeMap<u32, Judged> {
        let mut judged = BTreeMap::<u32, Judged>::new();
        for owed in self.owed.values() {
            let entry = judged.entry(owed.write.stamp.method).or_default();
            entry.count(&owed.write, owed.fault, self.latest_there);
        }
        for (method, extra) in self.extra {
            judged.entry(method).or_default().extra = extra;
        }
        judged
    }
}

impl Judged {
    fn count(&mut self, write: &Acknowledged, fault: Option<Fault>, latest_there: u64) {
        self.acknowledged += 1;
        let Some(fault) = fault else { return };
        match fault {
            Fault::Old => self.old += 1,
            Fault::Lost => self.lost += 1,
            Fault::Torn => self.torn += 1,
            Fault::Misdirected => self.misdirected += 1,
        }
        self.reordered += u64::from(write.stamp.number < latest_there);
        self.oldest_ms = self.oldest_ms.max(Some(write.age_ms));
    }
}

/// Returns the stamp of a block if all of it is of one write that belongs there; `None`
/// otherwise.
fn whole(run: [u8; 16], found: FoundBlock<'_>) -> Option<Stamp> {
    let first = Stamp::read(found.block.get(..SECTOR_BYTES)?).ok()?;
    let belongs = Stamp { run, file: found.file, offset: found.offset, ..first };
    let is_whole = found.block.len() == BLOCK && first == belongs;
    let mut sectors = (0..).zip(found.block.chunks(SECTOR_BYTES));
    let is_of_first = |(place, sector): (u64, &[u8])| {
        let offset = first.offset + place * SECTOR_BYTES as u64;
        Stamp::read(sector) == Ok(Stamp { offset, ..first })
    };
    (is_whole && sectors.all(is_of_first)).then_some(first)
}

/// Returns the fault of a block; `None` if there is none.
fn look(run: [u8; 16], owed: &Acknowledged, found: FoundBlock<'_>) -> Option<Fault> {
    let mut versions = Vec::with_capacity(BLOCK / SECTOR_BYTES);
    let mut nothing = 0;
    for place in 0..BLOCK / SECTOR_BYTES {
        let sector = found.block.get(place * SECTOR_BYTES..(place + 1) * SECTOR_BYTES);
        let offset = found.offset + (place * SECTOR_BYTES) as u64;
        match sector.map_or(Err(Unstamped::Zero), Stamp::read) {
            Err(Unstamped::Zero) => nothing += 1,
            // Half a sector that was not written whole, or one of another run.
            Err(Unstamped::Foreign) => return Some(Fault::Torn),
            Ok(stamp) if stamp.run != run => nothing += 1,
            Ok(stamp) if (stamp.file, stamp.offset) != (found.file, offset) => {
                return Some(Fault::Misdirected);
            }
            Ok(stamp) => versions.push(stamp.number),
        }
    }
    let oldest = versions.iter().min().copied();
    match oldest {
        None => Some(Fault::Lost),
        Some(_) if nothing > 0 => Some(Fault::Torn),
        // A later write that was not acknowledged may be torn, and older than
        // what is owed is nothing.
        Some(oldest) if oldest >= owed.stamp.number => None,
        Some(oldest) if versions.iter().all(|number| *number == oldest) => Some(Fault::Old),
        Some(_) => Some(Fault::Torn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: [u8; 16] = [1; 16];

    fn stamp(place: u64, number: u64) -> Stamp {
        Stamp { run: RUN, file: 1, method: 5, offset: place * BLOCK as u64, number }
    }

    fn block(stamp: Stamp) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        stamp.fill(&mut block);
        block
    }

    /// Ten blocks, each written twice: write 1 to 10, then 11 to 20, all
    /// acknowledged, one per millisecond.
    fn acknowledged() -> Vec<Acknowledged> {
        let writes = (1..=20_u64).map(|number| stamp((number - 1) % 10, number));
        writes.map(|stamp| Acknowledged { stamp, age_ms: 20 - stamp.number }).collect()
    }

    /// Returns the result after `spoil` was done to the blocks.
    fn after(spoil: impl FnOnce(&mut Vec<Vec<u8>>)) -> Judged {
        let mut blocks: Vec<_> = (0..10).map(|place| block(stamp(place, place + 11))).collect();
        spoil(&mut blocks);
        let mut judge = Judge::new(RUN, acknowledged());
        for (place, block) in (0..).zip(&blocks) {
            judge.found(FoundBlock { file: 1, offset: place * BLOCK as u64, block });
        }
        judge.judged()[&5]
    }

    #[test]
    fn what_is_there_is_owed_no_more() {
        let all = Judged { acknowledged: 10, ..Judged::default() };
        assert_eq!(after(|_| {}), all);
        let later = after(|blocks| blocks[3] = block(stamp(3, 99)));
        assert_eq!(later, Judged { extra: 1, ..all }, "a later one is there");
        let more = after(|blocks| blocks.push(block(stamp(10, 99))));
        assert_eq!(more, Judged { extra: 1, ..all }, "and one that nobody heard of");
        let torn_later = |blocks: &mut Vec<Vec<u8>>| {
            let later = block(stamp(3, 99));
            blocks[3][..1024].copy_from_slice(&later[..1024]);
        };
        assert_eq!(after(torn_later), all, "one that nobody acknowledged may be torn");
    }

    #[test]
    fn each_fault_is_distinguished_from_the_others() {
        let one = |spoil: &dyn Fn(&mut Vec<Vec<u8>>)| after(|blocks| spoil(blocks));
        let old = one(&|blocks| blocks[0] = block(stamp(0, 1)));
        assert_eq!((old.old, old.reordered, old.oldest_ms), (1, 1, Some(9)));
        let last = one(&|blocks| blocks[9] = block(stamp(9, 10)));
        assert_eq!((last.old, last.reordered, last.oldest_ms), (1, 0, Some(0)));
        let zero = one(&|blocks| blocks[4].fill(0));
        assert_eq!((zero.lost, zero.faults()), (1, 1));
        let short = one(&|blocks| blocks.truncate(7));
        assert_eq!((short.lost, short.reordered, short.oldest_ms), (3, 0, Some(2)));
        let torn = one(&|blocks| {
            let before = block(stamp(2, 3));
            blocks[2][512..1024].copy_from_slice(&before[512..1024]);
        });
        assert_eq!((torn.torn, torn.faults()), (1, 1));
        let half = one(&|blocks| blocks[2][700..].fill(0));
        assert_eq!((half.torn, half.faults()), (1, 1));
        let elsewhere = one(&|blocks| blocks[2] = block(stamp(7, 18)));
        assert_eq!((elsewhere.misdirected, elsewhere.faults()), (1, 1));
        let other_run = one(&|blocks| {
            blocks[2] = block(Stamp { run: [9; 16], ..stamp(2, 13) });
        });
        assert_eq!((other_run.lost, other_run.faults()), (1, 1));
    }

    #[test]
    fn each_method_is_judged_by_itself() {
        let other = Acknowledged { stamp: Stamp { method: 6, ..stamp(77, 50) }, age_ms: 1 };
        let writes = acknowledged().into_iter().chain([other]);
        let judged = Judge::new(RUN, writes).judged();
        assert_eq!((judged[&5].lost, judged[&6].lost), (10, 1));
    }
}
