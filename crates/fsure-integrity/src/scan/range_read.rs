//! Reading a stretch of one file block by block: holes without I/O, a bad
//! sector at the price of its own few bytes and never of the file.

use std::io;
use std::ops::Range;

use fsure_os::read::OpenFile;

use super::reader_context::{ReadAbort, ReaderContext};
use crate::model::{ByteRange, push_range};
use fsure_core::block_hash::BLOCK;

/// Failed reads spent on finding the bad bytes of one stretch. A dying disk
/// takes seconds for each; blocks that fail after that are unreadable whole.
const NARROWING_FAILURES_MAX: u32 = 64;

/// The result of reading a stretch, besides its blocks.
#[derive(Debug)]
pub(super) struct RangeReport {
    /// Bytes that could not be read, in order, adjacent ranges merged.
    pub(super) unreadable: Vec<ByteRange>,
    /// The system's error for the first of them.
    pub(super) error: Option<io::Error>,
    /// A read failed and a second one did not.
    pub(super) needed_second_read: bool,
    failures_left: u32,
}

impl Default for RangeReport {
    fn default() -> Self {
        Self {
            unreadable: Vec::new(),
            error: None,
            needed_second_read: false,
            failures_left: NARROWING_FAILURES_MAX,
        }
    }
}

/// One stretch of a file.
pub(super) struct RangeRead<'a> {
    pub(super) source: &'a OpenFile,
    /// Starts at a block, ends at a block or at the end of the file.
    pub(super) range: Range<u64>,
    pub(super) size: u64,
    pub(super) has_holes: bool,
}

impl RangeRead<'_> {
    /// Reads the stretch in order and gives `take` every block's number and
    /// its content, or `None` where some of it cannot be read.
    pub(super) fn read(
        &self,
        context: &mut ReaderContext,
        report: &mut RangeReport,
        take: &mut dyn FnMut(u64, Option<&[u8]>),
    ) -> Result<(), ReadAbort> {
        let mut data = if self.has_holes { 0..0 } else { 0..self.size };
        let mut offset = self.range.start;
        while offset < self.range.end {
            if context.meter().is_stopped() {
                return Err(ReadAbort::Stopped);
            }
            // From memory, a piece that stays in the processor's cache between
            // copying and hashing; from the medium, what saturates it.
            let chunk = if self.source.is_in_memory() { BLOCK } else { context.shared.chunk };
            let end = (offset + chunk).min(self.range.end);
            if offset >= data.end {
                // A file system that cannot say has data everywhere.
                let next = self.source.next_data(offset, self.size);
                data = match next.unwrap_or(Some((offset, self.size))) {
                    Some((start, end)) => start..end,
                    None => self.size..self.size,
                };
            }
            if end <= data.start {
                take_hole(context, offset..end, take);
            } else {
                self.take_chunk(context, offset..end, report, take)?;
            }
            offset = end;
        }
        Ok(())
    }

    fn take_chunk(
        &self,
        context: &mut ReaderContext,
        range: Range<u64>,
        report: &mut RangeReport,
        take: &mut dyn FnMut(u64, Option<&[u8]>),
    ) -> Result<(), ReadAbort> {
        if self.fill(context, &range)?.is_ok() {
            for block in blocks_of(&range) {
                let from = (block.start - range.start) as usize;
                let content = &context.buffer[from..from + (block.end - block.start) as usize];
                take(block.start / BLOCK, Some(content));
                context.meter().count_hashed(content.len());
            }
            return Ok(());
        }
        let mut all_came_at_once = true;
        for block in blocks_of(&range) {
            let length = (block.end - block.start) as usize;
            let came_at_once = self.fill(context, &block)?.is_ok();
            let came = came_at_once || self.retry_block(context, &block, report)?;
            take(block.start / BLOCK, came.then(|| &context.buffer[..length]));
            all_came_at_once &= came_at_once;
            context.meter().count_hashed(length);
        }
        // The chunk failed and each of its blocks did not.
        report.needed_second_read |= all_came_at_once;
        Ok(())
    }

    /// Reads a block that failed a second time, then finds the bad bytes in it.
    /// Returns true if it could be read after all.
    fn retry_block(
        &self,
        context: &mut ReaderContext,
        block: &Range<u64>,
        report: &mut RangeReport,
    ) -> Result<bool, ReadAbort> {
        let mut got = self.fill(context, block)?;
        if let Err(error) = got {
            let mut bad = Vec::new();
            self.narrow(context, block.clone(), &mut report.failures_left, &mut bad)?;
            // All of its pieces came: then it must come as a whole as well.
            got = if bad.is_empty() { self.fill(context, block)? } else { Err(error) };
            if got.is_err() && bad.is_empty() {
                bad.push(block.clone());
            }
            for range in bad {
                push_range(&mut report.unreadable, range);
            }
        }
        report.needed_second_read |= got.is_ok();
        let came = got.is_ok();
        if let Err(error) = got {
            report.error.get_or_insert(error);
        }
        Ok(came)
    }

    /// Reads a range to the start of the buffer. The outer error is for what
    /// ends the stretch, the inner for what the medium says.
    fn fill(
        &self,
        context: &mut ReaderContext,
        range: &Range<u64>,
    ) -> Result<io::Result<()>, ReadAbort> {
        let wanted = (range.end - range.start) as usize;
        context.wait_for_rate(range.end - range.start)?;
        match self.source.read_at(&mut context.buffer, range.start, wanted) {
            Ok(filled) => {
                context.count(filled.way, filled.bytes);
                if filled.bytes < wanted { Err(ReadAbort::Shrunk) } else { Ok(Ok(())) }
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Finds which bytes of a range cannot be read, by halves down to the
    /// smallest read the file takes.
    fn narrow(
        &self,
        context: &mut ReaderContext,
        range: Range<u64>,
        failures_left: &mut u32,
        bad: &mut Vec<ByteRange>,
    ) -> Result<(), ReadAbort> {
        let grain = self.source.grain();
        if range.end - range.start <= grain || *failures_left == 0 {
            push_range(bad, range);
            return Ok(());
        }
        let middle = range.start + ((range.end - range.start) / 2).next_multiple_of(grain);
        for half in [range.start..middle, middle..range.end] {
            if half.is_empty() {
                continue;
            }
            if self.fill(context, &half)?.is_err() {
                *failures_left = failures_left.saturating_sub(1);
                self.narrow(context, half, failures_left, bad)?;
            }
        }
        Ok(())
    }
}

fn take_hole(context: &ReaderContext, range: Range<u64>, take: &mut dyn FnMut(u64, Option<&[u8]>)) {
    for block in blocks_of(&range) {
        let length = (block.end - block.start) as usize;
        context.heartbeat.beat();
        take(block.start / BLOCK, Some(&context.zeros[..length]));
        context.meter().count_hashed(length);
    }
}

/// The blocks a range is made of; the last may be short.
fn blocks_of(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    (range.start..end).step_by(BLOCK as usize).map(move |start| start..(start + BLOCK).min(end))
}
