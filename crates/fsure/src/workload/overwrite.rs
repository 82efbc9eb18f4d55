//! Slots of 4 KiB in a file of fixed size that are written over and over: what a
//! database's data file or a ring does. The size never changes, so that `fsync`
//! and `fdatasync` owe the same.
//!
//! A drive writes sectors whole and not blocks: a slot of which the newest write
//! was under way may hold sectors of that and of the one before, which is not
//! damage; the older of them counts.

use std::path::Path;

use fsure_os::durable_write::{Method, Names, Writer};

use super::{AckWriter, LastIntact, read};
use fsure_core::units::SECTOR_BYTES;
use fsure_core::{IoContext as _, Result};
use fsure_powercut::{BLOCK, Stamp, Unstamped};

const SLOTS: u64 = 256;
const FILE: &str = "slots";

fn stamp(slot: u64, number: u64) -> Stamp {
    Stamp { run: [0; 16], file: 0, method: 0, offset: slot * BLOCK as u64, number }
}

pub(super) fn run(method: Method, folder: &Path, acks: &mut AckWriter<'_>) -> Result<()> {
    let path = folder.join(FILE);
    let writer = Writer::create(&path, method).context("make", &path)?;
    let mut block = [0; BLOCK];
    for slot in 0..SLOTS {
        stamp(slot, 0).fill(&mut block);
        writer.write(&block, slot * BLOCK as u64).context("write to", &path)?;
    }
    writer.flush_to_medium().context("flush", &path)?;
    let names = Names::open(folder).and_then(|names| names.flush());
    names.context("flush the folder", folder)?;
    for number in 1.. {
        let slot = (number - 1) % SLOTS;
        stamp(slot, number).fill(&mut block);
        writer.commit(&block, slot * BLOCK as u64).context("write to", &path)?;
        if acks.acknowledge(number).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn check(folder: &Path) -> LastIntact {
    let Some(data) = read(&folder.join(FILE))? else { return Ok(0) };
    let mut next = u64::MAX;
    for slot in 0..SLOTS {
        let start = (slot as usize * BLOCK).min(data.len());
        let block = &data[start..(start + BLOCK).min(data.len())];
        let oldest = oldest(block, slot)?;
        next = next.min(if oldest == 0 { slot + 1 } else { oldest + SLOTS });
    }
    Ok(next - 1)
}

/// The oldest write of which anything is left in a slot; 0: the first filling,
/// or not even that.
fn oldest(block: &[u8], slot: u64) -> LastIntact {
    let mut oldest = if block.len() == BLOCK { u64::MAX } else { 0 };
    for (place, sector) in (0..).zip(block.chunks(SECTOR_BYTES)) {
        let at = slot * BLOCK as u64 + place * SECTOR_BYTES as u64;
        let number = match Stamp::read(sector) {
            Ok(found) if found.offset != at => {
                let belongs = found.offset;
                return Err(format!("the data of byte {belongs} are at byte {at}"));
            }
            Ok(found) if found.number > 0 && (found.number - 1) % SLOTS != slot => {
                let number = found.number;
                return Err(format!(
                    "slot {slot} holds write {number}, which belongs to another slot"
                ));
            }
            Ok(found) => found.number,
            Err(Unstamped::Zero) => 0,
            Err(Unstamped::Foreign) => {
                return Err(format!("slot {slot} holds data that no write made, at byte {at}"));
            }
        };
        oldest = oldest.min(number);
    }
    Ok(oldest)
}
